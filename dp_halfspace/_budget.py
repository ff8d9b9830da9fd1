"""What every estimator with a budget shares: its parameters, and copies that charge one account."""

from __future__ import annotations

import copy
import math
import os
import warnings
from html import escape
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NoReturn

from sklearn.base import BaseEstimator

from dp_halfspace._sklearn_compat import HasMethods, Interval, Options, StrOptions
from dp_halfspace.exceptions import BudgetError, PrivacyWarning

if TYPE_CHECKING:
    from dp_halfspace.privacy.record import PrivacyRecord

# Outside nothing useful can be computed, and accounting would meet the ends of the floats.
_EPSILON_RANGE = (1e-9, 1e6)
_SMALLEST_DELTA = 1e-300
BUDGET: dict[str, list[Any]] = {
    "epsilon": [Interval(Real, *_EPSILON_RANGE, closed="both"), Options(Real, {math.inf})],
    "delta": [
        Interval(Real, _SMALLEST_DELTA, 0.5, closed="left"),
        Options(Real, {0}),
        StrOptions({"auto"}),
    ],
    "random_state": [Interval(Integral, 0, None, closed="left"), None],
    "ledger": [HasMethods("charge"), str, os.PathLike, None],
}


class _LeftBehind:
    """What a pickle holds in place of a ledger that would have been copied: it refuses."""

    def charge(self, record: PrivacyRecord) -> NoReturn:
        """Refuse."""
        raise BudgetError(
            "the ledger of this estimator stayed in the process that pickled it: a copy of it "
            "would be another account. Use a PrivacyLedger with a path, or give the class of the "
            "ledger a __reduce__ that makes another handle on the same account"
        )


def _is_own(ledger: Any) -> bool:
    """Tell whether a ledger is one of this library, which is loaded if one may be."""
    if ledger is None or isinstance(ledger, str | os.PathLike):
        return False
    from dp_halfspace.ledger.ledger import PrivacyLedger  # noqa: PLC0415

    return isinstance(ledger, PrivacyLedger)


def opened_ledger(ledger: Any) -> Any:
    """Return the ledger that a parameter stands for: see `open_ledger`, which is loaded for it.

    That is a data base, which a fit without a ledger does without.
    """
    if ledger is None:
        return None
    from dp_halfspace.ledger.ledger import open_ledger  # noqa: PLC0415

    return open_ledger(ledger)


def _is_handle(ledger: Any) -> bool:
    """Whether a pickle of it is known to stand for the same account."""
    if ledger is None or isinstance(ledger, str | os.PathLike) or _is_own(ledger):
        return True
    # The default of Python copies what the object holds, the amount spent included.
    return any(
        getattr(type(ledger), name) is not getattr(object, name)
        for name in ("__reduce__", "__reduce_ex__")
    )


class SharedLedger(BaseEstimator):
    """An estimator with a parameter ``ledger`` that no copy of it copies.

    A copied ledger would let every fold of a cross-validation spend the whole budget again.
    """

    ledger: Any

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
        if _is_own(params.get("ledger")):
            params["ledger"] = params["ledger"].handle
        return dict(params)

    def _repr_html_inner(self) -> str:
        """Show the budget below what scikit-learn shows of an estimator."""
        spent = getattr(self, "privacy_", None)
        text = "Nothing has been spent yet." if spent is None else f"Spent: {spent!r}"
        return f"{super()._repr_html_inner()}<p>{escape(text)}</p>"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = dict(super()._repr_mimebundle_(**kwargs))
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    def __sklearn_clone__(self) -> Any:
        bare = copy.copy(self)
        bare.ledger = None
        twin = BaseEstimator.__sklearn_clone__(bare)
        twin.ledger = self.ledger
        return twin

    def __copy__(self) -> Any:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        # What the memo holds is taken from there instead of being copied.
        ledger = self.__dict__.get("ledger")
        memo[id(ledger)] = ledger
        twin = memo[id(self)] = object.__new__(type(self))
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if not _is_handle(state.get("ledger")):
            state["ledger"] = _LeftBehind()
        return state


def warn_of_units(n_samples: int, n_columns: int, epsilon: float, *, level: int) -> None:
    """Warn that the budget is too small for the units of columns; of public numbers alone."""
    warnings.warn(
        f"epsilon={epsilon:g} for {n_samples} records is too little to learn the units of "
        f"{n_columns} columns, which are taken as they are: unless their scales are alike, the "
        "model may know no more than the majority class. Give units that are public (a range of "
        "each column, or data_norm), fewer columns or a larger epsilon",
        PrivacyWarning,
        stacklevel=level,
    )


def warn_of_sparse_columns(*, level: int) -> None:
    """Warn that the scales of sparse columns are not learnt; storage is public."""
    warnings.warn(
        "X is sparse, so the scales of its columns are not learnt: give dense columns "
        "(sparse_threshold=0, sparse_output=False) or the PUBLIC length of a row, data_norm, "
        "which silences this warning",
        PrivacyWarning,
        stacklevel=level,
    )
