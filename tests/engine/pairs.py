"""Two neighbouring tables behind two doors: the same answers, and how far the questions differ."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from dp_halfspace.data.people import People
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.linear import first_rows, plan_linear
from dp_halfspace.engine.plan import PublicFacts
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.mechanisms import noise_deviation


def plan_of(X, n_classes=2, *, epsilon=1.0, constant=1.0, people=None, weights=None, **facts):
    """The plan of a linear fit of rows of a stated scale, or in column scales."""
    n = X.shape[0] if people is None else len(people)
    facts = PublicFacts(
        n,
        X.shape[1],
        n_classes,
        (1.0,) * n_classes,
        is_sparse=sparse.issparse(X),
        has_weights=weights is not None,
        has_people=people is not None,
        **{"is_scale_stated": False, **facts},
    )
    return plan_linear(facts, Budget.of(epsilon, 1e-6), constant=constant)


def training_data(X, classes, n_classes=2, *, people=None, weights=None):
    counts = None if people is None else People(np.asarray(people))
    return TrainingData(X, classes, np.arange(n_classes), None, people=counts, weights=weights)


def ratios(plan, data, other, rng, noise=1.0):
    """Distance of the questions over the planned sensitivity, release by release.

    The answers are those of the first table, with `noise` times the planned noise.
    """
    shape = plan.shape
    known = plan.known
    rows = [data, other]
    if shape.scales is None and shape.features is not None:
        rows = [first_rows(shape, known, each) for each in rows]
    found = []
    for release in plan.releases:
        mechanism = release.noise(known)
        if mechanism is not None:
            a, b = (release.ask(known, each) for each in rows)
            found.append(float(np.linalg.norm(a - b)) / mechanism.sensitivity)
            deviation = noise * noise_deviation(mechanism, a.size)
            known = release.use(known, a + deviation * rng.standard_normal(a.shape))
        if release.row_map is not None:
            rows = [release.row_map(known, each) for each in rows]
    return np.array(found)
