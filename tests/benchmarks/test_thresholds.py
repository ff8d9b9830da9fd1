"""Measures of thresholds are those of scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import precision_score, recall_score

from benchmarks import thresholds


def test_measures_are_those_of_their_definitions():
    rng = np.random.default_rng(0)
    predicted, truth = (rng.random(200) < share for share in (0.4, 0.2))
    expected = {
        "recall": recall_score(truth, predicted),
        "precision": precision_score(truth, predicted),
        "false_positive_rate": recall_score(~truth, predicted),
    }
    assert expected.keys() == thresholds.TARGETS.keys()
    for target, value in expected.items():
        assert thresholds.reached(target, predicted, truth) == pytest.approx(value)
    assert thresholds.reached("precision", np.zeros(200, dtype=bool), truth) == 0.0
