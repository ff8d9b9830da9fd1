"""Accuracy of a class with parameters other than the default ones, on the sets of the benchmarks.

``python -m benchmarks.options ObjectivePerturbationClassifier loss=huber_hinge --sets adult
--epsilons .1 1`` prints the mean test accuracy and its standard error. Pages of evidence that
compare parameters name the class and the parameters in their tables. The tables of
`benchmarks.small`, and three with several classes, have original units and no stated norm.
"""

from __future__ import annotations

import argparse
import ast
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

import dp_halfspace
from benchmarks.kernel import problem
from benchmarks.loaders import Benchmark
from benchmarks.small import TABLES, table
from benchmarks.tables_raw import tables

SEVERAL = ("optdigits", "page-blocks", "segment")


def parameter(text: str) -> tuple[str, Any]:
    """Read ``name=value``; what is no Python literal is a string."""
    name, _, value = text.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


def loaded(name: str) -> Benchmark:
    """Load a set of the benchmarks, or a real table in original units."""
    if name in SEVERAL:
        X, Z, y, t, _ = tables([name])[name]
        return Benchmark(name, X, y, Z, t, None, tuple(sorted(set(y))))
    if name not in TABLES or name == "cancer":
        return problem(name)
    X, Z, y, t = table(name)
    return Benchmark(name, X, y, Z, t, None, (0, 1))


def accuracies(make: Any, name: str, epsilon: float, fits: int, **params: Any) -> Any:
    """Fit several times, and score on the test rows."""
    data = loaded(name)
    public = {"epsilon": epsilon, "data_norm": data.data_norm, "classes": list(data.classes)}
    models = (make(**{**public, **params}).fit(data.X_train, data.y_train) for _ in range(fits))
    return np.array([model.score(data.X_test, data.y_test) for model in models])


def main(argv: Sequence[str] | None = None) -> None:
    """Fit and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("estimator")
    options.add_argument("parameters", nargs="*", type=parameter, metavar="NAME=VALUE")
    options.add_argument("--sets", nargs="+", default=["satimage"], metavar="SET")
    options.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    options.add_argument("--fits", type=int, default=5)
    given = options.parse_args(argv)
    warnings.simplefilter("ignore")
    make = getattr(dp_halfspace, given.estimator)
    for name in given.sets:
        for epsilon in given.epsilons:
            found = accuracies(make, name, epsilon, given.fits, **dict(given.parameters))
            error = found.std(ddof=1) / math.sqrt(given.fits) if given.fits > 1 else math.nan
            print(f"{name}, epsilon {epsilon:g}: {found.mean():.4f} ± {error:.4f}", flush=True)


if __name__ == "__main__":
    main()
