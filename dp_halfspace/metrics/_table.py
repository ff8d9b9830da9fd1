"""Every metric that can be released: what it needs, counts, charges and estimates, in one entry."""

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
        How far the counts move if one record, or one person, is replaced: in the sum of absolute
        values, and Euclidean. Derivation: ``docs/proofs/metrics.md``, sections 1 and 3.
    tally : callable
        Sums what the model answers for the records, their class indices and `Cells`.
    estimate : callable
        Makes of the `Released` counts a value and the ends of its interval.
    outcome : callable
        What the model makes of each record by itself.
    methods : tuple of str
        The model must have one of these.
    is_binary : bool
        Whether there must be two classes.
    borders : callable or None
        Public borders of cells of scores, from the model and what the user states.
    curve : callable or None
        What is drawn, from the counts, the borders and the estimate.
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
    display: Callable[[Any], Any] | None = None
    rows: Callable[[Any], Iterator[str]] = _one_row
    digits: int = 3


_TWO_CELLS = (2, math.sqrt(2.0))
METRICS: dict[str, Metric] = {
    "accuracy": Metric((1, 1.0), tallies.count_right, intervals.share_of_records),
    "balanced_accuracy": Metric(_TWO_CELLS, tallies.count_right_by_class, intervals.mean_recall),
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
        display=_calibration_display,
        rows=_row_of_each_bin,
    ),
    "confusion_matrix": Metric(
        _TWO_CELLS,
        tallies.count_confusions,
        intervals.counts_of_records,
        display=_confusion_display,
        rows=_row_of_each_cell,
        digits=0,
    ),
    "roc_auc": Metric(
        _TWO_CELLS,
        tallies.count_scores,
        intervals.area_under_curve,
        outcome=tallies.scores_of,
        methods=("predict_proba", "decision_function"),
        is_binary=True,
        borders=tallies.score_borders,
        curve=intervals.roc_curve,
        display=_roc_display,
    ),
}
