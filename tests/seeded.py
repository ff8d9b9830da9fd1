"""What every variant of every estimator releases with a fixed seed, to notice what a change moves.

``python -m tests.seeded --write`` records the results, ``python -m tests.seeded`` compares them bit
for bit with the record, which is only meant for the machine that wrote it; the test allows the
rounding of another one.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from tests.conftest import separated
from tests.instances import instances, label, with_enough_records

RECORD = Path(__file__).parent / "seeded.json"

_SEED = 20260


def problems(estimator: Any) -> dict[str, tuple[Any, Any, list[int]]]:
    """Small data sets: dense rows of two classes, sparse rows, and three classes where they go."""
    X, y = with_enough_records(estimator, *separated(300, 6, seed=3, norm=1.5))
    found = {
        "dense": (X, y, [0, 1]),
        "sparse": (sparse.csr_array(np.where(X > 0.2, X, 0)), y, [0, 1]),
    }
    if estimator.__sklearn_tags__().classifier_tags.multi_class:
        X, y = with_enough_records(estimator, *separated(300, 6, 3, seed=4, norm=1.5))
        found["classes"] = (X, y, [0, 1, 2])
    return found


def released(estimator: Any, X: Any, y: Any, classes: list[int]) -> list[str]:
    """Fit with the seed; return every released number as text that has all of its bits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.set_params(random_state=_SEED, classes=classes).fit(X, y)
    numbers = np.hstack([estimator.coef_, estimator.intercept_.reshape(len(estimator.coef_), -1)])
    return [float(number).hex() for number in numbers.ravel()]


def results(*, in_turn: bool = False) -> dict[str, list[str]]:
    """Return the released numbers of every variant on every problem, or on one of them in turn.

    Problems that are left out have no numbers.
    """
    out: dict[str, list[str]] = {}
    for number, estimator in enumerate(instances()):
        cases = problems(estimator)
        for place, (kind, (X, y, classes)) in enumerate(cases.items()):
            name = f"{label(estimator)}/{kind}"
            wanted = not in_turn or place == number % len(cases)
            found = released(estimator, X, y, classes) if wanted else []
            out[name if name not in out else f"{name}/again"] = found
    return out


def changes(known: dict[str, list[str]], found: dict[str, list[str]]) -> dict[str, float]:
    """Return the largest relative change of every result that both hold and that moved."""
    moved = {}
    for name in sorted(known.keys() & found.keys()):
        if known[name] != found[name]:
            old, new = (np.array([float.fromhex(t) for t in r[name]]) for r in (known, found))
            same = old.shape == new.shape
            moved[name] = float(np.abs(old - new).max() / np.abs(old).max()) if same else np.inf
    return moved


def main() -> int:
    """Write the record, or list what differs from it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    found = results()
    if write:
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text(json.dumps(found, indent=0) + "\n")
        return 0
    known = json.loads(RECORD.read_text())
    moved = changes(known, found)
    for name, change in moved.items():
        print(f"{change:.1e}  {name}")
    gone, more = sorted(known.keys() - found.keys()), sorted(found.keys() - known.keys())
    print(f"{len(known)} recorded, {len(moved)} moved, gone: {gone}, new: {more}")
    return int(bool(moved))


if __name__ == "__main__":
    raise SystemExit(main())
