"""Choosing parameters within a privacy budget."""

from dp_halfspace.model_selection._search_runs import RobustAccuracy as RobustAccuracy
from dp_halfspace.model_selection.prefit import (
    PrivateConformalClassifier as PrivateConformalClassifier,
)
from dp_halfspace.model_selection.prefit import (
    PrivateThresholdClassifier as PrivateThresholdClassifier,
)
from dp_halfspace.model_selection.search import PrivateSearchCV as PrivateSearchCV
from dp_halfspace.model_selection.search import confidence_repeats as confidence_repeats
