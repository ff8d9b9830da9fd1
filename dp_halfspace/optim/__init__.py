"""Optimisation: losses with their constants, risks, and minimisers with a certificate."""

from typing import TYPE_CHECKING

from dp_halfspace._lazy import lazy_names

if TYPE_CHECKING:
    from dp_halfspace.optim.objectives.adversary import Adversary
    from dp_halfspace.optim.objectives.function import Objective
    from dp_halfspace.optim.objectives.losses import (
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
    from dp_halfspace.optim.objectives.margin import MarginObjective
    from dp_halfspace.optim.objectives.pairs import PairwiseObjective
    from dp_halfspace.optim.objectives.softmax import SoftmaxObjective
    from dp_halfspace.optim.risks.empirical import empirical_risk
    from dp_halfspace.optim.risks.margin import MarginRisk, logistic_diameter, minimiser_radius
    from dp_halfspace.optim.risks.pairs import PairRisk
    from dp_halfspace.optim.risks.risk import Risk, minimisers, tolerance
    from dp_halfspace.optim.risks.softmax import SoftmaxRisk, softmax_diameter
    from dp_halfspace.optim.solvers.black_box import FiniteSum
    from dp_halfspace.optim.solvers.certificate import Tolerance
    from dp_halfspace.optim.solvers.minimum import certified_minimum
    from dp_halfspace.rows.rows import Rows, block_size, clip_scales, clipped_rows

__all__ = [
    "HINGE",
    "LOGISTIC",
    "SQUARED",
    "SQUARED_HINGE",
    "Adversary",
    "FiniteSum",
    "Loss",
    "MarginObjective",
    "MarginRisk",
    "Objective",
    "PairRisk",
    "PairwiseObjective",
    "Risk",
    "Rows",
    "SoftmaxObjective",
    "SoftmaxRisk",
    "Tolerance",
    "block_size",
    "certified_minimum",
    "clip_scales",
    "clipped_rows",
    "empirical_risk",
    "get_loss",
    "huber_hinge",
    "logistic_diameter",
    "minimiser_radius",
    "minimisers",
    "shifted_logistic",
    "smoothed_hinge",
    "softmax_diameter",
    "tolerance",
]

__getattr__ = lazy_names(__name__, __file__)
