"""Accuracy of linear classifiers of many classes against epsilon, beside baselines.

Needs the environment variable DP_HALFSPACE_DATA, or a network for the first run.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy starts its threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.cells import RESULTS, parser, read, run
from benchmarks.problems import MULTICLASS
from benchmarks.tables import score_tables

EPSILONS = (0.3, 1.0, 3.0, 8.0)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the cells that the options name and print the tables of all cells so far."""
    given = parser(__doc__, MULTICLASS, EPSILONS, RESULTS / "multiclass.json").parse_args(argv)
    run(given.out, given)
    print("\n" + score_tables(read(given.out)))


if __name__ == "__main__":
    main()
