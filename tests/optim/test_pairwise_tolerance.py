"""The bound on the error of a gradient over pairs holds, and costs little."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from dp_halfspace.exceptions import CertificateError
from dp_halfspace.optim import pair_cells
from dp_halfspace.optim._pairs import PAIR_BLOCK
from dp_halfspace.optim.losses import (
    HINGE,
    LOGISTIC,
    SQUARED,
    SQUARED_HINGE,
    huber_hinge,
    shifted_logistic,
)
from dp_halfspace.optim.pairwise import PairwiseObjective, pair_sums
from dp_halfspace.optim.pairwise_bounds import PairwiseProblem, pairwise_gradient_change
from dp_halfspace.optim.pairwise_tolerance import (
    pair_error,
    pair_mass,
    pairwise_gradient_error,
    pairwise_tolerance,
)
from dp_halfspace.optim.rows import Rows
from dp_halfspace.optim.tolerance import gradient_error
from tests.optim.cases import loss_id, norm_mp
from tests.optim.pair_cases import (
    PAIR_LOSSES,
    RANGES,
    brute_sums,
    exact_pair_gradient,
    scores,
    wide_gradient,
)

SIZES = {"n_samples": 1000, "n_columns": 10, "block_rows": 1000, "row_norm": 1.0, "ridge": 0.1}
each_loss = pytest.mark.parametrize("loss", PAIR_LOSSES, ids=loss_id)


@each_loss
@pytest.mark.parametrize("reach", RANGES)
def test_error_of_a_derivative_for_each_pair(loss, reach):
    positive, negative = scores(reach, 250, 400)
    _, p, q = brute_sums(loss, positive, negative)
    sums = pair_sums(loss, positive, negative)
    bound = pair_error(loss, 650, reach)
    assert np.abs(sums.positive - p).max() <= 400 * bound
    assert np.abs(sums.negative - q).max() <= 250 * bound


def adversarial(n=600, d=5, seed=0):
    """Scores that cancel, and records that cancel each other in every pair."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((n // 2, d)) * 10.0 ** rng.integers(-3, 1, (n // 2, d))
    X = np.vstack([half, half + 1e-9 * rng.standard_normal(half.shape)])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.arange(n) < n // 2


def sizes_of(J, w):
    return {
        "n_samples": J.rows.shape[0],
        "n_columns": J.rows.shape[1],
        "block_rows": J.rows.block_rows,
        "row_norm": J.rows.row_bound,
        "ridge": J.ridge,
        "radius": float(np.linalg.norm(w)),
        "normaliser": J.normaliser,
        "linear": 0.0 if J.linear is None else float(np.linalg.norm(J.linear)),
    }


@each_loss
@pytest.mark.parametrize("size", [0.0, 1.0, 30.0, 1e4])
def test_measured_error_is_below_the_bound(loss, size):
    X, positive = adversarial()
    rng = np.random.default_rng(1)
    J = PairwiseObjective(Rows(X), positive, loss, 0.7, 9e4, rng.standard_normal(5))
    w = size * rng.standard_normal(5)
    exact = wide_gradient(X, positive, loss, 0.7, 9e4, w, J.linear)
    error = float(np.sqrt(((J.gradient(w) - exact) ** 2).sum()))
    bound = pairwise_gradient_error(loss, **sizes_of(J, w))
    assert error <= bound
    assert bound <= 1e7 * error + 1e-9 * (1 + size)


@pytest.mark.parametrize("loss", [LOGISTIC, huber_hinge(0.5), SQUARED], ids=loss_id)
def test_bound_in_forty_digits(loss):
    X, positive = adversarial(24, 3)
    J = PairwiseObjective(Rows(X), positive, loss, 0.7, 100.0)
    w = 5.0 * np.random.default_rng(2).standard_normal(3)
    exact = exact_pair_gradient(X, positive, loss, 0.7, 100.0, w)
    with mpmath.workdps(40):
        gap = [mpmath.mpf(float(a)) - b for a, b in zip(J.gradient(w), exact, strict=True)]
    assert norm_mp(gap) <= pairwise_gradient_error(loss, **sizes_of(J, w))


def test_an_imprecise_gradient_is_seen(monkeypatch):
    """Planted: polynomials of too low a degree in the parts of a cell."""
    X, positive = adversarial(1000)
    J = PairwiseObjective(Rows(X), positive, LOGISTIC, 0.7, 2.5e5)
    w = np.full(5, 2.0)
    exact = wide_gradient(X, positive, LOGISTIC, 0.7, 2.5e5, w)
    bound = pairwise_gradient_error(LOGISTIC, **sizes_of(J, w))
    assert np.linalg.norm((J.gradient(w) - exact).astype(float)) <= bound
    monkeypatch.setattr(pair_cells, "_COARSE", (8, 2))
    assert np.linalg.norm((J.gradient(w) - exact).astype(float)) > bound


def test_interpolation_bound_of_the_proof():
    """The numbers of Theorem 2."""
    widest = {4: 0.12769, 5: 0.25}
    for parts, powers in (pair_cells._FINE, pair_cells._COARSE):
        fine = widest[powers] / parts**powers / (math.factorial(powers) * 2 ** (powers - 1))
        y = 0.9 * math.pi
        rho = y + math.hypot(1.0, y)
        cell = 4 / math.sin(y) * rho**-21 / (rho - 1)
        part_norm = {4: 1.85, 5: 1.99}[powers]
        total = (1 + part_norm * 2.97) * (fine + part_norm * cell) + 36 * math.exp(-40)
        assert total <= 1e-13


@pytest.mark.parametrize(("n", "d"), [(100, 5), (50_000, 22), (10**6, 500)])
@pytest.mark.parametrize("ridge", [1e-2, 1e-4])
def test_the_certificate_costs_little(n, d, ridge):
    Z = n * n / 4
    block = min(n, max(48, 3 * 2**16 // d))
    change = pairwise_gradient_change(PairwiseProblem(LOGISTIC, n, d, 1.0, block, Z))
    rule = pairwise_tolerance(
        LOGISTIC,
        change=change,
        n_samples=n,
        n_columns=d,
        block_rows=block,
        row_norm=1.0,
        ridge=ridge,
        radius=math.sqrt(0.28 / ridge),
        normaliser=Z,
    )
    assert rule.target >= 10 * rule.float_error
    assert 2 * rule.certified / change < (1e-4 if n <= 50_000 else 2e-3)


def test_rule():
    rule = pairwise_tolerance(
        LOGISTIC, change=8e-3, **SIZES, radius=1.7, normaliser=2.5e5, linear_error=1e-6
    )
    assert rule.target == max(8e-10, 10 * rule.float_error)
    assert rule.radius == 1.78
    assert rule.certified == rule.target + rule.float_error + 1e-6


@pytest.mark.parametrize(
    "name", ["n_samples", "n_columns", "row_norm", "radius", "linear", "normaliser"]
)
@each_loss
def test_error_grows_with_every_size(name, loss):
    base = {**SIZES, "n_samples": 10**5, "radius": 6.0, "linear": 1.0, "normaliser": 1e9}
    factor = 0.5 if name == "normaliser" else 2
    grown = {**base, name: type(base[name])(base[name] * factor)}
    assert pairwise_gradient_error(loss, **grown) > pairwise_gradient_error(loss, **base)


def test_a_shift_enters():
    assert pair_error(shifted_logistic(50.0), 100, 1.0) > pair_error(LOGISTIC, 100, 1.0)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 10**6])
def test_mass_is_the_largest_number_of_pairs(n):
    most = max((k * (n - k) for k in range(min(n, 50) + 1)), default=0) if n < 50 else n * n // 4
    assert max(1, most) <= pair_mass(n, 1.0) <= max(1, most) * (1 + 1e-12)


@pytest.mark.parametrize(
    "change",
    [
        {"n_samples": 10**14},
        {"change": 1e-15},
        {"linear_error": 2.0},
        {"row_norm": 1e-40},
        {"radius": 1e40},
    ],
    ids=str,
)
def test_refusals_come_from_public_numbers(change):
    arguments = {"change": 8e-3, **SIZES, "radius": 1.7, "normaliser": 2.5e5, **change}
    with pytest.raises(CertificateError):
        pairwise_tolerance(LOGISTIC, **arguments)


def test_wrong_arguments():
    arguments = {"change": 8e-3, **SIZES, "radius": 1.7, "normaliser": 2.5e5}
    with pytest.raises(ValueError, match="loss"):
        pairwise_tolerance(HINGE, **arguments)
    for name in ("change", "normaliser", "ridge"):
        with pytest.raises(ValueError, match=name):
            pairwise_tolerance(LOGISTIC, **{**arguments, name: 0.0})


@pytest.mark.parametrize("n", [1000, 300_000])
@pytest.mark.parametrize("name", ["huber", "squared hinge", "squared", "logistic", "shifted"])
def test_the_bound_is_the_theorem(name, n):
    """Theorems 4 and 5 of the proofs in their own notation, on the safe side and not above."""
    losses = {"huber": huber_hinge(0.25), "squared hinge": SQUARED_HINGE, "squared": SQUARED}
    loss = {**losses, "logistic": LOGISTIC, "shifted": shifted_logistic(1.5)}[name]
    D, block, r, W, Z, ridge, linear = 12, 700, 1.5, 3.0, 7.0, 0.4, 5.0
    u, reach, beta, m = 2.0**-53, r * W, loss.smoothness, -(-n // PAIR_BLOCK)
    sums = PAIR_BLOCK + m + 8
    if name == "huber":
        v = 1.01 * u * (2 * sums + 4 * beta * (reach + 3))
    elif name.startswith("squared"):
        v = 1.01 * u * 8 * sums * (reach + 1)
    else:
        shift = 1.5 if name == "shifted" else 0.0
        v = pair_cells.logistic_rounding(n, reach + shift) + (reach + shift) * u * (shift > 0)
    assert v * (1 - 1e-14) <= pair_error(loss, n, reach) <= v * (1 + 1e-14)
    share = 2.0 * (n * n // 4) / (n * Z)
    slope = float(loss.slope_bound(2.0 * reach))
    needed = gradient_error(
        n_samples=n,
        n_columns=D,
        block_rows=block,
        row_norm=r,
        ridge=ridge,
        radius=W,
        slope=share * slope,
        smoothness=2.0 * share * beta,
        evaluation=share * (v / u + 4.0 * slope),
        linear=linear,
    )
    sizes = {"n_samples": n, "n_columns": D, "block_rows": block, "row_norm": r}
    public = {"ridge": ridge, "radius": W, "normaliser": Z, "linear": linear}
    found = pairwise_gradient_error(loss, **sizes, **public)
    assert needed * (1 - 1e-13) <= found <= needed * (1 + 1e-13)
