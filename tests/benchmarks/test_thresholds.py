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
    assert thresholds.reached("precision", np.zeros(200, dtype=bool), truth) == 1.0


def test_the_exact_rate_is_that_of_the_best_threshold():
    rng = np.random.default_rng(1)
    truth = rng.random(300) < 0.3
    scores = rng.normal(size=300) + truth
    for target, wanted in {"recall": 0.9, "precision": 0.5, "false_positive_rate": 0.1}.items():
        rates = []
        for threshold in scores:
            said = scores >= threshold
            value = thresholds.reached(target, said, truth)
            if (value <= wanted) if target == "false_positive_rate" else (value >= wanted):
                rates.append(thresholds.reached("false_positive_rate", said, truth))
        best = min(rates) if target == "recall" else max(rates)
        assert thresholds.exact_rate(target, wanted, scores, truth) == pytest.approx(best)
