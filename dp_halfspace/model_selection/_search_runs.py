"""Training and scoring of candidates, one after the other or several at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike

from dp_halfspace.model_selection._scores import Scoring, score_of
from dp_halfspace.model_selection._search_plan import model_inside
from dp_halfspace.privacy.mechanisms import Mechanism, perturbed
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, SeededBytes

Run: TypeAlias = tuple[Any, float]


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

    Runs in a worker. Its randomness is drawn here, from the operating system.
    """
    if seed is not None:
        own = SeededBytes(seed[0], f"run {seed[1]}")
        name = f"{model_inside(model)[0]}random_state"
        model.set_params(**{name: int.from_bytes(own.read(4), "little")})
    with warnings.catch_warnings():
        # A warning for each fit would tell how many there are. What the data's schema and the
        # parameters give reason to say was said when the search was planned.
        warnings.simplefilter("ignore")
        model.fit(X, y)
        score = score_of(scoring, model, X, y)
    if noise is not None:
        source = OS_RANDOMNESS if seed is None else SeededBytes(seed[0], f"score {seed[1]}")
        score = float(perturbed(np.array([score]), noise, source)[0])
    return model, score
