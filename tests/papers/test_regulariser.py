"""The rules for the regulariser minimise what they say, from public numbers."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dp_halfspace.optim import empirical_risk
from dp_halfspace.optim.losses import (
    HINGE,
    LOGISTIC,
    SQUARED,
    SQUARED_HINGE,
    huber_hinge,
)
from dp_halfspace.optim.objectives import Adversary
from dp_halfspace.papers import output
from dp_halfspace.papers.objective import sketch_objective
from dp_halfspace.papers.output import (
    bias_cost,
    output_ridge,
    pair_ridge,
    perturbed_row_ridge,
    plan_output,
)
from dp_halfspace.papers.pair_objective import PairRisk, balanced_normaliser
from dp_halfspace.privacy import gdp_mu
from dp_halfspace.privacy.mechanisms import NoNoise

ROBUST = {
    "tilt": {"tilt": 2.0, "min_weight": 1.0},
    "L2": {"adversary": Adversary(0.2, 2, 10)},
    "inf": {"adversary": Adversary(0.1, "inf", 9)},
    "both": {"tilt": 2.0, "min_weight": 1.0, "adversary": Adversary(0.2, 2, 10, 1e-9)},
}
each = pytest.mark.parametrize("rest", [{}, *ROBUST.values()], ids=["plain", *ROBUST])
each_robust = pytest.mark.parametrize("rest", list(ROBUST.values()), ids=list(ROBUST))


def records(loss=LOGISTIC, n=1000, d=10, k=2, norm=1.0, **rest):
    return empirical_risk(loss, n, d, k, norm, 1000, **rest)


@pytest.mark.sampled(2)
@each
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("epsilon", [0.1, 10.0])
def test_output_ridge_is_the_best_of_a_fine_grid(epsilon, k, rest):
    case = records(n=20000, k=k, **rest)
    found = output_ridge(case, epsilon, 1e-6, norm_guess=4.0)

    def risk(ridge):
        sensitivity = math.sqrt(case.n_stacked) * case.sensitivity(ridge)
        variance = (sensitivity / gdp_mu(epsilon, 1e-6)) ** 2
        return bias_cost(case, ridge, norm_guess=4.0) + case.noise_cost(variance)

    others = [*np.geomspace(1e-7, 1e2, 10), *(found * np.geomspace(0.5, 2.0, 8))]
    assert risk(found) <= min(map(risk, others)) * (1 + 1e-6)
    if "tilt" in rest:
        # No single record takes the mean over.
        assert case.influence(found) < 2000


@each_robust
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "loss", [LOGISTIC, HINGE, SQUARED_HINGE, huber_hinge(0.5), SQUARED], ids=lambda loss: loss.name
)
def test_output_ridge_at_infinite_epsilon_gives_a_minimiser(loss, k, rest):
    if loss is SQUARED and "adversary" in rest:
        return
    case = records(loss, n=10**5, k=k, norm=3.0, **rest)
    ridge = output_ridge(case, math.inf, 0.0, norm_guess=1.0)
    plan = plan_output(case, ridge, lambda _: NoNoise())
    assert plan.tolerance.target / (plan.ridge * 10**5) <= 1e-3 * plan.radius


CASES = [
    empirical_risk(LOGISTIC, 5000, 20, 2, 1.0, 1000),
    empirical_risk(LOGISTIC, 5000, 20, 7, 1.0, 1000),
    empirical_risk(huber_hinge(0.5), 5000, 20, 3, 1.0, 1000, max_weight=2.0),
]
by_case = pytest.mark.parametrize("case", CASES, ids=["binary", "softmax", "rest"])
DELTAS = pytest.mark.parametrize("delta", [0.0, 1e-7])


def test_closed_forms_of_rows_of_norm_one():
    binary, softmax, rest = CASES
    n, rule = 5000, perturbed_row_ridge
    mu = math.sqrt(0.8) * gdp_mu(0.1, 1e-7)
    assert n * rule(binary, 0.1, 1e-7, mu_share=0.8) == pytest.approx(2.0 / mu / 1.5)
    assert n * rule(binary, 0.1, 0.0) == pytest.approx(2.0 * math.sqrt(21) / 0.1 / 1.5)
    assert n * rule(softmax, 0.1, 0.0) == pytest.approx(4.0 * math.sqrt(21) / 0.1 / 1.5)
    assert n * rule(softmax, 0.1, 1e-7) == pytest.approx(math.sqrt(8) / gdp_mu(0.1, 1e-7) / 1.5)
    repeated = 4.0 * math.sqrt(3) / gdp_mu(0.1, 1e-7) / 1.5
    assert n * rule(rest, 0.1, 1e-7) >= repeated


@by_case
@DELTAS
def test_jacobian_keeps_to_its_share(monkeypatch, case, delta):
    """A stretch without limit leaves the Jacobian's share."""
    monkeypatch.setattr(output, "_STRETCH", 1e9)
    for epsilon in (0.01, 1.0, 20.0):
        ridge = perturbed_row_ridge(case, epsilon, delta)
        spent = case.n_stacked * case.log_ratio(ridge)
        assert spent == pytest.approx(0.35 * epsilon, rel=1e-6)


def test_a_regulariser_without_a_certificate_is_not_chosen():
    risk = empirical_risk(LOGISTIC, 10**9, 5, 2, 1.0, 1000)
    ridge = output.objective_ridge(risk, 1.0, 1e-6, norm_guess=1.5)
    assert sketch_objective(risk, ridge, 1.0, 1e-6).ridge == ridge
    # Without noise it is the least one.
    for chosen in (
        output.objective_ridge(risk, math.inf, 0.0, norm_guess=1.5),
        perturbed_row_ridge(risk, math.inf, 0.0),
    ):
        assert chosen == risk.ridge_floor(math.inf)


def test_the_regulariser_of_pairs_depends_on_the_product_only():
    """Only ridge times normaliser matters: public class counts change the ridge, not the fit."""
    a = PairRisk(LOGISTIC, 1000, 5, 1.0, 1000, balanced_normaliser(1000))
    b = replace(a, normaliser=a.normaliser / 10)
    for perturbs in (True, False):
        first, second = (
            pair_ridge(p, 1.0, 1e-6, perturbs_objective=perturbs) * p.normaliser for p in (a, b)
        )
        assert first == pytest.approx(second) or not perturbs
        longer = pair_ridge(replace(a, row_norm=8.0), 1.0, 1e-6, perturbs_objective=perturbs)
        assert longer * a.normaliser == pytest.approx(64.0 * first)
    pure, half = (pair_ridge(a, each, 0.0, perturbs_objective=True) for each in (2.0, 1.0))
    assert pure == pytest.approx(half / 2.0)
    rows = (replace(a, row_norm=norm) for norm in (1.0, 8.0))
    free, far = (pair_ridge(each, math.inf, 0.0, perturbs_objective=True) for each in rows)
    assert far == 64.0 * free < 1e-6
