"""Every benchmark starts: what it imports is there."""

import os
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).parents[2]


def test_every_benchmark_finds_what_it_imports():
    names = [p.stem for p in sorted((ROOT / "benchmarks").glob("*.py"))]
    # Workers run in the environments of other libraries.
    own = [name for name in names if not name.endswith("_worker")]
    assert len(own) > 30
    with patch.dict(os.environ):  # Some state how many threads they take.
        for name in own:
            import_module(f"benchmarks.{name}")
