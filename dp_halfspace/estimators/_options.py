"""Options that several estimators have: tilts, adversaries and projections."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from dp_halfspace._params import is_public_number
from dp_halfspace.engine.plan import PublicFacts
from dp_halfspace.exceptions import warn_caller
from dp_halfspace.optim.losses import Loss
from dp_halfspace.optim.objectives import Adversary
from dp_halfspace.optim.risks import MarginRisk
from dp_halfspace.projection import (
    PROJECTIONS,
    LinearMap,
    draw_projection,
    jl_dimension,
)

# Largest weight of a single record without a warning, relative to the weight of all others.
_RECORD_SHARE = 0.1
# Largest noise without a warning, relative to that without a tilt.
_NOISE_FACTOR = 10.0


def checked_tilt(tilt: float) -> float:
    """Return the tilt, or raise if the tilted risk is not convex."""
    if tilt != 0.0 and not is_public_number(tilt):
        raise ValueError(
            "tilt must be 0, or between 1e-50 and 1e50. A negative tilt, which "
            "reduces the weight of the largest losses, is not a convex problem, and "
            "an infinite one has no bounded sensitivity: use tilt=0 for the mean "
            "loss, a larger tilt for larger weights of the largest losses"
        )
    return float(tilt)


def planned_attack(
    radius: float, norm: Literal[2, "inf"], smoothing: float, *, loss: Loss, facts: PublicFacts
) -> Adversary | None:
    """Return the adversary of a fit, or None without one.

    `radius` is in the units of the data, `smoothing` in units of ``1 / data_norm``; the constant
    column is not attacked.
    """
    data_norm = facts.data_norm
    if radius != 0.0 and not facts.is_scale_stated:
        raise ValueError(
            "adversary_radius is in the units of the columns: give data_norm, the PUBLIC "
            "scale of a row in these units, too"
        )
    if radius != 0.0 and not (is_public_number(radius) and radius < data_norm):
        # The whole norm of a row can be in one column, so the limit is the same for both norms.
        raise ValueError(
            "adversary_radius must be 0, or at least 1e-50 and less than data_norm: "
            "an adversary who moves rows by their largest norm can move every row to "
            "zero, so that all coefficients are zero. Use a smaller adversary_radius, "
            "in the units of the columns, or 0 for no adversary"
        )
    if radius == 0.0:
        return None
    if not loss.monotone:
        raise ValueError(
            f"adversary_radius needs a loss that falls with the margin, and loss={loss.name!r} "
            "rises beyond 1. Use 'squared_hinge', 'logistic' or another hinge, or "
            "adversary_radius=0"
        )
    return Adversary(float(radius), norm, facts.n_features, float(smoothing) / data_norm)


def warn_of_tilt(risk: MarginRisk, ridge: float) -> None:
    """Warn if single records can have so much weight that the noise exceeds the sum of all.

    Regulariser and risk are public, so the warning reveals nothing about the data.
    """
    factor = risk.influence(ridge)
    share = factor / risk.n_samples
    if factor > _NOISE_FACTOR and share > _RECORD_SHARE / (1.0 + _RECORD_SHARE):
        warn_caller(
            f"with tilt={risk.tilt:g} and alpha={ridge:.3g} one record can have "
            f"{100 * share:.0f} % of all the weight, and the noise is {factor:.0f} times that of "
            "tilt=0 at the same alpha. Use alpha='auto', a larger alpha or a smaller tilt"
        )


def draw_map(
    kind: str | None, n_features: int, n_components: int, rng: np.random.Generator
) -> LinearMap | None:
    """Draw a public projection, if one is wanted."""
    return None if kind is None else draw_projection(kind, n_features, n_components, rng)


# The error of a projected score is about one over the square root of the number of components: half
# of the margin at this value.
_PER_SQUARE = 4.0


def warn_of_projection(
    kind: str | None, n_drawn: int | None, *, n_columns: int, n_samples: int, margin: float | None
) -> None:
    """Warn if a requested projection is not applied, or destroys a known margin.

    `n_drawn` is the number of components, or None if no map was drawn for rows of `n_columns`.
    """
    if kind not in PROJECTIONS:
        return
    if n_drawn is None:
        wanted = "" if margin is None else f" (jl_dimension: {jl_dimension(margin, n_samples)})"
        warn_caller(
            f"projection={kind!r} draws no map: it would have as many components as the {n_columns}"
            f" columns, or more{wanted}. State a smaller n_components, or use projection=None"
        )
    elif margin is not None and n_drawn < _PER_SQUARE / margin**2:
        warn_caller(
            f"n_components={n_drawn} is far below what a margin of {margin:g} needs: scores change "
            f"by more than half of it. Use {math.ceil(_PER_SQUARE / margin**2)} or more, or "
            "projection=None"
        )
