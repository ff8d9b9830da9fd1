"""Rows for a fit and held-out rows: whose choice it is, and that every row is in one file."""

import shlex

import numpy as np
import pytest

from dp_halfspace._cli import main
from dp_halfspace._cli.splits import held_out_units
from tests.cli import example_table

SPLIT = ["split", "own.csv", "--train", "train.csv", "--test", "test.csv"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, lines, name="own.csv"):
    (folder / name).write_text("\n".join(lines) + "\n")


def parts(folder):
    return [(folder / f"{name}.csv").read_text().splitlines() for name in ("train", "test")]


def rows(n, change=None):
    """Rows of n // 2 persons in mixed order; `change` are the rows of one person."""
    order = np.random.default_rng(5).permutation(n)
    return [f"p{k // 2},{k},{k % 3}" if k not in (change or {}) else change[k] for k in order]


def test_every_row_is_in_one_file_as_it_was(folder, capsys):
    lines = ["person,x,y", *rows(40)]
    write(folder, [*lines[:7], "", *lines[7:]])
    assert main(SPLIT) == 0
    train, test = parts(folder)
    assert train[0] == test[0] == lines[0]
    assert sorted(train[1:] + test[1:]) == sorted(lines[1:])
    # Each keeps the order of the table.
    assert train[1:] == [line for line in lines if line in train[1:]]
    assert (len(train), len(test)) == (29, 13)
    out, err = capsys.readouterr()
    assert out == "Written: train.csv, 28 rows; test.csv, 12 rows (at random)\n"
    assert "as private as the table" in err


def test_the_seed_and_the_share_are_those_of_the_options(folder):
    write(folder, ["person,x,y", *rows(40)])
    found = []
    for more in (["--seed", "0"], ["--seed", "0"], ["--seed", "1"], ["--share", ".5"]):
        assert main([*SPLIT, *more]) == 0
        found.append(parts(folder)[1])
    assert found[0] == found[1] != found[2]
    assert len(found[3]) == 21


def test_the_rows_of_a_person_stay_together(folder, capsys):
    write(folder, ["person,x,y", *rows(60)])
    assert main([*SPLIT, "--groups", "person", "--seed", "0"]) == 0
    people = [{line.split(",")[0] for line in part[1:]} for part in parts(folder)]
    assert not people[0] & people[1]
    assert [len(each) for each in people] == [21, 9]
    # How many rows a person has is private, also in sum.
    out = capsys.readouterr().out
    assert out == "Written: train.csv, 21 persons; test.csv, 9 persons (seed 0)\n"
    assert "column 'persn' in" not in out
    assert main([*SPLIT, "--groups", "persn"]) == 2
    assert "did you mean person?" in capsys.readouterr().err


def test_a_person_of_two_spellings_is_one_as_in_a_fit(folder, capsys):
    write(folder, ["person,x,y", "7,1,0", "007,2,0", "8,3,1"])
    assert main([*SPLIT, "--groups", "person"]) == 0
    assert "train.csv, 1 persons; test.csv, 1 persons" in capsys.readouterr().out


def test_a_replaced_record_moves_no_other(folder):
    """Planted: a choice by the sorted names of persons, or by cells."""
    write(folder, ["person,x,y", *rows(60)])
    for more in (["--seed", "0"], ["--seed", "0", "--groups", "person"]):
        assert main([*SPLIT, *more]) == 0
        before = parts(folder)
        # The new name is before all others.
        write(folder, ["person,x,y", *rows(60, {8: "a0,900,0", 9: "a0,901,0"})], "next.csv")
        assert main(["split", "next.csv", *SPLIT[2:], *more]) == 0
        changed = 0
        for one, other in zip(before, parts(folder), strict=True):
            assert len(one) == len(other)
            changed += sum(a != b for a, b in zip(one, other, strict=True))
        assert changed == 2


def test_the_order_of_persons_does_not_tell_who_is_held_out(folder):
    """With a seed, nobody would be held out in both tables, or all would."""
    others = [f"p{k},{k},{k % 2}" for k in range(40)]
    for lines in (["a,900,0", *others], [*others, "a,900,0"]):
        write(folder, ["person,x,y", *lines])
        times = np.zeros(41)
        for _ in range(60):
            assert main([*SPLIT, "--groups", "person"]) == 0
            held_out = parts(folder)[1][1:]
            assert len(held_out) == 12
            times += [line in held_out for line in [*others, "a,900,0"]]
        assert times.min() > 0
        assert times.max() < 60


@pytest.mark.parametrize(("count", "share", "expected"), [(2, 0.01, 1), (2, 0.99, 1), (10, 0.3, 3)])
def test_no_file_is_empty(count, share, expected):
    assert held_out_units(count, share, 0).sum() == expected


def test_other_encodings_and_files(folder, capsys):
    text = "name;y\n" + "\n".join(f"Müller {k};{k % 2}" for k in range(10))
    (folder / "own.csv").write_bytes(text.encode("cp1252"))
    assert main(["split", "own.csv", *SPLIT[2:], "--encoding", "cp1252"]) == 0
    text = (folder / "train.csv").read_bytes().decode("cp1252")
    assert (text.count("Müller"), text.endswith("\n")) == (7, True)
    capsys.readouterr()
    for wrong, words in (
        (["split", "own.parquet", *SPLIT[2:]], "own.parquet is no CSV"),
        (["split", "own.csv", "--train", "a.csv", "--test", "b.parquet"], "b.parquet is no CSV"),
        (["split", "own.xlsx", *SPLIT[2:]], "own.xlsx is no CSV"),
        ([*SPLIT[:4], "--test", "train.csv"], "the same file"),
        (["split", "train.csv", *SPLIT[2:]], "the same file"),
        (["split", "none.csv", *SPLIT[2:]], "cannot read none.csv"),
    ):
        assert main(wrong) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1
    write(folder, ["a,y", "1,2"])
    assert main(SPLIT) == 2
    assert "cannot be divided" in capsys.readouterr().err


def test_the_table_of_the_package_is_the_simulated_one():
    """And no record of a person."""
    assert example_table.PATH.read_text(encoding="utf-8") == example_table.text()


def test_the_example_can_be_split_fitted_and_scored(folder, capsys):
    people = ["--groups", "patient"]
    table = "example:patients.csv"
    assert main(["split", table, *SPLIT[2:], *people, "--seed", "0"]) == 0
    given = ["fit", "train.csv", "--target", "outcome", "--classes", "no", "yes", "--epsilon", "3"]
    assert main([*given, *people, "--save", "m.joblib"]) == 0
    scored = ["evaluate", "m.joblib", "test.csv", "--target", "outcome", "--epsilon", "3"]
    capsys.readouterr()
    assert main([*scored, *people, "--metric", "auc"]) == 0
    value = float(capsys.readouterr().out.splitlines()[1].split()[1])
    assert value > 0.7


def test_the_second_line_of_the_readme_runs_as_it_stands(folder):
    (line,) = (
        line
        for line in (example_table.PATH.parents[3] / "README.md").read_text().splitlines()
        if line.startswith("python -m dp_halfspace fit ")
    )
    assert main(shlex.split(line)[3:]) == 0
    assert {path.name for path in folder.iterdir()} == {"model.joblib", "card.html"}


def test_blanks_in_names_do_not_separate_where_commas_do(folder):
    write(folder, ["Body Mass (g),Date of Egg,y", *(f'"{k}, {k}",{k},no' for k in range(9))])
    assert main(["split", "own.csv", "--train", "train.csv", "--test", "test.csv"]) == 0
    train, test = parts(folder)
    assert len(train) + len(test) == 11
