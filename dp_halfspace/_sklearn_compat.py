"""The one door to names that scikit-learn does not promise to keep.

Everything that scikit-learn marks private, and ``threadpoolctl``, which it installs and needs
itself, is imported here and nowhere else: a release that moves one of these names is repaired
here.
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
    """Take the callbacks from an estimator and from the estimators inside it; clones share them.

    A frozen estimator is neither fitted nor cloned, so it is left as it is.
    """
    params = estimator.get_params()
    for name, held in [("", estimator), *params.items()]:
        if isinstance(params.get(name.rpartition("__")[0]), FrozenEstimator):
            continue
        # Before scikit-learn 1.8 there are none.
        if hasattr(type(held), "set_callbacks") and not isinstance(held, type):
            held.set_callbacks()


def calls_of_sklearn() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name the functions of scikit-learn that are running, the innermost first, and their names.

    A fit is handed rows and not what made them; only the calls around it tell. None is found in a
    process that has received a fit from another one.
    """
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] in ("sklearn", "imblearn"):
            yield f"{module}.{frame.f_code.co_name}", frame.f_locals
        frame = frame.f_back  # type: ignore[assignment]


@cache
def _controller() -> ThreadpoolController:
    """Find the native thread pools once: the search costs more than a small fit."""
    return ThreadpoolController()


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Hold BLAS at one thread: pools of small products wait for each other, by factors of ten."""
    with _controller().limit(limits=1, user_api="blas"):
        yield
