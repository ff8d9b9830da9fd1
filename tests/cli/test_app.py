"""The command line from end to end."""

import importlib
import os
import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

import dp_halfspace
from dp_halfspace._cli import commands, demo, main

# The package of this checkout, installed or not.
ROOT = Path(__file__).resolve().parents[2]
FAST = ["--epsilon", "1", "3", "--repeats", "1"]


class FakeClassifier(RidgeClassifier):
    """A fast classifier with the parameters that the demonstration sets."""

    def __init__(self, *, epsilon=1.0, classes=None):
        super().__init__()
        self.epsilon = epsilon
        self.classes = classes

    def fit(self, X, y):
        assert self.classes == [0, 1]
        return super().fit(X, y)


@pytest.fixture
def suite(monkeypatch):
    """Let the demonstration show the fake class alone."""
    monkeypatch.setattr(dp_halfspace, "FakeClassifier", FakeClassifier, raising=False)
    monkeypatch.setattr(demo, "SHOWN", ("FakeClassifier",))


def test_main_job_is_one_short_table(suite, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(FAST) == 0
    text, progress = capsys.readouterr()
    assert not os.listdir()
    assert progress.splitlines() == [
        "dp_halfspace: majority class",
        "dp_halfspace: FakeClassifier",
        "dp_halfspace: LinearSVC, without privacy",
    ]
    assert max(map(len, text.splitlines())) <= 100
    assert text.startswith(f"dp_halfspace {dp_halfspace.__version__}: which private classifier")
    assert "426 training and 143 test rows, 30 columns" in text
    assert "delta = 5.5e-06" in text
    assert "\nAdvice: " in text
    assert main(FAST) == 0
    assert capsys.readouterr().out == text
    lines = [line.split("  ") for line in text.splitlines()]
    names = {line[0] for line in lines}
    assert {"majority class", "LinearSVC, without privacy", "FakeClassifier"} <= names


def scores_of(scores, reference=0.9):
    """Scores as `score_all` returns them, from the accuracies of each class at each budget."""
    found = {"majority class": [0.5], **scores, "LinearSVC, without privacy": [reference]}
    shape = np.broadcast_shapes(*(np.shape(np.atleast_2d(each)) for each in scores.values()))
    return {name: np.broadcast_to(each, shape).astype(float) for name, each in found.items()}


def curves(**accuracies):
    """One split at the budgets 1 and 3, or at 1 alone."""
    return {name: np.array(found)[:, None] for name, found in accuracies.items()}


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        # The smallest budget that is nearly enough, and the best class there.
        (curves(A=[0.88, 0.9], B=[0.7, 0.91]), "A at epsilon 1,"),
        (curves(A=[0.7, 0.8], B=[0.7, 0.85]), "B at epsilon 3,"),
        ({"A": [[0.89, 0.891]], "B": [[0.8, 0.8]]}, "98 % of the improvement"),
        (curves(A=[0.5], B=[0.6]), "none of these classes reaches more than 25 %"),
    ],
)
def test_the_advice_follows_from_the_table(scores, words):
    found = scores_of(scores)
    text = demo.advice(found, [1.0, 3.0][: len(found["A"])])
    assert words in text
    assert text.startswith("Advice: ")
    assert text.endswith(".")
    assert text.count(". ") == 0


def test_the_table_has_means_and_spreads_between_the_levels():
    scores = {"A": [[0.5, 0.52], [0.8, 0.9]], "B": [[0.6, 0.6], [0.9, 0.9]]}
    text = demo.format_scores(scores_of(scores), [1.0, 3.0])
    lines = [line.split() for line in text.splitlines()]
    assert lines[0] == ["epsilon", "1", "epsilon", "3"]
    assert [line[0] for line in lines[1:]] == ["majority", "A", "B", "LinearSVC,"]
    assert lines[2][1:] == ["0.510", "±", "0.014", "0.850", "±", "0.071"]
    assert lines[3][1:] == ["0.600", "±", "0.000", "0.900", "±", "0.000"]
    text = demo.format_scores(scores_of({"A": [[0.4, 0.5, 0.6]]}), [1.0])
    assert text.splitlines()[2].split() == ["A", "0.500", "±", "0.100"]


def test_the_demonstration_shows_three_classes_that_the_package_exports():
    assert set(demo.SHOWN) <= set(dp_halfspace.__all__)
    assert len(demo.SHOWN) == 3


def test_help_shows_an_example(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    assert "python -m dp_halfspace fit" in capsys.readouterr().out.split("example:")[1]


@pytest.mark.parametrize("command", [[], ["fit"], ["evaluate"]])
def test_help_calls_the_command_as_the_user_did(command, capsys, monkeypatch):
    for program in ("/usr/bin/dp-halfspace", "dp-halfspace.exe"):
        monkeypatch.setattr(sys, "argv", [program, *command, "--help"])
        with pytest.raises(SystemExit):
            main()
        printed = capsys.readouterr().out
        assert " ".join(["usage: dp-halfspace", *command]) in printed
        assert "python -m" not in printed
        assert main(["--epsilon", "0"]) == 2
        assert "(see dp-halfspace --help)" in capsys.readouterr().err


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"dp_halfspace {dp_halfspace.__version__}\n"


def test_the_console_script_is_this_command():
    text = (ROOT / "pyproject.toml").read_text()
    (target,) = re.findall(r'^\[project\.scripts\]\ndp-halfspace = "(.*)"$', text, re.M)
    module, name = target.split(":")
    assert getattr(importlib.import_module(module), name) is main


def test_a_lack_of_memory_is_status_2_and_one_line_without_a_shape(capsys, monkeypatch):
    def exhausted(*_):
        raise MemoryError("Unable to allocate 9 GiB for an array with shape (7654321, 100)")

    monkeypatch.setitem(commands.COMMANDS, "plan", exhausted)
    assert main(["plan", "--rows", "9", "--columns", "2"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("dp_halfspace: error: there is not enough memory: ")
    assert len(said.splitlines()) == 1
    assert "7654321" not in said


def test_wrong_use_is_status_2_and_one_line(capsys):
    assert main(["schema", "absent.csv"]) == 2
    printed, lines = capsys.readouterr()
    assert lines == "dp_halfspace: error: cannot read absent.csv: No such file or directory\n"
    assert printed == ""


@pytest.mark.slow
def test_default_run_of_the_real_suite_is_quick(capsys):
    started = time.monotonic()
    assert main([]) == 0
    assert time.monotonic() - started < 60
    printed = capsys.readouterr().out
    assert all(name in printed for name in demo.SHOWN)
