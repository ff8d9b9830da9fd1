"""Output perturbation behind a private preconditioner: budget, neighbours, certificate."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

from dp_halfspace import privacy
from dp_halfspace.algorithms.perturbation import preconditioned as module
from dp_halfspace.algorithms.perturbation.output import mapped_row_ridge, plan_output
from dp_halfspace.algorithms.perturbation.preconditioned import plan_preconditioned_output
from dp_halfspace.optim import LOGISTIC, block_size, empirical_risk, huber_hinge, shifted_logistic
from dp_halfspace.optim.risks import MarginRisk, SoftmaxRisk
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.mechanisms import GaussianNoise
from dp_halfspace.rows import mapped_rows
from dp_halfspace.rows.mapped_rows import FormedRows
from dp_halfspace.rows.rows import normalised_rows
from tests.adversarial import neighbouring_pairs
from tests.algorithms.perturbation.test_preconditioned_objective import hard_tables
from tests.algorithms.support import assert_costs, permit_for
from tests.releases import record_releases

SHIFTED, HUBER = shifted_logistic(2.0), huber_hinge(0.5)
ONE_CLASS_EACH = {"two classes": (SHIFTED, 2), "softmax": (LOGISTIC, 4), "stacked": (HUBER, 3)}


def risk_of(n, d, k=2, loss=SHIFTED, weight=1.0):
    block = block_size(n, d, is_sparse=False)
    return empirical_risk(loss, n, d, k, 1.0, block, max_weight=weight)


def gaussian(sensitivity):
    return GaussianNoise(sensitivity, 1.0)


@pytest.mark.parametrize("epsilon", [0.1, 8.0])
@pytest.mark.parametrize(("loss", "k"), ONE_CLASS_EACH.values(), ids=ONE_CLASS_EACH)
@pytest.mark.parametrize("ridge", [None, 0.3])
def test_whole_budget_and_no_more(epsilon, loss, k, ridge):
    """A fifth of the squared signal is the preconditioner's, the rest the minimiser's."""
    plan = plan_preconditioned_output(
        risk_of(20000, 30, k, loss), Budget.of(epsilon, 1e-7), ridge=ridge
    )
    preconditioner, minimiser = plan.events
    assert preconditioner.mu**2 == pytest.approx(minimiser.mu**2 / 4.0)
    assert_costs(plan.events, privacy.gdp_mu(epsilon, 1e-7), delta=1e-7)
    assert privacy.epsilon(plan.events, 1e-7) <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize(("n", "d", "epsilon"), [(10**6, 513, 1.0), (40, 3, 0.1)])
def test_no_preconditioner_where_it_is_not_worth_its_price(n, d, epsilon):
    assert plan_preconditioned_output(risk_of(n, d), Budget.of(epsilon, 1e-7)) is None


@pytest.mark.parametrize("row_norm", [0.5, 1.0])
def test_plan_is_for_images_of_norm_one(row_norm):
    """However short the rows were before they were mapped."""
    case = replace(risk_of(20000, 30), row_norm=row_norm)
    plan = plan_preconditioned_output(case, Budget.of(1.0, 1e-7), ridge=0.1)
    bound = FormedRows(normalised_rows(np.eye(30), 1.0, None), np.eye(30)).row_bound
    assert plan.output.risk.row_norm == bound
    assert plan.output.sensitivity >= plan.output.risk.sensitivity(0.1)


def test_plan_counts_the_rows_that_are_summed_at_a_time():
    """Whatever the layout of the data, images are formed in the blocks of the bound."""
    case = replace(risk_of(3000, 100), block_rows=8192)
    plan = plan_preconditioned_output(case, Budget.of(1.0, 1e-7), ridge=0.1)
    formed = FormedRows(normalised_rows(np.zeros((3000, 100)), 1.0, None), np.eye(100))
    assert plan.output.risk.block_rows == formed.block_rows < 3000


def test_ridge_follows_the_noise_and_has_a_ceiling():
    many, few = risk_of(10**5, 5), risk_of(10**5, 300, 20, LOGISTIC)
    assert mapped_row_ridge(many, 0.1) == pytest.approx(1e-3)
    assert mapped_row_ridge(few, 0.1) == pytest.approx(20 * math.sqrt(6000) * 1e-6)
    assert mapped_row_ridge(many, 1e-6) == 1.0
    assert mapped_row_ridge(many, math.inf) == many.least_ridge
    assert mapped_row_ridge(replace(many, max_weight=3.0), 0.1) == pytest.approx(3e-3)


def transforms(rng, d):
    """Maps that stretch rows by very different factors."""
    root = rng.standard_normal((d, d))
    return np.linalg.inv(root @ root.T + 0.01 * np.eye(d))


def worst_ratio(loss, k, trials=80):
    """Largest distance of minimisers of neighbours behind one map, over the sensitivity."""
    rng, worst = np.random.default_rng(2), 0.0
    for X, y, other, flipped in neighbouring_pairs(rng, trials, n_classes=k):
        n, d = X.shape
        plan = plan_output(risk_of(n, d, k, loss), 3.0, gaussian)
        transform, queries = transforms(rng, d), []
        for features, labels in ((X, y), (other, flipped)):
            rows = FormedRows(normalised_rows(features, 1.0, None), transform)
            with record_releases() as releases:
                plan.run(rows, labels, np.ones(k), permit_for(*plan.events))
            queries.append(releases[-1].value)
        distance = float(np.linalg.norm(queries[0] - queries[1]))
        worst = max(worst, distance / plan.noise.sensitivity)
    return worst


@pytest.mark.parametrize(
    ("loss", "k", "least"),
    [(SHIFTED, 2, 0.9), (LOGISTIC, 4, 0.9), (HUBER, 2, 0.8), (HUBER, 3, 0.8)],
)
def test_sensitivity_against_brute_force(loss, k, least):
    """Given the released map each image is a function of one record, of norm one."""
    assert least < worst_ratio(loss, k) <= 1.0


@pytest.mark.parametrize(
    ("cls", "loss", "k"), [(MarginRisk, SHIFTED, 2), (SoftmaxRisk, LOGISTIC, 4)]
)
def test_brute_force_sees_half_a_sensitivity(monkeypatch, cls, loss, k):
    honest = cls.sensitivity
    monkeypatch.setattr(cls, "sensitivity", lambda self, ridge: honest(self, ridge) / 2)
    assert worst_ratio(loss, k) > 1.0


def test_brute_force_sees_rows_that_are_not_brought_back_to_norm_one(monkeypatch):
    monkeypatch.setattr(mapped_rows, "inverse_lengths", lambda lengths, size: np.ones_like(lengths))
    assert worst_ratio(HUBER, 2) > 1.0


def images(X, transform):
    """Images of the normalised rows under the map, brought to norm one by other means."""
    Z = np.asarray(normalised_rows(X, 1.0, None).margins(transform.T))
    lengths = np.linalg.norm(Z, axis=1, keepdims=True)
    return np.divide(Z, lengths, out=np.zeros_like(Z), where=lengths > 2.0**-100)


def gradient(Z, y, weights, w, ridge, k):
    """Gradient of the regularised sum at a point, for the losses of two and of more classes."""
    n, c = len(Z), weights[y][:, None]
    if k == 2:
        signs = np.where(y == 1, 1.0, -1.0)
        slopes = (SHIFTED.derivative(signs * (Z @ w[0])) * signs)[:, None]
    else:
        slopes = softmax(Z @ w.T, axis=1) - np.eye(k)[y]
    return (c * slopes).T @ Z + ridge * n * w


@pytest.mark.parametrize("table", list(hard_tables()), ids=lambda table: table[0])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("power", [0.75, 1.0])
def test_private_query_is_certified(monkeypatch, table, k, power):
    """An independent gradient behind the map that was released, at the private query."""
    _, X, y = table
    y, weights, seen = np.minimum(y, k - 1), np.linspace(0.5, 2.0, k), []
    honest = module.release_preconditioner

    def remember(*args):
        seen.append(honest(*args))
        return seen[-1]

    monkeypatch.setattr(module, "release_preconditioner", remember)
    case = risk_of(*X.shape, k, SHIFTED if k == 2 else LOGISTIC, 2.0)
    plan = plan_preconditioned_output(case, Budget.of(4.0, 1e-6), power=power)
    assert plan.preconditioner.power == power
    with record_releases() as releases:
        found = plan.run(normalised_rows(X, 1.0, None), y, weights, permit_for(*plan.events))
    np.testing.assert_allclose(
        found.transform.T @ found.transform, (seen[0] @ (seen[0] @ np.eye(X.shape[1]))), rtol=1e-9
    )
    Z, exact = images(X, found.transform), releases[-1].value
    left = gradient(Z, y, weights, exact, plan.output.ridge, k)
    assert np.linalg.norm(left) <= plan.output.tolerance.certified + 1e-9
    np.testing.assert_array_equal(found.coefficients, releases[-1].released @ found.transform)
