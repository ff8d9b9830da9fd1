"""Public names of a package, stated once and loaded when they are first used (PEP 562).

A package imports its public names below ``if TYPE_CHECKING``, as ``from home import Name as Name``:
type checkers and editors read them there, and so does `lazy_names`. They are stated nowhere else. A
name that a package imports from itself is a submodule.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package, file : str
        ``__name__`` and ``__file__`` of the package.

    Returns
    -------
    load, names : callable
        ``load`` imports a public name from its home; its ``__all__`` are all public names.
        ``names`` lists them together with what is already loaded, and imports nothing.
    """

    @cache
    def homes() -> dict[str, str]:
        """Map every public name to the module that it is imported from."""
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
        tables = [node.body for node in tree.body if isinstance(node, ast.If)]
        imports = [node for body in tables for node in body if isinstance(node, ast.ImportFrom)]
        return {alias.name: node.module or "" for node in imports for alias in node.names}

    def load(name: str) -> Any:
        if name == "__all__":
            return sorted(homes())
        # Python asks every package for private names, such as __path__; none of them is public.
        if name.startswith("_") or name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes()[name]
        if home == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted({*vars(sys.modules[package]), *homes()})
