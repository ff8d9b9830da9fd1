"""What people see of a ledger: what else fits, exactly; its state, its exports, a page to sign."""

from __future__ import annotations

import contextlib
import csv
import io
import math
import re

import numpy as np
import pytest

from dp_halfspace import (
    AdaptiveMarginClassifier,
    ObjectivePerturbationClassifier,
    PrivacyLedger,
    PrivateSearchCV,
)
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.ledger.cap import MOST_FITS, Cap
from dp_halfspace.privacy import LedgerPlan, gdp_epsilon, open_ledger
from dp_halfspace.privacy.record import rounded_text
from tests.privacy import oracles
from tests.privacy.oracles import pure

X, Y = np.zeros((900, 4)), np.arange(900) % 2
FACT = "a-column-name"


def gaussian(epsilon, delta=1e-7, **changes):
    return oracles.gaussian(epsilon, delta, **changes)


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    path = tmp_path / "a place" / "study.db" if request.param == "file" else None
    if path is not None:
        path.parent.mkdir()
    return PrivacyLedger(path, epsilon=1.0, delta=1e-6, dataset="<registry>")


# -- what else fits -----------------------------------------------------------------------


def accepted(ledger, record):
    """Charge a record until it is refused."""
    for count in range(1000):
        try:
            ledger.charge(record)
        except BudgetError:
            return count
    raise AssertionError


FIT = AdaptiveMarginClassifier(epsilon=0.3, delta=1e-7, classes=[0, 1])
RECORDS = {
    "gaussian": lambda: gaussian(0.2),
    "pure": lambda: pure(0.07),
    "fit": lambda: FIT.plan(X, Y),
    "search": lambda: PrivateSearchCV(
        FIT, {"fit_intercept": [True, False]}, epsilon=0.4, delta=1e-7
    ).plan(X, Y),
    "objective": lambda: ObjectivePerturbationClassifier(
        epsilon=0.3, delta=1e-7, classes=[0, 1], data_norm=1
    ).plan(X, Y),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", RECORDS)
def test_as_many_fit_as_planned_and_not_one_more(kind):
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-6)
    ledger.charge(gaussian(0.25))
    ledger.charge(pure(0.1))
    assert_plan_is_exact(ledger, RECORDS[kind]())


def assert_plan_is_exact(ledger, record):
    before = len(ledger.entries())
    plan = ledger.plan(asked=record)
    (asked,) = plan.releases
    assert len(ledger.entries()) == before
    assert plan.spent == ledger.spent()
    ledger.charge(record)
    assert asked.spent_after == ledger.spent()
    assert asked.count == 1 + accepted(ledger, record) >= 1
    # What is planned now is the same account.
    assert ledger.plan(asked=record).releases[0].count == 0
    assert not ledger.plan(asked=record).fits_together


FORGETS = lambda cap, spent, events, real=Cap.count: real(cap, [], events)  # noqa: E731
SUMS = lambda cap, spent, events: int(1.0 / gdp_epsilon(events[0].mu, 1e-6))  # noqa: E731


@pytest.mark.parametrize(("planted", "size"), [(FORGETS, 0.2), (SUMS, 0.1)])
def test_the_exactness_test_sees_what_is_planted(monkeypatch, planted, size):
    """Planted: a plan that forgets what is spent; sums of epsilons in place of profiles."""
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-6)
    if planted is FORGETS:
        ledger.charge(gaussian(0.5))
    monkeypatch.setattr(Cap, "count", planted)
    with pytest.raises(AssertionError):
        assert_plan_is_exact(ledger, gaussian(size))


@pytest.mark.parametrize("adaptive", [False, True])
def test_counts_under_other_caps(adaptive):
    ledger = PrivacyLedger(epsilon=1.0, delta=0.0, adaptive=adaptive)
    tenth, wide = ledger.plan(0.1, 2.0).releases
    assert (tenth.count, wide.count) == (10, 0)
    assert (tenth.epsilon, tenth.delta, tenth.spent_after) == (0.1, 0.0, pytest.approx(0.1))
    # Nothing Gaussian fits under a cap without delta.
    assert ledger.plan(fit=(0.1, 1e-7)).releases[0].count == 0
    plan = PrivacyLedger(epsilon=math.inf, delta=0.0, adaptive=adaptive).plan(0.1, math.inf)
    assert [one.count for one in plan.releases] == [MOST_FITS] * 2
    assert f"{MOST_FITS} or more" in repr(plan)
    tiny = PrivacyLedger(epsilon=1.0, delta=1e-6, adaptive=adaptive).plan(1e-3)
    assert 10**4 < tiny.releases[0].count < MOST_FITS


def test_a_plan_prints_as_a_table(ledger):
    plan = ledger.plan(fit=gaussian(0.6), score=(0.3, 1e-7), pure=(0.2, 0))
    first, head, *rows, last = repr(plan).splitlines()
    assert first == "epsilon 0 of 1 asked for; 0 spent at delta 1e-06 when composed"
    assert head.split()[:3] == ["release", "epsilon", "delta"]
    assert [row.split()[0] for row in rows] == ["fit", "score", "pure"]
    assert isinstance(plan, LedgerPlan)
    assert plan.fits_together
    assert last == "one of each fits at once"
    assert "does not fit" in repr(ledger.plan(0.7, 0.8, again=0.9))
    assert [one.name for one in ledger.plan().releases] == [f"epsilon {e}" for e in (0.1, 0.3, 1)]
    nothing = repr(ledger.plan(1.5))
    assert nothing.splitlines()[-1].split()[-2:] == ["0", "-"]


def test_a_plan_refuses_what_no_budget_pays_for(ledger):
    for asked, error, message in (
        (gaussian(0.1, adjacency="replace-one-label"), BudgetError, "the features"),
        (gaussian(0.1, noise="seeded"), BudgetError, "seed"),
        (-1.0, ValueError, "epsilon of 'fit'"),
        ((0.1, 2.0), ValueError, "delta"),
    ):
        with pytest.raises(error, match=message):
            ledger.plan(fit=asked)


# -- state and exports ----------------------------------------------------------------------


def test_a_ledger_says_whether_it_is_new_and_what_it_holds(ledger):
    assert repr(ledger).endswith(": new, no entry; cap epsilon=1, delta=1e-06)")
    assert ledger.summary().startswith("Ledger of '<registry>': new")
    ledger.charge(gaussian(0.3))
    ledger.charge(pure(0.2))
    again = open_ledger(ledger.handle)
    assert re.search(
        r": 2 entries, epsilon 0.5 of 1 asked for at deltas from 0 to 1e-07; by exact composition, "
        r"epsilon 0\.\d+ of 1 is spent at delta 1e-06; cap epsilon=1",
        repr(again),
    )
    lines = again.summary().splitlines()
    assert "2 entries" in lines[0]
    assert "if their budgets did not depend on earlier results" in lines[1]
    assert "stated at delta 1e-06" in lines[-1]
    assert float(lines[-2].split()[-1]) == pytest.approx(ledger.remaining(), rel=1e-5)
    assert float(lines[-3].split()[-1]) == pytest.approx(ledger.remaining(0.0), rel=1e-5)
    for cap in ({"delta": 0.0}, {"delta": 1e-6, "adaptive": True}):
        assert "earlier results" not in PrivacyLedger(epsilon=1.0, **cap).summary()


# -- closing --------------------------------------------------------------------------------


def test_what_is_left_is_on_the_safe_side_at_the_delta_of_the_cap():
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-6)
    spent = gaussian(0.3, 1e-9)
    ledger.charge(spent)
    pure_left, gaussian_left = (float(text) for _, text in ledger._statement()._left())
    assert 0.999999 * ledger.remaining(0.0) <= pure_left <= ledger.remaining(0.0)
    assert 0.99999 * ledger.remaining() <= gaussian_left <= ledger.remaining()


@pytest.mark.parametrize("is_file", [False, True])
def test_what_was_asked_for_is_read_first_and_the_composition_second(is_file, tmp_path):
    """Three times epsilon 1 is "3 of 3" to its user, in every text of the ledger."""
    ledger = PrivacyLedger(tmp_path / "a.db" if is_file else None, epsilon=3.0, delta=1e-6)
    for _ in range(3):
        ledger.charge(gaussian(1.0, 2.5e-7))
    spent = rounded_text(ledger.spent())
    assert (ledger.asked(), float(spent)) == (3.0, pytest.approx(1.7, abs=0.1))
    asked = "epsilon 3 of 3 asked for"
    for text in (repr(ledger), ledger.summary(), repr(ledger.plan(0.1))):
        assert asked in text
        assert text.index(asked) < text.index(spent)
    assert "composition, epsilon 1." in ledger.summary().splitlines()[0]
    with pytest.raises(BudgetError) as caught:
        ledger.charge(gaussian(3.0, 2.5e-7))
    first, second = (
        "asks for epsilon=3 at delta=2.5e-07, after epsilon=3 at delta=2.5e-07 in 3 entries",
        f"By exact composition, epsilon={spent} at delta=1e-06 is spent",
    )
    assert f"{first}. {second}" in str(caught.value)
    rows = list(csv.DictReader(io.StringIO(ledger.to_csv())))
    assert [row["asked_after"] for row in rows] == ["1.0", "2.0", "3.0"]
    # Ten tenths are one, not a float above it.
    tenths = PrivacyLedger(epsilon=1.0, delta=1e-6)
    for _ in range(10):
        tenths.charge(gaussian(0.1))
    assert tenths.asked() == 1.0


@pytest.mark.parametrize(("rule", "whole"), [({"fixed_by": "site"}, 1.1), ({"n_records": 9}, 1.8)])
def test_what_was_asked_for_about_parts_counts_as_the_ledger_does(rule, whole):
    """Planted: the sum over all parts, 2.1, and the largest part where two can change."""
    ledger = PrivacyLedger(epsilon=9.0, delta=1e-5)
    for part, epsilon in (("A", 0.9), ("B", 0.3), ("C", 0.7), (None, 0.2)):
        handle = ledger if part is None else ledger.part(part, **rule)
        handle.charge(gaussian(epsilon, public={"n_samples": 9}))
    assert ledger.asked() == whole
    own = ledger.part("B", **rule).asked()
    assert own == (0.5 if "fixed_by" in rule else 1.4)
    assert ledger.part("new", **rule).asked() == (0.2 if "fixed_by" in rule else 1.1)


def test_a_closed_handle_refuses_and_the_account_lives_on(ledger):
    model = AdaptiveMarginClassifier(epsilon=0.1, delta=1e-7, classes=[0, 1], ledger=ledger)
    with contextlib.suppress(KeyError), ledger as same:
        same.charge(pure(0.2))
        raise KeyError
    assert same is ledger
    handle = ledger.handle
    assert "not available, " in repr(ledger)
    closed = (lambda: ledger.charge(pure(0.1)), ledger.entries, ledger.spent, ledger.plan)
    for action in (*closed, lambda: model.fit(X, Y), lambda: ledger.epsilon):
        with pytest.raises(BudgetError, match="closed"):
            action()
    ledger.close()
    assert len(open_ledger(handle).entries()) == 1
    # Also where the handle that estimators share was closed.
    with open_ledger(handle) as shared:
        shared.charge(pure(0.1))
    assert len(open_ledger(handle).entries()) == 2


UNITS = {"": "one record", "-label": "the label", "-person": "person"}


@pytest.mark.parametrize("ending", UNITS)
def test_a_record_prints_as_a_sentence(ending):
    text = str(gaussian(0.5, adjacency="replace-one" + ending))
    assert text.startswith("epsilon=0.5, delta=1e-07 for ")
    assert UNITS[ending] in text
    assert "operating system" in text
