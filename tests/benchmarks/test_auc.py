"""Rankings: the benchmark runs, and the published algorithms are what was published."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import auc, cells, paper_auc, problems, published_auc, tables
from benchmarks.loaders import Benchmark
from dp_halfspace.optim.losses import LOGISTIC, SQUARED
from tests.conftest import separated

RIDGE = 0.01
COUNTS = (40, 160)


def tiny() -> Benchmark:
    X, y = separated(300, 4, 2)
    y = np.where(np.arange(len(y)) % 3 == 0, 1, y)  # not separable
    return Benchmark("tiny", X[:200], y[:200], X[200:], y[200:], 1.0, (0, 1))


@pytest.fixture
def tiny_set(monkeypatch):
    problems.load.cache_clear()
    cells.data_digest.cache_clear()
    monkeypatch.setitem(problems.LOADERS, "tiny", tiny)
    yield
    problems.load.cache_clear()
    cells.data_digest.cache_clear()


def records() -> published_auc.Records:
    problem = tiny()
    return published_auc.Records(problem.X_train, problem.y_train == 1)


def test_auc_runs_and_prints_the_distance(tiny_set, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(auc, "RANKING", ("tiny",))
    monkeypatch.setattr(auc, "BEST_KNOWN", {("tiny", "auc"): (0.5, 0.5, 0.5, 0.5)})
    out = tmp_path / "auc.json"
    auc.main(
        ["--only", "baselines", "auc", "auc_output_pure", "--fits", "2", "--epsilons", "0.5",
         "--out", str(out)]
    )  # fmt: skip
    found = json.loads(out.read_text())["cells"]["tiny"]
    assert set(found) == {"logistic", "auc", "auc_output_pure"}
    assert found["logistic"]["any"]["mean"] > 0.6
    assert found["auc"]["0.5"]["draws"] == 2
    printed = capsys.readouterr().out
    assert "PrivateAUC, output, pure" in printed
    row = next(line for line in printed.splitlines() if line.startswith("| tiny | PrivateAUC"))
    assert f"({found['auc']['0.5']['mean'] - 0.5:+.4f})" in row


def test_validation_scores_each_setting_on_rows_that_it_was_not_fitted_to(tiny_set):
    seen = []

    def models(X, y, *, epsilon, draws, **_):
        seen.append((X, epsilon))
        return {"good": [1.0] * draws, "bad": [0.0] * draws}

    def score(model, part):
        X, _ = seen[-1]
        assert len(X) + len(part.X_test) == len(tiny().X_train)
        assert not {row.tobytes() for row in X} & {row.tobytes() for row in part.X_test}
        return model * len(part.X_test)

    method = replace(published_auc.PUBLISHED["output"], models=models, score=score)
    found = paper_auc.validated(tiny(), method, 3)
    assert found == {"good": 20.0, "bad": 0.0}
    assert [epsilon for _, epsilon in seen] == [0.1] * 10


def test_algorithm_1_is_published():
    radius = math.sqrt(2 / RIDGE) * 2
    for loss, slope in ((LOGISTIC, 1 / (1 + math.exp(-radius))), (SQUARED, 2 * (1 + radius))):
        change = 2 * 2 * slope / RIDGE * (1 / 40 + 1 / 160)
        pure = published_auc.output_noise(loss, RIDGE, COUNTS, 0.3, 0.0)
        gaussian = published_auc.output_noise(loss, RIDGE, COUNTS, 0.3, 1e-5)
        assert pure == published_auc.Noise(pytest.approx(change / 0.3), False)
        scale = 2 * math.sqrt(2 * math.log(1.25e5)) * 2 * slope / (0.3 * RIDGE) * (1 / 40 + 1 / 160)
        assert gaussian == published_auc.Noise(pytest.approx(scale), True)


@pytest.mark.parametrize("ridge", [RIDGE, 10.0])
def test_algorithm_2_is_published(ridge):
    epsilon, delta, n, pairs = 0.3, 1e-5, 200, 6400
    jacobian = n * math.log(1 + 0.25 * 4 / (pairs * ridge))
    left, total = epsilon - jacobian, ridge
    if jacobian >= epsilon:
        left, total = epsilon / 2, 0.25 * 4 / (pairs * (math.exp(epsilon / (2 * n)) - 1))
    assert (jacobian >= epsilon) == (ridge == RIDGE)
    pure, ridge_pure = published_auc.objective_noise(ridge, COUNTS, epsilon, 0.0)
    gaussian, ridge_gaussian = published_auc.objective_noise(ridge, COUNTS, epsilon, delta)
    assert ridge_pure == ridge_gaussian == pytest.approx(total)
    assert pure == published_auc.Noise(pytest.approx(2 * n * 2 / (pairs * left)), False)
    size = 2 * math.sqrt(2 * math.log(1 / delta)) + math.sqrt(2 * left)
    assert gaussian == published_auc.Noise(pytest.approx(size * n * 2 / (pairs * left)), True)


def test_algorithm_3_is_published():
    epsilon, delta, n = 0.3, 1e-5, 200
    noise, total = published_auc.pointwise_noise(10.0, n, epsilon, delta)
    left = epsilon - math.log(1 + 0.25 / (n * 10))
    size = 2 * math.sqrt(2 * math.log(1 / delta)) + math.sqrt(2 * left)
    assert (noise.scale, total) == (pytest.approx(size / left), 10.0)
    _, total = published_auc.pointwise_noise(1e-6, n, epsilon, delta)
    assert total == pytest.approx(0.25 / (n * (math.exp(0.15) - 1)))


def test_noise_has_the_published_distribution():
    d, draws = 6, 2000
    pure = np.array([published_auc.Noise(0.5, False).draw(d) for _ in range(draws)])
    lengths = np.linalg.norm(pure, axis=1)
    assert lengths.mean() == pytest.approx(0.5 * d, rel=0.05)
    assert lengths.var() == pytest.approx(0.25 * d, rel=0.15)
    gaussian = np.array([published_auc.Noise(0.5, True).draw(d) for _ in range(draws)])
    assert gaussian.std() == pytest.approx(0.5, rel=0.05)


def test_minimisers_meet_the_first_order_condition():
    """Of the published objective, written out over the pairs."""
    data, linear = records(), np.array([0.1, -0.2, 0.0, 0.3])
    x = np.asarray(data.X)
    pairs = (x[data.positive][:, None] - x[~data.positive][None]).reshape(-1, 4)
    w = published_auc.minimum(data.over_pairs(LOGISTIC, RIDGE, linear), 1e-8)
    slope = -1 / (1 + np.exp(pairs @ w))
    assert np.linalg.norm(pairs.T @ slope / len(pairs) + RIDGE * w + linear) < 1e-7
    w = published_auc.minimum(data.over_pairs(SQUARED, RIDGE), 1e-8)
    assert np.linalg.norm(pairs.T @ (2 * (pairs @ w - 1)) / len(pairs) + RIDGE * w) < 1e-7
    w = published_auc.minimum(data.over_records(RIDGE, linear), 1e-8)
    signed = x * np.where(data.positive, 1.0, -1.0)[:, None]
    slope = -1 / (1 + np.exp(signed @ w))
    assert np.linalg.norm(signed.T @ slope + RIDGE * w + linear) < 1e-7


@pytest.mark.slow
def test_paper_runs_draws_and_tables(tiny_set, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(paper_auc, "SETS", ("tiny",))
    monkeypatch.setattr(paper_auc, "FOLDS", 2)
    out = tmp_path / "paper.json"
    what = ["--fits", "2", "--out", str(out), "--pictures", str(tmp_path), "--factors", "1", "8"]
    paper_auc.main([*what, "--epsilons", "0.05", "0.5"])
    results = json.loads(out.read_text())
    ours = {"auc", "auc_pure"}
    assert set(results["cells"]["tiny"]) == ours
    assert set(results["printed"]["tiny"]) == set(published_auc.PUBLISHED) - ours
    for key, row in results["printed"]["tiny"].items():
        chosen = results["chosen"]["tiny"][key]
        assert len(chosen["validation"]) == 5
        assert {cell["setting"] for cell in row.values()} == {chosen["setting"]}
    assert results["printed"]["tiny"]["output"]["0.05"]["draws"] == 2
    before = out.read_text()
    paper_auc.main([*what, "--epsilons", "0.05", "0.5", "--factors"])  # what is there stays
    assert json.loads(out.read_text()) == json.loads(before)
    assert results["shapes"]["tiny"]["rows"] == "200 of 300"
    assert len(results["less_noise"]) == 2
    for title in paper_auc.FIGURES:
        assert (tmp_path / f"{title}.svg").stat().st_size > 1000
    printed = capsys.readouterr().out
    assert "Algorithm 1, squares, pure" in printed
    assert "noise / 8" in tables.less_noise_table(results)
