"""A record says whose replacement is protected, in its field and in words."""

import numpy as np
import pytest

from dp_halfspace import (
    AdaptiveMarginClassifier,
    LabelPrivateClassifier,
    PrivateConformalClassifier,
    PrivateThresholdClassifier,
)
from dp_halfspace.metrics import private_score
from dp_halfspace.preprocessing import PrivateScaler
from dp_halfspace.privacy import Gaussian, PrivacyRecord
from tests.conftest import separated
from tests.model_selection.prefit_models import RareChances as Rule

X, Y = separated(400, 3)
OWNERS = np.arange(400) // 2


RELEASES = {
    "score": lambda groups: private_score(Rule(), X, Y, epsilon=3.0, groups=groups),
    "scores of groups": lambda groups: private_score(
        Rule(), X, Y, epsilon=3.0, groups=groups, by=np.tile(["a", "b"], 200), by_values=["a"]
    ),
    "threshold": lambda groups: PrivateThresholdClassifier(Rule()).fit(X, Y, groups=groups),
    "sets": lambda groups: PrivateConformalClassifier(Rule()).fit(X, Y, groups=groups),
    "scales": lambda groups: PrivateScaler(epsilon=3.0, delta=1e-6).fit(X, groups=groups),
    "model": lambda groups: AdaptiveMarginClassifier(
        epsilon=3.0, data_norm=1.0, classes=[0, 1], solver="noisy_gd"
    ).fit(X, Y, groups=groups),
}


@pytest.mark.parametrize("name", RELEASES)
def test_only_groups_make_a_person_the_unit(name):
    assert RELEASES[name](None).privacy_.adjacency == "replace-one"
    assert RELEASES[name](OWNERS).privacy_.adjacency == "replace-one-person"


def test_features_beside_private_labels_are_not_protected():
    model = LabelPrivateClassifier(classes=[0, 1], data_norm=1.0).fit(X, Y)
    assert model.privacy_.adjacency == "replace-one-label"


SAID = {
    "replace-one": (
        "one record",
        "neighbouring data sets have the same number of rows and differ in one record, features "
        "and label together.",
    ),
    "replace-one-label": (
        "the label of one record",
        "neighbouring data sets have the same features and differ in the label of one record; "
        "nothing is promised about the features.",
    ),
    "replace-one-person": (
        "one person",
        "neighbouring data sets have the same number of people (n_samples) and differ in one of "
        "them, with all rows; how many rows people have is protected.",
    ),
}


@pytest.mark.parametrize("adjacency", SAID)
def test_a_record_says_in_words_who_is_protected(adjacency):
    unit, neighbours = SAID[adjacency]
    record = PrivacyRecord(
        epsilon=2.0, delta=0.01, events=[Gaussian(0.5)], noise="os", adjacency=adjacency
    )
    assert f"\nAdjacency: {adjacency}; {neighbours}\n" in record.summary()
    assert f"for {unit}, by 1 release(s); noise drawn from the random source of" in str(record)
    assert (
        f"Largest gain of an attack that knows everything except {unit} (rounded up):"
        in record.summary()
    )
