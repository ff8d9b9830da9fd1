"""Choosing parameters within a privacy budget."""

from dp_halfspace.model_selection.repetition import confidence_repeats
from dp_halfspace.model_selection.search import PrivateSearchCV

__all__ = ["PrivateSearchCV", "confidence_repeats"]
