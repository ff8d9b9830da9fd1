"""What is calibrated on held-out records: thresholds for a target, and conformal sets.

``python -m benchmarks.held_out thresholds [--runs 200]`` and ``python -m benchmarks.held_out sets
[--runs 2000]`` print the tables of docs/evidence/operating_points.md. Records have normal scores,
and models know their distribution, so that what a threshold reaches is computed and not estimated.
Needs no data.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax
from scipy.stats import norm

from benchmarks.tables import markdown
from dp_halfspace import PrivateConformalClassifier, PrivateThresholdClassifier

TARGETS = (("recall", 0.9), ("recall", 0.8), ("precision", 0.5), ("false_positive_rate", 0.1))
SETS = ((2, 2.0), (3, 1.5), (5, 2.0))
SIZES = ((500, 1.0), (2000, 0.3), (2000, 1.0))
_RECORDS, _SHARE, _COVERAGE, _TESTED = 10_000, 0.1, 0.9, 2000


class Scores:
    """A model whose score of a record is the record, a deviation up for positive ones, or down."""

    classes_ = np.array([0, 1])

    def fit(self, X: Any, y: Any) -> Any:
        """Return the model, which knows the distribution."""
        return self

    def predict(self, X: Any) -> Any:
        """Return the sign."""
        return (X[:, 0] > 0.0).astype(int)

    def decision_function(self, X: Any) -> Any:
        """Return the score."""
        return X[:, 0]

    def place(self, threshold: float) -> float:
        """Return the score at a threshold."""
        return threshold


class Chances(Scores):
    """The same model with probabilities."""

    def predict_proba(self, X: Any) -> Any:
        """Return right probabilities."""
        chance = expit(2.0 * X[:, 0] + logit(_SHARE))
        return np.column_stack([1.0 - chance, chance])

    def place(self, threshold: float) -> float:
        """Return the score at a probability."""
        return float(logit(np.clip(threshold, 0.0, 1.0)) - logit(_SHARE)) / 2.0


class Several(Scores):
    """Right probabilities of several classes, whose own score is higher by a shift."""

    def __init__(self, n_classes: int, shift: float) -> None:
        self.classes_, self.shift = np.arange(n_classes), shift

    def predict_proba(self, X: Any) -> Any:
        """Return right probabilities."""
        return softmax(self.shift * X, axis=1)

    def records(self, rng: np.random.Generator, n: int) -> tuple[Any, Any]:
        """Draw scores and classes."""
        y = rng.integers(len(self.classes_), size=n)
        X = rng.standard_normal((n, len(self.classes_)))
        X[np.arange(n), y] += self.shift
        return X, y


def rates(score: float) -> dict[str, float]:
    """Return what a threshold reaches on the distribution."""
    found, false = float(norm.sf(score - 1.0)), float(norm.sf(score + 1.0))
    said = _SHARE * found + (1.0 - _SHARE) * false
    precision = _SHARE * found / said if said else 1.0
    return {"recall": found, "precision": precision, "false_positive_rate": false}


def thresholds(model: Any, target: str, value: float, runs: int) -> list[str]:
    """Return a row of the table of thresholds."""
    rng, met, found = np.random.default_rng(0), [], []
    for _ in range(runs):
        y = (rng.random(_RECORDS) < _SHARE).astype(int)
        X = (2 * y - 1 + rng.standard_normal(_RECORDS))[:, None]
        reached = []
        for epsilon in (1.0, math.inf):
            wrapper = PrivateThresholdClassifier(model, target=target, value=value, epsilon=epsilon)
            reached.append(rates(model.place(wrapper.fit(X, y).threshold_)))
        plain = rates(float(np.quantile(X[y == 1], 1.0 - value)))["false_positive_rate"]
        first, second = reached
        is_met = (
            first[target] <= value if target == "false_positive_rate" else first[target] >= value
        )
        met.append(is_met)
        false = [rate["false_positive_rate"] for rate in (first, second)]
        found.append([first["recall"], *false, plain])
    means = [f"{number:.3f}" for number in np.mean(found, axis=0)]
    kind = "probabilities" if isinstance(model, Chances) else "scores"
    last = " / ".join(means[1:] if target == "recall" else means[1:3])
    return [f"{target.replace('_', ' ')} {value:g}, {kind}", f"{np.mean(met):.3f}", means[0], last]


def sets(n_classes: int, shift: float, n: int, epsilon: float, runs: int) -> list[str]:
    """Return a row of the table of sets: coverage and mean size, private and exact."""
    model, rng, found = Several(n_classes, shift), np.random.default_rng(0), []
    for _ in range(runs):
        (X, y), (Z, truth) = model.records(rng, n), model.records(rng, _TESTED)
        cells = []
        for budget in (epsilon, math.inf):
            wrapper = PrivateConformalClassifier(model, coverage=_COVERAGE, epsilon=budget)
            chosen: NDArray[np.bool_] = wrapper.fit(X, y).predict_set(Z)
            hit = chosen[np.arange(_TESTED), truth]
            cells.append([chosen.sum(axis=1).mean(), hit.mean()])
        found.append(cells)
    mean = np.mean(found, axis=0)
    return [
        f"{n_classes}",
        f"{n}, {epsilon:g}",
        f"{mean[0, 1]:.3f} / {mean[1, 1]:.3f}",
        f"{mean[0, 0]:.3f} / {mean[1, 0]:.3f} ({mean[0, 0] / mean[1, 0]:.3f})",
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Calibrate and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("what", choices=("thresholds", "sets"))
    options.add_argument("--runs", type=int)
    options.add_argument("--classes", type=int, nargs="+", default=[2, 3, 5])
    given = options.parse_args(argv)
    warnings.simplefilter("ignore")
    if given.what == "thresholds":
        runs = given.runs or 200
        pairs = [(Chances(), *pair) for pair in TARGETS] + [(Scores(), *TARGETS[0])]
        heads = ["target", "share of runs that meet it", "recall", "false positive rate"]
        print(markdown(heads, [thresholds(*pair, runs) for pair in pairs]))
        return
    runs = given.runs or 2000
    heads = ["classes", "$n$, $\\varepsilon$", "coverage", "mean size", "by class"]
    lines = []
    for n_classes, shift in SETS:
        for n, epsilon in SIZES if n_classes in given.classes else ():
            lines.append(sets(n_classes, shift, n, epsilon, runs))
            print(*lines[-1], sep=" | ", flush=True)
    print(markdown(heads, lines))


if __name__ == "__main__":
    main()
