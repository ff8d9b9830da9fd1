"""Output perturbation of every risk: the minimiser, what the plan allows for, neighbours."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from dp_halfspace import OutputPerturbationClassifier
from dp_halfspace.optim import risks
from dp_halfspace.optim.losses import LOGISTIC, SQUARED, huber_hinge
from dp_halfspace.optim.risks import MarginRisk, SoftmaxRisk
from dp_halfspace.papers.objective import plan_objective
from dp_halfspace.papers.output import plan_output
from dp_halfspace.papers.pair_objective import PairRisk, balanced_normaliser
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.mechanisms import GaussianNoise, NoNoise
from dp_halfspace.rows.rows import clipped_rows
from tests.adversarial import neighbouring_pairs
from tests.conftest import separated
from tests.papers.pair_cases import differences
from tests.papers.test_regulariser import records
from tests.permits import rows_door
from tests.releases import record_releases

HUBER = huber_hinge(0.5)
NORM = 1.0 + 2.0**-50


def pairs(loss=LOGISTIC, n=1000, d=10, norm=1.0):
    return PairRisk(loss, n, d, norm, n, balanced_normaliser(n))


def gaussian(sensitivity):
    return GaussianNoise(sensitivity, 1.0)


def exact(_):
    return NoNoise()


def run(plan, X, codes, weights=None):
    weights = np.ones(codes.max(initial=1) + 1) if weights is None else weights
    with record_releases() as releases:
        w = plan.run(rows_door(clipped_rows(X, 1.0), codes, weights, *plan.events))
    return w, releases


@pytest.mark.parametrize("plan_one", [plan_output, plan_objective], ids=["output", "objective"])
@pytest.mark.parametrize("risk", [records(n=20, d=2), records(HUBER, n=20, d=2, k=3)])
def test_the_solver_is_asked_for_what_the_noise_allows_for(monkeypatch, plan_one, risk):
    asked, honest = [], risks.certified_minimum

    def remember(objective, gamma, **rest):
        asked.append((gamma, rest["radius"], objective.ridge))
        return honest(objective, gamma, **rest)

    monkeypatch.setattr(risks, "certified_minimum", remember)
    plan = (
        plan_output(risk, 0.5, gaussian) if plan_one is plan_output else plan_one(risk, 0.5, 1, 0)
    )
    run(plan, np.full((20, 2), 0.3), np.arange(20) % risk.n_classes)
    right = plan.tolerance.target, plan.radius, risk.total(plan.ridge)
    assert asked == [right] * risk.n_stacked


@pytest.mark.parametrize("loss", [LOGISTIC, SQUARED], ids=lambda loss: loss.name)
def test_without_noise_it_is_the_minimiser_over_all_pairs(loss):
    rng = np.random.default_rng(0)
    X, positive = rng.uniform(-0.4, 0.4, (60, 3)), rng.random(60) < 0.3
    X[positive] += 0.15
    z, ridge = differences(X, positive), 0.05

    def objective(w):
        return loss.value(z @ w).sum() / balanced_normaliser(60) + ridge / 2 * w @ w

    found = minimize(objective, np.zeros(3), method="BFGS", options={"gtol": 1e-9})
    plan = plan_output(pairs(loss, 60, 3, NORM), ridge, exact)
    np.testing.assert_allclose(run(plan, X, positive.astype(int))[0][0], found.x, atol=1e-5)


@pytest.mark.parametrize("label", [0, 1])
def test_an_empty_class_of_pairs_gives_noise_round_zero(label):
    X = np.full((20, 2), 0.3)
    w, releases = run(plan_output(pairs(n=20, d=2), 0.5, gaussian), X, np.full(20, label))
    np.testing.assert_array_equal(releases[-1].value, np.zeros((1, 2)))
    assert np.isfinite(w).all()


@pytest.mark.parametrize(
    "risk", [records(n=20, d=2), records(HUBER, n=20, d=2, k=3), pairs(n=20, d=2)]
)
def test_a_release_is_brought_to_the_ball_of_the_minimisers(risk):
    X, codes = np.full((20, 2), 0.3), np.arange(20) % getattr(risk, "n_classes", 2)

    def loud(_):
        return GaussianNoise(1e3, 1e-3)

    plan = plan_output(risk, 0.5, loud, projects=True)
    w, releases = run(plan, X, codes)
    largest = plan.radius * math.sqrt(risk.n_stacked)
    assert np.linalg.norm(releases[0].released) > 2 * largest
    assert np.linalg.norm(w) == pytest.approx(largest)
    np.testing.assert_allclose(
        w / largest, releases[0].released / np.linalg.norm(releases[0].released)
    )


def test_noise_is_not_cut_off_unless_asked_for():
    """Seen from outside, the deviation of a release is that of its noise on every data set."""
    X, codes = np.full((20, 2), 0.3), np.arange(20) % 2
    plan = plan_output(records(n=20, d=2), 0.5, lambda _: GaussianNoise(1e3, 1e-3))
    w, releases = run(plan, X, codes)
    np.testing.assert_array_equal(w, releases[0].released)


@pytest.mark.parametrize("preconditioner", [True, False])
def test_an_estimator_can_be_asked_to_project(preconditioner):
    X, y = separated(4000, 3)
    model = OutputPerturbationClassifier(
        epsilon=1.0, preconditioner=preconditioner, project=True, data_norm=1.0,
        classes=[0, 1],
    )  # fmt: skip
    plan = model._plan(model._facts(model._validate(X, y, None)), Budget.of(1.0, 1e-7))
    inner = plan.minimiser if preconditioner else plan.plan
    assert inner.projects


CASES = {
    "records": (records, LOGISTIC, 2, 0.2),
    "classes": (records, LOGISTIC, 3, 0.2),
    "stacked": (records, HUBER, 3, 0.2),
    "pairs": (pairs, LOGISTIC, 2, 0.1),
}


def worst_ratio(make, loss, k):
    """Largest distance of the queries of neighbours, over the planned sensitivity."""
    rng, worst = np.random.default_rng(2), 0.0
    for X, y, other, flipped in neighbouring_pairs(rng, 40, n_classes=k):
        sizes = {"n": X.shape[0], "d": X.shape[1], "norm": NORM}
        risk = make(loss, **sizes, **({} if make is pairs else {"k": k}))
        plan = plan_output(risk, 3.0, gaussian)
        a, b = (run(plan, *data, np.ones(k))[1][-1].value for data in ((X, y), (other, flipped)))
        worst = max(worst, float(np.linalg.norm(a - b)) / plan.output.sensitivity)
    return worst


@pytest.mark.parametrize(("make", "loss", "k", "least"), CASES.values(), ids=CASES)
def test_sensitivity_against_brute_force(make, loss, k, least):
    assert least < worst_ratio(make, loss, k) <= 1.0


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("cls", "make", "loss", "k"),
    [(MarginRisk, records, HUBER, 2), (SoftmaxRisk, records, LOGISTIC, 3)],
)
def test_brute_force_sees_a_small_sensitivity(monkeypatch, cls, make, loss, k):
    """Planted: half the sensitivity."""
    honest = cls.sensitivity
    monkeypatch.setattr(cls, "sensitivity", lambda self, ridge: honest(self, ridge) / 2)
    assert worst_ratio(make, loss, k) > 1.0
