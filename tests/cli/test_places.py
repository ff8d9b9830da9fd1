"""What a command writes never takes the place of what it reads, a ledger or another output."""

import os
from pathlib import Path

import joblib
import numpy as np
import pandas
import pytest

from dp_halfspace import PrivacyLedger, PrivateTableClassifier
from dp_halfspace._cli import main

FIT = ["fit", "t.csv", "--target", "y", "--epsilon", "4", "--schema", "s.json"]
LEDGER = ["--ledger", "l.db", "--cap", "5", "1e-4"]


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"a": rng.uniform(0, 9, 400).round(3)})
    schema = {"a": [0, 9]}
    fitted = PrivateTableClassifier(epsilon=5.0, schema=schema, classes=["no", "yes"])
    fitted.fit(frame, np.where(frame["a"] > 5, "yes", "no"))
    return frame.assign(y=np.where(frame["a"] > 5, "yes", "no")), fitted


@pytest.fixture
def folder(model, tmp_path, monkeypatch):
    """A table, its schema, a ledger with an entry, a model, and other names of them."""
    monkeypatch.chdir(tmp_path)
    frame, fitted = model
    frame.to_csv("t.csv", index=False)
    Path("s.json").write_text('{"columns": {"a": [0, 9]}, "target": ["no", "yes"]}')
    PrivacyLedger("l.db", epsilon=5.0, delta=1e-4).charge(fitted.privacy_)
    joblib.dump(fitted, "m.joblib")
    Path("below").mkdir()
    for name in ("t.csv", "s.json", "l.db", "m.joblib"):
        Path(f"soft-{name}").symlink_to(name)
        os.link(name, f"hard-{name}")
    return tmp_path


def spellings(folder, name):
    upper = name.upper()
    return [name, f"soft-{name}", f"hard-{name}", f"below/../{name}", str(folder / name), upper]


def contents(folder):
    return {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def assert_refused(folder, capsys, arguments, *options):
    """In one sentence that names the options, and nothing is read, charged or written."""
    before = contents(folder)
    assert main([str(part) for part in arguments]) == 2
    printed, errors = capsys.readouterr()
    assert printed == ""
    assert len(errors.splitlines()) == 1
    for option in options:
        assert option in errors
    assert contents(folder) == before


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("option", "other"), [("--save", "--card"), ("--card", "--save")])
@pytest.mark.parametrize("name", ["t.csv", "s.json", "l.db"])
def test_a_model_or_card_is_never_written_over_what_a_fit_uses(folder, capsys, name, option, other):
    read = {"t.csv": "TABLE", "s.json": "--schema", "l.db": "--ledger"}[name]
    for spelling in spellings(folder, name):
        arguments = [*FIT, "--ledger", "l.db", option, spelling, other, "new"]
        assert_refused(folder, capsys, arguments, f"{option} and {read}", "same file")


def test_a_ledger_that_is_not_there_yet_is_compared_by_its_path(folder, capsys):
    new = ["--ledger", "below/../new.db", "--cap", "5", "1e-4"]
    for name in ("new.db", "NEW.db", str(folder / "new.db")):
        assert_refused(folder, capsys, [*FIT, *new, "--save", name], "--save and --ledger")
    for end in ("-journal", "-wal", "-shm"):
        arguments = [*FIT, *new, "--save", f"new.db{end}"]
        assert_refused(folder, capsys, arguments, "--save", "--ledger")
    assert not Path("new.db").exists()


@pytest.mark.parametrize("end", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("ledger", ["l.db", "soft-l.db"])
def test_the_files_beside_a_ledger_are_spared(folder, capsys, end, ledger):
    for name in (f"l.db{end}", f"below/../l.db{end}"):
        assert_refused(folder, capsys, [*FIT, "--ledger", ledger, "--save", name], "--save")


def test_two_outputs_are_two_files(folder, capsys):
    for card in ("new", "below/../new"):
        arguments = [*FIT, *LEDGER, "--save", "new", "--card", card]
        assert_refused(folder, capsys, arguments, "--save and --card")


@pytest.mark.parametrize("name", ["m.joblib", "t.csv"])
def test_predictions_are_never_written_over_what_they_are_made_from(folder, capsys, name):
    option = "MODEL" if name == "m.joblib" else "TABLE"
    for spelling in spellings(folder, name):
        arguments = ["predict", "m.joblib", "t.csv", "--out", spelling]
        assert_refused(folder, capsys, arguments, f"--out and {option}")


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "name", ["l.db", "soft-l.db", "hard-l.db", "below/../l.db", "l.db-journal", "soft-l.db-wal"]
)
@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "m.joblib", "t.csv", "--out"],
        [*FIT, "--save"],
        [*FIT, "--save", "new", "--card"],
    ],
)
def test_no_command_overwrites_a_ledger_that_it_was_not_told_of(folder, capsys, name, arguments):
    option = arguments[-1]
    assert_refused(folder, capsys, [*arguments, name], option, "is a file of a ledger")


def test_a_device_is_not_replaced_by_a_file(folder, capsys):
    os.mkfifo("pipe")
    assert_refused(folder, capsys, [*FIT, *LEDGER, "--save", "pipe"], "--save: pipe cannot be")
    assert Path("pipe").is_fifo()
