"""Selection among candidates whose scores have different sensitivities.

The exponential mechanism would have to use the largest sensitivity for all. The generalised
one compares candidates in pairs, each difference in units of what it can change by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.privacy.events import Exponential
from dp_halfspace.privacy.randomness import ByteSource
from dp_halfspace.privacy.selection import exponential_mechanism

__all__ = ["GeneralizedChoice"]


@dataclass(frozen=True, slots=True)
class GeneralizedChoice:
    """The choice of one of finitely many candidates by costs of different sensitivity.

    Attributes
    ----------
    sensitivities : tuple of float
        Bound on the change of each cost, positive.
    epsilon : float
        Bound on the range of the privacy loss that is charged.
    beta : float
        Accepted probability that the cost of the chosen one is larger than promised.

    Notes
    -----
    With ``t = (2 / epsilon) ln(K / beta)`` the chosen cost is at most
    ``min_j (q_j + 2 t D_j)`` with probability ``1 - beta``.

    References
    ----------
    S. Raskhodnikova and A. Smith (2016), "Lipschitz extensions for node-private graph
    statistics and the generalized exponential mechanism". ``docs/proofs/kernel.md``, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.privacy.generalized_selection import GeneralizedChoice
    >>> choice = GeneralizedChoice((1.0, 100.0), epsilon=1.0)
    >>> choice.normalised(np.array([500.0, 400.0])).round(2).tolist()
    [0.0, 6.24]
    """

    sensitivities: tuple[float, ...]
    epsilon: float
    beta: float = 0.05

    @property
    def event(self) -> Exponential:
        """What the choice costs: ``Exponential(epsilon)``."""
        return Exponential(self.epsilon)

    @property
    def sensitivity(self) -> float:
        """Bound on the change of a normalised score: one, and roundings.

        For costs up to 10^9 times their sensitivity; ``docs/proofs/kernel.md``, Lemma 5.
        """
        return 1.0 + 2.0**-20 + self._raise() * 2.0**-49

    def _raise(self) -> float:
        """Return `t` of the notes."""
        return 2.0 / self.epsilon * math.log(len(self.sensitivities) / self.beta)

    def normalised(self, costs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return scores of sensitivity one, the smaller the better and never negative.

        Parameters
        ----------
        costs : ndarray of shape (n_candidates,)

        Returns
        -------
        ndarray of shape (n_candidates,)
        """
        reach = np.array(self.sensitivities)
        raised = costs + self._raise() * reach
        apart = (raised[:, None] - raised[None, :]) / (reach[:, None] + reach[None, :])
        return np.asarray(apart.max(axis=1))

    def perturb(self, value: NDArray[np.float64], source: ByteSource) -> NDArray[np.float64]:
        """Return the number of the chosen candidate; smaller costs are better."""
        scores = -self.normalised(value)
        chosen = exponential_mechanism(
            scores, self.epsilon, sensitivity=self.sensitivity, source=source
        )
        return np.array([chosen], dtype=np.float64)
