"""Units of the columns: bounds over adversarial neighbours, exactness, and what is estimated."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import laplace, norm

from dp_halfspace.engine import scales as cells
from dp_halfspace.engine import scales as units_module
from dp_halfspace.engine.scales import (
    CLIP,
    Columns,
    ColumnScales,
    affordable_cells,
    clipped_moments,
    in_column_scales,
    linear_counts,
    octave_counts,
    plan_column_scales,
)
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Gaussian, Pure
from dp_halfspace.privacy.mechanisms import GaussianNoise, L2LaplaceNoise
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise
from tests.permits import door_of
from tests.releases import record_releases

HOSTILE = [
    0.0, -0.0, 1.0, -1.0, math.nan, 1e300, -1e300, 1e-300, 5e-324, 1e-30, 1e30, 3.999, -4.0,
    2.0**-120, -(2.0**-121), 2.0**120, np.finfo(np.float64).max,
]  # fmt: skip
N = 40


def budget_of(size, is_pure):
    return Budget.of(size, 0.0) if is_pure else Budget.gaussian(size)


def released_units(X, budget, is_pure):
    plan = plan_column_scales(*X.shape, budget_of(budget, is_pure))
    return plan.run(door_of(Columns(X, None), *plan.events))


def neighbours(rng, d):
    """Records of hostile and ordinary entries, and the same with one record replaced."""
    pool = np.array([*HOSTILE, *rng.normal(size=20), *np.exp(rng.normal(0, 5, 20))])
    X = rng.choice(pool, size=(N, d))
    other = X.copy()
    other[rng.integers(N)] = rng.choice(pool, size=d)
    return X, other


def octaves(X):
    return octave_counts(X)


def linear(X):
    d = X.shape[1]
    return linear_counts(X, range(d), (np.full(d, -2.0), np.full(d, 3.0)), 16)


def moments(X):
    d = X.shape[1]
    return clipped_moments(X, ColumnScales(np.full(d, 0.3), np.full(d, 0.7)))


# Statistic, norm, bound: a Euclidean norm for Gaussian and L2-Laplace noise, else absolute.
BOUNDS = [
    (octaves, 2, lambda d: math.sqrt(2 * d)),
    (octaves, 1, lambda d: 2 * d),
    (linear, 2, lambda d: math.sqrt(2 * d)),
    (linear, 1, lambda d: 2 * d),
    (moments, 2, lambda d: 2 * math.sqrt(d)),
]


def largest_change(statistic, d, trials=300, order=2):
    rng = np.random.default_rng(d)
    found = 0.0
    pairs = [neighbours(rng, d) for _ in range(trials)]
    # Duplicates of one record, and one of them replaced by its opposite or by nothing.
    for first, second in ((100.0, -100.0), (-1.0, math.nan), (1.0, 0.0)):
        X = np.full((N, d), first)
        pairs.append((X, np.vstack([X[1:], np.full((1, d), second)])))
    for X, other in pairs:
        change = statistic(X) - statistic(other)
        found = max(found, float(np.linalg.norm(change.ravel(), order)))
    return found


@pytest.mark.sampled(5)
@pytest.mark.parametrize("d", [1, 3, 8])
@pytest.mark.parametrize(
    ("statistic", "order", "bound"), BOUNDS, ids=lambda f: getattr(f, "__name__", "")
)
def test_no_record_moves_a_statistic_further_than_the_bound_and_one_attains_it(
    statistic, order, bound, d
):
    ratio = largest_change(statistic, d, order=order) / bound(d)
    assert 1 - 1e-12 <= ratio <= 1 + 1e-12


@pytest.mark.parametrize("statistic", [octaves, moments], ids=lambda f: f.__name__)
def test_statistics_are_exact_in_every_order_layout_and_block(statistic, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.choice([*HOSTILE, *rng.normal(size=30)], size=(997, 5))
    expected = statistic(X)
    assert np.array_equal(statistic(X[::-1]), expected)
    assert np.array_equal(statistic(np.asfortranarray(X)), expected)
    monkeypatch.setattr(cells, "CACHED_NUMBERS", 35)
    monkeypatch.setattr(cells, "_COLUMNS_AT_ONCE", 2)
    assert np.array_equal(statistic(X), expected)


def entries():
    """Both sides of every octave, and what is no number, in 70 columns."""
    powers = np.ldexp(1.0, np.arange(-1074, 1024))
    positive = [np.nextafter(powers, 0), powers, np.nextafter(powers, math.inf)]
    nan = np.array([0x7FF0000000000001, -1, -(2**48), -(2**52) + 5]).view(np.float64)
    values = np.concatenate([*positive, HOSTILE, [math.inf, -math.inf], nan])
    return np.random.default_rng(0).permuted(np.tile(values, 70)).reshape(-1, 70)


def by_logarithms(X, weights):
    """The counts of `octave_counts` by the definition of an octave."""
    X = X.astype(np.float64)
    with np.errstate(invalid="ignore"):
        octave = np.frexp(X)[1] - 1
    octave[np.isinf(X)] = 2000
    distance = np.where(X == 0, 0, np.clip(octave + 121, 0, 240))
    cell = 240 + np.where(X < 0, -distance, distance)
    known = ~np.isnan(X)
    columns = zip(cell.T, known.T, strict=True)
    return np.array([np.bincount(at[own], weights[own], minlength=481) for at, own in columns])


@pytest.mark.parametrize("kind", ["f8", "f4", "f2", ">f4", "i8", "i4", "bool"])
def test_octaves_are_counted_exactly_in_every_type(kind):
    with np.errstate(all="ignore"):
        X = entries().astype(kind)
    ones = np.ones(len(X))
    parts = np.random.default_rng(1).integers(1, 2**20, len(X)) / 2.0**20
    for form in (X, np.asfortranarray(X), X[::-1, ::3]):
        assert np.array_equal(octave_counts(form), by_logarithms(form, ones))
        assert np.array_equal(octave_counts(form, parts), by_logarithms(form, parts))
    assert not octave_counts(X[:0]).any()


def in_column_scales_at_once(X, units):
    with np.errstate(all="ignore"):
        Z = np.subtract(X, units.center, dtype=np.float64) / units.scale
    return np.nan_to_num(np.clip(Z, -CLIP, CLIP))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_units_of_each_entry_are_rounded_once(kind):
    """To both kinds, in every layout; and so are the moments, which are of whole numbers."""
    rng = np.random.default_rng(2)
    with np.errstate(all="ignore"):
        X = np.where(rng.random((4001, 70)) < 0.5, 1e3 + entries()[:1].T[0], rng.normal(1e3, 2))
        X[::7] = entries()[: len(X[::7])]
        X = X.astype(kind)
    units = ColumnScales(np.full(70, 1e3 + 1e-9), np.exp(rng.normal(size=70)))
    expected = in_column_scales_at_once(X, units)
    for form in (X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        assert np.array_equal(in_column_scales(form, units), expected)
        found = in_column_scales(form, units, kind=np.float32)
        assert found.dtype == np.float32
        assert np.array_equal(found, expected.astype(np.float32))
    s = np.rint(expected * 256.0) / 1024.0
    assert np.array_equal(clipped_moments(X, units), [s.sum(axis=0), 1.5 * (s * s).sum(axis=0)])


@pytest.mark.parametrize("budget", [1e-9, 0.01, 0.5, 30.0, 1e6])
@pytest.mark.parametrize("d", [1, 100])
def test_events_compose_to_no_more_than_was_asked(budget, d):
    gaussian, pure = (
        plan_column_scales(1000, d, budget_of(budget, p)).events for p in (False, True)
    )
    assert all(isinstance(event, Gaussian) for event in gaussian)
    assert all(isinstance(event, Pure) for event in pure)
    total = math.sqrt(sum(event.mu**2 for event in gaussian))
    assert budget * (1 - 1e-9) < total <= budget
    total = sum(Fraction(event.epsilon) for event in pure)
    assert Fraction(budget) * Fraction(1 - 1e-9) < total <= Fraction(budget)


def test_pure_noise_is_what_the_sensitivities_ask_for():
    plan = plan_column_scales(1000, 8, Budget.of(0.5, 0.0))
    octaves, moments = plan.octaves.epsilon, plan.moments.epsilon
    assert octaves + plan.cells.epsilon + moments <= 0.5
    assert plan.octaves == DiscreteLaplaceNoise(16, octaves)
    assert isinstance(plan.moments, L2LaplaceNoise)
    assert plan.moments.scale >= 2 * math.sqrt(8) / moments
    # Planted: the scale of half of the sensitivity is not enough.
    assert not DiscreteLaplaceNoise(8, octaves).deviation >= math.sqrt(2) * 15 / octaves
    assert plan.octaves.deviation >= math.sqrt(2) * 15 / octaves


def test_noise_is_what_the_sensitivities_ask_for():
    plan = plan_column_scales(1000, 8, Budget.gaussian(0.5))
    assert isinstance(plan.octaves, GaussianNoise)
    assert isinstance(plan.moments, GaussianNoise)
    assert plan.octaves.sigma >= 4.0 / plan.octaves.mu
    assert plan.moments.sigma >= 2 * math.sqrt(8) / plan.moments.mu
    assert plan.octaves.sigma == pytest.approx(4.0 / plan.octaves.mu, rel=1e-8)


@pytest.mark.parametrize("is_pure", [False, True])
def test_the_noise_of_narrow_columns_counts_them_all(is_pure):
    rng = np.random.default_rng(3)
    X = np.column_stack([2000 + rng.normal(0, 5, 4000) for _ in range(4)])
    plan = plan_column_scales(*X.shape, budget_of(3.0, is_pure))
    with record_releases() as releases:
        plan.run(door_of(Columns(X, None), *plan.events))
    assert len(releases) == 3
    mechanism = releases[1].mechanism
    if is_pure:
        assert mechanism == DiscreteLaplaceNoise(8, plan.cells.epsilon)
    else:
        assert mechanism.sigma >= math.sqrt(8) / plan.cells.mu
    assert releases[1].value.shape[0] == 4


def test_nothing_is_released_without_a_charge():
    X = np.random.default_rng(0).normal(size=(50, 2))
    plan = plan_column_scales(*X.shape, Budget.gaussian(1.0))
    with pytest.raises(RuntimeError, match="not charged"):
        plan.run(door_of(Columns(X, None), plan.events[1]))


SHAPES = {
    "normal": lambda rng, n: rng.normal(0, 3, n),
    "age": lambda rng, n: rng.normal(55, 12, n),
    "year": lambda rng, n: 2000 + rng.normal(0, 8, n),
    "platelets": lambda rng, n: 260000 + rng.normal(0, 90000, n),
    "negative": lambda rng, n: -rng.exponential(0.01, n),
    "uniform": lambda rng, n: rng.uniform(0, 255, n),
    "codes": lambda rng, n: rng.integers(0, 7, n).astype(float),
    "binary": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "tiny": lambda rng, n: rng.normal(0, 1e-30, n),
    "huge": lambda rng, n: rng.normal(5e30, 1e30, n),
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("budget", "is_pure"), [(math.inf, False), (0.5, False), (0.05, True)])
def test_units_of_common_columns_are_found(name, budget, is_pure):
    rng = np.random.default_rng(sum(map(ord, name)))
    X = SHAPES[name](rng, 20_000)[:, None]
    units = released_units(X, budget, is_pure)
    ratio = units.scale[0] / X.std()
    assert 0.4 < ratio < 2.5
    assert abs(units.center[0] - X.mean()) < 1.5 * X.std()


@pytest.mark.parametrize("is_pure", [False, True])
def test_heavy_tails_zeros_constants_and_missing_values_have_units(is_pure):
    rng = np.random.default_rng(0)
    n = 5000
    X = np.column_stack([
        np.exp(rng.normal(0, 3, n)),
        np.where(rng.random(n) < 0.95, 0.0, rng.normal(1e4, 10, n)),
        np.full(n, 37.0),
        np.zeros(n),
        np.full(n, math.nan),
        np.where(rng.random(n) < 0.5, math.nan, rng.normal(3, 1, n)),
    ])  # fmt: skip
    units = released_units(X, 0.5, is_pure)
    assert np.isfinite(units.center).all()
    assert (units.scale > 0).all()
    assert np.isfinite(units.scale).all()
    Z = in_column_scales(X, units)
    assert np.isfinite(Z).all()
    assert np.abs(Z).max() <= CLIP
    assert (Z[:, 4] == 0).all()
    assert 0.3 < Z[~np.isnan(X[:, 5]), 5].std() < 3


@pytest.mark.parametrize("distance", [30.0, 100.0, 300.0, 1000.0])
def test_many_columns_far_from_zero_have_scales(distance):
    """Cells are as many as the noise of 20 columns allows: in 4096 it would hide most of them."""
    X = np.random.default_rng(0).normal(distance, 1.0, (2000, 20))
    found = released_units(X, 0.12, False)
    assert np.mean(np.abs(found.center - distance) < found.scale) > 0.7
    assert np.mean((found.scale > 0.3) & (found.scale < 3.0)) > 0.7


def test_cells_are_as_many_as_the_noise_allows():
    assert [affordable_cells(2000, s) for s in (136.0, 0.0, 1e9, 20.0)] == [128, 4096, 32, 4096]
    assert affordable_cells(1000, 31.25) == 512


def test_a_column_near_zero_has_no_range_to_be_counted_in(monkeypatch):
    """Its range would be around its centre, and of no length."""
    found = np.array([0.0, -0.5, 20.0, -20.0]), np.ones(4), np.ones(4, dtype=bool)
    monkeypatch.setattr(units_module, "match_octaves", lambda *_: found)
    plan = plan_column_scales(1000, 4, Budget.gaussian(1.0))
    known = plan._use_octaves(units_module.KnownScales(), np.zeros((4, 9)))
    assert known.narrow.tolist() == [2, 3]


def test_gains_are_ratios_of_the_likelihoods_of_the_noise():
    found, expected, deviation = np.array([-2.0, 0.5, 3.0, 9.0]), 4.0, 1.7
    for kind, noise in (
        (True, laplace(scale=deviation / math.sqrt(2))),
        (False, norm(0, deviation)),
    ):
        gain = units_module.NoiseDistribution(deviation, kind).gain(found, expected)
        assert gain == pytest.approx(noise.logpdf(found - expected) - noise.logpdf(found))


def test_the_width_of_equal_cells_is_a_standard_deviation():
    counts = np.zeros(1024)
    counts[256:512] = 10.0
    noise = units_module.NoiseDistribution(1.0, is_laplace=False)
    center, width = units_module.match_linear(counts, 2560, noise, 0.5, 0.02)
    assert center == pytest.approx(0.375, abs=0.02)
    assert width == pytest.approx(0.25 / math.sqrt(12), rel=0.1)


def test_errors_of_scales_are_bounded_however_large_the_noise_is():
    """A correction is then shrunk to nothing. A width has half the error of its square."""
    large, small, tiny = (
        plan_column_scales(90, 3, budget_of(mu, False)).errors(3) for mu in (1e4, 1e-4, 1e-6)
    )
    np.testing.assert_allclose(small, tiny, rtol=1e-3)
    assert max(tiny) < 1.0
    assert large[1] == pytest.approx(large[0] * CLIP / 1.5 / 2.0, rel=1e-3)


def test_scales_are_released_where_the_noise_leaves_them():
    """The noise of all columns together grows with the root of their number."""
    for n_columns, mu, affordable in (
        (100, 0.0799, False),
        (100, 0.0801, True),
        (4**4, 0.128, True),
        (4, 0.0159, False),
    ):
        found = units_module.affordable_scales(1000, n_columns, Budget.gaussian(mu))
        assert (found is not None) == affordable


def test_corrections_are_shrunk_by_the_share_of_their_noise():
    """Of a mean; noise of the variance of corrections halves it."""
    sums, known = (
        np.full((2, 1), 100.0),
        units_module.KnownScales(units_module.ColumnScales(np.zeros(1), np.ones(1))),
    )
    plans = [units_module.plan_column_scales(1000, 1, Budget.gaussian(mu)) for mu in (1e6, 0.1)]
    exact, noisy = (plan._use_moments(known, sums).scales.center[0] for plan in plans)
    assert exact == pytest.approx(0.4)
    variance = (4.0 * plans[1].moments.sigma / 1000.0) ** 2
    assert noisy == pytest.approx(0.4 / (1.0 + variance / 0.2))
    assert noisy < 0.35


def test_a_column_whose_centre_is_off_keeps_its_width():
    """Noise hides how far: of the mean square only the variance is shrunk to one."""
    plans = [units_module.plan_column_scales(1000, 1, Budget.gaussian(mu)) for mu in (1e6, 0.05)]
    known = units_module.KnownScales(units_module.ColumnScales(np.zeros(1), np.ones(1)))
    # A mean of 0.9 widths and a variance of one.
    sums = 1000.0 * np.array([[0.9 / CLIP], [1.5 * 1.81 / CLIP**2]])
    exact, corrected = (plan._use_moments(known, sums).scales for plan in plans)
    assert (exact.center[0], exact.scale[0]) == pytest.approx((0.9, 1.0))
    assert 0.3 < corrected.center[0] < 0.7
    assert 1.0 < corrected.scale[0] < 1.2
