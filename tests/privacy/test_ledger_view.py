"""What people see of a ledger: what else fits, exactly; its state, its exports, a page to sign."""

from __future__ import annotations

import csv
import io
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from dp_halfspace import (
    AdaptiveMarginClassifier,
    ObjectivePerturbationClassifier,
    PrivacyLedger,
    PrivateSearchCV,
)
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.privacy import LedgerPlan, _ledger_view, gdp_epsilon, gdp_mu, open_ledger
from dp_halfspace.privacy._cap import MOST_FITS, Cap
from dp_halfspace.privacy.events import Gaussian, Pure
from dp_halfspace.privacy.record import PrivacyRecord

X, Y = np.zeros((900, 4)), np.arange(900) % 2
FACT = "a-column-name"


def gaussian(epsilon, delta=1e-7, **changes):
    # Rounded to the safe side, as estimators do.
    event = Gaussian(gdp_mu(epsilon, delta))
    fields = {"epsilon": epsilon, "delta": delta, "events": [event], "noise": "os"}
    return PrivacyRecord(**{**fields, **changes})


def pure(epsilon, **changes):
    fields = {"epsilon": epsilon, "delta": 0.0, "events": [Pure(epsilon)], "noise": "os"}
    return PrivacyRecord(**{**fields, **changes})


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


def model_record(kind):
    fit = AdaptiveMarginClassifier(epsilon=0.3, delta=1e-7, classes=[0, 1])
    if kind == "search":
        fit = PrivateSearchCV(fit, {"fit_intercept": [True, False]}, epsilon=0.4, delta=1e-7)
    if kind == "objective":
        fit = ObjectivePerturbationClassifier(epsilon=0.3, delta=1e-7, classes=[0, 1], data_norm=1)
    return fit.plan(X, Y)


KINDS = ["gaussian", "pure", "fit", "search", "objective"]


def record_of(kind):
    plain = {"gaussian": gaussian(0.2), "pure": pure(0.07)}
    return plain.get(kind) or model_record(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_as_many_fit_as_planned_and_not_one_more(kind):
    record = record_of(kind)
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-6)
    ledger.charge(gaussian(0.25))
    ledger.charge(pure(0.1))
    assert_plan_is_exact(ledger, record)


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


def test_the_exactness_test_sees_a_plan_that_forgets_what_is_spent(monkeypatch):
    """Planted."""
    real = Cap.count
    monkeypatch.setattr(Cap, "count", lambda cap, spent, events: real(cap, [], events))
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-6)
    ledger.charge(gaussian(0.5))
    with pytest.raises(AssertionError):
        assert_plan_is_exact(ledger, gaussian(0.2))


def test_the_exactness_test_sees_sums_of_epsilons(monkeypatch):
    """Planted: no composition by profiles."""
    monkeypatch.setattr(
        Cap, "count", lambda cap, spent, events: int(1.0 / gdp_epsilon(events[0].mu, 1e-6))
    )
    with pytest.raises(AssertionError):
        assert_plan_is_exact(PrivacyLedger(epsilon=1.0, delta=1e-6), gaussian(0.1))


@pytest.mark.parametrize("adaptive", [False, True])
def test_counts_under_other_caps(adaptive):
    ledger = PrivacyLedger(epsilon=1.0, delta=0.0, adaptive=adaptive)
    tenth, wide = ledger.plan(0.1, 2.0).releases
    assert (tenth.count, wide.count) == (10, 0)
    assert (tenth.epsilon, tenth.delta, tenth.spent_after) == (0.1, 0.0, pytest.approx(0.1))
    # Nothing Gaussian fits under a cap without delta.
    assert ledger.plan(fit=(0.1, 1e-7)).releases[0].count == 0
    boundless = PrivacyLedger(epsilon=math.inf, delta=0.0, adaptive=adaptive)
    plan = boundless.plan(0.1, math.inf)
    assert [one.count for one in plan.releases] == [MOST_FITS] * 2
    assert f"{MOST_FITS} or more" in repr(plan)
    tiny = PrivacyLedger(epsilon=1.0, delta=1e-6, adaptive=adaptive).plan(1e-3)
    assert 10**4 < tiny.releases[0].count < MOST_FITS


def test_a_plan_prints_as_a_table(ledger):
    plan = ledger.plan(fit=gaussian(0.6), score=(0.3, 1e-7), pure=(0.2, 0))
    first, head, *rows, last = repr(plan).splitlines()
    assert first == "epsilon 0 of 1 spent at delta 1e-06"
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
    labels = gaussian(0.1, adjacency="replace-one-label")
    with pytest.raises(BudgetError, match="the features"):
        ledger.plan(fit=labels)
    with pytest.raises(BudgetError, match="seed"):
        ledger.plan(fit=gaussian(0.1, noise="seeded"))
    with pytest.raises(ValueError, match="epsilon of 'fit'"):
        ledger.plan(fit=-1.0)
    with pytest.raises(ValueError, match="delta"):
        ledger.plan(fit=(0.1, 2.0))


# -- refusals that help ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["gaussian", "pure"])
def test_what_a_refusal_says_fits_does_fit(ledger, kind):
    ledger.charge(gaussian(0.6))
    record = gaussian(1.5, 1e-8) if kind == "gaussian" else pure(0.95)
    with pytest.raises(BudgetError, match=r"it asks for epsilon=.* spent is .* left is") as caught:
        ledger.charge(record)
    most = float(re.search(r"fits up to epsilon=([\d.e-]+)$", str(caught.value))[1])
    fitting = gaussian(most, 1e-8) if kind == "gaussian" else pure(most)
    larger = gaussian(most * 1.001, 1e-8) if kind == "gaussian" else pure(most * 1.001)
    with pytest.raises(BudgetError):
        ledger.charge(larger)
    ledger.charge(fitting)


def test_a_refusal_says_when_nothing_fits():
    ledger = PrivacyLedger(epsilon=0.5, delta=0.0)
    ledger.charge(pure(0.5))
    with pytest.raises(BudgetError, match="no purely private release fits any more"):
        ledger.charge(pure(0.1))
    with pytest.raises(BudgetError, match="no Gaussian release fits any more"):
        ledger.charge(gaussian(0.1))


# -- state and exports ----------------------------------------------------------------------


def test_a_ledger_says_whether_it_is_new_and_what_it_holds(ledger):
    assert repr(ledger).endswith(": new, no entry, cap epsilon=1, delta=1e-06)")
    assert ledger.summary().startswith("Ledger of '<registry>': new")
    ledger.charge(gaussian(0.3))
    ledger.charge(pure(0.2))
    again = open_ledger(ledger.handle)
    assert re.search(r": 2 entries, epsilon 0\.\d+ spent, cap epsilon=1", repr(again))
    lines = again.summary().splitlines()
    assert "2 entries" in lines[0]
    assert "if their budgets did not follow earlier results" in lines[1]
    assert float(lines[-1].split()[-1]) == pytest.approx(ledger.remaining(), rel=1e-5)
    assert float(lines[-2].split()[-1]) == pytest.approx(ledger.remaining(0.0), rel=1e-5)
    for cap in ({"delta": 0.0}, {"delta": 1e-6, "adaptive": True}):
        assert "earlier results" not in PrivacyLedger(epsilon=1.0, **cap).summary()


class _Checked(HTMLParser):
    """Collects text, and sees that what is opened is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "link", "img")
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_the_page_for_an_auditor_holds_the_books_and_no_more(ledger, tmp_path):
    def shown():
        page = ledger.to_html(tmp_path / "page.html")
        assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
        checked = _Checked()
        checked.feed(page)
        assert not checked.open
        # Neither where the ledger is, nor what records state as public.
        for hidden in (str(tmp_path), "memory:", FACT):
            assert hidden not in page
        return " ".join(checked.text)

    text = shown()
    assert "the ledger is new" in text
    assert ledger._store.first_digest in text
    ledger.charge(gaussian(0.3, public={"columns": [FACT]}))
    ledger.charge(pure(0.2))
    text = shown()
    with ledger._store.transaction(writes=False) as account:
        rows = account.rows(0)
    assert rows[-1].digest in text
    assert "<registry>" in text
    for words in (
        "differ in one record",
        "Signature",
        "Place and date",
        "Pure",
        rows[0].time[11:19],
    ):
        assert words.lower() in text.lower()
    assert _ledger_view.rounded_text(ledger.spent()) in text


def test_a_damaged_ledger_exports_nothing(tmp_path):
    import sqlite3  # noqa: PLC0415
    from contextlib import closing  # noqa: PLC0415

    path = tmp_path / "study.db"
    ledger = PrivacyLedger(path, epsilon=1.0, delta=0.0)
    ledger.charge(pure(0.5))
    with closing(sqlite3.connect(path)) as connection, connection:
        text = pure(0.1).to_json()
        connection.execute("UPDATE entries SET record = ?", (text,))
    for export in (ledger.to_html, ledger.to_csv, ledger.summary):
        with pytest.raises(ValueError, match="damaged"):
            export()


def test_a_table_of_entries_goes_to_a_file(ledger, tmp_path):
    ledger.charge(gaussian(0.3))
    text = ledger.to_csv(tmp_path / "entries.csv")
    assert (tmp_path / "entries.csv").read_text() == text
    (row,) = csv.DictReader(io.StringIO(text))
    assert float(row["spent_after"]) == ledger.spent()


# -- closing --------------------------------------------------------------------------------


def test_a_closed_handle_refuses_and_the_account_lives_on(ledger):
    model = AdaptiveMarginClassifier(epsilon=0.1, delta=1e-7, classes=[0, 1], ledger=ledger)
    with ledger as same:
        assert same is ledger
        same.charge(pure(0.2))
    handle = ledger.handle
    assert repr(ledger).endswith("out of reach)")
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


def test_a_ledger_closes_after_an_exception():
    ledger = PrivacyLedger(epsilon=1.0, delta=0.0)
    with pytest.raises(KeyError), ledger:
        raise KeyError
    with pytest.raises(BudgetError, match="closed"):
        ledger.charge(pure(0.1))


@pytest.mark.parametrize(
    ("adjacency", "unit"),
    [
        ("replace-one", "one record"),
        ("replace-one-label", "the label"),
        ("replace-one-person", "person"),
    ],
)
def test_a_record_prints_as_a_sentence(adjacency, unit):
    text = str(gaussian(0.5, adjacency=adjacency))
    assert text.startswith("epsilon=0.5, delta=1e-07 for ")
    assert unit in text
    assert "operating system" in text
