"""The table, the JSON file and what they say about privacy."""

import json

import numpy as np
import pytest

from dp_halfspace._cli.arguments import parse_options
from dp_halfspace._cli.compare import Comparison, Score
from dp_halfspace._cli.problems import Problem
from dp_halfspace._cli.report import save_json, save_picture, text_report

PROBLEM = Problem("toy", np.zeros((100, 3)), np.arange(100) % 2, 1.5, "none")
OPTIONS = parse_options(["--epsilon", "1", "--repeats", "2", "--seed", "4"])


def score(estimator, epsilon, accuracy, auc=0.75):
    spent = None if epsilon is None else epsilon
    return Score(
        "toy", estimator, epsilon, accuracy, auc, 0.25, spent, None if spent is None else 1e-8
    )


SCORES = (
    score("majority class", None, 0.5, auc=float("nan")),
    score("Private", 1.0, 0.8),
    score("majority class", None, 0.5, auc=float("nan")),
    score("Private", 1.0, 0.9),
)
COMPARISON = Comparison(SCORES, ("PrivacyWarning: " + "long " * 40,))


def test_table_shows_means_spread_and_budgets():
    text = text_report([PROBLEM], OPTIONS, COMPARISON)
    lines = {line.split("  ")[0]: line.split() for line in text.splitlines()}
    assert lines["Private"][1:] == ["1", "0.850", "+-", "0.050", "0.750", "0.250", "1", "1e-08"]
    assert lines["majority class"][2:] == ["-", "0.500", "+-", "0.000", "-", "0.250", "-", "-"]
    assert "70 training and 30 test rows, 3 columns, 2 classes" in text
    assert "data_norm 1.5" in text


def test_no_spread_of_a_single_run():
    text = text_report([PROBLEM], OPTIONS, Comparison(SCORES[:2], ()))
    assert "0.800 " in text
    assert "0.800 +-" not in text


def test_report_says_that_it_is_not_private():
    text = text_report([PROBLEM], OPTIONS, COMPARISON)
    assert "FOR THE CURATOR OF THE DATA ONLY" in text
    assert "not private" in text
    assert "- PrivacyWarning" in text
    assert max(map(len, text.splitlines())) <= 100
    assert "Notes" not in text_report([PROBLEM], OPTIONS, Comparison(SCORES, ()))


def test_json_is_valid_and_complete(tmp_path):
    path = tmp_path / "results.json"
    save_json(path, [PROBLEM], OPTIONS, COMPARISON)

    def no_constants(name):
        raise AssertionError(name)

    content = json.loads(path.read_text(), parse_constant=no_constants)
    assert len(content["results"]) == 4
    assert content["results"][0]["auc"] is None
    assert content["results"][1]["accuracy"] == 0.8
    assert content["settings"] == {
        "epsilons": [1.0],
        "delta": "auto",
        "test_size": 0.3,
        "repeats": 2,
        "seeded": True,
    }


@pytest.mark.parametrize("scores", [SCORES, SCORES[:1]])
def test_picture_even_without_private_scores(tmp_path, scores):
    path = tmp_path / "accuracy.png"
    assert save_picture(path, Comparison(scores, ()))
    assert path.stat().st_size > 5000
