"""The private preconditioner: sensitivity, packing, shrinkage."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dp_halfspace.algorithms.engine.preconditioner import (
    Preconditioner,
    plan_preconditioner,
    release_preconditioner,
    shrunk_spectrum,
)
from dp_halfspace.rows.blocks import block_size
from dp_halfspace.rows.rows import Rows, normalised_rows
from tests.adversarial import neighbouring_pairs
from tests.algorithms.support import permit_for
from tests.releases import record_releases


def released(rows, plan):
    """A preconditioner, and the release from which it was made."""
    with record_releases() as releases:
        preconditioner = release_preconditioner(rows, plan, permit_for(plan.mechanism.event))
    return preconditioner, releases[0]


def packed(X, plan):
    """The exact query of a release."""
    return released(X if isinstance(X, Rows) else Rows(X), plan)[1]


def worst_ratio(row_norm=1.0):
    rng = np.random.default_rng(0)
    worst = 0.0
    for X, _, other, _ in neighbouring_pairs(rng, 200, row_norm=row_norm):
        plan = plan_preconditioner(50, X.shape[1], 64, mu=1.0)
        plan = replace(plan, n_samples=len(X), edge=1.0)
        a, b = packed(X, plan), packed(other, plan)
        worst = max(worst, float(np.linalg.norm(a.value - b.value)) / a.mechanism.sensitivity)
    return worst


def test_sensitivity_against_brute_force():
    assert 0.99 < worst_ratio() <= 1


def test_brute_force_sees_rows_that_are_too_long():
    """Planted: rows of norm 1.1."""
    assert worst_ratio(row_norm=1.1) > 1


def test_rounding_allowance_covers_the_measured_error():
    rng = np.random.default_rng(2)
    n, k = 20000, 6
    X = rng.standard_normal((n, k))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    plan = plan_preconditioner(n, k, 4096, mu=1.0)
    exact = np.array(
        [math.fsum(X[:, a] * X[:, b]) for a, b in zip(*np.triu_indices(k), strict=True)]
    )
    weight = np.where(np.equal(*np.triu_indices(k)), 1, math.sqrt(2))
    error = np.linalg.norm(packed(X, plan).value - exact * weight)
    allowance = plan.mechanism.sensitivity - math.sqrt(2)
    assert 2 * error <= allowance <= 1e-4


def test_gate_is_public():
    assert plan_preconditioner(10000, 513, 64, mu=1.0) is None
    assert plan_preconditioner(10000, 513, 64, mu=1.0, max_columns=513) is not None
    assert plan_preconditioner(100, 25, 64, mu=0.0999) is None
    assert plan_preconditioner(100, 25, 64, mu=0.1001) is not None


@pytest.mark.parametrize("mu", [0.01, 0.1, 1.0, math.inf])
@pytest.mark.parametrize("size", [1, 2, 40, 512])
def test_spectrum_keeps_its_promises(mu, size):
    """Bounds on which the rounding errors rest, for any released spectrum."""
    rng = np.random.default_rng(4)
    n = 10**6
    plan = plan_preconditioner(n, size, 4096, mu=mu)
    for values in (
        np.sort(rng.standard_normal(size)) * n,
        np.full(size, -1e9 * n),
        np.r_[np.zeros(size - 1), 1e12],
        np.full(size, n / size),
    ):
        spikes, bulk = shrunk_spectrum(values[values > plan.edge], plan)
        flat = np.r_[spikes, bulk] / n
        assert np.all(np.sqrt(1 / flat) <= plan.amplification * (1 + 1e-9))
        assert np.all(np.sqrt(flat) <= plan.compression * (1 + 1e-9))
        assert np.isfinite(flat).all()
        assert bulk <= spikes.min(initial=np.inf)


def whole_spectrum(noisy, plan):
    """The map by the definition: every eigenvalue, every eigenvector."""
    n, size = plan.n_samples, plan.n_columns
    values, vectors = np.linalg.eigh(noisy)
    values -= (values.sum() - n) / size
    spikes, bulk = shrunk_spectrum(values[values > plan.edge], plan)
    flat = np.r_[np.full(size - len(spikes), bulk), spikes] / n
    return (vectors / np.sqrt(flat)) @ vectors.T


def symmetric(release, size):
    """The matrix that was released."""
    upper, noisy = np.triu_indices(size), np.zeros((size, size))
    noisy[upper] = release.released / np.where(upper[0] == upper[1], 1.0, math.sqrt(2.0))
    return noisy + np.triu(noisy, 1).T


def spiked_rows(n, size, seed=6):
    """Unit rows of which five directions are strong."""
    scales = np.r_[[1.0, 0.7, 0.5, 0.4, 0.3], np.full(size, 0.02)][:size]
    X = np.random.default_rng(seed).standard_normal((n, size)) * scales
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("mu", [0.2, 3.0, math.inf])
@pytest.mark.parametrize("size", [1, 2, 30, 301])
def test_few_directions_are_the_whole_map(mu, size):
    plan = plan_preconditioner(3000, size, 4096, mu=mu)
    preconditioner, release = released(Rows(spiked_rows(3000, size)), plan)
    whole = whole_spectrum(symmetric(release, size), plan)
    np.testing.assert_allclose(
        preconditioner @ np.eye(size), whole, rtol=1e-7, atol=1e-7 * preconditioner.stretch
    )


def hardest(size, rank, seed=7):
    """A preconditioner with the largest ratio of factors that there can be."""
    directions = np.linalg.qr(np.random.default_rng(seed).standard_normal((size, rank)))[0]
    return Preconditioner(math.sqrt(1e3 * size), directions, np.full(rank, 0.25))


def length_error(preconditioner, image_squares):
    """Largest relative error of the lengths of images, over what the steps allow for it."""
    size, rank = preconditioner.directions.shape
    rng = np.random.default_rng(8)
    rows = preconditioner.directions @ rng.standard_normal((rank, 50))
    rows = np.hstack([rows + t * rng.standard_normal(rows.shape) for t in (0.0, 1e-6, 1e-3, 1.0)]).T
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    V = preconditioner.directions.astype(np.longdouble)
    images = preconditioner.stretch * rows.astype(np.longdouble)
    images -= (rows @ V * (preconditioner.stretch - preconditioner.factors)) @ V.T
    exact = np.linalg.norm(images, axis=1)
    relative = float(np.abs(np.sqrt(image_squares(rows)) / exact - 1).max())
    allowed = (
        (size + 8)
        * math.sqrt(size)
        * preconditioner.stretch
        / preconditioner.factors.min()
        * 2.0**-52
    )
    return relative / allowed


@pytest.mark.parametrize(("size", "rank"), [(4, 1), (40, 3), (600, 5), (600, 150)])
def test_lengths_of_images_are_within_the_allowance(size, rank):
    preconditioner = hardest(size, rank)
    assert length_error(preconditioner, preconditioner.image_squares) <= 1


def test_length_test_sees_a_difference_of_squares():
    """Planted: the squared length of the row, less what the preconditioner takes from it."""
    preconditioner = hardest(40, 3)
    missing = preconditioner.stretch**2 - preconditioner.factors**2

    def difference(rows):
        squares = preconditioner.stretch**2 - (rows @ preconditioner.directions) ** 2 @ missing
        return np.maximum(squares, 0.0)

    assert length_error(preconditioner, difference) > 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [4, 40, 301, 601])
def test_directions_are_as_orthonormal_as_the_proof_assumes(size):
    plan = plan_preconditioner(10**4, size, 4096, mu=1.0, max_columns=601)
    V = released(Rows(spiked_rows(10**4, size)), plan)[0].directions
    assert V.shape[1] >= 1
    error = np.linalg.norm(V.T @ V - np.eye(V.shape[1]), 2)
    assert error <= (size / 2 + 7) * math.sqrt(size) * 2.0**-53


def test_root_is_triangular_with_many_directions_or_few_columns():
    preconditioner = hardest(12, 4)
    root = preconditioner.root()
    assert isinstance(root, np.ndarray)
    assert not np.tril(root, -1).any()
    A = preconditioner @ np.eye(12)
    np.testing.assert_allclose(
        root.T @ root, A @ A, rtol=1e-9, atol=1e-9 * preconditioner.stretch**2
    )
    assert isinstance(hardest(64, 3).root(), np.ndarray)
    assert hardest(80, 20).root().T.factors.tolist() == [0.25] * 20


@pytest.mark.parametrize("is_single", [False, True])
@pytest.mark.parametrize(
    ("n", "k", "block"), [(1000, 10, 1000), (300_000, 400, 491), (10**6, 20, 4096), (50, 3, 64)]
)
def test_sensitivity_is_that_of_the_proof(n, k, block, is_single):
    """Its page and ``certificate.md``, sections 7 to 9, in rational arithmetic: no less, no more.

    The allowance for rounding is a part of the sensitivity, and is computed here from the proofs.
    """
    gamma = Fraction(101, 100) * (block + min(-(-n // block), 256) + 8) / 2**53
    allowance = 2 * gamma * n
    if is_single:
        # Twice the error of a group of 256 rows, added up in float32.
        allowance += 2 * Fraction(102, 100) * (256 + 8) * 256 / 2**24
    plan = plan_preconditioner(n, k, block, mu=1.0, is_single=is_single)
    assert plan.mechanism.sensitivity >= math.sqrt(2.0) + float(allowance)
    assert plan.mechanism.sensitivity <= math.sqrt(2.0) + float(allowance) + 2e-12
    # The rounding of the sum itself, if the root were exact: removing it is seen at every size.
    assert Fraction(plan.mechanism.sensitivity) ** 2 > 2 + 2 * allowance


def leading_ratio():
    """Largest change of the moment of the first column and the constant, over what is charged."""
    worst = 0.0
    for X, _, other, _ in neighbouring_pairs(np.random.default_rng(0), 100):
        if X.shape[1] == 1:
            continue
        plan = plan_preconditioner(len(X), X.shape[1] + 1, 64, mu=1e3, lead=1)
        values = [packed(normalised_rows(data, 1.0, 0.5), plan).value for data in (X, other)]
        change = float(np.linalg.norm(values[0] - values[1]))
        worst = max(worst, change / plan.mechanism.sensitivity)
    return worst


def test_moment_of_a_leading_block_is_within_its_sensitivity():
    assert 0.7 < leading_ratio() <= 1


def test_a_block_that_is_not_brought_to_norm_one_is_seen(monkeypatch):
    """Planted: the columns as they are, beside a constant of one."""
    monkeypatch.setattr(
        Rows, "first_columns", lambda rows, size: Rows(rows._matrix[:, :size], constant=2.0)
    )
    assert leading_ratio() > 1


@pytest.mark.parametrize("bias", [None, 0.5])
@pytest.mark.parametrize(("n_columns", "stretch"), [(40, 0.1), (40, 50.0), (7, 1.0)])
def test_map_of_a_leading_block(bias, n_columns, stretch):
    """The map of the block alone, and one number for what is behind it."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((500, n_columns)) * np.geomspace(1.0, 0.1, n_columns)
    rows, lead = normalised_rows(X, 1.0, bias), 4
    size = n_columns + (bias is not None)
    plan = plan_preconditioner(
        500, size, 64, mu=math.inf, max_columns=5, lead=lead, stretch=stretch
    )
    preconditioner = released(rows, plan)[0]
    full = preconditioner @ np.eye(size)
    block = rows.first_columns(lead)
    alone = plan_preconditioner(500, block.shape[1], 64, mu=math.inf)
    of_block = released(block, alone)[0] @ np.eye(block.shape[1])
    expected = stretch * np.eye(size)
    index = [*range(lead), *range(n_columns, size)]
    expected[np.ix_(index, index)] = of_block
    np.testing.assert_allclose(full, expected, atol=1e-12 * np.abs(expected).max())
    values = np.linalg.svd(full, compute_uv=False)
    assert values.max() <= plan.amplification * (1 + 1e-12)
    assert values.min() * plan.compression >= 1 - 1e-12
    images = rows.dense(np.arange(500)) @ full
    np.testing.assert_allclose(
        preconditioner.image_squares(rows.dense(np.arange(500))), (images**2).sum(1)
    )
    root = preconditioner.root()
    root = root if isinstance(root, np.ndarray) else root @ np.eye(size)
    np.testing.assert_allclose(root.T @ root, full @ full, atol=1e-9 * values.max() ** 2)


@pytest.mark.parametrize("power", [0.0, 0.3, 1.0])
def test_a_power_of_the_map(power):
    """The symmetric power, within the bounds of the whole; nothing of the release moves."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((500, 9)) * np.geomspace(1.0, 0.01, 9)
    rows, plan = normalised_rows(X, 1.0, 0.2), plan_preconditioner(500, 10, 64, mu=math.inf)
    weaker = replace(plan, power=power)
    whole, part = (released(rows, p)[0] @ np.eye(10) for p in (plan, weaker))
    values, vectors = np.linalg.eigh(whole)
    np.testing.assert_allclose(part, (vectors * values**power) @ vectors.T, atol=1e-9)
    assert np.linalg.norm(part, 2) <= weaker.amplification
    assert np.linalg.norm(np.linalg.inv(part), 2) <= weaker.compression
    assert weaker.mechanism == plan.mechanism


def test_rounding_of_a_block_is_that_of_its_own_layout():
    """A block is narrower than the rows it leads, so more of its rows are summed at a time."""
    wide = plan_preconditioner(10**5, 512, 8, mu=1.0).mechanism.sensitivity
    block = plan_preconditioner(10**5, 10**4, 8, mu=1.0, lead=10).mechanism.sensitivity
    own = plan_preconditioner(10**5, 11, block_size(10**5, 10, is_sparse=False), mu=1.0)
    assert block == own.mechanism.sensitivity != wide
