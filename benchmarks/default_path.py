"""What a default fit executes: the files that an auditor has to read, and how deep calls go.

``python -m benchmarks.default_path`` lists the files with their lines, and counts the functions of
the package and its frames on the stack, for ``AdaptiveMarginClassifier.fit`` on dense rows of two
classes: with a stated ``data_norm``, and with private scales of the columns. Fits of a process
share what their budgets allow, so functions are counted in the first fit of a budget and in the
next one. What is imported on the way is not executed by every fit, and is not counted.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import dp_halfspace
from dp_halfspace import AdaptiveMarginClassifier
from dp_halfspace.datasets import make_halfspace

ROOT = Path(dp_halfspace.__file__).parent
FOLDER = f"{ROOT}{os.sep}"


@dataclass
class Trace:
    """The named functions of the package that a fit called, and the most frames at a time."""

    functions: set[tuple[str, str, int]] = field(default_factory=set)
    files: set[Path] = field(default_factory=set)
    depth: int = 0
    deepest: int = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Take note of a call or a return."""
        del argument
        code = frame.f_code
        if event not in {"call", "return"} or not code.co_filename.startswith(FOLDER):
            return
        self.depth += 1 if event == "call" else -1
        self.deepest = max(self.deepest, self.depth)
        self.files.add(Path(code.co_filename))
        # Lambdas and comprehensions are lines of the function that they stand in.
        if not code.co_name.startswith("<"):
            self.functions.add((code.co_filename, code.co_name, code.co_firstlineno))


def trace_fits(data_norm: float | None) -> tuple[Trace, Trace]:
    """Return what the first fit with the default budget calls, and the next one."""
    X, y = make_halfspace(2000, 10, margin=0.2, random_state=0)
    # Another budget than that of the fits that count: modules are loaded, nothing is remembered.
    AdaptiveMarginClassifier(epsilon=0.9, data_norm=data_norm, classes=[-1, 1]).fit(X, y)
    traces = Trace(), Trace()
    for trace in traces:
        model = AdaptiveMarginClassifier(data_norm=data_norm, classes=[-1, 1])
        sys.setprofile(trace)
        try:
            model.fit(X, y)
        finally:
            sys.setprofile(None)
    return traces


def executed_files(data_norm: float | None) -> list[Path]:
    """Return the files with a function that a fit calls."""
    return sorted(trace_fits(data_norm)[0].files)


if __name__ == "__main__":
    for data_norm in (1.0, None):
        traces = trace_fits(data_norm)
        for path in sorted(traces[0].files):
            print(f"{len(path.read_text().splitlines()):5d}  {path.relative_to(ROOT)}")
        print(f"{len(traces[0].files)} files with data_norm={data_norm}")
        for name, trace in zip(("first", "second"), traces, strict=True):
            print(f"{name} fit: {len(trace.functions)} functions, {trace.deepest} frames deep")
        print()
