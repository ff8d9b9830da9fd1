"""Displays of the effects of single columns on the scores of a model.

A display holds numbers; matplotlib is imported only when it is asked to draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._html import plain_label
from dp_halfspace._params import resolved_delta
from dp_halfspace._repeated_fits import fits_not_counted
from dp_halfspace._silence import IGNORED_WARNINGS
from dp_halfspace._sklearn_compat import column_names, single_blas_thread
from dp_halfspace.data.schema import Column
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.inspection.accuracy_display import COLORS, panel_axes
from dp_halfspace.preprocessing.scalers import ReleasedScaler
from dp_halfspace.privacy.profiles import gdp_epsilon, gdp_mu

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]

# The noise in an effect is estimated by fits to simulated tables that resemble the released model.
# Rows follow the public schema and the released scales, labels the released probabilities, so these
# fits read no private row and use no budget. They differ from each other by their noise only, and
# so do the effects of a column.

# Largest number of rows of a simulated table, and number of simulated rows on which the sum of all
# effects is compared with the score. Instead of more rows, a larger epsilon gives a mean of these
# rows the noise that it would have with more.
_MOST_ROWS = 4000
# Words of a simulated column of strings.
_N_WORDS = 1000


def noise_deviations(
    model: Any, curves: Callable[[Any], list[FloatArray]], n_fits: int
) -> list[FloatArray] | None:
    """Return the standard deviation of the noise in every number of `curves` of a model.

    None if it is not known: without noise, without probabilities, and for a model that was chosen
    from a list, because repeated fits may choose different classifiers.
    """
    known = math.isfinite(model.epsilon) and hasattr(model, "predict_proba")
    if n_fits == 0 or not known or not hasattr(model.model_, "feature_map_"):
        return None
    found = []
    # Warnings of fits to simulated tables do not concern the model.
    with fits_not_counted(), IGNORED_WARNINGS, single_blas_thread():
        X, y, terms = _simulated_table(model)
        # These fits release nothing private, so nothing is charged or announced.
        own = {"ledger": None, "verbose": 0}
        for seed in range(n_fits):
            other = clone(model).set_params(**terms, **own, random_state=seed)
            try:
                other.fit(X, y)
            except BudgetError:
                return None
            other.column_scales_, other.certainty_ = model.column_scales_, model.certainty_
            found.append(curves(other))
    size, sizes = _size(curves(model)), map(_size, found)
    # The steepness of a model as a whole is not an effect of single columns.
    scaled = [
        [size / own * part for part in parts]
        for parts, own in zip(found, sizes, strict=True)
        if own > 0
    ]
    if len(scaled) < n_fits:
        return None
    return [np.std(parts, axis=0, ddof=1) for parts in zip(*scaled, strict=True)]


def _size(curves: list[FloatArray]) -> float:
    """Return the Euclidean norm of all numbers of all curves."""
    return math.sqrt(sum(float(np.square(curve).sum()) for curve in curves))


def _simulated_table(model: Any) -> tuple[NDArray[Any], NDArray[Any], dict[str, Any]]:
    """Return rows, labels, and the parameters of fits with the same noise as the model."""
    n_samples = int(dict(model.privacy_.public)["n_samples"])
    n_rows, rng = min(n_samples, _MOST_ROWS), np.random.default_rng(0)
    columns = model.encoding_.columns
    scales = iter(zip(model.column_scales_.center, model.column_scales_.scale, strict=True))
    X = np.full((n_rows, len(columns)), None, dtype=object)
    for place, column in enumerate(columns):
        if column.kind != "drop":
            X[:, place] = list(_cells(column, n_rows, rng, scales))
    # Columns as simulated, with dates as numbers of days.
    schema = {str(place): _rule(column) for place, column in enumerate(columns)}
    probabilities = model.predict_proba(X).cumsum(axis=1)
    codes = (probabilities < rng.random((n_rows, 1))).sum(axis=1)
    labels = model.classes_[np.minimum(codes, len(model.classes_) - 1)]
    terms = {**_budget(model, n_samples, n_rows), "schema": schema, "classes": model.classes_}
    terms["threshold"] = None
    return X, labels, terms


def _budget(model: Any, n_samples: int, n_rows: int) -> dict[str, float]:
    """Return the budget that gives a mean of `n_rows` rows the noise of a mean of all rows."""
    epsilon, delta = float(model.privacy_.epsilon), resolved_delta(model.delta, n_samples)
    if n_rows < n_samples:
        more = n_samples / n_rows
        epsilon = gdp_epsilon(more * gdp_mu(epsilon, delta), delta) if delta else more * epsilon
    return {"epsilon": epsilon, "delta": delta}


def _cells(
    column: Column, n_rows: int, rng: np.random.Generator, scales: Iterator[tuple[float, float]]
) -> Any:
    """Return entries of a column: normally distributed numbers, or equally frequent categories."""
    if column.is_number:
        centre, scale = next(scales)
        return np.clip(centre + scale * rng.standard_normal(n_rows), column.low, column.high)
    words = column.categories or tuple(f"word {k}" for k in range(_N_WORDS))
    return (words[k] for k in rng.integers(len(words), size=n_rows))


def _rule(column: Column) -> Any:
    """Return the rule of a schema for a simulated column."""
    if column.is_number:
        return [column.low, column.high] if column.has_range else "number"
    return list(column.categories) or column.kind


# Points of a curve of one column.
_POINTS = 101
# Half the width of a curve of a column whose range was not stated, in its released scale.
HALF_WIDTH = 2.5
# Labels of a column of zeros and ones, and the relative error of the scale by which it is known.
_FLAGS = ("0", "1")
_FLAG_TOLERANCE = 0.15
# Largest number of classes, and of categories of a column that are shown without being named.
MOST_CLASSES = 100
MOST_SHOWN = 1000
# Number of letters of all labels of an axis that fit in one line.
_MOST_LETTERS = 24
# Largest number of ticks of an axis of numbers or dates.
_MOST_TICKS = 4
# Largest number of letters of a label.
_LONGEST_LABEL = 18
# Largest number of labels of one axis.
_MOST_LABELS = 20
# Standard deviations of the noise that a band covers on both sides.
BAND = 2.0
_SECONDS_OF_A_DAY = 86400


@dataclass(frozen=True, slots=True)
class ColumnEffect:
    """Effect of one column on the scores, with the others in the middle of their ranges.

    Attributes
    ----------
    name : str
        Name of the column.
    values : ndarray of shape (n_points,)
        Values of the column, in the units of the data, or positions of `labels`.
    effects : ndarray of shape (n_points, n_scores)
        Scores minus the scores in the middle of all ranges: one column for two classes, otherwise
        one for each class.
    labels : tuple of str
        Categories or texts of the column, empty for numbers.
    deviations : ndarray of shape (n_points, n_scores) or None
        Standard deviations of the noise in `effects`, if known.
    is_date : bool, default=False
        Whether `values` are days since 1970.
    explained : ndarray of shape (n_scores,) or None
        Squared correlation of the effect with each score, as in `AdditiveDisplay`.
    """

    name: str
    values: NDArray[np.float64]
    effects: NDArray[np.float64]
    labels: tuple[str, ...] = ()
    deviations: NDArray[np.float64] | None = None
    is_date: bool = False
    explained: NDArray[np.float64] | None = None

    @property
    def importance(self) -> float:
        """Difference of the largest and the smallest effect, for the score where it is largest."""
        return float(np.ptp(self.effects, axis=0).max())

    @property
    def is_noise(self) -> NDArray[np.bool_]:
        """Whether each effect is within two standard deviations of the noise, if that is known."""
        if self.deviations is None:
            return np.zeros(self.effects.shape, dtype=bool)
        return np.asarray(np.abs(self.effects) <= BAND * self.deviations)


class AdditiveDisplay:
    """The effect of every column on the scores of a model, as curves.

    Parameters
    ----------
    columns : sequence of ColumnEffect
        The numbers to draw.
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
        Squared correlation of each score with the sum of its curves, over made-up rows: every
        column takes the values that are shown of it, all equally often and independently of the
        others. It is one of a sum of curves, and the rest is due to interactions.
    ax_ : ndarray of matplotlib Axes of shape (n_columns,)
        The axes drawn into; set by `plot`.
    figure_ : matplotlib Figure
        The figure drawn into; set by `plot`.

    See Also
    --------
    AdditiveDisplay.from_estimator : Build one from a fitted model.

    Notes
    -----
    Privacy: curves are functions of released coefficients and of public ranges, so they use no
    budget and may be published. A model with ``kernel="additive"`` is the sum of its curves; for
    other models they show single columns with the others in the middle of their ranges, and
    `explained` says how much of the score the curves account for. That share refers to simulated
    rows with independent columns. It may differ on the rows of the data, whose columns depend on
    each other; a figure of private rows would be a release.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace import PrivateKernelClassifier
    >>> from dp_halfspace.inspection import AdditiveDisplay
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 2))
    >>> model = PrivateKernelClassifier(kernel="additive", data_norm=2**0.5, classes=[False, True])
    >>> model = model.fit(X, np.abs(X[:, 0]) > 0.5)
    >>> display = AdditiveDisplay.from_estimator(model, [[-1, 1], [-1, 1]])
    >>> first, second = (column.effects for column in display.columns)
    >>> bool(np.ptp(first) > 2 * np.ptp(second))
    True
    >>> display.explained.round(3).tolist()
    [1.0]
    """

    def __init__(
        self,
        columns: Sequence[ColumnEffect],
        classes: Sequence[Any],
        explained: NDArray[np.float64] | None = None,
    ) -> None:
        self.columns = tuple(columns)
        self.classes = tuple(classes)
        self.explained = explained

    @classmethod
    def from_estimator(cls, model: Any, ranges: ArrayLike) -> AdditiveDisplay:
        """Read the curves of a fitted model.

        Parameters
        ----------
        model : classifier
            Fitted, with a ``decision_function``.
        ranges : array-like of shape (n_features, 2)
            PUBLIC lower and upper end of the range that is shown of each column, never the extremes
            of the data. A column with the range [0, 1] is shown at both ends alone if its released
            centre and scale are those of a column of zeros and ones.

        Returns
        -------
        AdditiveDisplay
            A display with one curve, or one curve for each class, for every column.

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
        _refuse_many_classes(model)
        grids = _Grids([], [], [], ends.mean(axis=1)[None, :])
        centre = _scores(model, grids.empty)
        scaler = getattr(model, "scaler_", None)
        for j, name in enumerate(column_names(model)):
            low, high = map(float, ends[j])
            is_two = isinstance(scaler, ReleasedScaler) and is_flag(
                float(np.asarray(scaler.center)[j]), float(np.asarray(scaler.scale)[j]), (low, high)
            )
            values = np.arange(2.0) if is_two else np.linspace(low, high, _POINTS)
            effects = _scores(model, grids.rows_of(values, j)) - centre
            labels = _FLAGS if is_two else ()
            grids.add(ColumnEffect(str(name), values, effects, labels), values, j)
        columns, explained = _explained(model, grids, grids.columns)
        return cls(
            columns, model.classes_[1:] if centre.shape[1] == 1 else model.classes_, explained
        )

    @property
    def importances(self) -> dict[str, float]:
        """The range of every curve by the name of its column, the largest first."""
        found = sorted(self.columns, key=lambda column: -column.importance)
        return {column.name: column.importance for column in found}

    def plot(
        self, ax: Axes | Sequence[Axes] | None = None, *, figure: Figure | None = None
    ) -> AdditiveDisplay:
        """Draw every curve on one scale; effects within the noise band are grey.

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
        axes = panel_axes(len(self.columns), "columns", ax, figure)
        highest = 1.05 * max(float(np.abs(column.effects).max()) for column in self.columns)
        for axis, column in zip(axes, self.columns, strict=True):
            for k, label in enumerate(self.classes):
                _draw_effect(axis, column, k, COLORS[k % len(COLORS)], plain_label(label))
            _set_ticks(axis, column)
            axis.set_xlabel(plain_label(column.name))
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
        Labels of the scores: the second label only, for two classes.

    See Also
    --------
    AdditiveDisplay : Curves of models of numbers; methods and attributes are the same.

    Notes
    -----
    Privacy: effects are functions of released numbers and of the public schema, so they use no
    budget. An effect is the log odds of a row with this entry alone minus the log odds of an empty
    row. With ``features="additive"`` or ``"linear"`` the score before its calibration, an
    increasing curve for two classes, is a sum of curves, one for each column.

    The band shows two standard deviations of the privacy noise at single points. It does not
    include the variation from sampling the records. It comes from fits to simulated tables with
    independent columns. For 8 columns its width was .8 to 1 times that of repeated fits on average,
    and .6 to 1.5 times for single columns.

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
    >>> list(display.importances)
    ['0']
    """

    @classmethod
    def from_estimator(
        cls, model: Any, ranges: Any = None, *, n_noise_fits: int = 0
    ) -> TableEffectsDisplay:
        """Read the effects of a fitted model.

        Parameters
        ----------
        model : PrivateTableClassifier
            Fitted.
        ranges : dict or None, default=None
            PUBLIC ``[low, high]`` of columns of numbers, and lists of texts of columns of texts, by
            name. Columns of numbers that are not named are shown on their stated range or around
            their released centre, or at 0 and 1 if their released centre and scale are those of a
            column of zeros and ones. Columns of numbers with neither a stated range nor a released
            scale, of texts, and of more than 1000 categories, that are not named are left out.
        n_noise_fits : int, default=0
            Number of fits to simulated tables that estimate the noise in every effect, 8 or more
            for bands; 0 for none. There are no bands for a model of a small table, without
            probabilities, or without noise.

        Returns
        -------
        TableEffectsDisplay
            A display with one curve, or one curve for each class, for every column.

        Raises
        ------
        AttributeError
            If the model is not a classifier of tables.
        ValueError
            If the model has more than 100 classes.
        """
        check_is_fitted(model)
        _refuse_many_classes(model)
        if isinstance(n_noise_fits, bool) or n_noise_fits < 0 or n_noise_fits == 1:
            raise ValueError(f"n_noise_fits must be 0 or at least 2, got {n_noise_fits!r}")
        grids = _table_grids(model, dict(ranges or {}))

        def curves(other: Any) -> list[NDArray[np.float64]]:
            middle = _scores(other, grids.empty)
            shown = zip(grids.cells, grids.places, strict=True)
            return [_scores(other, grids.rows_of(*each)) - middle for each in shown]

        found = noise_deviations(model, curves, n_noise_fits)
        deviations: Sequence[Any] = [None] * len(grids.cells) if found is None else found
        columns = [
            replace(column, effects=scores, deviations=deviation)
            for column, scores, deviation in zip(
                grids.columns, curves(model), deviations, strict=True
            )
        ]
        columns, explained = _explained(model, grids, columns)
        is_binary = len(model.classes_) == 2
        return cls(columns, model.classes_[1:] if is_binary else model.classes_, explained)


@dataclass(frozen=True, slots=True)
class _Grids:
    """Columns, the cells that are shown of each, their places in a row, and an empty row."""

    columns: list[ColumnEffect]
    cells: list[Any]
    places: list[int]
    empty: NDArray[Any]

    def add(self, column: ColumnEffect, cells: Any, place: int) -> None:
        """Add a column, which has the position `place` in a row."""
        self.columns.append(column)
        self.cells.append(cells)
        self.places.append(place)

    def rows_of(self, cells: Any, place: int) -> NDArray[Any]:
        """Return one row for each cell of a column; all other cells are those of the empty row."""
        rows = np.repeat(self.empty, len(cells), axis=0)
        rows[:, place] = cells
        return rows


def _refuse_many_classes(model: Any) -> None:
    """Refuse a model whose effects would be too many curves for one axis."""
    if len(model.classes_) > MOST_CLASSES:
        raise ValueError(
            f"effects are shown of at most {MOST_CLASSES} classes, and the model has "
            f"{len(model.classes_)}: compare columns of its coef_"
        )


def _explained(
    model: Any, grids: _Grids, columns: Sequence[ColumnEffect]
) -> tuple[list[ColumnEffect], FloatArray]:
    """Return how much of the scores is explained by each effect, and by all effects together.

    The scores are those of simulated rows, in which columns take their displayed values
    independently and equally often. No data row is read, and no effect has to be interpolated.
    """
    rng = np.random.default_rng(0)
    rows, parts = np.repeat(grids.empty, _MOST_ROWS, axis=0), []
    for column, shown, place in zip(columns, grids.cells, grids.places, strict=True):
        picked = rng.integers(len(shown), size=_MOST_ROWS)
        rows[:, place] = [shown[k] for k in picked]
        parts.append(column.effects[picked])
    scores = _scores(model, rows)
    found = [
        replace(column, explained=_squared_correlation(part, scores))
        for column, part in zip(columns, parts, strict=True)
    ]
    return found, _squared_correlation(sum(parts, np.zeros_like(scores)), scores)


def _squared_correlation(part: FloatArray, scores: FloatArray) -> FloatArray:
    """Return the squared correlations of corresponding columns, or zero if one is constant."""
    part, scores = part - part.mean(axis=0), scores - scores.mean(axis=0)
    squares = np.square(part).sum(axis=0) * np.square(scores).sum(axis=0)
    return np.asarray(np.square((part * scores).sum(axis=0)) / np.maximum(squares, 1e-300))


def _table_grids(model: Any, shown: dict[str, Any]) -> _Grids:
    """Return the rows that a display of a table evaluates; `shown` are public ranges and texts."""
    columns, scales = model.encoding_.columns, model.column_scales_
    numbers = zip(model.encoding_.numbers, scales.center, scales.scale, strict=True)
    released, flags = model._columns_in_estimated_scales, set()
    for column, centre, scale in numbers:
        is_released, ends = column.name in released, (column.low, column.high)
        if column.name in shown:
            continue
        if is_released and column.kind == "number" and is_flag(centre, scale, ends):
            flags.add(column.name)
        elif column.has_range:
            shown[column.name] = ends
        elif is_released:
            shown[column.name] = around(centre, scale)
    grids = _Grids([], [], [], np.full((1, len(columns)), None, dtype=object))
    for j, column in enumerate(columns):
        known = column.categories if len(column.categories) <= MOST_SHOWN else ()
        labels = () if column.is_number else tuple(shown.get(column.name, known))
        labels = _FLAGS if column.name in flags else labels
        values, is_date = np.arange(float(len(labels))), column.kind == "date"
        if column.is_number and column.name in shown:
            low, high = shown[column.name]
            values = np.linspace(float(low), float(high), _POINTS)
        if column.kind == "drop" or not len(values):
            continue
        cells = values if column.is_number and not is_date else labels or _dates(values)
        nothing = np.zeros((len(values), 1))
        effect = ColumnEffect(
            column.name, values, nothing, tuple(map(str, labels)), is_date=is_date
        )
        grids.add(effect, cells, j)
    return grids


def around(centre: float, scale: float) -> tuple[float, float]:
    """Return the range that is shown of a column of which centre and scale were released."""
    return centre - HALF_WIDTH * scale, centre + HALF_WIDTH * scale


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
    return list(np.rint(days * _SECONDS_OF_A_DAY).astype("datetime64[s]"))


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
        shown = [plain_label(label) for label in column.labels[::step]]
        axis.set_xticks(column.values[::step], [_shorten_label(label) for label in shown])
        if sum(map(len, shown)) > _MOST_LETTERS:
            axis.tick_params("x", rotation=90, labelsize="xx-small")
    else:
        axis.xaxis.set_major_locator(ticker.MaxNLocator(_MOST_TICKS))
        axis.xaxis.set_major_formatter(ticker.FuncFormatter(_short_number))


def _shorten_label(label: str) -> str:
    """Return a label short enough to leave room for the plot."""
    return label if len(label) <= _LONGEST_LABEL else f"{label[: _LONGEST_LABEL - 1]}\u2026"


def _short_number(value: float, place: int | None = None) -> str:
    """Write a number with few characters: 250k for 250,000."""
    del place
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):.4g}{letter}"
    return f"{value:.4g}"


def _scores(model: Any, rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return scores of shape (n, n_scores)."""
    # The columns of these rows are in the order of the fit; there is a warning that they have no
    # names.
    with IGNORED_WARNINGS:
        return np.asarray(model.decision_function(rows)).reshape(len(rows), -1)
