"""The outermost call of scikit-learn that fits an estimator several times, and how many times.

The running calls, their parameters and the shapes of their data are looked at, and no cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, TypeAlias, cast

from dp_halfspace._pipelines import library_of, what_it_reads

_Call: TypeAlias = Mapping[str, Any]
# Splits of a cross-validation of scikit-learn that does not state their number.
_USUAL_SPLITS = 5
# Callers that choose by released coefficients alone, so that budgets are all that they need.
_RELEASED_ONLY = ("RFE",)
# Functions whose fits are to different numbers of records, with different budgets.
_OF_MANY_SIZES = ("learning_curve",)
_SEVERAL_FITS = "the records many times"


def _n_splits(cv: Any) -> int | None:
    """Return the number of splits that a parameter states, None if it does not state one."""
    if cv is None:
        return _USUAL_SPLITS
    if isinstance(cv, Integral):
        return int(cv)
    n_splits = getattr(cv, "n_splits", None)
    if n_splits is None and hasattr(cv, "cvargs"):
        n_splits = cv.cvargs.get("n_splits", _USUAL_SPLITS) * cv.n_repeats
    return None if n_splits is None else int(n_splits)


def _times(*factors: int | None) -> int | None:
    """Return a product, None if a factor is not known."""
    return None if None in factors else math.prod(cast("tuple[int, ...]", factors))


def _candidates_of(search: Any) -> int | None:
    """Return the number of candidates of a search, None if they differ in their budget."""
    stated = search.param_grid if hasattr(search, "param_grid") else search.param_distributions
    grids = [stated] if isinstance(stated, Mapping) else list(stated)
    if any(name.endswith(("epsilon", "delta")) for grid in grids for name in grid):
        return None
    lists = [
        math.prod(len(values) for values in grid.values())
        for grid in grids
        if not any(hasattr(values, "rvs") for values in grid.values())
    ]
    if hasattr(search, "param_grid"):
        return sum(lists)
    n_iter = int(search.n_iter)
    return min(n_iter, sum(lists)) if len(lists) == len(grids) else n_iter


def _fits_of_search(search: Any, call: _Call) -> int | None:
    del call
    fits = _times(_candidates_of(search), _n_splits(search.cv))
    return None if fits is None else fits + bool(search.refit)


def _private_parts(member: Any) -> list[Any]:
    """Return the estimators of this package that a member of an ensemble is, or contains."""
    held = [member, *(member.get_params().values() if hasattr(member, "get_params") else ())]
    return [one for one in held if library_of(type(one)) == "dp_halfspace"]


def _fits_of_members(ensemble: Any, call: _Call) -> int | None:
    """Return the number of private members, None if they differ in their kind or budget."""
    del call
    members = [parts for _, held in ensemble.estimators if (parts := _private_parts(held))]
    kinds = {(type(one), one.epsilon, one.delta) for parts in members for one in parts}
    return len(members) if len(kinds) == 1 else None


def _fits_of_stacking(stack: Any, call: _Call) -> int | None:
    if stack.cv == "prefit":
        return 0
    splits, members = _n_splits(stack.cv), _fits_of_members(stack, call)
    # Its own model learns from predictions, which count as another fit if it is private.
    fits = _times(members, None if splits is None else splits + 1)
    return None if fits is None else fits + bool(_private_parts(stack.final_estimator))


def _fits_of_calibration(outer: Any, call: _Call) -> int | None:
    del call
    splits = _n_splits(outer.cv)
    return splits if outer.ensemble or splits is None else splits + 1


def _fits_of_outputs(outer: Any, call: _Call) -> int | None:
    del outer
    shape: Any = getattr(call.get("y", call.get("Y")), "shape", ())
    return int(shape[1]) if len(shape) == 2 else None


def _fits_of_elimination(outer: Any, call: _Call) -> int | None:
    """Return the number of fits, each to fewer columns, and one to those that are left."""
    shape: Any = getattr(call.get("X"), "shape", ())
    if len(shape) != 2:
        return None
    n_columns, wanted, step = int(shape[1]), outer.n_features_to_select, outer.step
    if wanted is None:
        wanted = n_columns // 2
    elif not isinstance(wanted, Integral):
        wanted = int(n_columns * wanted)
    step = int(step) if step >= 1 else max(1, int(step * n_columns))
    return 1 + max(0, -(-(n_columns - int(wanted)) // step))


def _unknown(outer: Any, call: _Call) -> None:
    del outer, call


# The number of fits of a meta-estimator by its parameters and the shapes of its data.
_FITS: dict[str, Callable[[Any, _Call], int | None]] = {
    "GridSearchCV": _fits_of_search,
    "RandomizedSearchCV": _fits_of_search,
    "HalvingGridSearchCV": _unknown,
    "HalvingRandomSearchCV": _unknown,
    "BaggingClassifier": lambda outer, _: int(outer.n_estimators),
    "VotingClassifier": _fits_of_members,
    "StackingClassifier": _fits_of_stacking,
    "AdaBoostClassifier": _unknown,
    "OneVsRestClassifier": _unknown,
    "OneVsOneClassifier": _unknown,
    "OutputCodeClassifier": _unknown,
    "MultiOutputClassifier": _fits_of_outputs,
    "ClassifierChain": _fits_of_outputs,
    "SelfTrainingClassifier": _unknown,
    "RFE": _fits_of_elimination,
    "RFECV": _unknown,
    "SequentialFeatureSelector": _unknown,
    "CalibratedClassifierCV": _fits_of_calibration,
    "TunedThresholdClassifierCV": _unknown,
}


def _fits_of_a_curve(name: str) -> Callable[[_Call], int | None]:
    """Return the number of fits of a function that repeats a cross-validation for given values."""

    def count(call: _Call) -> int | None:
        shape: Any = getattr(call.get(name), "shape", None)
        n_values = len(call[name]) if shape is None else int(shape[0])
        return _times(n_values, _n_splits(call["cv"]))

    return count


def _fits_of_permutations(call: _Call) -> int | None:
    return _times(call["n_permutations"] + 1, _n_splits(call["cv"]))


def _fits_of_a_validation(call: _Call) -> int | None:
    return _n_splits(call["cv"])


# The same for functions that fit an estimator several times.
_FITS_OF_FUNCTIONS: dict[str, Callable[[_Call], int | None]] = {
    "cross_val_score": _fits_of_a_validation,
    "cross_validate": _fits_of_a_validation,
    "cross_val_predict": _fits_of_a_validation,
    "learning_curve": _fits_of_a_curve("train_sizes"),
    "validation_curve": _fits_of_a_curve("param_range"),
    "permutation_test_score": _fits_of_permutations,
}
_OF_FUNCTIONS = "sklearn.model_selection._validation"
# Functions that a process or a thread runs for a call that it cannot see, and what they belong to.
_WORKERS = {
    f"{_OF_FUNCTIONS}._fit_and_score": "A cross-validation or search",
    f"{_OF_FUNCTIONS}._fit_and_predict": "cross_val_predict",
    f"{_OF_FUNCTIONS}._permutation_test_score": "permutation_test_score",
    "sklearn.ensemble._base._fit_single_estimator": "An ensemble",
    "sklearn.ensemble._bagging._parallel_build_estimators": "BaggingClassifier",
    "sklearn.multiclass._fit_binary": "OneVsRestClassifier",
    "sklearn.multioutput._fit_estimator": "MultiOutputClassifier",
    "sklearn.calibration._fit_classifier_calibrator_pair": "CalibratedClassifierCV",
    "sklearn.feature_selection._rfe._rfe_single_fit": "RFECV",
}


@dataclass(frozen=True, slots=True)
class Caller:
    """A call that fits an estimator several times; the number may be unknown."""

    name: str
    n_fits: int | None
    call: _Call
    is_worker: bool

    @property
    def has_many_sizes(self) -> bool:
        """Whether the fits are to tables of different sizes."""
        return self.name in _OF_MANY_SIZES

    def what_no_budget_covers(self, *, has_ledger: bool) -> list[str]:
        """Say what a call reads of the records beside its fits, and what to use instead."""
        if self.name in _FITS_OF_FUNCTIONS and not has_ledger:
            return [
                f"The result of {self.name} is an exact function of the records, which no budget "
                "covers: instead use private_score on held-out records"
            ]
        if self.name not in _FITS or self.name in _RELEASED_ONLY:
            return []
        reads, instead = what_it_reads(self.name)
        if reads.startswith(_SEVERAL_FITS):
            return []
        result = f"{self.name} reads {reads}, so that its result is not private"
        return [f"{result}: instead use {instead}"]


def _name_of_meta(owner: Any) -> str | None:
    """Return the name of the known meta-estimator of scikit-learn that an object is."""
    for kind in type(owner).__mro__:
        if kind.__name__ in _FITS and kind.__module__.partition(".")[0] == "sklearn":
            return kind.__name__
    return None


def _known(count: Callable[..., int | None], *arguments: Any) -> int | None:
    """Return a number of fits, None if parameters or data of another library do not tell it."""
    try:
        return count(*arguments)
    except Exception:  # noqa: BLE001 - what that library refuses, it refuses itself
        return None


def outermost_caller(calls: Sequence[tuple[str, _Call]]) -> Caller | None:
    """Return the outermost call that fits several times, with the number of all fits inside it."""
    found: list[tuple[str, int | None, _Call]] = []
    owners: set[int] = set()
    is_worker = False
    for place, call in reversed(calls):
        module, _, function = place.rpartition(".")
        if not found and module == _OF_FUNCTIONS and function in _FITS_OF_FUNCTIONS:
            found.append((function, _known(_FITS_OF_FUNCTIONS[function], call), call))
        owner = call.get("self")
        name = None if id(owner) in owners else _name_of_meta(owner)
        if name is not None:
            owners.add(id(owner))
            found.append((name, _known(_FITS[name], owner, call), call))
        elif not found and place in _WORKERS:
            found.append((_WORKERS[place], None, call))
            is_worker = True
    if not found:
        return None
    name, _, call = found[0]
    return Caller(name, _times(*(n_fits for _, n_fits, _ in found)), call, is_worker)
