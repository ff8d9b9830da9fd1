"""Warnings of fits that multiply: by a meta-estimator around them, or one after the other.

Whether a warning is given depends on public facts alone: the running calls of scikit-learn and
their parameters, numbers of privacy units and columns, names, label sets, and budgets. With groups,
the number of persons is public, and the number of rows is not looked at.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from numbers import Integral
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from sklearn.base import ClassifierMixin

from dp_halfspace._pipelines import library_of, what_it_reads
from dp_halfspace._sklearn_compat import calls_of_sklearn
from dp_halfspace.exceptions import RepeatedFitWarning, warn_caller

if TYPE_CHECKING:
    from dp_halfspace.privacy.events import Event
    from dp_halfspace.privacy.record import PrivacyRecord

_Call: TypeAlias = Mapping[str, Any]
# More kinds of tables than this are not remembered.
_MOST_TABLES = 4096
# Splits of a cross-validation of scikit-learn that does not state their number.
_USUAL_SPLITS = 5
_SHARE_A_LEDGER = (
    'Give all fits one ledger, such as ledger=PrivacyLedger("fits.db", epsilon=5, delta=1e-5), '
    "which adds up their budgets and refuses a fit beyond its cap"
)
_IGNORE = "For public or simulated data, ignore the category dp_halfspace.RepeatedFitWarning"
# Callers that choose by released coefficients alone, so that budgets are all that they need.
_RELEASED_ONLY = ("RFE",)
# Callers whose fits are to different numbers of records, with different budgets.
_OF_MANY_SIZES = ("learning_curve",)
# Digits of a total, which is rounded up.
_DIGITS = 3
# Libraries whose code calls a fit in place of the user.
_LIBRARIES = ("sklearn", "imblearn", "joblib")
_SEVERAL_FITS = "the records many times"

_SAID_BY_WORKERS: dict[str, Any] = {}
_ARE_COUNTED: ContextVar[bool] = ContextVar("are_counted", default=True)


@contextmanager
def fits_not_counted() -> Iterator[None]:
    """Neither count the fits of the block nor warn that they multiply.

    For fits that one record covers together, whose number may be secret, and for fits that release
    nothing.
    """
    token = _ARE_COUNTED.set(False)
    try:
        yield
    finally:
        _ARE_COUNTED.reset(token)


def warn_of_repeated_fits(kind: type, record: PrivacyRecord, ledger: Any, X: Any) -> None:
    """Warn of fits around a fit that is about to be made, or before it, and count it.

    `ledger` is None if nothing adds up the fits, and `kind` is the class that is fitted. Of `X`,
    only the names or the number of columns are read.
    """
    if not _ARE_COUNTED.get() or math.isinf(record.epsilon):
        return
    is_inside = _warn_of_calls(kind, record, has_ledger=ledger is not None)
    if ledger is None:
        _count(record, X, is_silent=is_inside)


# Fits by a call of scikit-learn -------------------------------------------------------------------


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
class _Caller:
    """A call that fits an estimator several times; the number may be unknown."""

    name: str
    n_fits: int | None
    call: _Call
    is_worker: bool


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


def _outermost_caller(calls: Sequence[tuple[str, _Call]]) -> _Caller | None:
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
    return _Caller(name, _times(*(n_fits for _, n_fits, _ in found)), call, is_worker)


def _warn_of_calls(kind: type, record: PrivacyRecord, *, has_ledger: bool) -> bool:
    """Warn once of a call that fits several times; return whether there is one."""
    caller = _outermost_caller(list(calls_of_sklearn()))
    if caller is None:
        return False
    # A worker sees its own part of a call, so it warns once for all calls of a kind. Otherwise a
    # local variable of the call remembers this, which ends with the call and keeps nothing alive.
    said = _SAID_BY_WORKERS if caller.is_worker else cast("dict[str, Any]", caller.call)
    key = "_dp_halfspace_warned_of_" + caller.name * caller.is_worker
    role = key + ("classifiers" if issubclass(kind, ClassifierMixin) else "transformers")
    if role in said:
        return True
    sentences = []
    if not has_ledger and caller.n_fits != 1:
        sentences += [_what_fits_cost(caller, kind, record), _SHARE_A_LEDGER]
    if key not in said:
        sentences += _what_no_budget_covers(caller, has_ledger=has_ledger)
    if sentences:
        text = ". ".join([*sentences, _IGNORE])
        warn_caller(text, RepeatedFitWarning, beyond=_LIBRARIES)
    said[key] = said[role] = True
    return True


def _what_no_budget_covers(caller: _Caller, *, has_ledger: bool) -> list[str]:
    """Say what a call reads of the records beside its fits, and what to use instead."""
    name = caller.name
    if name in _FITS_OF_FUNCTIONS and not has_ledger:
        return [
            f"The result of {name} is an exact function of the records, which no budget covers: "
            "instead use private_score on held-out records"
        ]
    if name not in _FITS or name in _RELEASED_ONLY:
        return []
    reads, instead = what_it_reads(name)
    if reads.startswith(_SEVERAL_FITS):
        return []
    return [f"{name} reads {reads}, so that its result is not private: instead use {instead}"]


def _what_fits_cost(caller: _Caller, kind: type, record: PrivacyRecord) -> str:
    """Say how many fits there are, and their total budget, as far as both are known."""
    budget = f"epsilon={record.epsilon:g} at delta={record.delta:.3g}"
    count = "several" if caller.n_fits is None else str(caller.n_fits)
    makes = f"{caller.name} makes {count} fits of {kind.__name__}"
    if caller.n_fits is None or caller.name in _OF_MANY_SIZES:
        own = ", and a worker process counts its own fits only" if caller.is_worker else ""
        return f"{makes}, and the budget of each, here {budget}, adds to that of the others{own}"
    total = _total(Counter(record.events), caller.n_fits, record.delta)
    # Fits to few records, or with other parameters, may be planned in another way.
    return (
        f"{makes}, each with {budget}: together they have about epsilon={total} for a "
        f"{_unit(record)} that is in all of them"
    )


def _total(events: Counter[Event], times: int, delta: float) -> str:
    """Return the epsilon of all events, each as often as counted and all of that several times."""
    from dp_halfspace.privacy import accounting  # noqa: PLC0415 - heavy, for a warning only
    from dp_halfspace.privacy.events import Repeated  # noqa: PLC0415
    from dp_halfspace.privacy.record import rounded_text  # noqa: PLC0415

    repeated = [Repeated(event, count * times) for event, count in events.items()]
    return rounded_text(accounting.epsilon(repeated, delta), _DIGITS)


def _unit(record: PrivacyRecord) -> str:
    return "person" if record.adjacency == "replace-one-person" else "record"


# Fits one after the other -------------------------------------------------------------------------


@dataclass(slots=True)
class _Fits:
    """The fits of this process to tables with the same public facts."""

    n_fits: int = 0
    delta: float = 0.0
    events: Counter[Event] = field(default_factory=Counter)
    is_said: bool = False


_TABLES: dict[Hashable, _Fits] = {}
_LOCK = Lock()


def forget_fits() -> None:
    """Start to count the fits of this process anew."""
    with _LOCK:
        _TABLES.clear()
        _SAID_BY_WORKERS.clear()


def _count(record: PrivacyRecord, X: Any, *, is_silent: bool) -> None:
    """Count a fit, and warn of the second one to a table with the same public facts."""
    public = dict(record.public)
    n_units = public["n_samples"]
    key = (record.adjacency, n_units, _columns_of(X), tuple(map(repr, public.get("classes", ()))))
    with _LOCK:
        before = _TABLES.get(key, _Fits())
    n_fits, delta = before.n_fits + 1, max(before.delta, record.delta)
    events = before.events + Counter(record.events)
    must_warn = n_fits > 1 and not before.is_said and not is_silent
    if must_warn:
        unit = _unit(record)
        same = "columns and classes" if public.get("classes") else "columns"
        text = (
            f"this is fit {n_fits} of this process to {n_units} {unit}s with the same {same}: if "
            f"the {unit}s are the same, the fits together have epsilon={_total(events, 1, delta)} "
            f"at delta={delta:.3g}, and this one alone {record.epsilon:g}. Further fits add to it "
            "without another warning, and a worker process counts its own fits only"
        )
        # A filter that makes an error of it prevents this fit, which is then not counted.
        warn_caller(
            ". ".join([text, _SHARE_A_LEDGER, _IGNORE]), RepeatedFitWarning, beyond=_LIBRARIES
        )
    is_said = before.is_said or must_warn
    with _LOCK:
        if key not in _TABLES and len(_TABLES) >= _MOST_TABLES:
            _TABLES.pop(next(iter(_TABLES)))
        # What is not needed for a later warning is not kept.
        _TABLES[key] = _Fits(n_fits, delta, Counter() if is_said else events, is_said)


def _columns_of(X: Any) -> Hashable:
    """Return the names of the columns of a table, or their number; no cell is read."""
    for name in ("column_names", "columns"):
        names = getattr(X, name, None)
        if names is not None and not callable(names):
            return tuple(map(str, names))
    shape: Any = getattr(X, "shape", ())
    if len(shape) == 2:
        return int(shape[1])
    return len(X[0]) if isinstance(X, list | tuple) and X and hasattr(X[0], "__len__") else 0
