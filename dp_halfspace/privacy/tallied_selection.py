"""Exact selection among very many candidates of which only a tally is kept.

Scores are counts, so candidates fall into few groups of equal score, and the exponential
mechanism knows no difference between the members of a group. It can therefore be run on how
many candidates there are of each score: memory for the scores that can occur, not for the
candidates. See ``docs/proofs/pure_halfspace.md``, section 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.privacy.discrete import uniform_below
from dp_halfspace.privacy.events import Exponential
from dp_halfspace.privacy.randomness import ByteSource
from dp_halfspace.privacy.selection import exponential_mechanism

__all__ = ["TalliedChoice"]


@dataclass(frozen=True, slots=True)
class TalliedChoice:
    """The exponential mechanism over candidates that are counted by their costs.

    The cost of a candidate is an integer from 0 to ``len(value) - 1`` that one record changes
    by at most one; ``value[c]`` is the number of candidates of cost ``c``.

    Attributes
    ----------
    epsilon : float
        Bound on the range of the privacy loss that is charged.

    Notes
    -----
    A candidate of cost ``c`` has a probability proportional to ``exp(-epsilon c / 2)``, exactly
    in the sense of :func:`~dp_halfspace.privacy.exponential_mechanism`.

    References
    ----------
    F. McSherry, K. Talwar (2007), Mechanism Design via Differential Privacy, FOCS.
    ``docs/proofs/pure_halfspace.md``, section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.privacy.randomness import OS_RANDOMNESS
    >>> from dp_halfspace.privacy.tallied_selection import TalliedChoice
    >>> TalliedChoice(epsilon=50.0).perturb(np.array([0.0, 1.0, 0.0, 999.0]), OS_RANDOMNESS)
    array([1., 0.])
    """

    epsilon: float

    @property
    def event(self) -> Exponential:
        """What the choice costs: ``Exponential(epsilon)``."""
        return Exponential(self.epsilon)

    def perturb(self, value: NDArray[np.float64], source: ByteSource) -> NDArray[np.float64]:
        """Return the cost of the chosen candidate, and its number among those of that cost.

        Parameters
        ----------
        value : ndarray of shape (n_costs,)
            Whole numbers, not all zero.
        source : ByteSource

        Returns
        -------
        ndarray of shape (2,)
        """
        tally = value.astype(np.int64)
        present = np.flatnonzero(tally)
        members = tally[present]
        chosen = exponential_mechanism(
            -present.astype(np.float64), self.epsilon, multiplicities=members, source=source
        )
        number = uniform_below(int(members[chosen]), source)
        return np.array([present[chosen], number], dtype=np.float64)
