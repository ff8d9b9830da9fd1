"""Which files of the library a default fit executes: what an auditor has to read.

``python -m benchmarks.default_path`` lists them with their lines, for
``AdaptiveMarginClassifier.fit`` on dense rows of two classes: with a stated ``data_norm``, and
with private units of the columns. What is imported on the way is not executed by every fit.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import dp_halfspace
from dp_halfspace import AdaptiveMarginClassifier
from dp_halfspace.datasets import make_halfspace

ROOT = Path(dp_halfspace.__file__).parent


def executed_files(data_norm: float | None) -> list[Path]:
    """Return the files with a function that a fit calls."""
    X, y = make_halfspace(2000, 10, margin=0.2, random_state=0)
    # Another budget than that of the fit that counts: nothing of it is remembered.
    AdaptiveMarginClassifier(epsilon=0.9, data_norm=data_norm, classes=[-1, 1]).fit(X, y)
    found: set[str] = set()

    def tracer(frame: FrameType, event: str, argument: Any) -> None:
        del event, argument
        found.add(frame.f_code.co_filename)

    model = AdaptiveMarginClassifier(data_norm=data_norm, classes=[-1, 1])
    sys.setprofile(tracer)
    try:
        model.fit(X, y)
    finally:
        sys.setprofile(None)
    return sorted(Path(name) for name in found if Path(name).is_relative_to(ROOT))


if __name__ == "__main__":
    for data_norm in (1.0, None):
        files = executed_files(data_norm)
        for path in files:
            print(f"{len(path.read_text().splitlines()):5d}  {path.relative_to(ROOT)}")
        print(f"{len(files)} files with data_norm={data_norm}\n")
