"""Tables and pages for people; a page is one HTML file without scripts or external resources."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

# Beginnings of a cell that a spreadsheet reads as a formula, in ASCII and in full width, and a
# pattern of plain numbers, which are excepted.
_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
# Separators of cells in any program; tabs become escapes, and blanks separate words.
_CELL_SEPARATORS = re.compile(r"([,;|])")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --soft: #f3f4f6; --line: #d5d9de }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --paper: #14171a; --soft: #20252a; --line: #3a4149 }
  figure svg { filter: invert(1) hue-rotate(180deg) } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 52rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.15rem; margin-top: 2rem }
.claim { background: var(--soft); border-left: .3rem solid #0072b2; padding: .7rem 1rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line) }
code { overflow-wrap: anywhere }
pre { white-space: pre-wrap; background: var(--soft); padding: .7rem 1rem; font-size: .8rem }
figure { margin: 0 } figure svg { width: 100%; height: auto }
@media print { :root { --ink: #000; --paper: #fff; --soft: #fff; --line: #999 }
  body { margin: 0; max-width: none; font-size: 11pt } figure svg { filter: none }
  tr, .claim { break-inside: avoid } h2 { break-after: avoid } }
"""


def page(title: str, sections: Mapping[str, str]) -> str:
    """Return a page; the title is text, and the sections are HTML already."""
    body = "\n".join(f"<h2>{escape(name)}</h2>\n{text}" for name, text in sections.items())
    heading = escape(printable(title))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{heading}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<h1>{heading}</h1>\n{body}\n</body>\n</html>\n"
    )


def table(*rows: tuple[Any, ...]) -> str:
    """Return a table whose first cells are headings."""
    lines = []
    for first, *cells in rows:
        held = "".join(f"<td>{escape(printable(cell))}</td>" for cell in cells)
        lines.append(f'<tr><th scope="row">{escape(printable(first))}</th>{held}</tr>')
    return "\n".join(["<table>", *lines, "</table>"])


def printable(value: object) -> str:
    """Return text for one line of a terminal: characters that do not print become escapes."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))


def plain_label(value: object) -> str:
    """Return text for a picture, in which matplotlib finds no formula between dollar signs."""
    return printable(value).replace("$", "\\$")


def csv_cell(value: str) -> str:
    """Return a text as a cell of a CSV file: one that would be a formula begins with an apostrophe.

    So does each part of a text behind a separator of any program: one that expects semicolons
    divides a cell at them, whatever the separator of the file is.

    >>> csv_cell("=1+1"), csv_cell("a;=1+1"), csv_cell("a;b"), csv_cell("-1;-2")
    ("'=1+1", "a;'=1+1", 'a;b', '-1;-2')
    """
    parts = _CELL_SEPARATORS.split(printable(value))
    return "".join(f"'{part}" if _is_formula(part) else part for part in parts)


def _is_formula(text: str) -> bool:
    """Return whether a spreadsheet reads a text as a formula; quotes in front may be dropped."""
    bare = text.strip(' "')
    return bare.startswith(_FORMULA) and not _NUMBER.fullmatch(bare)


def align_columns(rows: Sequence[Sequence[str]], n_left: int = 1) -> list[str]:
    """Return lines of text with aligned columns, the first `n_left` of them to the left."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    form = "  ".join(f"{{:{'<' if i < n_left else '>'}{w}}}" for i, w in enumerate(widths))
    return [form.format(*row).rstrip() for row in rows]
