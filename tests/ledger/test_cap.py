"""The adaptive rule holds whatever earlier results say; the plain one only for fixed budgets."""

import math
import sys
from fractions import Fraction

import numpy as np
import pytest

from dp_halfspace.exceptions import BudgetError
from dp_halfspace.ledger import PrivacyLedger
from dp_halfspace.ledger import cap as _cap
from dp_halfspace.ledger.cap import Cap
from dp_halfspace.privacy import accounting, gdp_delta, gdp_epsilon, gdp_mu
from dp_halfspace.privacy.events import (
    Either,
    Exponential,
    Gaussian,
    ObjectivePerturbation,
    Pure,
    Repeated,
)
from dp_halfspace.privacy.record import PrivacyRecord
from tests.privacy.oracles import exponential_delta, of_gaussian, pure_delta

TINY = 1e-12
SIZES = (1e-3, 0.03, 0.3, 1.0, 3.0, 10.0, 40.0)


def record(events, delta=0.0):
    claimed = accounting.epsilon(events, delta)
    return PrivacyRecord(epsilon=claimed, delta=delta, events=events, noise="os")


# -- trees: later budgets depend on earlier answers ------------------------------------------


def largest(rule, spent, delta):
    """Epsilon of the largest Gaussian release, for delta = 0 pure one, that a cap accepts."""

    def accepts(size):
        return rule.holds([*spent, Gaussian(gdp_mu(size, delta)) if delta else Pure(size)])

    low, high = 0.0, 1.0
    while accepts(high):
        high *= 2.0
    for _ in range(32):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if accepts(middle) else (low, middle)
    return low if low > 1e-9 else 0.0


def truth(size):
    return 1.0 / (1.0 + math.exp(-size))


def tree_delta(tree, epsilon):
    """Exact delta of randomised responses (size, subtree if true, subtree if a lie).

    A leaf is None, or the mu of a last Gaussian release.
    """
    if tree is None:
        return max(0.0, -math.expm1(epsilon))
    if isinstance(tree, float):
        return gdp_delta(tree, epsilon)
    size, high, low = tree
    p = truth(size)
    return p * tree_delta(high, epsilon - size) + (1 - p) * tree_delta(low, epsilon + size)


def equal(size, count):
    """Randomised responses of a number that is fixed."""
    return None if count == 0 else (size, equal(size, count - 1), equal(size, count - 1))


def paths(tree):
    """List the events of every path."""
    if tree is None:
        return [[]]
    if isinstance(tree, float):
        return [[Gaussian(tree)]]
    size, high, low = tree
    return [[Pure(size), *rest] for part in (high, low) for rest in paths(part)]


# After an answer that is likely on the first data set a few large releases, else many small.
CAP = {"epsilon": 1.0, "delta": 0.01}
COUNTEREXAMPLE = (0.1, equal(0.3337, 3), equal(0.2278, 6))


def fits(rule, tree):
    """Whether a rule accepts every path, event by event."""
    return all(rule.holds(events[: k + 1]) for events in paths(tree) for k in range(len(events)))


def assert_promise_is_kept(rule, trees):
    for tree in trees:
        if fits(rule, tree):
            assert tree_delta(tree, rule.epsilon) <= rule.delta * (1 + 1e-9)


def test_budgets_chosen_on_the_way_pass_the_delta_of_a_plain_cap():
    """Planted: an adaptive cap that composes events as if they had been fixed.

    Each path alone is within the cap; the choice between them is not.
    """
    few, many, rule = equal(0.3337, 3), equal(0.2278, 6), Cap(**CAP, adaptive=False)
    assert max(tree_delta((0.1, each, each), 1.0) for each in (few, many)) <= 0.01
    assert fits(rule, COUNTEREXAMPLE)
    worst = max(tree_delta(tree, 1.0) for tree in (COUNTEREXAMPLE, (0.1, many, few)))
    assert worst == pytest.approx(1.33 * 0.01, rel=0.01)
    with pytest.raises(AssertionError):
        assert_promise_is_kept(rule, [COUNTEREXAMPLE])


def test_an_adaptive_cap_refuses_that_choice():
    assert not fits(Cap(**CAP, adaptive=True), COUNTEREXAMPLE)
    for events in ([0.1] + [0.3337] * 3, [0.1] + [0.2278] * 6):
        plain, adaptive = (PrivacyLedger(**CAP, adaptive=choice) for choice in (False, True))
        for size in events[:-1]:
            plain.charge(record([Pure(size)]))
            adaptive.charge(record([Pure(size)])) if adaptive.remaining(0.0) >= size else None
        plain.charge(record([Pure(events[-1])]))
        with pytest.raises(BudgetError, match="asks for epsilon"):
            adaptive.charge(record([Pure(events[-1])]))


def greedy_trees(rule, count, seed=0):
    """Random trees that end on every path with all that the rule leaves, in noise or answers."""
    rng = np.random.default_rng(seed)

    def grow(spent, depth):
        left = largest(rule, spent, 0.0)
        if depth == 0 or rng.random() < 0.2:
            noise = largest(rule, spent, TINY)
            if noise and rng.random() < 0.5:
                return float(gdp_mu(noise, TINY))
            return (left, None, None) if left else None
        size = left * rng.choice([0.05, 0.2, 0.5, 0.9])
        if size < 1e-3:
            return None
        return (size, *(grow([*spent, Pure(size)], depth - 1) for _ in range(2)))

    return [grow([], 3) for _ in range(count)]


LOOSE, FINE = {"epsilon": 0.3, "delta": 0.1}, {"epsilon": 3.0, "delta": 1e-4}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("terms", [LOOSE, CAP, pytest.param(FINE, marks=pytest.mark.slow)])
def test_adaptive_trees_never_pass_an_adaptive_cap(terms):
    rule = Cap(**terms, adaptive=True)
    trees = [tree for tree in greedy_trees(rule, 4) if tree]
    assert len(trees) > 2
    assert all(fits(rule, tree) for tree in trees)
    assert_promise_is_kept(rule, trees)
    # Little is given away beside a small answer.
    rest = gdp_mu(largest(rule, [Pure(0.01)], TINY), TINY)
    assert_promise_is_kept(rule, [(0.01, rest, rest)])
    assert tree_delta((0.01, rest, rest), rule.epsilon) > 0.9 * rule.delta


def test_tree_test_sees_a_cap_for_each_kind(monkeypatch):
    """Planted: pure releases are not counted among the Gaussian ones."""
    rule = Cap(**CAP, adaptive=True)
    mu = 0.999 * gdp_mu(1.0, 0.01)
    trees = [(0.5, mu, mu)]
    assert_promise_is_kept(rule, trees)
    monkeypatch.setattr(_cap, "_MU_OF_PURE", 0.0)
    with pytest.raises(AssertionError):
        assert_promise_is_kept(rule, trees)


# -- pure releases as Gaussian ones ----------------------------------------------------------


PROFILES = ((Pure, pure_delta), (Exponential, exponential_delta))


def assert_gaussian_dominates():
    for size in SIZES:
        values = np.linspace(-size, size, 401) * 1.01
        for event, exact in PROFILES:
            bound = gdp_delta(_cap._as_gaussian([event(size)]), values)
            assert (exact(size, values) <= bound * (1 + 1e-9) + 1e-15).all(), event


def test_pure_and_exponential_profiles_lie_below_their_gaussian(monkeypatch):
    """Planted: half a percent less."""
    assert_gaussian_dominates()
    for event, exact in PROFILES:  # tight for small releases, at epsilon = 0
        bound = gdp_delta(_cap._as_gaussian([event(0.01)]), 0.0)
        assert exact(0.01, 0.0) == pytest.approx(bound, rel=1e-4)
    for kind in (Pure, Exponential):
        with monkeypatch.context() as patch:
            patch.setattr(_cap, "_MU_OF_PURE", _cap._MU_OF_PURE * 0.995)
            patch.setattr(sys.modules[__name__], "PROFILES", [p for p in PROFILES if p[0] is kind])
            with pytest.raises(AssertionError):
                assert_gaussian_dominates()


OVERFLOWING = [Pure(math.inf), Repeated(Pure(1e150), 2**4000), of_gaussian(2.0, 0.1, 0.1)]


def test_squares_add():
    events = [Gaussian(0.3), Repeated(Pure(0.1), 2), Exponential(0.2), Gaussian(0.0)]
    expected = math.sqrt(0.09 + math.pi / 2 * (2 * 0.01 + 0.01))
    assert expected <= _cap._as_gaussian(events) <= expected * (1 + 1e-9)
    assert _cap._as_gaussian([]) == 0.0 < _cap._as_gaussian([Pure(1e-300)]) < 1e-100
    for event in (*OVERFLOWING, Pure(math.inf), ObjectivePerturbation(0.1, ((1, 0.0), (1, 0.1)))):
        assert _cap._as_gaussian([event]) == math.inf


def test_one_gaussian_release_is_no_better_than_all_as_real_numbers():
    """Rounded up: a root is rounded to the nearest float, which may be below it."""
    rng = np.random.default_rng(7)
    for count in (1, 2, 3, 10, 100):
        events = [Gaussian(float(mu)) for mu in rng.uniform(0.01, 1.0, count)]
        exact = sum(Fraction(event.mu) ** 2 for event in events)
        assert Fraction(_cap._as_gaussian(events)) ** 2 >= exact
        several = Repeated(events[0], 3 * count)
        assert (
            Fraction(_cap._as_gaussian([several])) ** 2 >= 3 * count * Fraction(events[0].mu) ** 2
        )
    smallest = Repeated(Gaussian(5e-324), 2)
    assert Fraction(_cap._as_gaussian([smallest])) ** 2 >= 2 * Fraction(5e-324) ** 2


def test_pure_sums_are_exact():
    rule = Cap(1.0, 1e-6, adaptive=True)
    assert rule.spent([Repeated(Pure(0.25), 3), Exponential(0.25), Gaussian(0.0)], 0.0) == 1.0
    both = accounting.epsilon([Pure(0.3), Pure(0.4)], 0)
    assert rule.spent([Pure(0.3), Exponential(0.4)], 0.0) == both
    assert rule.spent([], 0.0) == 0.0
    for event in (*OVERFLOWING, Gaussian(0.1)):
        assert rule.spent([event], 0.0) == math.inf


def test_an_adaptive_cap_takes_the_better_of_two_sums():
    rule, mu = Cap(1.0, 1e-6, adaptive=True), gdp_mu(1.0, 1e-6)
    small = [Repeated(Pure(0.01), 300)]
    assert rule.holds([Pure(1.0)])
    assert rule.holds(small)
    assert rule.holds([Repeated(Pure(0.01), 150)])
    root = gdp_epsilon(math.sqrt(300 * math.pi / 2) * 0.01, 1e-6)
    assert rule.spent(small, 1e-6) == pytest.approx(root, rel=1e-6)
    # Both at once, never: half of each is more than the cap.
    assert not rule.holds([Pure(0.5), Gaussian(0.7 * mu)])
    assert rule.holds([Repeated(Gaussian(mu / 2), 4)])
    assert not rule.holds([Repeated(Gaussian(mu / 2 * (1 + 1e-6)), 4)])


# -- what is left ---------------------------------------------------------------------------


SPENT = ([], [Pure(0.3)], [Gaussian(0.1)], [Repeated(Pure(0.02), 30)], [Gaussian(0.1), Pure(0.1)])


@pytest.mark.sampled(6)
@pytest.mark.parametrize("spent", SPENT)
@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-3])
def test_what_remains_is_what_is_accepted(spent, adaptive, delta):
    rule = Cap(1.0, 1e-4, adaptive)
    left = largest(rule, spent, delta)

    def more(factor):
        return [*spent, Gaussian(gdp_mu(left, delta) * factor) if delta else Pure(left * factor)]

    assert left > 0.0 or not rule.holds([*spent, Gaussian(1e-3) if delta else Pure(1e-3)])
    if left:
        assert rule.holds(more(1.0))
        assert not rule.holds(more(1.0 + 1e-6))
    assert (rule.spent(more(1.0), 1e-4) <= 1.0 + 1e-9) == bool(left)


@pytest.mark.parametrize("adaptive", [False, True])
def test_a_cap_of_no_delta_is_a_sum(adaptive):
    rule, full = Cap(1.0, 0.0, adaptive), [Repeated(Pure(0.1), 10)]
    assert rule.holds(full)
    assert not rule.holds([*full, Pure(1e-9)])
    assert not rule.holds([Gaussian(1e-9)])
    assert largest(rule, [Pure(0.75)], 0.0) == pytest.approx(0.25, rel=1e-9)
    assert largest(rule, [Pure(0.75)], 1e-3) == largest(rule, full, 0.0) == 0.0
    # Nothing is beyond a cap that promises nothing.
    assert Cap(math.inf, 0.0, adaptive).holds([Pure(math.inf)])
    for spent in (0.1, 0.3, 0.7, 1 / 3):
        assert rule.holds([Pure(spent), Pure(1.0 - spent)])


def test_refusals_state_what_was_asked_and_spent_and_both_together():
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-6, adaptive=True)
    ledger.charge(record([Pure(0.75)]))
    numbers = (
        r"asks for epsilon 0.5 at delta 0. Before it: 1 entry, epsilon 0.75 of 1 asked for at "
        r"delta 0. By the rule of an adaptive ledger, epsilon 0.75\d* of 1 at delta 1e-06 is "
        r"spent, which decides what is accepted. With it, epsilon 1.25\d* of 1 at delta 1e-06"
    )
    objective = ObjectivePerturbation(0.1, ((1, 0.0), (2, 0.05), (1, 0.1)))
    for asked, message in (
        (record([Pure(0.5)]), numbers),
        (record([objective], 1e-6), "accepts Gaussian and pure DP releases only, and counts both"),
    ):
        with pytest.raises(BudgetError, match=message):
            ledger.charge(asked)


@pytest.mark.parametrize("adaptive", [False, True])
def test_a_ledger_without_delta_says_what_it_accepts(adaptive):
    """Also an adaptive one, which accepts no Gaussian release then."""
    ledger = PrivacyLedger(epsilon=1.0, delta=0.0, adaptive=adaptive)
    with pytest.raises(BudgetError, match="pure DP releases only, such as fits with delta=0") as no:
        ledger.charge(record([Gaussian(0.1)], 1e-6))
    assert "Gaussian" not in str(no.value)
    with pytest.raises(BudgetError) as no:
        ledger.charge(record([Pure(2.0)]))
    assert "releases only" not in str(no.value)


def test_an_adaptive_ledger_counts_the_dearer_kind():
    """One of two kinds: as Gaussian, or as a choice, whichever costs more in any order."""
    for event, alike in ((Either(0.1, 0.9), Gaussian(0.9)), (Either(0.5, 0.1), Exponential(0.5))):
        assert _cap._as_gaussian([event] * 3) == pytest.approx(
            _cap._as_gaussian([alike] * 3), rel=1e-12
        )
    assert Cap(1.0, 1e-6, adaptive=True).spent([Either(0.5, 0.1)], 0.0) == math.inf
