"""Pictures of accuracy against the privacy budget.

A display holds numbers; matplotlib is imported only when it is asked to draw.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._html import drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours can be told apart by readers with any colour vision.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A4FA3", "#8C564B")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_DASHES = ((6, 2), (2, 2), (6, 2, 1, 2), (1, 1))
_COLUMNS = 3
_LABELS_ONLY = " (labels only, features public)"


@dataclass(frozen=True, slots=True)
class AccuracyPanel:
    """Accuracies on one data set.

    Attributes
    ----------
    title : str
        Name of the data set.
    curves : dict of str to ndarray of shape (n_budgets, 3)
        Epsilon, mean accuracy, and standard deviation over repetitions, sorted by epsilon.
    references : dict of str to float
        Accuracies that do not depend on a budget, such as the majority class.
    labels_only : frozenset of str, default=frozenset()
        Curves that protect labels and not features; drawn dotted with hollow markers.
    """

    title: str
    curves: Mapping[str, NDArray[np.float64]]
    references: Mapping[str, float]
    labels_only: frozenset[str] = frozenset()


class EpsilonAccuracyDisplay:
    """Accuracy against epsilon, one panel per data set.

    Parameters
    ----------
    panels : sequence of AccuracyPanel
        The numbers to draw.

    Attributes
    ----------
    panels : tuple of AccuracyPanel
        The numbers.
    ax_ : ndarray of matplotlib Axes of shape (n_panels,)
        The axes drawn into; set by `plot`.
    figure_ : matplotlib Figure
        The figure drawn into; set by `plot`.

    See Also
    --------
    EpsilonAccuracyDisplay.from_results : Build one from a list of scores.

    Notes
    -----
    Privacy: test accuracies are exact functions of the test records. A picture of
    them is for whoever holds the data; publishing it is a release of its own.

    Examples
    --------
    >>> from dp_halfspace.inspection import EpsilonAccuracyDisplay
    >>> display = EpsilonAccuracyDisplay.from_results([
    ...     {"dataset": "toy", "estimator": "A", "epsilon": 0.1, "accuracy": 0.7},
    ...     {"dataset": "toy", "estimator": "A", "epsilon": 1.0, "accuracy": 0.9},
    ...     {"dataset": "toy", "estimator": "majority", "epsilon": None, "accuracy": 0.5},
    ... ])
    >>> [float(epsilon) for epsilon in display.panels[0].curves["A"][:, 0]]
    [0.1, 1.0]
    """

    def __init__(self, panels: Sequence[AccuracyPanel]) -> None:
        self.panels = tuple(panels)

    @classmethod
    def from_results(cls, results: Iterable[Mapping[str, Any]]) -> EpsilonAccuracyDisplay:
        """Collect scores into panels.

        Parameters
        ----------
        results : iterable of mappings
            One per fit, with the keys "dataset", "estimator", "accuracy" and
            "epsilon"; an epsilon of None marks a reference line. Repetitions are
            averaged. The key "adjacency" is optional: the name of a curve of
            "replace-one-label" says "(labels only, features public)". Other keys are ignored.

        Returns
        -------
        EpsilonAccuracyDisplay
            With one panel per data set, in order of appearance.
        """
        by_title: dict[str, dict[str, dict[float | None, list[float]]]] = {}
        for row in results:
            weaker = row.get("adjacency") == "replace-one-label"
            name = row["estimator"] + (_LABELS_ONLY if weaker else "")
            budgets = by_title.setdefault(row["dataset"], {}).setdefault(name, {})
            budgets.setdefault(row["epsilon"], []).append(row["accuracy"])
        if not by_title:
            raise ValueError("There are no results to show.")
        return cls([_panel(title, scores) for title, scores in by_title.items()])

    def plot(
        self, ax: Axes | Sequence[Axes] | None = None, *, figure: Figure | None = None
    ) -> EpsilonAccuracyDisplay:
        """Draw every panel.

        Parameters
        ----------
        ax : matplotlib Axes, sequence of Axes, or None, default=None
            Axes to draw into, one per panel; the last one gets the legend.
        figure : matplotlib Figure or None, default=None
            Figure to add axes to when `ax` is None; its layout should be
            "constrained". None makes a new one with pyplot.

        Returns
        -------
        EpsilonAccuracyDisplay
            The display itself, with `ax_` and `figure_` set.

        Raises
        ------
        ImportError
            If matplotlib is needed and not installed.
        """
        axes = axes_for(len(self.panels), "panels", ax, figure)
        names = dict.fromkeys(name for panel in self.panels for name in panel.curves)
        styles = dict(zip(names, cycle(zip(COLORS, _MARKERS, strict=True)), strict=False))
        legend: dict[str, Any] = {}
        for axis, panel in zip(axes, self.panels, strict=True):
            _draw(axis, panel, styles)
            handles, labels = axis.get_legend_handles_labels()
            legend.update(zip(labels, handles, strict=True))
        for axis in axes[::_COLUMNS]:
            axis.set_ylabel("test accuracy")
        if ax is None:
            below: dict[str, Any] = {"loc": "outside lower center", "ncols": 3, "frameon": False}
            axes[0].figure.legend(legend.values(), legend, **below)
        else:
            axes[-1].legend(legend.values(), legend)
        self.ax_ = np.array(axes, dtype=object)
        self.figure_ = axes[0].figure
        return self


def _panel(title: str, scores: Mapping[str, Mapping[Any, list[float]]]) -> AccuracyPanel:
    """Average repetitions and separate curves from reference lines."""
    curves, references = {}, {}
    for name, budgets in scores.items():
        private = sorted(epsilon for epsilon in budgets if epsilon is not None)
        if private:
            curves[name] = np.array(
                [(e, np.mean(budgets[e]), np.std(budgets[e])) for e in private], dtype=np.float64
            )
        if None in budgets:
            references[name] = float(np.mean(budgets[None]))
    weaker = frozenset(name for name in curves if name.endswith(_LABELS_ONLY))
    return AccuracyPanel(title, curves, references, weaker)


def figure_size(n_panels: int) -> tuple[float, float]:
    """Width and height in inches that suit a number of panels."""
    columns = min(n_panels, _COLUMNS)
    return max(5.0, 4.0 * columns), 3.4 * math.ceil(n_panels / _COLUMNS) + 0.8


def axes_for(
    count: int, what: str, ax: Axes | Sequence[Axes] | None, figure: Figure | None
) -> list[Axes]:
    """Return the given axes, if there are as many, or new ones in rows of at most three."""
    if ax is None:
        figure = _new_figure(count) if figure is None else figure
        rows, columns = math.ceil(count / _COLUMNS), min(count, _COLUMNS)
        return [figure.add_subplot(rows, columns, i + 1) for i in range(count)]
    axes = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(axes) != count:
        raise ValueError(f"{count} {what} need as many axes, got {len(axes)}.")
    return axes


def _new_figure(n_panels: int) -> Figure:
    """Make a figure that pyplot shows."""
    try:
        from matplotlib import pyplot  # noqa: PLC0415 (optional dependency)
    except ImportError as error:
        raise ImportError(
            "Drawing needs matplotlib, which is an optional dependency: "
            'pip install "dp-halfspace[plot]".'
        ) from error
    return pyplot.figure(figsize=figure_size(n_panels), layout="constrained")


def _draw(axis: Axes, panel: AccuracyPanel, styles: Mapping[str, tuple[str, str]]) -> None:
    """Draw one panel, each estimator in its own colour and marker."""
    for (name, value), dashes in zip(panel.references.items(), cycle(_DASHES), strict=False):
        axis.axhline(value, color="0.35", linewidth=1.3, dashes=dashes, label=name, zorder=1)
    for name, (color, marker) in styles.items():
        if name not in panel.curves:
            continue
        epsilon, mean, spread = panel.curves[name].T
        line: dict[str, Any] = {"color": color, "marker": marker, "markersize": 5, "zorder": 3}
        if name in panel.labels_only:
            line |= {"linestyle": ":", "markerfacecolor": "white"}
        axis.plot(epsilon, mean, label=name, **line)
        shade: dict[str, Any] = {"color": color, "alpha": 0.12, "linewidth": 0, "zorder": 2}
        axis.fill_between(epsilon, mean - spread, mean + spread, **shade)
    axis.set_title(drawn(panel.title))
    axis.set_xlabel("epsilon (privacy budget of one fit)")
    if panel.curves:
        axis.set_xscale("log")
        ticks = np.unique(np.concatenate([curve[:, 0] for curve in panel.curves.values()]))
        axis.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])
        axis.set_xticks([], minor=True)
    axis.grid(axis="y", color="0.9", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
