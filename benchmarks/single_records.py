"""Algorithm 3 of Nguyen, Ullman and Zakynthinou (2020) as published, beside full-batch steps.

``n^2 - 1`` steps, each on one record that is drawn with replacement and kept secret, noise on n
times its gradient, a projection to the unit ball, the last iterate. `published` has the variance of
line 12; `calibrated` the least for which the steps spend the budget by their composed profiles:

*One step.* Replacing a record changes the law (1 - q) M + q N to (1 - q) M + q N', q = 1 / n, where
M, N and N' are mixtures of Gaussians whose means are 2 n L apart at most. By the advanced joint
convexity of Balle, Barthe and Gaboardi (2018), Theorem 2, its profile at ``log(1 + q (e^a - 1))``
is at most q times that of a Gaussian mechanism with ``mu = 2 n L / sigma`` at ``a >= 0``; for both
orders, so that negative arguments follow. *All steps.* Its piecewise linear majorant in e^epsilon
is the profile of a discrete loss, which `PLD.repeat` adds up from above.

At these sizes the projection to ``O(log(n) / margin^2)`` components would have more than there are
columns: there is none. One run, without the repetition of lines 8 to 10, whose choice the listing
does not count. Prints a table; nothing is written.
"""

import argparse
import math
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables import markdown
from dp_halfspace import AdaptiveMarginClassifier, PrivacyWarning
from dp_halfspace.datasets import make_halfspace
from dp_halfspace.privacy.pld import PLD
from dp_halfspace.privacy.profiles import log_gdp_delta

FloatArray = NDArray[np.float64]

EPSILON, MARGIN, COLUMNS = 1.0, 0.3, 10
SIZES = (100, 200, 400, 800)
FRESH = 20_000
LIPSCHITZ = 100.0 / (86.0 * MARGIN)
_CELLS = 4000
_TAIL = 1e-17


def step_profile(loss: FloatArray, mu: float, rate: float) -> FloatArray:
    """Bound the profile of one step on a record that is drawn with probability `rate`."""
    size = np.abs(loss)
    above = rate * np.exp(log_gdp_delta(mu, np.log1p(np.expm1(size) / rate)))
    return np.where(loss >= 0.0, above, -np.expm1(-size) + np.exp(-size) * above)


def step_loss(mu: float, rate: float) -> PLD:
    """Return a loss whose profile is the piecewise linear majorant of that of one step."""
    top = float(np.log1p(rate * np.expm1(mu * (0.5 * mu + 9.0))))
    losses = top / _CELLS * np.arange(-_CELLS, _CELLS + 1)
    profile, odds = step_profile(losses, mu, rate), np.exp(losses)
    slopes = np.concatenate([[-1.0], np.diff(profile) / np.diff(odds), [0.0]])
    return PLD(
        top / _CELLS, -_CELLS, np.maximum(np.diff(slopes), 0.0) * odds, _TAIL, float(profile[-1])
    )


def delta_of_steps(n: int, mu: float, epsilon: float) -> float:
    """Bound the delta of ``n^2 - 1`` steps."""
    total = step_loss(mu, 1.0 / n).repeat(n * n - 1)
    loss = np.maximum(-np.expm1(np.minimum(epsilon - total.losses, 0.0)), 0.0)
    return float(total.mass @ loss) + total.cut


def published_sigma(n: int, epsilon: float, delta: float) -> float:
    """Return line 12 of the listing."""
    logs = math.log(n / delta) * math.log(1.0 / delta)
    return math.sqrt(32.0 * logs) * LIPSCHITZ * n / epsilon


def calibrated_sigma(n: int, epsilon: float, delta: float) -> float:
    """Return the least noise, to a part in a thousand, that spends no more than the budget."""
    low, high = 1e-3, 1.0
    while high > 1.001 * low:
        mu = math.sqrt(low * high)
        low, high = (mu, high) if delta_of_steps(n, mu, epsilon) <= delta else (low, mu)
    return 2.0 * n * LIPSCHITZ / low


def single_record_steps(X: FloatArray, y: FloatArray, sigma: float, draws: int) -> FloatArray:
    """Lines 12 to 16, `draws` runs side by side."""
    n, m = X.shape
    rng = np.random.default_rng(n)
    signed = X * y[:, None]
    w = np.zeros((draws, m))
    scale = 2.0 / math.sqrt(n**2 * LIPSCHITZ**2 + m * sigma**2)
    for t in range(1, n * n):
        rows = signed[rng.integers(n, size=draws)]
        pull = n * LIPSCHITZ * (np.einsum("ij,ij->i", w, rows) < 0.96 * MARGIN)
        noisy = pull[:, None] * rows + sigma * rng.standard_normal((draws, m))
        w += scale / math.sqrt(t) * noisy
        w /= np.maximum(1.0, np.sqrt(np.einsum("ij,ij->i", w, w)))[:, None]
    return w


def errors(n: int, draws: int) -> dict[str, str]:
    """Measure the error on fresh records of all ways for one size."""
    X, y = make_halfspace(n + FRESH, COLUMNS, margin=MARGIN, random_state=0)
    fresh, labels = X[n:], y[n:]
    X, y, delta = X[:n], y[:n], 1.0 / n**2
    found = {"records": str(n)}
    for name, sigma in (
        ("published", published_sigma(n, EPSILON, delta)),
        ("calibrated", calibrated_sigma(n, EPSILON, delta)),
    ):
        models = single_record_steps(X, y, sigma, draws)
        found[f"noise, {name}"] = f"{sigma / (n * LIPSCHITZ):.3g}"
        found[name] = f"{np.mean(labels[:, None] * (fresh @ models.T) <= 0):.3f}"
    public = {"epsilon": EPSILON, "delta": delta, "data_norm": 1.0, "classes": [-1, 1]}
    for name, ways in {
        "full batch, last": {"margin": MARGIN, "iterate": "last", "fit_intercept": False},
        "full batch, mean": {"margin": MARGIN, "iterate": "mean", "fit_intercept": False},
        "default": {},
    }.items():
        model = AdaptiveMarginClassifier(**ways, **public)
        found[name] = (
            f"{1 - np.mean([model.fit(X, y).score(fresh, labels) for _ in range(draws)]):.3f}"
        )
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    options.add_argument("--draws", type=int, default=40)
    given = options.parse_args(argv)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # the budgets are small on purpose
        rows = [errors(n, given.draws) for n in given.sizes]
    print(markdown(list(rows[0]), [list(row.values()) for row in rows]))


if __name__ == "__main__":
    main()
