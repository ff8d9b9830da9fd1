"""Parameters: their ranges, public numbers, and the checks at the beginning of every fit.

Parameters are public, so an error may name and show them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from pathlib import PurePath
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._memory import OutOfMemory, shortages_dropped
from dp_halfspace._sklearn_compat import Interval, StrOptions, validate_parameter_constraints

Fit = TypeVar("Fit", bound=Callable[..., Any])
Number = TypeVar("Number", int, float)

# Public numbers are squared, multiplied and divided before they are combined with private ones. In
# this range, no such step over- or underflows on one data set and not on its neighbour.
NUMBER_RANGE = (1e-50, 1e50)
PUBLIC_NUMBER = Interval(Real, *NUMBER_RANGE, closed="both")
AUTO = StrOptions({"auto"})
# Outside this range of epsilon accounting would over- or underflow, and a fit would be useless.
EPSILON_RANGE = (1e-9, 1e6)


# Largest number of candidates of a search or a choice of a margin: each is planned or trained by
# itself, and shares the budget; random stopping takes 4.3 runs for each on average.
MOST_TRAINED = 1000

# Ranges of the parameters of functions, in words; NaN is in none of them.
_RANGES: dict[str, Callable[[float], bool]] = {
    "positive": lambda x: x > 0.0,
    "positive and finite": lambda x: 0.0 < x < math.inf,
    "at least 0": lambda x: x >= 0.0,
    "at least 0 and finite": lambda x: 0.0 <= x < math.inf,
    "in (0, 1)": lambda x: 0.0 < x < 1.0,
    "in (0, 1]": lambda x: 0.0 < x <= 1.0,
    "in [0, 1]": lambda x: 0.0 <= x <= 1.0,
    "in [0, 1/2)": lambda x: 0.0 <= x < 0.5,
}


def require(words: str, **values: float) -> None:
    """Refuse every parameter that does not satisfy its description, or is no number."""
    for name, given in values.items():
        value = plain(given)
        if not (_is_number(value) and _RANGES[words](value)):
            raise ValueError(f"{name} must be {words}; got {value!r}.")


def checked_size(name: str, value: int, *, least: int = 1) -> int:
    """Return a count, or raise ValueError if it is not an integer or too small."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        kind = "a positive integer" if least == 1 else f"an integer, at least {least}"
        raise ValueError(f"{name} must be {kind}; got {value!r}.")
    return int(value)


def plain(value: Any) -> Any:
    """Return the Python value of a number or string of numpy, and other objects unchanged."""
    return value.item() if isinstance(value, np.generic) else value


# Methods of columns of other libraries that return their values as Python objects.
_AS_LISTS = ("to_pylist", "to_list", "tolist")


def storable(value: Any) -> Any:
    """Return a parameter in types of Python and numpy, which every format of models can store.

    Columns of pandas, polars and Arrow, ranges and paths become lists and texts, also inside of
    lists and mappings; numpy arrays and all other objects stay as they are.
    """
    if type(value) is dict:
        return {key: storable(held) for key, held in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(storable, value))
    if isinstance(value, PurePath | range):
        return list(value) if isinstance(value, range) else str(value)
    is_of_tables = type(value).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow")
    return _without_library(value) if is_of_tables else value


def _without_library(value: Any) -> Any:
    """Return an object of a library of tables in types of Python and numpy, if it has values."""
    if isinstance(value, datetime):
        return value.to_pydatetime()  # type: ignore[attr-defined]
    if hasattr(value, "columns"):
        return np.asarray(value)
    for name in _AS_LISTS:
        if hasattr(value, name):
            return storable(getattr(value, name)())
    return value


def is_public_number(value: Any) -> bool:
    """Return whether a value is a positive number within `NUMBER_RANGE` and no boolean."""
    value = plain(value)
    return _is_number(value) and bool(NUMBER_RANGE[0] <= value <= NUMBER_RANGE[1])


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def stated(value: Any, kind: type[Number]) -> Number | None:
    """Return a number that a user states, or None for a word in its place, such as "auto"."""
    return None if isinstance(value, str) else kind(value)


def resolved_delta(delta: float | str, n_samples: int) -> float:
    """Return delta, with min(1/n^2, 1/4) for ``"auto"``; n is public."""
    return min(1.0 / n_samples**2, 0.25) if isinstance(delta, str) else float(delta)


def label_weights(
    class_weight: Mapping[Any, float] | str | None, classes: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the public weight of each class, in the order of `classes`."""
    weights = np.ones(len(classes))
    if class_weight is None:
        return weights
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            "class_weight must be None or a dict of public weights. 'balanced' is supported by "
            "AdaptiveMarginClassifier, PrivateKernelClassifier, PrivateTableClassifier, "
            "ObjectivePerturbationClassifier and OutputPerturbationClassifier, which count the "
            "classes within the budget; PrivateAUCClassifier weighs its classes by itself"
        )
    position = {label: index for index, label in enumerate(classes.tolist())}
    for label, weight in class_weight.items():
        shown = repr(plain(label))
        if label not in position:
            raise ValueError(f"class_weight names the label {shown}, which is not a class")
        if not is_public_number(weight):
            ends = "{:g} and {:g}".format(*NUMBER_RANGE)
            raise ValueError(f"class_weight[{shown}] must be a positive number between {ends}")
        weights[position[label]] = float(weight)
    return weights


def check_values(constraints: dict[str, list[Any]], values: dict[str, Any], owner: str) -> None:
    """Refuse values outside their ranges, and booleans and fractions for numbers, by name."""
    params = {}
    for name, given in values.items():
        value = params[name] = plain(given)
        takes_flags = "boolean" in constraints[name] or "verbose" in constraints[name]
        is_flag = isinstance(value, bool) and not takes_flags
        is_other = isinstance(value, Real) and not isinstance(value, Integral | float | np.generic)
        if is_flag or is_other:
            must = "not be a boolean" if is_flag else "be a float, not another type of number"
            raise ValueError(f"The {name!r} parameter of {owner} must {must}. Got {value!r}.")
    validate_parameter_constraints(constraints, params, caller_name=owner)


def fit_context(fit: Fit) -> Fit:
    """Validate the parameters before a ``fit``, and disable floating-point warnings inside it.

    Whether a number under- or overflows depends on private data: neither a warning nor,
    under ``numpy.seterr(all="raise")``, an exception may show it.
    """

    @wraps(fit)
    def checked_fit(estimator: Any, *args: Any, **kwargs: Any) -> Any:
        # The ranges are part of the guarantee, so the setting of scikit-learn that skips the
        # validation of parameters does not skip this one.
        constraints = estimator._parameter_constraints
        params = {name: getattr(estimator, name) for name in constraints}
        check_values(constraints, params, type(estimator).__name__)
        with shortages_dropped(), np.errstate(all="ignore"):
            return fit(estimator, *args, **kwargs)
        raise OutOfMemory(
            "there is not enough memory for this fit: use fewer columns, classes or components, or "
            "give the rows in chunks, as dask arrays or by dp_halfspace.datasets.in_chunks. What a "
            "ledger was charged remains charged"
        )

    # scikit-learn assumes that a parameter of this name accepts any weights, and that weights equal
    # repeated rows. These weights are in [0, 1], so they are requested by name instead.
    own = signature(fit)
    shown = [each for each in own.parameters.values() if each.name != "sample_weight"]
    checked_fit.__signature__ = own.replace(parameters=shown)  # type: ignore[attr-defined]
    return checked_fit  # type: ignore[return-value]
