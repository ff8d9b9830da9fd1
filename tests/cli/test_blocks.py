"""Lines that are split some at a time: every row is what it is in the whole table."""

import joblib
import numpy as np
import pandas
import pytest

from dp_halfspace._cli import commands, main, tables

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
def few_lines(monkeypatch):
    monkeypatch.setattr(tables, "LONG_BLOCK", 64)


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("few_lines")
@pytest.mark.parametrize("name", FILES)
def test_predictions_are_those_of_the_whole_table(folder, name, capsys):
    words = ["predict", str(folder / "m.joblib"), str(folder / name)]
    assert main([*words, "--out", str(folder / "p.csv")]) == 0
    assert f"{N} rows" in capsys.readouterr().out
    model = joblib.load(folder / "m.joblib")
    frame = pandas.read_csv(folder / "own.csv", dtype=str, keep_default_na=False)
    found = pandas.read_csv(folder / "p.csv")
    np.testing.assert_allclose(
        found["probability_yes"], model.predict_proba(frame)[:, 1], atol=6e-7
    )
    assert found["prediction"].tolist() == model.predict(frame).tolist()


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("few_lines")
@pytest.mark.parametrize("name", FILES)
def test_records_that_are_scored_are_those_of_the_whole_table(folder, name, monkeypatch):
    seen = []
    honest = commands.private_score

    def kept(model, records, labels, **more):
        seen.append((model.predict_proba(records), labels))
        return honest(model, records, labels, **more)

    monkeypatch.setattr(commands, "private_score", kept)
    words = ["evaluate", str(folder / "m.joblib"), str(folder / name), "--target", "y"]
    assert main([*words, "--epsilon", "1", "--metric", "accuracy", "roc_auc"]) == 0
    ((probabilities, labels),) = seen
    model = joblib.load(folder / "m.joblib")
    frame = pandas.read_csv(folder / "own.csv", dtype=str, keep_default_na=False)
    np.testing.assert_allclose(probabilities, model.predict_proba(frame), rtol=1e-12)
    assert labels.tolist() == frame["y"].tolist()


def test_a_broken_line_is_named_and_nothing_is_written(folder, tmp_path, capsys):
    lines = (folder / "own.csv").read_text().splitlines()
    words = [str(folder / "m.joblib"), str(tmp_path / "broken.csv")]
    for text, said in {
        "1,2,3": "line 1002 has 3 fields",
        '"': "line 1002 has an unclosed quote",
        "50,1,C1,2024-01-05,": "'y' is empty in row 1001",
    }.items():
        broken = [*lines[:1001], text, *lines[1001:]]
        (tmp_path / "broken.csv").write_text("\n".join(broken) + "\n")
        assert main(["evaluate", *words, "--epsilon", "1", "--target", "y"]) == 2
        assert said in capsys.readouterr().err
    (tmp_path / "broken.csv").write_text("\n".join([*lines, "1"]) + "\n")
    assert main(["predict", *words, "--out", str(tmp_path / "p.csv")]) == 2
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_wide_table_with_a_dropped_column_makes_no_library_warn(tmp_path, ending):
    """pandas warns of many columns that are inserted one by one; here every warning is an error."""
    wide = pandas.DataFrame(np.zeros((60, 120)), columns=[f"c{j}" for j in range(120)])
    wide["y"] = ["no", "yes"] * 30
    path, model = tmp_path / f"wide.{ending}", str(tmp_path / "m.joblib")
    wide.to_csv(path, index=False) if ending == "csv" else wide.to_parquet(path, index=False)
    fit = ["fit", str(path), "--target", "y", "--epsilon", "99", "--drop", "c3", "--drop", "c9"]
    assert main([*fit, "--save", model]) == 0
    assert main(["evaluate", model, str(path), "--epsilon", "1", "--target", "y"]) == 0
    assert main(["predict", model, str(path), "--out", str(tmp_path / "out.csv")]) == 0
