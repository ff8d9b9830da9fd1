"""Methods that map rows, for rows in chunks, too."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from dp_halfspace._validation import is_chunked

Method = TypeVar("Method", bound=Callable[..., Any])


def by_chunks(method: Method) -> Method:
    """Let a method that maps rows take chunks: lazily from dask, else one chunk after another.

    Workers get a copy of the fitted estimator without its ledger and its seed. Flags of floating
    point are ignored: a warning would show a row that overflows, of a step before a fit, too.
    """

    @wraps(method)
    def mapped(self: Any, X: Any) -> Any:
        if not is_chunked(X):
            with np.errstate(all="ignore"):
                return method(self, X)
        from dp_halfspace._chunked import mapped_by_chunks  # noqa: PLC0415

        return mapped_by_chunks(method, self, X)

    return cast("Method", mapped)
