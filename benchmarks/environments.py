"""Libraries in environments of their own: what they need does not fit beside current packages."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path


def interpreter(name: str) -> Path:
    """Where the interpreter of an environment is, in the user's cache folder."""
    cache_home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache_home / "dp_halfspace" / name / "bin" / "python"


@cache
def missing(name: str, requirements: tuple[str, ...], module: str) -> str | None:
    """Make an environment once; the reason if that fails, else None."""
    python = interpreter(name)
    folder = python.parents[1]
    steps = [
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", *requirements],
        [str(python), "-c", f"import {module}"],
    ]
    made = folder / "complete"
    try:
        for step in [] if made.exists() else steps:
            subprocess.run(step, check=True, capture_output=True, text=True)
        made.touch()
    except subprocess.CalledProcessError as error:
        lines = (error.stderr or "").strip().splitlines()
        return f"no environment for {name}: {lines[-1] if lines else error}"
    except OSError as error:
        return f"no environment for {name}: {error}"
    return None
