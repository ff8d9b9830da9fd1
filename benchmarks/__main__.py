"""Run every benchmark again: ``python -m benchmarks``, or a small part of each with ``--quick``.

What a script stores goes to its own JSON file in the folder, what it prints to NAME.txt beside
it, and one record says of the whole run: machine, commit, versions, seconds and exit codes. A
quick run has its own folder and touches no result of a full one. Scripts that do not find the
shared tables (``DP_HALFSPACE_DATA``) or a library are recorded as failed, and the others go on.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.cells import RESULTS, merge, versions

ROOT = Path(__file__).resolve().parents[1]
# Options of a quick run; what stores results has an option --out, others print.
STORING: dict[str, tuple[str, ...]] = {
    "linear": ("--only", "satimage", "ours", "dp_sgd_prepared", "--fits", "1", "--epsilons", "1"),
    "multiclass": ("--only", "digits", "adaptive_margin", "--fits", "1", "--epsilons", "1"),
    "auc": ("--only", "satimage", "auc", "--fits", "1", "--epsilons", "0.5"),
    "real_tables": (
        "cancer", "wine", "--fits", "1", "--epsilons", "1", "--methods", "majority", "logistic",
        "table", "margin",
    ),
    "tables_raw": ("abalone", "phoneme", "--fits", "1"),
    "features": ("--tables", "phoneme", "--fits", "1", "--epsilons", "1"),
    "kernel": ("--sets", "satimage", "--fits", "1", "--parts", "accuracy"),
    "label": ("--sets", "satimage", "--fits", "1"),
    "hospital": ("--sizes", "300", "--fits", "1", "--epsilons", "1"),
}  # fmt: skip
PRINTING: dict[str, tuple[str, ...]] = {
    "frames": ("phoneme", "--fits", "1"),
    "rare_tables": ("stroke", "--fits", "1"),
    "prior": ("--fits", "1", "--tables", "phoneme", "--sizes", "300", "--epsilons", "0.3"),
    "default_path": (),
    "frictions": ("--only", "10", "11", "--fits", "1"),
    "held_out": ("thresholds", "--runs", "1"),
}
# Not in a quick run: pictures, hours of fits, or an environment of another library.
SLOW_STORING = (
    "paper_auc", "dimension", "removed_points", "tilt", "robust", "pure", "lower_bound",
    "risk_bounds", "tuning", "speed", "repetition", "paper_tables", "paper_margins",
    "other_tables", "budgets",
)  # fmt: skip
SLOW_PRINTING = (
    "projection",
    "peer_audit",
    "rare",
    "outlook",
    "own_units",
    "joint",
    "small",
    "small_classes",
    "score_coverage",
    "score_grid",
    "plan_accuracy",
    "constants",
    "single_records",
)


def commands(folder: Path, quick: bool) -> dict[str, list[str]]:
    """List what is run, by name."""
    storing = STORING if quick else {**STORING, **dict.fromkeys(SLOW_STORING, ())}
    printing = PRINTING if quick else {**PRINTING, **dict.fromkeys(SLOW_PRINTING, ())}
    found = {}
    for name, options in {**storing, **printing}.items():
        command = [sys.executable, "-m", f"benchmarks.{name}", *(options if quick else ())]
        if name in storing:
            command += ["--out", str(folder / f"{name}.json")]
        found[name] = command
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run one script after another; return how many failed."""
    options = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    options.add_argument("--quick", action="store_true", help="a few fits of each, in minutes")
    options.add_argument("--folder", type=Path, help="default: results, or a new one if quick")
    options.add_argument("--only", nargs="+", default=[], metavar="SCRIPT")
    given = options.parse_args(argv)
    folder = given.folder or (Path(tempfile.mkdtemp(prefix="quick-")) if given.quick else RESULTS)
    folder.mkdir(parents=True, exist_ok=True)
    record, failed = folder / "run.json", 0
    merge(record, "versions", value=versions())
    for name, command in commands(folder, given.quick).items():
        if given.only and name not in given.only:
            continue
        started = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        seconds = round(time.perf_counter() - started, 1)
        (folder / f"{name}.txt").write_text(done.stdout + done.stderr)
        failed += bool(done.returncode)
        shown = " ".join(["python", *command[1:]])
        value = {"command": shown, "exit_code": done.returncode, "seconds": seconds}
        merge(record, "scripts", name, value=value)
        print(f"{name:16} {'failed' if done.returncode else 'done'} {seconds} s", flush=True)
    print(f"results in {folder}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
