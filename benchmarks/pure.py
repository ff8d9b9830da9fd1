"""Pure epsilon with few records: accuracy of the purely private classifiers, and their speed.

Small sets, where n epsilon runs from 10 to a few thousand. The speed is CPU time of one core for a
million directions on ten thousand rows, and the largest memory beyond the rows for ten times as
many directions as before. Writes ``results/pure.json``.
"""

import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from benchmarks.cells import RESULTS, parser, read, run, store
from benchmarks.loaders import Benchmark
from benchmarks.methods import METHODS, _ours
from benchmarks.problems import LOADERS, load
from benchmarks.speed import peak_memory
from benchmarks.tables import markdown, score_tables
from dp_halfspace import PureHalfspaceClassifier
from dp_halfspace.datasets import make_halfspace

EPSILONS = (0.03, 0.1, 0.3, 1.0)
COLUMNS = (10, 20)
ROWS, DIRECTIONS = 10_000, 1_000_000

METHODS_PURE = {
    **{key: METHODS[key] for key in ("majority", "linear_svc")},
    "pure_halfspace": _ours("PureHalfspaceClassifier", "PureHalfspace", pure=True),
    "adaptive_margin_pure": METHODS["adaptive_margin_pure"],
    "objective_perturbation_pure": METHODS["objective_perturbation_pure"],
    "output_perturbation_pure": _ours(
        "OutputPerturbationClassifier", "OutputPerturbation", pure=True
    ),
}


def cancer() -> Benchmark:
    """Breast cancer of scikit-learn: 70 % train; columns divided by their largest value."""
    X, y = load_breast_cancer(return_X_y=True)
    X, Z, y, t = train_test_split(X / X.max(axis=0), y, test_size=0.3, random_state=0, stratify=y)
    return Benchmark("cancer", X, y, Z, t, float(np.sqrt(30.0)), (0, 1))


def parity() -> Benchmark:
    """Digits of scikit-learn, odd against even."""
    data = load("digits")
    labels = (data.y_train % 2, data.y_test % 2)
    return Benchmark("parity", data.X_train, labels[0], data.X_test, labels[1], 8.0, (0, 1))


def sample(name: str, n: int) -> Benchmark:
    """Take some training rows of a larger set, at random, and 5000 of its test rows."""
    data, rng = load(name), np.random.default_rng(0)
    i, j = (rng.permutation(len(y))[:m] for y, m in ((data.y_train, n), (data.y_test, 5000)))
    parts = (data.X_train[i], data.y_train[i], data.X_test[j], data.y_test[j])
    return Benchmark(f"{name}-{n}", *parts, data.data_norm, data.classes)


PROBLEMS = {
    "cancer": cancer,
    "parity": parity,
    "adult-2000": partial(sample, "adult", 2000),
    "ijcnn1-2000": partial(sample, "ijcnn1", 2000),
    "satimage": LOADERS["satimage"],
}
LOADERS.update(PROBLEMS)


def speed(n_columns: int, n_rows: int = ROWS, n_directions: int = DIRECTIONS) -> dict:
    """Measure one stage: CPU seconds, and memory for two numbers of directions."""
    X, y = make_halfspace(n_rows, n_columns, margin=0.1, random_state=0)

    def fit(count: int) -> object:
        model = PureHalfspaceClassifier(
            epsilon=0.05, n_directions=count, n_stages=1, classes=[-1, 1]
        )
        return model.fit(X, y)

    started = time.process_time()
    fit(n_directions)
    seconds = time.process_time() - started
    memory = [peak_memory(partial(fit, count)) for count in (n_directions // 10, n_directions)]
    return {
        "rows": n_rows,
        "directions": n_directions,
        "cpu_seconds": round(seconds, 2),
        "memory_tenth_mb": round(memory[0] / 1e6, 1),
        "memory_mb": round(memory[1] / 1e6, 1),
    }


def direction_table(results: dict) -> str:
    """CPU time and memory by the number of columns."""
    rows = [
        [
            str(found["rows"]),
            columns,
            str(found["directions"]),
            f"{found['cpu_seconds']:.1f}",
            f"{found['memory_mb']:.1f} ({found['memory_tenth_mb']:.1f})",
        ]
        for columns, found in results.get("directions", {}).items()
    ]
    header = ["rows", "columns", "directions", "CPU seconds", "memory, MB (a tenth of them)"]
    return markdown(header, rows)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the cells that the options name, the timing if they do, and print all so far."""
    options = parser(__doc__, PROBLEMS, EPSILONS, RESULTS / "pure.json", METHODS_PURE)
    options.add_argument("--speed", action="store_true", help="time the directions too")
    given = options.parse_args(argv)
    run(given.out, given)
    if given.speed:
        for n_columns in COLUMNS:
            store(given.out, "directions", str(n_columns), value=speed(n_columns))
    found = read(given.out)
    print("\n" + score_tables(found, METHODS_PURE))
    print("\n" + direction_table(found))


if __name__ == "__main__":
    main()
