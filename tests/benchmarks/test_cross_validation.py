"""The general comparison: what is parsed, what is paired, and what a release would cost."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold

from benchmarks import cross_validation
from dp_halfspace import AdaptiveMarginClassifier, PrivateTableClassifier
from dp_halfspace.datasets import make_halfspace
from dp_halfspace.privacy import Gaussian, Pure, epsilon

HOW = {"scoring": "accuracy", "folds": 3, "repeats": 2, "seed": 0}
FAST = "AdaptiveMarginClassifier(epsilon=2, data_norm=1)"


@pytest.fixture(scope="module")
def table():
    X, y = make_halfspace(300, 3, margin=0.2, random_state=0)
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(town="x"), y


def test_classifiers_are_read_as_literals_and_sums():
    one = cross_validation.estimator_of("LogisticRegression(C=.1)")
    assert (type(one), one.C) == (LogisticRegression, 0.1)
    steps = cross_validation.estimator_of("StandardScaler + PCA() + LogisticRegression")
    assert [name for name, _ in steps.steps] == ["standardscaler", "pca", "logisticregression"]
    assert type(cross_validation.estimator_of(FAST)) is AdaptiveMarginClassifier


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Unknown()", "no estimator 'Unknown'"),
        ("__builtins__", "no estimator"),
        ("LogisticRegression(.1)", "no name with parameters"),
        ("LogisticRegression(**{})", "no name with parameters"),
        ("LogisticRegression(C=open('x'))", "malformed"),
        ("(lambda: 1)()", "no name with parameters"),
    ],
)
def test_other_texts_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        cross_validation.estimator_of(text)


@pytest.mark.filterwarnings("ignore:steps of this pipeline")
def test_a_step_that_reads_rows_takes_the_guarantee_away(table):
    X, y = table
    cell = cross_validation.evaluated(
        cross_validation.estimator_of(f"StandardScaler + {FAST}"), X, y, **HOW
    )
    assert cell["released"] is None
    assert cross_validation.release_cost(None, 300, 2, 0.1) == math.inf


def test_a_release_costs_all_fits_and_a_score_for_each_repetition():
    events = [Gaussian(0.3)] * 10
    found = cross_validation.release_cost(events, 100, 2, 0.1)
    assert found == epsilon([*events, Pure(0.1), Pure(0.1)], 1e-4)
    assert found > epsilon(events, 1e-4)


def test_intervals_allow_for_training_sets_that_overlap():
    scores = [0.8, 0.9, 0.7, 0.8]
    mean, half = cross_validation.interval(scores, 2)
    assert mean == pytest.approx(0.8)
    spread = np.std(scores, ddof=1)
    assert half == pytest.approx(3.182 * spread * math.sqrt(1 / 4 + 1), rel=1e-3)


def test_frames_are_for_the_class_of_frames(table):
    X, y = table
    _, whole = cross_validation.prepared(PrivateTableClassifier(), X, y)
    model, numbers = cross_validation.prepared(LogisticRegression(), X, y)
    assert list(whole) == ["a", "b", "c", "town"]
    assert numbers.shape == (300, 3)
    estimator, _ = cross_validation.prepared(AdaptiveMarginClassifier(), X, y)
    assert estimator.classes == [-1, 1]
    assert "classes" not in model.get_params()
    with pytest.raises(ValueError, match="StandardScaler is no classifier"):
        cross_validation.prepared(cross_validation.estimator_of("StandardScaler"), X, y)


def test_a_file_is_read_compared_and_drawn(table, tmp_path, capsys):
    X, y = table
    X.assign(outcome=y).to_csv(tmp_path / "t.csv", index=False)
    picture = tmp_path / "t.svg"
    main = [str(tmp_path / "t.csv"), FAST, "LogisticRegression", "--folds", "2", "--repeats", "1"]
    cross_validation.main([*main, "--target", "outcome", "--picture", str(picture)])
    printed = capsys.readouterr().out
    assert "no guarantee" in printed
    assert "| -  " in printed
    assert picture.stat().st_size > 1000
    with pytest.raises(ValueError, match="must be a column of the table: a, b, c"):
        cross_validation.main([*main, "--target", "none"])


def test_tables_of_scikit_learn():
    X, y = cross_validation.table_of("iris", None)
    assert (X.shape, len(y)) == ((150, 4), 150)


@pytest.mark.slow
def test_folds_are_the_same_for_all_and_fits_are_counted(table):
    X, y = table
    private, other = (
        cross_validation.evaluated(cross_validation.estimator_of(text), X, y, **HOW)
        for text in (FAST, "LogisticRegression")
    )
    assert len(private["scores"]) == len(other["scores"]) == 6
    assert min(other["scores"]) > 0.9
    assert other["released"] is None
    folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    (train, _), *_ = folds.split(X, y)
    alone = AdaptiveMarginClassifier(epsilon=2, data_norm=1, classes=[-1, 1])
    events = alone.fit(X[["a", "b", "c"]].to_numpy()[train], y[train]).privacy_.events
    assert private["released"] == [*events] * 6
