"""What the tests of the algorithms share: permits, what is right, how likely a statistic is."""

import math

import numpy as np
from scipy.stats import chi2

from dp_halfspace import privacy
from dp_halfspace.data.record_weights import WeighedRows
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.plan import PublicFacts
from dp_halfspace.papers.training import Problem
from dp_halfspace.privacy import PrivacyRecord, Pure, authorise, noise_source
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import single_runs


def problem_of(n_samples, n_features, n_classes=2, *, weights=None, is_sparse=False, **how):
    """Public facts about a table of this size, and parameters of a published algorithm."""
    weights = (1.0,) * n_classes if weights is None else weights
    facts = PublicFacts(n_samples, n_features, n_classes, weights, is_sparse=is_sparse)
    return Problem(facts, **{"intercept": 1.0, **how})


def permit_for(*events, source=None):
    """A permit for these events; noise is drawn unless one of them has none."""
    epsilon, noise = (math.inf, "none") if Pure(math.inf) in single_runs(events) else (1e6, "os")
    record = PrivacyRecord(epsilon=epsilon, delta=1e-3, events=events, noise=noise)
    return authorise(record, source or noise_source(None))


def door_of(data, *events, source=None):
    """Data behind a door, with a permit for these events."""
    return Door(data, permit_for(*events, source=source))


def rows_door(rows, classes, weights, *events):
    """Rows of an algorithm behind a door, with a permit for these events."""
    return door_of(WeighedRows(rows, classes, weights), *events)


def table_door(X, classes, *events, source=None):
    """Training data behind a door, with a permit for these events."""
    return door_of(TrainingData(X, classes, np.unique(classes), None), *events, source=source)


def assert_costs(events, mu, delta=1e-6):
    """Together the events are mu-Gaussian private, and not much better than that."""
    spent = privacy.epsilon(events, delta)
    assert spent <= privacy.gdp_epsilon(mu, delta) * (1 + 1e-9)
    assert spent >= privacy.gdp_epsilon(mu * (1 - 1e-6), delta) * (1 - 1e-6)


def tail(statistic, degrees):
    """Probability of a chi-square statistic that is so far out, on its side."""
    return min(chi2.cdf(statistic, degrees), chi2.sf(statistic, degrees))
