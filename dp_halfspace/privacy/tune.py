"""Publishing the best of a random number of private runs, and nothing else of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from dp_halfspace.privacy._run_law import RunLaw
from dp_halfspace.privacy.discrete import uniform_below
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, ByteSource

__all__ = ["best_run", "select_best"]

Candidate = TypeVar("Candidate")
Output = TypeVar("Output")


def select_best(
    run: Callable[[Candidate], tuple[Output, float]],
    candidates: Sequence[Candidate],
    law: RunLaw,
    source: ByteSource = OS_RANDOMNESS,
) -> tuple[Candidate, Output]:
    """Run random candidates a random number of times; return the one of the best score.

    Parameters
    ----------
    run : callable
        Maps a candidate to ``(output, noisy_score)``, larger scores being better. Each call
        draws fresh noise. The pair must be mu-GDP jointly, whatever the candidate: for
        instance a model trained with ``mu_train`` and its number of correct predictions
        plus Gaussian noise of standard deviation ``1 / mu_score``, with
        ``mu = hypot(mu_train, mu_score)``. A score of NaN counts as the worst.
    candidates : sequence
        Public and nonempty; fixed without looking at the data. Each run draws one of them
        uniformly, with replacement.
    law : RunLaw
        Law of the number of runs.
    source : ByteSource, default=OS_RANDOMNESS
        Randomness of the number of runs, of the candidates and of ties.

    Returns
    -------
    tuple
        The candidate and the output of the best run.

    Raises
    ------
    ValueError
        If there is no candidate.

    Notes
    -----
    Privacy: what is returned costs ``selection_event(law, mu)``, to be charged once and
    before the call. The guarantee is void if anything else leaves: the number of runs, the
    other candidates, outputs and scores, the winning score, or their traces (a log, a
    progress bar, a warning, an entry in a ledger, an attribute of an object that ``run``
    keeps). The running time is proportional to the number of runs: do not publish it, or
    wait until a time that is fixed in advance. ``run`` must not raise for a reason that
    depends on private data, and must not use what other runs computed.

    References
    ----------
    .. [1] J. Liu, K. Talwar. Private selection from private candidates. STOC 2019.
    .. [2] N. Papernot, T. Steinke. Hyperparameter tuning with Rényi differential
       privacy. ICLR 2022, Algorithm 1.

    Examples
    --------
    >>> from dp_halfspace.privacy import rounded_gaussian
    >>> from dp_halfspace.privacy.random_stopping import run_law
    >>> from dp_halfspace.privacy.tune import select_best
    >>> records = [0, 1, 1, 2, 0, 5]
    >>> def run(threshold, mu=0.15):
    ...     count = sum(record >= threshold for record in records)
    ...     return f"rule {threshold}", rounded_gaussian([count], 1 / mu)[0]
    >>> threshold, rule = select_best(run, [1, 2, 3], run_law(n_candidates=3, miss=0.1))
    >>> rule == f"rule {threshold}"
    True
    """
    if len(candidates) == 0:
        raise ValueError("candidates must not be empty")

    def one_run() -> tuple[tuple[Candidate, Output], float]:
        candidate = candidates[uniform_below(len(candidates), source)]
        output, score = run(candidate)
        return (candidate, output), score

    count = law.draw(source)
    return best_run((one_run() for _ in range(count)), source)[1]


def best_run(runs: Iterable[tuple[Output, float]], source: ByteSource) -> tuple[int, Output]:
    """Return place and output of the run of the highest score; the others are forgotten.

    Parameters
    ----------
    runs : iterable of (output, float)
        At least one; a score of NaN counts as the worst.
    source : ByteSource
        Randomness of ties.

    Returns
    -------
    int
    output

    Examples
    --------
    >>> from dp_halfspace.privacy.randomness import OS_RANDOMNESS
    >>> from dp_halfspace.privacy.tune import best_run
    >>> best_run([("a", 1.0), ("b", 3.0), ("c", 2.0)], OS_RANDOMNESS)
    (1, 'b')
    """
    found: tuple[int, Output] | None = None
    highest, ties = -math.inf, 0
    for place, (output, raw) in enumerate(runs):
        score = -math.inf if math.isnan(raw) else float(raw)
        if found is None or score > highest:
            found, highest, ties = (place, output), score, 1
        elif score == highest:
            # Of j equal runs the last wins with probability 1 / j: all are equally likely.
            ties += 1
            if uniform_below(ties, source) == 0:
                found = place, output
    if found is None:
        raise ValueError("there must be at least one run")
    return found
