"""The picture of the README shows the numbers of linear.json, all real data sets of it."""

import json

import pytest

from benchmarks import front_page
from benchmarks.cells import RESULTS

pytest.importorskip("matplotlib")


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    figures = []
    monkeypatch.setattr(front_page, "save", lambda figure, _: figures.append(figure))
    front_page.main(["--picture", str(tmp_path / "accuracy.svg")])
    return figures[0]


def test_every_curve_is_in_the_file(drawn):
    results = json.loads((RESULTS / "linear.json").read_text())
    assert len(drawn.axes) == len(front_page.PANELS)
    for axis, name in zip(drawn.axes, front_page.PANELS, strict=True):
        assert axis.get_title().startswith(name)
        lines = {line.get_label(): line for line in axis.get_lines()}
        for key, (label, *_) in {**front_page.OURS, **front_page.OTHERS}.items():
            cells = results["cells"][name][key]
            shown = dict(zip(*lines[label].get_data(), strict=True))
            assert shown == {float(budget): cell["mean"] for budget, cell in cells.items()}
        for key, (label, _) in front_page.LINES.items():
            assert set(lines[label].get_ydata()) == {results["cells"][name][key]["any"]["mean"]}


def test_no_real_data_set_is_left_out():
    names = json.loads((RESULTS / "linear.json").read_text())["cells"]
    assert {name for name in names if not name.startswith("syn")} == set(front_page.PANELS)


def test_the_axis_shows_the_best_and_the_majority(drawn):
    for axis in drawn.axes:
        low, high = axis.get_ylim()
        for line in axis.get_lines():
            if line.get_label() in {"majority class", "LinearSVC, not private"}:
                assert low < min(line.get_ydata()) < high
            if "defaults" in line.get_label():
                assert low < min(line.get_ydata()) <= max(line.get_ydata()) < high
