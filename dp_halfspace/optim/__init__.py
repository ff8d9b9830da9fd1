"""Optimisation: losses with their constants, risks, and minimisers with a certificate."""

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
