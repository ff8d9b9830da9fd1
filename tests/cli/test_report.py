"""The table, the JSON file and what they say about privacy."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from dp_halfspace._cli.arguments import parse_options
from dp_halfspace._cli.compare import Comparison, Score
from dp_halfspace._cli.problems import Problem
from dp_halfspace._cli.report import save_json, save_picture, text_report

PROBLEM = Problem("toy", np.zeros((100, 3)), np.arange(100) % 2, 1.5, "none")
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
    text = text_report([PROBLEM], OPTIONS, COMPARISON)
    lines = {line.split("  ")[0]: line.split() for line in text.splitlines()}
    numbers = ["1", "0.850", "+-", "0.050", "0.750", "0.250", "1,", "1e-08"]
    assert lines["Private"][1:] == ["record", *numbers]
    numbers = ["-", "0.500", "+-", "0.000", "-", "0.250", "-"]
    assert lines["majority class"][2:] == ["nothing", *numbers]
    assert "70 training and 30 test rows, 3 columns, 2 classes" in text
    assert "data_norm 1.5" in text


def test_report_says_that_it_is_not_private():
    text = text_report([PROBLEM], OPTIONS, COMPARISON)
    assert "FOR THE CURATOR OF THE DATA ONLY" in text
    assert "not private" in text
    assert "- PrivacyWarning" in text
    assert max(map(len, text.splitlines())) <= 100
    assert "Notes" not in text_report([PROBLEM], OPTIONS, Comparison(SCORES, ()))


LABELS = (*SCORES, score("Labels", 1.0, 0.95, adjacency="replace-one-label"))


def test_protection_of_labels_only_is_marked_everywhere(tmp_path, monkeypatch):
    text = text_report([PROBLEM], OPTIONS, Comparison(LABELS, ()))
    (line,) = [line for line in text.splitlines() if line.startswith("Labels ")]
    assert "LABEL ONLY" in line
    assert '"LABEL ONLY": the labels; all features count' in text
    path = tmp_path / "results.json"
    save_json(path, [PROBLEM], OPTIONS, Comparison(LABELS, ()))
    content = json.loads(path.read_text())
    adjacency = {row["estimator"]: row["adjacency"] for row in content["results"]}
    assert adjacency == {
        "majority class": None,
        "Private": "replace-one",
        "Labels": "replace-one-label",
    }
    assert "all features count as public" in content["adjacencies"]["replace-one-label"]
    drawn = []
    monkeypatch.setattr(
        "matplotlib.figure.Figure.savefig", lambda figure, *_, **__: drawn.append(figure)
    )
    save_picture(tmp_path / "accuracy.png", Comparison(LABELS, ()))
    (axis,) = drawn[0].axes
    lines = {line.get_label(): line for line in axis.get_lines()}
    assert lines["Labels (labels only, features public)"].get_linestyle() == ":"
    assert lines["Private"].get_linestyle() == "-"


@pytest.mark.parametrize("own_units", [True, False])
def test_columns_as_they_came_are_explained(own_units):
    problem = replace(PROBLEM, own_units=own_units)
    text = text_report([problem], OPTIONS, COMPARISON)
    assert ("longer than --data-norm 1.5" in " ".join(text.split())) is own_units
    assert ("--ranges" in text) is own_units
    sparse = replace(problem, X=csr_matrix(PROBLEM.X))  # svmlight files name no columns
    assert "--ranges" not in text_report([sparse], OPTIONS, COMPARISON)


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
