"""The only module that imports names without a stability guarantee from scikit-learn.

All names that scikit-learn marks private, and ``threadpoolctl``, which scikit-learn requires, are
imported here. If a release moves one of these names, only this module has to change.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing as rows_of
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    Options,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.validation import _check_feature_names_in as column_names
from threadpoolctl import ThreadpoolController

__all__ = [
    "HasMethods",
    "Interval",
    "Options",
    "StrOptions",
    "ThreadpoolController",
    "calls_of_sklearn",
    "column_names",
    "rows_of",
    "single_blas_thread",
    "validate_parameter_constraints",
    "without_callbacks",
]


def without_callbacks(estimator: Any) -> None:
    """Remove the callbacks of an estimator and of the estimators inside it, which clones share.

    A frozen estimator is neither fitted nor cloned, so it is left as it is.
    """
    params = estimator.get_params()
    for name, held in [("", estimator), *params.items()]:
        if isinstance(params.get(name.rpartition("__")[0]), FrozenEstimator):
            continue
        # Versions before scikit-learn 1.8 have no callbacks.
        if hasattr(type(held), "set_callbacks") and not isinstance(held, type):
            held.set_callbacks()


def calls_of_sklearn() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the running functions of scikit-learn, the innermost first, with their local names.

    A fit cannot tell from its rows how they were computed, but the calls around it show this. A
    process that received a fit from another process has no such calls.
    """
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] in ("sklearn", "imblearn"):
            yield f"{module}.{frame.f_code.co_name}", frame.f_locals
        frame = frame.f_back  # type: ignore[assignment]


@cache
def _controller() -> ThreadpoolController:
    """Find the native thread pools once, because the search takes longer than a small fit."""
    return ThreadpoolController()


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread: for small products, thread pools are ten times slower."""
    with _controller().limit(limits=1, user_api="blas"):
        yield
