"""The objective over pairs against the same objective with one row for each pair."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace.optim.losses import LOGISTIC, SQUARED, SQUARED_HINGE
from dp_halfspace.optim.risks import tolerance
from dp_halfspace.optim.solvers import certified_minimum
from dp_halfspace.papers.pair_objective import (
    PAIR_BLOCK,
    PairRisk,
    PairwiseObjective,
    balanced_normaliser,
    block_sum,
    prefix_sums,
    squared_pairs,
)
from dp_halfspace.rows.rows import Rows, clipped_rows
from tests.optim.cases import Counting, clipped_float128, data_sets, loss_id, mostly_zero
from tests.papers.pair_cases import (
    PAIR_LOSSES,
    brute_objective,
    brute_sums,
    relative,
    scores,
    wide_gradient,
)

each_loss = pytest.mark.parametrize("loss", PAIR_LOSSES, ids=loss_id)
CASES = list(data_sets())


def typical(loss, n=60, d=4, seed=0, ridge=0.05, linear=True):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    positive = X[:, 0] + 0.5 * rng.standard_normal(n) > 0.3
    b = 0.1 * rng.standard_normal(d) if linear else None
    Z = balanced_normaliser(n)
    J = PairwiseObjective(Rows(X, row_bound=1.0), positive, loss, ridge, Z, b)
    return J, brute_objective(X, positive, loss, ridge, Z, b), X


@each_loss
@pytest.mark.parametrize("size", [0.0, 1.0, 300.0])
def test_value_gradient_and_hessian(loss, size):
    J, brute, _ = typical(loss)
    w = size * np.random.default_rng(1).standard_normal(J.size)
    value, gradient = J.value_and_gradient(w)
    expected, expected_gradient = brute.value_and_gradient(w)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-11, atol=1e-12)
    np.testing.assert_array_equal(J.gradient(w), gradient)
    bare = typical(loss, linear=False)[0]
    assert bare.initial_gap == pytest.approx(bare.value_and_gradient(np.zeros(4))[0])
    hessian = J.hessian(w)
    np.testing.assert_allclose(hessian, brute.hessian(w), rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(hessian, hessian.T)
    v = np.arange(1.0, 1.0 + J.size)
    np.testing.assert_allclose(J.hessian_product(w)(v), hessian @ v, rtol=1e-9)


@each_loss
def test_sparse_scaled_rows(loss):
    """The layouts of `Rows`: sparse, with factors, with a constant column that cancels."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 5)) * (rng.random((50, 5)) < 0.5)
    positive, scale = rng.random(50) < 0.4, rng.random(50)
    w = rng.standard_normal(6)
    J = PairwiseObjective(Rows(sparse.csr_array(X), scale, 2.0), positive, loss, 0.1, 100.0)
    brute = brute_objective(X * scale[:, None], positive, loss, 0.1, 100.0)
    expected = np.append(brute.gradient(w[:5]), 0.1 * w[5])
    np.testing.assert_allclose(J.gradient(w), expected, rtol=1e-9, atol=1e-11)


def public_rule(J):
    """Tolerance and radius as an estimator would fix them."""
    risk = PairRisk(J.loss, *J.rows.shape, J.rows.row_bound, J.rows.block_rows, J.normaliser)
    radius = risk.radius(J.ridge)
    return radius, tolerance(risk, J.ridge, radius, risk.sensitivity(J.ridge) * J.ridge)


def exact_norm(J, Z, w):
    gradient = wide_gradient(Z, J.positive, J.loss, J.ridge, J.normaliser, w, J.linear)
    return float(np.sqrt((gradient**2).sum()))


@pytest.mark.sampled(24)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
@each_loss
def test_certified_on_every_data_set(case, loss):
    """Separable, one class, one record, duplicates, zeros, rows of extreme size."""
    _, X, signs = case
    for ridge in (0.1, 1e-4):
        rows = clipped_rows(X, 1.0)
        J = PairwiseObjective(rows, signs > 0, loss, ridge, balanced_normaliser(len(X)))
        radius, rule = public_rule(J)
        w = certified_minimum(J, rule.target, radius=radius)
        assert exact_norm(J, clipped_float128(X, 1.0), w) <= rule.certified
        assert np.linalg.norm(w) <= rule.radius


@each_loss
def test_many_records_take_few_passes(loss):
    n = 20_000
    X = np.random.default_rng(0).standard_normal((n, 6))
    J = PairwiseObjective(
        clipped_rows(X, 1.0), X[:, 0] + X[:, 1] ** 2 > 2.0, loss, 1e-2, balanced_normaliser(n)
    )
    radius, rule = public_rule(J)
    counted = Counting(J)
    w = certified_minimum(counted, rule.target, radius=radius)
    assert counted.gradients <= 40
    assert np.linalg.norm(J.gradient(w)) <= rule.target


@pytest.mark.sampled(1)
@each_loss
def test_memory_is_linear(loss):
    """A few numbers for each record, whatever the number of pairs."""
    n = 200_000
    X = np.random.default_rng(0).standard_normal((n, 2))
    J = PairwiseObjective(clipped_rows(X, 1.0), X[:, 0] > 0, loss, 0.1, balanced_normaliser(n))
    w = np.array([3.0, 1.0])
    tracemalloc.start()
    J.value_and_gradient(w)
    _, gradient_peak = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    J.hessian(w)
    _, hessian_peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert gradient_peak <= 14 * 8 * n + 8e6
    assert hessian_peak <= 40 * 8 * n + 2e7


@pytest.mark.parametrize("share", [0.5, 0.01, 0.0005, 0.9995])
def test_subsample_holds_both_classes(share):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 3))
    positive = np.arange(20_000) < share * 20_000
    J = PairwiseObjective(clipped_rows(X, 1.0), positive, LOGISTIC, 0.1, 1e8)
    part = J.subsample(1024)
    assert 1000 <= part.rows.shape[0] <= 1024
    assert 10 <= min(part.positive.sum(), (~part.positive).sum()) <= 512
    assert part.initial_gap == pytest.approx(J.initial_gap)
    w = rng.standard_normal(3)
    gap = np.linalg.norm(part.gradient(w) - J.gradient(w))
    assert gap <= 0.5 * np.linalg.norm(J.gradient(w))
    assert part.subsample(1024) is None


@each_loss
@pytest.mark.parametrize("classes", [[True], [False], [True, True], [False, False, False]])
def test_empty_class_is_only_the_ridge(loss, classes):
    X = np.ones((len(classes), 2))
    J = PairwiseObjective(Rows(X), np.array(classes), loss, 2.0, 1.0, np.array([1.0, -4.0]))
    w = certified_minimum(J, 1e-10, radius=10.0)
    np.testing.assert_allclose(w, [-0.5, 2.0], atol=1e-10)
    assert J.value_and_gradient(np.zeros(2))[0] == 0.0
    np.testing.assert_array_equal(J.hessian(w), 2.0 * np.eye(2))
    many = PairwiseObjective(Rows(np.ones((5000, 2))), np.full(5000, classes[0]), loss, 2.0, 1.0)
    assert many.subsample(1024) is None


@each_loss
def test_opposite_classes_attain_the_largest_curvature(loss):
    X = np.array([[0.7, 0.0]] * 3 + [[-0.7, 0.0]] * 2)
    J = PairwiseObjective(Rows(X, row_bound=0.7), X[:, 0] > 0.0, loss, 0.1, 4.0)
    points = [np.array([t, 0.0]) for t in np.linspace(-1.5, 1.5, 61)]
    steepest = max(np.linalg.norm(J.hessian(w), 2) for w in points)
    assert 0.99 * J.gradient_lipschitz <= steepest <= J.gradient_lipschitz * (1.0 + 1e-9)


def test_a_loss_that_is_not_summed_over_pairs_is_refused():
    with pytest.raises(ValueError, match="loss of pairs"):
        PairwiseObjective(Rows(np.eye(2)), np.array([True, False]), SQUARED_HINGE, 1.0, 1.0)


def test_sums_in_blocks():
    rng = np.random.default_rng(0)
    for n in (0, 1, PAIR_BLOCK - 1, PAIR_BLOCK, 3 * PAIR_BLOCK + 5):
        x = rng.normal(size=(n, 2))
        exact = np.vstack([np.zeros((1, 2)), np.cumsum(x.astype(np.longdouble), axis=0)])
        np.testing.assert_allclose(prefix_sums(x), exact.astype(float), atol=1e-11)
        assert block_sum(x[:, 0]) == pytest.approx(float(exact[-1, 0]), abs=1e-11)


@pytest.mark.parametrize("offset", [0.0, -77.7, 1e6])
def test_squares_do_not_cancel_when_all_scores_are_far_from_zero(offset):
    positive, negative = (s + offset for s in scores(20.0, 150, 260))
    sums, (value, p, q) = squared_pairs(positive, negative), brute_sums(SQUARED, positive, negative)
    assert sums.value == pytest.approx(float(value), rel=1e-9)
    assert relative(sums.positive, p) <= 1e-9
    assert relative(sums.negative, q) <= 1e-9


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e308])
def test_squares_that_are_not_finite_do_not_warn(bad):
    sums = squared_pairs(np.array([bad, 0.0]), np.array([-bad, 1.0]))
    assert not np.isfinite(sums.value)


@each_loss
def test_more_coefficients_than_a_dense_hessian_allows(loss):
    rng = np.random.default_rng(0)
    X = mostly_zero(300, 700, 0.03, rng)
    J = PairwiseObjective(
        clipped_rows(X, 1.0), rng.random(300) < 0.2, loss, 1e-3, balanced_normaliser(300)
    )
    radius, rule = public_rule(J)
    w = certified_minimum(J, rule.target, radius=radius)
    assert exact_norm(J, clipped_float128(X.toarray(), 1.0), w) <= rule.certified
