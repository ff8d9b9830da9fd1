"""Optimisation: losses with their constants, risks, and minimisers with a certificate."""

from typing import TYPE_CHECKING

from dp_halfspace._lazy import lazy_names

if TYPE_CHECKING:
    from dp_halfspace.optim.certificate import Tolerance as Tolerance
    from dp_halfspace.optim.losses import HINGE as HINGE
    from dp_halfspace.optim.losses import LOGISTIC as LOGISTIC
    from dp_halfspace.optim.losses import SQUARED as SQUARED
    from dp_halfspace.optim.losses import SQUARED_HINGE as SQUARED_HINGE
    from dp_halfspace.optim.losses import Loss as Loss
    from dp_halfspace.optim.losses import get_loss as get_loss
    from dp_halfspace.optim.losses import huber_hinge as huber_hinge
    from dp_halfspace.optim.losses import shifted_logistic as shifted_logistic
    from dp_halfspace.optim.losses import softmax_diameter as softmax_diameter
    from dp_halfspace.optim.objectives import Adversary as Adversary
    from dp_halfspace.optim.objectives import MarginObjective as MarginObjective
    from dp_halfspace.optim.objectives import Objective as Objective
    from dp_halfspace.optim.objectives import SoftmaxObjective as SoftmaxObjective
    from dp_halfspace.optim.risks import MarginRisk as MarginRisk
    from dp_halfspace.optim.risks import Risk as Risk
    from dp_halfspace.optim.risks import SoftmaxRisk as SoftmaxRisk
    from dp_halfspace.optim.risks import empirical_risk as empirical_risk
    from dp_halfspace.optim.risks import logistic_diameter as logistic_diameter
    from dp_halfspace.optim.risks import minimiser_radius as minimiser_radius
    from dp_halfspace.optim.risks import minimisers as minimisers
    from dp_halfspace.optim.risks import tolerance as tolerance
    from dp_halfspace.optim.solvers import FiniteSum as FiniteSum
    from dp_halfspace.optim.solvers import certified_minimum as certified_minimum

_HOMES = {
    "dp_halfspace.optim.certificate": ("Tolerance",),
    "dp_halfspace.optim.losses": (
        "HINGE",
        "LOGISTIC",
        "SQUARED",
        "SQUARED_HINGE",
        "Loss",
        "get_loss",
        "huber_hinge",
        "shifted_logistic",
        "softmax_diameter",
    ),
    "dp_halfspace.optim.objectives": (
        "Adversary",
        "MarginObjective",
        "Objective",
        "SoftmaxObjective",
    ),
    "dp_halfspace.optim.risks": (
        "MarginRisk",
        "Risk",
        "SoftmaxRisk",
        "empirical_risk",
        "logistic_diameter",
        "minimiser_radius",
        "minimisers",
        "tolerance",
    ),
    "dp_halfspace.optim.solvers": ("FiniteSum", "certified_minimum"),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
