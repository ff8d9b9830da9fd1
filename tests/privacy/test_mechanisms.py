"""Calibration of the mechanisms, and the rule that releases are charged first."""

import copy
import math
import pickle
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from dp_halfspace import BudgetError
from dp_halfspace.privacy import (
    Either,
    Exponential,
    Gaussian,
    GaussianNoise,
    PrivacyRecord,
    Pure,
    Repeated,
    authorise,
    exponential,
    gdp_delta,
    noise_source,
)
from dp_halfspace.privacy.budget import additive_noise
from dp_halfspace.privacy.mechanisms import (
    ExponentialChoice,
    L2LaplaceNoise,
    NoNoise,
    SampledGaussianNoise,
    noise_deviation,
)
from dp_halfspace.privacy.randomness import SeededBytes
from tests.releases import record_releases
from tests.support import Book

each_epsilon = pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 8.0, 50.0])


@each_epsilon
@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-15])
@pytest.mark.parametrize("sensitivity", [1e-7, 1.0, 3.3e5])
def test_gaussian_scale_is_on_the_safe_side(epsilon, delta, sensitivity):
    noise = additive_noise(sensitivity, epsilon, delta)
    assert isinstance(noise, GaussianNoise)
    assert sensitivity / noise.sigma <= noise.mu
    assert gdp_delta(noise.mu, epsilon) <= delta
    assert gdp_delta(noise.mu * (1 + 1e-6), epsilon) > delta


@each_epsilon
def test_laplace_scale_is_on_the_safe_side(epsilon):
    noise = additive_noise(0.7, epsilon, 0.0)
    assert isinstance(noise, L2LaplaceNoise)
    assert 0.7 / noise.scale <= epsilon
    assert noise.event == Pure(epsilon)
    value = np.array([0.1, -2.5])
    assert additive_noise(1.0, math.inf, 0.0).perturb(value, noise_source(None)) is value


def record(*events):
    return PrivacyRecord(epsilon=5.0, delta=1e-5, events=events, noise="os")


def permit_for(*events):
    return authorise(record(*events), noise_source(None))


not_charged = partial(pytest.raises, RuntimeError, match="not charged")


def test_each_charged_release_happens_once():
    permit = permit_for(Repeated(Gaussian(0.1), 3), Gaussian(0.2))
    for _ in range(3):
        permit.release(np.zeros(4), GaussianNoise(1.0, 0.1))
    permit.release(np.zeros(2), GaussianNoise(5.0, 0.2))
    for mu in (0.1, 0.2, 0.3):
        with not_charged():
            permit.release(np.zeros(4), GaussianNoise(1.0, mu))


def test_ledger_that_refuses_gets_no_permit():
    def read(n):
        raise AssertionError("noise was drawn before it was charged")

    with pytest.raises(BudgetError):
        authorise(record(Gaussian(0.1)), SimpleNamespace(kind="os", read=read), Book(refuse=True))


def test_recorder_sees_value_and_release_and_ends_with_its_block():
    permit, noise = permit_for(Repeated(Gaussian(0.1), 2)), GaussianNoise(1.0, 0.1)
    with record_releases() as releases:
        released = permit.release(np.ones(3), noise)
    permit.release(np.ones(3), noise)
    (seen,) = releases
    assert seen.mechanism == noise
    np.testing.assert_array_equal(seen.value, np.ones(3))
    np.testing.assert_array_equal(seen.released, released)


def test_scales_out_of_range_are_refused_before_a_charge():
    for kind in (GaussianNoise, L2LaplaceNoise, partial(SampledGaussianNoise, 10)):
        for sensitivity in (0.0, -1.0, math.nan, math.inf):
            with pytest.raises(ValueError, match="must be"):
                kind(sensitivity, 1.0)


# -- choices -------------------------------------------------------------------------


@pytest.mark.parametrize("is_cost", [False, True])
@pytest.mark.parametrize(
    "mechanism", [GaussianNoise(1.0, 0.1), L2LaplaceNoise(1.0, 0.1), NoNoise()]
)
def test_choice_by_additive_noise_is_the_best_of_what_was_released(mechanism, is_cost):
    """Planted: the best of the exact values."""
    events = [Repeated(mechanism.event, 20)]
    entry = PrivacyRecord(epsilon=math.inf, delta=0.0, events=events, noise="os")
    permit, values = authorise(entry, noise_source(None)), np.arange(5.0)
    for _ in range(20):
        with record_releases() as releases:
            chosen = permit.choose(values, mechanism, is_cost=is_cost)
        released = releases[0].released
        assert chosen == (released.argmin() if is_cost else released.argmax())


def test_a_choice_has_the_numbers_of_its_event(monkeypatch):
    """What is drawn with them is compared with the definition in test_selection.py."""
    given = {}
    keep = lambda value, epsilon, **rest: given.update(rest, epsilon=epsilon) or 0  # noqa: E731
    monkeypatch.setattr(exponential, "exponential_mechanism", keep)
    mechanism, source = ExponentialChoice(2.5, 0.8), SeededBytes(0, "test")
    mechanism.perturb(np.zeros(3), source)
    assert given == {"epsilon": 0.8, "sensitivity": 2.5, "source": source}
    assert mechanism.event == Exponential(0.8)


def test_choice_is_one_index_and_is_charged():
    permit, mechanism = permit_for(Exponential(0.5)), ExponentialChoice(1.0, 0.5)
    with record_releases() as releases:
        chosen = permit.release(np.array([-1000.0, 0.0, -1000.0]), mechanism)
    np.testing.assert_array_equal(chosen, [1.0])
    assert [r.mechanism for r in releases] == [mechanism]
    with not_charged():
        permit.release(np.zeros(3), mechanism)


# -- spending, and disjoint blocks ---------------------------------------------------


def test_spending_returns_the_source_once():
    source = noise_source(None)
    permit = authorise(record(Repeated(Gaussian(0.1), 2)), source)
    assert permit.consume(Gaussian(0.1)) is source
    permit.release(np.zeros(1), GaussianNoise(1.0, 0.1))
    for event in (Gaussian(0.1), Gaussian(0.2), Pure(math.inf)):
        with not_charged():
            permit.consume(event)


def test_no_guarantee_is_never_used_up():
    entry = PrivacyRecord(epsilon=math.inf, delta=0.0, events=(Pure(math.inf),), noise="none")
    permit = authorise(entry, noise_source(None))
    for _ in range(3):
        permit.consume(Pure(math.inf))
    blocks = permit.parallel(Pure(math.inf))
    np.testing.assert_array_equal(blocks.release(np.ones(2), NoNoise(), range(4)), np.ones(2))


def test_disjoint_blocks_cost_one_release():
    permit = permit_for(Gaussian(0.1))
    blocks = permit.parallel(Gaussian(0.1))
    # The event is used up at once, not at the first release.
    with not_charged():
        permit.release(np.zeros(2), GaussianNoise(1.0, 0.1))
    with not_charged():
        permit.parallel(Gaussian(0.1))
    # Other sensitivities at the same cost; gaps between blocks are fine.
    used = [(GaussianNoise(1.0, 0.1), range(5)), (GaussianNoise(1e-6, 0.1), range(7, 8))]
    with record_releases() as releases:
        for mechanism, block in used:
            blocks.release(np.zeros(3), mechanism, block)
    assert [r.mechanism for r in releases] == [mechanism for mechanism, _ in used]
    assert all(r.released.any() for r in releases)


NOISE = GaussianNoise(1.0, 0.1)
OVERLAPPING = [range(9, 12), range(5), range(5, 10), range(-3, 0), range(10, 20, 2)]
OVERLAPPING += [range(10, 10), range(20, 0), range(12, 10, -1)]
DEARER = [GaussianNoise(1.0, 0.2), L2LaplaceNoise(1.0, 0.1), ExponentialChoice(1.0, 0.1), NoNoise()]


@pytest.mark.parametrize(
    ("noise", "block"),
    [*((NOISE, block) for block in OVERLAPPING), *((noise, range(10, 12)) for noise in DEARER)],
)
def test_blocks_that_are_not_disjoint_are_refused(noise, block):
    """And those of another cost."""
    blocks = permit_for(Gaussian(0.1)).parallel(Gaussian(0.1))
    blocks.release(np.zeros(1), NOISE, range(10))
    with record_releases() as releases, pytest.raises(RuntimeError, match="disjoint"):
        blocks.release(np.zeros(1), noise, block)
    assert releases == []
    # A refused block leaves no trace: earlier records stay used.
    with pytest.raises(RuntimeError, match="disjoint"):
        blocks.release(np.zeros(1), NOISE, range(9, 30))
    blocks.release(np.zeros(1), NOISE, range(10, 30))


def test_a_release_is_used_up_before_it_is_drawn():
    """Whoever stops a draw may have seen it."""

    def stop(value, source):
        raise MemoryError

    stopped, permit = SimpleNamespace(event=NOISE.event, perturb=stop), permit_for(NOISE.event)
    blocks = permit_for(NOISE.event).parallel(NOISE.event)
    permit.on_release = lambda: pytest.fail("nothing was released")
    with pytest.raises(MemoryError):
        permit.release(np.zeros(1), stopped)
    with pytest.raises(MemoryError):
        blocks.release(np.zeros(1), stopped, range(10))
    with not_charged():
        permit.release(np.zeros(1), stopped)
    with pytest.raises(RuntimeError, match="disjoint"):
        blocks.release(np.zeros(1), stopped, range(10))


COVERED = [
    (ExponentialChoice(1.0, 0.3),),
    (ExponentialChoice(1.0, 0.2),),
    (GaussianNoise(1.0, 0.3), GaussianNoise(2.0, 0.4)),
]


@pytest.mark.parametrize("mechanisms", COVERED)
def test_one_of_two_kinds_is_released_once(mechanisms):
    choice = Either(0.30000000001, 0.5)
    permit, events = permit_for(choice), [mechanism.event for mechanism in mechanisms]
    with not_charged():
        permit.release(np.zeros(2), mechanisms[0])
    permit.enter(choice, events)
    for mechanism in mechanisms:
        permit.release(np.zeros(2), mechanism)
    with not_charged():
        permit.release(np.zeros(2), mechanisms[0])
    with not_charged():
        permit.enter(choice, events)
    # What was refused permits nothing.
    with not_charged():
        permit.release(np.zeros(2), mechanisms[0])


@pytest.mark.parametrize(
    "events",
    [
        [Exponential(0.31)],
        [Exponential(0.1), Exponential(0.15)],
        [Repeated(Exponential(0.1), 2)],
        [Exponential(0.1), Gaussian(0.1)],
        [Pure(0.1)],
        [Gaussian(0.4), Gaussian(0.31)],
        [Gaussian(0.1), Pure(0.1)],
        [Either(0.1, 0.1)],
        [Pure(math.inf)],
    ],
)
def test_what_neither_kind_covers_is_refused(events):
    permit = permit_for(Either(0.3, 0.5))
    with pytest.raises(RuntimeError, match="does not cover"):
        permit.enter(Either(0.3, 0.5), events)
    # Nothing was used up.
    permit.enter(Either(0.3, 0.5), [Exponential(0.3)])


@pytest.mark.parametrize("event", [Exponential(0.3), Pure(0.2)])
def test_one_of_two_pure_kinds_is_permitted(event):
    permit = permit_for(Pure(0.3))
    for others in ([Exponential(0.31)], [Pure(0.1), Pure(0.1)], [Gaussian(0.1)], []):
        with pytest.raises(RuntimeError, match="does not cover"):
            permit.enter(Pure(0.3), others)
    permit.enter(Pure(0.3), [event])
    permit.consume(event)
    with not_charged():
        permit.enter(Pure(0.3), [event])


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_rights_to_release_cannot_be_duplicated(duplicate):
    permit = permit_for(Repeated(Gaussian(0.1), 2))
    for right in (permit, permit.parallel(Gaussian(0.1))):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            duplicate(right)


class SlowCounts(Counter):
    """Counts that other threads may read before they are changed."""

    def __getitem__(self, event):
        found = super().__getitem__(event)
        time.sleep(0.01)
        return found

    def get(self, event, default=None):
        found = super().get(event, default)
        time.sleep(0.05)
        return found


def in_threads(action):
    """Run an action in two threads at once; return how often it was not refused."""
    gate = threading.Barrier(2)

    def run(_):
        gate.wait()
        try:
            action()
        except RuntimeError:
            return 0
        return 1

    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(run, range(2)))


def test_threads_cannot_share_the_last_release():
    """The test and the decrement are one step."""
    permit = permit_for(Gaussian(0.1))
    permit._unspent = SlowCounts(permit._unspent)
    assert in_threads(lambda: permit.consume(Gaussian(0.1))) == 1


def test_threads_do_not_lose_what_they_permit():
    choice, event = Either(0.3, 0.5), Exponential(0.3)
    permit = permit_for(Repeated(choice, 2), Gaussian(0.1))
    permit._unspent = SlowCounts(permit._unspent)
    assert in_threads(lambda: permit.enter(choice, [event])) == 2
    assert permit._unspent[event] == 2


class EmptyBook(Book):
    """A ledger that is false as long as nothing is charged."""

    def __len__(self):
        return len(self.records)


def test_a_ledger_without_entries_is_charged():
    ledger, charge = EmptyBook(), permit_for(Gaussian(0.1)).record
    authorise(charge, SeededBytes(0, "noise"), ledger)
    assert ledger.records == [charge]


@pytest.mark.parametrize("size", [1, 3])
def test_the_deviation_of_noise_is_that_of_its_draws(size):
    source = SeededBytes(5, "deviation")
    for noise in (L2LaplaceNoise(2.0, 0.5), GaussianNoise(2.0, 0.5)):
        drawn = np.array([noise.perturb(np.zeros(size), source) for _ in range(300)])
        assert np.std(drawn) == pytest.approx(noise_deviation(noise, size), rel=0.1)
        assert noise_deviation(noise) == noise_deviation(noise, 1)
