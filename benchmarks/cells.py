"""Run methods on data sets, cell by cell; a cell that is in the JSON file is not run again.

A cell carries a digest of what it depends on: the bytes of the data, the budget, the settings and
the version of the method. It is run when there is none with that digest and with as many fits.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import time
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from scipy import sparse

import dp_halfspace
from benchmarks.loaders import Benchmark
from benchmarks.methods import METHODS, Method
from benchmarks.problems import coefficients, entries, load

RESULTS = Path(__file__).parent / "results"
ANY_BUDGET = "any"
GROUPS = ("ours", "others", "baselines")
_ROWS, _ENTRIES, _COEFFICIENTS = 100_000, 3_000_000, 100_000


def default_fits(problem: Benchmark, method: Method) -> int:
    """Draw the noise twenty times where a fit is cheap, else five times; once if there is none."""
    if not method.private:
        return 1
    few_entries = entries(problem.X_train) < _ENTRIES and len(problem.y_train) < _ROWS
    small = few_entries and coefficients(problem) < _COEFFICIENTS
    return 20 if method.cheap and small else 5


def run_cell(problem: Benchmark, method: Method, epsilon: float | None, fits: int) -> dict:
    """Fit, score on the test set, and keep the best setting."""
    n = len(problem.y_train)
    problem = method.rows(problem)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the baselines' deprecations and non-convergence
        fitted = method.models(
            problem.X_train,
            problem.y_train,
            epsilon=epsilon,
            delta=1.0 / n**2,
            data_norm=problem.data_norm,
            classes=list(problem.classes),
            draws=fits,
        )
    seconds = (time.perf_counter() - started) / sum(map(len, fitted.values()))
    scores = {
        name: [method.score(model, problem) for model in models] for name, models in fitted.items()
    }
    best = max(scores, key=lambda name: np.mean(scores[name]))
    return {
        "mean": float(np.mean(scores[best])),
        "sd": float(np.std(scores[best], ddof=1)) if fits > 1 else 0.0,
        "draws": fits,
        "setting": best,
        "settings_tried": len(scores),
        "seconds_per_fit": round(seconds, 4),
    }


@cache
def data_digest(name: str) -> str:
    """Digest of the arrays of a data set."""
    problem = load(name)
    digest = hashlib.sha256()
    for part in (problem.X_train, problem.y_train, problem.X_test, problem.y_test):
        arrays = (part.data, part.indices, part.indptr) if sparse.issparse(part) else (part,)
        for array in arrays:
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def cell_digest(name: str, method: Method, epsilon: float | None) -> str:
    """Digest of what the result of a cell depends on, but for the number of fits."""
    problem = load(name)
    public = [problem.data_norm, [int(label) for label in problem.classes], epsilon, "1/n^2"]
    parts = [data_digest(name), public, method.version, method.settings]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def describe(problem: Benchmark) -> dict:
    """Public facts of a data set."""
    return {
        "n_train": len(problem.y_train),
        "n_test": len(problem.y_test),
        "n_features": int(problem.X_train.shape[1]),
        "n_classes": len(problem.classes),
        "data_norm": problem.data_norm,
    }


def versions() -> dict:
    """Say what the numbers were measured with."""
    return {
        "dp_halfspace": dp_halfspace.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "machine": platform.machine(),
        "hardware": hardware(),
        "seeds": "data and splits fixed, noise from the operating system",
    }


@cache
def commit() -> str:
    """Name the commit that is measured, and say so where the work tree differs from it."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        name, changes = (
            subprocess.run([*git, *rest], capture_output=True, text=True, check=True).stdout.strip()
            for rest in (("rev-parse", "HEAD"), ("status", "--porcelain", "--", ":/dp_halfspace"))
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name + (" with changes" if changes else "")


def hardware() -> dict:
    """Say what machine measured."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        model = platform.processor() or "unknown"
    found: dict[str, Any] = {"processor": model, "cores": os.cpu_count()}
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        found["memory_gigabytes"] = round(size / 2**30)
    return found


def provenance() -> dict[str, str]:
    """Name the commit and the machine of a row: a file holds rows of several runs."""
    found = hardware()
    memory = f", {found['memory_gigabytes']} GB" if "memory_gigabytes" in found else ""
    return {
        "commit": commit(),
        "hardware": f"{found['processor']}, {found['cores']} cores{memory}",
    }


def read(path: Path) -> dict:
    """Read the results so far."""
    return json.loads(path.read_text()) if path.exists() else {}


def merge(path: Path, *keys: str, value: Any) -> None:
    """Set one nested entry of a JSON file and leave the rest; the file is never half written."""
    results = read(path)
    inner = results
    for key in keys[:-1]:
        inner = inner.setdefault(key, {})
    inner[keys[-1]] = value
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    part.replace(path)


def store(path: Path, *keys: str, value: Mapping[str, Any]) -> None:
    """Set one row of a JSON file, with the commit and the machine that measured it."""
    merge(path, *keys, value={**value, **provenance()})


def _named(names: Sequence[str], name: str, key: str, methods: Mapping[str, Method]) -> bool:
    """Whether data set `name` and method `key` are among the names; none of a kind means all."""
    wanted_sets = [n for n in names if n not in methods and n not in GROUPS]
    wanted = [n for n in names if n in methods or n in GROUPS]
    return (not wanted_sets or name in wanted_sets) and (
        not wanted or key in wanted or methods[key].group in wanted
    )


def run(path: Path, options: argparse.Namespace) -> None:
    """Run what the options name and the file does not hold, one cell after another."""
    merge(path, "versions", value=versions())
    methods = options.methods
    for name in options.sets:
        chosen = [key for key in methods if _named(options.only, name, key, methods)]
        if not chosen:
            continue
        problem = load(name)
        merge(path, "problems", name, value=describe(problem))
        for key in chosen:
            reason = methods[key].missing(problem)
            merge(path, "missing", name, key, value=reason)
            if reason is not None:
                print(f"{name:10} {key:22} skipped: {reason}", flush=True)
                continue
            for epsilon in options.epsilons if methods[key].private else [None]:
                _run_if_new(path, options, problem, key, epsilon)


def _run_if_new(
    path: Path, options: argparse.Namespace, problem: Benchmark, key: str, epsilon: float | None
) -> None:
    """Run one cell unless its result is there already."""
    name, method = problem.name, options.methods[key]
    label = ANY_BUDGET if epsilon is None else f"{epsilon:g}"
    digest = cell_digest(name, method, epsilon)
    fits = options.fits if options.fits and method.private else default_fits(problem, method)
    found = read(path).get("cells", {}).get(name, {}).get(key, {}).get(label, {})
    refreshed = options.refresh is not None and _named(options.refresh, name, key, options.methods)
    is_known = found.get("digest") == digest and {"commit", "hardware"} <= found.keys()
    if is_known and found["draws"] >= fits and not refreshed:
        return
    cell = {**run_cell(problem, method, epsilon, fits), "digest": digest}
    store(path, "cells", name, key, label, value=cell)
    print(
        f"{name:10} {key:22} eps={label:4} {cell['mean']:.4f} sd {cell['sd']:.4f} "
        f"({cell['draws']} fits, {cell['seconds_per_fit']:.3f} s) {cell['setting']}",
        flush=True,
    )


def parser(
    description: str,
    sets: Sequence[str],
    epsilons: Sequence[float],
    out: Path,
    methods: Mapping[str, Method] = METHODS,
) -> argparse.ArgumentParser:
    """Options that the scripts share."""
    names = [*sets, *GROUPS, *methods]
    options = argparse.ArgumentParser(description=description, epilog=f"Names: {', '.join(names)}.")
    options.add_argument(
        "--only", nargs="+", default=[], choices=names, metavar="NAME",
        help="data sets, methods or groups of methods; the others are left alone",
    )  # fmt: skip
    options.add_argument(
        "--refresh", nargs="*", choices=names, metavar="NAME",
        help="run these again although the file has them: `--refresh ours`; all without a name",
    )  # fmt: skip
    options.add_argument("--epsilons", nargs="+", type=float, default=list(epsilons))
    options.add_argument("--fits", type=int, help="default: 20, or 5 where a fit is slow")
    options.add_argument("--out", type=Path, default=out, help="JSON file of the results")
    options.set_defaults(sets=list(sets), methods=methods)
    return options
