"""The multinomial risk against brute force: minimisers, and a search for the farthest gradients."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import lambertw, softmax

from dp_halfspace.optim import risks as module
from dp_halfspace.optim import softmax_diameter
from dp_halfspace.optim.losses import _bounds, _ceiling, _Cells, _largest_gradient, _values
from dp_halfspace.optim.risks import logistic_diameter
from tests.adversarial import neighbouring_pairs
from tests.optim.risk_cases import fitted, moved, planned, softmax_risk

REACHES, MORE = [0.01, 1.0, 3.0, 6.0, 15.0, 100.0], [0.3, 2.0, 5.0, 8.0, 40.0]
CLASSES, MANY = [3, 4, 10], [5, 6, 30, 100]
# Largest distance found over the bound: at least this much for three classes and for many.
NEAR, FAR = 0.965, 0.75


def gradients(scores, own):
    """Slopes ``p - e`` of scores, one row each."""
    one_hot = np.eye(scores.shape[-1])[own]
    return softmax(scores, axis=-1) - one_hot


def negative(point, K, reach, labels):
    """Minus the squared distance of two gradients, and its derivative.

    The rows are (cos, sin) and (cos, -sin) of the last number; the last of the scores that are
    given is that of all other classes.
    """
    free = point[:-1].reshape(-1, 2)
    groups = np.minimum(np.arange(K), len(free) - 1)
    centred = free[groups] - free[groups].mean(axis=0)
    size = np.linalg.norm(centred)
    W = centred * (reach / size)
    c, s = math.cos(point[-1]), math.sin(point[-1])
    rows = np.array([[c, s], [c, -s]])
    g = gradients(rows @ W.T, np.array(labels))
    product = c * c - s * s
    p, slope = g + np.eye(K)[list(labels)], 2.0 * (g - product * g[::-1])
    by_scores = p * (slope - np.sum(p * slope, axis=1, keepdims=True))
    turn = np.sum(by_scores @ W * [[-s, c], [-s, -c]]) + 8.0 * c * s * (g[0] @ g[1])
    by_W = by_scores.T @ rows
    by_W = by_W - W * (np.sum(by_W * W) / reach**2)
    by_W = (by_W - by_W.mean(axis=0)) * (reach / size)
    by_free = np.zeros_like(free)
    np.add.at(by_free, groups, by_W)
    return -np.sum(g**2) + 2.0 * product * (g[0] @ g[1]), -np.append(by_free.ravel(), turn)


def starts(K, rng):
    """Mirrored rows of one class, opposite rows, swapped classes, and anything."""
    e, none = np.eye(K), np.zeros(K)
    yield np.append(np.stack([e[1] - e[0], none], axis=1), 1.2)
    yield np.append(np.stack([none, e[1] - e[2]], axis=1), math.pi / 2)
    yield np.append(np.stack([none, e[1]], axis=1), math.pi / 2)
    yield np.append(np.stack([e[0] + e[1] - 2.0 / K, 0.5 * (e[1] - e[0])], axis=1), 0.4)
    for _ in range(2):
        yield np.append(rng.standard_normal(2 * K), rng.uniform(0.0, math.pi / 2))


@cache
def farthest(K, reach):
    """Largest half distance that a local search from adversarial starts finds."""
    rng = np.random.default_rng(0)
    best = 0.0
    for labels in ((0, 0), (0, 1)):
        for start in starts(min(K, 5), rng):
            start = start + 0.02 * rng.standard_normal(start.size)
            found = minimize(negative, start, args=(K, reach, labels), jac=True, method="L-BFGS-B")
            best = max(best, -float(found.fun))
    return math.sqrt(best) / 2.0


def more(values):
    """Parameters of the slow tests alone."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def pairs_of():
    """Classes, reach."""
    fast = [(K, reach) for K in CLASSES for reach in REACHES]
    slow = [(K, reach) for K in (*CLASSES, *MANY) for reach in (*REACHES, *MORE)]
    return [*fast, *more(case for case in slow if case not in fast)]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("case", pairs_of())
def test_farthest_pair_is_covered_and_the_bound_is_near(case, record_property):
    """Planted: 3.5 % less than the bound is exceeded by three classes, and at both ends."""
    K, reach = case
    ratio = farthest(K, reach) / softmax_diameter(K, reach)
    record_property("measured / bound", ratio)
    exact = K == 3 or reach in (0.01, 100.0)
    assert (NEAR if exact else FAR) <= ratio <= 1.0


def test_two_classes_are_the_logistic_loss():
    """Scores of two classes differ by sqrt(2) times the norm, and so do the gradients."""
    for reach in (0.05, 1.0, 5.0, 30.0):
        same = math.sqrt(2.0) * logistic_diameter(math.sqrt(2.0) * reach)
        assert same <= softmax_diameter(2, reach) <= 1.002 * same


@pytest.mark.parametrize("K", [2, 10, *more([3, 200])])
def test_monotone_in_the_reach_and_never_above_the_slope(K):
    found = [softmax_diameter(K, reach) for reach in np.geomspace(1e-3, 1e5, 9)]
    assert np.all(np.diff(found) >= -3e-4)
    assert found[-1] <= math.sqrt(2.0) * (1 + 1e-8)
    at_zero = softmax_diameter(K, 0.0)
    slope = 1.0 - 1.0 / K
    assert at_zero == pytest.approx(slope * math.sqrt(K / (K - 1)), rel=1e-8)
    assert found[0] == pytest.approx(at_zero, rel=5e-3)


def test_bounds_of_cells_hold_inside():
    """Brute force in random cells, the unbounded ones too."""
    rng = np.random.default_rng(2)
    for _ in range(300):
        K = int(rng.integers(2, 12))
        beta = 10.0 ** rng.uniform(-3, 0.3)
        low, near = rng.uniform(-7, 12), rng.uniform(0, 12) * rng.choice([0, 1])
        high, far = low + 10.0 ** rng.uniform(-2, 1), near + 10.0 ** rng.uniform(-2, 1)
        edges = [low, high, near, far]
        for index, edge in ((0, -np.inf), (1, np.inf), (3, np.inf)):
            if rng.random() < 0.15:
                edges[index] = edge
        cells = _Cells(*(np.array([edge]) for edge in edges))
        bound = float(_bounds(beta, K, cells)[0][0])
        at_logit = np.linspace(max(edges[0], high - 40), min(edges[1], low + 60), 200)[:, None]
        ratio = np.linspace(near, min(edges[3], near + 60), 200)[None, :]
        assert _values(beta, K, at_logit, ratio).max() <= bound + 1e-12


@pytest.mark.parametrize("K", [30, 200])
def test_bounds_of_wide_cells_of_many_classes_hold_inside(K):
    """In which the largest share passes one half, where it changes fastest."""
    rng = np.random.default_rng(0)
    low, near, logits, ratios = rng.uniform(
        [[-6], [0], [0.1], [0.1]], [[10], [6], [4], [4]], (4, 500)
    )
    for beta in (0.0, 0.01, 0.1):
        bounds = _bounds(beta, K, _Cells(low, low + logits, near, near + ratios))[0]
        for a, b in itertools.product(np.linspace(0.0, 1.0, 9), repeat=2):
            inside = _values(beta, K, low + a * logits, near + b * ratios)
            assert np.all(inside <= bounds + 1e-12)


@pytest.mark.parametrize("K", [2, 3, 10])
def test_no_gradient_is_longer_than_the_bound(K):
    """Scores that favour some of the other classes, all of the allowed norm."""
    angle = np.linspace(0.0, 2.0 * np.pi, 500)[:, None]
    for reach, n_ahead in itertools.product((0.2, 1.0, 2.0, 4.0, 8.0), range(1, K)):
        own = np.append(K - 1.0, -np.ones(K - 1))
        ahead = np.repeat([0.0, K - 1.0 - n_ahead, -n_ahead], [1, n_ahead, K - 1 - n_ahead])
        own, ahead = own / np.linalg.norm(own), ahead / max(np.linalg.norm(ahead), 1.0)
        scores = reach * (np.cos(angle) * own + np.sin(angle) * ahead)
        longest = np.linalg.norm(gradients(scores, 0), axis=1).max()
        assert longest <= _largest_gradient(K, reach) * (1.0 + 1e-12)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("K", [3, 8])
def test_ceiling_is_the_maximum_over_all_probabilities(K):
    """One share and equal others suffice: a search over the whole simplex finds no more."""
    rng = np.random.default_rng(3)
    for beta in (0.02, 0.1, 0.3, 0.6):
        bound = _ceiling(beta, K)

        def value(z, beta=beta):
            g = gradients(z, 0)
            return g @ g - 2.0 * beta * (g @ z)

        tries = [rng.standard_normal(K) * scale for scale in (0.3, 2.0, 5.0) for _ in range(2)]
        most = max(-minimize(lambda z: -value(z), z).fun for z in tries)
        assert bound - 3e-4 <= most <= bound


# --- minimisers ---

ROW = np.array([[1.0, 0.0]])


def ratio_of_opposite_rows(K, ridge, weight=1.0):
    """Distance of the minimisers of two sets of one record over the bound of the plan."""
    plan = planned(softmax_risk(1, 2, K, max_weight=weight), ridge)
    zero = np.array([0])
    return moved(plan, ROW, zero, -ROW, zero, np.full(K, weight)) / plan.sensitivity


@pytest.mark.parametrize("weight", [1.0, 4.0])
@pytest.mark.parametrize("K", [3, 10])
def test_minimisers_of_opposite_rows_nearly_attain_the_bound(K, weight, monkeypatch):
    """A strong regulariser. Planted: slopes that are 3.5 % too small are exceeded."""
    ridge, honest = 3000.0 * weight, module.softmax_diameter
    assert 0.965 < ratio_of_opposite_rows(K, ridge, weight) <= 1.0
    monkeypatch.setattr(module, "softmax_diameter", lambda *a, **k: 0.965 * honest(*a, **k))
    assert ratio_of_opposite_rows(K, ridge, weight) > 1.0


@pytest.mark.parametrize("K", [3, 6])
def test_minimisers_of_neighbours_are_covered(K):
    rng = np.random.default_rng(4)
    worst = size = 0.0
    for X, y, other_X, other_y in neighbouring_pairs(rng, 24, n_classes=K):
        plan = planned(softmax_risk(*X.shape, K), 10.0 ** rng.choice(np.linspace(-2.5, 2.0, 10)))
        worst = max(worst, moved(plan, X, y, other_X, other_y) / plan.sensitivity)
        size = max(size, float(np.linalg.norm(fitted(plan, X, y))) / plan.radius)
    assert 0.8 <= worst <= 1.0
    assert 0.7 <= size <= 1.0


def test_radius_anchors():
    # Two classes: the constant of the logistic loss.
    for k, square in ((3, 0.463056), (10, 1.101003), (2, lambertw(1 / math.e).real)):
        assert softmax_risk(k=k).radius(1.0) ** 2 == pytest.approx(square, abs=1e-6)
    few, many = (softmax_risk(50, 2, k).sensitivity(0.1) for k in (3, 1000))
    assert few <= many <= 2 * math.sqrt(2) / (0.1 * 50) * (1 + 1e-8)
