"""Pictures of what a fitted model makes of single columns: curves of released numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._html import drawn
from dp_halfspace._sklearn_compat import column_names
from dp_halfspace.inspection.displays import COLORS, axes_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 101
# Of a column of a table whose range was not stated, in its released units.
_REACH = 2.5
# Letters of all labels of an axis that stand beside each other.
_WIDEST = 24


@dataclass(frozen=True, slots=True)
class ColumnEffect:
    """What one column adds to the scores, the others being in the middle of their ranges.

    Attributes
    ----------
    name : str
        Of the column.
    values : ndarray of shape (n_points,)
        Of the column, in the units of the data; positions of `labels`, where there are any.
    effects : ndarray of shape (n_points, n_scores)
        Scores less those of the middle of all ranges: one column of them for two classes, else
        one for each class.
    labels : tuple of str
        Categories or texts of the column, empty for numbers.
    """

    name: str
    values: NDArray[np.float64]
    effects: NDArray[np.float64]
    labels: tuple[str, ...] = ()


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
            style = "o" if column.labels else "-"
            for k, label in enumerate(self.classes):
                color = COLORS[k % len(COLORS)]
                axis.plot(
                    column.values, column.effects[:, k], style, color=color, label=drawn(label)
                )
            if column.labels:
                axis.set_xticks(column.values, [drawn(label) for label in column.labels])
                if sum(map(len, column.labels)) > _WIDEST:
                    axis.tick_params("x", rotation=90, labelsize="xx-small")
            axis.set_xlabel(drawn(column.name))
            axis.set_ylim(-highest or -1.0, highest or 1.0)
            axis.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
            axis.spines[["top", "right"]].set_visible(False)
        axes[0].set_ylabel("effect on the score")
        if len(self.classes) > 1:
            axes[-1].legend(frameon=False)
        self.ax_ = np.array(axes, dtype=object)
        self.figure_ = axes[0].figure
        return self


class TableEffectsDisplay(AdditiveDisplay):
    """The effect of every column of a table on the scores of a `PrivateTableClassifier`.

    Parameters
    ----------
    columns : sequence of ColumnEffect
        The numbers to draw: curves of numbers, dots of categories and texts.
    classes : array-like of labels
        Of the scores: the second label only, for two classes.

    See Also
    --------
    AdditiveDisplay : Curves of models of numbers; methods and attributes are the same.

    Notes
    -----
    Privacy: effects are functions of released numbers and of the public schema, so they cost
    nothing. With ``features="additive"`` or ``"linear"`` the score of a row is that of an empty
    row plus the effects of its entries; otherwise effects are those beside an empty row.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace import PrivateTableClassifier
    >>> from dp_halfspace.inspection import TableEffectsDisplay
    >>> stage = np.random.default_rng(0).choice(["I", "II", "III"], size=(5000, 1))
    >>> model = PrivateTableClassifier(schema={"0": ["I", "II", "III"]}, classes=[False, True])
    >>> display = TableEffectsDisplay.from_estimator(model.fit(stage, stage[:, 0] == "III"))
    >>> display.columns[0].labels[int(display.columns[0].effects.argmax())]
    'III'
    """

    @classmethod
    def from_estimator(cls, model: Any, ranges: Any = None) -> TableEffectsDisplay:
        """Read the effects of a fitted model.

        Parameters
        ----------
        model : PrivateTableClassifier
            Fitted.
        ranges : dict or None, default=None
            PUBLIC ``[low, high]`` of columns of numbers, and lists of texts of columns of texts, by
            name. Columns of numbers that are not named are shown on their stated range or round
            their released centre; columns of texts that are not named are left out.

        Returns
        -------
        TableEffectsDisplay
            A display with one curve, or one for each class, to a column.

        Raises
        ------
        AttributeError
            If the model is none of tables.
        """
        check_is_fitted(model)
        columns, units = model.encoding_.columns, model.units_
        shown = dict(ranges or {})
        for column, centre, unit in zip(
            model.encoding_.numbers, units.center, units.scale, strict=True
        ):
            own = (centre - _REACH * unit, centre + _REACH * unit)
            shown.setdefault(column.name, (column.low, column.high) if column.has_range else own)
        empty = np.full((1, len(columns)), None, dtype=object)
        middle, effects = _scores(model, empty), []
        for j, column in enumerate(columns):
            labels = () if column.is_number else tuple(shown.get(column.name, column.categories))
            values = np.arange(float(len(labels)))
            if column.is_number:
                low, high = shown[column.name]
                values = np.linspace(float(low), float(high), _POINTS)
            if column.kind == "drop" or not len(values):
                continue
            rows = np.repeat(empty, len(values), axis=0)
            rows[:, j] = labels or values
            scores = _scores(model, rows) - middle
            effects.append(ColumnEffect(column.name, values, scores, tuple(map(str, labels))))
        return cls(effects, model.classes_[1:] if middle.shape[1] == 1 else model.classes_)


def _scores(model: Any, rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return scores of shape (n, n_scores)."""
    return np.asarray(model.decision_function(rows)).reshape(len(rows), -1)
