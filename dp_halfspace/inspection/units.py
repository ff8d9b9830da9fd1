"""New rows beside the units of a model: columns that may have come in another unit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dp_halfspace.data.encoding import read_numbers
from dp_halfspace.data.frame import FloatArray, read_column, read_frame

# Widths of a column between its centre and a median that is no longer plausible: more than half
# of the rows of the fit lay within about one.
_FAR = 5.0


@dataclass(frozen=True)
class UnitFinding:
    """A column of new rows whose median lies far outside of what the model has released.

    Attributes
    ----------
    column : str
        Its name, or its position.
    median : float
        Of the new rows, in their own unit: it is private if these rows are.
    expected : tuple of float
        Where a median would be plausible, in the units of the fit.
    """

    column: str
    median: float
    expected: tuple[float, float]

    def __str__(self) -> str:
        low, high = self.expected
        return (
            f"column {self.column!r}: the median {self.median:.4g} of the new rows lies outside of "
            f"{low:.4g} to {high:.4g}; is it in the unit of the training data?"
        )


def check_units(model: Any, X: Any) -> tuple[UnitFinding, ...]:
    """Name the columns of new rows that may be in other units than those of the fit.

    Parameters
    ----------
    model : estimator object
        A fitted classifier with learnt or stated column scales: a `PrivateTableClassifier`, or a
        classifier of numbers with a ``scaler_``.
    X : data frame or array-like of shape (n_samples, n_features)
        New rows of your own, as for ``predict``. Missing values do not count.

    Returns
    -------
    tuple of UnitFinding
        A column with a range is named if the median of its new rows is beyond an end; another one
        if it is more than five widths from the released centre. Empty if all are plausible.

    Raises
    ------
    ValueError
        If the model has no scales of columns to compare with.

    Notes
    -----
    **Privacy.** Of the training rows only what was released or stated is used, so nothing is
    spent. The result is computed without noise from the new rows: it is **not private for them**,
    and is for whoever may see these rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace import PrivateTableClassifier
    >>> from dp_halfspace.inspection import check_units
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0.5, 1.5, size=(4000, 1))  # creatinine in mg/dl
    >>> model = PrivateTableClassifier(schema={"0": [0, 15]}, classes=[False, True])
    >>> model = model.fit(X, X[:, 0] > 1)
    >>> for finding in check_units(model, 88.4 * X[:100]):  # the same in umol/l
    ...     print(finding.column, finding.expected)
    0 (0.0, 15.0)
    """
    check_is_fitted(model)
    if hasattr(model, "encoding_"):
        names, values, low, high = _of_table(model, X)
    else:
        names, values, low, high = _of_numbers(model, X)
    findings = []
    for name, column, *ends in zip(names, values, low.tolist(), high.tolist(), strict=True):
        known = column[~np.isnan(column)]
        median = float(np.median(known)) if len(known) else math.nan
        if median < ends[0] or median > ends[1]:
            findings.append(UnitFinding(name, median, (ends[0], ends[1])))
    return tuple(findings)


_Columns = tuple[list[str], list[FloatArray], FloatArray, FloatArray]


def _of_table(model: Any, X: Any) -> _Columns:
    """Return names, values and plausible ends of the columns of numbers of a table."""
    encoding, units, frame = model.encoding_, model.units_, read_frame(X)
    columns = encoding.numbers
    learnt = set(map(str, dict(model.privacy_.public)["private_units"]))
    positions = encoding.positions(frame)
    place = dict(zip((column.name for column in encoding.columns), positions, strict=True))
    values = [
        read_numbers(read_column(frame.columns[place[column.name]]), column) for column in columns
    ]
    # The ends of a column without a range are infinite, and stay so where nothing was learnt.
    low, high = (np.array([getattr(c, end) for c in columns]) for end in ("low", "high"))
    is_far = np.array([not c.has_range and c.name in learnt for c in columns], dtype=bool)
    near = _far(units.center, units.scale)
    low, high = np.where(is_far, near[0], low), np.where(is_far, near[1], high)
    return [column.name for column in columns], values, low, high


def _of_numbers(model: Any, X: Any) -> _Columns:
    """Return names, values and plausible ends of the columns of a matrix."""
    scaler: Any = getattr(model, "scaler_", None)
    if not hasattr(scaler, "center"):
        raise ValueError(
            "model has no column scales to compare new rows with: it was fitted with a stated "
            "data_norm, or is none of this package"
        )
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(scaler.center):
        raise ValueError(f"X must have the {len(scaler.center)} columns of the fit")
    names = getattr(model, "feature_names_in_", range(rows.shape[1]))
    return [str(name) for name in names], list(rows.T), *_far(scaler.center, scaler.scale)


def _far(center: NDArray[Any], scale: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Return the ends beyond which a median is not plausible."""
    center, width = np.asarray(center, dtype=np.float64), np.asarray(scale, dtype=np.float64)
    return center - _FAR * width, center + _FAR * width
