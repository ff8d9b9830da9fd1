"""Every benchmark starts: what it imports is there."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_benchmark_finds_what_it_imports():
    names = [p.stem for p in sorted((ROOT / "benchmarks").glob("*.py"))]
    # Workers run in the environments of other libraries.
    lines = [f"import benchmarks.{name}" for name in names if not name.endswith("_worker")]
    assert len(lines) > 30
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], cwd=ROOT, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr
