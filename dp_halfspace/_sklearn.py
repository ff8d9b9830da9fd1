"""The one door to names that scikit-learn does not promise to keep.

Everything that scikit-learn marks private, and ``threadpoolctl``, which it installs
and needs itself, is imported here and nowhere else. A new release of scikit-learn
that moves one of these names is repaired in this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from sklearn import config_context
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    Options,
    StrOptions,
    validate_parameter_constraints,
)
from threadpoolctl import ThreadpoolController

from dp_halfspace._parameters import NUMBER_RANGE, plain, refuse_booleans

__all__ = [
    "HasMethods",
    "Interval",
    "Options",
    "StrOptions",
    "check_parameters",
    "fit_context",
    "public_number",
    "single_blas_thread",
]


Fit = TypeVar("Fit", bound=Callable[..., Any])


def public_number(*, or_zero: bool = False) -> list[Any]:
    """Return the constraints of a positive number that a user states."""
    zero = [Options(Real, {0})] if or_zero else []
    return [Interval(Real, *NUMBER_RANGE, closed="both"), *zero]


def check_parameters(estimator: Any) -> None:
    """Refuse parameters outside their ranges, by name.

    The ranges are part of the guarantee, so scikit-learn's switch that skips the validation of
    parameters does not skip this one.
    """
    constraints = estimator._parameter_constraints
    params = {name: plain(value) for name, value in estimator.get_params(deep=False).items()}
    name = type(estimator).__name__
    flags = {k for k, rules in constraints.items() if "boolean" in rules or "verbose" in rules}
    refuse_booleans(name, params, allowed=flags)
    validate_parameter_constraints(constraints, params, caller_name=name)


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Fit], Fit]:
    """Validate the parameters before a ``fit``, and keep floating-point flags to itself.

    Whether a number under- or overflows depends on private data: neither a warning nor,
    under ``numpy.seterr(all="raise")``, an exception may show it.
    """

    def decorate(fit: Fit) -> Fit:
        @wraps(fit)
        def quiet(estimator: Any, *args: Any, **kwargs: Any) -> Any:
            check_parameters(estimator)
            nested = config_context(skip_parameter_validation=prefer_skip_nested_validation)
            with nested, np.errstate(all="ignore"):
                return fit(estimator, *args, **kwargs)

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
