"""Displays of the effects of single columns on the scores of a model.

A display holds numbers; matplotlib is imported only when it is asked to draw.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._html import plain_label
from dp_halfspace._rounding import EPS
from dp_halfspace._silence import IGNORED_WARNINGS
from dp_halfspace._sklearn_compat import column_names
from dp_halfspace.data.schema import Column
from dp_halfspace.exceptions import optional
from dp_halfspace.preprocessing.scalers import ReleasedScaler
from dp_halfspace.rows.blocks import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Number of simulated rows: those on which the sum of all effects is compared with the score, and
# those of `accuracy_plan`.
SIMULATED_ROWS = 4000
# Points of a curve of one column.
_CURVE_POINTS = 101
# Half the width of a curve of a column whose range was not stated, in its released scale.
HALF_WIDTH = 2.5
# Relative error of the scale by which a column of zeros and ones is known.
_FLAG_TOLERANCE = 0.15
# Largest number of classes, here and in a table whose label set is not stated, and of categories
# of a column that are shown.
MOST_SHOWN_CLASSES = 100
MOST_SHOWN = 1000
# Number of panels in one row of a picture.
PANELS_IN_A_ROW = 3
# Largest number of ticks of an axis of numbers or dates.
_MOST_TICKS = 4
# Largest number of labels of an axis of texts, of letters of a label, and of letters side by side.
_MOST_LABELS = 20
# Standard errors of the noise that a band covers on both sides.
BAND = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class ColumnEffect:
    """Effect of one column on the scores of a row with numbers in the middle and no texts.

    Attributes
    ----------
    name : str
        Name of the column.
    values : ndarray of shape (n_points,)
        Values of the column, in the units of the data, or positions of `labels`.
    effects : ndarray of shape (n_points, n_scores)
        Scores minus those of the row in which numbers and dates are in the middle of what is shown
        of them and other entries are missing: one column for two classes, otherwise one for each.
    labels : tuple of str
        Categories or texts of the column, empty for numbers.
    deviations : ndarray of shape (n_points, n_scores) or None
        Standard errors of the noise in `effects` if there is no effect, where known.
    is_date : bool, default=False
        Whether `values` are days since 1970.
    """

    name: str
    values: NDArray[np.float64]
    effects: NDArray[np.float64]
    labels: tuple[str, ...] = ()
    deviations: NDArray[np.float64] | None = None
    is_date: bool = False

    @property
    def importance(self) -> float:
        """Difference of the largest and the smallest effect, for the score where it is largest."""
        return float(np.ptp(self.effects, axis=0).max())

    @property
    def is_effect(self) -> bool:
        """Whether an effect differs from zero and lies beyond the noise, if that is known."""
        return bool(self.effects.any() and not self.is_noise.all())

    @property
    def is_noise(self) -> NDArray[np.bool_]:
        """Whether each effect is within two standard errors of the noise, if that is known."""
        if self.deviations is None:
            return np.zeros(self.effects.shape, dtype=bool)
        return np.asarray(np.abs(self.effects) <= BAND * self.deviations)


@dataclass(eq=False, repr=False)
class EffectsDisplay:
    """The effect of every column on the scores of a model, as curves.

    Parameters
    ----------
    columns : sequence of ColumnEffect
        The numbers to draw: curves of numbers, dots of categories and texts.
    classes : array-like of labels
        Labels of the scores: the second label only, for two classes.
    explained : ndarray of shape (n_scores,) or None, default=None
        Share of the variance of each score that the sum of all curves explains.

    Attributes
    ----------
    columns : tuple of ColumnEffect
        The numbers.
    classes : tuple
        Labels of the curves.
    explained : ndarray of shape (n_scores,) or None
        Squared correlation of each score with the sum of its curves, over simulated rows: every
        column takes the values that are shown of it, all equally often and independently of the
        others. It is one if the score is a sum of curves; the rest is due to interactions.
    ax_ : ndarray of matplotlib Axes of shape (n_columns,)
        The axes drawn into; set by `plot`.
    figure_ : matplotlib Figure
        The figure drawn into; set by `plot`.

    See Also
    --------
    EffectsDisplay.from_estimator : Build one from a fitted model.

    Notes
    -----
    Privacy: curves are functions of released numbers and of public ranges, so they use no budget
    and may be published. With ``kernel="additive"``, or ``features="additive"`` or ``"linear"`` of
    a table, the score is the sum of its curves, for tables before it becomes log odds; for other
    models `explained` says how much of the score the curves account for. That share refers to
    simulated rows with independent columns. It may differ on the rows of the data, whose columns
    depend on each other; a figure of private rows would be a release.

    The band shows two standard errors of the privacy noise at single points, from released numbers
    alone. It does not include the noise of the column scales or the variation from sampling the
    records. It is there after the default steps on features.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace import PrivateTableClassifier
    >>> from dp_halfspace.inspection import EffectsDisplay
    >>> stage = np.random.default_rng(0).choice(["I", "II", "III"], size=(5000, 1))
    >>> model = PrivateTableClassifier(schema={"0": ["I", "II", "III"]}, classes=[False, True])
    >>> display = EffectsDisplay.from_estimator(model.fit(stage, stage[:, 0] == "III"))
    >>> display.columns[0].labels[int(display.columns[0].effects.argmax())]
    'III'
    >>> list(display.importances)
    ['0']
    """

    columns: Sequence[ColumnEffect]
    classes: Sequence[Any]
    explained: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        self.columns, self.classes = tuple(self.columns), tuple(self.classes)

    @classmethod
    def from_estimator(cls, model: Any) -> EffectsDisplay:
        """Read the effects of a fitted model.

        Columns of numbers are shown on their stated range or around their released centre, or at 0
        and 1 if their released centre and scale are those of a column of zeros and ones. Columns of
        numbers with neither a stated range nor a released scale, of texts, and of more than 1000
        categories are left out.

        Parameters
        ----------
        model : classifier
            Fitted, with a ``decision_function``; of a search the best one is shown.

        Returns
        -------
        EffectsDisplay
            A display with one curve, or one curve for each class, for every column.

        Raises
        ------
        ValueError
            If a model of numbers has no released column scales, or more than 100 classes.
        """
        check_is_fitted(model)
        model = getattr(model, "best_estimator_", model)
        if len(model.classes_) > MOST_SHOWN_CLASSES:
            raise ValueError(
                f"effects are shown of at most {MOST_SHOWN_CLASSES} classes: see coef_ of the model"
            )
        facts = _facts(model)
        grids = list(_grids(facts))
        empty = np.full((1, len(facts)), None, dtype=object)
        for place, cells, column in grids:
            if facts[place][0].is_number:
                empty[0, place] = 0.5 if column.labels else cells[_CURVE_POINTS // 2]
        if not hasattr(model, "encoding_"):
            empty = empty.astype(np.float64)
        columns = [_effect(model, empty, *grid) for grid in grids]
        explained = _explained(model, empty, grids, columns)
        classes = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
        return cls(columns, classes, explained)

    @property
    def importances(self) -> dict[str, float]:
        """The range of every curve by the name of its column, the largest first."""
        found = sorted(self.columns, key=lambda column: -column.importance)
        return {column.name: column.importance for column in found}

    def plot(self, figure: Figure | None = None) -> EffectsDisplay:
        """Draw every curve on one scale; effects within the noise band are grey.

        Parameters
        ----------
        figure : matplotlib Figure or None, default=None
            Figure to add axes to. None makes a new one with pyplot.

        Returns
        -------
        EffectsDisplay
            The display itself, with `ax_` and `figure_` set.

        Raises
        ------
        ValueError
            If there is no curve to draw.
        ImportError
            If matplotlib is needed and not installed.
        """
        if not self.columns:
            raise ValueError("no column has effects to draw: only those with a range have")
        rows = math.ceil(len(self.columns) / PANELS_IN_A_ROW)
        if figure is None:
            pyplot = optional("matplotlib.pyplot", "plot", "drawing")
            figure = pyplot.figure(figsize=(12.0, 3.4 * rows + 0.8), layout="constrained")
        places = range(1, len(self.columns) + 1)
        axes = [figure.add_subplot(rows, PANELS_IN_A_ROW, place) for place in places]
        highest = 1.05 * max(np.abs(column.effects).max() for column in self.columns)
        for axis, column in zip(axes, self.columns, strict=True):
            for k, label in enumerate(self.classes):
                _draw_effect(axis, column, k, f"C{k}", plain_label(label))
            _set_ticks(axis, column)
            axis.set_xlabel(plain_label(column.name))
            axis.set_ylim(-highest or -1.0, highest or 1.0)
            axis.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
        axes[0].set_ylabel("effect on the score")
        if len(self.classes) > 1:
            axes[-1].legend(frameon=False)
        self.ax_, self.figure_ = np.array(axes, dtype=object), figure
        return self


# A column, its released centre and scale, and whether they are known.
_Fact: TypeAlias = tuple[Column, float, float, bool]
# Its place in a row, the cells that are shown, and the effect to be filled in.
_Grid: TypeAlias = tuple[int, Any, ColumnEffect]


def _facts(model: Any) -> list[_Fact]:
    scales = getattr(model, "scaler_", None)
    if hasattr(model, "encoding_"):
        columns, scales = model.encoding_.columns, model.column_scales_
        released = model._columns_in_estimated_scales
    elif isinstance(scales, ReleasedScaler):
        scales = scales._typical()
        columns = [Column(str(name), "number") for name in column_names(model)]
        released = {column.name for column in columns}
    else:
        raise ValueError(
            "curves need released column scales, or the ranges of a PrivateTableClassifier"
        )
    pairs = zip(np.asarray(scales.center).tolist(), np.asarray(scales.scale).tolist(), strict=True)
    return [
        (column, *(next(pairs) if column.is_number else (0.0, 0.0)), column.name in released)
        for column in columns
    ]


def _grids(facts: Sequence[_Fact]) -> Iterator[_Grid]:
    """Yield what is shown of each column."""
    for place, (column, centre, scale, is_released) in enumerate(facts):
        ends, is_date = (column.low, column.high), column.kind == "date"
        labels: tuple[str, ...] = ()
        if is_released and not is_date and is_flag(centre, scale, ends):
            labels = ("0", "1")
        elif not column.is_number and len(column.categories) <= MOST_SHOWN:
            labels = tuple(map(str, column.categories))
        values = np.arange(float(len(labels)))
        if column.is_number and not labels and (column.has_range or is_released):
            half = HALF_WIDTH * scale
            low, high = ends if column.has_range else (centre - half, centre + half)
            values = np.linspace(low, high, _CURVE_POINTS)
        if len(values):
            cells: Any = values if column.is_number else column.categories
            shown = _dates(values) if is_date else cells
            nothing = np.zeros((len(values), 1))
            yield place, shown, ColumnEffect(column.name, values, nothing, labels, is_date=is_date)


def _effect(
    model: Any, empty: NDArray[Any], place: int, cells: Any, column: ColumnEffect
) -> ColumnEffect:
    """Return the effects of a column, one row for each cell; others are as in the empty row."""
    rows = np.repeat(empty, len(cells) + 1, axis=0)
    rows[1:, place] = cells
    scores = _scores(model, rows)
    return replace(column, effects=scores[1:] - scores[:1], deviations=_deviations(model, rows))


def _deviations(model: Any, rows: NDArray[Any]) -> FloatArray | None:
    """Return standard errors of the scores of rows, compared with the first one, if known."""
    is_table = hasattr(model, "encoding_")
    inner = model.model_ if is_table else model
    if not hasattr(inner, "coef_axes_"):
        return None
    with IGNORED_WARNINGS:
        checked = model._checked_rows(rows)
        scaled = inner._checked_rows(model._in_scales(checked)) if is_table else checked
    features = inner._features(inner._scaled_rows(scaled))
    along = (features[1:] - features[0]) @ inner.coef_axes_
    errors = np.sqrt(np.square(along) @ np.square(inner.coef_axis_std_error_).T)
    if not is_table:
        return np.asarray(errors)
    # The slopes of log odds at the first row, over the size of the noise in each score, but not
    # over less than the usual step of a central difference.
    middle = inner.decision_function(scaled[:1]).reshape(1, -1)
    sizes = np.diag(np.maximum(np.sqrt(np.square(errors).mean(axis=0)), np.cbrt(EPS)))
    ends = [
        model._odds_of(scores[:, 0] if len(sizes) == 1 else scores).reshape(len(sizes), -1)
        for scores in (middle + sizes, middle - sizes)
    ]
    slopes = (ends[0] - ends[1]) / (2.0 * np.diag(sizes)[:, None])
    # The mean of the noise over several classes is subtracted in scores, and cancels in log odds.
    whole = 1.0 if len(sizes) == 1 else len(sizes) / (len(sizes) - 1.0)
    return np.asarray(np.sqrt(whole * np.square(errors) @ np.square(slopes)))


def _explained(
    model: Any, empty: NDArray[Any], grids: Sequence[_Grid], columns: Sequence[ColumnEffect]
) -> FloatArray:
    """Return how much of each score is explained by the effects of all columns together.

    The scores are those of simulated rows, in which columns take their displayed values
    independently and equally often. No data row is read, and no effect has to be interpolated.
    """
    rng = np.random.default_rng(0)
    rows = np.repeat(empty, SIMULATED_ROWS, axis=0)
    total = np.zeros((SIMULATED_ROWS, 1))
    for column, (place, shown, _) in zip(columns, grids, strict=True):
        picked = rng.integers(len(shown), size=SIMULATED_ROWS)
        rows[:, place] = [shown[k] for k in picked]
        total = total + column.effects[picked]
    scores = _scores(model, rows)
    total = total - total.mean(axis=0)
    scores = scores - scores.mean(axis=0)
    squares = np.square(total).sum(axis=0) * np.square(scores).sum(axis=0)
    return np.asarray(np.square((total * scores).sum(axis=0)) / np.maximum(squares, 1e-300))


def is_flag(centre: float, scale: float, ends: tuple[float, float]) -> bool:
    """Return whether a column consists of zeros and ones, judging by what was released of it.

    No other column between 0 and 1 with the same mean has as large a standard deviation.
    """
    if ends not in ((-math.inf, math.inf), (0.0, 1.0)) or not 0.0 < centre < 1.0:
        return False
    deviation = math.sqrt(centre * (1.0 - centre))
    return abs(scale - deviation) <= _FLAG_TOLERANCE * deviation


def _dates(days: NDArray[np.float64]) -> list[Any]:
    """Return dates, which a column with any format can read."""
    return list(np.rint(days * 86400.0).astype("datetime64[s]"))


def _draw_effect(axis: Axes, column: ColumnEffect, score: int, color: str, label: str) -> None:
    """Draw the effects on one score; effects within the noise band are grey."""
    style, effects = "o" if column.labels else "-", column.effects[:, score]
    values = _dates(column.values) if column.is_date else column.values
    line: dict[str, Any] = {"color": color, "label": label}
    if column.deviations is None:
        axis.plot(values, effects, style, **line)
        return
    band, is_noise = BAND * column.deviations[:, score], column.is_noise[:, score]
    shade: dict[str, Any] = {"color": "0.5", "alpha": 0.15, "linewidth": 0, "zorder": 1}
    if column.labels:
        axis.errorbar(values, np.zeros_like(band), band, fmt="none", ecolor="0.8", elinewidth=5)
    else:
        axis.fill_between(values, -band, band, **shade)
    axis.plot(values, effects, style, color="0.6")
    axis.plot(values, np.where(is_noise, np.nan, effects), style, **line)


def _set_ticks(axis: Axes, column: ColumnEffect) -> None:
    """Label the values of a column without overlapping labels."""
    from matplotlib import dates, ticker  # noqa: PLC0415 (optional dependency)

    if column.is_date:
        untyped: Any = dates
        locator = untyped.AutoDateLocator(minticks=2, maxticks=_MOST_TICKS)
        axis.xaxis.set_major_locator(locator)
        axis.xaxis.set_major_formatter(untyped.ConciseDateFormatter(locator))
    elif column.labels:
        step = -(-len(column.labels) // _MOST_LABELS)
        shown = [plain_label(label)[:_MOST_LABELS] for label in column.labels[::step]]
        is_short = len("".join(shown)) <= _MOST_LABELS
        turned: dict[str, Any] = {} if is_short else {"rotation": 90, "fontsize": "xx-small"}
        axis.set_xticks(column.values[::step], shown, **turned)
    else:
        axis.xaxis.set_major_locator(ticker.MaxNLocator(_MOST_TICKS))
        # With few characters: 250k for 250,000.
        axis.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))


def _scores(model: Any, rows: NDArray[Any]) -> NDArray[np.float64]:
    # The columns of these rows are in the order of the fit; there is a warning that they have no
    # names.
    with IGNORED_WARNINGS:
        return np.asarray(model.decision_function(rows)).reshape(len(rows), -1)
