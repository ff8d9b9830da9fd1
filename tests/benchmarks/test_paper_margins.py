"""Errors and numbers of records at known margins: small runs, and how an interval is found."""

import pytest

from benchmarks import paper_margins, tables
from benchmarks.cells import read


def test_the_interval_of_a_number_of_records(monkeypatch):
    """From the first interval that begins below a tenth to the first that ends below it."""
    means = {40: 0.3, 80: 0.15, 160: 0.11, 320: 0.09, 640: 0.02, 1280: 0.0}
    monkeypatch.setattr(paper_margins, "SIZES", tuple(means))
    monkeypatch.setattr(
        paper_margins, "errors_of", lambda model, n, *_, **__: {"mean": means[n], "half": 0.06}
    )
    found = paper_margins.enough(lambda margin, d: None, 5, 0.2, 3)
    assert found == {"low": 80, "middle": 320, "high": 640, "fits": 3}
    monkeypatch.setattr(paper_margins, "SIZES", (40, 80))
    found = paper_margins.enough(lambda margin, d: None, 5, 0.2, 3)
    assert found == {"low": 80, "middle": None, "high": None, "fits": 3}
    assert tables._margins_text(found | {"sufficient": 9}) == "more (80 to more); 9"


def test_errors_are_those_of_the_separator():
    """Flipped labels train a model and do not count as errors of it."""

    class Perfect:
        def fit(self, X, y):
            self.w = X.T @ y

        def predict(self, X):
            return (X @ self.w > 0) * 2 - 1

    cell = paper_margins.errors_of(Perfect(), 2000, 3, 0.3, fits=3, flips=0.1)
    assert cell["mean"] == pytest.approx(0.0, abs=0.01)


@pytest.mark.slow
def test_a_small_run_is_measured_printed_and_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(paper_margins, "MARGINS", (0.4,))
    monkeypatch.setattr(paper_margins, "DIMENSIONS", (10, 200, 300))
    monkeypatch.setattr(paper_margins, "EPSILONS", (3.0,))
    monkeypatch.setattr(paper_margins, "SAMPLE_MARGINS", (0.6,))
    monkeypatch.setattr(paper_margins, "SIZES", (40, 160, 640))
    monkeypatch.setattr(
        paper_margins, "LEARNERS", {"Algorithm 1": paper_margins.LEARNERS["Algorithm 1"]}
    )
    out = tmp_path / "margins.json"
    paper_margins.main(["--fits", "2", "--out", str(out), "--pictures", str(tmp_path)])
    found = read(out)
    assert set(found["errors"]["margin"]) == {"Algorithm 5", "full-batch steps"}
    assert set(found["errors"]["columns"]["Algorithm 2"]) == {"200", "300"}  # where it projects
    assert set(found["errors"]["epsilon"]) == {"records", "labels", "labels, Algorithm 4"}
    (cell,) = found["samples"]["margin"]["Algorithm 1"].values()
    assert cell["middle"] <= cell["sufficient"]
    assert cell["fits"] == 2
    assert "records for an error of .1; bound, margin" in capsys.readouterr().out
    for name in ("margin_errors.svg", "margin_samples.svg"):
        assert (tmp_path / name).stat().st_size > 1000
