"""The table, the JSON file and what they say about privacy."""

import json

import numpy as np

from dp_halfspace._cli.arguments import parse_options
from dp_halfspace._cli.compare import Comparison, Score
from dp_halfspace._cli.problems import Problem
from dp_halfspace._cli.report import save_json, text_report

PROBLEM = Problem("toy", np.zeros((100, 3)), np.arange(100) % 2, [0, 1], "units of {the moon}", 1.5)
OPTIONS = parse_options(["--epsilon", "1", "--repeats", "2", "--seed", "4"])


def score(estimator, epsilon, accuracy, auc=0.75, adjacency="replace-one"):
    kept = (None, None) if epsilon is None else (epsilon, 1e-8)
    adjacency = None if epsilon is None else adjacency
    return Score("toy", estimator, adjacency, epsilon, accuracy, auc, 0.25, *kept)


SCORES = (
    score("majority class", None, 0.5, auc=float("nan")),
    score("Private", 1.0, 0.8),
    score("majority class", None, 0.5, auc=float("nan")),
    score("Private", 1.0, 0.9),
)
COMPARISON = Comparison(SCORES, ("PrivacyWarning: " + "long " * 40,))


def test_table_shows_means_spread_and_budgets():
    text = text_report(PROBLEM, OPTIONS, COMPARISON)
    lines = {line.split("  ")[0]: line.split() for line in text.splitlines()}
    assert lines["accuracy at epsilon"][3:] == ["protects", "1", "AUC", "fit,", "s", "delta"]
    assert lines["Private"][1:] == ["record", "0.850", "0.750", "0.25", "1e-08"]
    assert lines["majority class"][2:] == ["nothing", "0.500", "-", "0.25", "-"]
    assert "70 training and 30 test rows, 3 columns, 2 classes;\nunits of {the moon}" in text


def test_report_says_that_it_is_not_private():
    text = text_report(PROBLEM, OPTIONS, COMPARISON)
    assert "FOR THE CURATOR OF THE DATA ONLY" in text
    assert "not private" in text
    assert "- PrivacyWarning" in text
    assert max(map(len, text.splitlines())) <= 100
    assert "Notes" not in text_report(PROBLEM, OPTIONS, Comparison(SCORES, ()))


LABELS = (*SCORES, score("Labels", 1.0, 0.95, adjacency="replace-one-label"))


def test_protection_of_labels_only_is_marked_everywhere(tmp_path):
    text = text_report(PROBLEM, OPTIONS, Comparison(LABELS, ()))
    (line,) = [line for line in text.splitlines() if line.startswith("Labels ")]
    assert "LABEL ONLY" in line
    assert '"LABEL ONLY": the labels; all features count' in text
    path = tmp_path / "results.json"
    save_json(path, PROBLEM, OPTIONS, Comparison(LABELS, ()))
    content = json.loads(path.read_text())
    adjacency = {row["estimator"]: row["adjacency"] for row in content["results"]}
    assert adjacency == {
        "majority class": None,
        "Private": "replace-one",
        "Labels": "replace-one-label",
    }
    assert "all features count as public" in content["adjacencies"]["replace-one-label"]
