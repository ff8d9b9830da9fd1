"""The private metric: sensitivity, packing, shrinkage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import chi2

from dp_halfspace.optim.metric import (
    EFFECTIVE_DIMENSION,
    MetricPlan,
    plan_metric,
    release_metric,
    shrunk_spectrum,
)
from dp_halfspace.optim.rows import Rows
from dp_halfspace.optim.unit_rows import unit_rows
from dp_halfspace.privacy import PrivacyRecord, authorise, noise_source
from dp_halfspace.privacy.mechanisms import recording
from tests.adversarial import neighbouring_pairs


def permit_for(plan, noise="os"):
    epsilon = math.inf if noise == "none" else 50.0
    record = PrivacyRecord(epsilon=epsilon, delta=1e-3, events=(plan.mechanism.event,), noise=noise)
    return authorise(record, noise_source(None))


def packed(X, plan):
    """The exact query of a release."""
    with recording() as releases:
        release_metric(X if isinstance(X, Rows) else Rows(X), plan, permit_for(plan))
    return releases[0]


def worst_ratio(row_norm=1.0):
    rng = np.random.default_rng(0)
    worst = 0.0
    for X, _, other, _ in neighbouring_pairs(rng, 200, row_norm=row_norm):
        plan = MetricPlan(*X.shape, plan_metric(50, X.shape[1], 64, mu=1.0).mechanism, 1.0)
        a, b = packed(X, plan), packed(other, plan)
        worst = max(worst, float(np.linalg.norm(a.value - b.value)) / a.mechanism.sensitivity)
    return worst


def test_sensitivity_against_brute_force():
    assert 0.99 < worst_ratio() <= 1


def test_brute_force_sees_rows_that_are_too_long():
    """Planted: rows of norm 1.1."""
    assert worst_ratio(row_norm=1.1) > 1


def test_packed_norm_is_the_frobenius_norm():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    plan = plan_metric(30, 4, 64, mu=1.0)
    assert np.linalg.norm(packed(X, plan).value) == pytest.approx(np.linalg.norm(X.T @ X))


def test_noise_has_its_law():
    plan = plan_metric(1000, 12, 1000, mu=1.0)
    squares = 0.0
    for _ in range(20):
        release = packed(np.zeros((1000, 12)), plan)
        squares += float(np.sum((release.released / plan.mechanism.sensitivity) ** 2))
    degrees = 20 * 78
    assert 1e-6 < chi2.cdf(squares, degrees) < 1 - 1e-6


def test_rounding_allowance_covers_the_measured_error():
    rng = np.random.default_rng(2)
    n, k = 20000, 6
    X = rng.standard_normal((n, k))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    plan = plan_metric(n, k, 4096, mu=1.0)
    exact = np.array(
        [math.fsum(X[:, a] * X[:, b]) for a, b in zip(*np.triu_indices(k), strict=True)]
    )
    weight = np.where(np.equal(*np.triu_indices(k)), 1, math.sqrt(2))
    error = np.linalg.norm(packed(X, plan).value - exact * weight)
    allowance = plan.mechanism.sensitivity - math.sqrt(2)
    assert 2 * error <= allowance <= 1e-4


def test_gate_is_public():
    assert plan_metric(10000, 513, 64, mu=1.0) is None
    assert plan_metric(10000, 513, 64, mu=1.0, max_columns=513) is not None
    assert plan_metric(100, 25, 64, mu=0.0999) is None
    assert plan_metric(100, 25, 64, mu=0.1001) is not None


def test_exact_release_whitens():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((5000, 3)) * [1.0, 0.3, 0.1]
    rows = unit_rows(X, 1.0, None)
    plan = plan_metric(5000, 3, 4096, mu=math.inf)
    A = release_metric(rows, plan, permit_for(plan, "none"))
    moment = rows.gram(np.ones(5000)) / 5000
    assert np.linalg.cond(A @ moment @ A) < 1.1 < np.linalg.cond(moment)
    np.testing.assert_allclose(A, A.T, atol=1e-12)


@pytest.mark.parametrize("mu", [0.01, 0.1, 1.0, math.inf])
@pytest.mark.parametrize("size", [1, 2, 40, 512])
def test_spectrum_keeps_its_promises(mu, size):
    """Bounds on which the rounding errors rest, for any released spectrum."""
    rng = np.random.default_rng(4)
    n = 10**6
    plan = plan_metric(n, size, 4096, mu=mu)
    for values in (
        np.sort(rng.standard_normal(size)) * n,
        np.full(size, -1e9 * n),
        np.r_[np.zeros(size - 1), 1e12],
        np.full(size, n / size),
    ):
        flat = shrunk_spectrum(values, plan) / n
        assert np.all(np.sqrt(1 / flat) <= plan.amplification * (1 + 1e-9))
        assert np.all(np.sqrt(flat) <= plan.compression * (1 + 1e-9))
        assert np.isfinite(flat).all()


def test_effective_dimension_is_capped():
    plan = plan_metric(10**6, 100, 4096, mu=1.0)
    flat = shrunk_spectrum(np.full(100, 1e4), plan)
    spikes = math.sqrt(1e8 - plan.edge**2)
    assert 100 * spikes / flat[0] <= EFFECTIVE_DIMENSION * 1.2


def test_sparse_rows_give_the_same_moment():
    X = sparse.random_array((200, 9), density=0.3, rng=np.random.default_rng(5), format="csr")
    plan = plan_metric(200, 10, 64, mu=1.0)
    a = packed(unit_rows(X, 1.0, 0.5), plan).value
    b = packed(unit_rows(X.toarray(), 1.0, 0.5), plan).value
    np.testing.assert_allclose(a, b, atol=1e-12)
