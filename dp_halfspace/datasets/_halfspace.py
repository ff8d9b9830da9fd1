"""Data with a known separating halfspace."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.utils import check_random_state

_MARGIN_SPREAD = 0.1


def make_halfspace(
    n_samples: int = 20_000,
    n_features: int = 20,
    *,
    margin: float = 0.1,
    label_noise: float = 0.0,
    imbalance: float = 0.5,
    random_state: int | RandomState | None = None,
    return_separator: bool = False,
) -> tuple[NDArray[Any], ...]:
    """Generate rows on the unit sphere that a homogeneous halfspace separates with a margin.

    The separator is a uniform unit vector. A row lies at a distance from the
    hyperplane that is uniform between `margin` and ``min(margin + 0.1, 1)``, on the
    side of its label, and is uniform in all directions along the hyperplane.

    Parameters
    ----------
    n_samples : int, default=20000
    n_features : int, default=20
        At least 2.
    margin : float, default=0.1
        Smallest distance of a row from the hyperplane, in [0, 1].
    label_noise : float, default=0.0
        Probability, in [0, 1/2), with which each label is flipped afterwards.
    imbalance : float, default=0.5
        Fraction of rows, in [0, 1], on the positive side before labels are flipped.
        The number of rows is ``round(imbalance * n_samples)``.
    random_state : int, RandomState instance or None, default=None
        Determines the data. Pass an int for reproducible output.
    return_separator : bool, default=False
        Whether to return the separator too.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Rows of Euclidean norm 1.
    y : ndarray of shape (n_samples,)
        Labels -1 and +1.
    separator : ndarray of shape (n_features,)
        Unit normal of the hyperplane. Only if `return_separator`.

    Examples
    --------
    >>> from dp_halfspace.datasets import make_halfspace
    >>> X, y, w = make_halfspace(1000, 5, margin=0.2, random_state=0, return_separator=True)
    >>> X.shape, bool((y * (X @ w)).min() > 0.2 - 1e-12)
    ((1000, 5), True)
    """
    _check(n_samples, n_features, margin, label_noise, imbalance)
    random = check_random_state(random_state)
    separator = _unit_rows(random.standard_normal((1, n_features)))[0]
    y = np.where(np.arange(n_samples) < round(imbalance * n_samples), 1, -1).astype(np.int64)
    random.shuffle(y)
    X = random.standard_normal((n_samples, n_features))
    X -= np.outer(X @ separator, separator)
    X = _unit_rows(X)
    distance = random.uniform(margin, min(margin + _MARGIN_SPREAD, 1.0), n_samples)
    X *= np.sqrt(1.0 - distance**2)[:, None]
    X += np.outer(y * distance, separator)
    y[random.uniform(size=n_samples) < label_noise] *= -1
    return (X, y, separator) if return_separator else (X, y)


def _unit_rows(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide each row by its norm."""
    norms: NDArray[np.float64] = np.linalg.norm(X, axis=1, keepdims=True)
    return X / norms


def _check(
    n_samples: int, n_features: int, margin: float, label_noise: float, imbalance: float
) -> None:
    """Refuse parameters for which no such data exist."""
    for name, value, good, words in (
        ("n_samples", n_samples, n_samples >= 1, "at least 1"),
        ("n_features", n_features, n_features >= 2, "at least 2"),
        ("margin", margin, 0.0 <= margin <= 1.0, "in [0, 1]"),
        ("label_noise", label_noise, 0.0 <= label_noise < 0.5, "in [0, 1/2)"),
        ("imbalance", imbalance, 0.0 <= imbalance <= 1.0, "in [0, 1]"),
    ):
        if not good:
            raise ValueError(f"{name} must be {words}; got {value!r}.")
