"""The benchmark harness runs, merges and prints, and its private baselines spend what they say."""

from __future__ import annotations

import dataclasses
import json
import math
import re

import numpy as np
import pytest
from scipy import sparse

from benchmarks import (
    cells,
    constants,
    descent,
    dimension,
    linear,
    multiclass,
    pictures,
    problems,
    published_margin,
    removed_points,
    speed,
    tables,
)
from benchmarks.loaders import Benchmark
from benchmarks.predictors import row_norms, unit_ball
from dp_halfspace.privacy import gdp_delta, gdp_mu
from tests.conftest import separated

EPSILON, DELTA = 1.0, 1e-6


def tiny(n_classes: int) -> Benchmark:
    X, y = separated(400, 4, n_classes)
    classes = tuple(range(n_classes))
    return Benchmark(f"tiny{n_classes}", X[:300], y[:300], X[300:], y[300:], 1.0, classes)


@pytest.fixture
def tiny_set(monkeypatch):
    problems.load.cache_clear()
    for k in (2, 3):
        monkeypatch.setitem(problems.LOADERS, f"tiny{k}", lambda k=k: tiny(k))
    monkeypatch.setattr(linear, "LINEAR", ("tiny2",))
    monkeypatch.setattr(multiclass, "MULTICLASS", ("tiny3",))
    yield
    problems.load.cache_clear()


def run(script, out, *only, more=()):
    script.main(["--only", *only, "--fits", "2", "--epsilons", "1", "--out", str(out), *more])
    return json.loads(out.read_text())


def test_linear_runs_merges_and_prints(tiny_set, tmp_path, capsys):
    out = tmp_path / "linear.json"
    first = run(linear, out, "baselines", "dp_sgd")
    assert set(first["cells"]["tiny2"]) == {"majority", "linear_svc", "logistic", "dp_sgd"}
    assert first["cells"]["tiny2"]["linear_svc"]["any"]["mean"] > 0.9
    second = run(linear, out, "tiny2", "published_margin", "output_perturbation")
    assert second["cells"]["tiny2"]["output_perturbation"]["1"]["draws"] == 2
    third = run(linear, out, "dp_sgd", more=["--epsilons", "3"])
    for name in ("majority", "linear_svc"):
        assert third["cells"]["tiny2"][name] == first["cells"]["tiny2"][name]
    assert set(third["cells"]["tiny2"]["dp_sgd"]) == {"1", "3"}
    printed = capsys.readouterr().out
    assert "**tiny2**: 300 training and 100 test rows, 4 columns, 2 classes" in printed
    assert "| epsilon 1 " in printed
    assert "| **" in printed


def test_a_cell_is_run_again_only_when_something_changed(tiny_set, tmp_path, monkeypatch):
    out, ran = tmp_path / "linear.json", []

    def counted(problem, method, epsilon, fits):
        ran.append((method.title, fits))
        return original(problem, method, epsilon, fits)

    original = cells.run_cell
    monkeypatch.setattr(cells, "run_cell", counted)
    expected = [("DP-SGD", 2)]
    for more in ([], []):
        run(linear, out, "dp_sgd", more=more)
    assert ran == expected
    run(linear, out, "dp_sgd", more=["--refresh", "ours"])
    assert ran == expected
    run(linear, out, "dp_sgd", more=["--refresh", "others"])
    run(linear, out, "dp_sgd", more=["--fits", "3"])
    run(linear, out, "dp_sgd", more=["--fits", "2"])
    expected += [("DP-SGD", 2), ("DP-SGD", 3)]
    assert ran == expected
    # A row of which nobody knows what measured it is measured again.
    found = cells.read(out)
    for methods in found["cells"].values():
        for cell in methods["dp_sgd"].values():
            del cell["hardware"]
    out.write_text(json.dumps(found))
    run(linear, out, "dp_sgd", more=["--fits", "3"])
    expected += [("DP-SGD", 3)]
    assert ran == expected
    changed = dataclasses.replace(cells.METHODS["dp_sgd"], version="another")
    monkeypatch.setitem(cells.METHODS, "dp_sgd", changed)
    run(linear, out, "dp_sgd")
    assert ran == [*expected, ("DP-SGD", 2)]
    other = dataclasses.replace(tiny(2), y_train=1 - tiny(2).y_train)
    monkeypatch.setitem(problems.LOADERS, "tiny2", lambda: other)
    problems.load.cache_clear()
    cells.data_digest.cache_clear()
    run(linear, out, "dp_sgd")
    assert len(ran) == len(expected) + 2
    cells.data_digest.cache_clear()


def test_one_table_compares_all_sets_and_counts_where_the_default_is_ahead():
    def row(*means):
        return {e: {"mean": m, "sd": 0.02, "draws": 2} for e, m in zip("13", means, strict=True)}

    found = {"adaptive_margin": row(0.8, 0.9), "dp_sgd": row(0.7, 0.92)}
    found["majority"] = {"any": {"mean": 0.5, "sd": 0.0, "draws": 1}}
    facts = {"tiny": {"n_train": 10, "n_features": 2}}
    text = tables.compared(
        {"cells": {"tiny": found}, "problems": facts}, cells.METHODS, "adaptive_margin"
    )
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    assert lines[0] == ["", "tiny (10 x 2)", "ahead/behind of 2"]
    assert [line[1:] for line in lines[2:]] == [
        [".500", ""], [".800/.900", ""], [".020", ""], [".700/.920", "1/1"],
    ]  # fmt: skip


def test_removal_experiment_runs_on_a_small_problem():
    cell = removed_points.measure(tiny(2), share=0.02, steps=2, fits=1)
    shares, margins = cell["curve"]
    assert shares == pytest.approx([0.0, 0.02, 0.04], abs=0.01)
    assert cell["last_margin"] == margins[-1]
    assert len(cell["half"]) == len(margins)
    assert max(cell["half"]) > 0


def test_the_jackknife_of_a_mean_is_the_interval_of_a_mean():
    x = np.random.default_rng(0).standard_normal(30)
    without = np.array([[np.delete(x, i).mean()] for i in range(30)])
    half = removed_points.jackknife(without)
    assert half == pytest.approx(pictures.half_width({"draws": 30, "sd": x.std(ddof=1)}))


def test_page_is_filled_between_its_markers():
    page = "a\n<!-- x: begin -->\nold\n<!-- x: end -->\nb\n"
    filled = tables.fill(page, {"x": "new"})
    assert filled == "a\n<!-- x: begin -->\nnew\n<!-- x: end -->\nb\n"
    assert tables.fill(filled, {"x": "new"}) == filled
    with pytest.raises(ValueError, match="once each"):
        tables.fill(page, {"y": "new"})


def test_synthetic_sets_are_what_they_say():
    two = problems.halfspace(5, 2000, 1000)
    np.testing.assert_allclose(row_norms(two.X_train), 1.0)
    w = np.linalg.lstsq(two.X_test, two.y_test.astype(float), rcond=None)[0]
    assert np.mean(np.sign(two.X_test @ w) == two.y_test) == 1.0
    assert 0.01 < np.mean(np.sign(two.X_train @ w) != two.y_train) < 0.03
    text = problems.topics(200, 50)
    np.testing.assert_allclose(row_norms(text.X_train), 1.0)
    assert text.X_test.shape == (50, 12_000)
    ten = problems.gaussian_classes(500, 200)
    assert ten.X_train.shape == (500, 30)
    assert set(ten.y_train) == set(ten.classes)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
def test_unit_ball_bounds_every_row(layout):
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [30.0, 40.0]])
    bounded = unit_ball(layout(rows), 2.0)
    np.testing.assert_allclose(row_norms(bounded), [0.0, 0.5, 1.0])


# --- what baselines spend, recomputed from outside ----------------------------------------------


def measured_descent_mu(steps=4, clip=0.5):
    """Privacy of the DP-SGD peer from the noise that is seen in its fits, not from its plan."""
    n, d, rate = 10, 4000, 1.0
    X, y = np.zeros((n, d)), np.arange(n) % 2
    fitted = descent.fit_dp_sgd(
        X, y, epsilon=EPSILON, delta=DELTA, data_norm=1.0, classes=[0, 1],
        steps=steps, clip=clip, rate=rate, momentum=0.0,
    )  # fmt: skip
    # Zero columns have no gradient: their coefficients are sums of `steps` noises, and the
    # difference of two classes.
    noise = fitted.coef.std() / (rate / n * math.sqrt(2 * steps))
    return 2 * clip * math.sqrt(steps) / noise


def test_dp_sgd_spends_its_budget_under_replace_one(monkeypatch):
    plan = descent.plan_descent(EPSILON, DELTA, steps=7, clip=0.3)
    assert gdp_delta(plan.mu * (1 - 1e-12), EPSILON) <= DELTA
    assert plan.mu == pytest.approx(gdp_mu(EPSILON, DELTA), rel=1e-12)
    assert measured_descent_mu() == pytest.approx(gdp_mu(EPSILON, DELTA), rel=0.08)

    def halved(*args, **kwargs):
        good = original(*args, **kwargs)
        return descent.Descent(good.steps, good.clip, good.noise / 2)

    original = descent.plan_descent
    monkeypatch.setattr(descent, "plan_descent", halved)
    assert measured_descent_mu() > 1.5 * gdp_mu(EPSILON, DELTA)


def test_clipped_sums_move_by_two_clips_at_most():
    rng = np.random.default_rng(0)
    clip, worst = 0.3, 0.0
    for trial in range(300):
        k = 2 + trial % 3
        W = rng.standard_normal((4, k)) * rng.choice([0.0, 1.0, 10.0])
        Z = np.c_[unit_ball(rng.standard_normal((6, 3)), 0.1), np.ones(6)]
        codes = rng.integers(k, size=6)
        other, swapped = Z.copy(), codes.copy()
        swapped[0] = (codes[0] + 1) % k
        if trial % 2:
            other[0, :3] *= -1.0
        a = descent.clipped_sum(Z, row_norms(Z), codes, W, clip)
        b = descent.clipped_sum(other, row_norms(other), swapped, W, clip)
        worst = max(worst, float(np.linalg.norm(a - b)))
    assert 0.999 * 2 * clip < worst <= 2 * clip * (1 + 1e-12)


def published_mu():
    return EPSILON / (2 * math.sqrt(2 * math.log(1 / DELTA)))


@pytest.mark.parametrize("cap", [1, 50, 10**9])
def test_published_margin_spends_the_published_budget(cap, monkeypatch):
    plan = published_margin.plan_margin(500, EPSILON, DELTA, cap=cap)
    assert len(plan.margins) == 10  # 1/500, 2/500, ..., 256/500, 1
    assert 1 <= plan.steps <= cap
    runs = sum(plan.steps * (12 / m / plan.noise(m)) ** 2 for m in plan.margins)
    scores = len(plan.margins) / plan.score_noise**2
    assert math.sqrt(runs + scores) == pytest.approx(published_mu(), rel=1e-12)
    assert plan.mu == pytest.approx(published_mu(), rel=1e-12)
    assert gdp_delta(plan.mu, EPSILON) <= DELTA
    good = published_margin.MarginChoice.noise
    monkeypatch.setattr(published_margin.MarginChoice, "noise", lambda p, m: good(p, m) / 2)
    assert plan.mu > 1.5 * published_mu()


def test_published_margin_adds_the_noise_of_its_plan():
    plan = published_margin.plan_margin(500, EPSILON, DELTA, cap=5)
    margin, k = 0.25, 4000
    W = published_margin.descend(np.zeros((500, k)), np.ones(500), [margin], plan)
    rate = 1 / math.sqrt(plan.steps * ((500 * 12 / margin) ** 2 + k * plan.noise(margin) ** 2))
    weights = math.sqrt(sum(j * j for j in range(plan.steps))) / plan.steps
    assert W.std() == pytest.approx(rate * weights * plan.noise(margin), rel=0.08)


def test_hinge_sums_move_by_the_stated_sensitivity():
    plan = published_margin.plan_margin(500, EPSILON, DELTA)
    rng = np.random.default_rng(0)
    for margin in (0.01, 0.5):
        worst = 0.0
        for trial in range(100):
            Z = rng.standard_normal((5, 3))
            Z *= 2.0 / row_norms(Z)[:, None]
            W = rng.standard_normal((3, 1)) * (0.0 if trial % 2 else 0.05)
            signs = rng.choice([-1.0, 1.0], 5)
            other = signs.copy()
            other[0] *= -1.0
            hinge = np.array([margin / 3])
            a, b = (published_margin.hinge_sums(Z, s, W, hinge) for s in (signs, other))
            worst = max(worst, float(np.linalg.norm(a - b)))
        bound = plan.sensitivity(margin)
        assert 0.999 * bound < worst <= bound * (1 + 1e-12)
        assert bound == pytest.approx(12 / margin)


@pytest.mark.slow
def test_speed_measures_time_and_memory():
    found = speed.measure(tiny(2), pairs=2)
    low, middle, high = found["methods"]["output_perturbation"]["ratio_quartiles"]
    assert 0 < low <= middle <= high
    assert found["methods"]["adaptive_margin"]["megabytes"] > 0
    assert 0 < found["methods"]["adaptive_margin"]["noise_share"] < 1
    results = {"speed": {"tiny": found}, "import": {"quartiles": [1, 2, 3]}, "limits": speed.LIMITS}
    table = tables.speed_table(results)
    assert "output_perturbation" in table
    assert "Import: 2 [1, 3] ms." in table


@pytest.mark.slow
def test_dimension_runs_what_is_new_and_draws(tmp_path, monkeypatch):
    monkeypatch.setattr(dimension, "N_TRAIN", 300)
    monkeypatch.setattr(dimension, "N_TEST", 50)
    out, picture = tmp_path / "d.json", tmp_path / "images" / "d.svg"
    what = ["--fits", "2", "--out", str(out), "--picture", str(picture), "--only", "dp_sgd"]
    dimension.main([*what, "--dimensions", "5"])
    first = json.loads(out.read_text())["cells"]["dp_sgd"]
    dimension.main([*what, "--dimensions", "5", "9", "100000"])
    second = json.loads(out.read_text())["cells"]["dp_sgd"]
    assert set(second) == {"5", "9"}
    assert second["5"] == first["5"]
    assert picture.read_text().startswith("<?xml")
    assert "d = 9" in tables.dimension_table({"cells": {"dp_sgd": second}})


def test_constants_that_are_changed_are_in_the_code():
    for path, name, *_ in (*constants.LINEAR, *constants.FEATURES):
        text = (constants.ROOT / "dp_halfspace" / path).read_text()
        assert len(re.findall(rf"(?m)^{name} = .*$", text)) == 1, name
