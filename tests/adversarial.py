"""Neighbouring data sets made to hurt, and confidence bounds on what was measured."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.stats import beta, norm


def unit(rng: np.random.Generator, d: int) -> np.ndarray:
    x = rng.standard_normal(d)
    return x / np.linalg.norm(x)


def neighbouring_pairs(
    rng: np.random.Generator, trials: int, *, row_norm: float = 1.0, n_classes: int = 2
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Small data sets that differ in record 0: moves, flips, cancellations, one-class, copies."""
    for trial in range(trials):
        n, d = int(rng.integers(1, 8)), int(rng.integers(1, 4))
        lengths = rng.choice([0.0, 0.3, 1.0], size=n, p=[0.1, 0.2, 0.7])
        X = np.array([unit(rng, d) for _ in range(n)]) * lengths[:, None]
        y = rng.integers(n_classes, size=n)
        if trial % 3 == 0:
            X = np.tile(unit(rng, d), (n, 1)) * rng.choice([-1.0, 0.2, 1.0], size=(n, 1))
        if trial % 5 == 0:
            y[:] = 0
        X[0] = unit(rng, d)
        other_X, other_y = X.copy(), y.copy()
        kind = trial % 4
        if kind in (0, 3):
            other_X[0] = -X[0]
        if kind in (1, 3):
            other_y[0] = (y[0] + 1) % n_classes
        if kind == 2:
            other_X[0] = unit(rng, d)
        yield row_norm * X, y, row_norm * other_X, other_y


def stretched_pairs(
    trials: int, *, n_classes: int = 2
) -> Iterator[tuple[int, tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]]:
    """The same data sets by their numbers, with another row as long as can be, or as short."""
    pairs = neighbouring_pairs(np.random.default_rng(1), trials, n_classes=n_classes)
    for trial, (X, y, other_X, other_y) in enumerate(pairs):
        stretched = other_X.copy()
        stretched[0] *= (1.0, 1e150, 1e-150, 1e300)[trial % 4]
        yield trial, (X, y), (stretched, other_y)


def mu_lower_bound(
    first: np.ndarray, second: np.ndarray, *, threshold: float, confidence: float = 1 - 1e-6
) -> float:
    """Lower confidence bound on mu from samples of a statistic on two neighbours."""
    alpha = (1 - confidence) / 2
    m0, m1 = len(first), len(second)
    k0, k1 = int(np.sum(first > threshold)), int(np.sum(second > threshold))
    low = beta.ppf(alpha, k1, m1 - k1 + 1) if k1 else 0.0
    high = beta.ppf(1 - alpha, k0 + 1, m0 - k0) if k0 < m0 else 1.0
    return float(norm.ppf(low) - norm.ppf(high)) if low > 0 and high < 1 else 0.0
