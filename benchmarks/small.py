"""Tables of few rows: the default beside every other class, the majority and the listed families.

``python -m benchmarks.small [--fits 8]`` fits; ``--distribution`` instead computes the mean
accuracy of the selection exactly, by enumeration of its distribution over one list, for parts of
directions, cells and constants, and ``--probabilities`` the Brier score of the probabilities that
follow from a count of errors beside that of the constant probability. Sixteen two-class tables of
`DP_HALFSPACE_DATA`, subsampled.

"""

from __future__ import annotations

import argparse
import bz2
import json
import os
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from dp_halfspace import (
    AdaptiveMarginClassifier,
    ObjectivePerturbationClassifier,
    OutputPerturbationClassifier,
    PrivateAUCClassifier,
    PrivateKernelClassifier,
    PureHalfspaceClassifier,
)
from dp_halfspace.selection.small_tables import (
    counted_share,
    plan_choice,
    plan_small_table,
)

TABLES = (
    "abalone", "adult_raw", "adult_all", "casp", "casp_rare", "compactiv", "magic", "mushroom",
    "phoneme", "stroke", "stroke_all", "sylva", "winewhite", "cancer", "digits_oe", "optdigits_oe",
)  # fmt: skip
SIZES, EPSILONS = (200, 400, 800, 1600), (0.1, 0.3, 1.0, 3.0)
OTHERS = {
    "engine": lambda **p: AdaptiveMarginClassifier(solver="noisy_gd", **p),
    "directions": lambda delta=0.0, **p: PureHalfspaceClassifier(n_stages=1, **p),
    "objective": ObjectivePerturbationClassifier,
    "kernel": PrivateKernelClassifier,
    "auc": PrivateAUCClassifier,
    "output": OutputPerturbationClassifier,
}


@cache
def table(name: str) -> tuple[Any, ...]:
    """Return training and test rows of numbers, and labels 0 and 1; missing entries are zero."""
    if name in ("cancer", "digits_oe"):
        load = load_breast_cancer if name == "cancer" else load_digits
        X, y = load(return_X_y=True)
        y = y % 2
        return _split(X, y)
    folder = Path(os.environ["DP_HALFSPACE_DATA"]) / "tables"
    base = {"adult_all": "adult_raw", "stroke_all": "stroke", "optdigits_oe": "optdigits"}
    file = base.get(name, name)
    schema = json.loads((folder / "schema.json").read_text())[file]["columns"]
    with bz2.open(folder / f"{file}.csv.bz2", "rt") as stream:
        frame = pd.read_csv(stream)
    target = frame.pop("target").astype(str).to_numpy()
    has_numbers = any(not isinstance(rule[0], str) for rule in schema.values())
    columns = []
    for column, rule in schema.items():
        if not isinstance(rule[0], str):
            columns.append(frame[column].to_numpy(float)[:, None])
        elif name.endswith("_all") or not has_numbers:
            kept = rule[1:] if len(rule) == 2 else rule
            columns.append(
                (frame[column].astype(str).to_numpy()[:, None] == np.array(kept)).astype(float)
            )
    y = target.astype(float).astype(int) % 2 if file == "optdigits" else None
    y = (target == np.unique(target)[1]).astype(int) if y is None else y
    return _split(np.nan_to_num(np.hstack(columns)), y)


def _split(X: Any, y: Any) -> tuple[Any, ...]:
    """Split by 70 to 30."""
    return tuple(train_test_split(X, y, test_size=0.3, random_state=0, stratify=y))


def few(name: str, size: int) -> tuple[Any, ...] | None:
    """Return `size` rows to train on and at most 2000 to test on; None where there are fewer."""
    X, Z, y, t = table(name)
    if size > 1.01 * len(y):
        return None
    if size < len(y):
        X, _, y, _ = train_test_split(X, y, train_size=size, random_state=size, stratify=y)
    place = np.random.default_rng([size, 17]).permutation(len(t))[:2000]
    return X, y, Z[place], t[place]


def cell(make: Any, data: tuple[Any, ...], epsilon: float, fits: int) -> NDArray[np.float64]:
    """Return accuracy and area of so many fits of a class on one table, one in a row."""
    X, y, Z, t = data
    found = []
    for _ in range(fits):
        model = make(epsilon=epsilon, classes=[0, 1]).fit(X, y)
        found.append((model.score(Z, t), roc_auc_score(t, model.decision_function(Z))))
    return np.array(found)


def regret(default: NDArray[np.float64], others: list[NDArray[np.float64]]) -> tuple[float, float]:
    """Return by how much the best mean is above that of the default, and the same by halves.

    The largest of several noisy means is too large. By halves the best one is chosen by every
    second fit and compared by the other fits: too small where these choose wrongly.
    """
    everyone = [default, *others]
    every, even, odd = slice(None), slice(None, None, 2), slice(1, None, 2)

    def ahead(chosen: slice, compared: slice) -> float:
        best = max(everyone, key=lambda fits: float(fits[chosen].mean()))
        return float(best[compared].mean() - default[compared].mean())

    return ahead(every, every), (ahead(even, odd) + ahead(odd, even)) / 2.0


def compared(fits: int, others: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Print the default beside the other classes, and its regret."""
    regrets: list[tuple[float, float, str]] = []
    for size in SIZES:
        for epsilon in EPSILONS:
            rows = []
            for name in names:
                data = few(name, size)
                if data is None:
                    continue
                majority = max(data[3].mean(), 1.0 - data[3].mean())
                default = cell(AdaptiveMarginClassifier, data, epsilon, fits)
                beside = [cell(OTHERS[kind], data, epsilon, max(2, fits // 2)) for kind in others]
                constant = np.full(2, majority)
                found = regret(default[:, 0], [constant, *(one[:, 0] for one in beside)])
                regrets.append((*found, f"{name} {size} {epsilon:g}"))
                rows.append([majority, *np.concatenate([c.mean(0) for c in (default, *beside)])])
            means = " ".join(f"{value:.3f}" for value in np.mean(rows, axis=0))
            print(f"n={size} epsilon={epsilon:g}: {means}", flush=True)
    worst = sorted(regrets, reverse=True)[:5]
    whole, by_halves = np.mean([row[:2] for row in regrets], axis=0)
    print(f"mean regret {whole:.4f}, by halves {by_halves:.4f}, worst {worst}")


def distributions(names: tuple[str, ...]) -> None:
    """Print the mean accuracy of the selection by enumeration of its distribution."""
    parts = (
        (0.45, 0.45, 0.1),
        (0.9, 0.0, 0.1),
        (0.0, 0.9, 0.1),
        (0.35, 0.35, 0.3),
        (0.2, 0.3, 0.5),
    )
    print("directions, cells, constants:", *parts)
    for size in SIZES:
        lists = [list(candidates(data)) for data in (few(n, size) for n in names) if data]
        for epsilon in EPSILONS:
            means = [np.mean([expected(one, epsilon, part) for one in lists]) for part in parts]
            print(f"n={size} epsilon={epsilon:g}:", *(f"{m:.3f}" for m in means), flush=True)


def candidates(data: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    """Yield errors and accuracy on the test rows of directions, of cells and of constants."""
    X, y, Z, t = data
    plan = plan_small_table(len(y), X.shape[1], 1.0, seed=0)
    errors, wrong = (list(plan.costs(R, c, np.ones(2))) for R, c in ((X, y), (Z, t)))
    first = plan.directions.n_blocks
    for part in (slice(0, first), slice(first, -1), slice(-1, None)):
        yield np.concatenate(errors[part]), 1.0 - np.concatenate(wrong[part]) / len(t)


def expected(families: list[tuple[Any, Any]], epsilon: float, part: tuple[float, ...]) -> float:
    """Return the mean accuracy of the mechanism, families having these parts of the list."""
    least = min(errors.min() for errors, _ in families)
    total = right = 0.0
    for (errors, accuracy), share in zip(families, part, strict=True):
        weights = share / len(errors) * np.exp(-epsilon / 2.0 * (errors - least))
        total, right = total + weights.sum(), right + weights @ accuracy
    return float(right / total)


def probabilities(names: tuple[str, ...]) -> None:
    """Print the Brier score less that of the constant probability, by enumeration."""
    found = {
        (name, size): (list(candidates(data)), size, data[3].mean())
        for name in names
        for size in SIZES
        if (data := few(name, size))
    }
    for n_epsilon in (60, 80, 120, 240, 400, 560):
        more = {place: brier(*given, n_epsilon) for place, given in found.items()}
        worst = sorted(((more[place], *place) for place in more), reverse=True)[:3]
        print(f"n epsilon={n_epsilon}: mean {np.mean(list(more.values())):.4f}, worst {worst}")


def brier(families: list[tuple[Any, Any]], n: int, share: float, n_epsilon: float) -> float:
    """Return the mean Brier score of choice and count, less that of the constant probability."""
    choice = plan_choice(n, n_epsilon / n, 2, counts=True)
    below, above = map(float, choice.rates)
    noise = np.arange(-int(10 / below), int(10 / above) + 1, max(1, int(0.02 / above)))
    distribution = np.exp(np.where(noise < 0, below, -above) * noise)
    counts = np.linspace(noise[0], n + noise[-1], 300)
    plan = plan_small_table(n, 2, n_epsilon / n, seed=0, counts=True)
    constants = 2.0 * plan.n_constants / plan.n_listed
    directions = plan.directions.n_directions / plan.n_candidates
    parts = (*np.array([directions, 1.0 - directions]) * (1.0 - constants), constants)
    least, total, score = min(errors.min() for errors, _ in families), 0.0, 0.0
    for (errors, accuracy), part in zip(families, parts, strict=True):
        weights = part / len(errors) * np.exp(-choice.choice_epsilon / 2.0 * (errors - least))
        shares = [counted_share(m, n, choice, 2, is_constant=part == parts[-1]) for m in counts]
        numbers, place = np.unique(errors, return_inverse=True)
        guess = np.interp(numbers[:, None] + noise, counts, shares)
        first, second = (
            guess @ distribution / distribution.sum(),
            guess**2 @ distribution / distribution.sum(),
        )
        found = (1.0 - accuracy) * (1.0 - 2.0 * first[place]) + second[place]
        total, score = total + weights.sum(), score + weights @ found
    return float(score / total - share * (1.0 - share))


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=8)
    parser.add_argument("--distribution", action="store_true")
    parser.add_argument("--probabilities", action="store_true")
    parser.add_argument("--others", nargs="*", default=list(OTHERS))
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = tuple(options.tables)
    if options.distribution or options.probabilities:
        (distributions if options.distribution else probabilities)(names)
    else:
        compared(options.fits, tuple(options.others), names)


if __name__ == "__main__":
    main()
