"""The command that says what accuracy to expect."""

import pytest

from dp_halfspace._cli import commands, main

SIZE = ["plan", "--rows", "500", "--columns", "3", "--repeats", "2", "--epsilon", "1", "3"]


def test_a_plan_is_a_short_table(capsys):
    assert main([*SIZE, "--seed", "1"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("500 rows, 3 columns, 2 classes, delta 4e-06\nepsilon ")
    assert "no privacy     0.850" in text
    assert main([*SIZE, "--seed", "1"]) == 0
    assert text == capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["--reference", "0.4"], "reference must be above"),
        (["--reference", "1.5"], "at most 1"),
        (["--repeats", "1"], "n_repeats"),
        (["--rows", "0"], "n_samples must be a positive integer"),
        (["--seed", "-1"], "nonnegative int"),
    ],
)
def test_mistakes_are_one_sentence(changes, words, capsys):
    assert main([*SIZE, *changes]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert words in error


def test_options_reach_the_plan(monkeypatch, capsys):
    given = {}

    def plan_accuracy(*sizes, **options):
        given.update(options, sizes=sizes)
        raise ValueError("seen")

    monkeypatch.setattr(commands, "plan_accuracy", plan_accuracy)
    sizes = ["plan", "--rows", "500", "--columns", "3", "--classes", "4", "--epsilon", "2"]
    more = ["--reference", "0.7", "--majority", "0.6", "--reference-area", "0.9"]
    assert main([*sizes, *more, "--repeats", "5", "--seed", "6"]) == 2
    assert capsys.readouterr().err.endswith("seen\n")
    assert given == {
        **{"sizes": (500, 3, 4, [2.0]), "reference": 0.7, "majority": 0.6},
        **{"reference_area": 0.9, "n_repeats": 5, "random_state": 6},
    }


def test_a_plan_names_the_majority_class(capsys):
    for more, said in (
        ([], "0.500, for classes of equal size."),
        (["--classes", "4"], "0.250, for classes of equal size."),
        (["--majority", "0.7", "--reference", "0.8"], "0.700, as stated."),
    ):
        assert main([*SIZE, *more]) == 0
        assert f"The majority class alone: {said}" in capsys.readouterr().out


def test_a_rare_label_is_planned_by_the_area(capsys):
    assert main([*SIZE, "--majority", "0.95", "--reference-area", "0.8"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "no privacy 0.800 assumed" in text
    assert "The majority class alone: 0.950, as stated." in text
    assert main([*SIZE, "--classes", "3", "--reference-area", "0.8"]) == 2
    assert "of two classes" in capsys.readouterr().err


def test_a_majority_near_the_accuracy_is_planned_by_the_area(capsys):
    """Planted: an accuracy of .85 without privacy, which the majority class has, and no signal."""
    for more in ([], ["--reference", "0.86"], ["--majority", "0.99"]):
        assert main([*SIZE, "--majority", "0.85", *more]) == 2
        assert "state reference_area instead" in capsys.readouterr().err
    assert main([*SIZE, "--majority", "0.7"]) == 0
    assert "no privacy     0.850  assumed" in capsys.readouterr().out
