"""The benchmarks of tilt and adversary measure what they say."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from benchmarks import cells, problems, robust, tables, tilt
from benchmarks.loaders import Benchmark
from tests.conftest import separated


@pytest.fixture
def tiny(monkeypatch):
    """Two classes; the rare one is what a mean of losses gives up."""
    X, y = separated(600, 4, 2)
    kept = (y == 0) | (np.arange(600) % 8 == 0)
    X, y = X[kept], y[kept]
    half = len(y) // 2
    problem = Benchmark("tiny", X[:half], y[:half], X[half:], y[half:], 1.0, (0, 1))
    problems.load.cache_clear()
    monkeypatch.setitem(problems.LOADERS, "tiny", lambda: problem)
    yield problem
    problems.load.cache_clear()


def test_accuracy_under_attack_is_that_of_the_worst_change(tiny):
    w, radius = np.array([1.0, -0.5, 0.2, 0.0]), 0.3
    model = SimpleNamespace(coef_=w[None], decision_function=lambda X: X @ w - 0.1)
    signs = np.where(tiny.y_test == 1, 1.0, -1.0)
    for norm, change in ((2, w / np.linalg.norm(w)), ("inf", np.sign(w))):
        moved = tiny.X_test - radius * signs[:, None] * change
        expected = np.mean(signs * model.decision_function(moved) > 0)
        assert robust.robust_accuracy(model, tiny, radius, norm) == pytest.approx(expected)
    assert robust.share_of_norm(tiny, 2) == 1.0
    assert robust.share_of_norm(tiny, "inf") == 0.5


def test_groups_of_adult_are_sexes_by_classes():
    X = np.zeros((4, 123))
    X[[0, 1], 71] = X[[2, 3], 72] = 1
    y = np.array([-1, 1, -1, 1])
    rows = sparse.csr_matrix(X)
    parts = tilt.groups("adult", Benchmark("adult", rows, y, rows, y, 1.0, (-1, 1)))
    np.testing.assert_array_equal(np.array(parts), np.eye(4, dtype=bool))


def test_stored_results_show_what_the_page_says():
    found = cells.read(cells.RESULTS / "tilt.json")["cells"]
    for by_epsilon in found.values():
        for by_tilt in by_epsilon.values():
            assert by_tilt["2"]["worst"] < by_tilt["0"]["worst"]
    adult = cells.read(cells.RESULTS / "robust.json")["cells"]["adult, Euclidean"]["1"]
    assert adult["against"]["mean"][-1] > adult["without"]["mean"][-1] + 0.02
    tables.sections()


@pytest.mark.slow
def test_both_run_print_and_draw(tiny, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tilt, "SETS", {"tiny": "class"})
    monkeypatch.setattr(tilt, "TILTS", (0.0, 0.5))
    monkeypatch.setattr(robust, "CASES", {"tiny, each": ("tiny", "inf", (0.0, 0.1))})
    for script in (tilt, robust):
        monkeypatch.setattr(script, "EPSILONS", (math.inf, 2.0))
        out, picture = tmp_path / f"{script.__name__}.json", tmp_path / f"{script.__name__}.svg"
        script.main(["--fits", "2", "--out", str(out), "--picture", str(picture)])
        assert picture.read_text().startswith("<?xml")
        assert set(cells.read(out)["cells"].popitem()[1]) == {"inf", "2"}
    printed = capsys.readouterr().out
    assert "| loss of the worst group / accuracy | tilt 0 " in printed
    assert "| epsilon 2, trained against " in printed
