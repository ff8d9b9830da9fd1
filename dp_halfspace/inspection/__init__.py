"""Inspection of private models, before and after the fit.

Planning of the accuracy for a budget, displays of a model, and the card of a
model. The functions of the theorems are in :mod:`dp_halfspace.theory`.
"""

from dp_halfspace._pipelines import PipelineFinding as PipelineFinding
from dp_halfspace._pipelines import check_pipeline as check_pipeline
from dp_halfspace.estimators._outlook import Outlook as Outlook
from dp_halfspace.inspection.accuracy_plan import AccuracyPlan as AccuracyPlan
from dp_halfspace.inspection.accuracy_plan import outlook as outlook
from dp_halfspace.inspection.accuracy_plan import plan_accuracy as plan_accuracy
from dp_halfspace.inspection.card import model_card as model_card
from dp_halfspace.inspection.coefficients import NaturalCoefficients as NaturalCoefficients
from dp_halfspace.inspection.coefficients import natural_coefficients as natural_coefficients
from dp_halfspace.inspection.effect_displays import ColumnEffect as ColumnEffect
from dp_halfspace.inspection.effect_displays import EffectsDisplay as EffectsDisplay
from dp_halfspace.inspection.onnx_export import to_onnx as to_onnx
