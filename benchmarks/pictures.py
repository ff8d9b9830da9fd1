"""Where the pictures of the documentation are, and how they are written."""

from pathlib import Path
from typing import Any

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"


def save(figure: Any, path: Path) -> None:
    """Write a figure of matplotlib as SVG without a date: equal numbers, equal file."""
    import matplotlib as mpl  # noqa: PLC0415 (only the pictures need it)

    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
    print(f"wrote {path}")
