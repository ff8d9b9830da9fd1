"""Choosing parameters within a privacy budget."""

from dp_halfspace.model_selection._search_runs import RobustAccuracy
from dp_halfspace.model_selection.search import PrivateSearchCV, confidence_repeats

__all__ = ["PrivateSearchCV", "RobustAccuracy", "confidence_repeats"]
