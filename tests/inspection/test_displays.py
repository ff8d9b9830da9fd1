"""The display keeps the numbers and draws exactly them."""

import sys

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from dp_halfspace import AdaptiveMarginClassifier
from dp_halfspace.inspection import EpsilonAccuracyDisplay
from tests.conftest import separated
from tests.instances import ESTIMATORS
from tests.support import Book

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


def test_the_legend_of_every_classifier_fits_and_no_two_look_alike():
    rows = [row("first", name, 1.0, 0.9) for name in ESTIMATORS]
    for found in rows:
        if found["estimator"] == "LabelPrivateClassifier":
            found["adjacency"] = "replace-one-label"
    display = EpsilonAccuracyDisplay.from_results(rows).plot()
    figure = display.figure_
    figure.canvas.draw()
    box = figure.legends[0].get_window_extent()
    assert 0 <= box.x0 <= box.x1 <= figure.bbox.width
    looks = [
        (line.get_color(), line.get_marker())
        for line in display.ax_[0].get_lines()
        if line.get_marker() != "None"
    ]
    assert len(set(looks)) == len(looks) == len(rows)


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
    with pytest.raises(ImportError, match=r'pip install "\.\[plot\]"'):
        display.plot()


def test_fits_of_an_estimator_at_several_budgets():
    X, y = separated(300, 3)
    book = Book()
    model = AdaptiveMarginClassifier(classes=[0, 1], data_norm=1.0, ledger=book)
    display = EpsilonAccuracyDisplay.from_estimator(
        model, X, y, epsilons=[3.0, 0.5], n_repeats=2, name="rows", random_state=0
    )
    (panel,) = display.panels
    assert panel.title == "rows"
    curve = panel.curves["AdaptiveMarginClassifier"]
    assert curve[:, 0].tolist() == [0.5, 3.0]
    assert curve[1, 1] > 0.7
    assert 0.5 <= panel.references["majority class"] < 0.7
    assert sorted(record.epsilon for record in book.records) == [0.5, 0.5, 3.0, 3.0]
    assert model.epsilon == 1.0
    assert display.plot().ax_.shape == (1,)
    with pytest.raises(ValueError, match="must have a parameter epsilon, which LogisticReg"):
        EpsilonAccuracyDisplay.from_estimator(LogisticRegression(), X, y)
    with pytest.raises(ValueError, match="n_repeats must be a positive integer"):
        EpsilonAccuracyDisplay.from_estimator(model, X, y, n_repeats=0)
