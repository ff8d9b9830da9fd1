"""Time the noise beside numpy's normal generator, in one run on one machine.

Rates of shared machines vary by a factor of two between runs; the ratio to numpy in the
same run does not. Writes ``benchmarks/results/noise.json``.
"""

import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy

from dp_halfspace.privacy.gaussian import rounded_gaussian
from dp_halfspace.privacy.laplace import l2_laplace
from dp_halfspace.privacy.randomness import SeededBytes
from dp_halfspace.privacy.selection import exponential_mechanism

RESULTS = Path(__file__).parent / "results" / "noise.json"
REPEATS = 7


def seconds(action: Callable[[], object], inner: int) -> float:
    """Return the best mean time of one call over the repeats."""
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        for _ in range(inner):
            action()
        best = min(best, (time.perf_counter() - start) / inner)
    return best


def gaussian_row(size: int, grid_bits: int, *, seeded: bool = False) -> dict[str, object]:
    """Time one size of rounded_gaussian and numpy's normal of the same size."""
    value = np.zeros(size)
    generator = np.random.default_rng()
    options = {"source": SeededBytes(0, "benchmark")} if seeded else {}
    inner = max(1, 100_000 // max(size, 1000))
    ours = seconds(lambda: rounded_gaussian(value, 2.0, grid_bits=grid_bits, **options), inner)
    numpy = seconds(lambda: generator.normal(0.0, 2.0, size), inner)
    return {
        "size": size,
        "grid_bits": grid_bits,
        "bytes": "seeded" if seeded else "os",
        "milliseconds": ours * 1e3,
        "million_draws_per_second": size / ours / 1e6,
        "numpy_million_draws_per_second": size / numpy / 1e6,
        "time_over_numpy": ours / numpy,
    }


def laplace_row(size: int) -> dict[str, object]:
    """Time one size of l2_laplace."""
    value = np.zeros(size)
    inner = max(1, 20_000 // max(size, 400))
    return {"size": size, "milliseconds": 1e3 * seconds(lambda: l2_laplace(value, 1.0), inner)}


def selection_row(size: int) -> dict[str, object]:
    """Time one selection among candidates of evenly spread scores."""
    utilities = np.linspace(0, 50, size)
    inner = max(1, 100_000 // max(size, 1000))
    return {
        "mechanism": "exponential_mechanism",
        "candidates": size,
        "milliseconds": 1e3 * seconds(lambda: exponential_mechanism(utilities, 1.0), inner),
    }


def main() -> None:
    """Run all timings, print them and write the results file."""
    gaussian = [gaussian_row(size, 20) for size in (1, 100, 10_000, 100_000, 1_000_000)]
    gaussian += [gaussian_row(size, 36) for size in (100, 10_000)]
    gaussian.append(gaussian_row(1_000_000, 20, seeded=True))
    laplace = [laplace_row(size) for size in (1, 100, 10_000, 100_000)]
    selection = [selection_row(size) for size in (10, 1000, 100_000)]
    results = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "machine": platform.machine(),
        "rounded_gaussian": gaussian,
        "l2_laplace": laplace,
        "selection": selection,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
