"""The runs of a private search, which say nothing of their number, and the scores of candidates.

The number of candidates that run may be secret, and it can be counted if each fit prints a line,
warns, logs or calls a callback. Therefore candidates are silenced, and the remaining output, also
of a score of the user, is dropped. One record changes a score by at most one. Proof:
``docs/proofs/selection.md``, sections 7 and 9.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray

from dp_halfspace._params import require
from dp_halfspace._repeated_fits import fits_not_counted
from dp_halfspace._sklearn_compat import without_callbacks
from dp_halfspace.data.validation import call_silently, class_indices, gathered
from dp_halfspace.privacy.interception import Mechanism, draw_release
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, SeededBytes

Scoring: TypeAlias = str | Callable[..., ArrayLike]
Array: TypeAlias = NDArray[Any]

# Values of these parameters in candidates: processes that a fit starts would have standard streams
# of their own. Of a prior inside only the numbers are read, so that it is left as it is.
_QUIET = {"verbose": False, "n_jobs": 1}
_FAILED = "a fit or the scoring failed, and the message may quote records: call both by themselves"
_NO_WORKER = (
    "n_jobs={}: joblib could not pass a run to a worker: use n_jobs=None, or what can be pickled"
)


def silence(candidate: Any) -> Any:
    """Turn off the output of a candidate, by its parameters and callbacks, in place."""
    without_callbacks(candidate)
    return candidate.set_params(**{name: _QUIET[name] for name in settings_of_output(candidate)})


def settings_of_output(estimator: Any) -> dict[str, Any]:
    """Return the parameters that `silence` changes."""
    params = estimator.get_params(deep=False).items()
    return {name: value for name, value in params if name in _QUIET}


def score_of(scoring: Scoring, model: Any, X: Any, y: ArrayLike) -> float:
    """Score a fitted model; larger is better.

    A callable returns a number in [0, 1] for each record, computed from the record and the model
    only.
    """
    y = gathered(y)
    if isinstance(scoring, str):
        indices, classes = class_indices(y, model.classes_)
        return SCORINGS[scoring](model, X, indices, classes)
    each = np.nan_to_num(np.asarray(scoring(model, X, y), dtype=np.float64))
    if each.shape != np.asarray(y).ravel().shape:
        raise ValueError("scoring must return one number for each record")
    return math.fsum(np.clip(each, 0.0, 1.0))


def _are_right(model: Any, X: Any, indices: Array, classes: Array) -> Array:
    """Return which records are correctly predicted."""
    return np.asarray(class_indices(gathered(model.predict(X)), classes)[0] == indices)


def _count_right(model: Any, X: Any, indices: NDArray[np.intp], classes: NDArray[Any]) -> float:
    """Count the correctly predicted records."""
    return float(_are_right(model, X, indices, classes).sum())


def _sum_recalls(model: Any, X: Any, indices: NDArray[np.intp], classes: NDArray[Any]) -> float:
    """Add the recalls, times the size of the smallest class, over the number of classes plus one.

    All candidates are scored on the same classes, so this ranks them by balanced accuracy.
    """
    sizes = np.bincount(indices, minlength=len(classes))
    hits = indices[_are_right(model, X, indices, classes)]
    recalls = (np.bincount(hits, minlength=len(classes)) / np.maximum(sizes, 1)).sum()
    return float(sizes.min() * recalls / (len(classes) + 1))


def _count_ordered_pairs(model: Any, X: Any, indices: Array, classes: Array) -> float:
    """Count ordered pairs of a positive and a negative record, ties as one half, over all records.

    The result is the area under the ROC curve times a number that is the same for all candidates.
    """
    has_scores = hasattr(model, "decision_function")
    scores = model.decision_function(X) if has_scores else model.predict_proba(X)[:, 1]
    scores = np.nan_to_num(np.array(scores, dtype=np.float64))
    negative = np.sort(scores[indices == 0])
    ranks = [np.searchsorted(negative, scores[indices == 1], side) for side in ("left", "right")]
    return int(np.sum(ranks)) / (2.0 * len(indices))


SCORINGS = {
    "accuracy": _count_right,
    "balanced_accuracy": _sum_recalls,
    "roc_auc": _count_ordered_pairs,
}


@dataclass(frozen=True)
class RobustAccuracy:
    """Scoring for :class:`PrivateSearchCV`: right whatever an adversary does to the row.

    Parameters
    ----------
    radius : float
        PUBLIC largest change of a row, in the units of the columns.
    norm : {2, "inf"}, default=2
        Of that change: Euclidean, or the largest change of one column.

    Notes
    -----
    **Privacy.** One number in [0, 1] for each record, so a search covers it as for accuracy. For
    linear models with a stated scale of rows (`data_norm`). Source: ``docs/proofs/robust.md``,
    section 1.

    Examples
    --------
    >>> from dp_halfspace import OutputPerturbationClassifier, PrivateSearchCV
    >>> from dp_halfspace.model_selection import RobustAccuracy
    >>> model = OutputPerturbationClassifier(data_norm=1, classes=[-1, 1])
    >>> grid = {"adversary_radius": [0.0, 0.1]}
    >>> search = PrivateSearchCV(model, grid, scoring=RobustAccuracy(0.1))
    """

    radius: float
    norm: int | str = 2

    def __post_init__(self) -> None:
        require("at least 0 and finite", radius=self.radius)
        if self.norm not in (2, "inf"):
            raise ValueError(f"norm must be 2 or 'inf'; got {self.norm!r}.")

    def __call__(self, model: Any, X: Any, y: ArrayLike) -> NDArray[np.float64]:
        """Return 1 for each record whose prediction remains correct, otherwise 0."""
        indices, classes = class_indices(y, model.classes_)
        scores, weights = np.asarray(model.decision_function(X)), model.coef_
        if len(classes) == 2:
            scores = np.outer(scores, [-0.5, 0.5])
            weights = np.vstack([-0.5 * weights, 0.5 * weights])
        # A change of norm `radius` changes a difference of scores by `radius` times the dual norm
        # of the weights.
        dual = 1 if self.norm == "inf" else 2
        norms = [np.linalg.norm(weights - own, dual, axis=1) for own in weights]
        changes = self.radius * np.array(norms)
        own = np.take_along_axis(scores, indices[:, None], axis=1)
        gaps = own - scores - changes[indices]
        gaps[np.arange(len(indices)), indices] = np.inf
        return np.asarray(gaps.min(axis=1) > 0.0, dtype=np.float64)


def workers(n_jobs: int | None) -> Any:
    """Return the workers of joblib, which hand out each result when it is asked for."""
    return Parallel(n_jobs=n_jobs, verbose=0, return_as="generator")


def check_workers(model: Any, X: Any, y: ArrayLike, scoring: Scoring, n_jobs: int | None) -> None:
    """Pass the arguments of a run to a worker that does nothing with them.

    Whatever joblib refuses, such as a number of jobs or an object that cannot be pickled, is
    refused here, before anything is charged.
    """
    trial = delayed(id)((model, X, y, scoring))
    call_silently(lambda: list(workers(n_jobs)([trial])), _NO_WORKER.format(n_jobs))


def train_and_score(
    model: Any,
    number: int,
    *,
    X: Any,
    y: ArrayLike,
    scoring: Scoring,
    noise: Mechanism | None,
    seed: int | None,
) -> tuple[Any, float]:
    """Fit one candidate in place, and score it on the training rows.

    `noise` is added to the score, or None if scores are not released one by one. The function runs
    in a worker, which draws its own randomness from the operating system, or by a seed and the
    number of the run. Warnings about the schema of the data and about parameters were given when
    the search was planned.
    """
    if seed is not None:
        own = SeededBytes(seed, f"run {number}").read(4)
        model.set_params(random_state=int.from_bytes(own, "little"))
    # The record of the search covers all runs, and their number may be secret.
    with fits_not_counted():
        score = call_silently(lambda: score_of(scoring, model.fit(X, y), X, y), _FAILED)
    if noise is not None:
        source = OS_RANDOMNESS if seed is None else SeededBytes(seed, f"score {number}")
        score = float(draw_release(np.array([score]), noise, source)[0])
    return model, score
