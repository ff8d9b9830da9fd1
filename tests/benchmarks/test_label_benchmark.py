"""The benchmark of label privacy runs, stores and prints."""

from __future__ import annotations

import json

import numpy as np

from benchmarks import label
from benchmarks.loaders import Benchmark


def tiny(name):
    X = np.random.default_rng(0).uniform(-1, 1, size=(90, 2))
    y = (X[:, 0] > 0).astype(int)
    return Benchmark(name, X[:60], y[:60], X[60:], y[60:], 2.0, (0, 1))


def test_runs_stores_and_prints(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(label, "load", tiny)
    out = tmp_path / "label.json"
    chosen = ["--sets", "satimage", "--mechanisms", "statistic", "randomized_response"]
    label.main([*chosen, "--fits", "1", "--out", str(out)])
    found = json.loads(out.read_text())["accuracy"]["satimage"]
    assert set(found) == {"exact", "statistic", "randomized_response"}
    assert set(found["statistic"]) == {"0.3", "1", "3"}
    assert "| satimage |" in capsys.readouterr().out
