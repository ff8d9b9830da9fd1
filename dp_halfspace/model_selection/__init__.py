"""Choosing parameters within a privacy budget."""

from dp_halfspace.model_selection.search import PrivateSearchCV, confidence_repeats

__all__ = ["PrivateSearchCV", "confidence_repeats"]
