"""The command line from end to end."""

import importlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dp_halfspace
from dp_halfspace._cli import main

# The package of this checkout, installed or not.
ROOT = Path(__file__).resolve().parents[2]
FAST = ["--epsilon", "1", "3", "--repeats", "1"]


def run_module(*arguments, cwd):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", "-m", "dp_halfspace", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def test_main_job_is_one_short_table_and_three_files(suite, tmp_path, capsys):
    out = tmp_path / "deep" / "report"
    assert main([*FAST, "--seed", "0", "--out", str(out)]) == 0
    printed, progress = capsys.readouterr()
    assert sorted(p.name for p in out.iterdir()) == ["accuracy.png", "report.txt", "results.json"]
    text = (out / "report.txt").read_text()
    assert printed.startswith(text)
    assert "0/4 fits done" in progress
    for word in ("breast cancer", "natural units", "majority class", "LinearSVC, not private"):
        assert word in text
    assert text.count("PrivacyWarning") == 1
    assert max(map(len, text.splitlines())) <= 110
    assert (out / "accuracy.png").read_bytes().startswith(b"\x89PNG")


def test_json_has_the_numbers_and_not_the_seed(suite, table, tmp_path, capsys):
    arguments = ["compare", str(table), "--target", "kind", *FAST, "--seed", "987123"]
    assert main([*arguments, "--delta", "1e-5", "--data-norm", "1.5", "--out", str(tmp_path)]) == 0
    content = json.loads((tmp_path / "results.json").read_text())
    assert "987123" not in json.dumps(content)
    assert content["settings"]["seeded"] is True
    (dataset,) = content["datasets"]
    assert dataset["name"] == "fruit.csv"
    assert (dataset["n_rows"], dataset["n_features"], dataset["n_classes"]) == (60, 2, 2)
    assert dataset["data_norm"] == 1.5
    by_name = {(row["estimator"], row["epsilon"]): row for row in content["results"]}
    assert by_name["LinearSVC, not private", None]["accuracy"] == 1.0
    assert by_name["LinearSVC, not private", None]["epsilon_spent"] is None
    assert by_name["FakeClassifier", 3.0]["epsilon_spent"] == 3.0
    assert by_name["FakeClassifier", 3.0]["delta_spent"] == 1e-5
    assert "FOR THE CURATOR" in content["warning"]
    assert "apple" not in capsys.readouterr().out


def test_seed_reproduces_and_its_absence_does_not(suite, table, tmp_path):
    def accuracies(*more):
        arguments = ["compare", str(table), "--target", "kind", "--epsilon", "0.05", *more]
        assert main([*arguments, "--repeats", "4", "--out", str(tmp_path)]) == 0
        rows = json.loads((tmp_path / "results.json").read_text())["results"]
        return [(row["accuracy"], row["auc"]) for row in rows if row["epsilon"]]

    assert accuracies("--seed", "5") == accuracies("--seed", "5")
    assert accuracies("--seed", "5") != accuracies("--seed", "6")
    assert accuracies() != accuracies()


def test_without_matplotlib_all_but_the_picture(suite, table, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    arguments = ["compare", str(table), "--target", "kind", *FAST, "--out", str(tmp_path)]
    assert main(arguments) == 0
    assert 'pip install "dp-halfspace[plot]"' in capsys.readouterr().out
    assert not (tmp_path / "accuracy.png").exists()
    assert (tmp_path / "results.json").exists()


def test_interrupt_keeps_what_is_finished(suite, table, tmp_path, capsys, monkeypatch):
    fits = []
    original = suite.fake.fit

    def fit(self, X, y):
        fits.append(self)
        if len(fits) == 2:
            raise KeyboardInterrupt
        return original(self, X, y)

    monkeypatch.setattr(suite.fake, "fit", fit)
    own = ["compare", str(table), "--target", "kind", *FAST, "--out", str(tmp_path)]
    assert main(own) == 130
    line = capsys.readouterr().err.splitlines()[-1]
    assert line == f"dp_halfspace: interrupted after 3 of 4 fits; they are in {tmp_path}"
    rows = json.loads((tmp_path / "results.json").read_text())["results"]
    assert [row["epsilon"] for row in rows] == [None, None, 1.0]


def test_unusable_out_folder(suite, table, tmp_path, capsys, monkeypatch):
    file = tmp_path / "taken"
    file.write_text("")
    own = ["compare", str(table), "--target", "kind", *FAST]
    assert main([*own, "--out", str(file)]) == 2
    assert main([*own, "--out", str(file / "below")]) == 2
    monkeypatch.setattr("dp_halfspace._cli.app.os.access", lambda *_: False)
    assert main([*own, "--out", str(tmp_path / "locked")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("dp_halfspace: error: --out: ") for line in lines)


def test_module_on_own_data(table, tmp_path):
    done = run_module("compare", str(table), "--target", "kind", *FAST, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "OutputPerturbationClassifier" in done.stdout
    assert (tmp_path / "dp_halfspace_report" / "results.json").is_file()


@pytest.mark.parametrize("command", [[], ["fit"], ["predict"], ["compare"]])
def test_help_shows_an_example(command, capsys):
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    printed = capsys.readouterr().out
    example = printed.split("example:")[1]
    assert " ".join(["python -m dp_halfspace", *command]) in example


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


def test_wrong_use_is_status_2_and_one_line(capsys):
    assert main(["compare", "absent.csv", "--target", "kind"]) == 2
    printed, lines = capsys.readouterr()
    assert lines == "dp_halfspace: error: cannot read absent.csv: No such file or directory\n"
    assert printed == ""


@pytest.mark.slow
def test_default_run_of_the_real_suite_is_quick(tmp_path):
    started = time.monotonic()
    done = run_module(cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - started < 60
    assert "refused" not in done.stdout
    assert done.stdout.count("hence fitted with delta 0") == 1
    assert "PrivateTableClassifier" in done.stdout
