"""Options: defaults, and one sentence for each mistake."""

import argparse
import re

import pytest

from dp_halfspace._cli.arguments import _COMMANDS, COMMAND_NAMES, UserError, parse_options


def test_delta_and_labels_are_read():
    fit = ["fit", "a.csv", "--target", "y", "--epsilon", "1", "--save", "m"]
    options = parse_options([*fit, "--classes", "no, yes", "--delta", "0"])
    assert (options.command, options.classes, options.delta) == ("fit", ["no", "yes"], 0.0)
    assert (options.epsilon, options.encoding, options.decimal) == (1.0, "utf-8-sig", None)


FIT = ["fit", "a.csv", "--target", "y", "--epsilon", "1", "--save", "m"]
EVALUATE = ["evaluate", "m", "a.csv", "--target", "y", "--epsilon", "1"]


@pytest.mark.parametrize(
    ("command", "option", "words", "expected"),
    [
        (FIT, "classes", ["no,yes"], ["no", "yes"]),
        (FIT, "classes", ["no", "yes"], ["no", "yes"]),
        (FIT, "classes", ["no,", "not sure,", "yes"], ["no", "not sure", "yes"]),
        (FIT, "classes", ["no,not sure"], ["no", "not sure"]),
        (EVALUATE, "metric", ["f1,auc"], ["f1", "roc_auc"]),
        (EVALUATE, "metric", ["f1", "auc"], ["f1", "roc_auc"]),
        ([], "epsilon", ["1,3"], [1.0, 3.0]),
        ([], "epsilon", ["1", "3"], [1.0, 3.0]),
        ([], "epsilon", ["1,", "3"], [1.0, 3.0]),
        (FIT, "cap", ["3", "1e-6"], [3.0, 1e-6]),
        (FIT, "drop", ["a,b"], ["a", "b"]),
        (FIT, "drop", ["a", "b c"], ["a", "b c"]),
    ],
)
def test_lists_are_separated_by_commas_or_blanks(command, option, words, expected):
    options = parse_options([*command, f"--{option}", *words])
    assert getattr(options, "epsilons" if option == "epsilon" else option) == expected
    if len(words) == 1:
        options = parse_options([*command, f"--{option}={words[0]}"])
        assert getattr(options, "epsilons" if option == "epsilon" else option) == expected


def test_a_dry_run_names_no_file_of_a_model():
    for words in ([*FIT[:-2], "--dry-run"], ["fit", "--dry-run", *FIT[1:-2]]):
        options = parse_options(words)
        assert (options.dry_run, options.save) == (True, None)
    assert parse_options(FIT).dry_run is False


def test_the_table_of_the_package_is_found():
    path = parse_options(["fit", "example:patients.csv", *FIT[2:]]).table
    assert (path.name, path.exists()) == ("patients.csv", True)
    assert path.stat().st_size < 100_000


@pytest.mark.parametrize("name", _COMMANDS)
def test_defaults_are_those_of_the_help(name):
    parser = argparse.ArgumentParser()
    _COMMANDS[name][0](parser)
    for action in parser._actions:
        if said := re.search(r"\(default: ([\d. ]+|auto|accuracy)\)", action.help or ""):
            found = action.default if isinstance(action.default, list) else [action.default]
            assert [f"{each:g}" if isinstance(each, float) else str(each) for each in found] == (
                said[1].split()
            )


def test_the_ends_of_ranges_are_read():
    plan = ["plan", "--rows", "1", "--columns", "1", "--classes", "1", "--seed"]
    for seed in (0, 2**32 - 1):
        assert parse_options([*plan, str(seed)]).seed == seed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epsilon"], ["--epsilon", "at least one"]),
        (["--epsilon", "0"], ["--epsilon", "'0'", "positive"]),
        (["--epsilon", "1", "-2"], ["-2"]),
        (["--epsilon", "nan"], ["--epsilon", "positive"]),
        (["--epsilon", "inf"], ["--epsilon", "finite"]),
        (["--epsilon", "one"], ["--epsilon", "'one'", "number"]),
        (["fit", "--delta", "0.5"], ["--delta", "0.5", "auto"]),
        (["fit", "--delta", "none"], ["--delta", "auto"]),
        (["fit", "--delta", "nan"], ["--delta", "auto"]),
        (["plan", "--reference", "1"], ["--reference", "between 0 and 1"]),
        (["--repeats", "0"], ["--repeats", "at least 1"]),
        (["plan", "--seed", "-1"], ["--seed"]),
        (["plan", "--seed", "x"], ["--seed", "whole number"]),
        (["plan", "--seed", str(2**32)], ["--seed", "between"]),
        (["--target", "y"], ["--target"]),
        (["fit", "a.csv"], ["--target", "--epsilon", "fit --help"]),
        (["fit", "a.csv", "--target", "y", "--epsilon", "1"], ["--save", "fit --help"]),
        (["fit", "a.csv", "--classes", "a,a"], ["--classes", "distinct"]),
        (["fit", "a.csv", "--classes", "a"], ["--classes", "two or more"]),
        (["fit", "a.csv", "--classes", "a,"], ["--classes", "two or more"]),
        ([*FIT, "--cap", "1"], ["--cap", "expected 2 arguments"]),
        ([*FIT, "--cap", "1", "x"], ["--cap", "'x' is not a number"]),
        (["predict", "m"], ["TABLE", "--out"]),
        (["--eps", "1"], ["--eps"]),
        (["fit", "a.csv", "--epsilom", "1"], ["--epsilom; did you mean --epsilon? ("]),
        (["fti", "a.csv"], ["'fti' is not a command", "; did you mean fit?"]),
        (["evaluate", "m", "a.csv", "--metric", "acuracy"], ["did you mean accuracy?"]),
        (["evaluate", "m", "a.csv", "--metric", "f2"], ["'f2' is not a metric; choose from acc"]),
        (["evaluate", "m", "a.csv", "--metric", "accuracy,"], ["'' is not a metric; choose"]),
        (["fit", "example:people.csv"], ["'example:people.csv' is not", "example:patients.csv"]),
        (["--unknown"], ["--unknown"]),
        (
            ["file.csv"],
            ["'file.csv' is not a command", "plan, fit, split, card, schema, predict, evaluate"],
        ),
    ],
)
def test_mistakes_are_one_sentence(arguments, words):
    with pytest.raises(UserError) as caught:
        parse_options(arguments)
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text


def test_help_says_what_every_command_does(capsys):
    with pytest.raises(SystemExit):
        parse_options(["--help"])
    text = capsys.readouterr().out
    for name in COMMAND_NAMES:
        line = next(line for line in text.splitlines() if line.startswith(f"  {name} "))
        assert len(line.split()) > 3
    with pytest.raises(SystemExit):
        parse_options(["fit", "--help"])
    text = capsys.readouterr().out
    assert "--classes LABEL" in text
    assert "{.,,}" not in text
