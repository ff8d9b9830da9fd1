r"""Selection of the best of a random number of private runs, and what it costs.

Each of :math:`K` runs draws a candidate and returns a model with a noisy score; only the model of
the best score is published. A fixed :math:`K` would cost every run, a random one of the right
distribution little more than one run: ``docs/proofs/selection.md``.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from functools import lru_cache
from numbers import Integral
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import exprel

from dp_halfspace._rounding import UP
from dp_halfspace.privacy._exact import LazyUniform, decimal_context
from dp_halfspace.privacy._rank_ratio import (
    LARGEST_MU,
    SMALLEST_MU,
    Shifted,
    chord_shares,
    log_rank_ratio,
    log_ratio_of,
    trade_off,
)
from dp_halfspace.privacy.accounting import calibrate
from dp_halfspace.privacy.discrete import uniform_below
from dp_halfspace.privacy.events import (
    Event,
    Gaussian,
    ObjectivePerturbation,
    Selection,
    counted,
    gaussian_terms,
    single_runs,
)
from dp_halfspace.privacy.profiles import (
    EPSILON_SLACK,
    LOG_SLACK,
    FloatArray,
    Term,
    check_delta,
    check_nonnegative,
    gdp_mu,
    log_gdp_delta,
    root,
)
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, ByteSource

MOST_RUNS = 100_000
"""Largest cap of a distribution."""

# With at most 10^5 runs this keeps P(K = 1), a divisor, above 10^-232.
_LARGEST_ETA = 64.0
_DIGITS = 40


@dataclass(frozen=True, slots=True)
class RunCountDistribution:
    r"""Truncated negative binomial distribution of the number of runs :math:`K`.

    .. math:: P(K = k) \propto \binom{k + \eta - 1}{k} (1 - r)^k, \qquad 1 \le k \le k_{max},

    normalised after the truncation, with the logarithmic distribution as the limit at
    :math:`\eta = 0`. The case :math:`\eta = 1` is geometric.

    Parameters
    ----------
    eta : float
        Shape, in (-1, 64]. A larger one makes :math:`K` less variable and a run dearer.
    r : float
        In (0, 1]; smaller means more runs. With 1 there is always one run.
    k_max : int
        Largest number of runs, from 1 to 100000.

    Notes
    -----
    Privacy: the parameters are public, the value of :math:`K` never is.

    References
    ----------
    .. [1] N. Papernot, T. Steinke. Hyperparameter tuning with Rényi differential
       privacy. ICLR 2022, Definition 1.

    Examples
    --------
    >>> from dp_halfspace.privacy.tuning import RunCountDistribution
    >>> distribution = RunCountDistribution(eta=1.0, r=0.5, k_max=3)
    >>> distribution.probabilities.round(6).tolist(), round(distribution.mean, 6)
    ([0.571429, 0.285714, 0.142857], 1.571429)
    >>> 1 <= distribution.draw() <= 3
    True
    """

    eta: float
    r: float
    k_max: int

    def __post_init__(self) -> None:
        eta, r, k_max = float(self.eta), float(self.r), self.k_max
        if not -1.0 < eta <= _LARGEST_ETA:
            raise ValueError(f"eta must be in (-1, {_LARGEST_ETA:g}], got {self.eta!r}")
        if not 0.0 < r <= 1.0:
            raise ValueError(f"r must be in (0, 1], got {self.r!r}")
        if isinstance(k_max, bool) or not isinstance(k_max, Integral):
            raise ValueError(f"k_max must be an integer, got {k_max!r}")
        if not 1 <= k_max <= MOST_RUNS:
            raise ValueError(f"k_max must be from 1 to {MOST_RUNS}, got {k_max!r}")
        for name, value in (("eta", eta + 0.0), ("r", r), ("k_max", int(k_max))):
            object.__setattr__(self, name, value)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """P(K = 1), ..., P(K = k_max), each correctly rounded. Read-only."""
        return _moments(self)[0]

    @property
    def mean(self) -> float:
        """E[K], which is f'(1), rounded up."""
        return _moments(self)[1]

    def draw(self, source: ByteSource = OS_RANDOMNESS) -> int:
        """Draw the number of runs; it must stay hidden.

        Its distribution is this one up to a total variation of 2**-440: a uniform number is
        compared with enclosures of the distribution function.
        """
        uniform = LazyUniform(0, 0, source)
        uniform.refine()

        def reached(k: int) -> bool:
            return uniform.below(lambda bits: _cumulative(self, bits)[k - 1])

        return bisect_left(range(self.k_max), True, lo=1, key=reached)


def _weights(distribution: RunCountDistribution) -> list[Decimal]:
    """P(K = k) over P(K = 1), in the precision of the current context."""
    shape, ratio = Decimal(distribution.eta), 1 - Decimal(distribution.r)
    weights = [Decimal(1)]
    for k in range(1, distribution.k_max):
        weights.append(weights[-1] * (k + shape) * ratio / (k + 1))
    return weights


@lru_cache(maxsize=32)
def _moments(distribution: RunCountDistribution) -> tuple[NDArray[np.float64], float]:
    """Probabilities, and the mean rounded up."""
    with localcontext(decimal_context(_DIGITS)):
        weights = _weights(distribution)
        total = sum(weights)
        probabilities = np.array([float(weight / total) for weight in weights])
        mean = sum(k * weight for k, weight in enumerate(weights, 1)) / total
        rounded = float(mean) if distribution.k_max == 1 else math.nextafter(float(mean), math.inf)
    probabilities.setflags(write=False)
    return probabilities, rounded


@lru_cache(maxsize=4)
def _cumulative(distribution: RunCountDistribution, bits: int) -> list[int]:
    """Integers within 1 of ``P(K <= k) * 2**bits``, k = 1, ..., k_max."""
    # As many decimal digits as bits: their rounding errors are out of sight.
    with localcontext(decimal_context(bits)):
        weights = _weights(distribution)
        scale = Decimal(1 << bits) / sum(weights)
        reached, values = Decimal(0), []
        for weight in weights:
            reached += weight
            values.append(int((reached * scale).to_integral_value()))
    return values


# Default caps cut less than this probability; any cap is accounted for exactly.
_CUT = 1e-9


def geometric_run_count(mean: float) -> RunCountDistribution:
    """Geometric distribution of the number of runs.

    Parameters
    ----------
    mean : float
        Expected number of runs, >= 1, before the cap, which lowers it by less than a
        relative 1e-6.

    Returns
    -------
    RunCountDistribution
        Shape 1, capped where less than 1e-9 of the probability is cut.

    Examples
    --------
    >>> from dp_halfspace.privacy import geometric_run_count
    >>> distribution = geometric_run_count(15.0)
    >>> distribution.k_max, round(distribution.mean, 4)
    (301, 15.0)
    """
    if not 1.0 <= mean < math.inf:
        raise ValueError(f"mean must be a finite number >= 1, got {mean!r}")
    return _capped(1.0, 1.0 / mean)


def _capped(eta: float, r: float) -> RunCountDistribution:
    """Distribution with a cap beyond which less than `_CUT` of the probability lies."""
    k = np.arange(1.0, MOST_RUNS + 1.0)
    ratios = (k + eta) / (k + 1.0) * (1.0 - r)
    with np.errstate(divide="ignore"):
        logs = np.append(0.0, np.cumsum(np.log(ratios[:-1])))
    weights = np.exp(logs - logs.max())
    # From k on, every ratio of neighbours is at most this: a geometric series is left.
    worst = np.maximum(ratios, 1.0 - r)
    enough = (worst < 1.0) & (weights * worst <= _CUT * (1.0 - worst) * np.cumsum(weights))
    if not enough.any():
        raise ValueError(
            f"the distribution with eta={eta!r}, r={r!r} needs more than {MOST_RUNS} runs at most; "
            "accept fewer runs or a larger probability to miss a candidate"
        )
    return RunCountDistribution(eta, r, int(np.argmax(enough)) + 1)


def run_count_distribution(
    n_candidates: int, miss: float, *, eta: float = 1.0
) -> RunCountDistribution:
    """Distribution with the fewest runs that tries a given candidate with probability ``1 - miss``.

    Parameters
    ----------
    n_candidates : int
        Number of candidates, >= 1, of which each run draws one uniformly.
    miss : float
        Largest accepted probability that a given candidate is never tried, in (0, 1).
    eta : float, default=1.0
        Shape of the distribution, in (-1, 64]. At an equal `miss`, 2 takes a third to a half fewer
        runs than 1 and lowers the mu of a run by 2 to 7 percent.

    Returns
    -------
    RunCountDistribution
        Capped where less than 1e-9 of the probability is cut; more than 100000 runs are refused.

    Examples
    --------
    >>> from dp_halfspace.privacy import run_count_distribution
    >>> round(run_count_distribution(15, 0.2).mean, 1)
    56.0
    """
    if n_candidates < 1:
        raise ValueError(f"n_candidates must be at least 1, got {n_candidates!r}")
    if not 0.0 < miss < 1.0:
        raise ValueError(f"miss must be in (0, 1), got {miss!r}")
    RunCountDistribution(eta, 1.0, 1)  # refuses a shape that is out of range
    share = 1.0 - 1.0 / n_candidates
    if miss >= share:
        return RunCountDistribution(eta, 1.0, 1)
    # The cap raises the probability of a miss by a relative 1e-9 at most.
    target = math.log(miss * (1.0 - 10.0 * _CUT))

    def excess(log_r: float) -> float:
        reached, whole = -math.log1p(share * math.expm1(log_r)), -log_r
        log_miss = max(eta, 0.0) * (reached - whole) + math.log(reached / whole)
        decay = exprel(-abs(eta) * np.array([reached, whole]))
        return float(log_miss + math.log(decay[0] / decay[1])) - target

    smallest = math.log(1e-9)
    if excess(smallest) > 0.0:
        raise ValueError(
            f"n_candidates={n_candidates!r}, miss={miss!r}, eta={eta!r} needs too many runs"
        )
    return _capped(float(eta), math.exp(root(excess, smallest, -1e-12)))


def selection_event(distribution: RunCountDistribution, mu: float) -> Selection:
    r"""Event of publishing the best of a random number of `mu`-GDP runs.

    Parameters
    ----------
    distribution : RunCountDistribution
        Distribution of the number of runs.
    mu : float
        Each run is `mu`-GDP in its output and noisy score together: training with
        ``mu_train`` and a score with ``mu_score`` make
        ``mu = hypot(mu_train, mu_score)``.

    Returns
    -------
    Selection
        To be charged once, instead of the events of the runs.

    Notes
    -----
    Privacy: valid for the output of `select_best`. The classical bound has all of its mass at
    the logarithm of the largest ratio of the rank factors on neighbouring data sets,

    .. math:: \ln\kappa = \sup_{0 \le a \le 1} \ln \frac{f'(1 - a)}{f'(1 - G(a))},
              \qquad G(a) = \Phi(\Phi^{-1}(a) + \mu);

    the event splits it over smaller ratios, which allows a mu that is 5 to 15 percent larger.

    References
    ----------
    .. [1] N. Papernot, T. Steinke. Hyperparameter tuning with Rényi differential
       privacy. ICLR 2022.
    .. [2] A. Koskela, R. Redberg, Y.-X. Wang. Privacy profiles for private selection. ICML 2024.

    Examples
    --------
    >>> from dp_halfspace.privacy import delta, geometric_run_count, selection_event
    >>> f"{delta([selection_event(geometric_run_count(15.0), 0.15)], 1.0):.2e}"
    '2.82e-07'
    """
    mu = check_nonnegative("mu", mu)
    event = _classical(distribution, mu)
    # Differences over a smaller mu would cancel; beyond the largest the distributions hardly
    # overlap.
    if not SMALLEST_MU <= mu < LARGEST_MU or event.log_ratio == 0.0:
        return event
    shares = chord_shares(
        distribution.probabilities, distribution.mean, Shifted(mu), event.log_ratio
    )
    return replace(event, shares=shares)


def _classical(distribution: RunCountDistribution, mu: float) -> Selection:
    """Return the bound with all of its mass at the largest ratio of the rank factors."""
    return Selection(
        distribution.mean, log_rank_ratio(distribution.probabilities, mu), ((1.0, 0.0, mu),)
    )


def calibrate_selection(distribution: RunCountDistribution, epsilon: float, delta: float) -> float:
    """Largest mu of a run for which the selection stays within a budget, rounded down.

    Parameters
    ----------
    distribution : RunCountDistribution
        Distribution of the number of runs.
    epsilon : float
        Budget of the whole selection, >= 0; infinity gives infinity.
    delta : float
        In [0, 1); 0 gives 0 because no Gaussian noise is purely private.

    Returns
    -------
    float
        At most ``gdp_mu(epsilon, delta)``; ``selection_event(distribution, mu)`` was checked to be
        within the budget, and the largest such mu is larger by a relative 1e-5 at most.

    Examples
    --------
    >>> from dp_halfspace.privacy import calibrate_selection, geometric_run_count
    >>> round(calibrate_selection(geometric_run_count(15.0), 1.0, 1e-6), 4)
    0.1559
    """
    epsilon, delta = check_nonnegative("epsilon", epsilon), check_delta(delta)
    whole = gdp_mu(epsilon, delta)
    if not 0.0 < whole < math.inf:
        return whole
    # The classical bound needs no chords: it brackets the answer in little time.
    classical = calibrate(
        lambda mu: [_classical(distribution, mu)], epsilon, delta, lower=0.0, upper=whole, rtol=1e-2
    )
    return calibrate(
        lambda mu: [selection_event(distribution, mu)],
        epsilon,
        delta,
        lower=0.5 * classical,
        upper=whole,
        rtol=1e-5,
    )


_TOLERANCE = 2.0**-18
# Chords of a smaller ratio would be finer than the tolerance.
_SMALLEST = 2.0**-10


def is_mixable(events: Iterable[Event]) -> bool:
    """Whether all events are Gaussian or perturbed sums over records, as a run's have to be."""
    return all(
        isinstance(event, Gaussian)
        or (isinstance(event, ObjectivePerturbation) and not event.pairwise)
        for event in single_runs(events)
    )


def mixed_selection_event(distribution: RunCountDistribution, run: Iterable[Event]) -> Selection:
    """Event of publishing the best of a random number of runs that are not all Gaussian.

    Parameters
    ----------
    distribution : RunCountDistribution
        Distribution of the number of runs.
    run : iterable of Event
        Everything that one run releases, whatever its candidate, its noisy score included.

    Returns
    -------
    Selection
        To be charged once, instead of the events of the runs.

    Raises
    ------
    ValueError
        If an event is neither Gaussian nor the perturbation of a sum over records.

    Notes
    -----
    Privacy: valid for the output of `select_best`. For a run that is `mu`-GDP,
    `selection_event` says the same, up to a relative 1e-3.

    References
    ----------
    .. [1] A. Koskela, R. Redberg, Y.-X. Wang. Privacy profiles for private selection.
       ICML 2024.

    Examples
    --------
    >>> from dp_halfspace.privacy import Gaussian, ObjectivePerturbation, delta
    >>> from dp_halfspace.privacy import geometric_run_count, mixed_selection_event
    >>> run = [ObjectivePerturbation(0.05, ((1, 0.0), (2, 0.06), (1, 0.12))), Gaussian(0.09)]
    >>> f"{delta([mixed_selection_event(geometric_run_count(15.0), run)], 1.0):.2e}"
    '2.49e-05'
    """
    terms = _terms(run)

    def log_delta(t: FloatArray) -> FloatArray:
        lowered = t * (1.0 - EPSILON_SLACK)
        logs = [
            math.log(weight) + log_gdp_delta(mu, lowered - shift * (1.0 + EPSILON_SLACK))
            for weight, shift, mu in terms
        ]
        return np.asarray(np.logaddexp.reduce(logs, axis=0) + LOG_SLACK)

    bound = trade_off(log_delta) if np.isfinite(terms).all() else None
    whole = math.log(distribution.mean / distribution.probabilities[0]) * UP + 2.0**-50
    if bound is None or distribution.k_max == 1 or not math.isfinite(bound.top):
        return Selection(distribution.mean, whole, terms)
    ratio = log_ratio_of(distribution.probabilities, bound, _TOLERANCE)
    if ratio < _SMALLEST:
        return Selection(distribution.mean, ratio, terms)
    shares = chord_shares(distribution.probabilities, distribution.mean, bound, ratio)
    return Selection(distribution.mean, ratio, terms, shares)


def _terms(run: Iterable[Event]) -> tuple[Term, ...]:
    """Gaussian losses whose weighted sum bounds the profile of a run."""
    events = tuple(run)
    if not is_mixable(events):
        raise ValueError("a run must release Gaussian noise or perturbed sums over records")
    counts = counted(events)
    product = None if counts is None else gaussian_terms(counts)
    terms = [(s * UP, mu, w * UP) for w, s, mu in product or [(1.0, math.inf, math.inf)]]
    return tuple((weight, shift, mu) for shift, mu, weight in sorted(terms))


Candidate = TypeVar("Candidate")
Output = TypeVar("Output")


def select_best(
    run: Callable[[Candidate], tuple[Output, float]],
    candidates: Sequence[Candidate],
    distribution: RunCountDistribution,
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
    distribution : RunCountDistribution
        Distribution of the number of runs.
    source : ByteSource, default=OS_RANDOMNESS
        Randomness of the number of runs, of the candidates and of ties.

    Returns
    -------
    tuple
        The candidate and the output of the best run.

    Notes
    -----
    Privacy: what is returned costs ``selection_event(distribution, mu)``, to be charged once and
    before the call. The guarantee is void if anything else leaves: the number of runs, the
    other candidates, outputs and scores, the winning score, or their traces (a log, a
    progress bar, a warning, an entry in a ledger, an attribute of an object that ``run``
    keeps). The running time is proportional to the number of runs: do not publish it, or
    wait until a time that is fixed in advance. ``run`` must not raise for a reason that
    depends on private data, and must not use what other runs computed.

    References
    ----------
    N. Papernot, T. Steinke. Hyperparameter tuning with Rényi differential privacy. ICLR 2022,
    Algorithm 1.

    Examples
    --------
    >>> from dp_halfspace.privacy import rounded_gaussian, run_count_distribution, select_best
    >>> records = [0, 1, 1, 2, 0, 5]
    >>> def run(threshold, mu=0.15):
    ...     count = sum(record >= threshold for record in records)
    ...     return f"rule {threshold}", rounded_gaussian([count], 1 / mu)[0]
    >>> distribution = run_count_distribution(n_candidates=3, miss=0.1)
    >>> threshold, rule = select_best(run, [1, 2, 3], distribution)
    >>> rule == f"rule {threshold}"
    True
    """
    if len(candidates) == 0:
        raise ValueError("candidates must not be empty")

    def one_run() -> tuple[tuple[Candidate, Output], float]:
        candidate = candidates[uniform_below(len(candidates), source)]
        output, score = run(candidate)
        return (candidate, output), score

    count = distribution.draw(source)
    return best_run((one_run() for _ in range(count)), source)[1]


def best_run(runs: Iterable[tuple[Output, float]], source: ByteSource) -> tuple[int, Output]:
    """Return place and output of the run of the highest score; the others are forgotten.

    A score of NaN counts as the worst; `source` decides ties.
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
