"""Time the two projections beside a plain product with an explicit matrix of signs.

The ratio to the product in the same run is what to read; the repeats of all methods
alternate, because rates of shared machines drift. Run ``python benchmarks/projection.py``;
numbers go to ``benchmarks/results/projection.json``.
"""

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import scipy
from scipy import sparse

from benchmarks.cells import provenance
from dp_halfspace.projection import draw_hadamard, draw_rademacher
from dp_halfspace.projection.linear import LinearMap

RESULTS = Path(__file__).parent / "results" / "projection.json"
REPEATS = 5
ENTRIES = 2**23  # of X: 64 MB
MAX_MATRIX = 2**26  # of the explicit matrix: 512 MB
DRAWS = {"rademacher": draw_rademacher, "hadamard": draw_hadamard}


def best_seconds(actions: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the best time of each action; the repeats alternate."""
    best = dict.fromkeys(actions, float("inf"))
    for _ in range(REPEATS):
        for name, action in actions.items():
            start = time.perf_counter()
            action()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def drawn(d: int, k: int) -> tuple[dict[str, LinearMap], dict[str, float]]:
    """Draw each map and time it."""
    rng = np.random.default_rng(0)
    seconds = best_seconds(
        {name: lambda draw=draw: draw(d, k, rng) for name, draw in DRAWS.items()}
    )
    return {name: draw(d, k, rng) for name, draw in DRAWS.items()}, seconds


def row(n: int, d: int, k: int, density: float | None) -> dict[str, object]:
    """Time `apply` and `pull_back` for one size, dense (density None) or CSR."""
    rng = np.random.default_rng(1)
    if density is None:
        X = rng.standard_normal((n, d))
    else:
        X = sparse.random_array((n, d), density=density, format="csr", rng=rng)
    maps, draw_seconds = drawn(d, k)
    actions: dict[str, Callable[[], object]] = {
        name: lambda m=m: m.apply(X) for name, m in maps.items()
    }
    if d * k <= MAX_MATRIX:
        matrix = np.ascontiguousarray(maps["rademacher"].pull_back(np.eye(k)).T)
        actions["product"] = lambda: X @ matrix
    apply = best_seconds(actions)
    w = rng.standard_normal(k)
    back = best_seconds({name: lambda m=m: m.pull_back(w) for name, m in maps.items()})
    reference = apply.get("product", apply["rademacher"])
    return {
        "n": n,
        "d": d,
        "k": k,
        "density": density,
        "reference": "product" if "product" in apply else "rademacher",
        "apply_milliseconds": {name: 1e3 * s for name, s in apply.items()},
        "apply_over_reference": {name: s / reference for name, s in apply.items()},
        "draw_milliseconds": {name: 1e3 * s for name, s in draw_seconds.items()},
        "pull_back_milliseconds": {name: 1e3 * s for name, s in back.items()},
        **provenance(),
    }


def faster_from(rows: list[dict[str, object]], axis: str, fixed: str, method: str) -> dict:
    """Return, for each value of the fixed size, from which other size the method wins for good."""
    found = {}
    for value in sorted({r[fixed] for r in rows}):
        found[value] = None
        for entry in sorted((r for r in rows if r[fixed] == value), key=lambda r: -r[axis]):
            if entry["apply_over_reference"][method] >= 1.0:
                break
            found[value] = entry[axis]
    return found


def main() -> None:
    """Run all timings, print them and write the results file."""
    dense = [
        row(max(128, ENTRIES // d), d, k, None)
        for k in (16, 32, 64, 128, 256, 1024)
        for d in (2**p for p in range(6, 17, 2))
        if k <= d
    ]
    dense.append(row(2048, 4097, 256, None))  # the worst padding
    csr = [row(4096, d, 256, density) for d in (4096, 65536) for density in (0.001, 0.02)]
    results = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "machine": platform.machine(),
        "dense": dense,
        "csr": csr,
        "faster_than_the_product": {
            method: {
                "from_d_at_k": faster_from(dense[:-1], "d", "k", method),
                "from_k_at_d": faster_from(dense[:-1], "k", "d", method),
            }
            for method in ("hadamard",)
        },
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    for entry in dense + csr:
        ratios = {name: round(r, 2) for name, r in entry["apply_over_reference"].items()}
        print(entry["n"], entry["d"], entry["k"], entry["density"], ratios)
    print(json.dumps(results["faster_than_the_product"]))


if __name__ == "__main__":
    main()
