"""Records from a known distribution, a model with known scores, and what its metrics truly are."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from dp_halfspace import PrivacyWarning
from dp_halfspace.metrics import private_score
from dp_halfspace.metrics._tallies import HALF_LOG_ODDS, LARGEST_LOG_LOSS

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


def density_at(x, shift):
    return norm.pdf(x - shift)


def truths():
    """The metrics on the distribution itself; the area is that of rounded scores."""
    border = -np.log(SHARE / (1.0 - SHARE)) / (2.0 * SHIFT)
    specificity, recall = norm.cdf(border + SHIFT), norm.sf(border - SHIFT)
    confusion = np.array(
        [
            [(1 - SHARE) * specificity, (1 - SHARE) * (1 - specificity)],
            [SHARE * (1 - recall), SHARE * recall],
        ]
    )
    x = np.linspace(-9.0, 9.0, 200_001)
    p = Known().predict_proba(x[:, None])[:, 1]
    odds = np.log(HALF_LOG_ODDS / (1 - HALF_LOG_ODDS))
    ends = np.concatenate([[-np.inf], (odds / (2 * SHIFT)) + border, [np.inf]])
    positive, negative = (np.diff(norm.cdf(ends - s)) for s in (SHIFT, -SHIFT))
    below = np.cumsum(negative) - negative / 2.0
    true = SHARE * recall
    said = true + (1 - SHARE) * (1 - specificity)
    above = SHARE * np.cumsum(positive[::-1])
    false = (1 - SHARE) * np.cumsum(negative[::-1])
    every = np.concatenate([density_at(x, SHIFT), density_at(x, -SHIFT)])
    probability = np.concatenate([p, 1.0 - p])
    share = np.repeat([SHARE, 1.0 - SHARE], len(x))
    losses = np.minimum(-np.log(probability), LARGEST_LOG_LOSS)
    return {
        "accuracy": np.trace(confusion),
        "average_precision": positive[::-1] @ (above / (above + false)),
        "f1": 2.0 * true / (SHARE + said),
        "log_loss": (share * every * losses).sum() * (x[1] - x[0]),
        "precision": true / said,
        "recall": recall,
        "balanced_accuracy": (specificity + recall) / 2.0,
        "confusion_matrix": confusion,
        "roc_auc": positive @ below,
    }


def coverage(metric, *, runs, n, seed=0, **budget):
    """Return the share of runs whose interval covers the truth, over samples and noise."""
    rng = np.random.default_rng(seed)
    truth = truths()[metric] * (n if metric == "confusion_matrix" else 1.0)
    covered = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        for run in range(runs):
            X, y = records(rng, n)
            score = private_score(Known(), X, y, metric=metric, random_state=run, **budget)
            low, high = score.interval
            covered.append(np.mean((low <= truth) & (truth <= high)))
    return float(np.mean(covered))
