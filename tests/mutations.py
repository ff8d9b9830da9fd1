"""Change one line on which privacy rests at a time, and see that a test notices.

    python -m tests.mutations [--only SUBSTRING] [--list]

The lines are in ``tests/mutants.py``. Each is changed in a copy of the package, its tests run
there, and the changes that no test noticed are listed: none may.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[1]
COPIED = ("dp_halfspace", "tests")
FILES = ("pyproject.toml",)
LINKED = ("docs", "benchmarks", "README.md", "CHANGELOG.md")
# Imported once, before a process for each mutant is forked.
HEAVY = "numpy scipy.stats scipy.optimize scipy.sparse sklearn.base sklearn.pipeline hypothesis"
MOST_SECONDS = 600
# Modules that are imported before the fork.
REWRITTEN = "ignore::pytest.PytestAssertRewriteWarning"
CAUGHT, SURVIVED, STUCK = "caught", "SURVIVED", "caught (does not end)"


@dataclass(frozen=True)
class Copy:
    """The package and its tests in a folder of their own."""

    root: Path
    times: Iterator[int] = field(default_factory=lambda: itertools.count(10**9))

    @classmethod
    @contextlib.contextmanager
    def made(cls) -> Iterator[Copy]:
        """Copy what is changed and what is run; the rest is linked."""
        with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
            root = Path(folder)
            for name in COPIED:
                skipped = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / name, root / name, ignore=skipped)
            for name in FILES:
                shutil.copy(ROOT / name, root / name)
            for name in LINKED:
                (root / name).symlink_to(ROOT / name)
            yield cls(root)

    @contextlib.contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """Hold one mutant in place of the right source."""
        place = self.root / "dp_halfspace" / mutant.file
        right = place.read_text(encoding="utf-8")
        self._write(place, mutant.applied(right))
        try:
            yield
        finally:
            self._write(place, right)

    def _write(self, place: Path, text: str) -> None:
        """Write a source with a time of its own: no compiled file may stand for another one."""
        place.write_text(text, encoding="utf-8")
        seconds = next(self.times)
        os.utime(place, (seconds, seconds))

    def run(self, tests: Sequence[str]) -> str:
        """Run tests in a child until the first fails; say what became of it."""
        log = self.root / "log.txt"
        child = os.fork()
        if child == 0:
            _run_tests(self.root, tests, log)
        end = time.monotonic() + MOST_SECONDS
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return self._verdict(os.waitstatus_to_exitcode(status), log)
            time.sleep(0.02)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return STUCK

    @staticmethod
    def _verdict(code: int, log: Path) -> str:
        """Tell a failed test from one that could not be run."""
        if code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return SURVIVED if code == pytest.ExitCode.OK else CAUGHT
        raise RuntimeError(f"tests could not be run ({code}):\n{log.read_text()[-2000:]}")


def _run_tests(root: Path, tests: Sequence[str], log: Path) -> None:
    """Become a run of pytest; does not return."""
    code = 99
    try:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(root)
        sys.path[:] = [str(root), *(place for place in sys.path if place not in ("", str(ROOT)))]
        for name in [name for name in sys.modules if name.split(".")[0] in COPIED]:
            del sys.modules[name]
        os.environ["PYTHONPATH"] = str(root)
        options = ["-x", "-q", "-p", "no:cacheprovider", "-W", REWRITTEN]
        code = int(pytest.main([*options, *tests]))
        if code == pytest.ExitCode.NO_TESTS_COLLECTED:
            code = int(pytest.main([*options, "-m", "slow", *tests]))
    except BaseException:  # noqa: BLE001 - the child ends here, whatever it met
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def survivors(mutants: Sequence[Mutant]) -> list[Mutant]:
    """Run the tests of every mutant, after all of them on the right code."""
    for name in HEAVY.split():
        importlib.import_module(name)
    found = []
    with Copy.made() as copy:
        tests = sorted({test for mutant in mutants for test in mutant.tests})
        if copy.run(tests) != SURVIVED:
            log = (copy.root / "log.txt").read_text()
            raise RuntimeError(f"tests fail on the right code:\n{log[-2000:]}")
        for mutant in mutants:
            with copy.changed(mutant):
                verdict = copy.run(mutant.tests)
            print(f"{verdict}: {mutant}", flush=True)
            if verdict == SURVIVED:
                found.append(mutant)
    return found


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description="run the tests against one wrong line at a time")
    parser.add_argument("--only", default="", help="mutants whose description holds this text")
    parser.add_argument("--list", action="store_true", help="list the mutants, run nothing")
    asked = parser.parse_args()
    mutants = [mutant for mutant in MUTANTS if asked.only in str(mutant)]
    if asked.list:
        print(*mutants, f"{len(mutants)} mutants", sep="\n")
        return
    if not mutants:
        parser.error(f"no mutant has {asked.only!r} in its description")
    left = survivors(mutants)
    print(f"{len(mutants)} mutants, {len(left)} survived", *left, sep="\n")
    raise SystemExit(bool(left))


if __name__ == "__main__":
    main()
