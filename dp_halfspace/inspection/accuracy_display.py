"""A display of accuracy against the privacy budget.

It holds numbers; matplotlib is imported only when it is asked to draw.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from dp_halfspace._html import plain_label
from dp_halfspace._params import checked_size
from dp_halfspace.exceptions import install_hint

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours: readers with any colour vision can distinguish them.
COLORS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A4FA3", "#8C564B"),
    *("#7F7F00", "#B2182B"),
)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "p", "<")
_DASHES = ((6, 2), (2, 2), (6, 2, 1, 2), (1, 1))
# Number of panels in one row.
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
    Privacy: test accuracies are exact functions of the test records. A plot of them is only for
    people who may see these records; publishing it is a release that no budget covers.

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

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        epsilons: Sequence[float] = (0.1, 0.3, 1.0, 3.0),
        n_repeats: int = 3,
        test_size: float = 0.3,
        name: str | None = None,
        random_state: int | None = None,
    ) -> EpsilonAccuracyDisplay:
        """Fit clones at several budgets, and score them on rows that they were not fitted to.

        Parameters
        ----------
        estimator : estimator with a parameter `epsilon`
            Cloned for every fit; its `epsilon` is not used.
        X : array-like of shape (n_samples, n_features)
            Rows of any type that the estimator accepts: a public table, or your own.
        y : array-like of shape (n_samples,)
            Labels.
        epsilons : sequence of float, default=(0.1, 0.3, 1.0, 3.0)
            Budget of every fit.
        n_repeats : int, default=3
            Number of random splits, with a fit for every budget each.
        test_size : float, default=0.3
            Share of the rows that are scored, in (0, 1).
        name : str or None, default=None
            Title of the panel; None is the class of the estimator.
        random_state : int or None, default=None
            Seed of the splits only; the noise is drawn as the estimator specifies.

        Returns
        -------
        EpsilonAccuracyDisplay
            With one panel, and the share of the majority class as a line.

        Raises
        ------
        ValueError, BudgetError
            If an argument is refused, or by a fit.

        Notes
        -----
        **Privacy.** Every fit is charged to the ledger of the estimator, if it has one:
        ``len(epsilons) * n_repeats`` fits. The accuracies are exact functions of the rows, so they
        are only for people who may see these rows.

        Examples
        --------
        >>> from dp_halfspace import AdaptiveMarginClassifier
        >>> from dp_halfspace.datasets import make_halfspace
        >>> from dp_halfspace.inspection import EpsilonAccuracyDisplay
        >>> X, y = make_halfspace(2000, 5, margin=0.2, random_state=0)
        >>> model = AdaptiveMarginClassifier(classes=[-1, 1], data_norm=1.0)
        >>> display = EpsilonAccuracyDisplay.from_estimator(
        ...     model, X, y, epsilons=[0.1, 1.0], n_repeats=1
        ... )
        >>> display.panels[0].curves["AdaptiveMarginClassifier"].shape
        (2, 3)
        """
        from sklearn.model_selection import train_test_split  # noqa: PLC0415 (loads slowly)

        kind = type(estimator).__name__
        if "epsilon" not in getattr(estimator, "get_params", dict)():
            raise ValueError(f"estimator must have a parameter epsilon, which {kind} does not have")
        checked_size("n_repeats", n_repeats)
        title, results = kind if name is None else name, []
        for number in range(n_repeats):
            seed = None if random_state is None else random_state + number
            A, B, a, b = train_test_split(X, y, test_size=test_size, random_state=seed)
            majority = float(np.unique(np.asarray(b), return_counts=True)[1].max() / len(b))
            scores: list[tuple[float | None, str, float]] = [(None, "majority class", majority)]
            for epsilon in epsilons:
                model = clone(estimator).set_params(epsilon=epsilon).fit(A, a)
                scores.append((float(epsilon), kind, float(model.score(B, b))))
            results += [
                {"dataset": title, "estimator": who, "epsilon": epsilon, "accuracy": accuracy}
                for epsilon, who, accuracy in scores
            ]
        return cls.from_results(results)

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
        axes = panel_axes(len(self.panels), "panels", ax, figure)
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
            columns = 3 if len(axes) > 1 else 2
            below: dict[str, Any] = {"loc": "outside lower center", "ncols": columns}
            look: dict[str, Any] = {"frameon": False, "fontsize": "small"}
            axes[0].figure.legend(legend.values(), legend, **below, **look)
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


def panel_axes(
    count: int, what: str, ax: Axes | Sequence[Axes] | None, figure: Figure | None
) -> list[Axes]:
    """Return the given axes, if their number is right, or new ones in rows of at most three."""
    if ax is not None:
        axes = list(np.ravel(np.asarray(ax, dtype=object)))
        if len(axes) != count:
            raise ValueError(f"{count} {what} need as many axes, got {len(axes)}.")
        return axes
    rows, columns = math.ceil(count / _COLUMNS), min(count, _COLUMNS)
    if figure is None:
        try:
            from matplotlib import pyplot  # noqa: PLC0415 (optional dependency)
        except ImportError as error:
            raise ImportError(
                "Drawing needs matplotlib, which is an optional dependency: "
                f"{install_hint('plot')}."
            ) from error
        inches = max(6.0, 4.0 * columns), 3.4 * rows + 0.8
        figure = pyplot.figure(figsize=inches, layout="constrained")
    return [figure.add_subplot(rows, columns, i + 1) for i in range(count)]


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
    axis.set_title(plain_label(panel.title))
    axis.set_xlabel("epsilon (privacy budget of one fit)")
    if panel.curves:
        axis.set_xscale("log")
        ticks = np.unique(np.concatenate([curve[:, 0] for curve in panel.curves.values()]))
        axis.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])
        axis.set_xticks([], minor=True)
    axis.grid(axis="y", color="0.9", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
