"""The display keeps the numbers and draws exactly them."""

import sys

import matplotlib as mpl
import numpy as np
import pytest

from dp_halfspace.inspection import EpsilonAccuracyDisplay

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.figure import Figure


def row(dataset, estimator, epsilon, accuracy):
    return {"dataset": dataset, "estimator": estimator, "epsilon": epsilon, "accuracy": accuracy}


RESULTS = [
    row("first", "majority class", None, 0.6),
    row("first", "A", 1.0, 0.8),
    row("first", "A", 0.1, 0.5),
    row("first", "A", 1.0, 0.9),
    row("first", "B", 1.0, 0.7),
    row("second", "majority class", None, 0.5),
    row("second", "B", 10.0, 0.95),
]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_averages_repetitions_and_sorts_budgets():
    first, second = EpsilonAccuracyDisplay.from_results(iter(RESULTS)).panels
    assert (first.title, second.title) == ("first", "second")
    np.testing.assert_allclose(first.curves["A"], [[0.1, 0.5, 0.0], [1.0, 0.85, 0.05]])
    assert first.references == {"majority class": 0.6}
    assert list(second.curves) == ["B"]


def test_draws_what_it_holds():
    display = EpsilonAccuracyDisplay.from_results(RESULTS)
    assert display.plot() is display
    assert len(display.ax_) == 2
    axis = display.ax_[0]
    lines = {line.get_label(): line for line in axis.get_lines()}
    np.testing.assert_allclose(lines["A"].get_xdata(), [0.1, 1.0])
    np.testing.assert_allclose(lines["A"].get_ydata(), [0.5, 0.85])
    np.testing.assert_allclose(lines["majority class"].get_ydata(), 0.6)
    assert lines["majority class"].get_linestyle() == "--"
    assert axis.get_xscale() == "log"
    assert [text.get_text() for text in axis.get_xticklabels()] == ["0.1", "1"]
    assert axis.get_title() == "first"
    labels = [text.get_text() for text in display.figure_.legends[0].get_texts()]
    assert labels == ["majority class", "A", "B"]
    display.figure_.canvas.draw()


def test_protection_of_labels_only_is_drawn_in_its_own_way():
    weaker = {**row("first", "L", 1.0, 0.9), "adjacency": "replace-one-label"}
    whole = {**row("first", "A", 1.0, 0.9), "adjacency": "replace-one"}
    display = EpsilonAccuracyDisplay.from_results([whole, weaker]).plot()
    (panel,) = display.panels
    assert panel.labels_only == {"L (labels only, features public)"}
    lines = {line.get_label(): line for line in display.ax_[0].get_lines()}
    marked = lines["L (labels only, features public)"]
    assert (marked.get_linestyle(), marked.get_markerfacecolor()) == (":", "white")
    assert lines["A"].get_linestyle() == "-"


def test_takes_axes_and_figures_of_the_user():
    display = EpsilonAccuracyDisplay.from_results(RESULTS)
    figure, axes = plt.subplots(1, 2)
    display.plot(axes)
    assert display.figure_ is figure
    assert axes[1].get_legend() is not None
    own = Figure(layout="constrained")
    display.plot(figure=own)
    assert len(own.axes) == 2
    one = EpsilonAccuracyDisplay(display.panels[:1])
    one.plot(plt.figure().add_subplot())
    with pytest.raises(ValueError, match="2 panels need as many axes, got 1"):
        display.plot(axes[0])


def test_without_matplotlib_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    display = EpsilonAccuracyDisplay.from_results(RESULTS)  # numbers need no matplotlib
    with pytest.raises(ImportError, match=r'pip install "dp-halfspace\[plot\]"'):
        display.plot()
