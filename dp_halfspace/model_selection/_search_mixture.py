"""Budgets of candidates whose releases are not all Gaussian, for a random number of runs.

A perturbed objective with little regularisation pays for the ratio of Jacobians as for a pure
loss, several times over in a selection. With equal budgets such candidates would set the price
of all. So each gets what it could have if all were like it, times a common factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from dp_halfspace.exceptions import BudgetError
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import Gaussian, MixedSelection
from dp_halfspace.privacy.profiles import gdp_epsilon
from dp_halfspace.privacy.record import PrivacyRecord
from dp_halfspace.privacy.tuning import RunLaw, mixed_selection_event

__all__ = ["plan_mixture", "run_epsilon"]

Params: TypeAlias = dict[str, Any]
Planned: TypeAlias = tuple[tuple[Params, ...], list[PrivacyRecord], MixedSelection]

# Shares of a Gaussian run between which a candidate's own is looked for, and how often the
# interval is halved; the common factor makes up for what that leaves.
_LEAST, _HALVINGS = 0.2, 5
_FACTORS, _FACTOR_HALVINGS = (0.8, 1.2), 6
# Estimators refuse less.
_LEAST_EPSILON = 1e-9


def plan_mixture(
    probe: Callable[[Params], PrivacyRecord],
    grid: Sequence[Params],
    law: RunLaw,
    *,
    mu: float,
    mu_score: float,
    epsilon: float,
    delta: float,
) -> Planned:
    """Give every candidate a budget such that the selection of one of them is within the whole.

    Parameters
    ----------
    probe : callable
        From parameters of a candidate to the record that its fit would leave.
    grid : sequence of dict
        Parameters of the candidates, without a budget.
    law : RunLaw
        Of the number of runs.
    mu : float
        What a run could have if all its releases were Gaussian.
    mu_score : float
        Of the noisy score of a run, below `mu`.
    epsilon, delta : float
        Total budget, delta > 0.

    Returns
    -------
    candidates : tuple of dict
        Parameters with their budgets.
    event : MixedSelection
        Within the budget.

    Raises
    ------
    BudgetError
        If no budgets are found.

    References
    ----------
    ``docs/proofs/selection.md``, section 8.
    """
    mu_train = math.sqrt(mu * mu - mu_score * mu_score)

    def planned(
        params: Sequence[Params], shares: Sequence[float], *, chords: bool
    ) -> Planned | None:
        candidates = tuple(
            {**each, "epsilon": run_epsilon(share * mu_train, delta), "delta": delta}
            for each, share in zip(params, shares, strict=True)
        )
        records = [probe(each) for each in candidates]
        runs = [[*record.events, Gaussian(mu_score)] for record in records]
        event = mixed_selection_event(law, runs, chords=chords)
        fits = accounting.delta([event], epsilon) <= delta
        return (candidates, records, event) if fits else None

    def alone(each: Params) -> float:
        found, _ = _largest(
            lambda share: planned([each], [share], chords=False), (_LEAST, 1.0), _HALVINGS
        )
        return found

    shares = [alone(each) for each in grid]
    _, plan = _largest(
        lambda factor: planned(grid, [factor * share for share in shares], chords=True),
        _FACTORS,
        _FACTOR_HALVINGS,
    )
    return plan


def run_epsilon(mu: float, delta: float) -> float:
    """Return the epsilon of a run.

    Parameters
    ----------
    mu : float
        What the run may cost, as a Gaussian signal to noise ratio.

    Raises
    ------
    BudgetError
        If it is below what an estimator accepts.

    Examples
    --------
    >>> from dp_halfspace.model_selection._search_mixture import run_epsilon
    >>> round(run_epsilon(0.2, 1e-6), 3)
    0.834
    """
    epsilon = gdp_epsilon(mu, delta)
    if epsilon < _LEAST_EPSILON:
        raise BudgetError(
            "the budget is too small for a search: one run would have next to nothing of it. Use "
            "fewer candidates, a larger epsilon or a smaller delta"
        )
    return epsilon


def _largest(
    planned: Callable[[float], Planned | None], ends: tuple[float, float], halvings: int
) -> tuple[float, Planned]:
    """Find the largest share that fits, about; below the interval if need be."""
    low, high = ends
    found = planned(low)
    while found is None:
        low, high = 0.5 * low, low
        if low < 1e-3 * ends[0]:
            raise BudgetError("the budget is too small for this many candidates")
        found = planned(low)
    for _ in range(halvings):
        middle = math.sqrt(low * high)
        better = planned(middle)
        if better is None:
            high = middle
        else:
            low, found = middle, better
    return low, found
