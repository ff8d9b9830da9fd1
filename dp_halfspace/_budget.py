"""Base of all estimators with a budget: its parameters, its ledger, and warnings about both."""

from __future__ import annotations

import copy
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from dp_halfspace._params import EPSILON_RANGE, check_values, fit_context, storable
from dp_halfspace._pipelines import findings_of_pipeline
from dp_halfspace._repeated_fits import OF_PAIRS, warn_of_repeated_fits
from dp_halfspace._rounding import TINY
from dp_halfspace._silence import IGNORED_WARNINGS
from dp_halfspace._sklearn_compat import HasMethods, Interval, Options, StrOptions, calls_of_sklearn
from dp_halfspace.exceptions import warn_caller
from dp_halfspace.privacy.mechanisms import Permit, authorise
from dp_halfspace.privacy.randomness import noise_kind, noise_source
from dp_halfspace.privacy.record import PrivacyRecord, unit_of

# From this epsilon on a fit warns that the guarantee is weak.
_WEAK_EPSILON = 10.0
# Pattern of the warnings of a weak guarantee.
WEAK_GUARANTEE = "epsilon=\\S+ is a weak guarantee|delta=\\S+ is more than 1/n"
BUDGET: dict[str, list[Any]] = {
    "epsilon": [Interval(Real, *EPSILON_RANGE, closed="both"), Options(Real, {math.inf})],
    "delta": [
        # Below this number accounting would underflow, and a fit would be useless.
        Interval(Real, TINY, 0.5, closed="left"),
        Options(Real, {0}),
        StrOptions({"auto"}),
    ],
    "random_state": [Interval(Integral, 0, None, closed="left"), None],
    "ledger": [HasMethods("charge"), str, os.PathLike, None],
}


def opened_ledger(ledger: Any, estimator: str, plan: Callable[[float], PrivacyRecord]) -> Any:
    """Return the ledger of a parameter, opened by `open_ledger`, or None.

    Entries of a `PrivacyLedger` state the class or function `estimator` that is charged, and its
    refusals name an epsilon for which the record of the `plan` is accepted. The module of the
    ledger loads a database, so it is imported only if there is a ledger.
    """
    if ledger is None:
        return None
    from dp_halfspace.ledger.ledger import PrivacyLedger, open_ledger  # noqa: PLC0415 - see above

    opened = open_ledger(ledger)
    if not isinstance(opened, PrivacyLedger):
        _refuse_copied_accounts(type(opened))
    # A ledger of the user may have nothing but the method `charge`.
    return opened.for_estimator(estimator, plan) if hasattr(opened, "for_estimator") else opened


def _refuse_copied_accounts(kind: type) -> None:
    """Refuse a class of ledgers of which a copy or a pickle would be an account of its own."""
    own = {name for base in kind.__mro__[:-1] for name in vars(base)}
    if "__deepcopy__" not in own or not own & {"__reduce__", "__reduce_ex__"}:
        raise TypeError(
            f"the ledger is a {kind.__name__}, and a clone or a pickle of an estimator would hold "
            "a separate account: give this class a __deepcopy__ that returns the same object "
            "and a __reduce__ that opens the same account or raises, or use a PrivacyLedger"
        )


class SharedLedger(BaseEstimator):
    """An estimator with a budget, whose parameters are plain and whose clones share its ledger.

    A ledger refuses to be copied by itself, and a clone keeps the object, which may state a purpose
    that its text does not.
    """

    epsilon: float
    random_state: int | None
    ledger: Any

    _adjacency: ClassVar[str] = "replace-one"
    # The validated data of a fit, and the plan and the record of a fit to them.
    _training_data: Callable[..., Any]
    _planned: Callable[..., tuple[Any, PrivacyRecord]]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; a `PrivacyLedger` appears as the text that stands for it.

        Parameters
        ----------
        deep : bool, default=True
            Whether to list the parameters of an estimator among the parameters, too.

        Returns
        -------
        dict
            Plain values, where those given were plain, that make an estimator with this ledger.
        """
        params = super().get_params(deep)
        # There is no such ledger unless its module is loaded.
        module = sys.modules.get("dp_halfspace.ledger.ledger")
        if module is not None and isinstance(params.get("ledger"), module.PrivacyLedger):
            params["ledger"] = params["ledger"].handle
        return dict(params)

    @fit_context
    def _plans(self, *data: Any, **options: Any) -> Callable[[float], PrivacyRecord]:
        """Return the record of `plan` as a function of epsilon; the data are validated once."""
        return partial(self._record_with, self._training_data(*data, **options))

    def _record_with(self, data: Any, epsilon: float) -> PrivacyRecord:
        """Return the record of a fit with another epsilon, without warnings."""
        check_values({"epsilon": BUDGET["epsilon"]}, {"epsilon": epsilon}, type(self).__name__)
        other = copy.copy(self)
        other.epsilon = epsilon
        with IGNORED_WARNINGS, np.errstate(all="ignore"):
            return other._planned(data)[1]

    def _record_of(
        self, plan: Any, delta: float, people: Any, public: Mapping[str, Any]
    ) -> PrivacyRecord:
        """Return the record of planned releases and of what a fit treats as public."""
        return PrivacyRecord(
            epsilon=float(self.epsilon),
            delta=delta,
            adjacency=self._adjacency if people is None else "replace-one-person",
            events=plan.events,
            noise=noise_kind(self.random_state, self.epsilon),
            public={**public, **plan.public},
        )

    def _permit_for(self, record: PrivacyRecord, data: Any, ledger: Any, X: Any) -> Permit:
        """Charge the ledger before any noise is drawn; return the permit for the releases.

        Refusals name an epsilon with which the same fit is accepted.
        """
        opened = opened_ledger(ledger, type(self).__name__, partial(self._record_with, data))
        warn_of_repeated_fits(type(self), record, opened, X)
        return authorise(record, noise_source(self.random_state), opened)

    def __sklearn_clone__(self) -> Any:
        twin = BaseEstimator.__sklearn_clone__(self)
        twin.ledger = self.ledger
        return twin

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        for name in {*self._get_param_names()} & {*state} - {"ledger"}:
            state[name] = storable(state[name])
        return state


def warn_of_scales(n_samples: int, n_columns: int, epsilon: float) -> None:
    """Warn that the budget is too small for column scales; decided from public numbers alone."""
    warn_caller(
        f"epsilon={epsilon:g} is too small to estimate the scales of {n_columns} columns from "
        f"{n_samples} records or persons, so the columns are not scaled: if their scales differ, "
        "the model may be no better than the majority class. State public scales (a range of each "
        "column, or data_norm), use fewer columns or a larger epsilon"
    )


def warn_of_weak_budget(record: PrivacyRecord) -> None:
    """Warn, by public facts only, if a budget gives a weak guarantee."""
    epsilon, delta, n = record.epsilon, record.delta, dict(record.public)["n_samples"]
    unit = unit_of(record)
    if _WEAK_EPSILON <= epsilon < math.inf:
        warn_caller(
            f"epsilon={epsilon:g} is a weak guarantee: one {unit} may change the odds of every "
            f"conclusion by a factor of up to exp({epsilon:g}). Choose epsilon below "
            f"{_WEAK_EPSILON:g}; summary() of privacy_ states what an attacker can gain"
        )
    if delta > 1.0 / n:
        warn_caller(
            f"delta={delta:g} is more than 1/n for {n} {unit}s: such a delta permits publishing "
            'one of them in full. Choose a delta far below 1/n, or "auto"'
        )


def warn_of_calls_around(record: PrivacyRecord) -> None:
    """Warn of pipeline steps that read the records.

    A fit to pairs of labels of more than two stated ones is refused. The decision depends on the
    running calls of scikit-learn and their parameters.
    """
    calls = calls_of_sklearn()
    if not calls:
        return
    n_classes = len(dict(record.public).get("classes", ()))
    # A worker runs only the function of their module that fits one pair.
    if n_classes > 2 and any(place.startswith("sklearn.multiclass.") for place, _ in calls):
        raise ValueError(
            f"classes states {n_classes} labels, and {', '.join(OF_PAIRS)} replace them by two "
            "others in each of their fits: state classes=[0, 1] (of OutputCodeClassifier [-1, 1]), "
            "or fit this classifier itself, if it takes more than two classes"
        )
    findings = findings_of_pipeline(calls)
    found = [f"{each.step} reads {each.reads}; instead use {each.instead}" for each in findings]
    if found:
        warn_caller(
            "steps of this pipeline learn from the records, which the guarantee of a fit does not "
            f"cover: {'. '.join(found)}. Wrap one that was fitted to public data in FrozenEstimator"
        )


def warn_of_label_among_columns(y: Any, names: Iterable[str]) -> None:
    """Warn if the model reads a column with the name of `y`, or of its one column.

    Names are public.
    """
    # An attribute of a series may also be the label of the record with this name.
    kinds = [kind for kind in ("column_names", "columns") if hasattr(type(y), kind)]
    columns: Any = getattr(y, kinds[0]) if kinds else ()
    name = columns[0] if len(columns) == 1 else getattr(y, "name", None)
    if isinstance(name, str) and name in names:
        useless = "a model that reads the labels as a feature is useless for new records"
        warn_caller(f"X has a column {name!r}, and y has this name: {useless}. Leave it out of X")
