"""What accuracy to expect, as a table and a picture; no file is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TextIO

from dp_halfspace._cli.arguments import UserError
from dp_halfspace._cli.places import write_whole
from dp_halfspace._cli.streams import say
from dp_halfspace.inspection import plan_accuracy

_KINDS = (".png", ".svg", ".pdf")


def plan(options: Any, out: TextIO) -> None:
    """Simulate, print a table, and draw where that is asked for."""
    target = options.out
    if target is not None and target.suffix.lower() not in _KINDS:
        raise UserError(f"--out: the name of {target} must end in one of {', '.join(_KINDS)}")
    try:
        found = plan_accuracy(
            options.rows,
            options.columns,
            options.classes,
            options.epsilons,
            reference=options.reference,
            majority=options.majority,
            delta=options.delta,
            n_repeats=options.repeats,
            random_state=options.seed,
        )
    except ValueError as error:
        raise UserError(" ".join(str(error).split())) from error
    say(
        out,
        f"{found!r}\n\nExpected accuracy on new rows, from simulated tables; spread: standard "
        "deviation of one fit.\nNothing was read or spent.\n",
    )
    if target is not None:
        say(out, _drawn(found, target))


def _drawn(found: Any, target: Path) -> str:
    """Draw, and say where the picture is."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 (optional dependency)
    except ImportError:
        return 'No picture: matplotlib is missing; pip install "dp-halfspace[plot]" brings it.\n'
    figure = Figure(figsize=(5.0, 4.2), layout="constrained")
    found.plot(figure=figure)
    kind = target.suffix[1:].lower()
    write_whole(target, lambda path: figure.savefig(path, dpi=150, format=kind))
    return f"Written: {target}\n"
