"""Random stopping: the best of a random number of private runs, and what it costs.

Each of :math:`K` runs draws a candidate and returns a model with a noisy score; only the model with
the best score is published. A fixed :math:`K` would cost as much as all runs, but a random one with
the right distribution costs little more than one run: ``docs/proofs/selection.md``.

Let F(s) = f'(Phi(s)), with f the generating function of the number of runs. The guarantee follows
from sup_s F(s) / F(s - mu) and sup_s F(s) - c F(s - mu) for runs that are mu-GDP. F increases, so
its values at the ends of an interval enclose it, and bisection bounds the suprema from above
(section 4).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from functools import lru_cache
from itertools import accumulate
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import exprel, ndtr

from dp_halfspace._params import checked_size, require
from dp_halfspace.privacy.accounting import calibrate
from dp_halfspace.privacy.events import RandomStopping
from dp_halfspace.privacy.noise import DIGITS, LazyUniform, decimal_context, uniform_below
from dp_halfspace.privacy.profiles import (
    FloatArray,
    check_delta,
    check_nonnegative,
    gdp_mu,
    root,
)
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, ByteSource, read_words

_Indices = NDArray[np.intp]
_Cells = Callable[[FloatArray, FloatArray, _Indices], tuple[FloatArray, FloatArray]]

# Number of chords that bound the supremum as a function of c.
_N_CHORDS = 16
# With a smaller mu, differences would cancel. With a larger one the two distributions hardly
# overlap, and the whole range of F is the bound.
_MUS = (2.0**-12, 64.0)
# Number of intervals ("cells") of s before any of them is halved.
_N_INTERVALS = 64
# Accepted excess of the bound of a supremum; for the logarithm of a ratio in units of mu.
_RATIO_TOLERANCE = 2.0**-16
# Relative error of F and of its slope over a cell, for each possible run, and the error of a share.
_RELATIVE_ERROR = 2.0**-40


def polynomials(coefficients: FloatArray, points: FloatArray) -> FloatArray:
    """Return the values of polynomials with nonnegative coefficients at points in [0, 1].

    Each row of `coefficients` is a polynomial, constant term first.
    """
    count, size = coefficients.shape
    # Blocks of about the square root of the degree turn the sum into a matrix product.
    width = math.isqrt(size - 1) + 1
    blocks = -(-size // width)
    padded = np.zeros((count, blocks * width))
    padded[:, :size] = coefficients
    inner = np.vander(points, width, increasing=True)
    outer = np.vander(inner[:, -1] * points, blocks, increasing=True)
    sums = (inner @ padded.reshape(-1, width).T).reshape(-1, count, blocks)
    return np.asarray((sums * outer[:, None, :]).sum(axis=2).T)


def normal_density(s: FloatArray) -> FloatArray:
    """Return the density of the standard normal distribution."""
    return np.asarray(np.exp(-0.5 * s * s) / math.sqrt(2.0 * math.pi))


def _enclose_slopes(
    coefficients: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return F at both ends of the cells, and a lower and an upper bound of F' on them."""
    values = polynomials(coefficients, ndtr(np.concatenate([low, high])))
    (at_low, at_high), (curve_low, curve_high) = values.reshape(2, 2, -1)
    ends = normal_density(low), normal_density(high)
    # The normal density is largest at 0 or at the end that is next to it.
    largest = normal_density(np.clip(0.0, low, high))
    return at_low, at_high, np.minimum(*ends) * curve_low, largest * curve_high


def _top(mu: float) -> float:
    """Return a point s beyond which ``log F(inf) - log F(s - mu)`` is below ``k_max * 1.2e-19``."""
    return 9.0 + mu


def _largest_rise(low: FloatArray, high: FloatArray, slope: FloatArray) -> FloatArray:
    """Return the largest increase over the cells of functions with at most this slope."""
    return np.asarray((high - low) * np.maximum(slope, 0.0))


def _supremum(cells: _Cells, top: float, tolerance: FloatArray) -> FloatArray:
    """Return upper bounds of the suprema of a family of functions of s in [-38, top].

    ``cells(low, high, index)`` returns the value of function ``index`` at ``low`` and an
    upper bound on the cell. The results exceed the suprema by at most `tolerance`.
    """
    edges = np.append(-38.0, np.linspace(-9.0, top, _N_INTERVALS))
    index = np.repeat(np.arange(len(tolerance)), _N_INTERVALS)
    low, high = (np.tile(ends, len(tolerance)) for ends in (edges[:-1], edges[1:]))
    best = np.full(len(tolerance), -np.inf)
    while low.size:
        value, bound = cells(low, high, index)
        np.maximum.at(best, index, value)
        undecided = bound > (best + tolerance)[index]
        low, high, index = low[undecided], high[undecided], np.tile(index[undecided], 2)
        middle = 0.5 * (low + high)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return best + tolerance


def _coefficients(probabilities: FloatArray) -> FloatArray:
    """Return the coefficients of f' and f'', padded to the same length."""
    k = np.arange(1, len(probabilities) + 1)
    first = k * probabilities
    second = np.append((first * (k - 1))[1:], 0.0)
    return np.stack([first, second])


def log_rank_ratio(probabilities: FloatArray, mu: float) -> float:
    """Bound ``sup_s log F(s) - log F(s - mu)`` from above, up to about ``2**-16 * mu``.

    The probabilities are P(K = 1), ..., P(K = k_max).
    """
    if len(probabilities) == 1 or mu == 0.0:
        return 0.0
    coefficients, slack = _coefficients(probabilities), _slack(probabilities)
    # The logarithm of the largest over the smallest value of F.
    whole = math.log(coefficients[0].sum() / coefficients[0, 0]) + slack
    if mu >= _MUS[1]:
        return whole

    def slope(low: FloatArray, high: FloatArray, index: _Indices) -> tuple[FloatArray, FloatArray]:
        at_low, _, flattest, steepest = _enclose_slopes(coefficients, low, high)
        return flattest / at_low, steepest / at_low

    def ratio(low: FloatArray, high: FloatArray, index: _Indices) -> tuple[FloatArray, FloatArray]:
        at_low, _, _, steepest = _enclose_slopes(coefficients, low, high)
        below, ahead, flattest, _ = _enclose_slopes(coefficients, low - mu, high - mu)
        value = np.log(at_low / below)
        return value, value + _largest_rise(low, high, steepest / at_low - flattest / ahead)

    if mu < _MUS[0]:
        # For a tiny mu the logarithms would cancel. The mean value theorem bounds their difference,
        # and is too large by a relative mu^2 / 24 only.
        (steepest,) = _supremum(slope, 9.0, np.array([_RATIO_TOLERANCE]))
        return mu * (float(steepest) * (1.0 + slack) + slack)
    (bound,) = _supremum(ratio, _top(mu), np.array([_RATIO_TOLERANCE * mu]))
    return min(whole, float(bound) + slack)


def _slack(probabilities: FloatArray) -> float:
    """Return a bound on the relative error of F and of its slope over a cell."""
    return _RELATIVE_ERROR * (len(probabilities) + 64)


def chord_shares(
    probabilities: FloatArray, mean: float, mu: float, log_ratio: float
) -> tuple[float, ...]:
    """Bound ``sup_s F(s) - c F(s - mu)``, a function of c, by chords; return the weights of these.

    The weights ``w`` satisfy ``sup_s F(s) - c F(s - mu) <= mean * sum_j w_j (1 - c / c_j)_+`` for
    all c >= 0, where ``log c_j = log_ratio * (j + 1) / len(w)``. `mean` is at least E[K], the
    supremum at c = 0. `log_ratio` is positive, and at its exponential the supremum is at most 0.
    """
    coefficients = _coefficients(probabilities)
    step = log_ratio / _N_CHORDS
    c = np.exp(step * np.arange(1, _N_CHORDS + 1))

    def cells(low: FloatArray, high: FloatArray, index: _Indices) -> tuple[FloatArray, FloatArray]:
        at_low, _, _, steepest = _enclose_slopes(coefficients, low, high)
        below, _, flattest, _ = _enclose_slopes(coefficients, low - mu, high - mu)
        value = at_low - c[index] * below
        return value, value + _largest_rise(low, high, steepest - c[index] * flattest)

    tolerance = np.full(_N_CHORDS - 1, _RATIO_TOLERANCE * mean * min(step, 1.0))
    slack = _slack(probabilities) * mean
    # The supremum is convex in c, so it is also below the chord from c = 0 to the last c.
    chord = mean * -np.expm1(step * np.arange(1 - _N_CHORDS, 0))
    bounds = np.clip(_supremum(cells, _top(mu), tolerance) + slack, 0.0, chord)
    heights = np.concatenate([[mean], bounds, [0.0]])
    # Differences c_j - c_{j-1} without cancellation; the first chord starts at c = 0.
    widths = np.append(c[0], c[:-1] * math.expm1(step))
    slopes = np.append(np.diff(heights) / widths, 0.0)
    weights = np.maximum(c * np.diff(slopes), 0.0) / mean
    return tuple((weights + _RELATIVE_ERROR).tolist())


MOST_RUNS = 100_000
"""Largest cap of a distribution."""

# Largest shape. With at most 10^5 runs, P(K = 1), by which is divided, is then above 10^-232.
_LARGEST_ETA = 64.0


@dataclass(frozen=True, slots=True)
class RunCountDistribution:
    r"""Truncated negative binomial distribution of the number of runs :math:`K`.

    .. math:: P(K = k) \propto \binom{k + \eta - 1}{k} (1 - r)^k, \qquad 1 \le k \le k_{max},

    normalised after the truncation, with the logarithmic distribution as the limit at
    :math:`\eta = 0`. The case :math:`\eta = 1` is geometric.

    Parameters
    ----------
    eta : float
        Shape, in (-1, 64]. A larger one makes :math:`K` less variable and each run more costly.
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
    >>> from dp_halfspace.privacy.random_stopping import RunCountDistribution
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
        eta, r, k_max = float(self.eta), float(self.r), checked_size("k_max", self.k_max)
        if not -1.0 < eta <= _LARGEST_ETA:
            raise ValueError(f"eta must be in (-1, {_LARGEST_ETA:g}], got {self.eta!r}")
        require("in (0, 1]", r=r)
        if k_max > MOST_RUNS:
            raise ValueError(f"k_max must be at most {MOST_RUNS}, got {k_max!r}")
        for name, value in (("eta", eta + 0.0), ("r", r), ("k_max", k_max)):
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
        """Draw the number of runs, which must stay secret.

        Its distribution is this one up to a total variation of 2**-440: a uniform number is
        compared with enclosures of the distribution function.
        """
        uniform = LazyUniform(int(read_words(1, source)[0]), 64, source.branches()(0))

        def is_reached(k: int) -> bool:
            return uniform.below(lambda bits: _cumulative(self, bits)[k - 1])

        return bisect_left(range(self.k_max), True, lo=1, key=is_reached)


def _weights(distribution: RunCountDistribution) -> list[Decimal]:
    """Return P(K = k) over P(K = 1), in the precision of the current context."""
    shape, ratio = Decimal(distribution.eta), 1 - Decimal(distribution.r)
    weights = [Decimal(1)]
    for k in range(1, distribution.k_max):
        weights.append(weights[-1] * (k + shape) * ratio / (k + 1))
    return weights


@lru_cache(maxsize=32)
def _moments(distribution: RunCountDistribution) -> tuple[NDArray[np.float64], float]:
    """Return the probabilities, and the mean rounded up."""
    with localcontext(decimal_context(DIGITS)):
        weights = _weights(distribution)
        total = sum(weights)
        probabilities = np.array([float(weight / total) for weight in weights])
        mean = sum(k * weight for k, weight in enumerate(weights, 1)) / total
        rounded = float(mean) if distribution.k_max == 1 else math.nextafter(float(mean), math.inf)
    probabilities.setflags(write=False)
    return probabilities, rounded


@lru_cache(maxsize=4)
def _cumulative(distribution: RunCountDistribution, bits: int) -> list[int]:
    """Return integers within 1 of ``P(K <= k) * 2**bits``, for k = 1, ..., k_max."""
    # With as many decimal digits as bits, rounding errors are far below 2^-bits.
    with localcontext(decimal_context(bits)):
        weights = _weights(distribution)
        scale = Decimal(1 << bits) / sum(weights)
        return [int((reached * scale).to_integral_value()) for reached in accumulate(weights)]


# Default caps cut less than this probability. The accounting is exact for any cap.
_CAPPED_SHARE = 1e-9


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

    Notes
    -----
    Privacy: a function of public numbers, so calling it uses no budget.

    References
    ----------
    ``docs/proofs/selection.md``, section 3.

    Examples
    --------
    >>> from dp_halfspace.privacy import geometric_run_count
    >>> distribution = geometric_run_count(15.0)
    >>> distribution.k_max, round(distribution.mean, 4)
    (301, 15.0)
    """
    if not 1.0 <= mean < math.inf:
        raise ValueError(f"mean must be a finite number >= 1, got {mean!r}")
    return _cap_runs(1.0, 1.0 / mean)


def _cap_runs(eta: float, r: float) -> RunCountDistribution:
    """Return the distribution with the smallest cap that cuts less than `_CAPPED_SHARE`."""
    k = np.arange(1.0, MOST_RUNS + 1.0)
    ratios = (k + eta) / (k + 1.0) * (1.0 - r)
    with np.errstate(divide="ignore"):
        logs = np.append(0.0, np.cumsum(np.log(ratios[:-1])))
    weights = np.exp(logs - logs.max())
    # From k on, all ratios of neighbouring weights are at most this number, so that a geometric
    # series bounds the rest.
    worst = np.maximum(ratios, 1.0 - r)
    enough = (worst < 1.0) & (weights * worst <= _CAPPED_SHARE * (1.0 - worst) * np.cumsum(weights))
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

    Notes
    -----
    Privacy: a function of public numbers, so calling it uses no budget.

    References
    ----------
    ``docs/proofs/selection.md``, section 3.

    Examples
    --------
    >>> from dp_halfspace.privacy import run_count_distribution
    >>> round(run_count_distribution(15, 0.2).mean, 1)
    56.0
    """
    if n_candidates < 1:
        raise ValueError(f"n_candidates must be at least 1, got {n_candidates!r}")
    require("in (0, 1)", miss=miss)
    RunCountDistribution(eta, 1.0, 1)  # This refuses a shape that is out of range.
    share = 1.0 - 1.0 / n_candidates
    if miss >= share:
        return RunCountDistribution(eta, 1.0, 1)
    # The target is lowered a little, because the cap raises the probability of a miss.
    target = math.log(miss * (1.0 - 10.0 * _CAPPED_SHARE))

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
    return _cap_runs(float(eta), math.exp(root(excess, smallest, -1e-12)))


def random_stopping_event(distribution: RunCountDistribution, mu: float) -> RandomStopping:
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
    RandomStopping
        To be charged once, instead of the events of the runs.

    Notes
    -----
    **Guarantee.**

    - Adjacency: that of a run.
    - Released: the output of `select_best`; the number of runs stays secret.
    - Sensitivity: each run is `mu`-Gaussian differentially private, whatever its candidate.
    - Proof: ``docs/proofs/selection.md``, section 2.

    The classical bound has all of its mass at the logarithm of the largest ratio of the rank
    factors on neighbouring data sets,

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
    >>> from dp_halfspace.privacy import delta, geometric_run_count, random_stopping_event
    >>> f"{delta([random_stopping_event(geometric_run_count(15.0), 0.15)], 1.0):.2e}"
    '2.82e-07'
    """
    mu = check_nonnegative("mu", mu)
    event = _classical(distribution, mu)
    # Differences of chords would cancel for a smaller mu; for a larger mu they improve nothing.
    if not _MUS[0] <= mu < _MUS[1] or event.log_ratio == 0.0:
        return event
    shares = chord_shares(distribution.probabilities, distribution.mean, mu, event.log_ratio)
    return replace(event, shares=shares)


def _classical(distribution: RunCountDistribution, mu: float) -> RandomStopping:
    """Return the bound with all of its mass at the largest ratio of the rank factors."""
    return RandomStopping(distribution.mean, log_rank_ratio(distribution.probabilities, mu), mu)


def calibrate_random_stopping(
    distribution: RunCountDistribution, epsilon: float, delta: float
) -> float:
    """Largest mu of a run for which the selection stays within a budget, rounded down.

    Parameters
    ----------
    distribution : RunCountDistribution
        Distribution of the number of runs.
    epsilon : float
        Budget of the whole selection, >= 0; infinity gives infinity.
    delta : float
        In [0, 1); 0 gives 0 because no Gaussian noise is pure DP.

    Returns
    -------
    float
        At most ``gdp_mu(epsilon, delta)``; ``random_stopping_event(distribution, mu)`` was checked
        to be within the budget, and the largest such mu is larger by a relative 1e-5 at most.

    Notes
    -----
    Privacy: a function of public numbers, so calling it uses no budget.

    References
    ----------
    ``docs/proofs/selection.md``, sections 2 and 4.

    Examples
    --------
    >>> from dp_halfspace.privacy import calibrate_random_stopping, geometric_run_count
    >>> round(calibrate_random_stopping(geometric_run_count(15.0), 1.0, 1e-6), 4)
    0.1559
    """
    epsilon, delta = check_nonnegative("epsilon", epsilon), check_delta(delta)
    whole = gdp_mu(epsilon, delta)
    return _largest_mu(distribution, epsilon, delta) if 0.0 < whole < math.inf else whole


@lru_cache(maxsize=32)
def _largest_mu(distribution: RunCountDistribution, epsilon: float, delta: float) -> float:
    """Compute `calibrate_random_stopping`, once for the several uses that a plan makes of it."""
    whole = gdp_mu(epsilon, delta)
    # The classical bound needs no chords, so it brackets the answer quickly.
    classical = calibrate(
        lambda mu: [_classical(distribution, mu)], epsilon, delta, lower=0.0, upper=whole, rtol=1e-2
    )
    return calibrate(
        lambda mu: [random_stopping_event(distribution, mu)],
        epsilon,
        delta,
        lower=0.5 * classical,
        upper=whole,
        rtol=1e-5,
    )


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
    **Guarantee.**

    - Adjacency: that of a run.
    - Released: a candidate and its output, at the cost of
      ``random_stopping_event(distribution, mu)``, to be charged once and before the call.
    - Sensitivity: each run is `mu`-Gaussian differentially private, output and score together.
    - Proof: ``docs/proofs/selection.md``, sections 1, 2 and 5.

    The guarantee does not hold if anything else is published: the number of runs, the other
    candidates, outputs and scores, the winning score, or their traces (a log, a progress bar, a
    warning, an entry in a ledger, an attribute of an object that ``run`` keeps). The running time
    is proportional to the number of runs: do not publish it, or wait until a time that is fixed in
    advance. ``run`` must not raise for a reason that depends on private data, and must not use what
    other runs computed.

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
    """Return place and output of the run with the highest score.

    A score of NaN counts as the worst; ties are decided by `source`.
    """
    found: tuple[int, Output] | None = None
    highest, ties, further = -math.inf, 0, source.branches()
    for place, (output, raw) in enumerate(runs):
        score = -math.inf if math.isnan(raw) else float(raw)
        if found is None or score > highest:
            found, highest, ties = (place, output), score, 1
        elif score == highest:
            # The last of j equal runs wins with probability 1 / j, so that all are equally likely.
            ties += 1
            if uniform_below(ties, further(place)) == 0:
                found = place, output
    if found is None:
        raise ValueError("there must be at least one run")
    return found
