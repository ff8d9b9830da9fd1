"""Records from a known distribution, a model with known scores, and its true accuracy."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from dp_halfspace import PrivacyWarning
from dp_halfspace.metrics import private_score

SHARE, SHIFT = 0.4, 0.8


class Known:
    """Probabilities that are right where class 1 is normal with mean .8, class 0 with -.8."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        p = expit(2.0 * SHIFT * X[:, 0] + np.log(SHARE / (1.0 - SHARE)))
        return np.column_stack([1.0 - p, p])

    def predict(self, X):
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)


def records(rng, n):
    y = (rng.random(n) < SHARE).astype(int)
    return (SHIFT * (2 * y - 1) + rng.standard_normal(n))[:, None], y


def coverage(*, runs, n, seed=0, **budget):
    """Return the share of runs whose interval covers the accuracy, over samples and noise."""
    rng = np.random.default_rng(seed)
    border = -np.log(SHARE / (1.0 - SHARE)) / (2.0 * SHIFT)
    truth = SHARE * norm.sf(border - SHIFT) + (1.0 - SHARE) * norm.cdf(border + SHIFT)
    covered = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        for run in range(runs):
            score = private_score(Known(), *records(rng, n), random_state=run, **budget)
            low, high = score.interval
            covered.append(low <= truth <= high)
    return float(np.mean(covered))
