"""The benchmark of the risk bounds runs, and no measured mean is above its bound."""

import pytest

from benchmarks import risk_bounds
from benchmarks.cells import read


@pytest.mark.slow
def test_runs_and_stays_below_the_bounds(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(risk_bounds, "SIZES", (100, 1000))
    monkeypatch.setattr(risk_bounds, "TILTS", (0.0, 1.0))
    monkeypatch.setattr(risk_bounds, "RADII", (0.01, 0.1))
    out, picture = tmp_path / "bounds.json", tmp_path / "bounds.svg"
    what = ["--samples", "3", "--draws", "20", "--out", str(out), "--picture", str(picture)]
    risk_bounds.main(what)
    cells = read(out)["cells"]
    assert set(cells) == set(risk_bounds.PANELS)
    for found in cells.values():
        assert all(0 < m <= b for m, b in zip(found["measured"], found["bound"], strict=True))
    assert "<svg" in picture.read_text()
    assert "published" in capsys.readouterr().out
