"""Private selection of one of finitely many candidates, with exact probabilities.

No sum of floating-point exponentials: independent events of probability exactly ``exp(-gap)``,
decided in high precision where floating point is not certain (``docs/proofs/noise.md``, section 7).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.privacy._exact import exp_minus, positive_rational, random_events
from dp_halfspace.privacy.discrete import uniform_below
from dp_halfspace.privacy.events import Exponential
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, ByteSource, read_words

_SMALLEST_RATE = Fraction(1, 2**900)
_LARGEST_RATE = Fraction(2**900)
_FEWEST_TRIALS = 64
_MOST_TRIALS = 16384


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Finite utilities, their maximum, and the exact factor from utility to exponent."""

    utilities: NDArray[np.float64]
    best: float
    rate: Fraction


def exponential_mechanism(
    utilities: Sequence[float] | NDArray[np.float64],
    epsilon: float,
    *,
    sensitivity: float = 1.0,
    multiplicities: NDArray[np.int64] | None = None,
    source: ByteSource = OS_RANDOMNESS,
) -> int:
    r"""Select index ``i`` with probability proportional to ``exp(epsilon u_i / (2 sensitivity))``.

    Parameters
    ----------
    utilities : array-like of float64, shape (n_candidates,)
        Private scores, larger is better. NaN and minus infinity count as the smallest
        finite score, plus infinity as the largest; if no score is finite all are equal.
        Scores never raise.
    epsilon : float
        Privacy parameter, positive and finite, taken as an exact number.
    sensitivity : float, default=1.0
        Largest change of any one score between neighbouring data sets, in the units of
        ``utilities``.
    multiplicities : ndarray of shape (n_candidates,), int64, or None, default=None
        How many candidates share each utility, at least 1, fewer than :math:`2^{60}` together;
        None stands for 1. The probability of an index is multiplied by it.
    source : ByteSource, default=OS_RANDOMNESS
        Where the random bytes come from.

    Returns
    -------
    int
        Index of the selected candidate.

    Raises
    ------
    ValueError
        If there is no candidate, or a public number is out of range.

    Notes
    -----
    Privacy: ``epsilon``-DP, and :math:`\varepsilon`-bounded range. The probabilities are
    those of exact arithmetic up to :math:`2^{-180}`, given uniform bytes, IEEE 754 basic
    operations and an absolute error of ``numpy.exp`` below :math:`2^{-41}` on
    negative arguments. At most ``n_candidates`` trials are expected, or the sum of the
    multiplicities.

    References
    ----------
    F. McSherry, K. Talwar (2007), Mechanism Design via Differential Privacy, FOCS.

    Examples
    --------
    >>> from dp_halfspace.privacy.selection import exponential_mechanism
    >>> exponential_mechanism([0.0, 500.0, 3.0], epsilon=1.0)
    1
    """
    candidates = _checked_candidates(utilities, epsilon, sensitivity)
    count = candidates.utilities.size
    ends = None if multiplicities is None else np.cumsum(multiplicities)
    total = count if ends is None else int(ends[-1])
    # A public number of trials at a time; the first success of the sequence is returned.
    batch = min(max(total, _FEWEST_TRIALS), _MOST_TRIALS)
    while True:
        trials = _uniform_indices(batch, total, source)
        if ends is not None:
            trials = np.searchsorted(ends, trials, side="right")
        successes = np.flatnonzero(_flips(candidates, trials, source))
        if successes.size:
            return int(trials[successes[0]])


def _checked_candidates(
    utilities: Sequence[float] | NDArray[np.float64], epsilon: float, sensitivity: float
) -> _Candidates:
    """Refuse public nonsense and make every score finite."""
    rate = positive_rational(epsilon, "epsilon") / (
        2 * positive_rational(sensitivity, "sensitivity")
    )
    if not _SMALLEST_RATE <= rate <= _LARGEST_RATE:
        raise ValueError(
            "epsilon / (2 sensitivity) must be between 2**-900 and 2**900, got "
            f"epsilon={epsilon!r}, sensitivity={sensitivity!r}"
        )
    with np.errstate(all="ignore"):
        scores = np.array(utilities, dtype=np.float64)
    if scores.ndim != 1 or scores.size == 0:
        raise ValueError(f"utilities must be a nonempty 1-d array, got shape {scores.shape}")
    finite = scores[np.isfinite(scores)]
    worst, best = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    scores[np.isnan(scores)] = worst
    np.clip(scores, worst, best, out=scores)
    return _Candidates(scores, best, rate)


def _uniform_indices(batch: int, count: int, source: ByteSource) -> NDArray[np.intp]:
    """Return up to ``batch`` independent indices, exactly uniform below ``count``."""
    words = read_words(batch, source)
    remainder = 2**64 % count
    if remainder:
        # Words past the last whole multiple of count would favour the small indices.
        words = words[words < np.uint64(2**64 - remainder)]
    return (words % np.uint64(count)).astype(np.intp)


def _flips(
    candidates: _Candidates, indices: NDArray[np.intp], source: ByteSource
) -> NDArray[np.bool_]:
    """Return independent events of probability ``exp(-rate (best - utility))`` each."""
    # A gap that overflows to infinity has probability 0 here: within the error allowed.
    with np.errstate(all="ignore"):
        gaps = candidates.best - candidates.utilities[indices]
        probabilities = np.exp(gaps * -float(candidates.rate))

    def enclosure(i: int) -> Callable[[int], int]:
        utility = Fraction(float(candidates.utilities[indices[i]]))
        return partial(exp_minus, (Fraction(candidates.best) - utility) * candidates.rate)

    return random_events(probabilities, enclosure, source)


@dataclass(frozen=True, slots=True)
class TalliedChoice:
    """The exponential mechanism over many candidates whose costs are small integers.

    The cost of a candidate is an integer of which one record changes at most one; ``value`` holds
    all of them. One of cost ``c`` has a probability proportional to ``exp(-epsilon c / 2)``, in
    the exact sense of :func:`exponential_mechanism`: candidates of one cost are counted first, then
    one of them is drawn (``docs/proofs/pure_halfspace.md``, section 2).
    """

    epsilon: float

    @property
    def event(self) -> Exponential:
        """What the choice costs: ``Exponential(epsilon)``."""
        return Exponential(self.epsilon)

    def perturb(self, value: NDArray[Any], source: ByteSource) -> NDArray[np.float64]:
        """Return the number of the chosen candidate; smaller costs are better."""
        tally = np.bincount(value)
        present = np.flatnonzero(tally)
        members = tally[present]
        chosen = exponential_mechanism(
            -present.astype(np.float64), self.epsilon, multiplicities=members, source=source
        )
        number = uniform_below(int(members[chosen]), source)
        return np.array([np.flatnonzero(value == present[chosen])[number]], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class GeneralizedChoice:
    """The choice of one of finitely many candidates by costs of different sensitivity.

    `sensitivities` bound the change of each cost. With ``t = (2 / epsilon) ln(K / beta)`` the
    chosen cost is at most ``min_j (q_j + 2 t D_j)`` with probability ``1 - beta``:
    ``docs/proofs/kernel.md``, section 4, after S. Raskhodnikova and A. Smith (2016), "Lipschitz
    extensions for node-private graph statistics and the generalized exponential mechanism".
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
        """Return scores of sensitivity one, the smaller the better and never negative."""
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
