"""Run the Python blocks of a page, and compare what they print with what the page shows.

A fence of ``text`` directly behind a Python block is what that block prints. The noise of a page
comes from a stream named after the page, so that it prints the same every time.
``python -m tests.pages docs/tutorials/first_model.md`` writes what is printed today into
the page; without a name, into all pages that show outputs.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path
from unittest import mock

from dp_halfspace import _repeated_fits
from dp_halfspace.exceptions import RepeatedFitWarning
from dp_halfspace.privacy import randomness

FENCE = re.compile(r"^```(\S*)[^\n`]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?P<output>\n```text\n(?P<shown>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)


def blocks(text: str, kind: str) -> list[tuple[int, str]]:
    """Line number and code of every fenced block of a kind."""
    return [
        (text[: match.start(2)].count("\n"), match[2])
        for match in FENCE.finditer(text)
        if match[1] == kind
    ]


@contextlib.contextmanager
def _named_noise(name: str) -> Iterator[None]:
    """Draw noise from a stream that is named after the page."""
    source = random.Random(name)
    with mock.patch.object(
        randomness.OperatingSystemBytes, "read", lambda _, n: source.randbytes(n)
    ):
        yield


@contextlib.contextmanager
def counted_fits() -> Iterator[None]:
    """Count fits, from none on, and warn of them in the block, which is one of a test."""
    token = _repeated_fits._ARE_COUNTED.set(True)
    _repeated_fits._TABLES_SEEN.clear()
    try:
        yield
    finally:
        _repeated_fits._TABLES_SEEN.clear()
        _repeated_fits._ARE_COUNTED.reset(token)


def run(name: str, text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield every Python block of a page with what it prints, all in one namespace."""
    namespace = {"__name__": "page"}
    with warnings.catch_warnings(), _named_noise(name), counted_fits():
        warnings.simplefilter("error")
        # Pages fit public and simulated tables many times, and one of them shows what is said.
        warnings.filterwarnings("ignore", category=RepeatedFitWarning)
        for match in _CODE.finditer(text):
            code = "\n" * text[: match.start("code")].count("\n") + match["code"]
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, name, "exec"), namespace)
            yield match, printed.getvalue()


def differences(name: str, text: str) -> list[str]:
    """Run a page and describe every block that does not print what the page shows.

    A page that shows the output of one block shows that of all that print.
    """
    shows = any(match["output"] for match in _CODE.finditer(text))
    alike = OutputChecker().check_output
    return [
        f"line {text[: match.start()].count(chr(10)) + 1} prints\n{printed}\nand not\n{shown}"
        for match, printed in run(name, text)
        if (shown := match["shown"] or "") or (shows and printed)
        if not alike(shown, printed, ELLIPSIS | NORMALIZE_WHITESPACE)
    ]


def recorded(name: str, text: str) -> str:
    """Return the page with what its blocks print today."""
    done, parts = 0, []
    for match, printed in run(name, text):
        block = f"```python\n{match['code']}```\n"
        if printed:
            lines = "\n".join(line.rstrip() for line in printed.rstrip().split("\n"))
            block += f"\n```text\n{lines}\n```\n"
        parts += [text[done : match.start()], block]
        done = match.end()
    return "".join(parts) + text[done:]


if __name__ == "__main__":
    docs = Path(__file__).resolve().parents[1] / "docs"
    given = [Path(word).resolve() for word in sys.argv[1:]]
    for page in given or sorted(docs.rglob("*.md")):
        text = page.read_text()
        if given or "\n```text\n" in text:
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                page.write_text(recorded(page.name, text))
                os.chdir(docs)
