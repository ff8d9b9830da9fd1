"""Thresholds for a recall, a precision or a false positive rate: how often met, at what cost.

``python -m benchmarks.thresholds [--fits 200] [--rows NAME ...]`` prints how often a target is
met: docs/evidence/operating_points.md. For each target: the share of fits that meet it on other
rows, the mean of what these rows reach, and by how much their false positive rate exceeds that of
two other thresholds on the same scores: the one that meets the target exactly on these rows, and
the one by exact counts of the rows of the fit, raised for the same confidence. Every fit draws a
table.

Names of rows: ``normal`` has five columns whose mean is larger by .7 for positive rows, ``strong``
four by 1.2, ``variance`` five that are more variable, and ``lognormal`` the exponentials of
``normal``; 50,000 other rows. Other names are those of the shared tables in the folder of the
environment variable ``DP_HALFSPACE_DATA``, whose rarer class is thinned.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.rare_tables import shared_rows
from benchmarks.tables import markdown
from dp_halfspace import PrivateTableClassifier
from dp_halfspace.estimators import _crossing as crossing
from dp_halfspace.estimators import _operating_point as operating_point

TARGETS = {"recall": 0.9, "precision": 0.5, "false_positive_rate": 0.1}
SIZES, EPSILONS = (2000, 10_000, 30_000), (1.0, 3.0)
ROWS = ("normal", "strong", "variance", "lognormal")
_TESTED = 50_000


def drawn_rows(name: str, n: int, share: float, seed: int) -> tuple[pd.DataFrame, Any]:
    """Draw a table and its labels."""
    rng = np.random.default_rng([seed, n])
    y = rng.random(n) < share
    columns, shift = (4, 1.2) if name == "strong" else (5, 0.3 if name == "variance" else 0.7)
    X = rng.normal(size=(n, columns))
    if name == "variance":
        X *= np.where(y, 1.8, 1.0)[:, None]
    X += shift * y[:, None]
    X = np.exp(X) if name == "lognormal" else X
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(columns)]), y


@cache
def other_rows(name: str, share: float) -> tuple[pd.DataFrame, Any]:
    """Draw the rows on which thresholds are tested."""
    return drawn_rows(name, _TESTED, share, 10_000)


def rows_of(name: str, n: int, share: float, seed: int) -> tuple[Any, Any, Any, Any]:
    """Return rows and labels of a fit, and other ones."""
    if name in ROWS:
        return (*drawn_rows(name, n, share, seed), *other_rows(name, share))
    frame, rare = shared_rows(name)
    rng = np.random.default_rng([7, seed])
    parts = [rng.permutation(np.flatnonzero(rare == is_rare)) for is_rare in (False, True)]
    total = min(len(parts[0]) / (1.0 - share), len(parts[1]) / share)
    n_rare = int(share * total)
    chosen = rng.permutation([*parts[0][: int(total) - n_rare], *parts[1][:n_rare]])
    fitted, other = chosen[:n], chosen[n:]
    return frame.iloc[fitted], rare[fitted], frame.iloc[other], rare[other]


def reached(target: str, predicted: Any, truth: Any) -> float:
    """Return what labels reach; a precision of nothing is one, because it has no error."""
    hits = float(np.sum(predicted & truth))
    among = {"recall": truth, "precision": predicted, "false_positive_rate": ~truth}[target]
    counted = float(np.sum(predicted)) - hits if target == "false_positive_rate" else hits
    size = float(np.sum(among))
    return counted / size if size else 1.0


def exact_rate(target: str, wanted: float, scores: NDArray[np.float64], truth: Any) -> float:
    """Return the false positive rate of the best threshold that meets a target on these rows."""
    order = np.argsort(-scores)
    true, false = (np.cumsum(part[order]) for part in (truth, ~truth))
    if target == "recall":
        place = int(np.argmax(true >= wanted * true[-1]))
    elif target == "precision":
        fits = np.flatnonzero(true >= wanted * (true + false))
        if not len(fits):
            return 0.0
        place = int(fits[-1])
    else:
        place = int(np.flatnonzero(false <= wanted * false[-1])[-1])
    return float(false[place] / false[-1])


def without_noise(target: str, wanted: float, odds: NDArray[np.float64], truth: Any) -> float:
    """Return the threshold by exact counts, with the margin for the sampling error."""
    above = operating_point._counts_above(odds, truth.astype(int))
    size = np.sum(truth != (target == "false_positive_rate"))
    _, variance = crossing.most_and_variance(target, wanted)
    excess = crossing.excess_of(target, wanted, above[1], above[0])
    excess -= operating_point._DEVIATIONS * math.sqrt(variance * size)
    excess[-1] = 0.0
    places = crossing.candidates(target, operating_point._BORDERS)
    return float(places[np.argmax(excess >= 0.0)])


def fit(rows: tuple[Any, Any, Any, Any], epsilon: float, target: str) -> tuple[float, ...]:
    """Fit once; return whether other rows meet the target, what they reach, and the excesses."""
    wanted = TARGETS[target]
    X, y, other, truth = rows
    model = PrivateTableClassifier(
        epsilon=epsilon, classes=[False, True], threshold={target: wanted}
    ).fit(X, y)
    scores = model.decision_function(other)
    predicted = scores >= model.threshold_.log_odds
    value = reached(target, predicted, truth)
    is_met = value <= wanted if target == "false_positive_rate" else value >= wanted
    rate = reached("false_positive_rate", predicted, truth)
    plain = scores >= without_noise(target, wanted, model.decision_function(X), y)
    return (
        is_met,
        value,
        rate - exact_rate(target, wanted, scores, truth),
        rate - reached("false_positive_rate", plain, truth),
    )


def cell(name: str, n: int, epsilon: float, target: str, given: argparse.Namespace) -> str:
    """Return the share of fits that meet a target, and means of the value and of the excesses."""
    found = [
        fit(rows_of(name, n, given.positives, seed), epsilon, target) for seed in range(given.fits)
    ]
    met, value, exact, plain = np.mean(found, axis=0)
    error = math.sqrt(met * (1.0 - met) / given.fits)
    return f"{met:.3f} ± {error:.3f}, {value:.3f}, {exact:+.3f}, {plain:+.3f}"


def main(argv: Sequence[str] | None = None) -> None:
    """Fit and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--fits", type=int, default=200)
    options.add_argument("--rows", nargs="+", default=["normal"])
    options.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    options.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))
    options.add_argument("--targets", nargs="+", choices=TARGETS, default=list(TARGETS))
    options.add_argument("--positives", type=float, default=0.1)
    given = options.parse_args(argv)
    warnings.simplefilter("ignore")
    lines = []
    for name in given.rows:
        for n in given.sizes:
            for epsilon in given.epsilons:
                cells = (cell(name, n, epsilon, target, given) for target in given.targets)
                lines.append([f"{name}, {n}, {epsilon:g}", *cells])
                print(*lines[-1], sep=" | ", flush=True)
    heads = [f"{target.replace('_', ' ')} {TARGETS[target]:g}" for target in given.targets]
    print(markdown(["rows, records, $\\epsilon$", *heads], lines))


if __name__ == "__main__":
    main()
