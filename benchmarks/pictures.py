"""Where the pictures of the documentation are, their intervals, and how they are written."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scipy.stats import t as student

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"


def half_width(cell: Mapping[str, Any]) -> float:
    """Return half of Student's interval (95 %) for the mean of a cell over its fits."""
    fits = cell["draws"]
    return float(student.ppf(0.975, fits - 1)) * cell["sd"] / math.sqrt(fits) if fits > 1 else 0.0


def save(figure: Any, path: Path) -> None:
    """Write a figure of matplotlib as SVG without a date: equal numbers, equal file."""
    import matplotlib as mpl  # noqa: PLC0415 (only the pictures need it)

    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
    print(f"wrote {path}")
