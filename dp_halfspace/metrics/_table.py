"""Every metric that can be released: its requirements, counts, cost and estimator, in one entry."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.metrics import _intervals as intervals
from dp_halfspace.metrics import _tallies as tallies


def _one_row(score: Any) -> Iterator[str]:
    yield score.metric


def _row_of_each_cell(score: Any) -> Iterator[str]:
    yield from (f"{true}, predicted {said}" for true in score.classes for said in score.classes)


def _row_of_each_bin(score: Any) -> Iterator[str]:
    label = score.classes[1]
    yield from (f"{label} where .{k} to .{k + 1} is predicted" for k in range(9))
    yield f"{label} where .9 to 1 is predicted"


def _confusion_display(score: Any) -> Any:
    from sklearn.metrics import ConfusionMatrixDisplay  # noqa: PLC0415 (loads slowly)

    counts = np.rint(score.value).astype(int)
    return ConfusionMatrixDisplay(counts, display_labels=score.classes)


def _precision_recall_display(score: Any) -> Any:
    from sklearn.metrics import PrecisionRecallDisplay  # noqa: PLC0415 (loads slowly)

    assert score.curve is not None
    precision, recall = score.curve
    return PrecisionRecallDisplay(precision, recall, average_precision=score.value)


def _roc_display(score: Any) -> Any:
    from sklearn.metrics import RocCurveDisplay  # noqa: PLC0415 (loads slowly)

    assert score.curve is not None
    return RocCurveDisplay(fpr=score.curve[0], tpr=score.curve[1], roc_auc=score.value)


def _calibration_display(score: Any) -> Any:
    from sklearn.calibration import CalibrationDisplay  # noqa: PLC0415 (loads slowly)

    assert score.curve is not None
    is_known = np.subtract(*score.interval[::-1]) < 1.0
    return CalibrationDisplay(score.curve[0][is_known], score.curve[1][is_known], None)


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
    borders : callable or None
        Public borders of cells of scores, from the model and what the user states.
    curve : callable or None
        The points of the curve, from the counts, the borders and the estimate.
    thresholds : callable or None
        Thresholds that belong to the points of the curve, from the borders.
    by_class : callable or None
        The counts with one row for each class, if the release contains them: the share of the
        majority class follows from them.
    in_group : callable or None
        Computes a value and an interval from the noisy confusion matrix of one group of records.
    largest : float
        The largest value that the metric can have; the smallest one is 0.
    display : callable or None
        A display of scikit-learn for a released `PrivateScore`.
    rows : callable
        Names of the numbers in a printed table, written with this many `digits`.
    """

    sensitivity: tuple[int, float]
    tally: Callable[..., NDArray[np.float64]]
    estimate: Callable[[intervals.Released], intervals.Estimate]
    outcome: Callable[..., NDArray[Any]] = tallies.predicted_classes
    methods: tuple[str, ...] = ("predict",)
    is_binary: bool = False
    borders: Callable[..., NDArray[np.float64] | None] | None = None
    curve: Callable[..., intervals.Curve] | None = None
    thresholds: Callable[..., NDArray[np.float64]] | None = None
    by_class: Callable[[intervals.Released], intervals.Released] | None = None
    in_group: Callable[[intervals.Released], intervals.Estimate] | None = None
    largest: float = 1.0
    display: Callable[[Any], Any] | None = None
    rows: Callable[[Any], Iterator[str]] = _one_row
    digits: int = 3


_TWO_CELLS = (2, math.sqrt(2.0))
# Units that a correct prediction counts, where the class of its record counts one.
_RIGHT_AND_CLASS = (tallies.RIGHT + 2, math.sqrt(tallies.RIGHT**2 + 2.0))


def _of_confusions(estimate: Callable[[intervals.Released], intervals.Estimate]) -> Metric:
    """Return a metric of two classes that is a function of the confusion matrix."""
    return Metric(
        _TWO_CELLS,
        tallies.count_confusions,
        estimate,
        is_binary=True,
        by_class=intervals.classes_by_rows,
        in_group=estimate,
    )


# Other names of metrics.
ALIASES = {"auc": "roc_auc"}
METRICS: dict[str, Metric] = {
    "accuracy": Metric(
        _RIGHT_AND_CLASS,
        tallies.count_right_beside_classes,
        intervals.share_of_right,
        by_class=intervals.classes_beside,
        in_group=intervals.accuracy_in_table,
    ),
    "average_precision": Metric(
        _TWO_CELLS,
        tallies.count_scores,
        intervals.average_precision,
        outcome=tallies.scores_of,
        methods=("predict_proba", "decision_function"),
        is_binary=True,
        borders=tallies.score_borders,
        curve=intervals.precision_recall_curve,
        thresholds=intervals.thresholds_of_cells,
        by_class=intervals.classes_by_rows,
        display=_precision_recall_display,
    ),
    "balanced_accuracy": Metric(
        _TWO_CELLS,
        tallies.count_right_by_class,
        intervals.mean_recall,
        by_class=intervals.classes_by_rows,
        in_group=intervals.mean_recall_in_table,
    ),
    "brier": Metric(
        (tallies.SCALE, float(tallies.SCALE)),
        tallies.sum_losses,
        intervals.mean_loss,
        outcome=tallies.losses_of,
        methods=("predict_proba",),
    ),
    "calibration_curve": Metric(
        (2 * tallies.COUNT + 2 * tallies.HALF, 96.0),
        tallies.count_bins,
        intervals.share_in_bins,
        outcome=tallies.scores_of,
        methods=("predict_proba",),
        is_binary=True,
        borders=tallies.bin_borders,
        curve=intervals.calibration_curve,
        by_class=intervals.classes_of_bins,
        display=_calibration_display,
        rows=_row_of_each_bin,
    ),
    "confusion_matrix": Metric(
        _TWO_CELLS,
        tallies.count_confusions,
        intervals.counts_of_records,
        by_class=intervals.classes_by_rows,
        largest=math.inf,
        display=_confusion_display,
        rows=_row_of_each_cell,
        digits=0,
    ),
    "f1": _of_confusions(intervals.f1),
    "log_loss": Metric(
        (tallies.SCALE, float(tallies.SCALE)),
        tallies.sum_losses,
        intervals.mean_log_loss,
        outcome=tallies.log_losses_of,
        methods=("predict_proba",),
        largest=tallies.LARGEST_LOG_LOSS,
    ),
    "precision": _of_confusions(intervals.precision),
    "recall": _of_confusions(intervals.recall),
    "roc_auc": Metric(
        _TWO_CELLS,
        tallies.count_scores,
        intervals.area_under_curve,
        outcome=tallies.scores_of,
        methods=("predict_proba", "decision_function"),
        is_binary=True,
        borders=tallies.score_borders,
        curve=intervals.roc_curve,
        thresholds=intervals.thresholds_of_roc,
        by_class=intervals.classes_by_rows,
        display=_roc_display,
    ),
}
