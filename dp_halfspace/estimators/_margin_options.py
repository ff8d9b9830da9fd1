"""Parameters of AdaptiveMarginClassifier that are checked together, before any data are read."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.estimators._robust_options import planned_attack
from dp_halfspace.optim.attack import Attack
from dp_halfspace.optim.losses import LOGISTIC
from dp_halfspace.projection import PROJECTIONS

if TYPE_CHECKING:
    from dp_halfspace.estimators.adaptive_margin import AdaptiveMarginClassifier

__all__ = ["SMALLEST_MARGIN", "checked_margins", "margin_attack"]

# Public numbers are divided by its square; no data set has such a margin.
SMALLEST_MARGIN = 1e-9
# Of the dual norm, in units of the coefficients for rows of norm one: no privacy rests on it.
_SMOOTHING = 1e-3


def checked_margins(
    model: AdaptiveMarginClassifier, n_classes: int, *, is_pure: bool
) -> list[float]:
    """Return the margins given, none for the automatic ones; refuse what cannot be done.

    Parameters
    ----------
    model : AdaptiveMarginClassifier
        Its parameters.
    n_classes : int
    is_pure : bool
        Whether the budget is purely private, and finite.

    Returns
    -------
    list of float

    Raises
    ------
    ValueError
        If parameters do not go together.
    """
    if model.solver == "phased_prox" and (n_classes > 2 or is_pure):
        raise ValueError(
            "Only binary classification is supported by solver='phased_prox', and only "
            "delta > 0: use 'objective_perturbation' or 'noisy_gd'"
        )
    if model.selection == "none":
        if isinstance(model.margin, str):
            return []
        margins = _checked_numbers(model.margin)
        if margins.ndim != 0:
            raise ValueError(
                "margin is a grid, but selection='none': choose a selection, or one margin"
            )
        return [float(margins)]
    if is_pure or model.solver == "objective_perturbation":
        raise ValueError(
            f"selection={model.selection!r} needs a Gaussian solver: delta > 0 and "
            "solver='noisy_gd' or 'phased_prox'"
        )
    if isinstance(model.margin, str):
        return []
    grid = _checked_numbers(model.margin)
    if grid.ndim != 1 or grid.size == 0:
        raise ValueError("margin must be 'auto' or a list of numbers when there is a selection")
    return [float(margin) for margin in grid]


def _checked_numbers(margin: Any) -> NDArray[np.float64]:
    """Return one margin or a grid of them as an array, if all are margins."""
    try:
        numbers = np.asarray(float(margin) if isinstance(margin, Real) else margin)
    except ValueError:
        numbers = np.empty(0, dtype=object)
    is_number = numbers.dtype.kind in "iuf"
    if not is_number or not ((numbers >= SMALLEST_MARGIN) & (numbers <= 1)).all():
        raise ValueError("margin must be 'auto', a number in [1e-9, 1] or a list of such numbers")
    return numbers.astype(np.float64)


def margin_attack(
    model: AdaptiveMarginClassifier, n_features: int, n_classes: int, *, is_pure: bool
) -> Attack | None:
    """Return the adversary in units of the public scale of a row, or None without one.

    Parameters
    ----------
    model : AdaptiveMarginClassifier
        Its parameters.
    n_features, n_classes : int
    is_pure : bool
        Whether the budget is purely private, and finite.

    Returns
    -------
    Attack or None

    Raises
    ------
    ValueError
        If the adversary is out of range, or meets a way to fit that knows none.
    """
    norm = float(model.data_norm)
    attack = planned_attack(
        model.adversary_radius,
        model.adversary_norm,
        0.0,
        loss=LOGISTIC,
        data_norm=norm,
        n_features=n_features,
    )
    if attack is None:
        return None
    if n_classes > 2:
        raise ValueError(
            "Only binary classification is supported with adversary_radius: for more classes use "
            "ObjectivePerturbationClassifier(rows='clipped') or OutputPerturbationClassifier"
        )
    is_default = model.solver == "noisy_gd" and isinstance(model.margin, str)
    if is_pure or not is_default or model.selection != "none":
        raise ValueError(
            "adversary_radius needs solver='noisy_gd', margin='auto', selection='none' and "
            "delta > 0. OutputPerturbationClassifier and "
            "ObjectivePerturbationClassifier(rows='clipped') take it with delta=0 too"
        )
    if model.projection in PROJECTIONS:
        raise ValueError(
            "adversary_radius needs projection='auto' or None: a projection changes the size of a "
            "change of a row"
        )
    return replace(attack, radius=attack.radius / norm, smoothing=_SMOOTHING)
