"""Whoever was charged and got nothing is told so, in one sentence."""

import contextlib
import errno
import os
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest

from dp_halfspace import PrivacyLedger
from dp_halfspace._cli import commands, main
from dp_halfspace._cli.arguments import NO_MEMORY, UserError
from dp_halfspace.ledger.ledger import PrivacyLedger as Ledger
from dp_halfspace.metrics import private_score

FIT = ["fit", "t.csv", "--target", "y", "--epsilon", "4", "--delta", "1e-6", "--save", "m.joblib"]
SCORE = ["evaluate", "m.joblib", "t.csv", "--target", "y", "--epsilon", "1"]
LEDGER = ["--ledger", "l.db", "--cap", "9", "1e-4"]
STAYS = "; epsilon 4, delta 1e-06 remain charged to the ledger l.db, and "
NOTHING = "no model was made or saved"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"a": rng.uniform(0, 9, 759).round(3)})
    frame.assign(y=np.where(frame["a"] > 5, "yes", "no")).to_csv("t.csv", index=False)
    return tmp_path


def last_line(capsys):
    return capsys.readouterr().err.splitlines()[-1].removeprefix("dp_halfspace: ")


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupted(*_, **__):
    raise KeyboardInterrupt


def booked():
    return len(PrivacyLedger("l.db").entries())


def test_the_entries_say_what_for_and_by_whom(folder, capsys):
    assert main([*FIT, *LEDGER, "--purpose", "triage model"]) == 0
    # The file of a model may be published, and the path of a ledger is private.
    assert b"l.db" not in Path("m.joblib").read_bytes()
    assert main([*SCORE, "--ledger", "l.db"]) == 0
    texts = [(entry.estimator, entry.purpose) for entry in PrivacyLedger("l.db").entries()]
    assert texts == [("PrivateTableClassifier", "triage model"), ("private_score", None)]
    lines = [x for x in capsys.readouterr().out.splitlines() if x.startswith("Ledger:")]
    assert lines[0].startswith("Ledger:    1 entry, epsilon 4 of 9 asked for")
    assert lines[1].startswith("Ledger:    2 entries, epsilon 5 of 9 asked for")
    assert main([*FIT, *LEDGER, "--purpose", " "]) == 2
    assert "purpose must be a text" in last_line(capsys)


def test_a_full_disk_after_the_charge(folder, capsys, monkeypatch):
    monkeypatch.setattr(commands.joblib, "dump", full)
    assert main([*FIT, *LEDGER]) == 2
    text = "error: cannot write m.joblib: No space left on device"
    assert last_line(capsys) == f"{text}{STAYS}{NOTHING}"
    assert booked() == 1
    assert main(FIT) == 2
    assert last_line(capsys) == text
    assert {path.name for path in folder.iterdir()} == {"t.csv", "l.db"}


@pytest.mark.parametrize("place", ["in the charge", "before the model is written"])
def test_an_interrupt_after_the_charge(folder, capsys, monkeypatch, place):
    honest = Ledger.charge

    def charge(self, record):
        """After the commit, before anybody knows of it."""
        honest(self, record)
        raise KeyboardInterrupt

    if place == "in the charge":
        monkeypatch.setattr(Ledger, "charge", charge)
    else:
        monkeypatch.setattr(commands.joblib, "dump", interrupted)
    assert main([*FIT, *LEDGER]) == 130
    assert last_line(capsys) == f"interrupted{STAYS}{NOTHING}"
    assert booked() == 1


def test_an_interrupt_before_the_charge_books_nothing_and_says_so(folder, capsys, monkeypatch):
    monkeypatch.setattr(Ledger, "charge", interrupted)
    assert main([*FIT, *LEDGER]) == 130
    assert last_line(capsys) == "interrupted; nothing was written"
    assert booked() == 0


def test_a_refused_charge_is_not_called_charged(folder, capsys):
    assert main([*FIT, *LEDGER]) == 0
    capsys.readouterr()
    assert main([*FIT, *LEDGER, "--epsilon", "20"]) == 2
    line = last_line(capsys)
    assert "exceeds the remaining budget" in line
    assert "remain charged" not in line


def test_a_defect_after_the_charge(folder, capsys, monkeypatch):
    """An estimator that refuses in the middle, or has no memory left."""
    honest = Ledger.charge
    for error, text in (
        (ValueError("no\nsolution"), "no solution"),
        (MemoryError(), NO_MEMORY),
    ):

        def charge(self, record, error=error):
            honest(self, record)
            raise error

        monkeypatch.setattr(Ledger, "charge", charge)
        assert main([*FIT, *LEDGER]) == 2
        assert last_line(capsys) == f"error: {text}{STAYS}{NOTHING}"


def refused(*_, **__):
    raise UserError("cannot write c.html")


@pytest.mark.parametrize(
    ("name", "fault", "status"), [("write_text", refused, 2), ("model_card", interrupted, 130)]
)
def test_a_card_that_fails_leaves_the_model(folder, capsys, monkeypatch, name, fault, status):
    monkeypatch.setattr(commands, name, fault)
    assert main([*FIT, *LEDGER, "--card", "c.html"]) == status
    assert last_line(capsys).endswith("; the model is in m.joblib")
    assert Path("m.joblib").exists()


@pytest.fixture
def device():
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    # What is left in its buffer cannot be written when it is closed.
    with contextlib.suppress(OSError), open("/dev/full", "w") as file:
        yield file


FULL = "error: cannot write to standard output: No space left on device"


def test_a_full_standard_output(folder, device, capsys, monkeypatch):
    """What is planned cannot be printed, so nothing is charged."""
    monkeypatch.setattr(sys, "stdout", device)
    assert main([*FIT, *LEDGER]) == 2
    assert last_line(capsys) == FULL
    assert booked() == 0
    assert not Path("m.joblib").exists()


def test_a_full_standard_output_after_the_charge(folder, device, capsys, monkeypatch):
    assert main([*FIT, *LEDGER]) == 0
    monkeypatch.setattr(sys, "stdout", device)
    assert main([*SCORE, "--ledger", "l.db"]) == 2
    line = last_line(capsys)
    assert line.startswith(f"{FULL}; epsilon 1, delta ")
    assert line.endswith(
        " remain charged to the ledger l.db, and the scores were not shown in full"
    )
    assert booked() == 2


def test_a_full_standard_error_costs_no_model(folder, device, capsys, monkeypatch):
    """Nothing has to be said, and what is said when the command ends does not count."""
    Path("s.json").write_text('{"columns": {"a": [0, 9]}, "target": ["no", "yes"]}')
    monkeypatch.setattr(sys, "stderr", device)
    assert main([*FIT, "--schema", "s.json"]) == 0
    assert Path("m.joblib").exists()
    assert "Model:     m.joblib" in capsys.readouterr().out
    assert main(["schema", "absent.csv"]) == 2


def test_a_closed_standard_output_is_refused_first(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert main([*FIT, *LEDGER]) == 2
    said = capsys.readouterr().err
    assert said == "dp_halfspace: error: standard output is closed, so no result can be written\n"
    assert not Path("l.db").exists()


def test_an_interrupted_evaluation_says_what_it_booked(folder, capsys, monkeypatch):
    assert main(FIT) == 0

    def score(*arguments, **options):
        private_score(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr("dp_halfspace._cli.commands.private_score", score)
    assert main([*SCORE, "--delta", "1e-6", *LEDGER]) == 130
    assert last_line(capsys) == (
        "interrupted; epsilon 1, delta 1e-06 remain charged to the ledger l.db, and the scores "
        "were not shown in full"
    )
