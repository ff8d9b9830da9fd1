"""Pictures of accuracy against the privacy budget.

A display holds numbers; matplotlib is imported only when it is asked to draw.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["AccuracyPanel", "EpsilonAccuracyDisplay"]

# Okabe and Ito's colours can be told apart by readers with any colour vision.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A4FA3", "#8C564B")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_DASHES = ((6, 2), (2, 2), (6, 2, 1, 2), (1, 1))
_COLUMNS = 3


@dataclass(frozen=True, slots=True)
class AccuracyPanel:
    """Accuracies on one data set.

    Attributes
    ----------
    title : str
        Name of the data set.
    curves : dict of str to ndarray of shape (n_budgets, 3)
        For each estimator the columns epsilon, mean accuracy, and standard
        deviation over repetitions, sorted by epsilon.
    references : dict of str to float
        Accuracies that do not depend on a budget, such as the majority class.
    labels_only : frozenset of str, default=frozenset()
        The curves that protect labels and not features; they are drawn dotted with hollow
        markers.
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
            A display with one panel per data set, in order of appearance.

        Raises
        ------
        ValueError
            If there are no results.
        """
        scores: dict[str, dict[str, dict[float | None, list[float]]]] = {}
        weaker = set()
        for row in results:
            name = row["estimator"]
            if row.get("adjacency") == "replace-one-label":
                name = f"{name} (labels only, features public)"
                weaker.add(name)
            budgets = scores.setdefault(row["dataset"], {}).setdefault(name, {})
            budgets.setdefault(row["epsilon"], []).append(row["accuracy"])
        if not scores:
            raise ValueError("There are no results to show.")
        return cls([_panel(title, estimators, weaker) for title, estimators in scores.items()])

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
        ValueError
            If the number of axes is not the number of panels.
        """
        if ax is None:
            figure = _new_figure(len(self.panels)) if figure is None else figure
            axes = _add_axes(figure, len(self.panels))
        else:
            axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
            if len(axes) != len(self.panels):
                raise ValueError(f"{len(self.panels)} panels need as many axes, got {len(axes)}.")
        styles = _styles(name for panel in self.panels for name in panel.curves)
        for axis, panel in zip(axes, self.panels, strict=True):
            _draw(axis, panel, styles)
        for axis in axes[::_COLUMNS]:
            axis.set_ylabel("test accuracy")
        legend = {
            label: handle
            for axis in axes
            for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        if ax is None:
            axes[0].figure.legend(
                legend.values(), legend, loc="outside lower center", ncols=3, frameon=False
            )
        else:
            axes[-1].legend(legend.values(), legend)
        self.ax_ = axes
        self.figure_ = axes[0].figure
        return self


def _panel(
    title: str, estimators: Mapping[str, Mapping[Any, list[float]]], weaker: Collection[str]
) -> AccuracyPanel:
    """Average repetitions and separate curves from reference lines."""
    curves, references = {}, {}
    for name, budgets in estimators.items():
        private = sorted(epsilon for epsilon in budgets if epsilon is not None)
        if private:
            curves[name] = np.array(
                [(e, np.mean(budgets[e]), np.std(budgets[e])) for e in private], dtype=np.float64
            )
        if None in budgets:
            references[name] = float(np.mean(budgets[None]))
    return AccuracyPanel(title, curves, references, frozenset(weaker) & frozenset(curves))


def figure_size(n_panels: int) -> tuple[float, float]:
    """Width and height in inches that suit a number of panels."""
    columns = min(n_panels, _COLUMNS)
    return max(5.0, 4.0 * columns), 3.4 * math.ceil(n_panels / _COLUMNS) + 0.8


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


def _add_axes(figure: Figure, n_panels: int) -> NDArray[np.object_]:
    """Add one axes per panel, in rows of at most three."""
    columns = min(n_panels, _COLUMNS)
    rows = math.ceil(n_panels / columns)
    return np.array(
        [figure.add_subplot(rows, columns, i + 1) for i in range(n_panels)], dtype=object
    )


def _styles(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """One colour and marker per estimator, the same in all panels."""
    unique = dict.fromkeys(names)
    return {
        name: (_COLORS[i % len(_COLORS)], _MARKERS[i % len(_MARKERS)])
        for i, name in enumerate(unique)
    }


def _draw(axis: Axes, panel: AccuracyPanel, styles: Mapping[str, tuple[str, str]]) -> None:
    """Draw one panel."""
    for (name, value), dashes in zip(panel.references.items(), _DASHES * 8, strict=False):
        axis.axhline(value, color="0.35", linewidth=1.3, dashes=dashes, label=name, zorder=1)
    for name, (color, marker) in styles.items():
        if name not in panel.curves:
            continue
        epsilon, mean, spread = panel.curves[name].T
        weaker: dict[str, Any] = (
            {"linestyle": ":", "markerfacecolor": "white"} if name in panel.labels_only else {}
        )
        axis.plot(
            epsilon, mean, color=color, marker=marker, markersize=5, label=name, zorder=3, **weaker
        )
        axis.fill_between(
            epsilon, mean - spread, mean + spread, color=color, alpha=0.12, linewidth=0, zorder=2
        )
    axis.set_title(panel.title)
    axis.set_xlabel("epsilon (privacy budget of one fit)")
    if panel.curves:
        axis.set_xscale("log")
        ticks = np.unique(np.concatenate([curve[:, 0] for curve in panel.curves.values()]))
        axis.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])
        axis.set_xticks([], minor=True)
    axis.grid(axis="y", color="0.9", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
