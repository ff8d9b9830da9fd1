"""Releases without their noise, and neighbours that move a minimiser far."""

import math

import numpy as np

from dp_halfspace.optim import MarginRisk, SoftmaxRisk, minimisers
from dp_halfspace.papers.output import plan_output
from dp_halfspace.papers.pair_objective import PairRisk, balanced_normaliser
from dp_halfspace.rows.rows import clipped_rows
from tests.adversarial import neighbouring_pairs, unit


def margin_risk(loss, n=1000, d=10, k=2, norm=1.0, **rest):
    return MarginRisk(loss, n, d, k, norm, 1000, **rest)


def softmax_risk(n=1000, d=10, k=3, norm=1.0, **rest):
    return SoftmaxRisk(n, d, k, norm, 1000, **rest)


def pair_risk(loss, n=1000, d=10, norm=1.0):
    return PairRisk(loss, n, d, norm, 1000, balanced_normaliser(n))


def planned(risk, ridge):
    """What output perturbation publishes, without its noise."""
    return plan_output(risk, ridge, lambda sensitivity: None)


def fitted(plan, X, classes, weights=None, constant=None, bound=1.0):
    """What output perturbation computes, without its noise."""
    weights = np.ones(getattr(plan.risk, "n_classes", 2)) if weights is None else weights
    rows = clipped_rows(X, bound, constant)
    solver = {"ridge": plan.ridge, "target": plan.tolerance.target, "radius": plan.radius}
    return minimisers(plan.risk, rows, classes, weights, **solver)


def moved(plan, X, classes, other_X, other_classes, *rest):
    """Distance of the minimisers of two data sets."""
    first, second = fitted(plan, X, classes, *rest), fitted(plan, other_X, other_classes, *rest)
    return float(np.linalg.norm(first - second))


def neighbours(rng, trials, k=2, row_norm=1.0):
    """The usual neighbours, and alone in the data: records without features, records all alike."""
    yield from neighbouring_pairs(rng, trials, n_classes=k, row_norm=row_norm)
    for trial in range(trials // 2):
        n, d = int(rng.integers(2, 10)), int(rng.integers(1, 4))
        X = np.tile(unit(rng, d), (n, 1))
        if trial % 3 == 0:
            X[1:] = 0.0
        if trial % 3 == 1:
            X[:] = 1.0 / math.sqrt(d)
        y = np.ones(n, dtype=int)
        y[: n // 2] = trial % 2
        other_X, other_y = X.copy(), y.copy()
        other_X[0] *= rng.choice([-1.0, 0.0])
        if trial % 4 == 3:
            other_y[0] = 1 - y[0]
        yield row_norm * X, y, row_norm * other_X, other_y
