"""Scores on held-out records that may be published: private, within a budget, with intervals."""

from dp_halfspace.metrics._table import METRICS as METRICS
from dp_halfspace.metrics._table import Metric as Metric
from dp_halfspace.metrics.score import PrivateScore as PrivateScore
from dp_halfspace.metrics.score import private_score as private_score
