"""Data sets that a comparison runs on, scaled by public rules only."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.datasets import load_breast_cancer, load_digits

from dp_halfspace.datasets import make_halfspace

__all__ = ["Problem", "builtin_problems", "half_diagonal"]

# Smallest and largest value of each column as printed in the description that comes
# with the data (Wolberg, Street and Mangasarian, 1995): published, so public.
_CANCER_RANGES = (
    (6.981, 28.11), (9.71, 39.28), (43.79, 188.5), (143.5, 2501.0), (0.053, 0.163),
    (0.019, 0.345), (0.0, 0.427), (0.0, 0.201), (0.106, 0.304), (0.05, 0.097), (0.112, 2.873),
    (0.36, 4.885), (0.757, 21.98), (6.802, 542.2), (0.002, 0.031), (0.002, 0.135), (0.0, 0.396),
    (0.0, 0.053), (0.008, 0.079), (0.001, 0.03), (7.93, 36.04), (12.02, 49.54), (50.41, 251.2),
    (185.2, 4254.0), (0.071, 0.223), (0.027, 1.058), (0.0, 1.252), (0.0, 0.291), (0.156, 0.664),
    (0.055, 0.208),
)  # fmt: skip
_DIGITS_MAXIMUM = 16.0


@dataclass(frozen=True, slots=True)
class Problem:
    """Rows, labels, and what is public about them."""

    name: str
    X: NDArray[np.float64] | csr_matrix
    y: NDArray[np.generic]
    data_norm: float
    scaling: str
    own_units: bool = False  # columns as they came, with no range to scale them by

    @property
    def classes(self) -> list[object]:
        """Sorted labels; the label set is public."""
        return list(np.unique(self.y).tolist())


def builtin_problems(seed: int | None) -> list[Problem]:
    """Three data sets that need no download, small enough for a minute."""
    X, y = make_halfspace(2_000, 20, margin=0.1, label_noise=0.02, random_state=seed)
    halfspace = Problem("halfspace, margin 0.1", X, y, 1.0, "unit rows; 2 % of the labels flipped")
    return [_breast_cancer(), _digits(), halfspace]


def half_diagonal(n_features: int) -> float:
    """Half the largest norm of a row of numbers in [-1, 1]: rows beyond it are clipped."""
    return math.sqrt(n_features) / 2.0


def _breast_cancer() -> Problem:
    """Map each column from its published range to [-1, 1]."""
    X, y = load_breast_cancer(return_X_y=True)
    low, high = np.array(_CANCER_RANGES).T
    X = np.clip(2.0 * (X - low) / (high - low) - 1.0, -1.0, 1.0)
    return Problem(
        "breast cancer", X, y, half_diagonal(X.shape[1]), "columns mapped by published ranges"
    )


def _digits() -> Problem:
    """Map the grey values 0..16 to [0, 1]."""
    X, y = load_digits(return_X_y=True)
    return Problem(
        "digits", X / _DIGITS_MAXIMUM, y, half_diagonal(X.shape[1]), "grey values divided by 16"
    )
