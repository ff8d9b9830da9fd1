"""Write a template of a schema: the names of the columns of a table and their kinds."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, TextIO

from dp_halfspace._cli.places import write_whole
from dp_halfspace._cli.streams import say
from dp_halfspace._cli.tables import declared_columns, read_cells
from dp_halfspace._html import shown
from dp_halfspace.data.schema import word_of


def schema(options: Any, out: TextIO, err: TextIO) -> None:
    """Write names and kinds, and never a value, to look over before they are stated."""
    roles = [options.target] if options.target else []
    cells = read_cells(options, roles)
    columns = declared_columns(replace(cells, frame=cells.frame.drop(columns=roles)), {})
    template = {"columns": {name: word_of(column) for name, column in columns.items()}}
    text = json.dumps(template, indent=1, ensure_ascii=False) + "\n"
    if options.out is None:
        say(out, text)
    else:
        write_whole(options.out, lambda path: path.write_text(text, encoding="utf-8"))
        say(out, f"Written: {shown(options.out)}, {len(columns)} columns\n")
    say(
        err,
        "dp_halfspace: note: these kinds were found in the private cells. Look them over, correct "
        "them by what the columns mean, and state what is public: a number may become [0, 120], a "
        'text ["I", "II", "III"], and what is no feature "drop".\n',
    )
