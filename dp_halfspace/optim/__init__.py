"""Optimisation: losses with their constants, risks, and minimisers with a certificate."""

from typing import TYPE_CHECKING

from dp_halfspace._lazy import lazy_names

if TYPE_CHECKING:
    from dp_halfspace.optim.losses import Loss as Loss
    from dp_halfspace.optim.losses import get_loss as get_loss
    from dp_halfspace.optim.losses import softmax_diameter as softmax_diameter
    from dp_halfspace.optim.risks import MarginRisk as MarginRisk
    from dp_halfspace.optim.risks import SoftmaxRisk as SoftmaxRisk
    from dp_halfspace.optim.risks import empirical_risk as empirical_risk
    from dp_halfspace.optim.risks import minimiser_radius as minimiser_radius
    from dp_halfspace.optim.risks import minimisers as minimisers
    from dp_halfspace.optim.risks import tolerance as tolerance
    from dp_halfspace.optim.solvers import FiniteSum as FiniteSum
    from dp_halfspace.optim.solvers import certified_minimum as certified_minimum

_HOMES = {
    "dp_halfspace.optim.losses": ("Loss", "get_loss", "softmax_diameter"),
    "dp_halfspace.optim.risks": (
        "MarginRisk",
        "SoftmaxRisk",
        "empirical_risk",
        "minimiser_radius",
        "minimisers",
        "tolerance",
    ),
    "dp_halfspace.optim.solvers": ("FiniteSum", "certified_minimum"),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
