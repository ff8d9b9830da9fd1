"""What people read of a ledger: what was asked for first, the composition second, what is left."""

import re

import pytest

from dp_halfspace import PrivacyLedger
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.ledger import open_ledger
from dp_halfspace.privacy.record import NEIGHBOURS, rounded_text
from tests.privacy.oracles import gaussian, pure


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    path = tmp_path / "a place" / "study.db" if request.param == "file" else None
    if path is not None:
        path.parent.mkdir()
    return PrivacyLedger(path, epsilon=1.0, delta=1e-6, dataset="<registry>")


# -- state and exports ----------------------------------------------------------------------


def test_a_ledger_says_whether_it_is_new_and_what_it_holds(ledger):
    assert repr(ledger).endswith(": no entry yet; cap epsilon=1, delta=1e-06)")
    assert ledger.summary().startswith("Ledger of '<registry>': no entry yet.")
    ledger.charge(gaussian(0.3, 1e-7))
    ledger.charge(pure(0.2))
    again = open_ledger(ledger.handle)
    assert re.search(
        r": 2 entries, epsilon 0.5 of 1 asked for at deltas from 0 to 1e-07. By exact composition, "
        r"epsilon 0\.\d+ of 1 at delta 1e-06 is spent, which decides what is accepted; cap eps",
        repr(again),
    )
    lines = again.summary().splitlines()
    assert "2 entries" in lines[0]
    assert "if their budgets did not depend on earlier results" in lines[1]
    assert float(lines[-1].split()[-1]) == ledger.remaining()
    assert float(lines[-2].split()[-1]) == ledger.remaining(0.0)
    for cap in ({"delta": 0.0}, {"delta": 1e-6, "adaptive": True}):
        assert "earlier results" not in PrivacyLedger(epsilon=1.0, **cap).summary()
    of_people = PrivacyLedger(epsilon=1.0, delta=0.0, adjacency="replace-one-person")
    assert NEIGHBOURS[of_people.adjacency] in of_people.summary()


@pytest.mark.parametrize("is_file", [False, True])
def test_what_was_asked_for_is_read_first_and_the_composition_second(is_file, tmp_path):
    """Three times epsilon 1 is "3 of 3" to its user, in every text of the ledger."""
    ledger = PrivacyLedger(tmp_path / "a.db" if is_file else None, epsilon=3.0, delta=1e-6)
    for _ in range(3):
        ledger.charge(gaussian(1.0, 2.5e-7))
    spent = rounded_text(ledger.spent())
    assert (ledger.asked(), float(spent)) == (3.0, pytest.approx(1.7, abs=0.1))
    asked = "epsilon 3 of 3 asked for"
    for text in (repr(ledger), ledger.summary()):
        assert asked in text
        assert text.index(asked) < text.index(spent)
    composed = f"By exact composition, epsilon {spent} of 3 at delta 1e-06 is spent"
    assert composed in ledger.summary().splitlines()[0]
    with pytest.raises(BudgetError) as caught:
        ledger.charge(gaussian(3.0, 2.5e-7))
    before = f"Before it: 3 entries, {asked} at delta 2.5e-07. {composed}"
    assert f"asks for epsilon 3 at delta 2.5e-07. {before}" in str(caught.value)
    # Ten tenths are one, not a float above it.
    tenths = PrivacyLedger(epsilon=1.0, delta=1e-6)
    for _ in range(10):
        tenths.charge(gaussian(0.1, 1e-7))
    assert tenths.asked() == 1.0
