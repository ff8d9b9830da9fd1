"""Growth of the margin of a table as its most difficult records are removed."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.svm import LinearSVC

from dp_halfspace._params import checked_size, require
from dp_halfspace.exceptions import PrivacyWarning

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class RemovalCurve:
    """Normalised margins against the share of records that were removed.

    Attributes
    ----------
    shares : ndarray of shape (n_removals + 1,)
        Share of the records that was removed, from 0 up.
    margins : ndarray of shape (n_removals + 1,)
        Smallest normalised margin of the remaining records, 0 if one is misclassified.
    """

    shares: NDArray[np.float64]
    margins: NDArray[np.float64]

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw the curve with matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            None makes a new figure.
        label : str or None, default=None
            Name of the curve in a legend.

        Returns
        -------
        matplotlib Axes
        """
        if ax is None:
            from matplotlib.figure import Figure  # noqa: PLC0415 (only pictures need it)

            ax = Figure(layout="constrained").subplots()
        ax.plot(100.0 * self.shares, self.margins, marker=".", label=label)
        ax.set(xlabel="removed records, % of n", ylabel="normalised margin")
        return ax


def removal_curve(
    X: ArrayLike,
    y: ArrayLike,
    *,
    share: float = 0.0025,
    n_removals: int = 48,
    penalty: float = 100.0,
) -> RemovalCurve:
    r"""Remove the records of the smallest margin repeatedly, and record the margin.

    A linear support vector machine through the origin is fitted; the records of the smallest
    normalised margin :math:`y\langle w,x\rangle/(\lVert w\rVert\lVert x\rVert)` are removed,
    misclassified ones first; then this is repeated. The error bounds of the published algorithms
    depend on this curve: the margin as a function of the number of outliers.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Finite rows. Append a constant column for an intercept.
    y : array-like of shape (n_samples,)
        Labels of two classes.
    share : float, default=0.0025
        Share of all records that is removed at a time, in (0, 1); at least one record.
    n_removals : int, default=48
        Number of removals; they stop early if a class would have no records left.
    penalty : float, default=100.0
        Penalty ``C`` of the support vector machine.

    Returns
    -------
    RemovalCurve

    Warns
    -----
    PrivacyWarning
        Always.

    Notes
    -----
    **Not private.** The curve is an exact function of the table and can depend on single records.
    Use it for public data, or if you may see the data; do not release it, and do not choose the
    parameters of a private fit by it.

    References
    ----------
    E. Wang, Y. Zhu and Y.-X. Wang, "Adapting to Linear Separable Subsets with Large-Margin in
    Differentially Private Learning", 2025, Figures 2 and 3, Definition N.1 (equation 32). The paper
    uses pretrained features of CIFAR-10.

    Examples
    --------
    >>> import warnings
    >>> from dp_halfspace.datasets import make_halfspace
    >>> from dp_halfspace.inspection import removal_curve
    >>> X, y = make_halfspace(400, 5, margin=0.2, random_state=0)
    >>> y[:8] *= -1
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     curve = removal_curve(X, y, share=0.01, n_removals=3)
    >>> curve.shares.round(2).tolist()
    [0.0, 0.01, 0.02, 0.03]
    >>> bool(curve.margins[0] == 0.0), bool(curve.margins[-1] > 0.19)
    (True, True)
    """
    require("in (0, 1)", share=share)
    checked_size("n_removals", n_removals, least=0)
    require("positive and finite", penalty=penalty)
    warnings.warn(
        "removal_curve shows exact facts of single records: it is not private, do not release it",
        PrivacyWarning,
        stacklevel=2,
    )
    rows, signs = _checked(X, y)
    n = len(signs)
    batch = max(1, round(share * n))
    kept = np.arange(n)
    shares: list[float] = []
    margins: list[float] = []
    for _ in range(int(n_removals) + 1):
        if len(np.unique(signs[kept])) < 2:
            break
        found = _normalised_margins(rows[kept], signs[kept], float(penalty))
        shares.append(1.0 - len(kept) / n)
        margins.append(max(float(found.min()), 0.0))
        kept = kept[np.argsort(found, kind="stable")[batch:]]
    return RemovalCurve(np.array(shares), np.array(margins))


def _checked(X: Any, y: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return rows and signs."""
    rows, labels = np.asarray(X, dtype=np.float64), np.asarray(y)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise ValueError("X must be a table of finite numbers: encode or impute it first.")
    if labels.shape != rows.shape[:1]:
        raise ValueError("y must have one label for each row of X.")
    classes = np.unique(labels)
    if len(classes) != 2:
        raise ValueError("y must have two classes.")
    return rows, np.where(labels == classes[1], 1.0, -1.0)


def _normalised_margins(
    rows: NDArray[np.float64], signs: NDArray[np.float64], penalty: float
) -> NDArray[np.float64]:
    """Fit a linear support vector machine and return the margin of every row over its norm."""
    machine = LinearSVC(C=penalty, dual=False, fit_intercept=False).fit(rows, signs)
    w = machine.coef_[0]
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(w)
    margins = np.zeros(len(rows))
    np.divide(signs * (rows @ w), lengths, out=margins, where=lengths > 0.0)
    return margins
