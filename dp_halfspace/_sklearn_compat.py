"""The only module that imports names without a stability guarantee from scikit-learn.

All names that scikit-learn marks private, and ``threadpoolctl``, which scikit-learn requires, are
imported here. If a release moves one of these names, only this module has to change.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import cache, wraps
from importlib.util import find_spec
from traceback import walk_stack
from typing import Any, TypeVar

from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import HasMethods as HasMethods
from sklearn.utils._param_validation import Interval as Interval
from sklearn.utils._param_validation import Options as Options
from sklearn.utils._param_validation import StrOptions as StrOptions
from sklearn.utils._param_validation import (
    validate_parameter_constraints as validate_parameter_constraints,
)
from sklearn.utils.validation import _check_feature_names_in
from threadpoolctl import ThreadpoolController as ThreadpoolController

rows_of = _safe_indexing
column_names = _check_feature_names_in

Fit = TypeVar("Fit", bound=Callable[..., Any])

# Whether estimators can have callbacks: from scikit-learn 1.9 on.
HAS_CALLBACKS = find_spec("sklearn.callback") is not None


def _callback() -> Any:
    """Return the package for fits with callbacks, which older versions do not have."""
    from sklearn import callback  # noqa: PLC0415 - see above

    return callback


def set_callbacks(estimator: Any, callbacks: tuple[Any, ...]) -> None:
    """Validate the callbacks of an estimator and store them where scikit-learn looks for them."""
    _callback().CallbackSupportMixin.set_callbacks(estimator, *callbacks)


def with_callbacks(fit: Fit) -> Fit:
    """Tear the callbacks of an estimator down after its fit, whatever happens in it."""

    @wraps(fit)
    def watched_fit(estimator: Any, *args: Any, **kwargs: Any) -> Any:
        if not hasattr(estimator, "_skl_callbacks"):
            return fit(estimator, *args, **kwargs)
        return _callback().with_callbacks(fit)(estimator, *args, **kwargs)

    return watched_fit  # type: ignore[return-value]


class FitTasks:
    """Tells the callbacks of an estimator, if it has any, how far its fit is.

    They get no rows and no labels, and no model before it is released. A fit with `n_releases`, or
    an unknown number, goes on whatever they answer.
    """

    def __init__(self, estimator: Any, n_releases: int | None) -> None:
        self._estimator, self._root = estimator, None
        if hasattr(estimator, "_skl_callbacks"):
            begin = _callback().CallbackSupportMixin._init_callback_context
            self._root = begin(estimator, max_subtasks=n_releases)
            self._root.call_on_fit_task_begin(estimator=estimator)

    def release(self) -> None:
        """Say that one more noisy answer was released."""
        if self._root is not None:
            task = self._root.subcontext(task_name="release")
            task.call_on_fit_task_begin(estimator=self._estimator)
            task.call_on_fit_task_end(estimator=self._estimator)

    def end(self) -> None:
        """Say that the fit has ended, with the released model."""
        if self._root is not None:
            self._root.call_on_fit_task_end(estimator=self._estimator, reconstruction_attributes={})


def without_callbacks(estimator: Any) -> None:
    """Remove the callbacks of an estimator and of the estimators inside it, which clones share.

    A frozen estimator is neither fitted nor cloned, so it is left as it is.
    """
    params = estimator.get_params()
    frozen = [f"{name}__" for name, held in params.items() if isinstance(held, FrozenEstimator)]
    for name, held in [("", estimator), *params.items()]:
        if f"{name}__".startswith(tuple(frozen)):
            continue
        # Many objects have no callbacks, and before scikit-learn 1.9 none has.
        if not isinstance(held, type) and hasattr(held, "set_callbacks"):
            held.set_callbacks()


def calls_of_sklearn() -> list[tuple[str, Mapping[str, Any]]]:
    """Return the running functions of scikit-learn, the outermost first, with their local names.

    A fit cannot tell from its rows how they were computed, but the calls around it show this. A
    process that received a fit from another process has no such calls.
    """
    found: list[tuple[str, Mapping[str, Any]]] = []
    for frame, _ in walk_stack(sys._getframe(1)):
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] in ("sklearn", "imblearn"):
            found.append((f"{module}.{frame.f_code.co_name}", frame.f_locals))
    return found[::-1]


# Finds the native thread pools once, because the search takes longer than a small fit.
_controller = cache(ThreadpoolController)


def single_blas_thread() -> AbstractContextManager[Any]:
    """Limit BLAS to one thread: for small products, thread pools are ten times slower."""
    return _controller().limit(limits=1, user_api="blas")  # type: ignore[no-any-return]
