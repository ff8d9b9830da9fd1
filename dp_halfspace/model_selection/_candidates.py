"""Candidates of a search: the model inside a pipeline, its silent fit, and its score.

How many candidates run may be a secret, and whoever sees one line, warning, log entry or callback
for each fit can count them. So steps are set to say nothing, and what they and the functions of a
user print all the same is dropped. A score is a number that one record moves by at most one. Proof:
``docs/proofs/selection.md``, sections 7 and 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin

from dp_halfspace._budget import SharedLedger
from dp_halfspace._silence import drop_output
from dp_halfspace._sklearn_compat import without_callbacks
from dp_halfspace.data.chunks import is_own
from dp_halfspace.data.validation import class_indices
from dp_halfspace.inspection.pipeline import library_of
from dp_halfspace.privacy.interception import Mechanism, draw_release
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, ByteSource, SeededBytes

Result = TypeVar("Result")
Scoring: TypeAlias = str | Callable[..., ArrayLike]
Run: TypeAlias = tuple[Any, float]
Array: TypeAlias = NDArray[Any]

# What candidates have in the place of these parameters, at every level: processes that a step
# starts would have standard streams of their own.
_QUIET = {"verbose": False, "n_jobs": 1}
_FAILED = (
    "a step before the model, or the scoring, failed. Its message is left out, because it may "
    "quote records: fit the steps by themselves, where only those who may see the records read it"
)


def model_inside(estimator: Any) -> tuple[str, Any]:
    """Find the model of this package at the end of a pipeline, and the prefix of its parameters."""
    prefix = ""
    while not _is_private(type(estimator)):
        if getattr(estimator, "steps", None):
            name, inner = estimator.steps[-1]
        else:
            name, inner = "estimator", getattr(estimator, "estimator", None)
            inner = getattr(estimator, "estimator_", inner)
        if inner is None:
            raise ValueError(
                "estimator must be a classifier of this package, or a pipeline that ends in one; "
                f"{type(estimator).__name__} is not"
            )
        prefix, estimator = f"{prefix}{name}__", inner
    return prefix, estimator


def _is_private(kind: type) -> bool:
    """Tell whether a class is a classifier of this package, and not one that inherits from it."""
    is_classifier = issubclass(kind, SharedLedger) and issubclass(kind, ClassifierMixin)
    return is_classifier and library_of(kind) == "dp_halfspace"


def call_silently(call: Callable[[], Result]) -> Result:
    """Return what a call returns, and show nothing else of it.

    Errors of this package name no values of records; others may quote them, and are replaced.
    """
    try:
        with drop_output():
            return call()
    except Exception as error:
        if isinstance(error, MemoryError) or is_own(error):
            raise
    # Outside the handler, so that the new error does not carry the old one.
    raise ValueError(_FAILED)


def silence(candidate: Any) -> Any:
    """Turn off what a candidate prints by its parameters and callbacks, in place."""
    without_callbacks(candidate)
    settings = {name: _QUIET.get(_own_name(name)) for name in candidate.get_params()}
    return candidate.set_params(**{k: value for k, value in settings.items() if value is not None})


def seed_steps(candidate: Any, prefix: str, source: ByteSource) -> None:
    """Give seeds of their own to the steps before the model, which has the prefix, without one.

    They would draw from the generator that numpy shares, which counts what was drawn.
    """
    for name, value in candidate.get_params().items():
        if _own_name(name) == "random_state" and not name.startswith(prefix) and value is None:
            candidate.set_params(**{name: int.from_bytes(source.read(4), "little")})


def restore_settings(best: Any, given: Any) -> None:
    """Undo `silence` and `seed_steps` for the candidate that is released, by those of `given`."""
    kinds = {*_QUIET, "random_state"}
    params = {name: value for name, value in given.get_params().items() if _own_name(name) in kinds}
    best.set_params(**params)


def _own_name(name: str) -> str:
    """Return the name of a parameter without those of the steps that it is in."""
    return name.rpartition("__")[2]


def score_of(scoring: Scoring, model: Any, X: Any, y: ArrayLike) -> float:
    """Score a fitted model; larger is better.

    A callable makes a number in [0, 1] for each record, from the record and the model alone.
    """
    if isinstance(scoring, str):
        indices, classes = class_indices(y, model.classes_)
        return SCORINGS[scoring](model, X, indices, classes)
    each = np.nan_to_num(np.asarray(scoring(model, X, y), dtype=np.float64))
    if each.shape != np.asarray(y).ravel().shape:
        raise ValueError("scoring must return one number for each record")
    return math.fsum(np.clip(each, 0.0, 1.0))


def _are_right(model: Any, X: Any, indices: Array, classes: Array) -> Array:
    """Tell which records are predicted right."""
    return np.asarray(class_indices(model.predict(X), classes)[0] == indices)


def _count_right(model: Any, X: Any, indices: NDArray[np.intp], classes: NDArray[Any]) -> float:
    """Count the records that are predicted right."""
    return float(_are_right(model, X, indices, classes).sum())


def _sum_recalls(model: Any, X: Any, indices: NDArray[np.intp], classes: NDArray[Any]) -> float:
    """Add the recalls, times the size of the smallest class, over the number of classes plus one.

    All candidates meet the same classes, so this ranks them by balanced accuracy.
    """
    sizes = np.bincount(indices, minlength=len(classes))
    hits = indices[_are_right(model, X, indices, classes)]
    recalls = (np.bincount(hits, minlength=len(classes)) / np.maximum(sizes, 1)).sum()
    return float(sizes.min() * recalls / (len(classes) + 1))


def _count_ordered_pairs(model: Any, X: Any, indices: Array, classes: Array) -> float:
    """Count pairs of a positive and a negative record in order, ties half, over all records.

    That is the area under the ROC curve times a number that is the same for all candidates.
    """
    del classes
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
    linear models in stated units (`data_norm`). Source: ``docs/proofs/robust.md``, section 1.

    Examples
    --------
    >>> from dp_halfspace import AdaptiveMarginClassifier, PrivateSearchCV
    >>> from dp_halfspace.model_selection import RobustAccuracy
    >>> model = AdaptiveMarginClassifier(data_norm=1, classes=[-1, 1])
    >>> grid = {"adversary_radius": [0.0, 0.1]}
    >>> search = PrivateSearchCV(model, grid, scoring=RobustAccuracy(0.1))
    """

    radius: float
    norm: int | str = 2

    def __post_init__(self) -> None:
        if not 0.0 <= self.radius < math.inf or self.norm not in (2, "inf"):
            raise ValueError("radius must be a number from 0 on, and norm 2 or 'inf'")

    def __call__(self, model: Any, X: Any, y: ArrayLike) -> NDArray[np.float64]:
        """Return 1 for each record that stays right, else 0."""
        indices, classes = class_indices(y, model.classes_)
        scores, weights = np.asarray(model.decision_function(X)), model.coef_
        if len(classes) == 2:
            scores = np.outer(scores, [-0.5, 0.5])
            weights = np.vstack([-0.5 * weights, 0.5 * weights])
        # A change of norm `radius` moves a difference of scores by the dual norm of the weights.
        dual = 1 if self.norm == "inf" else 2
        changes = self.radius * np.linalg.norm(weights[:, None] - weights, dual, axis=2)
        own = np.take_along_axis(scores, indices[:, None], axis=1)
        gaps = own - scores - changes[indices]
        gaps[np.arange(len(indices)), indices] = np.inf
        return np.asarray(gaps.min(axis=1) > 0.0, dtype=np.float64)


def run_candidates(
    models: Iterable[Any],
    *,
    X: Any,
    y: ArrayLike,
    scoring: Scoring,
    seed: int | None,
    n_jobs: int | None,
    noise: Mechanism | None = None,
    verbose: int = 0,
) -> Iterator[Run]:
    """Train models and score them, in their order whatever the number of jobs.

    The models are changed by their fits; scores are computed on the training rows. Without a seed
    all randomness is the operating system's, drawn where it is used. The noise is for each score;
    None where scores are not released one by one. A `verbose` joblib shows how many fits there are.
    """
    tasks = (
        delayed(_train_and_score)(
            model, X, y, scoring=scoring, noise=noise, seed=None if seed is None else (seed, number)
        )
        for number, model in enumerate(models)
    )
    runs: Iterator[Run] = Parallel(n_jobs=n_jobs, verbose=verbose, return_as="generator")(tasks)
    return runs


def _train_and_score(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    scoring: Scoring,
    noise: Mechanism | None,
    seed: tuple[int, int] | None,
) -> Run:
    """Train one candidate and score it, with noise where each score is released.

    Runs in a worker. Its randomness is drawn here, from the operating system. What the data's
    schema and the parameters give reason to warn of was warned of when the search was planned.
    """
    prefix, _ = model_inside(model)
    own = OS_RANDOMNESS if seed is None else SeededBytes(seed[0], f"run {seed[1]}")
    if seed is not None:
        model.set_params(**{f"{prefix}random_state": int.from_bytes(own.read(4), "little")})
    seed_steps(model, prefix, own)
    score = call_silently(lambda: score_of(scoring, model.fit(X, y), X, y))
    if noise is not None:
        source = OS_RANDOMNESS if seed is None else SeededBytes(seed[0], f"score {seed[1]}")
        score = float(draw_release(np.array([score]), noise, source)[0])
    return model, score
