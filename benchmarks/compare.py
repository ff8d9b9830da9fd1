"""Stored results beside a few new fits: which cells moved.

Any script that stores makes the fits into a new file, and this one compares:
``python benchmarks/linear.py --only satimage ours --fits 4 --out /tmp/linear.json``, then
``python -m benchmarks.compare /tmp/linear.json``. Printed are the cells whose means differ by more
than ``--above`` standard errors (z). Then, for each kind of figure, the mean difference over the
cells with its standard error, and the root mean square of z, about one where nothing moved; files
that store no spread of single fits have no z.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.cells import RESULTS, read

MEASURES = ("accuracy", "area", "brier", "log_loss")
_ROUNDING = 1e-12
Keys = tuple[str, ...]


class Figure(NamedTuple):
    """A mean over fits, and the standard deviation of one fit where it is known."""

    mean: float
    fits: int
    sd: float | None = None


def figures(
    found: Any, keys: Keys = (), fits: int = 1, spreads: Any = None
) -> Iterator[tuple[Keys, Figure]]:
    """Yield the figures below a part of a file, with the names that lead to them."""
    if isinstance(found, list) and len(found) > 1 and all(isinstance(v, float) for v in found):
        yield keys, Figure(float(np.mean(found)), len(found), float(np.std(found, ddof=1)))
        return
    parts = dict(enumerate(found)) if isinstance(found, list) else found
    if not isinstance(parts, dict):
        return
    fits = parts.get("draws", parts.get("fits", fits))
    if {"mean", "sd"} <= parts.keys():
        yield keys, Figure(parts["mean"], fits, parts["sd"])
        return
    for name, value in parts.items():
        if name in MEASURES and isinstance(value, float):
            yield (*keys, name), Figure(value, fits, (spreads or {}).get(name))
        elif name not in ("validation", "sd"):  # validation rows choose settings, others score
            yield from figures(value, (*keys, str(name)), fits, parts.get("sd"))


def z_of(new: Figure, old: Figure) -> float | None:
    """Difference of two means in standard errors, by the pooled spread of those that know one."""
    known = [(one.sd**2, one.fits - 1) for one in (new, old) if one.sd is not None]
    weight = sum(degrees for _, degrees in known)
    if not weight:
        return None
    variance = sum(square * degrees for square, degrees in known) / weight
    error = math.sqrt(variance * (1.0 / new.fits + 1.0 / old.fits))
    gap = new.mean - old.mean
    if error < _ROUNDING:  # every fit has the same score
        return math.copysign(math.inf, gap) if abs(gap) > _ROUNDING else 0.0
    return gap / error


def main(argv: Sequence[str] | None = None) -> None:
    """Print the cells that moved, then the means."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("new", type=Path, help="a file that a script wrote by --out")
    options.add_argument("--stored", type=Path, help="default: the file in results of this name")
    options.add_argument("--above", type=float, default=2.0)
    given = options.parse_args(argv)
    stored = dict(figures(read(given.stored or RESULTS / given.new.name)))
    kinds = defaultdict(list)
    for keys, new in figures(read(given.new)):
        if keys not in stored:
            continue
        old = stored[keys]
        z = z_of(new, old)
        kinds[keys[-1] if keys[-1] in MEASURES else "mean"].append((new.mean - old.mean, z))
        if z is not None and abs(z) > given.above:
            means = f"{old.mean:.4f} of {old.fits} fits, now {new.mean:.4f} of {new.fits}"
            print(f"{' '.join(keys)}: {means}, z {z:+.1f}")
    for kind, pairs in sorted(kinds.items()):
        gaps = [gap for gap, _ in pairs]
        error = np.std(gaps, ddof=1) / math.sqrt(len(gaps)) if len(gaps) > 1 else math.nan
        line = f"{kind}: {len(gaps)} cells, mean difference {np.mean(gaps):+.4f} ± {error:.4f}"
        squares = [z**2 for _, z in pairs if z is not None and math.isfinite(z)]
        if squares:
            line += f", root mean square of z {math.sqrt(np.mean(squares)):.2f}"
        print(line)


if __name__ == "__main__":
    main()
