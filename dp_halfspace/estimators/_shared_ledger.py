"""Copies of an estimator charge the account of the original, whatever object its ledger is."""

from __future__ import annotations

import copy
import os
from typing import Any, NoReturn

from sklearn.base import BaseEstimator

from dp_halfspace.exceptions import BudgetError
from dp_halfspace.privacy.ledger import PrivacyLedger
from dp_halfspace.privacy.record import PrivacyRecord

__all__ = ["SharedLedger"]


class _LeftBehind:
    """What a pickle holds in place of a ledger that would have been copied: it refuses."""

    def charge(self, record: PrivacyRecord) -> NoReturn:
        """Refuse."""
        raise BudgetError(
            "the ledger of this estimator stayed in the process that pickled it: a copy of it "
            "would be another account. Use a PrivacyLedger with a path, or give the class of the "
            "ledger a __reduce__ that makes another handle on the same account"
        )


def _is_handle(ledger: Any) -> bool:
    """Whether a pickle of it is known to stand for the same account."""
    if ledger is None or isinstance(ledger, str | os.PathLike | PrivacyLedger):
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
        return {k: v.handle if isinstance(v, PrivacyLedger) else v for k, v in params.items()}

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
