"""Every metric that can be released: its requirements, counts, cost and estimator, in one entry."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.metrics import _intervals as intervals
from dp_halfspace.metrics import _tallies as tallies


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes
    ----------
    sensitivity : tuple of int and float
        l1 and l2 sensitivity of the counts under replacement of one record, or one person.
        Derivation: ``docs/proofs/metrics.md``, sections 1 and 3.
    tally : callable
        Computes the counts from the model outputs for the records, their class indices and `Cells`.
    estimate : callable
        Computes from the `Released` counts a value and the ends of its interval.
    outcome : callable
        The model output for each record.
    methods : tuple of str
        The model must have one of these.
    is_binary : bool
        Whether there must be two classes.
    has_positive : bool
        Whether it is another number if the two classes change places.
    has_cells : bool
        Whether scores are counted in cells, whose borders are public or released first.
    majority : callable or None
        Estimates the share of the majority class from the `Released` counts; None if they do not
        count classes.
    in_group : callable or None
        Computes a value and an interval from the noisy confusion matrix of one group of records.
    largest : float
        The largest value that the metric can have; the smallest one is 0.
    """

    sensitivity: tuple[int, float]
    tally: Callable[..., NDArray[np.float64]]
    estimate: Callable[[intervals.Released], intervals.Estimate]
    outcome: Callable[..., NDArray[Any]] = tallies.predicted_classes
    methods: tuple[str, ...] = ("predict",)
    is_binary: bool = False
    has_positive: bool = False
    has_cells: bool = False
    majority: Callable[[intervals.Released], intervals.Estimate] | None = intervals.majority_share
    in_group: Callable[[intervals.Released], intervals.Estimate] | None = None
    largest: float = 1.0


_TWO_CELLS = (2, math.sqrt(2.0))


def _of_confusions(numerator: list[int], denominator: list[int]) -> Metric:
    """Return a metric of two classes: a ratio by weights of the confusions, row by row."""
    estimate = partial(intervals.ratio_in_table, numerator=numerator, denominator=denominator)
    counts = tallies.count_confusions
    return Metric(
        _TWO_CELLS, counts, estimate, is_binary=True, has_positive=True, in_group=estimate
    )


def _of_scores(
    estimate: Callable[[intervals.Released], intervals.Estimate], *, has_positive: bool
) -> Metric:
    """Return a metric of two classes that is a function of the counts of scores in cells."""
    return Metric(
        _TWO_CELLS,
        tallies.count_scores,
        estimate,
        outcome=tallies.scores_of,
        methods=("predict_proba", "decision_function"),
        is_binary=True,
        has_positive=has_positive,
        has_cells=True,
    )


# Other names of metrics.
ALIASES = {"auc": "roc_auc"}
METRICS: dict[str, Metric] = {
    "accuracy": Metric(
        # A correct prediction counts `RIGHT` units, and the class of its record one.
        (tallies.RIGHT + 2, math.sqrt(tallies.RIGHT**2 + 2.0)),
        tallies.count_right_beside_classes,
        intervals.share_of_right,
        majority=intervals.majority_beside,
        in_group=intervals.accuracy_in_table,
    ),
    "average_precision": _of_scores(intervals.average_precision, has_positive=True),
    "balanced_accuracy": Metric(
        _TWO_CELLS,
        tallies.count_right_by_class,
        intervals.mean_recall,
        in_group=intervals.mean_recall_in_table,
    ),
    "confusion_matrix": Metric(
        _TWO_CELLS, tallies.count_confusions, intervals.counts_of_records, largest=math.inf
    ),
    "f1": _of_confusions([0, 0, 0, 2], [0, 1, 1, 2]),
    "log_loss": Metric(
        (tallies.SCALE, float(tallies.SCALE)),
        tallies.sum_losses,
        intervals.mean_log_loss,
        outcome=tallies.log_losses_of,
        methods=("predict_proba",),
        majority=None,
        largest=tallies.LARGEST_LOG_LOSS,
    ),
    "precision": _of_confusions([0, 0, 0, 1], [0, 1, 0, 1]),
    "recall": _of_confusions([0, 0, 0, 1], [0, 0, 1, 1]),
    "roc_auc": _of_scores(intervals.area_under_curve, has_positive=False),
}
