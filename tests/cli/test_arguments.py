"""Options: defaults, and one sentence for each mistake."""

from pathlib import Path

import pytest

from dp_halfspace._cli.arguments import UserError, parse_options


def test_defaults():
    options = parse_options([])
    assert options.epsilons == (0.1, 0.3, 1.0, 3.0, 10.0)
    assert options.delta == "auto"
    assert (options.data, options.target, options.seed) == (None, None, None)
    assert (options.data_norm, options.test_size, options.repeats) == (None, 0.3, 3)
    assert options.out == Path("dp_halfspace_report")


def test_budgets_are_sorted_and_unique():
    assert parse_options(["--epsilon", "3", "0.5", "3"]).epsilons == (0.5, 3.0)
    assert parse_options(["--delta", "0"]).delta == 0.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epsilon"], ["--epsilon", "at least one"]),
        (["--epsilon", "0"], ["--epsilon", "'0'", "positive"]),
        (["--epsilon", "1", "-2"], ["-2"]),
        (["--epsilon", "nan"], ["--epsilon", "positive"]),
        (["--epsilon", "inf"], ["--epsilon", "finite"]),
        (["--epsilon", "one"], ["--epsilon", "'one'", "number"]),
        (["--delta", "0.5"], ["--delta", "0.5", "auto"]),
        (["--delta", "none"], ["--delta", "auto"]),
        (["--delta", "nan"], ["--delta", "auto"]),
        (["--test-size", "1"], ["--test-size", "between 0 and 1"]),
        (["--repeats", "0"], ["--repeats", "at least 1"]),
        (["--seed", "-1"], ["--seed"]),
        (["--seed", "x"], ["--seed", "whole number"]),
        (["--seed", str(2**32)], ["--seed", "between"]),
        (["--data-norm", "2"], ["--data-norm", "--data"]),
        (["--ranges", "r.csv"], ["--ranges", "--data"]),
        (["--target", "y"], ["--target", "--data"]),
        (["--data", "a.csv", "--data-norm", "0"], ["--data-norm", "positive"]),
        (["--eps", "1"], ["--eps"]),
        (["--unknown"], ["--unknown"]),
        (["file.csv"], ["file.csv"]),
    ],
)
def test_mistakes_are_one_sentence(arguments, words):
    with pytest.raises(UserError) as caught:
        parse_options(arguments)
    text = str(caught.value)
    assert "\n" not in text
    for word in words:
        assert word in text
