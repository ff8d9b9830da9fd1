"""Warnings of fits that multiply: by a meta-estimator around them, or one after the other.

Whether a warning is given depends on public facts alone: the running calls of scikit-learn and
their parameters, numbers of privacy units and columns, names, label sets, and budgets. With groups,
the number of persons is public, and the number of rows is not looked at.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NamedTuple, cast

from dp_halfspace._pipelines import NOT_PRIVATE, SEVERAL, check_splits
from dp_halfspace._sklearn_compat import calls_of_sklearn
from dp_halfspace.exceptions import RepeatedFitWarning, warn_caller
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import Event, Repeated
from dp_halfspace.privacy.record import PrivacyRecord, rounded_text, unit_of

# Functions and estimators of scikit-learn that fit an estimator several times.
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

_SHARE_A_LEDGER = (
    'Give all fits one ledger, such as ledger=PrivacyLedger("fits.db", epsilon=5, delta=1e-5), '
    "which adds up their budgets and refuses a fit beyond its cap"
)
_LABELS = (
    "{} takes the label set from y, whatever classes states: a single record with a rare label "
    "changes the labels that the fits get, or their number, which no guarantee covers"
)
# What a call does that the fits inside it cannot see.
_UNSEEN = {
    **dict.fromkeys(("VotingClassifier", "OneVsRestClassifier", "OutputCodeClassifier"), _LABELS),
    "BaggingClassifier": f"{_LABELS}. It gives each fit a seed, which its model keeps, so that "
    "anyone can subtract the noise, and unless bootstrap=False some records are in a fit several "
    f"times, which protects them less: instead use {SEVERAL}",
    "permutation_test_score": "{} gives records the labels of others, so that a record is in two "
    "rows of a fit, which protects it less",
}
_IGNORE = "For public or simulated data, ignore the category dp_halfspace.RepeatedFitWarning"
# Libraries whose code calls a fit in place of the user.
_LIBRARIES = ("sklearn", "imblearn", "joblib")

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


# Calls that fit an estimator several times, and how many times ------------------------------------


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


def _warn_of_calls(kind: type, record: PrivacyRecord, *, has_ledger: bool) -> bool:
    """Warn once of a call that fits several times; return whether there is one."""
    around = callers(calls_of_sklearn())
    if not around:
        return False
    caller = around[0]
    # A local variable of the call remembers what was said, which ends with it.
    said = cast("dict[str, Any]", caller.call).setdefault("_dp_halfspace_said", set())
    sentences = []
    if not has_ledger and caller.n_fits != 1 and kind not in said:
        sentences += [_what_fits_cost(caller, kind, record), _SHARE_A_LEDGER]
    if not said:
        is_function = caller.name in FUNCTIONS and not has_ledger
        instead = NOT_PRIVATE.get(caller.name, "private_score on held-out records")
        exact = "uses exact results on the records, so that its result is not private"
        if is_function or caller.name in NOT_PRIVATE:
            sentences.append(f"{caller.name} {exact}: instead use {instead}")
        unseen = {each.name: _UNSEEN[each.name] for each in around if each.name in _UNSEEN}
        sentences += [text.format(name) for name, text in unseen.items()]
        sentences += [text for each in around for text in _what_folds_read(each)]
    if sentences:
        warn_caller(". ".join([*sentences, _IGNORE]), RepeatedFitWarning, beyond=_LIBRARIES)
    said.add(kind)
    return True


def _what_folds_read(caller: Caller) -> Iterator[str]:
    """Say that records may decide the folds of others, by the splitter alone."""
    is_function = caller.name in FUNCTIONS
    cv = caller.call["cv"] if is_function else getattr(caller.call["self"], "cv", None)
    is_chain = caller.name == "ClassifierChain" and cv is not None
    if not (is_function or is_chain or caller.name.endswith("SearchCV")):
        return
    for finding in check_splits("cv", cv):
        why = "so that one record may move others to another fold, and the fits protect it less"
        yield f"{caller.name} reads {finding.reads}, {why}: use cv={finding.instead}"


def _what_fits_cost(caller: Caller, kind: type, record: PrivacyRecord) -> str:
    """Say how many fits there are, and their total budget, as far as both are known."""
    budget = f"epsilon={record.epsilon:g} at delta={record.delta:.3g}"
    count = "several" if caller.n_fits is None else str(caller.n_fits)
    makes = f"{caller.name} makes {count} fits of {kind.__name__}"
    if caller.n_fits is None:
        return f"{makes}, and the budget of each, here {budget}, adds to that of the others"
    total = _total(Counter(record.events), caller.n_fits, record.delta)
    # Fits to few records, or with other parameters, may be planned in another way.
    whom = f"a {unit_of(record)} in all of them"
    return f"{makes}, each with {budget}: together they have about epsilon={total} for {whom}"


def _total(events: Counter[Event], times: int, delta: float) -> str:
    """Return the epsilon of all events, each as often as counted and all of that several times.

    It has three digits, and is rounded up.
    """
    repeated = [Repeated(event, count * times) for event, count in events.items()]
    return rounded_text(accounting.epsilon(repeated, delta), 3)


# Fits one after the other -------------------------------------------------------------------------


# The fits of this process to tables with the same public facts, equal events and deltas together;
# None after the warning.
_TABLES_SEEN: dict[Hashable, Counter[tuple[tuple[Event, ...], float]] | None] = {}


def _count(record: PrivacyRecord, X: Any, *, is_silent: bool) -> None:
    """Count a fit, and warn of the second one to a table with the same public facts."""
    public = dict(record.public)
    n_units = public["n_samples"]
    key = (record.adjacency, n_units, _columns_of(X), tuple(map(repr, public.get("classes", ()))))
    before = _TABLES_SEEN.get(key, Counter())
    if before is None:
        return
    fits = before + Counter([(record.events, record.delta)])
    must_warn = bool(before) and not is_silent
    if must_warn:
        unit, n_fits, delta = unit_of(record), fits.total(), max(delta for _, delta in fits)
        events = Counter(event for (each, _), k in fits.items() for event in each * k)
        same = "columns and classes" if public.get("classes") else "columns"
        own_delta = "" if record.delta == delta else f" at delta={record.delta:.3g}"
        text = (
            f"this is fit {n_fits} of this process to {n_units} {unit}s with the same {same}: if "
            f"the {unit}s are the same, the fits together have epsilon={_total(events, 1, delta)} "
            f"at delta={delta:.3g}, and this one alone {record.epsilon:g}{own_delta}. Further fits "
            "add to it without another warning, and a worker process counts its own fits only"
        )
        # A filter that makes an error of it prevents this fit, which is then not counted.
        warn_caller(f"{text}. {_SHARE_A_LEDGER}. {_IGNORE}", RepeatedFitWarning, beyond=_LIBRARIES)
    _TABLES_SEEN[key] = None if must_warn else fits


def _columns_of(X: Any) -> Hashable:
    """Return the names of the columns of a table, or their number; no cell is read."""
    # An attribute of a frame may also be its column of this name, with all of its cells.
    for name in ("column_names", "columns"):
        if hasattr(type(X), name) and not callable(getattr(X, name)):
            return tuple(map(str, getattr(X, name)))
    shape: Any = getattr(X, "shape", ())
    if len(shape) == 2:
        return int(shape[1])
    # How one row is stored is private: a row of another library may have no length.
    rows = X if isinstance(X, list | tuple) else ()
    return next((len(row) for row in rows if hasattr(row, "__len__")), 0)
