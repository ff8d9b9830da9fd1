"""Which bytes of a seed a draw reads does not depend on the value: later noise stays the same."""

import importlib
import pkgutil

import numpy as np
import pytest

import dp_halfspace
from dp_halfspace.papers.objective import GaussianLinearTerm, LaplaceLinearTerm
from dp_halfspace.privacy import noise, randomness
from dp_halfspace.privacy.exponential import (
    CountedChoice,
    GeneralizedChoice,
    TalliedChoice,
    TalliedChoices,
)
from dp_halfspace.privacy.mechanisms import (
    ExponentialChoice,
    GaussianNoise,
    L2LaplaceNoise,
    NoNoise,
    SampledGaussianNoise,
)
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise, RandomizedResponse, rounded_gaussian
from dp_halfspace.privacy.random_stopping import best_run, run_count_distribution
from tests.privacy.oracles import seeded

SIZE = 420
REALS = np.zeros(SIZE), np.linspace(-3.0, 3.0, SIZE), np.full(SIZE, 1e300)
COSTS = np.zeros(SIZE, dtype=int), 9 * np.arange(SIZE) % 50, 40 * np.arange(SIZE)
SCORES = tuple(-costs.astype(float) for costs in COSTS)
TABLES = tuple(values.reshape(3, -1) for values in REALS)
# One of each kind of mechanism, and values on which it takes different ways.
CASES = [
    (GaussianNoise(1.0, 1.0), REALS),
    (SampledGaussianNoise(3, 1.0, 1.0), TABLES),
    (L2LaplaceNoise(1.0, 1.0), REALS),
    (GaussianLinearTerm(1.0, 1.0, 0.0, ((1, 0.0),)), tuple(values[::7] for values in REALS)),
    (LaplaceLinearTerm(1.0, 1.0, 0.0), tuple(values[:, ::7] for values in TABLES)),
    (DiscreteLaplaceNoise(1, 0.1), SCORES),
    (RandomizedResponse(3, 0.5), (np.zeros(SIZE), np.arange(SIZE) % 3.0)),
    (ExponentialChoice(1.0, 1.0), SCORES),
    (GeneralizedChoice((1.0, 2.0) * (SIZE // 2), 1.0), tuple(-scores for scores in SCORES)),
    (TalliedChoice(1.0), COSTS),
    (CountedChoice(1.0, 0.5), COSTS),
    (TalliedChoices((SIZE - 7, 7), 1.0), COSTS),
    (NoNoise(), REALS),
]
each_case = pytest.mark.parametrize(
    ("mechanism", "values"), CASES, ids=[type(mechanism).__name__ for mechanism, _ in CASES]
)


@pytest.fixture
def often_exact(monkeypatch):
    """As with a less accurate normal quantile: a part of the draws needs exact arithmetic."""
    monkeypatch.setattr(noise, "_NDTRI_ERROR", 2.0**-24)
    noise.gaussian_grid.cache_clear()
    yield
    noise.gaussian_grid.cache_clear()


def what_follows(draw, seed):
    """The next bytes of a stream after a draw, and those of the next draw's first entry."""
    source = seeded(seed)
    draw(source)
    return source.read(16) + source.branches()(0).read(16)


def assert_the_same_follows(mechanism, values):
    draws = [lambda source, value=value: mechanism.perturb(value, source) for value in values]
    for seed in range(2):
        assert len({what_follows(draw, seed) for draw in draws}) == 1


@each_case
@pytest.mark.usefixtures("often_exact")
def test_later_noise_is_the_same_for_every_value(mechanism, values):
    assert_the_same_follows(mechanism, values)


@pytest.mark.usefixtures("often_exact")
def test_planted_further_bytes_of_the_same_stream_are_seen(monkeypatch):
    """What was read, as it was before branches: noise and choices shift what follows."""
    monkeypatch.setattr(randomness.SeededBytes, "branches", lambda self: lambda _: self)
    for mechanism, values in (CASES[0], CASES[2], CASES[7], CASES[10]):
        with pytest.raises(AssertionError):
            assert_the_same_follows(mechanism, values)


def test_every_mechanism_is_here():
    """Whatever has a method `perturb`."""
    found = set()
    for module in pkgutil.walk_packages(dp_halfspace.__path__, "dp_halfspace."):
        if not module.name.endswith("__main__"):
            members = vars(importlib.import_module(module.name)).values()
            found |= {
                each for each in members if isinstance(each, type) and "perturb" in vars(each)
            }
    names = {each.__name__ for each in found if not getattr(each, "_is_protocol", False)}
    assert names == {type(mechanism).__name__ for mechanism, _ in CASES}


def test_a_rounding_moves_noise_by_one_step_of_the_grid():
    """Also of entries that follow one which needs further bits: a fiftieth is computed exactly."""
    value = np.linspace(0.1, 30.0, 40_000)
    moved = value * (1.0 + 2.0**-46)
    first, second = (
        rounded_gaussian(v, 2.0, source=seeded(), grid_bits=36) for v in (value, moved)
    )
    assert np.abs(first - second).max() <= 2.0**-35 + np.abs(value - moved).max()


def test_entries_take_further_bits_of_their_own(monkeypatch):
    """With first words that leave everything open."""
    taken = []

    class Recorded:
        kind = "seeded"

        def __init__(self, place=()):
            self.place = place

        def read(self, n):
            if self.place:
                taken.append(self.place)
                return seeded(self.place[0]).read(n)
            return bytes(n)

        def branches(self):
            return lambda entry: Recorded((entry,))

    rounded_gaussian(np.zeros(5), 1.0, source=Recorded())
    assert sorted(set(taken)) == [(entry,) for entry in range(5)]
    taken.clear()
    noise.random_events(np.full(5, 2.0**-64), lambda _: lambda bits: 1 << bits - 64, Recorded())
    assert sorted(set(taken)) == [(entry,) for entry in range(5)]


def test_ties_and_the_number_of_runs_shift_nothing():
    def tied(scores):
        return lambda source: best_run(((i, score) for i, score in enumerate(scores)), source)

    distribution = run_count_distribution(5, 0.1)
    for seed in range(4):
        runs = (range(9), [0] * 9, [0, 1, 1], [1])
        assert len({what_follows(tied(scores), seed) for scores in runs}) == 1
        source, other = seeded(seed), seeded(seed)
        distribution.draw(source)
        other.read(8)
        assert source.read(8) == other.read(8)


def test_a_choice_without_a_success_goes_on_with_other_bytes():
    """Trials of the first batch would fail again for ever."""
    scores = np.full(10_000, -2e3)
    scores[0] = 0.0
    assert {ExponentialChoice(1.0, 1.0).perturb(scores, seeded(i))[0] for i in range(9)} == {0.0}
