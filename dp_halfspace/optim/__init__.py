"""Optimisation: losses with their constants, and minimisers that certify a public tolerance."""

from dp_halfspace.optim.attack import Attack
from dp_halfspace.optim.black_box import FiniteSum
from dp_halfspace.optim.clipping import clip_scales
from dp_halfspace.optim.erm import ErmPlan, RidgeProblem, minimise, plan_erm
from dp_halfspace.optim.erm_ridge import automatic_ridge
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
from dp_halfspace.optim.pairwise import PairwiseObjective
from dp_halfspace.optim.pairwise_bounds import (
    PairwiseProblem,
    default_normaliser,
    pairwise_corners,
    pairwise_gradient_change,
    pairwise_jacobian_log_ratio,
    pairwise_radius,
    pairwise_ridge_floor,
    pairwise_sensitivity,
)
from dp_halfspace.optim.pairwise_noise import PairwiseLinearTerm, pairwise_linear_term
from dp_halfspace.optim.pairwise_tolerance import pairwise_tolerance
from dp_halfspace.optim.robust_objective import RobustObjective
from dp_halfspace.optim.rows import Rows, block_size, clipped_rows
from dp_halfspace.optim.softmax_gradients import softmax_diameter
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
    "Attack",
    "ErmPlan",
    "FiniteSum",
    "HingeTolerance",
    "Loss",
    "MarginObjective",
    "Objective",
    "PairwiseLinearTerm",
    "PairwiseObjective",
    "PairwiseProblem",
    "RidgeProblem",
    "RobustObjective",
    "Rows",
    "SoftmaxObjective",
    "Tolerance",
    "automatic_ridge",
    "block_size",
    "certified_hinge",
    "certified_minimum",
    "clip_scales",
    "clipped_rows",
    "default_normaliser",
    "get_loss",
    "gradient_tolerance",
    "hinge_tolerance",
    "huber_hinge",
    "logistic_diameter",
    "minimise",
    "minimiser_radius",
    "minimiser_sensitivity",
    "pairwise_corners",
    "pairwise_gradient_change",
    "pairwise_jacobian_log_ratio",
    "pairwise_linear_term",
    "pairwise_radius",
    "pairwise_ridge_floor",
    "pairwise_sensitivity",
    "pairwise_tolerance",
    "plan_erm",
    "shifted_logistic",
    "smoothed_hinge",
    "softmax_diameter",
    "softmax_radius",
    "softmax_sensitivity",
    "softmax_tolerance",
]
