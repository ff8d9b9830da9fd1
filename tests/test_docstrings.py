"""Docstrings as numpydoc reads them, if it is installed (extra ``dev``)."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

import dp_halfspace

validation = pytest.importorskip("numpydoc.validate")

# Layout, summaries, parameters that do not exist, and lists of See Also. Left out: sections that
# the house does not require everywhere (examples, extended summaries, See Also, parameters of data
# classes), and types of parameters that share a line.
CODES = frozenset(
    (
        *("GL01", "GL02", "GL03", "GL05", "GL06", "GL07", "GL08", "GL09", "GL10"),
        *("SS01", "SS02", "SS03", "SS04", "SS05", "SS06"),
        *("PR02", "PR05", "PR06", "PR08", "PR09", "PR10"),
        *("RT02", "RT04", "RT05", "SA02", "SA03", "SA04"),
    )
)


def public_objects():
    """Return the paths of the public classes, functions, methods and properties."""
    found = set()
    modules = ["dp_halfspace"]
    modules += [
        f"dp_halfspace.{module.name}"
        for module in pkgutil.iter_modules(dp_halfspace.__path__)
        if not module.name.startswith("_")
    ]
    for module in map(importlib.import_module, modules):
        names = getattr(module, "__all__", None) or dir(module)
        for name in (name for name in names if not name.startswith("_")):
            one = getattr(module, name, None)
            home = getattr(one, "__module__", None) or ""
            if not inspect.isclass(one) and not inspect.isfunction(one):
                continue
            if home.startswith("dp_halfspace"):
                found.add(f"{home}.{one.__qualname__}")
                members = vars(one).items() if inspect.isclass(one) else ()
                found |= {
                    f"{home}.{one.__qualname__}.{member}"
                    for member, value in members
                    if not member.startswith("_")
                    and (inspect.isfunction(value) or isinstance(value, property))
                }
    return sorted(found)


PUBLIC = public_objects()


def wrong(path):
    """Return what numpydoc finds in a docstring, by the chosen checks."""
    return [error for error in validation.validate(path)["errors"] if error[0] in CODES]


def test_public_objects_are_found():
    assert "dp_halfspace.estimators.adaptive_margin.AdaptiveMarginClassifier" in PUBLIC
    assert len(PUBLIC) > 200


def test_docstrings_are_as_numpydoc_wants_them(monkeypatch):
    """No comment in a file turns a check off, so none is looked for."""
    monkeypatch.setattr(validation, "extract_ignore_validation_comments", lambda *_: {})
    assert {path: found for path in PUBLIC if (found := wrong(path))} == {}
