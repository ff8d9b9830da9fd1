"""The benchmark of the kernel classifier runs, stores and prints."""

from __future__ import annotations

import json

import numpy as np

from benchmarks import kernel
from benchmarks.loaders import Benchmark


def tiny():
    X = np.random.default_rng(0).uniform(-1, 1, size=(300, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    return Benchmark("cancer", X[:200], y[:200], X[200:], y[200:], 2.0, (0, 1))


def test_runs_stores_and_prints(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(kernel, "problem", lambda name: tiny())
    monkeypatch.setattr(kernel, "TIMED", (("cancer", 64),))
    monkeypatch.setattr(kernel, "prediction", lambda: {"rows": 1})
    out = tmp_path / "kernel.json"
    kernel.main(["--sets", "cancer", "--fits", "1", "--pairs", "1", "--out", str(out)])
    found = json.loads(out.read_text())
    assert set(found["accuracy"]["cancer"]) == {"kernel", "linear"}
    cell = found["timing"]["cancer, 64 features"]
    assert cell["seconds"] > 0
    assert cell["megabytes"] > 0
    assert "| cancer |" in capsys.readouterr().out


def test_sets_are_within_their_public_norm():
    for name in ("cancer", "checkers"):
        data = kernel.problem(name)
        assert np.linalg.norm(data.X_train, axis=1).max() <= data.data_norm
        assert set(data.y_train) == set(data.classes)
