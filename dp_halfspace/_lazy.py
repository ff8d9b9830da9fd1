"""Public names of a package, stated once and loaded when they are first used (PEP 562)."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(package: str, file: str) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for the names that a package imports for type checkers.

    The package states them once, below ``if TYPE_CHECKING``, where tools read them as well; a
    name that it imports from itself is a subpackage. A package without an ``__all__`` of its own
    is given one of these names.
    """
    library = package.partition(".")[0]
    homes: dict[str, str] = {}

    def load(name: str) -> Any:
        if not homes and (name == "__all__" or not name.startswith("_")):
            for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
                home = node.module or "" if isinstance(node, ast.ImportFrom) else ""
                if home.partition(".")[0] == library and home != __name__:
                    homes.update({alias.name: home for alias in node.names})  # type: ignore[attr-defined]
        if name == "__all__":
            return sorted(homes)
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(homes[name]), name)
        setattr(import_module(package), name, value)
        return value

    return load
