"""Files that are read some rows at a time: every row is what it is in the whole table."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas
import pytest

from dp_halfspace._cli import commands, main, tables
from dp_halfspace.estimators import table as table_estimator

N = 1500
FILES = ["own.csv", "own.parquet"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table whose first rows are plain numbers in every column but one, and its model."""
    folder = tmp_path_factory.mktemp("blocks")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "age": rng.integers(20, 95, N),
            "dose": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N).round(3)),
            "code": rng.integers(1, 4, N).astype(str),
            "seen": np.where(rng.random(N) < 0.5, "2024-01-05", "2023-11-30"),
        }
    )
    frame.loc[700:, "code"] = "C" + frame.loc[700:, "code"]
    frame["y"] = np.where(frame["age"] + rng.normal(size=N) * 9 > 55, "yes", "no")
    frame.to_csv(folder / "own.csv", index=False)
    frame.to_parquet(folder / "own.parquet", index=False, row_group_size=900)
    kinds = '{"age": [0, 120], "dose": "number", "code": "text", "seen": "date"}'
    (folder / "schema.json").write_text(kinds)
    fit = ["fit", str(folder / "own.csv"), "--target", "y", "--epsilon", "9"]
    fit += ["--schema", str(folder / "schema.json"), "--save", str(folder / "m.joblib")]
    assert main(fit) == 0
    return folder


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(tables, "_LINES", 64)
    monkeypatch.setattr(tables, "BLOCK_ROWS", 64)


def predict(folder, name, out):
    words = ["predict", str(folder / "m.joblib"), str(folder / name), "--out", str(folder / out)]
    assert main(words) == 0
    return (folder / out).read_bytes()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", FILES)
def test_predictions_are_those_of_the_whole_table(folder, name, monkeypatch, capsys):
    whole = predict(folder, name, "whole.csv")
    monkeypatch.setattr(tables, "_LINES", 64)
    monkeypatch.setattr(tables, "BLOCK_ROWS", 64)
    assert predict(folder, name, "blocks.csv") == whole
    assert whole.count(b"\n") == N + 1
    assert f"{N} rows" in capsys.readouterr().out
    model = commands.load_model(folder / "m.joblib")
    frame = pandas.read_csv(folder / "own.csv", dtype=str, keep_default_na=False)
    found = pandas.read_csv(folder / "whole.csv")["probability_yes"]
    np.testing.assert_allclose(found, model.predict_proba(frame)[:, 1], atol=6e-7)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", FILES)
def test_scores_are_those_of_the_whole_table(folder, name, monkeypatch):
    """What is scored are records with the probabilities and labels of all rows, in their order."""
    words = ["evaluate", str(folder / "m.joblib"), str(folder / name), "--epsilon", "1"]
    seen = []

    def kept(model, records, labels, **more):
        seen.append((model.predict_proba(records), model.predict(records), labels))
        return honest(model, records, labels, **more)

    honest = commands.private_score
    monkeypatch.setattr(commands, "private_score", kept)
    metrics = ["--metric", "accuracy", "roc_auc", "log_loss"]
    assert main([*words, *metrics]) == 0
    monkeypatch.setattr(tables, "_LINES", 64)
    monkeypatch.setattr(tables, "BLOCK_ROWS", 64)
    assert main([*words, *metrics]) == 0
    for one, other in zip(*seen, strict=True):
        # The last bit of a product may depend on how many rows there are.
        assert len(one) == len(other) == N
        assert (np.isclose(one, other, rtol=1e-12) if one.dtype.kind == "f" else one == other).all()
    model = commands.load_model(folder / "m.joblib")
    frame = pandas.read_csv(folder / "own.csv", dtype=str, keep_default_na=False)
    np.testing.assert_allclose(seen[1][0], model.predict_proba(frame), rtol=1e-12)
    assert seen[0][1].tolist() == model.predict(frame).tolist()
    assert seen[0][2].tolist() == frame["y"].tolist()


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_rows_are_counted_through_all_blocks(folder, command, tmp_path, capsys):
    lines = (folder / "own.csv").read_text().splitlines()
    more = ["--epsilon", "1", "--target", "y"] if command == "evaluate" else []
    more += ["--out", str(tmp_path / "p.csv")] if command == "predict" else []
    changes = {"1,2,3": "line 1002 has 3 fields", '"': "line 1002 has an unclosed quote"}
    if command == "evaluate":
        changes["50,1,C1,2024-01-05,"] = "'y' is empty in row 1001"
    for text, said in changes.items():
        broken = tmp_path / "broken.csv"
        broken.write_text("\n".join([*lines[:1001], text, *lines[1001:]]) + "\n")
        assert main([command, str(folder / "m.joblib"), str(broken), *more]) == 2
        assert said in capsys.readouterr().err
        assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize("n_rows", [64, 900, 5000])
def test_blocks_of_a_parquet_file_have_public_sizes(folder, n_rows):
    rows = tables.ParquetRows(folder / "own.parquet", n_rows)
    expected = [min(n_rows, size - lo) for size in (900, 600) for lo in range(0, size, n_rows)]
    blocks = list(rows)
    assert [len(block) for block in blocks] == expected
    assert len(rows) == len(expected)
    for number in (len(rows) - 1, 0, len(rows) - 1):
        assert rows.read(number).equals(blocks[number])


def test_a_file_that_changes_while_it_is_read_is_refused_and_stays_charged(
    folder, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(tables, "FIRST_STREAMED", 1)
    monkeypatch.setattr(tables, "ROWS_AT_ONCE", 400)
    honest, seen = tables.ParquetRows.read, []

    def read(self, number):
        seen.append(number)
        frame = honest(self, number)
        return frame if seen.count(number) < 3 else frame.assign(age=1)

    monkeypatch.setattr(tables.ParquetRows, "read", read)
    monkeypatch.setattr(table_estimator, "_KEPT_ROWS", 0)
    words = ["fit", str(folder / "own.parquet"), "--target", "y", "--epsilon", "9"]
    words += ["--ledger", str(tmp_path / "l.db"), "--cap", "9", "1e-3"]
    assert main([*words, "--save", str(tmp_path / "m.joblib")]) == 2
    said = capsys.readouterr().err
    assert "own.parquet changed, or became unreadable" in said
    assert "epsilon 9" in said.splitlines()[-1]
    assert not (tmp_path / "m.joblib").exists()


def test_rows_are_in_chunks_where_the_fit_takes_chunks(monkeypatch):
    """Pure DP and persons need all rows at once, however many there are."""
    monkeypatch.setattr(tables, "FIRST_STREAMED", 30)
    monkeypatch.setattr(tables, "ROWS_AT_ONCE", 4)
    frame = pandas.DataFrame({"a": np.arange(10.0), "b": 1.0, "c": 2.0})
    table = tables.TrainingTable(frame, np.zeros(10), {}, None, None, ())
    found = commands._rows_of(SimpleNamespace(delta="auto"), table)
    assert [len(chunk) for chunk in found.values()] == [4, 4, 2]
    assert pandas.concat(found.values()).equals(frame)
    assert list(found.sample.columns) == ["a", "b", "c"]
    for delta, groups, size in ((0.0, None, 10), (1e-6, np.arange(10), 10), (1e-6, None, 9)):
        given = replace(table, groups=groups, frame=frame[:size])
        assert commands._rows_of(SimpleNamespace(delta=delta), given) is given.frame


@pytest.mark.sampled(1)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_wide_table_with_a_dropped_column_makes_no_library_warn(tmp_path, ending):
    """pandas warns of many columns that are inserted one by one; here every warning is an error."""
    wide = pandas.DataFrame(np.zeros((60, 120)), columns=[f"c{j}" for j in range(120)])
    wide["y"] = ["no", "yes"] * 30
    path, model = tmp_path / f"wide.{ending}", str(tmp_path / "m.joblib")
    wide.to_csv(path, index=False) if ending == "csv" else wide.to_parquet(path, index=False)
    fit = ["fit", str(path), "--target", "y", "--epsilon", "1", "--drop", "c3", "--drop", "c9"]
    assert main([*fit, "--save", model]) == 0
    assert main(["evaluate", model, str(path), "--epsilon", "1", "--target", "y"]) == 0
    assert main(["predict", model, str(path), "--out", str(tmp_path / "out.csv")]) == 0
