"""The outermost call of scikit-learn that fits an estimator several times, and how many times.

The running calls, their parameters and the shapes of their data are looked at, and no cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sklearn.model_selection import ParameterGrid, check_cv

from dp_halfspace._pipelines import NOT_PRIVATE, library_of

_Call: TypeAlias = Mapping[str, Any]


def _splits(cv: Any) -> int:
    return int(check_cv(cv).get_n_splits()) if not isinstance(cv, list) else len(cv)


def _of_search(search: Any, _: _Call) -> int:
    stated = search.param_grid if hasattr(search, "param_grid") else search.param_distributions
    grids = [stated] if isinstance(stated, Mapping) else list(stated)
    if any(name.endswith(("epsilon", "delta")) for grid in grids for name in grid):
        raise ValueError("candidates differ in their budget")
    is_listed = not any(hasattr(values, "rvs") for grid in grids for values in grid.values())
    n_candidates = len(ParameterGrid(stated)) if is_listed else search.n_iter
    n_candidates = min(n_candidates, getattr(search, "n_iter", n_candidates))
    return n_candidates * _splits(search.cv) + bool(search.refit)


def _of_members(ensemble: Any, _: _Call) -> int:
    """Return the number of private members, which must not differ in kind and budget."""
    held = [
        one
        for _, member in ensemble.estimators
        for one in (member, *(member.get_params().values() if member != "drop" else ()))
        if library_of(type(one)) == "dp_halfspace"
    ]
    if len({(type(one), one.epsilon, one.delta) for one in held}) > 1:
        raise ValueError("members differ in their kind or budget")
    return len(held)


def _of_splits(_: Any, call: _Call) -> int:
    return _splits(call["cv"])


# The number of fits of meta-estimators and functions whose parameters tell it.
_COUNTS: dict[str, Callable[[Any, _Call], int]] = {
    "GridSearchCV": _of_search,
    "RandomizedSearchCV": _of_search,
    "BaggingClassifier": lambda outer, _: int(outer.n_estimators),
    "VotingClassifier": _of_members,
    "CalibratedClassifierCV": lambda outer, _: _splits(outer.cv) + (not outer.ensemble),
    "MultiOutputClassifier": lambda _, call: int(call["Y" if "Y" in call else "y"].shape[1]),
    "cross_val_score": _of_splits,
    "cross_validate": _of_splits,
    "cross_val_predict": _of_splits,
    "validation_curve": lambda _, call: len(call["param_range"]) * _splits(call["cv"]),
}
_FUNCTIONS = "sklearn.model_selection._validation"
_OF_FUNCTIONS = (
    *("cross_val_score", "cross_validate", "cross_val_predict", "learning_curve"),
    *("validation_curve", "permutation_test_score"),
)
_ESTIMATORS = (
    *_COUNTS,
    *NOT_PRIVATE,
    *("OneVsRestClassifier", "OneVsOneClassifier", "OutputCodeClassifier", "ClassifierChain"),
    "RFE",
)
# Functions that a process or a thread runs for a call that it cannot see.
_WORKERS = (
    *("_fit_and_score", "_fit_and_predict", "_permutation_test_score", "_fit_single_estimator"),
    *("_parallel_build_estimators", "_fit_binary", "_fit_estimator", "_rfe_single_fit"),
    "_fit_classifier_calibrator_pair",
)


@dataclass(frozen=True, slots=True)
class Caller:
    """A call that fits an estimator several times; the number may be unknown."""

    name: str
    n_fits: int | None
    call: _Call
    is_worker: bool

    def what_no_budget_covers(self, *, has_ledger: bool) -> list[str]:
        """Say what a call reads of the records beside its fits, and what to use instead."""
        if self.name in _OF_FUNCTIONS and not has_ledger:
            return [
                f"The result of {self.name} is an exact function of the records, which no budget "
                "covers: instead use private_score on held-out records"
            ]
        if self.name not in NOT_PRIVATE:
            return []
        return [
            f"{self.name} uses exact results on the records, so that its result is not private: "
            f"instead use {NOT_PRIVATE[self.name]}"
        ]


def _known(name: str, outer: Any, call: _Call) -> int | None:
    """Return a number of fits, None if parameters or data of another library do not tell it."""
    try:
        return _COUNTS[name](outer, call)
    except Exception:  # noqa: BLE001 - what that library refuses, it refuses itself
        return None


def outermost_caller(calls: Sequence[tuple[str, _Call]]) -> Caller | None:
    """Return the outermost call that fits several times, with the number of all fits inside it."""
    found: list[tuple[str, int | None, _Call, bool]] = []
    owners: set[int] = set()
    for place, call in reversed(calls):
        module, _, function = place.rpartition(".")
        owner = call.get("self")
        kinds = [kind.__name__ for kind in type(owner).__mro__ if "sklearn" in kind.__module__]
        name = next((kind for kind in kinds if kind in _ESTIMATORS), None)
        if name is not None and id(owner) not in owners:
            owners.add(id(owner))
            found.append((name, _known(name, owner, call), call, False))
        elif not found and module == _FUNCTIONS and function in _OF_FUNCTIONS:
            found.append((function, _known(function, None, call), call, False))
        elif not found and function in _WORKERS:
            found.append(("A meta-estimator of scikit-learn", None, call, True))
    if not found:
        return None
    name, n_fits, call, is_worker = found[0]
    for _, inner, *_ in found[1:]:
        n_fits = None if n_fits is None or inner is None else n_fits * inner
    return Caller(name, n_fits, call, is_worker)
