"""Optimisation: losses with their constants, and minimisers that certify a public tolerance."""

from dp_halfspace.optim.clipping import clip_scales
from dp_halfspace.optim.erm import ErmPlan, RidgeProblem, automatic_ridge, minimise, plan_erm
from dp_halfspace.optim.hinge import HingeTolerance, certified_hinge, hinge_tolerance
from dp_halfspace.optim.losses import (
    HINGE,
    LOGISTIC,
    SQUARED,
    SQUARED_HINGE,
    Loss,
    get_loss,
    huber_hinge,
    shifted_logistic,
    smoothed_hinge,
)
from dp_halfspace.optim.minimum import certified_minimum
from dp_halfspace.optim.objectives import MarginObjective, Objective, SoftmaxObjective
from dp_halfspace.optim.rows import Rows, block_size, clipped_rows
from dp_halfspace.optim.stability import (
    logistic_diameter,
    minimiser_radius,
    minimiser_sensitivity,
    softmax_radius,
    softmax_sensitivity,
)
from dp_halfspace.optim.tolerance import Tolerance, gradient_tolerance, softmax_tolerance

__all__ = [
    "HINGE",
    "LOGISTIC",
    "SQUARED",
    "SQUARED_HINGE",
    "ErmPlan",
    "HingeTolerance",
    "Loss",
    "MarginObjective",
    "Objective",
    "RidgeProblem",
    "Rows",
    "SoftmaxObjective",
    "Tolerance",
    "automatic_ridge",
    "block_size",
    "certified_hinge",
    "certified_minimum",
    "clip_scales",
    "clipped_rows",
    "get_loss",
    "gradient_tolerance",
    "hinge_tolerance",
    "huber_hinge",
    "logistic_diameter",
    "minimise",
    "minimiser_radius",
    "minimiser_sensitivity",
    "plan_erm",
    "shifted_logistic",
    "smoothed_hinge",
    "softmax_radius",
    "softmax_sensitivity",
    "softmax_tolerance",
]
