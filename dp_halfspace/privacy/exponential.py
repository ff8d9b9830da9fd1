"""Private selection of one of finitely many candidates, with exact probabilities.

Candidates are sampled by independent events of probability exactly ``exp(-gap)`` instead of a sum
of floating-point exponentials. Events are decided in high precision if floating point is not
certain (``docs/proofs/noise.md``, section 7).
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

from dp_halfspace.privacy.interception import ExponentialMechanism, PureMechanism
from dp_halfspace.privacy.noise import (
    LARGEST_SCALE,
    SMALLEST_COUNT_RATE,
    draw_geometric,
    exp_minus,
    positive_rational,
    random_events,
    uniform_below,
)
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, ByteSource, read_words

# Range of the number of trials that are drawn at a time.
_TRIALS = (64, 16384)
# Failure probability of the bound of a generalised choice.
_FAILURE_PROBABILITY = 0.05


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
        Number of candidates that share each utility, at least 1 and fewer than :math:`2^{60}`
        together; None stands for 1. The probability of an index is multiplied by it.
    source : ByteSource, default=OS_RANDOMNESS
        Where the random bytes come from.

    Returns
    -------
    int
        Index of the selected candidate.

    Raises
    ------
    ValueError
        If there is no candidate, a public number is out of range, or shapes differ.

    Notes
    -----
    **Guarantee.**

    - Adjacency: any under which no score changes by more than ``sensitivity``.
    - Released: one index, ``epsilon``-differentially private and of bounded range ``epsilon``.
    - Sensitivity: ``sensitivity``, for each score separately.
    - Proof: ``docs/proofs/noise.md``, section 7. The probabilities are those of exact arithmetic
      up to :math:`2^{-180}`, given uniform bytes, IEEE 754 basic operations and an absolute error
      of ``numpy.exp`` below :math:`2^{-41}` on negative arguments.

    At most ``n_candidates`` trials are expected, or the sum of the
    multiplicities.

    References
    ----------
    F. McSherry, K. Talwar (2007), Mechanism Design via Differential Privacy, FOCS.

    Examples
    --------
    >>> from dp_halfspace.privacy.exponential import exponential_mechanism
    >>> exponential_mechanism([0.0, 500.0, 3.0], epsilon=1.0)
    1
    """
    finite, rate = _check_candidates(utilities, epsilon, sensitivity)
    count = finite.size
    if multiplicities is not None and np.shape(multiplicities) != (count,):
        raise ValueError(f"multiplicities must have the shape of utilities, {(count,)}")
    ends = None if multiplicities is None else np.cumsum(multiplicities)
    total = count if ends is None else int(ends[-1])
    # Trials are drawn in batches of a public size; the first success of the sequence is returned.
    # Private scores decide how many batches follow the first one, so these have their own bytes.
    batch, own = min(max(total, _TRIALS[0]), _TRIALS[1]), source.branches()(0)
    while True:
        trials = _draw_indices(batch, total, source)
        if ends is not None:
            trials = np.searchsorted(ends, trials, side="right")
        successes = np.flatnonzero(_draw_successes(finite, rate, trials, source))
        if successes.size:
            return int(trials[successes[0]])
        source = own


def _check_candidates(
    utilities: Sequence[float] | NDArray[np.float64], epsilon: float, sensitivity: float
) -> tuple[NDArray[np.float64], Fraction]:
    """Refuse invalid public numbers; return finite scores, and the exact factor of exponents."""
    rate = positive_rational(epsilon, "epsilon")
    rate /= 2 * positive_rational(sensitivity, "sensitivity")
    if not 1 / LARGEST_SCALE <= rate <= LARGEST_SCALE:
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
    return scores, rate


def _draw_indices(batch: int, count: int, source: ByteSource) -> NDArray[np.intp]:
    """Return up to ``batch`` independent indices, exactly uniform below ``count``."""
    words = read_words(batch, source)
    remainder = 2**64 % count
    if remainder:
        # Words beyond the last multiple of count are dropped, since they would favour small
        # indices.
        words = words[words < np.uint64(2**64 - remainder)]
    return (words % np.uint64(count)).astype(np.intp)


def _draw_successes(
    utilities: NDArray[np.float64], rate: Fraction, indices: NDArray[np.intp], source: ByteSource
) -> NDArray[np.bool_]:
    """Return independent events of probability ``exp(-rate (best - utility))`` each."""
    best = float(utilities.max())
    # A gap that overflows to infinity gets the probability 0, which is within the allowed error.
    with np.errstate(all="ignore"):
        probabilities = np.exp((best - utilities[indices]) * -float(rate))

    def enclosure(i: int) -> Callable[[int], int]:
        utility = Fraction(float(utilities[indices[i]]))
        return partial(exp_minus, (Fraction(best) - utility) * rate)

    return random_events(probabilities, enclosure, source)


@dataclass(frozen=True, slots=True)
class TalliedChoice(ExponentialMechanism):
    """The exponential mechanism over many candidates whose costs are small integers.

    A candidate of cost ``c`` has a probability proportional to ``exp(-epsilon c / 2)``, in the
    exact sense of :func:`exponential_mechanism`: candidates of one cost are counted first, then one
    of them is drawn.

    Notes
    -----
    **Guarantee.**

    - Adjacency: any under which no cost changes by more than one.
    - Released: the number of one candidate, of bounded range `epsilon`.
    - Sensitivity: one, for each cost separately.
    - Proof: ``docs/proofs/pure_halfspace.md``, section 2.
    """

    epsilon: float

    def perturb(self, value: NDArray[Any], source: ByteSource) -> NDArray[np.float64]:
        """Return the number of the chosen candidate; smaller costs are better."""
        tally = np.bincount(value)
        present = np.flatnonzero(tally)
        members = tally[present]
        chosen = exponential_mechanism(
            -present.astype(np.float64), self.epsilon, multiplicities=members, source=source
        )
        number = uniform_below(int(members[chosen]), source.branches()(0))
        return np.array([np.flatnonzero(value == present[chosen])[number]], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class CountedChoice(PureMechanism):
    """A `TalliedChoice` with a part of the budget, and a noisy cost of the chosen candidate.

    Candidate ``j`` and integer ``m`` have together a probability proportional to
    ``exp(-choice_epsilon c_j / 2) g(m - c_j)`` with ``g(k) = exp(-epsilon k)`` for ``k >= 0`` and
    ``exp((epsilon - choice_epsilon) k)`` below. A separate choice and count would need noise of
    equal width above and below the cost. Here a higher cost makes its candidate less likely, so a
    count above the cost reveals less and may have less noise.

    Notes
    -----
    **Guarantee.**

    - Adjacency: any under which no cost changes by more than one.
    - Released: the number of one candidate and a noisy cost of it, together
      ``epsilon``-differentially private, but not of bounded range `epsilon`.
    - Sensitivity: one, for each cost separately.
    - Proof: ``docs/proofs/small_tables.md``, section 6.
    """

    epsilon: float
    choice_epsilon: float

    def __post_init__(self) -> None:
        if not all(rate >= SMALLEST_COUNT_RATE for rate in self.rates):
            raise ValueError("choice_epsilon must be smaller than epsilon, by 2^-53 at least")

    @property
    def rates(self) -> tuple[Fraction, Fraction]:
        """Rates at which the probability of a noisy cost decays below and above the cost."""
        epsilon = positive_rational(self.epsilon, "epsilon")
        return epsilon - positive_rational(self.choice_epsilon, "choice_epsilon"), epsilon

    def perturb(self, value: NDArray[Any], source: ByteSource) -> NDArray[np.float64]:
        """Return the number of the chosen candidate, and its cost with noise."""
        (chosen,) = TalliedChoice(self.choice_epsilon).perturb(value, source)
        down, up = (int(draw_geometric(rate, (), source)) for rate in self.rates)
        return np.array([chosen, int(value[int(chosen)]) + up - down], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class TalliedChoices(ExponentialMechanism):
    """One candidate from each of several lists, with small integer costs that add up.

    The exponential mechanism over all combinations, one candidate of each list: a combination has
    a probability proportional to ``exp(-epsilon c / 2)``, ``c`` being the sum of its costs. That is
    a product over the lists, of `lengths`, whose costs follow one another in a value.

    Notes
    -----
    **Guarantee.**

    - Adjacency: any under which the sum of costs of no combination changes by more than one.
    - Released: the number of one candidate of each list, together of bounded range `epsilon`.
    - Sensitivity: one, of the sum of costs of each combination.
    - Proof: ``docs/proofs/small_tables.md``, section 8.
    """

    lengths: tuple[int, ...]
    epsilon: float

    def parts(self, value: NDArray[Any]) -> list[NDArray[Any]]:
        """Divide a value into the costs of each list."""
        return np.split(value, np.cumsum(self.lengths)[:-1])

    def perturb(self, value: NDArray[Any], source: ByteSource) -> NDArray[np.float64]:
        """Return the number of the chosen candidate of every list; smaller costs are better."""
        single = TalliedChoice(self.epsilon)
        return np.concatenate([single.perturb(part, source) for part in self.parts(value)])


@dataclass(frozen=True, slots=True)
class GeneralizedChoice(ExponentialMechanism):
    """The choice of one of finitely many candidates by costs of different sensitivity.

    With ``t = (2 / epsilon) ln(K / beta)`` and ``beta = 0.05`` the chosen cost is at most
    ``min_j (q_j + 2 t D_j)`` with probability ``1 - beta``.

    Notes
    -----
    **Guarantee.**

    - Adjacency: any under which cost ``j`` changes by at most ``sensitivities[j]``.
    - Released: the number of one candidate, of bounded range `epsilon`.
    - Sensitivity: one for the normalised costs, and roundings.
    - Proof: ``docs/proofs/kernel.md``, section 4.

    References
    ----------
    S. Raskhodnikova, A. Smith (2016), Lipschitz extensions for node-private graph statistics and
    the generalized exponential mechanism, FOCS.
    """

    sensitivities: tuple[float, ...]
    epsilon: float

    @property
    def sensitivity(self) -> float:
        """Bound on the change of a normalised score: one, and roundings.

        For costs up to 10^9 times their sensitivity; ``docs/proofs/kernel.md``, Lemma 5.
        """
        return 1.0 + 2.0**-20 + self._shift * 2.0**-49

    @property
    def _shift(self) -> float:
        """``t``: amount added to costs, in units of their sensitivities."""
        return 2.0 / self.epsilon * math.log(len(self.sensitivities) / _FAILURE_PROBABILITY)

    def normalise_costs(self, costs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return nonnegative scores of sensitivity one; smaller is better."""
        change = np.array(self.sensitivities)
        raised = costs + self._shift * change
        apart = (raised[:, None] - raised[None, :]) / (change[:, None] + change[None, :])
        return np.asarray(apart.max(axis=1))

    def perturb(self, value: NDArray[np.float64], source: ByteSource) -> NDArray[np.float64]:
        """Return the number of the chosen candidate; smaller costs are better."""
        scores = -self.normalise_costs(value)
        chosen = exponential_mechanism(
            scores, self.epsilon, sensitivity=self.sensitivity, source=source
        )
        return np.array([chosen], dtype=np.float64)
