"""Pictures of what a fitted model makes of single columns: curves of released numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._sklearn import column_names
from dp_halfspace.inspection.displays import COLORS, axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["AdditiveDisplay", "ColumnEffect"]

_POINTS = 101


@dataclass(frozen=True, slots=True)
class ColumnEffect:
    """What one column adds to the scores, the others being in the middle of their ranges.

    Attributes
    ----------
    name : str
        Of the column.
    values : ndarray of shape (n_points,)
        Of the column, in the units of the data.
    effects : ndarray of shape (n_points, n_scores)
        Scores less those of the middle of all ranges: one column of them for two classes, else
        one for each class.
    """

    name: str
    values: NDArray[np.float64]
    effects: NDArray[np.float64]


class AdditiveDisplay:
    """The effect of every column on the scores of a model, as curves.

    Parameters
    ----------
    columns : sequence of ColumnEffect
        The numbers to draw.
    classes : array-like of labels
        Of the scores: the second label only, for two classes.

    Attributes
    ----------
    columns : tuple of ColumnEffect
        The numbers.
    classes : tuple
        Labels of the curves.
    ax_ : ndarray of matplotlib Axes of shape (n_columns,)
        The axes drawn into; set by `plot`.
    figure_ : matplotlib Figure
        The figure drawn into; set by `plot`.

    See Also
    --------
    AdditiveDisplay.from_estimator : Build one from a fitted model.

    Notes
    -----
    Privacy: curves are functions of released coefficients and of public ranges, so they cost
    nothing and may be published. A model with ``kernel="additive"`` is the sum of its curves;
    of other models they show single columns while the others are in the middle.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace import PrivateKernelClassifier
    >>> from dp_halfspace.inspection import AdditiveDisplay
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 2))
    >>> model = PrivateKernelClassifier("additive", data_norm=2**0.5, classes=[False, True])
    >>> model = model.fit(X, np.abs(X[:, 0]) > 0.5)
    >>> display = AdditiveDisplay.from_estimator(model, [[-1, 1], [-1, 1]])
    >>> first, second = (column.effects for column in display.columns)
    >>> bool(np.ptp(first) > 2 * np.ptp(second))
    True
    """

    def __init__(self, columns: Sequence[ColumnEffect], classes: Sequence[Any]) -> None:
        self.columns = tuple(columns)
        self.classes = tuple(classes)

    @classmethod
    def from_estimator(cls, model: Any, ranges: ArrayLike) -> AdditiveDisplay:
        """Read the curves of a fitted model.

        Parameters
        ----------
        model : classifier
            Fitted, with a ``decision_function``.
        ranges : array-like of shape (n_features, 2)
            PUBLIC lower and upper end of what is shown of each column. Never the extremes of
            the data.

        Returns
        -------
        AdditiveDisplay
            A display with one curve, or one for each class, to a column.

        Raises
        ------
        ValueError
            If there is not one range for each column.
        """
        check_is_fitted(model)
        ends = np.asarray(ranges, dtype=np.float64)
        n_features = int(model.n_features_in_)
        if ends.shape != (n_features, 2) or not np.isfinite(ends).all():
            raise ValueError(f"ranges must be {n_features} pairs of finite numbers")
        names = column_names(model)
        middle = ends.mean(axis=1)
        centre = _scores(model, middle[None, :])
        columns = []
        for j, name in enumerate(names):
            values = np.linspace(float(ends[j, 0]), float(ends[j, 1]), _POINTS)
            rows = np.tile(middle, (_POINTS, 1))
            rows[:, j] = values
            columns.append(ColumnEffect(str(name), values, _scores(model, rows) - centre))
        return cls(columns, model.classes_[1:] if centre.shape[1] == 1 else model.classes_)

    def plot(
        self, ax: Axes | Sequence[Axes] | None = None, *, figure: Figure | None = None
    ) -> AdditiveDisplay:
        """Draw every curve, on one scale.

        Parameters
        ----------
        ax : matplotlib Axes, sequence of Axes, or None, default=None
            Axes to draw into, one for each column.
        figure : matplotlib Figure or None, default=None
            Figure to add axes to when `ax` is None. None makes a new one with pyplot.

        Returns
        -------
        AdditiveDisplay
            The display itself, with `ax_` and `figure_` set.

        Raises
        ------
        ImportError
            If matplotlib is needed and not installed.
        ValueError
            If the number of axes is not the number of columns.
        """
        axes = axes_for(len(self.columns), "columns", ax, figure)
        highest = 1.05 * max(float(np.abs(column.effects).max()) for column in self.columns)
        for axis, column in zip(axes, self.columns, strict=True):
            for k, label in enumerate(self.classes):
                axis.plot(
                    column.values, column.effects[:, k], color=COLORS[k % len(COLORS)], label=label
                )
            axis.set_xlabel(column.name)
            axis.set_ylim(-highest or -1.0, highest or 1.0)
            axis.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
            axis.spines[["top", "right"]].set_visible(False)
        axes[0].set_ylabel("effect on the score")
        if len(self.classes) > 1:
            axes[-1].legend(frameon=False)
        self.ax_ = np.array(axes, dtype=object)
        self.figure_ = axes[0].figure
        return self


def _scores(model: Any, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scores of shape (n, n_scores)."""
    return np.asarray(model.decision_function(rows)).reshape(len(rows), -1)
