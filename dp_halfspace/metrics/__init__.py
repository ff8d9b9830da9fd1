"""Scores on held-out records that may be published: private, within a budget, with intervals."""

from dp_halfspace.metrics._table import METRICS, Metric
from dp_halfspace.metrics.score import PrivateScore, private_score

__all__ = ["METRICS", "Metric", "PrivateScore", "private_score"]
