"""The outermost call of scikit-learn that fits an estimator several times, and how many times.

Decided by parameters and public facts alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sklearn.model_selection import ParameterGrid, check_cv

from dp_halfspace._pipelines import NOT_PRIVATE, library_of

FUNCTIONS = (
    *("cross_val_score", "cross_validate", "cross_val_predict", "learning_curve"),
    *("validation_curve", "permutation_test_score"),
)
_ESTIMATORS = (
    *NOT_PRIVATE,
    *("BaggingClassifier", "VotingClassifier", "MultiOutputClassifier", "ClassifierChain"),
    *("OneVsRestClassifier", "OneVsOneClassifier", "OutputCodeClassifier", "RFE"),
)
# A process or a thread runs a part of a call that it cannot see; transformers are fitted once.
_WORKER = "_FuncWrapper"
_OF_TRANSFORMERS = "sklearn.pipeline"


class Caller(NamedTuple):
    """A call that fits an estimator several times; the number may be unknown."""

    name: str
    n_fits: int | None
    call: Mapping[str, Any]
    is_worker: bool = False


def _n_candidates(search: Any) -> int:
    """Return the number of candidates of a search, which must not differ in their budget."""
    stated = search.param_grid if hasattr(search, "param_grid") else search.param_distributions
    grids = [stated] if isinstance(stated, Mapping) else list(stated)
    values = {name: drawn for grid in grids for name, drawn in grid.items()}
    if any(name.endswith(("epsilon", "delta")) for name in values):
        raise ValueError("candidates differ in their budget")
    if any(hasattr(drawn, "rvs") for drawn in values.values()):
        return int(search.n_iter)
    n_listed = len(ParameterGrid(stated))
    return min(n_listed, getattr(search, "n_iter", n_listed))


def _n_members(ensemble: Any) -> int:
    """Return the number of private members, which must not differ in kind and budget."""
    members = [member for _, member in ensemble.estimators if member != "drop"]
    held = [one for member in members for one in (member, *member.get_params().values())]
    ours = [one for one in held if library_of(type(one)) == "dp_halfspace"]
    if len({(type(one), one.epsilon, one.delta) for one in ours}) > 1:
        raise ValueError("members differ in their kind or budget")
    return len(ours)


def _n_fits(name: str, outer: Any, call: Mapping[str, Any]) -> int | None:
    """Return the number of fits of a call, if its parameters tell it."""

    def n_splits() -> int:
        return int(check_cv(call["cv"] if name in FUNCTIONS else outer.cv).get_n_splits())

    count = None
    try:
        match name:
            case "GridSearchCV" | "RandomizedSearchCV":
                count = _n_candidates(outer) * n_splits() + bool(outer.refit)
            case "CalibratedClassifierCV":
                count = n_splits() + (not outer.ensemble)
            case "cross_val_score" | "cross_validate" | "cross_val_predict":
                count = n_splits()
            case "validation_curve":
                count = len(call["param_range"]) * n_splits()
            case "VotingClassifier":
                count = _n_members(outer)
            case "BaggingClassifier":
                count = int(outer.n_estimators)
            case "MultiOutputClassifier":
                count = int(call["Y" if "Y" in call else "y"].shape[1])
    except Exception:  # noqa: BLE001 - what that library refuses, it refuses itself
        pass
    return count


def outermost_caller(calls: Sequence[tuple[str, Mapping[str, Any]]]) -> Caller | None:
    """Return the outermost call that fits several times, with the number of all fits inside it."""
    found: list[Caller] = []
    owners: set[int] = set()
    for place, call in reversed(calls):
        owner, function = call.get("self"), place.rpartition(".")[2]
        kinds = [kind.__name__ for kind in type(owner).__mro__ if "sklearn" in kind.__module__]
        name = next((kind for kind in kinds if kind in _ESTIMATORS), None)
        if name is not None and id(owner) not in owners:
            owners.add(id(owner))
            found.append(Caller(name, _n_fits(name, owner, call), call))
        elif not found and function in FUNCTIONS and place.startswith("sklearn.model_selection."):
            found.append(Caller(function, _n_fits(function, None, call), call))
        elif not found and kinds == [_WORKER] and owner.__module__ != _OF_TRANSFORMERS:
            found.append(Caller("A meta-estimator of scikit-learn", None, call, is_worker=True))
    counts = [caller.n_fits for caller in found if caller.n_fits is not None]
    n_fits = math.prod(counts) if len(counts) == len(found) else None
    return found[0]._replace(n_fits=n_fits) if found else None
