"""The margin objective, plain, tilted and against an adversary: formulas, derivatives, extremes."""

import numpy as np
import pytest
from scipy.special import logsumexp

from dp_halfspace.optim.losses import LOGISTIC, SQUARED
from dp_halfspace.optim.objectives import (
    Adversary,
    MarginObjective,
    spread,
    tilted_mean,
    tilted_weights,
    total,
)
from dp_halfspace.rows.rows import Rows
from tests.optim.cases import LOSSES, logical_rows, loss_id

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


@pytest.mark.sampled(37)
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


def test_spread_takes_rows_from_everywhere():
    index = spread(10_000, 1000)
    assert len(index) == len(set(index)) == 1024
    assert index.min() == 0
    assert index.max() == 9999
    assert len(spread(3000, 1000)) == 704
    assert spread(1500, 1000) is None


def test_weights_of_records_do_not_overflow():
    values = np.array([0.0, 1e300, 1e300, -1e300])
    np.testing.assert_array_equal(tilted_weights(values, 1e4), [0.0, 0.5, 0.5, 0.0])
    assert tilted_mean(values, 1e4) == 1e300
    assert tilted_mean(np.array([1.0, 3.0]), 1e-9) == pytest.approx(2.0, rel=1e-8)


@pytest.mark.parametrize("n", [1, 1023, 1024, 1025, 5000])
def test_sums_in_runs(n):
    values = RNG.standard_normal(n)
    assert total(values) == pytest.approx(values.sum(), rel=1e-12)


def test_a_tilted_loss_is_as_smooth_as_it_says_as_far_as_iterates_go():
    """Three times the radius, where the slopes of two records differ most."""
    J = MarginObjective(
        Rows(np.eye(2), row_bound=1.0), np.ones(2), np.ones(2), SQUARED, 1.0, tilt=1.0, radius=10.0
    )
    steepest = np.linalg.eigvalsh(J.hessian(np.full(2, -30.0 / np.sqrt(2.0)))).max()
    assert 0.2 * J.gradient_lipschitz < steepest <= J.gradient_lipschitz
