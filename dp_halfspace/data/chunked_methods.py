"""Methods of fitted estimators that map rows, for rows in chunks, too."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dp_halfspace.data.chunked_checks import as_chunks
from dp_halfspace.data.chunks import DaskChunks, opened
from dp_halfspace.data.validation import is_chunked

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
        return mapped_by_chunks(method, self, X)

    return cast("Method", mapped)


def travelling(model: Any) -> Any:
    """Return a copy of a fitted model, parts included, without what stays: ledger and seed."""
    if type(model) in {list, tuple}:
        return type(model)(map(travelling, model))
    if not isinstance(model, BaseEstimator):
        return model
    twin = copy.copy(model)
    for name, value in vars(twin).items():
        vars(twin)[name] = None if name in {"ledger", "random_state"} else travelling(value)
    return twin


def mapped_by_chunks(method: Callable[..., Any], estimator: Any, X: Any) -> Any:
    """Call a method of a fitted estimator on every chunk; see `by_chunks`."""
    check_is_fitted(estimator)
    twin, given = travelling(estimator), as_chunks(X)
    # Whatever is in the sample: it tells the columns of the result, and errors of names.
    like = np.asarray(method(twin, given.sample))
    images = given.each(_image, method, twin, like[:0])
    if not isinstance(given, DaskChunks):
        return np.concatenate(list(images.values()))
    import dask.array as da  # noqa: PLC0415
    from dask import delayed  # noqa: PLC0415

    counts = X.chunks[0] if hasattr(X, "chunks") else (np.nan,) * len(images.parts)
    blocks = [
        da.from_delayed(delayed(opened)(part, i), (count, *like.shape[1:]), like.dtype)
        for i, (part, count) in enumerate(zip(images.parts, counts, strict=True))
    ]
    return da.concatenate(blocks)


def _image(
    chunk: Any, method: Callable[..., Any], twin: Any, nothing: NDArray[Any]
) -> NDArray[Any]:
    """Map the rows of a chunk; there may be none."""
    return np.asarray(method(twin, chunk)) if len(chunk) else nothing
