"""Disjoint parts of one data set: the cost of a record that stays in its part, or moves."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from dp_halfspace import AdaptiveMarginClassifier, PrivacyLedger
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.ledger.cap import Account, Cap
from dp_halfspace.ledger.entries import Part
from dp_halfspace.ledger.spending import Spending
from dp_halfspace.privacy import GaussianNoise, authorise, gdp_epsilon
from dp_halfspace.privacy.events import Gaussian, Pure
from dp_halfspace.privacy.record import PrivacyRecord
from tests.privacy.oracles import gaussian, pure, seeded

PARTS = ("A", "B", "C")
# What is released in turn: about which part (None is the whole), and at which epsilon.
RELEASES = (("A", 0.3), ("B", 0.5), (None, 0.4), ("C", 0.2), ("A", 0.1))


def release(epsilon, n=2):
    return pure(epsilon, public={"n_samples": n})


# -- brute force: all neighbours, all outcomes, exact probabilities ----------------------------


def answer_of(records, part, earlier):
    """Answer a question of yes or no, which is turned round where the answers so far are odd.

    A release about a part sees every other record as one fixed record, which says no. That about
    the whole is changed by a record that changes its bit, and by one that moves from A to B.
    """
    if part is None:
        found = sum(bit ^ (own == "B") for own, bit in records) % 2 == 1
    else:
        found = any(bit for own, bit in records if own == part)
    return found ^ (sum(earlier) % 2 == 1)


def distribution(records, releases):
    """Probability of every list of answers, each by randomised response."""
    probabilities = {(): 1.0}
    for part, epsilon in releases:
        p = 1.0 / (1.0 + math.exp(-epsilon))
        probabilities = {
            (*earlier, answer): mass * (p if answer == answer_of(records, part, earlier) else 1 - p)
            for earlier, mass in probabilities.items()
            for answer in (False, True)
        }
    return probabilities


def neighbours(*, moves):
    """Pairs of tables of two records that differ in one, which may move to another part."""
    kinds = list(product(PARTS, (False, True)))
    for first, other, changed in product(kinds, repeat=3):
        if moves or first[0] == changed[0]:
            yield (first, other), (changed, other)


def worst(releases, epsilon, *, moves):
    """Exact largest loss, and exact delta at an epsilon, over all pairs of neighbours."""
    loss = delta = 0.0
    for one, other in neighbours(moves=moves):
        p, q = distribution(one, releases), distribution(other, releases)
        loss = max(loss, *(math.log(p[o] / q[o]) for o in p))
        delta = max(delta, sum(max(p[o] - math.exp(epsilon) * q[o], 0.0) for o in p))
    return loss, delta


def charged(releases, *, moves, **terms):
    """Return a ledger that has accepted all releases."""
    rule = {"n_records": 2} if moves else {"fixed_by": "position"}
    ledger = PrivacyLedger(**{"epsilon": 9.0, "delta": 0.0, **terms})
    for part, epsilon in releases:
        handle = ledger if part is None else ledger.part(part, **rule)
        handle.charge(release(epsilon))
    return ledger


def assert_parts_are_covered(*, moves):
    """The ledger says no less than brute force finds, and for pure epsilon exactly that."""
    ledger = charged(RELEASES, moves=moves)
    for delta in (0.0, 0.01, 0.05):
        claimed = ledger.spent(delta)
        loss, found = worst(RELEASES, claimed, moves=moves)
        assert found <= delta + 1e-12
        if delta == 0.0:
            assert loss == pytest.approx(claimed, rel=1e-9)


@pytest.mark.parametrize("moves", [False, True])
def test_the_cost_of_parts_is_what_one_record_can_change(moves):
    assert_parts_are_covered(moves=moves)


def test_brute_force_sees_a_maximum_where_two_parts_change(monkeypatch):
    """Planted: the cells decide the part, and the cost is that of one part."""
    monkeypatch.setattr(Part, "n_touched", 1)
    with pytest.raises(AssertionError):
        assert_parts_are_covered(moves=True)


def test_brute_force_sees_releases_about_the_whole_that_do_not_add(monkeypatch):
    """Planted: only the parts count."""
    honest = Spending._names_of_cases
    monkeypatch.setattr(
        Spending, "_names_of_cases", lambda self, part: [names[1:] for names in honest(self, part)]
    )
    with pytest.raises(AssertionError):
        assert_parts_are_covered(moves=False)


# -- an attack on a record that moves -----------------------------------------------------------

COUNT = GaussianNoise(sensitivity=1.0, mu=1.0)
N_ATTACKS = 1500


def advantage():
    """True minus false positive rate: was the record in A, or in B?

    Noisy counts of both parts are released, each charged to its part.
    """
    epsilon = gdp_epsilon(1.0, 1e-3)
    record = PrivacyRecord(
        epsilon=epsilon, delta=1e-3, events=[Gaussian(1.0)], noise="seeded", public={"n_samples": 1}
    )
    rates = []
    for in_a in (1.0, 0.0):
        hits = 0
        for seed in range(N_ATTACKS):
            source = seeded(seed + int(in_a) * N_ATTACKS)
            counts = (np.array([in_a]), np.array([1.0 - in_a]))
            noisy = [authorise(record, source).release(count, COUNT)[0] for count in counts]
            hits += noisy[0] > noisy[1]
        rates.append(hits / N_ATTACKS)
    return rates[0] - rates[1]


def allowed(ledger):
    """Largest advantage that what was charged admits: delta at epsilon 0, over all cases."""
    (events,) = {tuple(case) for case in ledger._current_account().cases}
    total = PrivacyRecord(epsilon=math.inf, delta=0.0, events=events, noise="os")
    return total.attack_advantage()


def test_an_attack_on_a_moving_record_stays_within_two_parts(monkeypatch):
    def ledger():
        account = PrivacyLedger(epsilon=20.0, delta=1e-3)
        for part in ("A", "B"):
            epsilon = gdp_epsilon(1.0, 1e-3)
            account.part(part, n_records=1).charge(
                gaussian(epsilon, 1e-3, events=[Gaussian(1.0)], public={"n_samples": 1})
            )
        return account

    found, three_sigma = advantage(), 3.0 * math.sqrt(0.5 / N_ATTACKS)
    assert found <= allowed(ledger()) + three_sigma
    # Planted: the maximum promises less than the attack reaches.
    monkeypatch.setattr(Part, "n_touched", 1)
    assert found > allowed(ledger()) + three_sigma


# -- what is accepted -----------------------------------------------------------------------------


def test_parts_by_a_public_fact_cost_the_maximum():
    ledger = PrivacyLedger(epsilon=1.0, delta=0.0)
    north, south = (ledger.part(name, fixed_by="site") for name in ("north", "south"))
    north.charge(pure(0.75))
    south.charge(pure(0.75))
    assert ledger.spent() == north.spent() == south.spent() == 0.75
    ledger.charge(pure(0.125))
    north.charge(pure(0.125))
    assert (north.spent(), south.spent(), ledger.spent()) == (1.0, 0.875, 1.0)
    assert (north.remaining(), ledger.remaining()) == (0.0, 0.0)
    assert south.remaining() == pytest.approx(0.125)
    assert ledger.part("west", fixed_by="site").remaining() == pytest.approx(0.875)
    for full in (north, ledger):
        with pytest.raises(BudgetError, match="exceeds the remaining budget"):
            full.charge(pure(0.01))
    south.charge(pure(0.125))


def test_every_case_decides():
    """Also where one costs more than another, which would not be listed beside it."""
    account = Account(Cap(1.0, 0.0, adaptive=False), [[Pure(0.25)], [Pure(0.75)]])
    assert account.holds([Pure(0.25)])
    assert not account.holds([Pure(0.5)])


def test_a_part_and_the_whole_add_up():
    """Also where they have released the same."""
    ledger = PrivacyLedger(epsilon=1.0, delta=0.0)
    for handle in (ledger, ledger.part("north", fixed_by="site")):
        handle.charge(pure(0.25))
    assert ledger.spent() == 0.5


def test_what_remains_is_that_of_the_costliest_part():
    """Also of pure DP parts beside a cap with delta, and whichever came first."""
    for sizes in ((0.25, 0.75), (0.75, 0.25)):
        for delta in (0.0, 1e-6):
            ledger = PrivacyLedger(epsilon=1.0, delta=delta)
            for name, size in zip("AB", sizes, strict=True):
                ledger.part(name, fixed_by="site").charge(pure(size))
            assert ledger.remaining(0.0) == pytest.approx(0.25, rel=1e-4)
            ledger.charge(pure(ledger.remaining(0.0)))


def test_parts_by_cells_cost_the_two_largest():
    ledger = PrivacyLedger(epsilon=1.0, delta=0.0)
    women, men, others = (ledger.part(name, n_records=9) for name in ("women", "men", "others"))
    women.charge(release(0.5, 9))
    men.charge(release(0.25, 9))
    assert women.spent() == men.spent() == ledger.spent() == 0.75
    assert others.remaining() == pytest.approx(0.5)
    with pytest.raises(BudgetError, match=r"With it, epsilon 1\.125 of 1"):
        others.charge(release(0.625, 9))
    others.charge(release(0.5, 9))
    assert (ledger.spent(), men.spent()) == (1.0, 0.75)
    with pytest.raises(BudgetError, match="exceeds the remaining budget"):
        women.charge(release(0.01, 9))


def test_an_adaptive_ledger_adds_every_case_by_its_own_rule():
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-6, adaptive=True)
    for name in ("north", "south"):
        ledger.part(name, fixed_by="site").charge(gaussian(0.9))
    assert ledger.spent() == pytest.approx(0.9)
    with pytest.raises(BudgetError, match="exceeds the remaining budget"):
        ledger.charge(gaussian(0.5))


def test_the_text_of_a_ledger_charges_the_whole():
    """It names no part: more is charged than need be, never less."""
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-4)
    model = AdaptiveMarginClassifier(
        epsilon=0.4, delta=1e-5, classes=[0, 1], ledger=ledger.part("north", fixed_by="site")
    )
    X, y = np.random.default_rng(0).normal(size=(90, 2)), np.arange(90) % 2
    model.fit(X, y)
    type(model)(**model.get_params()).fit(X, y)
    assert [entry.part for entry in ledger.entries()] == ["north", None]


# -- what is refused --------------------------------------------------------------------------


def test_how_records_come_to_parts_must_be_stated():
    ledger = PrivacyLedger(epsilon=1.0, delta=0.0)
    for rule in ({}, {"fixed_by": "site", "n_records": 9}):
        with pytest.raises(ValueError, match="by exactly one of fixed_by"):
            ledger.part("north", **rule)
    for rule, name in (({"fixed_by": " "}, "fixed_by"), ({"n_records": 0}, "n_records")):
        with pytest.raises(ValueError, match=f"{name} must be"):
            ledger.part("north", **rule)
    with pytest.raises(ValueError, match="name must be"):
        ledger.part("", fixed_by="site")


def test_parts_that_may_share_records_are_refused():
    ledger = PrivacyLedger(epsilon=1.0, delta=0.0)
    ledger.part("north", fixed_by="site").charge(release(0.1, 9))
    for rule in ({"fixed_by": "year"}, {"n_records": 9}):
        other = ledger.part("2020", **rule)
        for ask in (other.spent, other.asked, lambda other=other: other.charge(release(0.1, 9))):
            with pytest.raises(BudgetError, match="may share records with the part 'north'"):
                ask()
    assert len(ledger.entries()) == 1


def test_a_part_by_cells_is_read_with_all_records():
    """Planted by the user: a fit on the rows of the part, whose number is private."""
    ledger = PrivacyLedger(epsilon=2.0, delta=1e-6)
    X, y = np.random.default_rng(0).normal(size=(100, 2)), np.arange(100) % 2
    women = ledger.part("women", n_records=100)
    model = AdaptiveMarginClassifier(epsilon=1.0, delta=1e-7, classes=[0, 1], ledger=women)
    with pytest.raises(BudgetError, match="n_records=100 records, and this one states n_samples=4"):
        model.fit(X[:47], y[:47])
    with pytest.raises(BudgetError, match="states n_samples=None"):
        women.charge(pure(0.1))
    assert ledger.entries() == []
    model.fit(np.where(X[:, :1] > 0, X, 0.0), np.where(X[:, 0] > 0, y, 0))
    assert [entry.part for entry in ledger.entries()] == ["women"]


def test_an_entry_of_seeded_noise_voids_its_part_only():
    """A file may hold one."""
    north, south = Part("north", "site"), Part("south", "site")
    spending = Spending().after([(pure(0.1, noise="seeded"), north), (pure(0.1), None)])
    assert [set(case) for case in spending.cases()] == [{Pure(math.inf), Pure(0.1)}]
    assert spending.cases(south) == [[Pure(0.1)]]


def test_spending_is_immutable_and_checks_the_rule_of_every_part():
    """What a handle has read stays as it was if a charge is interrupted or refused."""
    event, north = Pure(0.1), Part("north", fixed_by="site")
    first = Spending().after([(pure(0.1), north), (pure(0.1), None)])
    second = first.after([(pure(0.1), north), (pure(0.1), None)])
    for name in (None, "north"):
        assert (first.events[name][event], second.events[name][event]) == (1, 2)
    assert (first.asked(), second.asked()) == (0.2, 0.4)
    with pytest.raises(BudgetError, match="All parts of a ledger follow one rule"):
        first.after([(pure(0.1), Part("south", fixed_by="year"))])
