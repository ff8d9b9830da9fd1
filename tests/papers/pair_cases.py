"""Sums over pairs written out, in more digits than the code under test has."""

import mpmath
import numpy as np

from dp_halfspace.optim.losses import LOGISTIC, SQUARED
from dp_halfspace.optim.objectives import MarginObjective
from dp_halfspace.rows.rows import Rows
from tests.optim.cases import exact_slope, wide_slope

PAIR_LOSSES = [LOGISTIC, SQUARED]
RANGES = [0.2, 2.0, 20.0, 200.0, 3e3, 1e4]


def wide_value(loss, x):
    """A loss in extended precision, written anew."""
    if loss.name == "logistic":
        return np.maximum(-x, 0) + np.log1p(np.exp(-np.abs(x)))
    return (1 - x) ** 2


def brute_sums(loss, positive, negative):
    """Value and derivatives over all pairs in extended precision."""
    x = np.asarray(positive, np.longdouble)[:, None] - np.asarray(negative, np.longdouble)
    slopes = wide_slope(loss, x)
    return wide_value(loss, x).sum(), slopes.sum(axis=1), -slopes.sum(axis=0)


def relative(found, exact):
    """Relative error of a vector in the Euclidean norm; 0 when both are zero."""
    size = float(np.sqrt((np.asarray(exact, np.longdouble) ** 2).sum()))
    gap = float(np.sqrt(((np.asarray(found) - exact) ** 2).sum()))
    return gap if size == 0 else gap / size


def scores(reach, n_positive, n_negative, seed=0):
    """Scores of two classes in a range, some of them equal."""
    rng = np.random.default_rng(seed)
    s = reach * rng.random(n_positive + n_negative)
    s[: n_positive // 10] = s[0]
    s[n_positive : n_positive + n_negative // 10] = s[0]
    return s[:n_positive], s[n_positive:]


def differences(X, positive):
    return (X[positive][:, None, :] - X[~positive][None, :, :]).reshape(-1, X.shape[1])


def brute_objective(X, positive, loss, ridge, normaliser, linear=None):
    """The same objective as a sum over all pairs, one row for each."""
    pairs = differences(X, positive)
    weights = np.full(len(pairs), 1.0 / normaliser)
    return MarginObjective(Rows(pairs), np.ones(len(pairs)), weights, loss, ridge, linear)


def wide_gradient(Z, positive, loss, ridge, normaliser, w, linear=None):
    """Gradient over all pairs in extended precision."""
    wide = np.asarray(w, np.longdouble)
    Z = np.asarray(Z, np.longdouble)
    s = Z @ wide
    slopes = wide_slope(loss, s[positive][:, None] - s[~positive])
    data = Z[positive].T @ slopes.sum(axis=1) - Z[~positive].T @ slopes.sum(axis=0)
    return data / np.longdouble(normaliser) + ridge * wide + (0 if linear is None else linear)


def exact_pair_gradient(X, positive, loss, ridge, normaliser, w):
    """Gradient over all pairs in 40 digits."""
    with mpmath.workdps(40):
        v = [mpmath.mpf(float(a)) for a in w]
        total = [mpmath.mpf(float(ridge)) * a for a in v]
        for a in X[positive]:
            for b in X[~positive]:
                x = [mpmath.mpf(float(s)) - mpmath.mpf(float(t)) for s, t in zip(a, b, strict=True)]
                slope = exact_slope(loss, mpmath.fdot(x, v)) / mpmath.mpf(float(normaliser))
                total = [t + slope * c for t, c in zip(total, x, strict=True)]
        return total
