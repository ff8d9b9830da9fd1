"""The epsilon that a refusal names is accepted: it was tried on the plan of that release."""

from __future__ import annotations

import math
import re
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from dp_halfspace import (
    AdaptiveMarginClassifier,
    BudgetError,
    LabelPrivateClassifier,
    ObjectivePerturbationClassifier,
    PrivacyLedger,
    PrivacyWarning,
    PrivateAUCClassifier,
    PrivateConformalClassifier,
    PrivateSearchCV,
    PrivateTableClassifier,
    PrivateThresholdClassifier,
    PureHalfspaceClassifier,
    PureNetworkClassifier,
)
from dp_halfspace.ledger import ledger as ledger_module
from dp_halfspace.ledger.advice import largest_epsilon
from dp_halfspace.metrics import private_score
from dp_halfspace.preprocessing import PrivateScaler
from tests.instances import adjacency, instances, with_enough_records
from tests.model_selection.prefit_models import Given
from tests.privacy.oracles import gaussian, pure

NAMED = re.compile(
    r"\. The same release is accepted with epsilon (\S+) at delta \S+: "
    r"epsilon (\S+) of (\S+) at delta \S+ would then be spent$"
)
NONE = "None of the smaller epsilons that were tried is accepted for it"


# -- the search ------------------------------------------------------------------------------


def tried(accepts, start):
    """Return what is found, and all that was tried."""
    asked = []

    def noted(epsilon):
        asked.append(epsilon)
        return accepts(epsilon)

    return largest_epsilon(noted, start), asked


@pytest.mark.parametrize("start", [1.0, 0.123456, 9.9996, 200.0])
@pytest.mark.parametrize("largest", [1e-9, 3.00049e-5, 0.0625, 0.1234, 0.9999, 1.0, 7.5, 123.45])
def test_the_largest_of_four_digits_is_found(largest, start):
    found, asked = tried(lambda epsilon: epsilon <= largest, start)
    assert found == float(f"{found:.4g}") <= largest
    step = 10.0 ** (math.floor(math.log10(found)) - 3)
    assert found + 0.999 * step > largest
    # About twenty, where the result is not far below.
    assert len(asked) <= (22 if 0.1 < largest / start <= 1.0 else 30)
    assert found in asked


def test_what_is_accepted_need_not_lie_below_all_that_is_refused():
    """A plan of another kind; a budget too small for any; nothing; everything."""
    assert tried(lambda e: e <= 0.01 or 0.3 <= e <= 0.4321, 1.0)[0] == 0.4321
    assert tried(lambda e: None if e < 0.2 else e <= 0.3333, 1.0)[0] == 0.3333
    assert tried(lambda e: None if e < 0.2 else False, 1.0)[0] == 0.0
    assert tried(lambda e: None, 1.0)[0] == tried(lambda e: False, 1.0)[0] == 0.0
    assert tried(lambda e: False, math.inf)[0] == tried(lambda e: False, 1e-9)[0] == 0.0
    assert tried(lambda e: True, 1.0)[0] == 1e6
    assert all(len(tried(f, 1.0)[1]) <= 28 for f in (lambda e: False, lambda e: e < 1e-4))


# -- of every release ------------------------------------------------------------------------


@dataclass
class Release:
    """Something that charges a ledger with an epsilon."""

    of: Any
    X: Any
    y: Any

    def make(self, epsilon, ledger):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            if callable(self.of):
                return self.of(self.X, self.y, epsilon=epsilon, ledger=ledger)
            return clone(self.of).set_params(epsilon=epsilon, ledger=ledger).fit(self.X, self.y)


def rows(n, d=4):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, d)) / 4
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True)), np.arange(n) % 2


def chances(n):
    rng = np.random.default_rng(n)
    X = rng.random((n, 1)).round(3)
    return X, (rng.random(n) < X[:, 0]).astype(int)


def score(metric, delta):
    return partial(private_score, Given(), metric=metric, delta=delta)


def searching(**params):
    model = AdaptiveMarginClassifier(classes=[0, 1], data_norm=1.0)
    return PrivateSearchCV(model, {"fit_intercept": [True, False]}, **params)


OTHERS = [
    (PrivateScaler(), rows), (PrivateScaler(delta=0.0), rows),
    (PrivateThresholdClassifier(Given()), chances), (PrivateConformalClassifier(Given()), chances),
    (score("accuracy", 1e-7), chances), (score(["roc_auc", "log_loss"], 1e-8), chances),
    (score("confusion_matrix", 0.0), chances),
    (searching(delta=1e-7), rows), (searching(delta=0.0, selection="exponential"), rows),
    (searching(selection="gaussian"), rows),
    (PrivateTableClassifier(classes=[0, 1]), rows),
    (PrivateTableClassifier(classes=[0, 1], delta=0.0), rows),
    (PrivateTableClassifier(classes=[0, 1], features="linear", delta=1e-7), rows),
]  # fmt: skip


def releases(n):
    """Every release of the package on n records."""
    for model in instances(classes=[0, 1]):
        yield Release(model, *with_enough_records(model, *rows(n)))
    for of, data in OTHERS:
        yield Release(of, *data(n))


def with_history(rng, release, kind):
    """A ledger with up to four entries, the cap and the kinds of which vary."""
    of = "replace-one" if callable(release.of) else adjacency(release.of)
    ledger = PrivacyLedger(
        epsilon=float(np.exp(rng.uniform(-1.0, 2.0)).round(2)),
        delta=float(rng.choice([0.0, 1e-6, 1e-4])),
        adaptive=bool(rng.random() < 0.25),
        adjacency=of,
    )
    for _ in range(kind % 5):
        size = float(rng.choice([0.02, 0.1, 0.3])) * ledger.epsilon
        entry = [gaussian(size, 1e-7, adjacency=of), pure(size, adjacency=of)]
        with suppress(BudgetError):
            ledger.charge(entry[rng.integers(2)])
    return ledger


def assert_advice_is_good(release, ledger, asked):
    """Ask for too much, and then for what the refusal names; return how it ended."""
    try:
        release.make(asked, ledger)
    except BudgetError as error:
        text, before = str(error), len(ledger.entries())
    except ValueError:
        # A budget at which this release does not exist.
        return "no plan"
    else:
        return "accepted"
    named = NAMED.search(text)
    if named is None:
        assert text.endswith(NONE), text
        return "nothing"
    epsilon, total, cap = map(float, named.groups())
    assert epsilon < asked
    assert total <= cap * (1.0 + 1e-5)
    release.make(epsilon, ledger)
    assert len(ledger.entries()) == before + 1
    assert ledger.spent() == pytest.approx(total, rel=1e-4)
    return "named"


# Their plans are calibrated by compositions, or their own releases are of several kinds.
DEAR = (
    LabelPrivateClassifier, ObjectivePerturbationClassifier, PrivateAUCClassifier,
    PrivateSearchCV, PrivateThresholdClassifier, PureHalfspaceClassifier, PureNetworkClassifier,
)  # fmt: skip


def outcomes(cases):
    rng, found = np.random.default_rng(5), []
    for number, release in enumerate(cases):
        ledger = with_history(rng, release, number)
        asked = float(ledger.epsilon * rng.choice([1.01, 1.5, 3.0]))
        found.append(assert_advice_is_good(release, ledger, asked))
    return found


def cheap():
    """The first of each class whose plan, and its composition with a history, takes no time."""
    first = {}
    for release in releases(200):
        first.setdefault(release.of if callable(release.of) else type(release.of), release)
    return [release for kind, release in first.items() if kind not in DEAR]


def test_what_a_refusal_names_is_accepted():
    """Some classes and histories here; all variants, tables and histories in the slow test."""
    found = outcomes(cheap())
    assert len(found) > 8
    assert found.count("named") > 0.5 * len(found)


@pytest.mark.slow
def test_what_a_refusal_names_is_accepted_of_a_thousand():
    sizes = (30, 60, 200, 600)
    found = outcomes([r for n in sizes for _ in range(3) for r in releases(n)])
    assert len(found) > 1000
    assert found.count("named") > 0.6 * len(found)


# -- what remains for an estimator -----------------------------------------------------------


@pytest.mark.parametrize("epsilon", [2.0, math.inf])
def test_what_remains_for_a_release_is_accepted(epsilon):
    for release in cheap():
        if callable(release.of):
            continue
        ledger = PrivacyLedger(epsilon=epsilon, delta=1e-5, adjacency=adjacency(release.of))
        ledger.charge(gaussian(0.4, 1e-7, adjacency=adjacency(release.of)))
        left = ledger.remaining_for(release.of, release.X, release.y)
        if math.isinf(epsilon):
            assert left == 1e6
            continue
        assert 0.5 < left == float(f"{left:.4g}")
        release.make(left, ledger)


def test_what_remains_is_found_without_a_warning_of_each_number_that_is_tried():
    X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 2
    model = ObjectivePerturbationClassifier(classes=[0, 1], delta=0.0)
    with pytest.warns(PrivacyWarning, match="too small to estimate the scales"):
        model.plan(X, y)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert PrivacyLedger(epsilon=1.0, delta=0.0).remaining_for(model, X, y) == 1.0
    assert not seen


def test_what_remains_for_a_function_and_for_nothing():
    ledger = PrivacyLedger(epsilon=1.0, delta=0.0)
    ledger.charge(pure(0.25))
    assert ledger.remaining_for(pure) == 0.75
    # Neither a Gaussian release, nor one of a kind that is refused, nor one beyond the cap.
    assert ledger.remaining_for(partial(gaussian, delta=1e-6)) == 0.0
    assert ledger.remaining_for(partial(pure, noise="seeded")) == 0.0
    ledger.charge(pure(0.75))
    assert ledger.remaining_for(pure) == 0.0
    with pytest.raises(ValueError, match="epsilon"):
        ledger.remaining_for(AdaptiveMarginClassifier(epsilon=-1.0), *rows(60))
    with pytest.raises(ValueError, match="got Pipeline: of a pipeline, give"):
        ledger.remaining_for(make_pipeline(AdaptiveMarginClassifier()), *rows(60))


def test_what_remains_counts_the_charges_of_other_handles(tmp_path):
    ledger = PrivacyLedger(tmp_path / "l.db", epsilon=1.0, delta=0.0)
    PrivacyLedger(tmp_path / "l.db").charge(pure(0.25))
    assert ledger.remaining_for(pure) == 0.75


def test_what_remains_for_a_fit_to_people():
    X, y = rows(60)
    model = AdaptiveMarginClassifier(classes=[0, 1], delta=1e-6)
    ledger = PrivacyLedger(epsilon=2.0, delta=1e-5, adjacency="replace-one-person")
    assert ledger.remaining_for(model, X, y) == 0.0
    assert ledger.remaining_for(model, X, y, groups=range(60)) > 1.0


def test_a_release_of_no_known_plan_is_refused_without_a_number():
    ledger = PrivacyLedger(epsilon=1.0, delta=0.0)
    with pytest.raises(BudgetError, match=r"With it, epsilon 1\.5 of 1 at delta 0 would be spent$"):
        ledger.charge(pure(1.5))


@pytest.mark.slow
def test_the_test_sees_a_number_for_a_single_gaussian_release(monkeypatch):
    """Planted: what is left for one Gaussian release, for a fit that makes a pure DP selection."""
    release = Release(AdaptiveMarginClassifier(classes=[0, 1]), *rows(200))
    ledger = PrivacyLedger(epsilon=2.0, delta=1e-5)
    release.make(1.0, ledger)
    gaussian = ledger.remaining()
    monkeypatch.setattr(ledger_module, "largest_epsilon", lambda *_: gaussian)
    with pytest.raises((BudgetError, AssertionError)):
        assert_advice_is_good(release, ledger, 1.9)
    monkeypatch.undo()
    assert assert_advice_is_good(release, ledger, 1.9) == "named"
