"""Look at a private model before and after it is made.

Bounds on what a budget can give, from public quantities; a text of what a fitted
estimator spent; and pictures of accuracy against the budget.
"""

from dp_halfspace.inspection.accuracy_plan import AccuracyPlan, plan_accuracy
from dp_halfspace.inspection.bounds import (
    convex_excess_risk,
    optimal_regularization,
    strongly_convex_excess_risk,
)
from dp_halfspace.inspection.displays import AccuracyPanel, EpsilonAccuracyDisplay
from dp_halfspace.inspection.effects import AdditiveDisplay, ColumnEffect, TableEffectsDisplay
from dp_halfspace.inspection.margin_bound import margin_risk_bound
from dp_halfspace.inspection.pipeline import PipelineFinding, check_pipeline
from dp_halfspace.inspection.population_bound import RiskBound, population_risk_bound
from dp_halfspace.inspection.report import privacy_report
from dp_halfspace.inspection.robust_bounds import adversarial_risk_bound, tilted_risk_bound
from dp_halfspace.inspection.sample_complexity import (
    ErrorLowerBound,
    margin_sample_complexity,
    pure_error_lower_bound,
    pure_lower_bound,
    pure_risk_bound,
)

__all__ = [
    "AccuracyPanel",
    "AccuracyPlan",
    "AdditiveDisplay",
    "ColumnEffect",
    "EpsilonAccuracyDisplay",
    "ErrorLowerBound",
    "PipelineFinding",
    "RiskBound",
    "TableEffectsDisplay",
    "adversarial_risk_bound",
    "check_pipeline",
    "convex_excess_risk",
    "margin_risk_bound",
    "margin_sample_complexity",
    "optimal_regularization",
    "plan_accuracy",
    "population_risk_bound",
    "privacy_report",
    "pure_error_lower_bound",
    "pure_lower_bound",
    "pure_risk_bound",
    "strongly_convex_excess_risk",
    "tilted_risk_bound",
]
