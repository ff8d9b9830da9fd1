"""The one door to names that scikit-learn does not promise to keep.

Everything that scikit-learn marks private, and ``threadpoolctl``, which it installs
and needs itself, is imported here and nowhere else. A new release of scikit-learn
that moves one of these names is repaired in this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, TypeVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, Options, StrOptions
from threadpoolctl import ThreadpoolController

__all__ = ["HasMethods", "Interval", "Options", "StrOptions", "fit_context", "single_blas_thread"]


Fit = TypeVar("Fit", bound=Callable[..., Any])


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Fit], Fit]:
    """Validate the parameters before a ``fit``, and keep floating-point flags to itself.

    Whether a number under- or overflows depends on private data: neither a warning nor,
    under ``numpy.seterr(all="raise")``, an exception may show it.
    """

    def decorate(fit: Fit) -> Fit:
        checked: Fit = _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)(
            fit
        )

        @wraps(checked)
        def quiet(*args: Any, **kwargs: Any) -> Any:
            with np.errstate(all="ignore"):
                return checked(*args, **kwargs)

        return quiet  # type: ignore[return-value]

    return decorate


@cache
def _controller() -> ThreadpoolController:
    """Find the native thread pools once: the search costs more than a small fit."""
    return ThreadpoolController()


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Hold the BLAS libraries at one thread inside the block.

    numpy and scipy each bring a pool of their own. On a busy machine many small
    products then spend their time waiting for each other, by factors of ten.
    """
    with _controller().limit(limits=1, user_api="blas"):
        yield
