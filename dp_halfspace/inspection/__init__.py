"""Inspection of private models, before and after the fit.

Planning of the accuracy for a budget, displays of a model, a check of units, and a report of what a
fitted estimator spent. The functions of the theorems are in :mod:`dp_halfspace.theory`; they can be
imported from here as well.
"""

from typing import TYPE_CHECKING

from dp_halfspace._lazy import lazy_names

if TYPE_CHECKING:
    from dp_halfspace._pipelines import PipelineFinding as PipelineFinding
    from dp_halfspace._pipelines import check_pipeline as check_pipeline
    from dp_halfspace.estimators._outlook import Outlook as Outlook
    from dp_halfspace.inspection.accuracy_plan import AccuracyPlan as AccuracyPlan
    from dp_halfspace.inspection.accuracy_plan import outlook as outlook
    from dp_halfspace.inspection.accuracy_plan import plan_accuracy as plan_accuracy
    from dp_halfspace.inspection.card import model_card as model_card
    from dp_halfspace.inspection.card import privacy_report as privacy_report
    from dp_halfspace.inspection.coefficients import NaturalCoefficients as NaturalCoefficients
    from dp_halfspace.inspection.coefficients import UnitFinding as UnitFinding
    from dp_halfspace.inspection.coefficients import check_units as check_units
    from dp_halfspace.inspection.coefficients import natural_coefficients as natural_coefficients
    from dp_halfspace.inspection.effect_displays import ColumnEffect as ColumnEffect
    from dp_halfspace.inspection.effect_displays import EffectsDisplay as EffectsDisplay
    from dp_halfspace.inspection.onnx_export import to_onnx as to_onnx
    from dp_halfspace.theory.bounds import RiskBound as RiskBound
    from dp_halfspace.theory.bounds import convex_excess_risk as convex_excess_risk
    from dp_halfspace.theory.bounds import optimal_regularization as optimal_regularization
    from dp_halfspace.theory.bounds import population_risk_bound as population_risk_bound
    from dp_halfspace.theory.bounds import (
        strongly_convex_excess_risk as strongly_convex_excess_risk,
    )
    from dp_halfspace.theory.margin_bound import margin_risk_bound as margin_risk_bound
    from dp_halfspace.theory.pure_bounds import ErrorLowerBound as ErrorLowerBound
    from dp_halfspace.theory.pure_bounds import margin_sample_complexity as margin_sample_complexity
    from dp_halfspace.theory.pure_bounds import pure_error_lower_bound as pure_error_lower_bound
    from dp_halfspace.theory.pure_bounds import pure_lower_bound as pure_lower_bound
    from dp_halfspace.theory.pure_bounds import pure_risk_bound as pure_risk_bound
    from dp_halfspace.theory.robust_bounds import adversarial_risk_bound as adversarial_risk_bound
    from dp_halfspace.theory.robust_bounds import tilted_risk_bound as tilted_risk_bound

_HOMES = {
    "dp_halfspace._pipelines": ("PipelineFinding", "check_pipeline"),
    "dp_halfspace.estimators._outlook": ("Outlook",),
    "dp_halfspace.inspection.accuracy_plan": ("AccuracyPlan", "outlook", "plan_accuracy"),
    "dp_halfspace.inspection.card": ("model_card", "privacy_report"),
    "dp_halfspace.inspection.coefficients": (
        "NaturalCoefficients",
        "UnitFinding",
        "check_units",
        "natural_coefficients",
    ),
    "dp_halfspace.inspection.effect_displays": ("ColumnEffect", "EffectsDisplay"),
    "dp_halfspace.inspection.onnx_export": ("to_onnx",),
    "dp_halfspace.theory.bounds": (
        "RiskBound",
        "convex_excess_risk",
        "optimal_regularization",
        "population_risk_bound",
        "strongly_convex_excess_risk",
    ),
    "dp_halfspace.theory.margin_bound": ("margin_risk_bound",),
    "dp_halfspace.theory.pure_bounds": (
        "ErrorLowerBound",
        "margin_sample_complexity",
        "pure_error_lower_bound",
        "pure_lower_bound",
        "pure_risk_bound",
    ),
    "dp_halfspace.theory.robust_bounds": ("adversarial_risk_bound", "tilted_risk_bound"),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
