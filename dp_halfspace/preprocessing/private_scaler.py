"""The units of columns, learnt within a budget of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from dp_halfspace._budget import BUDGET, SharedLedger, opened_ledger
from dp_halfspace._params import fit_context, resolved_delta
from dp_halfspace._sklearn_compat import Interval
from dp_halfspace.algorithms.engine.column_scales import CLIP, Units, UnitsPlan, plan_units
from dp_halfspace.data.groups import sorted_by_person
from dp_halfspace.data.people import People
from dp_halfspace.data.validation import check_two_dimensional, is_chunked, unfitted_names
from dp_halfspace.preprocessing.released_scaler import ColumnScaler, check_dense
from dp_halfspace.privacy.mechanisms import authorise
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.randomness import noise_kind, noise_source
from dp_halfspace.privacy.record import PrivacyRecord


@dataclass(eq=False, repr=False)
class PrivateScaler(SharedLedger, ColumnScaler):
    """Learn the centre and the width of every column privately, and bring columns to them.

    Columns may have any units: ages, counts of cells, codes, years, 0 and 1. Noisy counts of
    each column by octave say how wide it is; columns that are narrow beside their distance from
    zero are counted again; two noisy moments correct the result. A classifier with
    ``data_norm=None`` does the same within its own budget, which is cheaper than two fits.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one call of ``fit``, in [1e-9, 1e6], or infinite for no noise and no guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 asks for pure epsilon.
    clip : float, default=4.0
        Widths from the centre beyond which values are cut off.
    random_state : int or None, default=None
        None draws the noise from the operating system. An int makes the fit reproducible and
        raises `PrivacyWarning`: whoever knows it can subtract the noise.
    ledger : object with a method ``charge(record)``, path or None
        Charged before any noise is drawn.

    Attributes
    ----------
    center_ : ndarray of shape (n_features,)
        Released centres.
    scale_ : ndarray of shape (n_features,)
        Released widths, positive: about a standard deviation.
    privacy_ : PrivacyRecord
        What was spent, on what, and what was assumed public.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, when `X` had them.

    See Also
    --------
    PublicScaler : Columns whose ranges are known.

    Notes
    -----
    **Privacy.** ``fit`` is (epsilon, delta)-differentially private under replace-one adjacency,
    of a record or, with `groups`, of a person with all rows: exactly mu-Gaussian private or, with
    ``delta=0``, purely private. Public: the number of rows (of people instead, with `groups`),
    the columns and every parameter. Private: everything else, which values are missing included.
    Source: this project, ``docs/proofs/units.md``, Theorems 3 and 4, ``persons.md``; no paper.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.preprocessing import PrivateScaler
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(55, 12, 5000), rng.normal(260_000, 90_000, 5000)])
    >>> scaler = PrivateScaler(epsilon=1.0).fit(X)
    >>> bool(abs(scaler.transform(X)).mean() < 2)
    True
    """

    epsilon: float = 1.0
    delta: float | str = "auto"
    clip: float = CLIP
    random_state: int | None = None
    ledger: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BUDGET,
        "clip": [Interval(Real, 0.1, 1e6, closed="both")],
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> PrivateScaler:
        """Learn the units within the budget.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Real numbers; NaN stands for a missing one.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,) or None, default=None
            Who each row belongs to: any hashable values. The unit of privacy is then a person
            with all rows. The number of people is public, who has how many rows is not.

        Returns
        -------
        PrivateScaler
            The fitted transformer itself.

        Raises
        ------
        ValueError, BudgetError
            By what is refused of parameters, data and budget: nothing was spent or changed.
        """
        del y
        probe = unfitted_names(self)
        X = check_dense(probe, X, reset=True, hides_rows=groups is not None)
        X, people, _ = sorted_by_person(groups, X)
        plan, record = self._planned(X.shape[0], X.shape[1], people)
        permit = authorise(record, noise_source(self.random_state), opened_ledger(self.ledger))

        units = plan.run(X, permit, people)

        self.__dict__.pop("feature_names_in_", None)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(probe, name):
                setattr(self, name, getattr(probe, name))
        self.center_, self.scale_, self.privacy_ = units.center, units.scale, record
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def plan(self, X: Any, y: Any = None, *, groups: Any = None) -> PrivacyRecord:
        """Say what ``fit`` would spend; nothing is drawn or charged.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Only its shape matters.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,) or None, default=None
            As for ``fit``; of them, only the number of people matters.

        Returns
        -------
        PrivacyRecord
            The record that a fit would carry.

        Notes
        -----
        **Privacy.** A function of public quantities, so calling it costs nothing.
        """
        del y
        if is_chunked(X):
            X = check_dense(unfitted_names(self), X, reset=True)
        else:
            check_two_dimensional(X)
        n_samples, n_features = X.shape if hasattr(X, "shape") else np.shape(X)
        people = sorted_by_person(groups, np.empty((n_samples, 0)))[1]
        return self._planned(n_samples, n_features, people)[1]

    def _planned(
        self, n_samples: int, n_features: int, people: People | None
    ) -> tuple[UnitsPlan, PrivacyRecord]:
        """Fix every public number of a fit."""
        n_samples = n_samples if people is None else len(people)
        epsilon, delta = float(self.epsilon), resolved_delta(self.delta, n_samples)
        is_pure = delta == 0 and math.isfinite(epsilon)
        if is_pure and people is not None:
            raise ValueError("groups needs delta > 0: pure noise is for counts of whole records")
        budget = epsilon if is_pure else gdp_mu(epsilon, delta)
        plan = plan_units(n_samples, n_features, budget, is_pure=is_pure)
        record = PrivacyRecord(
            epsilon=epsilon,
            delta=delta,
            adjacency="replace-one" if people is None else "replace-one-person",
            events=plan.events,
            noise="none" if math.isinf(epsilon) else noise_kind(self.random_state),
            public={"n_samples": n_samples, "n_features": n_features, **plan.public},
        )
        return plan, record

    def _units(self) -> tuple[Units, float]:
        return Units(self.center_, self.scale_), float(self.clip)
