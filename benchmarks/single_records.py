"""Algorithm 3 of Nguyen, Ullman and Zakynthinou (2020) beside full-batch steps.

``solver="noisy_sgd"`` takes ``n^2 - 1`` steps, each on one record that is drawn with replacement
and kept secret, a projection to the unit ball, and returns the last iterate: with the least noise
for which the steps spend the budget together, and with the noise of line 12 of the listing, which
spends less than the budget; that epsilon is given then. `seconds` is the CPU time of one fit.

At these sizes the projection to ``O(log(n) / margin^2)`` components would have more than there are
columns: there is none. One run, without the repetition of lines 8 to 10, whose choice the listing
does not count. Prints a table; nothing is written.
"""

import argparse
import math
import os
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.tables import markdown
from dp_halfspace import AdaptiveMarginClassifier, PrivacyWarning
from dp_halfspace.datasets import make_halfspace
from dp_halfspace.privacy import Repeated, SampledGaussian, epsilon

EPSILON, MARGIN, COLUMNS = 1.0, 0.3, 10
SIZES = (100, 200, 400, 800)
FRESH = 20_000


def printed_epsilon(n: int, delta: float) -> float:
    """Return what the steps spend with the variance of line 12."""
    # Over n times the Lipschitz constant.
    deviation = math.sqrt(32.0 * math.log(n / delta) * math.log(1.0 / delta)) / EPSILON
    return epsilon([Repeated(SampledGaussian(n, 2.0 / deviation), n * n - 1)], delta)


def errors(n: int, draws: int) -> dict[str, str]:
    """Measure the error on fresh records of all ways for one size."""
    X, y = make_halfspace(n + FRESH, COLUMNS, margin=MARGIN, random_state=0)
    fresh, labels = X[n:], y[n:]
    X, y, delta = X[:n], y[:n], 1.0 / n**2
    public = {"epsilon": EPSILON, "delta": delta, "data_norm": 1.0, "classes": [-1, 1]}
    known = {"margin": MARGIN, "fit_intercept": False}
    single = {**known, "solver": "noisy_sgd", "iterate": "last"}
    printed = printed_epsilon(n, delta)
    found = {"records": str(n), "epsilon as printed": f"{printed:.3g}"}
    for name, ways in {
        "single, as printed": {**single, "epsilon": printed},
        "single, least noise": single,
        "full batch, last": {**known, "iterate": "last"},
        "full batch, mean": {**known, "iterate": "mean"},
        "default": {},
    }.items():
        model = AdaptiveMarginClassifier(**{**public, **ways})
        model.plan(X, y)  # the search for the noise is remembered
        start = time.process_time()
        wrong = 1 - np.mean([model.fit(X, y).score(fresh, labels) for _ in range(draws)])
        found[name] = f"{wrong:.3f}"
        if name == "single, least noise":
            found["seconds"] = f"{(time.process_time() - start) / draws:.2g}"
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
