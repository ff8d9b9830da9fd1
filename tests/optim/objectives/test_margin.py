"""The margin objective, plain, tilted and against an adversary: formulas, derivatives, extremes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp

from dp_halfspace.optim.design.rows import Rows, clipped_rows
from dp_halfspace.optim.objectives.adversary import Adversary
from dp_halfspace.optim.objectives.function import spread
from dp_halfspace.optim.objectives.losses import LOGISTIC, SQUARED, SQUARED_HINGE, huber_hinge
from dp_halfspace.optim.objectives.margin import MarginObjective, tilted_mean, tilted_weights, total
from tests.optim.cases import LOSSES, data_sets, logical_rows, loss_id, naive_gradient

RNG = np.random.default_rng(0)
N, D = 60, 4
X = RNG.standard_normal((N, D))
SIGNS = np.where(RNG.random(N) < 0.4, -1.0, 1.0)
WEIGHTS = RNG.random(N) + 0.1
SCALE = RNG.random(N)
LINEAR = RNG.standard_normal(D + 1)
W = 0.7 * RNG.standard_normal(D + 1)
ADVERSARIES = {
    "plain": None,
    "L2": Adversary(0.3, 2, D, 0.01),
    "inf": Adversary(0.1, "inf", D, 0.01),
    "kink": Adversary(0.3, 2, D, 1e-100),
}
each_tilt = pytest.mark.parametrize("tilt", [0.0, 0.5, 50.0])
each_adversary = pytest.mark.parametrize("adversary", ADVERSARIES.values(), ids=ADVERSARIES)


def variants(names):
    """Every loss, tilt and adversary; an adversary needs a monotone loss."""
    pairs = [
        pytest.param(loss, ADVERSARIES[name], id=f"{loss_id(loss)}-{name}")
        for loss in LOSSES
        for name in names
        if loss.monotone or name == "plain"
    ]
    return lambda test: pytest.mark.parametrize(("loss", "adversary"), pairs)(each_tilt(test))


def objective(loss=LOGISTIC, tilt=0.0, adversary=None, linear=LINEAR, form=np.asarray):
    rows = Rows(form(X), SCALE, 0.5)
    return MarginObjective(rows, SIGNS, WEIGHTS, loss, 0.3, linear, tilt, adversary)


@variants(ADVERSARIES)
def test_value_is_the_formula(loss, tilt, adversary):
    margins = (SIGNS * (logical_rows(X, SCALE, 0.5) @ W)).astype(float)
    if adversary is not None:
        k = adversary.smoothing
        part = W[:D] if adversary.norm == "inf" else np.array([np.linalg.norm(W[:D])])
        margins -= np.sum(np.sqrt(part**2 + k**2) - k) * adversary.radius
    losses = WEIGHTS * loss.value(margins)
    mean = (logsumexp(tilt * losses) - np.log(N)) / tilt if tilt else losses.mean()
    for linear in (LINEAR, np.zeros(D + 1)):
        J = objective(loss, tilt, adversary, linear if linear.any() else None)
        value, gradient = J.value_and_gradient(W)
        assert value == pytest.approx(N * mean + 0.15 * W @ W + linear @ W, rel=1e-13)
        np.testing.assert_array_equal(J.gradient(W), gradient)


@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_plain_gradient_is_the_formula(loss):
    Z = logical_rows(X, SCALE, 0.5)
    for linear in (None, LINEAR):
        expected = naive_gradient(Z, SIGNS, WEIGHTS, loss, 0.3, W, linear).astype(float)
        np.testing.assert_allclose(objective(loss, linear=linear).gradient(W), expected, atol=1e-11)


@variants(ADVERSARIES)
def test_derivatives_against_differences(loss, tilt, adversary):
    J = objective(loss, tilt, adversary)
    steps = 1e-5 * np.eye(D + 1)
    if loss.smoothness > 100:  # a step must not cross the kinks of the slope
        steps *= 1e-2
    values = [J.value_and_gradient(W + e)[0] - J.value_and_gradient(W - e)[0] for e in steps]
    numeric = np.array(values) / (2 * steps[0, 0])
    np.testing.assert_allclose(J.gradient(W), numeric, rtol=1e-6, atol=1e-6 * 1e-5 / steps[0, 0])
    numeric = np.array([J.gradient(W + e) - J.gradient(W - e) for e in steps]) / (2 * steps[0, 0])
    hessian = J.hessian(W)
    np.testing.assert_allclose(hessian, numeric, atol=1e-5 * np.abs(hessian).max())
    v = RNG.standard_normal(D + 1)
    np.testing.assert_allclose(J.hessian_product(W)(v), hessian @ v, rtol=1e-9, atol=1e-10)


def test_small_tilts_tend_to_the_sum():
    plain = objective().value_and_gradient(W)
    for tilt in (1e-8, 1e-12, 1e-300):
        value, gradient = objective(tilt=tilt).value_and_gradient(W)
        assert value == pytest.approx(plain[0], rel=1e-6)
        np.testing.assert_allclose(gradient, plain[1], rtol=1e-6)


@each_tilt
@each_adversary
@pytest.mark.parametrize("form", [np.asfortranarray, np.float32, sparse.csr_array])
def test_storage_makes_no_difference(tilt, adversary, form):
    # The same numbers: those that float32 can hold.
    exact = lambda v: np.asarray(v, dtype=np.float32).astype(np.float64)  # noqa: E731
    for loss in (LOGISTIC, huber_hinge(0.5)):
        first = objective(loss, tilt, adversary, form=exact)
        second = objective(loss, tilt, adversary, form=lambda v: form(exact(v)))
        np.testing.assert_allclose(first.gradient(W), second.gradient(W), atol=1e-12)
        np.testing.assert_allclose(first.hessian(W), second.hessian(W), atol=1e-9)
        small = replace(second, signs=SIGNS.astype(np.int8))
        np.testing.assert_array_equal(small.gradient(W), second.gradient(W))


@variants(["plain", "L2", "inf"])
def test_public_constants_bound_the_curvature_and_the_gap(loss, tilt, adversary):
    rows = clipped_rows(X, 1.0, 0.5)
    J = MarginObjective(rows, SIGNS, WEIGHTS, loss, 0.3, LINEAR, tilt, adversary, radius=1.0)
    for w in (np.zeros(D + 1), W, 3 * W / np.linalg.norm(W)):
        eigenvalues = np.linalg.eigvalsh(J.hessian(w))
        assert eigenvalues[-1] <= J.gradient_lipschitz
        assert eigenvalues[0] >= J.ridge * (1 - 1e-9)
    at_zero = J.value_and_gradient(np.zeros(D + 1))[0]
    points = 3 * RNG.standard_normal((200, D + 1)) * RNG.random()
    assert at_zero - min(J.value_and_gradient(w)[0] for w in points) <= J.initial_gap


def test_gradient_lipschitz_is_the_formula():
    J = MarginObjective(clipped_rows(X, 2.0), SIGNS, WEIGHTS, huber_hinge(0.25), 0.3)
    assert J.gradient_lipschitz == pytest.approx(N * WEIGHTS.max() * 2 * 4 + 0.3)
    steep = MarginObjective(Rows(X), SIGNS, WEIGHTS, SQUARED, 0.3, tilt=1.0)
    assert math.isinf(steep.gradient_lipschitz)
    assert math.isfinite(replace(steep, radius=2.0).gradient_lipschitz)


@pytest.mark.parametrize(
    ("loss", "tilt", "w", "share"),
    [(SQUARED, 0.0, [1.0, 1.0, 1.0], 0.2), (LOGISTIC, 0.7, [0.5, -0.2, 0.1], 0.4)],
)
def test_subsample_is_unbiased_in_size_and_keeps_the_rest(loss, tilt, w, share):
    rows, ones = Rows(RNG.standard_normal((5000, 3))), np.ones(5000)
    J = MarginObjective(rows, ones, ones, loss, 0.3, np.ones(3), tilt)
    part = J.subsample(512)
    assert part.rows.shape == (512, 3)
    assert part.weights.sum() == pytest.approx(512 if tilt else 5000)
    assert part.mass == (5000 if tilt else None)
    assert part.ridge == J.ridge
    assert part.linear is J.linear
    again = part.subsample(100)
    assert again is None or again.mass == part.mass
    w = np.array(w)
    for mine, other in zip(part.value_and_gradient(w), J.value_and_gradient(w), strict=True):
        assert np.linalg.norm(mine - other) < share * np.linalg.norm(other)
    assert J.subsample(4000) is None


def test_spread_takes_rows_from_everywhere():
    index = spread(10_000, 1000)
    assert len(index) == len(set(index)) == 1024
    assert index.min() == 0
    assert index.max() == 9999
    assert len(spread(3000, 1000)) == 704
    assert spread(1500, 1000) is None


@pytest.mark.parametrize("case", list(data_sets()), ids=lambda case: case[0])
@pytest.mark.parametrize("tilt", [0.0, 50.0, 1e4, 1e300])
def test_no_point_and_no_data_warn(case, tilt):
    _, features, signs = case
    d, rows = features.shape[1], clipped_rows(features, 1.0)
    for adversary in (None, Adversary(0.3, 2, d), Adversary(0.1, "inf", d, 1e-60)):
        for loss in (LOGISTIC, SQUARED_HINGE):
            ones = np.ones(len(signs))
            J = MarginObjective(rows, signs, ones, loss, 0.1, None, tilt, adversary)
            for size in (0.0, 1.0, 1e8, 1e200):
                w = np.full(J.size, size)
                value, gradient = J.value_and_gradient(w)
                J.hessian(w)
                J.hessian_product(w)(w)
                if size <= 1e8:
                    assert np.isfinite(gradient).all()
                    assert np.isfinite(value)


def test_weights_of_records_do_not_overflow():
    values = np.array([0.0, 1e300, 1e300, -1e300])
    np.testing.assert_array_equal(tilted_weights(values, 1e4), [0.0, 0.5, 0.5, 0.0])
    assert tilted_mean(values, 1e4) == 1e300
    assert tilted_mean(np.array([1.0, 3.0]), 0.0) == 2.0
    assert tilted_mean(np.array([1.0, 3.0]), 1e-9) == pytest.approx(2.0, rel=1e-8)


@pytest.mark.parametrize("n", [1, 1023, 1024, 1025, 5000])
def test_sums_in_runs(n):
    values = RNG.standard_normal(n)
    assert total(values) == pytest.approx(values.sum(), rel=1e-12)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        *(({"ridge": value}, "ridge") for value in (0.0, -1.0, math.nan, math.inf)),
        *(({"tilt": value}, "tilt") for value in (-1.0, math.inf, math.nan)),
        ({"signs": SIGNS[1:]}, "signs"),
        ({"weights": WEIGHTS[1:]}, "weights"),
        ({"linear": np.ones(2)}, "linear"),
        ({"loss": SQUARED, "adversary": ADVERSARIES["L2"]}, "monotone"),
    ],
)
def test_bad_arguments(change, word):
    good = {"rows": Rows(X), "signs": SIGNS, "weights": WEIGHTS, "loss": LOGISTIC, "ridge": 1.0}
    with pytest.raises(ValueError, match=word):
        MarginObjective(**{**good, **change})
