"""Tables of a paper as numbers: every line is there, no measured mean is above its bound."""

import pytest

from benchmarks import paper_tables
from benchmarks.cells import read


@pytest.fixture(scope="module")
def rows():
    return paper_tables.measure(2, 40)


def test_every_line_has_the_order_of_its_table(rows):
    assert [sum(row["table"] == number for row in rows) for number in range(1, 7)] == [
        2, 2, 8, 4, 10, 5,
    ]  # fmt: skip
    by = {(row["table"], row["losses"], row["reference"]): row for row in rows}
    # Table 6, last line: L^2 / mu min(kappa d / (eps n)^2, sqrt(d) / (eps n)).
    smooth = by[6, "strong, smooth", "Corollary 3.2"]
    assert smooth["order"] == pytest.approx(4 / 0.05 * 6.0 * 5 / 1e8)
    # Table 5: the root of d / (eps n), L = 1 and R the norm of the minimiser.
    lines = by[5, "convex", "Corollary C.1"], by[5, "convex", "BST14"]
    assert lines[0]["order"] == pytest.approx(lines[1]["order"] / (5 / 1e4) ** 0.5)


def test_measured_means_are_below_our_bounds_and_those_below_the_theorems(rows):
    ours = [row for row in rows if "ours" in row]
    assert len(ours) == 14
    for row in ours:
        if row["published"] is None:
            assert row["reference"] == "Theorem 5.2"  # false as printed
        else:
            assert row["ours"] < row["published"], row
        # The bounds for smooth losses are almost attained.
        if "measured" in row:
            assert row["measured"] - 3 * row["standard_error"] < row["ours"], row
            assert row["standard_error"] < 0.2 * row["measured"]


def test_a_mean_above_its_bound_is_marked():
    row = {"table": 5, "losses": "strong", "reference": "Corollary 3.2", "order": 1.0}
    row |= {"published": 2.0, "ours": 2.4e-5, "standard_error": 1e-6, "runtime": None}
    below = paper_tables.table([row | {"measured": 2.3e-5}])
    assert "2.3e-05 ± 1e-06 |" in below
    assert "above" not in below
    above = paper_tables.table([row | {"measured": 2.5e-5}])
    assert "2.5e-05 ± 1e-06 *" in above
    assert above.endswith("in standard errors: Corollary 3.2: 1.0")


@pytest.mark.slow
def test_quick_mode_writes_nothing_and_prints_the_lines(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(paper_tables, "LINES", paper_tables.LINES[-2:])
    monkeypatch.setattr(paper_tables, "SAMPLES", 2)
    out = tmp_path / "tables.json"
    paper_tables.main(["--quick", "--out", str(out)])
    assert "Corollary 3.2" in capsys.readouterr().out
    assert not out.exists()
    picture = tmp_path / "tables.svg"
    paper_tables.main(["--out", str(out), "--picture", str(picture)])
    first = picture.read_text()
    paper_tables.main(["--draw", "--out", str(out), "--picture", str(picture)])
    assert picture.read_text() == first
    assert "Corollary 3.2" in first
    assert [row["reference"] for row in read(out)["lines"]] == ["ZZMW17", "Corollary 3.2"]
