"""Area under the ROC curve of private rankings against epsilon, beside baselines.

Needs the environment variable DP_HALFSPACE_DATA, or a network for the first run. Beside the tables
the script prints how far the default ranking is from the best numbers known when it was made.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.cells import RESULTS, parser, read, run
from benchmarks.methods import RANKINGS
from benchmarks.problems import RANKING
from benchmarks.tables import markdown, score_tables

EPSILONS = (0.05, 0.1, 0.2, 0.5)
# The best that any method of any kind reached, at each epsilon: a ranking should not be worse.
BEST_KNOWN = {
    ("adult", "auc"): (0.863, 0.880, 0.890, 0.898),
    ("http", "auc"): (0.998, 0.998, 0.998, 0.998),
    ("http", "auc_pure"): (0.998, 0.998, 0.998, 0.998),
    ("ijcnn1", "auc"): (0.796, 0.883, 0.9115, 0.925),
    ("ijcnn1", "auc_pure"): (0.756, 0.844, 0.894, 0.913),
    ("satimage", "auc"): (0.945, 0.970, 0.972, 0.972),
}


def distance_table(results: dict) -> str:
    """Ours, the best number known, and the difference, for every cell that has one."""
    rows = []
    for (name, key), numbers in BEST_KNOWN.items():
        cells = results["cells"].get(name, {}).get(key, {})
        row = [name, RANKINGS[key].title]
        for epsilon, known in zip(EPSILONS, numbers, strict=True):
            cell = cells.get(f"{epsilon:g}")
            here = "-" if cell is None else f"{cell['mean']:.4f} ({cell['mean'] - known:+.4f})"
            row.append(here)
        rows.append(row)
    return markdown(["", "", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)], rows)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the cells that the options name and print the tables of all cells so far."""
    options = parser(__doc__, RANKING, EPSILONS, RESULTS / "auc.json", RANKINGS)
    given = options.parse_args(argv)
    run(given.out, given)
    found = read(given.out)
    print("\n" + score_tables(found, RANKINGS))
    print("\nDifference to the best known:\n\n" + distance_table(found))


if __name__ == "__main__":
    main()
