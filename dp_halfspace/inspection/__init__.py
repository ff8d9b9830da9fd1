"""Look at a private model before and after it is made.

Bounds on what a budget can give, from public quantities; a text of what a fitted
estimator spent; and pictures of accuracy against the budget.
"""

from dp_halfspace.inspection.bounds import (
    convex_excess_risk,
    optimal_regularization,
    strongly_convex_excess_risk,
)
from dp_halfspace.inspection.displays import AccuracyPanel, EpsilonAccuracyDisplay
from dp_halfspace.inspection.margin_bound import margin_risk_bound
from dp_halfspace.inspection.report import privacy_report

__all__ = [
    "AccuracyPanel",
    "EpsilonAccuracyDisplay",
    "convex_excess_risk",
    "margin_risk_bound",
    "optimal_regularization",
    "privacy_report",
    "strongly_convex_excess_risk",
]
