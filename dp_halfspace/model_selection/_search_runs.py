"""Training and scoring of candidates, one after the other or several at a time.

A score is a number that one record moves by at most one. Proof: ``docs/proofs/selection.md``,
sections 7 and 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray

from dp_halfspace.data.validation import label_codes
from dp_halfspace.model_selection._search_plan import model_inside
from dp_halfspace.model_selection._silence import seed_steps, silently
from dp_halfspace.privacy.mechanisms import Mechanism, perturbed
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, SeededBytes

Scoring: TypeAlias = str | Callable[..., ArrayLike]
Run: TypeAlias = tuple[Any, float]


def score_of(scoring: Scoring, model: Any, X: Any, y: ArrayLike) -> float:
    """Score a fitted model; larger is better.

    A callable makes a number in [0, 1] for each record, from the record and the model alone.
    """
    if isinstance(scoring, str):
        codes, classes = label_codes(y, model.classes_)
        return SCORINGS[scoring](model, X, codes, classes)
    each = np.nan_to_num(np.asarray(scoring(model, X, y), dtype=np.float64))
    if each.shape != np.asarray(y).ravel().shape:
        raise ValueError("scoring must return one number for each record")
    return math.fsum(np.clip(each, 0.0, 1.0))


def _hits(model: Any, X: Any, codes: NDArray[np.intp], classes: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which records are predicted right."""
    return np.asarray(label_codes(model.predict(X), classes)[0] == codes)


def _accuracy(model: Any, X: Any, codes: NDArray[np.intp], classes: NDArray[Any]) -> float:
    """Count what is right."""
    return float(_hits(model, X, codes, classes).sum())


def _balanced(model: Any, X: Any, codes: NDArray[np.intp], classes: NDArray[Any]) -> float:
    """Add the recalls, times the size of the smallest class, over the number of classes plus one.

    All candidates meet the same classes, so this ranks them by balanced accuracy.
    """
    sizes = np.bincount(codes, minlength=len(classes))
    right = np.bincount(codes[_hits(model, X, codes, classes)], minlength=len(classes))
    recalls = (right / np.maximum(sizes, 1)).sum()
    return float(sizes.min() * recalls / (len(classes) + 1))


def _ranking(model: Any, X: Any, codes: NDArray[np.intp], classes: NDArray[Any]) -> float:
    """Count pairs of a positive and a negative record in order, ties half, over all records.

    That is the area under the ROC curve times a number that is the same for all candidates.
    """
    del classes
    has_scores = hasattr(model, "decision_function")
    scores = model.decision_function(X) if has_scores else model.predict_proba(X)[:, 1]
    scores = np.nan_to_num(np.array(scores, dtype=np.float64))
    negative = np.sort(scores[codes == 0])
    ends = [np.searchsorted(negative, scores[codes == 1], side) for side in ("left", "right")]
    return int(np.sum(ends)) / (2.0 * len(codes))


SCORINGS = {"accuracy": _accuracy, "balanced_accuracy": _balanced, "roc_auc": _ranking}


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
    **Privacy.** One number in [0, 1] for each record, so a search pays for it as for accuracy. For
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
        codes, classes = label_codes(y, model.classes_)
        scores, weights = np.asarray(model.decision_function(X)), model.coef_
        if len(classes) == 2:
            scores = np.outer(scores, [-0.5, 0.5])
            weights = np.vstack([-0.5 * weights, 0.5 * weights])
        order = 1 if self.norm == "inf" else 2
        reach = np.linalg.norm(weights[:, None] - weights, order, axis=2)
        own = np.take_along_axis(scores, codes[:, None], axis=1)
        gaps = own - scores - self.radius * reach[codes]
        gaps[np.arange(len(codes)), codes] = np.inf
        return np.asarray(gaps.min(axis=1) > 0.0, dtype=np.float64)


def trained_runs(
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
        delayed(_run)(
            model, X, y, scoring=scoring, noise=noise, seed=None if seed is None else (seed, number)
        )
        for number, model in enumerate(models)
    )
    runs: Iterator[Run] = Parallel(n_jobs=n_jobs, verbose=verbose, return_as="generator")(tasks)
    return runs


def _run(
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
    schema and the parameters give reason to say was said when the search was planned.
    """
    prefix, _ = model_inside(model)
    own = OS_RANDOMNESS if seed is None else SeededBytes(seed[0], f"run {seed[1]}")
    if seed is not None:
        model.set_params(**{f"{prefix}random_state": int.from_bytes(own.read(4), "little")})
    seed_steps(model, prefix, own)
    score = silently(lambda: score_of(scoring, model.fit(X, y), X, y))
    if noise is not None:
        source = OS_RANDOMNESS if seed is None else SeededBytes(seed[0], f"score {seed[1]}")
        score = float(perturbed(np.array([score]), noise, source)[0])
    return model, score
