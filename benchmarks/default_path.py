"""What a default fit executes: the files that an auditor has to read, and how deep calls go.

``python -m benchmarks.default_path`` lists the files with the lines of code of the functions that
are executed, first those on which privacy rests, and counts the functions of the package and its
frames on the stack, for ``AdaptiveMarginClassifier.fit`` on dense rows of two
classes: with a stated ``data_norm``, and with private scales of the columns. Fits of a process
share what their budgets allow, so functions are counted in the first fit of a budget and in the
next one. What is imported on the way is not executed by every fit, and is not counted.
"""

from __future__ import annotations

import ast
import io
import os
import sys
import tokenize
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import dp_halfspace
from dp_halfspace import AdaptiveMarginClassifier
from dp_halfspace.datasets import make_halfspace

ROOT = Path(dp_halfspace.__file__).parent
FOLDER = f"{ROOT}{os.sep}"
# Files on whose executed functions the privacy of a default fit rests: docs/architecture.md.
TRUSTED = (
    "estimators/base", "_budget", "data/validation", "data/chunks", "data/record_weights",
    "engine/plan", "engine/linear", "engine/release", "engine/scales", "engine/moment",
    "engine/steps", "rows/blocks", "rows/chunked_rows", "rows/float32_rows",
    "optim/certificate", "privacy/budget", "privacy/events", "privacy/record",
    "privacy/accounting", "privacy/profiles", "privacy/mechanisms", "privacy/door",
    "privacy/interception", "privacy/noise", "privacy/randomness",
)  # fmt: skip
_NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip


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


def lines_of_code(source: str, functions: set[tuple[str, int]]) -> int:
    """Count the lines of functions, by name and first line, without comments and docstrings."""
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            code |= set(range(token.start[0], token.end[0] + 1))
    counted: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            if (node.name, first) in functions:
                counted |= set(range(node.lineno, (node.end_lineno or 0) + 1))
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            code -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(code & counted)


def executed_lines(trace: Trace) -> dict[str, int]:
    """Return the lines of code of the functions that a fit executes, by file."""
    called: dict[str, set[tuple[str, int]]] = {}
    for path, name, line in trace.functions:
        called.setdefault(path, set()).add((name, line))
    return {
        Path(path).relative_to(ROOT).with_suffix("").as_posix(): lines_of_code(
            Path(path).read_text(), functions
        )
        for path, functions in sorted(called.items())
    }


def trusted_lines() -> dict[str, int]:
    """Return the lines of code on which the privacy of a default fit rests, by file.

    In a new process, in which nothing is remembered of earlier fits, these are all of them.
    """
    X, y = make_halfspace(2000, 10, margin=0.2, random_state=0)
    trace = Trace()
    sys.setprofile(trace)
    try:
        AdaptiveMarginClassifier(classes=[-1, 1]).fit(X, y)
    finally:
        sys.setprofile(None)
    lines = executed_lines(trace)
    return {name: lines[name] for name in TRUSTED if name in lines}


if __name__ == "__main__":
    trusted = trusted_lines()
    for name, count in trusted.items():
        print(f"{count:5d}  {name}")
    print(f"{sum(trusted.values())} trusted lines of code\n")
    for data_norm in (1.0, None):
        traces = trace_fits(data_norm)
        for name, count in executed_lines(traces[0]).items():
            print(f"{count:5d}  {name}")
        print(f"{len(traces[0].files)} files with data_norm={data_norm}")
        for name, traced in zip(("first", "second"), traces, strict=True):
            print(f"{name} fit: {len(traced.functions)} functions, {traced.deepest} frames deep")
        print()
