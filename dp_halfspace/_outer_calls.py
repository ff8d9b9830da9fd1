"""The running calls of scikit-learn that fit an estimator several times, and how many times.

Decided by parameters and public facts alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from dp_halfspace._pipelines import NOT_PRIVATE

FUNCTIONS = (
    *("cross_val_score", "cross_validate", "cross_val_predict", "learning_curve"),
    *("validation_curve", "permutation_test_score"),
)
# Those that replace the labels by two others in each of their fits.
OF_PAIRS = ("OneVsRestClassifier", "OneVsOneClassifier", "OutputCodeClassifier")
_ESTIMATORS = (
    *(*NOT_PRIVATE, *OF_PAIRS, "RFE"),
    *("BaggingClassifier", "VotingClassifier", "MultiOutputClassifier", "ClassifierChain"),
)


class Caller(NamedTuple):
    """A call that fits an estimator several times; the number may be unknown."""

    name: str
    n_fits: int | None
    call: Mapping[str, Any]


def _n_fits(name: str, outer: Any, call: Mapping[str, Any]) -> int | None:
    """Return the number of fits of a call, if its parameters tell it and all have one budget."""
    from sklearn.model_selection import ParameterGrid  # noqa: PLC0415 (loads slowly)

    # What that library refuses, it refuses itself.
    with suppress(Exception):
        if name == "BaggingClassifier":
            return int(outer.n_estimators)
        if name in ("cross_val_score", "cross_validate", "cross_val_predict"):
            return _n_splits(call["cv"])
        if name == "GridSearchCV":
            grid = ParameterGrid(outer.param_grid)
            if not any(key.endswith(("epsilon", "delta")) for point in grid for key in point):
                return len(grid) * _n_splits(outer.cv) + bool(outer.refit)
    return None


def _n_splits(cv: Any) -> int:
    """Return the number of splits; an iterator, which the call has used up, does not tell it."""
    from sklearn.model_selection import check_cv  # noqa: PLC0415 (loads slowly)

    if isinstance(cv, Iterator):
        raise TypeError("cv has no length")
    return int(check_cv(cv).get_n_splits())


def callers(calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Caller]:
    """Return the calls that fit several times, the outermost first, with the number of all fits."""
    found: list[Caller] = []
    owners: set[int] = set()
    for place, call in calls:
        owner, function = call.get("self"), place.rpartition(".")[2]
        kinds = [kind.__name__ for kind in type(owner).__mro__ if "sklearn" in kind.__module__]
        name = next((kind for kind in kinds if kind in _ESTIMATORS), None)
        if name is not None and id(owner) not in owners:
            owners.add(id(owner))
            found.append(Caller(name, _n_fits(name, owner, call), call))
        elif not found and function in FUNCTIONS and place.startswith("sklearn.model_selection."):
            found.append(Caller(function, _n_fits(function, None, call), call))
    counts = [caller.n_fits for caller in found if caller.n_fits is not None]
    n_fits = math.prod(counts) if len(counts) == len(found) else None
    return [caller._replace(n_fits=n_fits) for caller in found]
