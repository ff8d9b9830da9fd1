"""Options: defaults, and one sentence for each mistake."""

import re

import pytest

from dp_halfspace._cli.arguments import _COMMANDS, COMMAND_NAMES, UserError, _Parser, parse_options


def test_delta_and_labels_are_read():
    fit = ["fit", "a.csv", "--target", "y", "--epsilon", "1", "--save", "m"]
    options = parse_options([*fit, "--classes", "no, yes", "--delta", "0"])
    assert (options.command, options.classes, options.delta) == ("fit", ["no", "yes"], 0.0)
    assert (options.epsilon, options.encoding, options.decimal) == (1.0, "utf-8-sig", None)
    assert parse_options([]).epsilons == [0.3, 1.0, 3.0, 10.0]


FIT = ["fit", "a.csv", "--target", "y", "--epsilon", "1", "--save", "m"]
EVALUATE = ["evaluate", "m", "a.csv", "--target", "y", "--epsilon", "1"]


@pytest.mark.parametrize(
    ("command", "option", "words", "expected"),
    [
        (FIT, "classes", ["no,yes"], ["no", "yes"]),
        (FIT, "classes", ["no", "yes"], ["no", "yes"]),
        (FIT, "classes", ["no,", "not sure,", "yes"], ["no", "not sure", "yes"]),
        (FIT, "classes", ["no,not sure"], ["no", "not sure"]),
        (FIT, "classes", ["no,yes,"], ["no", "yes"]),
        (EVALUATE, "metric", ["f1,auc"], ["f1", "auc"]),
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
    parser = _Parser()
    _COMMANDS[name][0](parser.add)
    for action in parser._actions:
        if said := re.search(r"\(default: ([\d. ]+|auto|accuracy)\)", action.help or ""):
            found = action.default if isinstance(action.default, list) else [action.default]
            assert [f"{each:g}" if isinstance(each, float) else str(each) for each in found] == (
                said[1].split()
            )


def test_the_ends_of_ranges_are_read():
    split = ["split", "a.csv", "--train", "b.csv", "--test", "c.csv", "--seed"]
    for seed in (0, 2**32):
        assert parse_options([*split, str(seed)]).seed == seed


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
        (["--repeats", "0"], ["--repeats", "at least 1"]),
        (["plan", "--seed", "x"], ["--seed", "int"]),
        (["plan", "--epsilon", "1"], ["required", "--rows", "--columns"]),
        (["split", "--seed", "-1"], ["--seed", "'-1'", "at least 0"]),
        (["split", "--seed", "1.5"], ["--seed", "whole number"]),
        *((["split", "--share", x], ["--share", "between 0 and 1"]) for x in ("0", "1", "30")),
        (["--target", "y"], ["--target"]),
        (["fit", "a.csv"], ["--target", "--epsilon", "fit --help"]),
        (["fit", "a.csv", "--target", "y", "--epsilon", "1"], ["--save", "fit --help"]),
        ([*FIT, "--cap", "1"], ["--cap", "expected 2 arguments"]),
        ([*FIT, "--cap", "1", "x"], ["--cap", "float", "'x'"]),
        (["predict", "m"], ["TABLE", "--out"]),
        (["--eps", "1"], ["--eps"]),
        (["fit", "a.csv", "--epsilom", "1"], ["--epsilom; did you mean --epsilon? ("]),
        (["fti", "a.csv"], ["'fti' is not a command", "; did you mean fit?"]),
        (["fit", "example:people.csv"], ["'example:people.csv' is no", "example:patients.csv"]),
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
        assert line.endswith(".")
    with pytest.raises(SystemExit):
        parse_options(["fit", "--help"])
    text = capsys.readouterr().out
    assert "--classes LABEL" in text
    assert "{.,,}" not in text
