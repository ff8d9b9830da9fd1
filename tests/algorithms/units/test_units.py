"""Units of the columns: bounds over adversarial neighbours, exactness, and what is estimated."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_halfspace.algorithms.units import plan as units_plan
from dp_halfspace.algorithms.units.plan import (
    CLIP,
    Units,
    clipped_moments,
    in_units,
    linear_counts,
    octave_counts,
    plan_units,
    units_share,
)
from dp_halfspace.privacy.discrete import DiscreteLaplaceNoise
from dp_halfspace.privacy.events import Gaussian, Pure
from dp_halfspace.privacy.mechanisms import GaussianNoise, L2LaplaceNoise, Permit, recording
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, SeededBytes
from dp_halfspace.privacy.record import PrivacyRecord

HOSTILE = [
    0.0, -0.0, 1.0, -1.0, math.nan, 1e300, -1e300, 1e-300, 5e-324, 1e-30, 1e30, 3.999, -4.0,
    2.0**-120, -(2.0**-121), 2.0**120, np.finfo(np.float64).max,
]  # fmt: skip
N = 40


def permit_for(plan, source=OS_RANDOMNESS, events=None) -> Permit:
    is_free = plan.events[0] == Pure(math.inf)
    return Permit(
        PrivacyRecord(
            epsilon=math.inf if is_free else 1e4,
            delta=0.0 if is_free or plan.is_pure else 0.4,
            adjacency="replace-one",
            events=events or plan.events,
            noise="none" if is_free else "os",
            public={},
        ),
        source,
    )


def released_units(X, budget=math.inf, is_pure=False):
    plan = plan_units(*X.shape, budget, is_pure=is_pure)
    return plan.run(X, permit_for(plan))


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
    return linear_counts(X, np.full(d, -2.0), np.full(d, 3.0), 16)


def moments(X):
    d = X.shape[1]
    return clipped_moments(X, Units(np.full(d, 0.3), np.full(d, 0.7)))


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


@pytest.mark.parametrize("d", [1, 3, 8])
@pytest.mark.parametrize(
    ("statistic", "order", "bound"), BOUNDS, ids=lambda f: getattr(f, "__name__", "")
)
def test_no_record_moves_a_statistic_further_than_the_bound_and_one_attains_it(
    statistic, order, bound, d
):
    ratio = largest_change(statistic, d, order=order) / bound(d)
    assert 1 - 1e-12 <= ratio <= 1 + 1e-12


def test_planted_bug_a_sensitivity_of_one_a_column_is_seen():
    assert largest_change(octaves, 3, 50, order=1) > DiscreteLaplaceNoise(3, 1.0).sensitivity


def test_planted_bug_a_record_that_counts_twice_is_seen(monkeypatch):
    monkeypatch.setattr(units_plan.np, "bincount", lambda *a, _b=np.bincount, **k: 2 * _b(*a, **k))
    assert largest_change(octaves, 3, 50) > 1.9 * math.sqrt(6)


def test_planted_bug_a_heavier_square_is_seen(monkeypatch):
    monkeypatch.setattr(units_plan, "_SQUARE_WEIGHT", 2.0)
    # A change from 1 to -1/4 exceeds the bound once squares weigh 2.
    units = Units(np.zeros(1), np.full(1, 0.25))
    changes = [
        np.linalg.norm(
            clipped_moments(np.array([[a]]), units) - clipped_moments(np.array([[b]]), units)
        )
        for a in np.linspace(-1, 1, 41)
        for b in np.linspace(-1, 1, 41)
    ]
    assert max(changes) > 2.0 + 1e-3


@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=2),
)
def test_moments_of_one_column_stay_within_two(pair):
    units = Units(np.zeros(1), np.full(1, 0.25))
    first, second = (clipped_moments(np.array([[value]]), units) for value in pair)
    assert np.linalg.norm(first - second) <= 2.0


@pytest.mark.parametrize("statistic", [octaves, moments], ids=lambda f: f.__name__)
def test_statistics_are_exact_in_every_order_layout_and_block(statistic, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.choice([*HOSTILE, *rng.normal(size=30)], size=(997, 5))
    expected = statistic(X)
    assert np.array_equal(statistic(X[::-1]), expected)
    assert np.array_equal(statistic(np.asfortranarray(X)), expected)
    monkeypatch.setattr(units_plan, "_BLOCK_ENTRIES", 35)
    assert np.array_equal(statistic(X), expected)


@pytest.mark.parametrize("is_pure", [False, True])
@pytest.mark.parametrize("d", [1, 7])
def test_scales_of_noise_follow_from_public_numbers_alone(d, is_pure):
    rng = np.random.default_rng(d)
    for _ in range(5):
        X, other = neighbours(rng, d)
        plan = plan_units(N, d, 0.7, is_pure=is_pure)
        scales = []
        for data in (X, other):
            # One history for both: what is released does not depend on the data then.
            with recording() as releases:
                plan.run(data, permit_for(plan, SeededBytes(1, "noise")))
            scales.append([r.mechanism for r in releases])
            # Noise is added, and no value has a say in it.
            assert releases[0].value.shape == releases[0].released.shape == (d, 481)
        assert scales[0][0] == scales[1][0]
        assert scales[0][-1] == scales[1][-1]


def test_replay_on_neighbours_gives_the_same_units_when_the_noise_makes_up_for_the_record():
    """What is released is all that the units depend on, for pure epsilon, too."""
    X, other = neighbours(np.random.default_rng(5), 3)
    plan = plan_units(N, 3, 2.0, is_pure=True)
    with recording() as releases:
        units = plan.run(X, permit_for(plan))

    class Replay:
        def __init__(self):
            self.left = [release.released for release in releases]

        def release(self, value, mechanism):
            assert mechanism.event in plan.events
            assert value.shape == self.left[0].shape
            return self.left.pop(0)

    again = plan.run(other, Replay())
    assert np.array_equal(units.center, again.center)
    assert np.array_equal(units.scale, again.scale)


@pytest.mark.parametrize("mu", [0.01, 0.5, 30.0])
@pytest.mark.parametrize("d", [1, 100])
def test_events_compose_to_no_more_than_was_asked(mu, d):
    plan = plan_units(1000, d, mu)
    assert all(isinstance(event, Gaussian) for event in plan.events)
    total = math.sqrt(sum(event.mu**2 for event in plan.events))
    assert mu * (1 - 1e-9) < total <= mu


@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 1e6])
@pytest.mark.parametrize("d", [1, 100])
def test_pure_events_sum_to_no_more_than_was_asked(epsilon, d):
    plan = plan_units(1000, d, epsilon, is_pure=True)
    assert all(isinstance(event, Pure) for event in plan.events)
    total = sum(Fraction(event.epsilon) for event in plan.events)
    assert Fraction(epsilon) * Fraction(1 - 1e-9) < total <= Fraction(epsilon)


def test_pure_noise_is_what_the_sensitivities_ask_for():
    plan = plan_units(1000, 8, 0.5, is_pure=True)
    octaves, _, moments = plan.budgets
    assert plan.octaves == DiscreteLaplaceNoise(16, octaves)
    assert isinstance(plan.moments, L2LaplaceNoise)
    assert plan.moments.scale >= 2 * math.sqrt(8) / moments
    # Planted: the scale of half of the sensitivity is not enough.
    assert not DiscreteLaplaceNoise(8, octaves).deviation >= math.sqrt(2) * 15 / octaves
    assert plan.octaves.deviation >= math.sqrt(2) * 15 / octaves


def test_noise_is_what_the_sensitivities_ask_for():
    plan = plan_units(1000, 8, 0.5)
    assert isinstance(plan.octaves, GaussianNoise)
    assert isinstance(plan.moments, GaussianNoise)
    assert plan.octaves.sigma >= 4.0 / plan.octaves.mu
    assert plan.moments.sigma >= 2 * math.sqrt(8) / plan.moments.mu
    assert plan.octaves.sigma == pytest.approx(4.0 / plan.octaves.mu, rel=1e-8)


@pytest.mark.parametrize("sensitivity", [1.0, math.sqrt(8.0)])
def test_planted_bug_a_factor_short_of_sqrt_2_is_seen(sensitivity):
    plan = plan_units(1000, 8, 0.5)
    assert not sensitivity / plan.octaves.mu >= 4.0 / plan.octaves.mu


@pytest.mark.parametrize("is_pure", [False, True])
def test_the_noise_of_narrow_columns_counts_them_all(is_pure):
    rng = np.random.default_rng(3)
    X = np.column_stack([2000 + rng.normal(0, 5, 4000) for _ in range(4)])
    plan = plan_units(*X.shape, 3.0, is_pure=is_pure)
    with recording() as releases:
        plan.run(X, permit_for(plan))
    assert len(releases) == 3
    mechanism = releases[1].mechanism
    if is_pure:
        assert mechanism == DiscreteLaplaceNoise(8, plan.budgets[1])
    else:
        assert mechanism.sigma >= math.sqrt(8) / plan.budgets[1]
    assert releases[1].value.shape[0] == 4


def test_nothing_is_released_without_a_charge():
    X = np.random.default_rng(0).normal(size=(50, 2))
    plan = plan_units(*X.shape, 1.0)
    with pytest.raises(RuntimeError, match="not charged"):
        plan.run(X, permit_for(plan, events=plan.events[1:2]))


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
def test_heavy_tails_zeros_constants_and_holes_have_units(is_pure):
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
    Z = in_units(X, units)
    assert np.isfinite(Z).all()
    assert np.abs(Z).max() <= CLIP
    assert (Z[:, 4] == 0).all()
    assert 0.3 < Z[~np.isnan(X[:, 5]), 5].std() < 3


def test_columns_that_look_alike_help_each_other():
    """With noise as large as the counts a single column has no width, many have."""
    rng = np.random.default_rng(1)
    n, mu = 1000, 0.06
    off = []
    for seed in range(5):
        X = np.abs(rng.normal(8, 5, size=(n, 60)))
        plan = plan_units(n, 60, mu)
        units = plan.run(X, permit_for(plan, SeededBytes(seed, "noise")))
        off.append(np.median(np.abs(np.log2(units.scale / X.std(axis=0)))))
    assert np.median(off) < 1.5


def test_share_of_the_budget_is_bounded():
    shares = [units_share(n, d, mu) for n in (10, 1e4) for d in (1, 500) for mu in (1e-9, 1, 1e6)]
    assert min(shares) == 0.04
    assert max(shares) == 0.15


def test_infinite_budget_needs_no_noise():
    plan = plan_units(100, 2, math.inf)
    assert plan.events == (Pure(math.inf),) * 3
