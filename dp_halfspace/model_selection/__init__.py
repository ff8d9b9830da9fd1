"""Choosing parameters within a privacy budget."""

from typing import TYPE_CHECKING

from dp_halfspace._lazy import lazy_names

if TYPE_CHECKING:
    from dp_halfspace.model_selection._search_runs import RobustAccuracy as RobustAccuracy
    from dp_halfspace.model_selection.prefit import (
        PrivateConformalClassifier as PrivateConformalClassifier,
    )
    from dp_halfspace.model_selection.prefit import (
        PrivateThresholdClassifier as PrivateThresholdClassifier,
    )
    from dp_halfspace.model_selection.search import PrivateSearchCV as PrivateSearchCV
    from dp_halfspace.model_selection.search import confidence_repeats as confidence_repeats

_HOMES = {
    "dp_halfspace.model_selection._search_runs": ("RobustAccuracy",),
    "dp_halfspace.model_selection.prefit": (
        "PrivateConformalClassifier",
        "PrivateThresholdClassifier",
    ),
    "dp_halfspace.model_selection.search": ("PrivateSearchCV", "confidence_repeats"),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
