"""The visible result of a fit: the exact state of its objects.

``__getstate__`` may leave out attributes that a debugger shows, so attributes are read from
``__dict__`` and ``__slots__``.
"""

from __future__ import annotations

import functools
import struct
import weakref
from collections import deque
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from contextlib import suppress
from hashlib import blake2b
from types import CellType, CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np
from joblib import hash as pickled

# Flag of a class that was defined in Python.
_HEAP_TYPE = 1 << 9
# What functions, similar objects and exceptions consist of.
_CONTENT: tuple[tuple[type, tuple[str, ...]], ...] = (
    (FunctionType, ("__code__", "__defaults__", "__kwdefaults__", "__closure__")),
    (CellType, ("cell_contents",)),
    (CodeType, ("co_qualname", "co_name", "co_code", "co_consts", "co_names")),
    (MethodType, ("__func__", "__self__")),
    (functools.partial, ("func", "args", "keywords")),
    (BaseException, ("args", "__cause__", "__context__")),
)
# Attributes of a class that Python itself maintains; they are not a state of a fit.
_OF_PYTHON = {"__dict__", "__weakref__", "_abc_impl"}


def fingerprint(value: Any) -> bytes:
    """Return a digest of everything that a value contains, recursively.

    For an extension type without attributes this is the pickled state or, if it cannot be pickled,
    the name of the type.
    """
    return _Digests().of(value)


def attributes(value: Any) -> dict[str, Any]:
    """Return everything in ``__dict__`` and in ``__slots__``, by name."""
    found: dict[str, Any] = {}
    kind: type = type(value)
    for name, slot in _slots(kind):
        with suppress(AttributeError):  # the slot is not set
            found[name] = slot.__get__(value)
    with suppress(AttributeError):  # a type without `__dict__`
        found.update(object.__getattribute__(value, "__dict__"))
    return found


@functools.cache
def _slots(kind: type) -> list[tuple[str, MemberDescriptorType]]:
    """Return names and descriptors of the ``__slots__`` of a class and its bases."""
    bases = [base for base in kind.__mro__ if base.__flags__ & _HEAP_TYPE]
    members = [member for base in bases for member in vars(base).items()]
    return [(name, slot) for name, slot in members if isinstance(slot, MemberDescriptorType)]


def _holds_more(kind: type) -> bool:
    """Return whether values of a type have state in C code, in addition to attributes."""
    offsets = kind.__dictoffset__, kind.__weakrefoffset__
    pointers = len(_slots(kind)) + sum(offset > 0 for offset in offsets)
    return kind.__basicsize__ > object.__basicsize__ + pointers * struct.calcsize("P")


def digest_class_attributes(*values: Any) -> dict[str, bytes]:
    """Return a digest of every attribute of the classes of values, and of their base classes.

    Methods and other descriptors are compared by identity.
    """
    kinds = {kind: None for value in values for kind in type(value).__mro__}
    digests = _Digests()
    return {
        f"class attribute {kind.__qualname__}.{name}": (
            b"%d" % id(item) if hasattr(type(item), "__get__") else digests.of(item)
        )
        for kind in kinds
        if kind.__flags__ & _HEAP_TYPE
        for name, item in vars(kind).items()
        if name not in _OF_PYTHON
    }


class _Digests:
    """Digests of values that refer to each other, possibly in cycles."""

    def __init__(self) -> None:
        # Values are kept alive, because the address of a deleted one may be reused.
        self._done: dict[int, tuple[Any, bytes]] = {}
        self._open: dict[int, int] = {}

    def of(self, value: Any) -> bytes:
        """Return the digest of a value, or the value itself if it is short."""
        if type(value) in (str, int, bool, type(None)):
            return repr(value).encode(errors="surrogatepass")
        if isinstance(value, type | ModuleType):
            return f"{getattr(value, '__module__', '')} {value.__name__}".encode()
        place = id(value)
        if place in self._open:
            return b"circle %d" % (len(self._open) - self._open[place])
        if place not in self._done:
            self._open[place] = len(self._open)
            whole = blake2b(f"{type(value).__module__}.{type(value).__qualname__}".encode())
            for part in self._parts(value):
                whole.update(b"%d:" % len(part) + part)
            del self._open[place]
            self._done[place] = value, whole.digest()
        return self._done[place][1]

    def _parts(self, value: Any) -> Iterator[bytes]:
        """Yield the parts of a value: its content, its attributes, and its state in C code."""
        content = list(self._content(value))
        yield from (b"%d" % len(content), *content)
        for name, item in attributes(value).items():
            yield from (name.encode(), self.of(item))
        if not content and _holds_more(type(value)):
            # What cannot be pickled is known by its type.
            with suppress(Exception):
                yield pickled(value).encode()

    def _content(self, value: Any) -> Iterator[bytes]:
        """Yield the content of a value of a Python or numpy type, without its attributes."""
        match value:
            case float() | complex():
                yield np.asarray(value).tobytes()
            case int() | str() | bytes() | bytearray():
                yield repr(value).encode(errors="surrogatepass")
            case np.ndarray() | np.generic():
                yield repr((value.dtype, value.shape, value.strides)).encode()
                is_plain, cells = not value.dtype.hasobject, np.asarray(value)
                yield from [cells.tobytes()] if is_plain else map(self.of, cells.ravel().tolist())
            case memoryview():
                yield value.tobytes()
            case Mapping():
                yield from (self.of(part) for pair in value.items() for part in pair)
            case set() | frozenset():
                yield from sorted(map(self.of, value))
            case list() | tuple() | deque() | KeysView() | ValuesView() | ItemsView():
                yield from map(self.of, value)
            case weakref.ref():
                yield self.of(value())
        for name in next((names for kind, names in _CONTENT if isinstance(value, kind)), ()):
            with suppress(AttributeError, ValueError):  # a cell of a closure may be empty
                yield self.of(getattr(value, name))
