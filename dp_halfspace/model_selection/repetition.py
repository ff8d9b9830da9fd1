"""How often to repeat a private training so that a bad draw of the noise is unlikely to win."""

from __future__ import annotations

import math

__all__ = ["confidence_repeats"]


def confidence_repeats(beta: float) -> int:
    """Count the runs that turn a guarantee on average into one with high probability.

    Parameters
    ----------
    beta : float
        Accepted probability of failure, in (0, 1).

    Returns
    -------
    int
        ``ceil(ln(2 / beta))``, to be given to
        :class:`~dp_halfspace.model_selection.PrivateSearchCV` as `n_repeats`.

    Raises
    ------
    ValueError
        If `beta` is not in (0, 1).

    Notes
    -----
    Privacy: a function of a public number.

    By Markov's inequality one run exceeds e times its expected excess error with probability 1/e
    at most, and all of them with probability ``beta / 2``; the private choice of the best fails
    with probability ``beta / 2``, too. Each run has a smaller share of the budget, so repetition
    pays only where single runs fail badly. Proof: ``docs/proofs/selection.md``, section 9.

    References
    ----------
    R. Bassily, M. Mohri and A. Suresh (2022), Algorithm 5, ``M = log(2 / beta)``.
    H. Le Nguyen, J. Ullman and L. Zakynthinou (2020), Algorithm 3, ``ceil(log(8 / beta))``: the
    same rule at a quarter of their `beta`, which is what their proof allows this step.

    Examples
    --------
    >>> from dp_halfspace.model_selection import confidence_repeats
    >>> confidence_repeats(0.05), confidence_repeats(0.05 / 4)
    (4, 6)
    """
    if not 0.0 < beta < 1.0:
        raise ValueError(f"beta must be in (0, 1), got {beta!r}")
    return math.ceil(math.log(2.0 / beta))
