"""The random linear terms: their distribution, their grid, the bounds on their norm."""

import math

import mpmath
import numpy as np
import pytest

from dp_halfspace.papers import objective as module
from dp_halfspace.papers.objective import GaussianLinearTerm, LaplaceLinearTerm
from dp_halfspace.privacy import ObjectivePerturbation, Pure, noise_source
from tests.permits import tail

VERTICES = ((1, 0.0), (2, 0.5), (1, 1.0))
GAUSSIAN = GaussianLinearTerm(3.0, 0.2, 0.1, VERTICES)
LAPLACE = LaplaceLinearTerm(3.0, 0.5, 0.1)
FALSE_ALARM = 1e-9


def draws(term, shape, count):
    source = noise_source(None)
    return [term.perturb(np.zeros(shape), source) for _ in range(count)]


def assert_distribution(term, sample):
    """Squared Gaussian norms are chi-square, norms of Laplace blocks Gamma."""
    blocks = np.concatenate(sample)
    if isinstance(term, GaussianLinearTerm):
        sigma = term.change / term.mu
        statistic, degrees = float((blocks**2).sum()) / sigma**2, blocks.size
    else:
        scale = term.change / (term.epsilon - term.log_ratio)
        statistic = 2.0 * float(np.linalg.norm(blocks, axis=1).sum()) / scale
        degrees = 2 * blocks.size
    assert tail(statistic, degrees) > FALSE_ALARM / 2


@pytest.mark.parametrize("term", [GAUSSIAN, LAPLACE], ids=lambda t: type(t).__name__)
@pytest.mark.parametrize("shape", [(1, 7), (4, 5)])
def test_draws_have_the_claimed_distribution(term, shape):
    sample = draws(term, shape, 100)
    assert sample[0].shape == shape
    assert len(np.unique(sample[0], axis=0)) == len(sample[0])
    assert_distribution(term, sample)


@pytest.mark.slow
def test_blocks_are_drawn_independently():
    """Planted: one radius for all blocks, as a single Laplace vector has it."""
    norms = np.array([np.linalg.norm(b, axis=1) for b in draws(LAPLACE, (2, 3), 800)])
    joint = np.array([np.linalg.norm(b.reshape(2, 3), axis=1) for b in draws(LAPLACE, (1, 6), 800)])
    # The correlation of 800 independent pairs is below .2 but for a probability of 1e-7.
    assert abs(np.corrcoef(norms.T)[0, 1]) < 0.2
    assert np.corrcoef(joint.T)[0, 1] > -0.2
    assert np.mean(norms) == pytest.approx(3 * LAPLACE.scale, rel=0.1)


@pytest.mark.parametrize(
    ("term", "bits", "size"),
    [(GAUSSIAN, 32, GAUSSIAN.sigma), (LAPLACE, 30, LAPLACE.scale * math.sqrt(5))],
    ids=["gaussian", "laplace"],
)
def test_draws_lie_on_the_grid_whose_half_is_the_rounding(term, bits, size):
    grid = 2.0 ** (math.floor(math.log2(size)) - bits)
    steps = np.concatenate(draws(term, (3, 5), 20)) / grid
    assert (steps == np.rint(steps)).all()
    assert (steps % 2).any()  # no coarser grid: all 300 are even with probability 2^-300
    assert term.rounding(3, 5) == pytest.approx(grid / 2 * math.sqrt(15))


@pytest.mark.parametrize("n_blocks", [1, 3, 40])
@pytest.mark.parametrize("d", [1, 10, 1000])
def test_norm_bound_fails_with_negligible_probability(n_blocks, d):
    with mpmath.workdps(60):
        radius = (GAUSSIAN.norm_bound(n_blocks, d) - GAUSSIAN.rounding(n_blocks, d)) / (
            GAUSSIAN.change / GAUSSIAN.mu
        )
        freedom = mpmath.mpf(n_blocks * d) / 2
        tail = mpmath.gammainc(freedom, mpmath.mpf(radius) ** 2 / 2, regularized=True)
        assert tail < mpmath.mpf(2) ** -180
        block = (LAPLACE.norm_bound(n_blocks, d) - LAPLACE.rounding(n_blocks, d)) / (
            LAPLACE.scale * math.sqrt(n_blocks)
        )
        tail = n_blocks * mpmath.gammainc(mpmath.mpf(d), mpmath.mpf(block), regularized=True)
        assert mpmath.mpf(2) ** -1200 < tail < mpmath.mpf(2) ** -180


def test_realised_scale_is_on_the_safe_side():
    for mu in (1e-3, 0.1, 1 / 3, 7.0):
        term = GaussianLinearTerm(3.0, mu, 0.1, VERTICES)
        assert term.change / term.sigma < mu
    for epsilon in (0.11, 1 / 3, 7.0):
        term = LaplaceLinearTerm(3.0, epsilon, 0.1)
        assert term.change / term.scale + term.log_ratio < epsilon


def test_events():
    assert GAUSSIAN.event == ObjectivePerturbation(0.1, ((1, 0.0), (2, 0.1), (1, 0.2)))
    pairs = GaussianLinearTerm(3.0, 0.2, 0.1, ((1, 0.0), (2, 1.0)), pairwise=True)
    assert pairs.event == ObjectivePerturbation(0.1, ((1, 0.0), (2, 0.2)), pairwise=True)
    assert pairs.sigma == GAUSSIAN.sigma
    assert LAPLACE.event == Pure(0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("term", "name"), [(GAUSSIAN, "rounded_gaussian"), (LAPLACE, "l2_laplace")]
)
def test_distribution_test_sees_less_noise(monkeypatch, term, name):
    """Planted: half the scale."""
    honest = getattr(module, name)
    monkeypatch.setattr(module, name, lambda value, s, **rest: honest(value, s / 2, **rest))
    with pytest.raises(AssertionError):
        assert_distribution(term, draws(term, (4, 5), 100))
