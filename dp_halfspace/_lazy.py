"""Public names of a package, loaded when they are first used (PEP 562).

A package states in a dict which module each of its names comes from. Type checkers and editors read
the same names below ``if TYPE_CHECKING``, as ``from home import Name as Name``; a test compares the
two. A name whose home is the package itself is a submodule.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, names_of: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package : str
        ``__name__`` of the package.
    names_of : mapping of str to tuple of str
        The public names that come from each module.

    Returns
    -------
    load, names : callable
        ``load`` imports a public name from its home; its ``__all__`` are all public names.
        ``names`` lists them together with what is already loaded, and imports nothing.
    """
    homes = {name: home for home, names in names_of.items() for name in names}

    def load(name: str) -> Any:
        if name == "__all__":
            return sorted(homes)
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        if home == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted({*vars(sys.modules[package]), *homes})
