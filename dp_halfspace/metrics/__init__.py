"""Scores on held-out records that may be published: private, within a budget, with intervals."""

from typing import TYPE_CHECKING

from dp_halfspace._lazy import lazy_names

if TYPE_CHECKING:
    from dp_halfspace.metrics._table import METRICS as METRICS
    from dp_halfspace.metrics._table import Metric as Metric
    from dp_halfspace.metrics.score import PrivateScore as PrivateScore
    from dp_halfspace.metrics.score import private_score as private_score

_HOMES = {
    "dp_halfspace.metrics._table": ("METRICS", "Metric"),
    "dp_halfspace.metrics.score": ("PrivateScore", "private_score"),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
