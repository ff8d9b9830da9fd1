"""New rows in other units are named, by released numbers and the new rows alone."""

import re

import numpy as np
import pandas as pd
import pytest

from dp_halfspace import AdaptiveMarginClassifier, PrivateTableClassifier
from dp_halfspace.inspection import UnitFinding, check_units

pytestmark = pytest.mark.filterwarnings("ignore:random_state")

RNG = np.random.default_rng(0)
N = 4000
TABLE = pd.DataFrame(
    {
        "age": RNG.uniform(20, 90, N),
        "creatinine": RNG.lognormal(0.0, 0.3, N),
        "seen": pd.to_datetime("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, N), unit="D"),
        "ward": RNG.choice(["A", "B"], N),
    }
)
Y = (TABLE["age"] > 55).to_numpy()
SCHEMA = {"age": [0, 120], "creatinine": "number", "seen": "date", "ward": ["A", "B"]}


@pytest.fixture(scope="module")
def model():
    model = PrivateTableClassifier(classes=[False, True], schema=SCHEMA, random_state=0)
    return model.fit(TABLE, Y)


def test_the_same_units_are_plausible(model):
    assert check_units(model, TABLE[:50]) == ()
    assert check_units(model, TABLE[:0]) == ()
    assert check_units(model, TABLE.assign(creatinine=np.nan)) == ()


def test_other_units_are_named(model):
    other = TABLE[:50].assign(creatinine=TABLE["creatinine"] * 88.4, age=TABLE["age"] * 365)
    found = check_units(model, other)
    assert [finding.column for finding in found] == ["age", "creatinine"]
    assert found[0] == UnitFinding("age", found[0].median, (0.0, 120.0))
    assert found[1].median == pytest.approx(float(np.median(other["creatinine"])))
    assert "column 'creatinine': the median" in str(found[1])
    late = TABLE[:50].assign(seen="2124-01-01")
    (finding,) = check_units(model, late)
    assert finding.column == "seen"
    assert re.fullmatch(
        r"column 'seen': the median 2124-01-01 of the new rows lies outside of \d{4}-\d\d-\d\d to "
        r"\d{4}-\d\d-\d\d; is it read in the format of the training data\?",
        str(finding),
    )
    beyond = UnitFinding("seen", 4e6, (-1e6, 18_262.4), is_date=True)
    assert "4e+06 days after 1970 of the new rows" in str(beyond)
    assert "outside of -1e+06 days after 1970 to 2020-01-01" in str(beyond)


def test_nothing_of_the_fit_but_what_was_released_is_compared(model):
    ends = {f.column: f.expected for f in check_units(model, TABLE.assign(creatinine=1e6))}
    place = [column.name for column in model.encoding_.numbers].index("creatinine")
    centre, width = model.column_scales_.center[place], model.column_scales_.scale[place]
    assert ends["creatinine"] == (centre - 5.0 * width, centre + 5.0 * width)


def test_a_median_may_be_too_small_and_a_date_has_no_size(model):
    (found,) = check_units(model, TABLE.assign(creatinine=-TABLE["creatinine"] * 88.4))
    assert found.column == "creatinine"
    assert found.median < found.expected[0]
    born = np.datetime64("1970-01-01") + RNG.integers(-15_000, 15_000, N)
    table = pd.DataFrame({"born": born})
    known = PrivateTableClassifier(classes=[False, True], schema={"born": "date"}, random_state=0)
    known.fit(table, born > np.datetime64("1970-01-01"))
    assert known.column_scales_.scale[0] > 5000.0
    assert check_units(known, table.assign(born=np.datetime64("1971-01-01"))) == ()


def test_columns_of_few_rows_have_no_released_units():
    few = PrivateTableClassifier(classes=[False, True], schema=SCHEMA, random_state=0)
    few.fit(TABLE[:200], Y[:200])
    other = TABLE.assign(creatinine=1e6, age=500.0)
    assert [finding.column for finding in check_units(few, other)] == ["age"]


def test_matrices():
    X = TABLE[["age", "creatinine"]].to_numpy()
    linear = AdaptiveMarginClassifier(classes=[False, True], random_state=0).fit(X, Y)
    assert check_units(linear, X) == ()
    assert [f.column for f in check_units(linear, X * [1.0, 88.4])] == ["1"]
    with pytest.raises(ValueError, match="must have the 2 columns"):
        check_units(linear, X[:, :1])
    stated = AdaptiveMarginClassifier(
        margin=0.3, classes=[False, True], data_norm=100.0, random_state=0
    )
    with pytest.raises(ValueError, match="no column scales"):
        check_units(stated.fit(X, Y), X)


@pytest.mark.parametrize("kind", [AdaptiveMarginClassifier, PrivateTableClassifier])
def test_smaller_units_are_named_though_near_zero(kind):
    """In mg/dl creatinine lies within five widths of what it was in umol/l."""
    creatinine, sodium = RNG.lognormal(4.5, 0.45, N), RNG.normal(139, 4, N)
    table = pd.DataFrame({"creatinine": creatinine, "sodium": sodium})
    more = {"schema": dict.fromkeys(table, "number")} if kind is PrivateTableClassifier else {}
    model = kind(classes=[False, True], random_state=0, **more)
    model.fit(table, np.log(table["creatinine"].to_numpy()) > 4.5)
    other = table.assign(creatinine=table["creatinine"] / 88.4)
    assert check_units(model, table) == ()
    (found,) = check_units(model, other)
    assert found.column == "creatinine"
    assert found.expected[0] < found.median < found.expected[1]
    assert found.size == pytest.approx(float(np.quantile(other["creatinine"], 0.9)))
    assert found.size < found.expected_size / 8.0
    assert check_units(model, table.assign(creatinine=table["creatinine"] / 5.0)) == ()
    assert "are below" in str(found)
    assert "unit of the training data" in str(found)
    assert check_units(model, other[:19]) == ()
    mostly_zero = table.assign(creatinine=np.where(np.arange(N) % 3, 0.0, 1.0))
    assert check_units(model, mostly_zero) == ()
