"""A public prior: accuracy and area with and without it, by how far the private rows are from it.

``python -m benchmarks.prior [--fits 2] [--sizes 300 ...] [--epsilons .1 ...]`` prints. Eleven
two-class tables of `DP_HALFSPACE_DATA`; the prior is a logistic regression of 500 rows. Public and
private rows are drawn alike ("good"), or the public ones from one end of a random direction of the
columns and the private ones from the other ("shifted"); half of the coefficients have the wrong
sign ("half"), or all of them ("opposite").
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from benchmarks.small import table
from dp_halfspace import AdaptiveMarginClassifier

TABLES = (
    "adult_raw", "adult_all", "stroke_all", "abalone", "casp", "compactiv", "magic", "phoneme",
    "winewhite", "cancer", "casp_rare",
)  # fmt: skip
KINDS = ("good", "shifted", "half", "opposite")
_PUBLIC, _TESTED = 500, 2000


def regression(X: Any, y: Any) -> tuple[Any, Any]:
    """Fit a logistic regression, for columns as they are."""
    scaler = StandardScaler().fit(X)
    model = LogisticRegression(max_iter=2000).fit(scaler.transform(X), y)
    coefficients = model.coef_ / scaler.scale_
    return coefficients, model.intercept_ - coefficients @ scaler.mean_


def problem(name: str, size: int, kind: str, seed: int) -> tuple[Any, ...] | None:
    """Return private and test rows and a prior; None where there are too few rows."""
    X, Z, y, t = table(name)
    X, Z = np.asarray(X, dtype=float), np.asarray(Z, dtype=float)
    rng = np.random.default_rng([seed, size])
    places = rng.permutation(len(y))
    n_public = min(_PUBLIC, len(y) // 3)
    public, private = places[:n_public], places[n_public:]
    if kind == "shifted":
        widths = X.std(axis=0)
        Y = (X - X.mean(axis=0)) / np.where(widths > 0, widths, 1.0)
        score = Y @ rng.standard_normal(X.shape[1]) + 0.5 * rng.standard_normal(len(X))
        low, high = np.split(np.argsort(score), [len(X) // 3])
        public, private = rng.permutation(low)[:n_public], rng.permutation(high)
    if len(private) < size or len(set(y[public])) < 2:
        return None
    coefficients, intercepts = regression(X[public], y[public])
    if kind == "opposite":
        coefficients, intercepts = -coefficients, -intercepts
    if kind == "half":
        turned = rng.random(coefficients.shape) < 0.5
        intercepts = intercepts + (2.0 * coefficients * turned) @ X[public].mean(axis=0)
        coefficients = np.where(turned, -coefficients, coefficients)
    tested, private = rng.permutation(len(t))[:_TESTED], private[:size]
    return X[private], y[private], Z[tested], t[tested], (coefficients, intercepts)


def scores(data: tuple[Any, ...], epsilon: float) -> list[float]:
    """Accuracy and area of the prior alone, of a fit without it, and of one with it."""
    X, y, Z, t, prior = data
    alone = Z @ prior[0][0] + prior[1][0]
    found = [float(np.mean((alone > 0) == t)), float(roc_auc_score(t, alone))]
    for given in (None, prior):
        model = AdaptiveMarginClassifier(epsilon=epsilon, classes=[0, 1], prior=given).fit(X, y)
        found += [model.score(Z, t), float(roc_auc_score(t, model.decision_function(Z)))]
    return found


def main() -> None:
    """Print a line for each kind of prior, size and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 1000, 2000])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.3, 1.0])
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("prior, rows, epsilon: accuracy/area of the prior, of a fit without it, of one with it")
    for kind in KINDS:
        for size in options.sizes:
            for epsilon in options.epsilons:
                cells = [
                    scores(data, epsilon)
                    for name in options.tables
                    for seed in range(options.fits)
                    if (data := problem(name, size, kind, seed)) is not None
                ]
                mean = [f"{value:.3f}" for value in np.mean(cells, axis=0)] if cells else []
                pairs = " ".join(map("/".join, zip(mean[::2], mean[1::2], strict=True)))
                print(f"{kind} {size} {epsilon:g} ({len(cells)} tables): {pairs}", flush=True)


if __name__ == "__main__":
    main()
