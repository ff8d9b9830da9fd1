"""Bounds on the excess risk of output perturbation beside what was measured.

A distribution with two hundred records in five columns, so that the risk on fresh records is a sum
and its minimum is known. Logistic loss, exact minimisers, noise for the sensitivity that the bound
is about. Fresh records against their number; the tilted risk of the sample against the tilt; the
adversarial risk of the sample against the radius of the adversary. Beside it the published number
where it has a proof.

Writes ``results/risk_bounds.json`` and ``docs/images/risk_bounds.svg``.
"""

import argparse
import math
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from scipy.special import logsumexp, softmax

from benchmarks.cells import RESULTS, merge, read, store, versions
from benchmarks.pictures import IMAGES, half_width, save
from benchmarks.tables import markdown
from dp_halfspace.optim.losses import LOGISTIC
from dp_halfspace.privacy import gdp_mu
from dp_halfspace.theory import (
    RiskBound,
    adversarial_risk_bound,
    population_risk_bound,
    tilted_risk_bound,
)

FloatArray = NDArray[np.float64]

EPSILON, DELTA, RIDGE, COLUMNS, KINDS = 1.0, 1e-6, 0.05, 5, 200
RECORDS = 10_000
SIZES = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)
TILTS = (0.0, 0.1, 0.3, 0.6, 1.0, 1.5, 2.0)
RADII = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
PANELS = {
    "records": "fresh records",
    "tilt": "tilted, on the sample",
    "radius of the adversary": "worst losses, on the sample",
}
SMOOTHING = 1e-6  # of the dual norm, too small to see


def distribution() -> tuple[FloatArray, FloatArray]:
    """Signed rows in the unit ball, a tenth of them on the wrong side, and their probabilities."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((KINDS, COLUMNS))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[:, 0] = np.abs(rows[:, 0])
    rows[: KINDS // 10] *= -1.0
    return rows, np.full(KINDS, 1.0 / KINDS)


def risk(
    rows: FloatArray, weights: FloatArray, models: FloatArray, *,
    tilt: float, radius: float, ridge: float = RIDGE,
) -> FloatArray:  # fmt: skip
    """Regularised risk of many models, tilted or against an adversary."""
    models = np.atleast_2d(models)
    size = np.hypot(np.linalg.norm(models, axis=1), SMOOTHING) - SMOOTHING
    losses = LOGISTIC.value(models @ rows.T - radius * size[:, None])
    mean = logsumexp(tilt * losses, b=weights, axis=1) / tilt if tilt else losses @ weights
    return np.asarray(mean + ridge / 2.0 * np.sum(models**2, axis=1))


def minimiser(
    rows: FloatArray, weights: FloatArray, *, tilt: float, radius: float, ridge: float = RIDGE
) -> FloatArray:
    """Minimise that risk."""

    def both(w: FloatArray) -> tuple[float, FloatArray]:
        size = math.hypot(float(np.linalg.norm(w)), SMOOTHING)
        margins = rows @ w - radius * (size - SMOOTHING)
        with np.errstate(divide="ignore"):
            shares = softmax(tilt * LOGISTIC.value(margins) + np.log(weights))
        slopes = shares * LOGISTIC.derivative(margins)
        gradient = slopes @ rows - slopes.sum() * radius * w / size + ridge * w
        return float(risk(rows, weights, w, tilt=tilt, radius=radius, ridge=ridge)[0]), gradient

    found = optimize.minimize(both, np.full(rows.shape[1], 1e-3), jac=True, tol=1e-12)
    return np.asarray(found.x)


def measured(
    n: int, sensitivity: float, *, tilt: float, radius: float, fresh: bool, samples: int, draws: int
) -> tuple[float, float]:
    """Mean excess over samples and noise, on fresh records or on the sample; half its interval."""
    rows, weights = distribution()
    rng = np.random.default_rng(n)
    sigma = sensitivity / gdp_mu(EPSILON, DELTA)
    value = partial(risk, rows, tilt=tilt, radius=radius)
    solve = partial(minimiser, rows, tilt=tilt, radius=radius)
    best = solve(weights)
    excess = []
    for _ in range(samples):
        seen = rng.multinomial(n, weights) / n
        model = solve(seen)
        released = model + sigma * rng.standard_normal((draws, COLUMNS))
        if fresh:
            excess.append(value(weights, released).mean() - value(weights, best)[0])
        else:
            excess.append(value(seen, released).mean() - value(seen, model)[0])
    cell = {"draws": samples, "sd": float(np.std(excess, ddof=1))}
    return float(np.mean(excess)), half_width(cell)


def panel(
    bounds: dict[float, RiskBound], sizes: Sequence[int], cases: Sequence[dict[str, float]], *,
    fresh: bool, samples: int, draws: int,
) -> dict:  # fmt: skip
    """Measure one panel of the picture."""
    found: dict = {"x": list(bounds), "bound": [], "published": [], "measured": [], "half": []}
    for (x, bound), n, case in zip(bounds.items(), sizes, cases, strict=True):
        mean, half = measured(
            n, bound.sensitivity, **{"tilt": 0.0, "radius": 0.0, **case},
            fresh=fresh, samples=samples, draws=draws,
        )  # fmt: skip
        found["bound"].append(bound.value)
        found["published"].append(bound.published)
        found["measured"].append(mean)
        found["half"].append(half)
        print(f"{x:g}: bound {bound.value:.3g}, measured {mean:.3g}", flush=True)
    return found


def measure(samples: int, draws: int) -> dict[str, dict]:
    """Measure everything."""
    budget = {"n_features": COLUMNS, "epsilon": EPSILON, "delta": DELTA}
    population = {
        n: population_risk_bound(
            n, **budget, lipschitz=1.0, smoothness=0.25, linear_model=True, strong_convexity=RIDGE
        )
        for n in SIZES
    }
    own = {"n_samples": RECORDS, **budget, "regularization": RIDGE}
    tilted = {tilt: tilted_risk_bound(**own, tilt=tilt) for tilt in TILTS}
    attacked = {
        radius: adversarial_risk_bound(**own, attack_radius=radius, smoothing=SMOOTHING)
        for radius in RADII
    }
    fixed = {"samples": samples, "draws": draws}
    return {
        "records": panel(population, SIZES, [{}] * len(SIZES), fresh=True, **fixed),
        "tilt": panel(
            tilted, [RECORDS] * len(TILTS), [{"tilt": t} for t in TILTS], fresh=False, **fixed
        ),
        "radius of the adversary": panel(
            attacked, [RECORDS] * len(RADII), [{"radius": r} for r in RADII], fresh=False, **fixed
        ),
    }


def table(results: dict) -> str:
    """Bound, measured mean and published number for every point."""
    rows = []
    for name in PANELS:
        found = results["cells"][name]
        for x, bound, mean, number in zip(
            found["x"], found["bound"], found["measured"], found["published"], strict=True
        ):
            published = "-" if number is None else f"{number:.2g}"
            rows.append([name, f"{x:g}", f"{mean:.2g}", f"{bound:.2g}", published])
    return markdown(["against", "value", "measured", "bound", "published"], rows)


def draw(path: Path, picture: Path) -> None:
    """Plot the curves of the file, one panel each."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (only the pictures need it)

    cells = read(path)["cells"]
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, len(PANELS)))
    for axis, (name, title) in zip(axes, PANELS.items(), strict=True):
        found = cells[name]
        for key, style in (("published", ":"), ("bound", "--")):
            values = [math.nan if v is None else v for v in found[key]]
            axis.plot(found["x"], values, style, marker=".", label=key)
        axis.errorbar(
            found["x"], found["measured"], found["half"], marker=".", capsize=2, label="measured"
        )
        axis.set(title=title, xlabel=name, yscale="log")
        axis.set_xscale("linear" if name == "tilt" else "log")
        axis.grid(alpha=0.3)
    figure.axes[0].set_ylabel("excess risk")
    figure.axes[0].legend(frameon=False)
    save(figure, picture)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print the table and draw the picture."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--samples", type=int, default=100)
    options.add_argument("--draws", type=int, default=100)
    options.add_argument("--out", type=Path, default=RESULTS / "risk_bounds.json")
    options.add_argument("--picture", type=Path, default=IMAGES / "risk_bounds.svg")
    given = options.parse_args(argv)
    for name, found in measure(given.samples, given.draws).items():
        store(given.out, "cells", name, value=found)
    setting = {"epsilon": EPSILON, "delta": DELTA, "ridge": RIDGE, "records": RECORDS}
    setting |= {"columns": COLUMNS, "samples": given.samples, "draws": given.draws}
    merge(given.out, "setting", value=setting)
    merge(given.out, "versions", value=versions())
    print(table(read(given.out)))
    draw(given.out, given.picture)


if __name__ == "__main__":
    main()
