"""The scripts for pure epsilon run, and the hard distributions are what the lower bound says."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import lower_bound, problems, pure
from benchmarks.loaders import Benchmark
from dp_halfspace.theory import ErrorLowerBound
from tests.conftest import separated


def test_pure_runs_and_prints(tmp_path, monkeypatch, capsys):
    X, y = separated(200, 4)
    tiny = Benchmark("tiny", X[:150], y[:150], X[150:], y[150:], 1.0, (0, 1))
    problems.load.cache_clear()
    monkeypatch.setitem(problems.LOADERS, "tiny", lambda: tiny)
    monkeypatch.setattr(pure, "PROBLEMS", {"tiny": None})
    monkeypatch.setattr(pure, "COLUMNS", (3,))
    honest = pure.speed
    monkeypatch.setattr(pure, "speed", lambda d: honest(d, n_rows=100, n_directions=1000))
    out = tmp_path / "pure.json"
    pure.main(["--fits", "2", "--epsilons", "1", "--out", str(out), "--speed"])
    found = json.loads(out.read_text())
    assert set(found["cells"]["tiny"]) == set(pure.METHODS_PURE)
    assert found["directions"]["3"]["directions"] == 1000
    printed = capsys.readouterr().out
    assert "CPU seconds" in printed
    assert "PureHalfspace, pure" in printed
    problems.load.cache_clear()


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_hard_distributions_have_the_margin_and_the_share(share):
    case = ErrorLowerBound(error=0.1, share=share, dimension=4)
    rng = np.random.default_rng(0)
    rows, labels, weights = lower_bound.hard_sample(5000, 6, 0.05, case, rng)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0)
    assert np.linalg.norm(weights) == pytest.approx(1.0)
    assert (labels * (rows @ weights)).min() >= 0.05 * (1 - 1e-12)
    assert np.mean(rows[:, -1] == 0.0) == pytest.approx(share, abs=0.03)


@pytest.mark.slow
def test_lower_bound_runs_and_draws(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(lower_bound, "PROBLEMS", {"tiny": (3, 0.05)})
    monkeypatch.setattr(lower_bound, "FRESH", 100)
    out, picture = tmp_path / "lower_bound.json", tmp_path / "lower_bound.svg"
    lower_bound.main(
        ["--sizes", "30", "60", "--fits", "2", "--out", str(out), "--picture", str(picture)]
    )
    found = json.loads(out.read_text())["cells"]["tiny"]
    assert all(low <= high for low, high in zip(found["lower"], found["upper"], strict=True))
    assert "<svg" in picture.read_text()
    assert "one fit in ten" in capsys.readouterr().out
