"""The adversary of AdaptiveMarginClassifier."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dp_halfspace import AdaptiveMarginClassifier
from dp_halfspace.privacy import PrivacyRecord
from dp_halfspace.privacy.mechanisms import recording


def fragile(n=6000, seed=0):
    """Column 0: a small margin, always right. Column 1: a large one, right nine times of ten."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    signs = 2.0 * y - 1.0
    sure = np.where(rng.random(n) < 0.9, signs, -signs)
    return np.column_stack([0.15 * signs, 0.6 * sure]), y


def robust_accuracy(model, X, y, radius, kind=2):
    """Share of rows that no change within the radius moves to the other side."""
    signs = np.where(y == model.classes_[1], 1.0, -1.0)
    dual = np.abs(model.coef_).sum() if kind == "inf" else np.linalg.norm(model.coef_)
    return float(np.mean(signs * model.decision_function(X) > radius * dual))


@pytest.mark.parametrize("kind", [2, "inf"])
def test_robust_accuracy_is_won(kind):
    X, y = fragile()
    common = {"epsilon": 3.0, "classes": [0, 1], "fit_intercept": False}
    robust = AdaptiveMarginClassifier(adversary_radius=0.3, adversary_norm=kind, **common).fit(X, y)
    plain = AdaptiveMarginClassifier(**common).fit(X, y)
    assert robust_accuracy(robust, X, y, 0.3, kind) > 0.87
    assert robust_accuracy(robust, X, y, 0.3, kind) >= robust_accuracy(plain, X, y, 0.3, kind)
    # The sure column is what an adversary of .3 leaves.
    first, sure = np.abs(robust.coef_[0])
    assert first / sure < 0.8 * np.abs(plain.coef_[0, 0] / plain.coef_[0, 1])


def test_radius_zero_is_no_adversary(margin_data):
    X, y = margin_data
    fits = []
    for params in ({}, {"adversary_radius": 0.0, "adversary_norm": "inf"}):
        with recording() as releases, pytest.warns(match="random_state"):
            AdaptiveMarginClassifier(random_state=3, **params).fit(X, y)
        fits.append(releases)
    assert [r.mechanism for r in fits[0]] == [r.mechanism for r in fits[1]]
    for a, b in zip(*fits, strict=True):
        np.testing.assert_array_equal(a.released, b.released)


def test_record_names_the_adversary(margin_data):
    model = AdaptiveMarginClassifier(adversary_radius=0.25, adversary_norm="inf", data_norm=2.0)
    public = dict(model.fit(*margin_data).privacy_.public)
    assert public["adversary_radius"] == 0.25
    assert public["adversary_norm"] == "inf"
    none = dict(AdaptiveMarginClassifier().fit(*margin_data).privacy_.public)
    assert none["adversary_radius"] == 0.0


def test_it_has_neither_metric_nor_price(margin_data):
    """The noise of the steps is that of the whole budget without an adversary."""
    with recording() as attacked:
        model = AdaptiveMarginClassifier(adversary_radius=0.3).fit(*margin_data)
    with recording() as plain:
        AdaptiveMarginClassifier().fit(*margin_data)
    assert not dict(model.privacy_.public)["private_metric"]
    assert len({r.mechanism for r in attacked}) == 1
    total = math.sqrt(sum(r.mechanism.mu**2 for r in attacked))
    assert total == pytest.approx(math.sqrt(sum(r.mechanism.mu**2 for r in plain)), rel=1e-6)
    steps = plain[-1].mechanism
    assert attacked[0].mechanism.sensitivity == pytest.approx(steps.sensitivity, rel=1e-6)


def test_margin_counts_the_pull_of_the_adversary(margin_data):
    X, y = margin_data
    model = AdaptiveMarginClassifier(adversary_radius=0.3, epsilon=math.inf).fit(X, y)
    assert 0.0 < model.margin_ <= 1.0
    assert isinstance(model.privacy_, PrivacyRecord)
