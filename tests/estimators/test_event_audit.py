"""Black-box audits by one event of two neighbours: what pure mechanisms and old bugs allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dp_halfspace import (
    LabelPrivateClassifier,
    OutputPerturbationClassifier,
    PureHalfspaceClassifier,
    PureNetworkClassifier,
)
from tests.adversarial import epsilon_lower_bound, epsilon_of_event


@dataclass
class Audit:
    """A model, the values of record 0 on two neighbours, what to look for, and how often."""

    model: Any
    rows: Any
    labels: Any
    other_rows: Any
    other_labels: Any
    event: Any
    fits: int
    epsilon: float = 1.0

    def bound(self, fits=None):
        pair = [
            (np.array(X, float), np.array(y))
            for X, y in ((self.rows, self.labels), (self.other_rows, self.other_labels))
        ]
        return epsilon_of_event(fits or self.fits, self.model, pair, self.event)


def output(event, X, other, y, **params):
    model = OutputPerturbationClassifier(delta=0.0, classes=[0, 1], **{"data_norm": 1.0, **params})
    return Audit(model, X, y, other, y, event, 100)


def label_private(mechanism):
    """One label, seen in the score of its own record."""
    X = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]
    params = {"kernel": "linear", "n_components": None, "delta": 0.0, "n_candidates": 20}
    model = LabelPrivateClassifier(mechanism=mechanism, classes=[0, 1], **params)
    event = lambda m: m.decision_function(X[:1])[0] > 0  # noqa: E731
    return Audit(model, X, [1, 0, 1], X, [0, 0, 1], event, 150)


def halfspace(kind, margin=None, epsilon=4.0):
    """All records say one thing; then one of them says the opposite: the worst case."""
    model = PureHalfspaceClassifier(
        epsilon=epsilon, n_directions=2, n_stages=1, classes=[0, 1], fit_intercept=False,
        margin=margin, data_norm=1.0
    )  # fmt: skip
    X, other = [[1.0, 0.0]] * 2, [[-1.0, 0.0], [1.0, 0.0]]
    event = lambda m: m.predict(X[-1:])[0] == 0  # noqa: E731
    if kind == "features":
        return Audit(model, X, [1, 1], other, [1, 1], event, 200, epsilon)
    return Audit(model, X, [1, 1], X, [0, 1], event, 200, epsilon)


def network(n_hidden):
    """How often a network agrees with the record that differs."""
    X = np.zeros((20, 2))
    X[0, 0] = 1.0
    model = PureNetworkClassifier(
        n_hidden=n_hidden, n_candidates=50, n_stages=1, classes=[0, 1], data_norm=1.0
    )
    rest = np.arange(19) % 2
    event = lambda m: m.predict(X[:1])[0]  # noqa: E731
    return Audit(model, X, np.r_[1, rest], X, np.r_[0, rest], event, 150)


AUDITS = {
    # A curvature of norm c R^2 taken for c R breaks the guarantee at large norms.
    "norm": output(
        lambda m: abs(m.coef_[0, 0]) < 0.01, [[100.0], [0.0]], [[0.0], [0.0]], [1, 0],
        alpha=1.0, data_norm=100.0, fit_intercept=False,
    ),
    # An intercept outside the regulariser.
    "intercept": output(
        lambda m: m.intercept_[0] > 5 and abs(m.coef_[0, 0] + m.intercept_[0]) < 1.5,
        [[1.0], [0.0], [0.0]], [[0.0], [0.0], [0.0]], [1, 1, 0], alpha=1 / 3,
    ),
    **{name: label_private(name) for name in ("statistic", "randomized_response", "net")},
    "halfspace": halfspace("label"),
    "halfspace with a margin": halfspace("label", 0.5),
    "network": network(1),
    "network of two layers": network((2, 1)),
}  # fmt: skip


# The others keep their claim in the slow tests; their sensitivities have tests of their own.
FEW = ("randomized_response", "halfspace", "halfspace with a margin", "network")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name", [*FEW, *(pytest.param(n, marks=pytest.mark.slow) for n in AUDITS if n not in FEW)]
)
def test_events_keep_the_claim(name):
    assert AUDITS[name].bound() <= AUDITS[name].epsilon


@pytest.mark.slow
@pytest.mark.parametrize("name", ["norm", "intercept"])
def test_events_that_broke_the_claim_elsewhere_in_full(name):
    assert AUDITS[name].bound(20000) <= 1.0


@pytest.mark.slow
def test_the_bound_of_a_halfspace_is_nearly_attained():
    assert 2.0 < max(halfspace(kind).bound(4000) for kind in ("label", "features")) <= 4.0


def test_event_bound_would_see_the_leak():
    """The counts published for the leak of the norm: 1070 and 41 of 20000 at a claimed 1."""
    assert epsilon_lower_bound(1070, 41, 20000) > 2
