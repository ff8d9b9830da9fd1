"""Public names of a package, loaded when they are first used."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, file: str) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for the names that a package imports for type checkers.

    The package states them once, below ``if TYPE_CHECKING``, where tools read them as well; a
    package without an ``__all__`` of its own is given one of these names.
    """
    homes: dict[str, str] = {}

    def load(name: str) -> Any:
        if not homes and (name == "__all__" or not name.startswith("_")):
            for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.module:
                    homes.update({alias.name: node.module for alias in node.names})
        if name == "__all__":
            return sorted(name for name, home in homes.items() if home.startswith(f"{package}."))
        if name not in homes or homes[name].split(".")[0] != package.split(".", maxsplit=1)[0]:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(import_module(package), name, value)
        return value

    return load
