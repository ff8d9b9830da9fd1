r"""Selection of the best of a random number of private runs, and what it costs.

Each of :math:`K` runs draws a candidate and returns a model with a noisy score; the model
of the best score is published, :math:`K` and all else is not. A fixed :math:`K` would
cost every run; a random :math:`K` of the right law costs little more than one run.
Proofs: ``docs/proofs/selection.md``. The selection itself is in
`dp_halfspace.privacy.tune`.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import exprel

from dp_halfspace.privacy._log_profiles import check_delta, check_nonnegative, root
from dp_halfspace.privacy._rank_ratio import chord_shares, log_rank_ratio
from dp_halfspace.privacy._run_law import MOST_RUNS, RunLaw
from dp_halfspace.privacy.accounting import calibrate
from dp_halfspace.privacy.events import Selection
from dp_halfspace.privacy.profiles import gdp_mu

__all__ = [
    "RunLaw",
    "calibrate_selection",
    "geometric_law",
    "miss_probability",
    "run_law",
    "selection_event",
    "selection_log_ratio",
]

# Default caps cut less than this probability; any cap is accounted for exactly.
_CUT = 1e-9


def geometric_law(mean: float) -> RunLaw:
    """Geometric law of the number of runs.

    Parameters
    ----------
    mean : float
        Expected number of runs, >= 1, before the cap, which lowers it by less than a
        relative 1e-6.

    Returns
    -------
    RunLaw
        Shape 1, capped where less than 1e-9 of the probability is cut.

    Raises
    ------
    ValueError
        If `mean` is below 1 or needs a cap above 100000.

    Examples
    --------
    >>> from dp_halfspace.privacy.random_stopping import geometric_law
    >>> law = geometric_law(15.0)
    >>> law.k_max, round(law.mean, 4)
    (301, 15.0)
    """
    if not 1.0 <= mean < math.inf:
        raise ValueError(f"mean must be a finite number >= 1, got {mean!r}")
    return _capped(1.0, 1.0 / mean)


def _capped(eta: float, r: float) -> RunLaw:
    """Law with a cap beyond which less than `_CUT` of the probability lies."""
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
            f"the law with eta={eta!r}, r={r!r} needs more than {MOST_RUNS} runs at most; "
            "accept fewer runs or a larger probability to miss a candidate"
        )
    return RunLaw(eta, r, int(np.argmax(enough)) + 1)


def miss_probability(law: RunLaw, n_candidates: int) -> float:
    """Probability that a given candidate is tried in none of the runs.

    Parameters
    ----------
    law : RunLaw
        Law of the number of runs.
    n_candidates : int
        Number of candidates, >= 1, of which each run draws one uniformly.

    Returns
    -------
    float
        f(1 - 1 / n_candidates), f the probability generating function.

    Raises
    ------
    ValueError
        If `n_candidates` is below 1.

    Examples
    --------
    >>> from dp_halfspace.privacy.random_stopping import geometric_law, miss_probability
    >>> round(miss_probability(geometric_law(15.0), 4), 4)
    0.1667
    """
    if n_candidates < 1:
        raise ValueError(f"n_candidates must be at least 1, got {n_candidates!r}")
    powers = (1.0 - 1.0 / n_candidates) ** np.arange(1, law.k_max + 1)
    return float(law.probabilities @ powers)


def run_law(n_candidates: int, miss: float, *, eta: float = 1.0) -> RunLaw:
    """Law with the fewest runs that tries a given candidate with probability ``1 - miss``.

    Parameters
    ----------
    n_candidates : int
        Number of candidates, >= 1, of which each run draws one uniformly.
    miss : float
        Largest accepted probability that a given candidate is never tried, in (0, 1).
    eta : float, default=1.0
        Shape of the law, in (-1, 64]. At an equal `miss`, 2 takes a third to a half fewer
        runs than 1 and lowers the mu of a run by 2 to 7 percent.

    Returns
    -------
    RunLaw
        Capped where less than 1e-9 of the probability is cut.

    Raises
    ------
    ValueError
        If a parameter is out of range, or more than 100000 runs would be possible.

    Examples
    --------
    >>> from dp_halfspace.privacy.random_stopping import miss_probability, run_law
    >>> law = run_law(15, 0.2)
    >>> round(law.mean, 1), round(miss_probability(law, 15), 6)
    (56.0, 0.2)
    """
    if n_candidates < 1:
        raise ValueError(f"n_candidates must be at least 1, got {n_candidates!r}")
    if not 0.0 < miss < 1.0:
        raise ValueError(f"miss must be in (0, 1), got {miss!r}")
    RunLaw(eta, 1.0, 1)  # refuses a shape that is out of range
    share = 1.0 - 1.0 / n_candidates
    if miss >= share:
        return RunLaw(eta, 1.0, 1)
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


def selection_log_ratio(law: RunLaw, mu: float) -> float:
    r"""Logarithm of the largest ratio of the rank factors on neighbouring data sets.

    .. math:: \ln\kappa = \sup_{0 \le a \le 1} \ln \frac{f'(1 - a)}{f'(1 - G(a))},
              \qquad G(a) = \Phi(\Phi^{-1}(a) + \mu).

    Parameters
    ----------
    law : RunLaw
        Law of the number of runs.
    mu : float
        Each run, score included, is `mu`-GDP.

    Returns
    -------
    float
        A proved upper bound, larger than the supremum by about ``2**-16 * mu`` at most
        if ``mu >= 2**-12``.

    Raises
    ------
    ValueError
        If `mu` is negative or NaN.

    Examples
    --------
    >>> from dp_halfspace.privacy.random_stopping import geometric_law, selection_log_ratio
    >>> round(selection_log_ratio(geometric_law(15.0), 0.15), 4)
    0.3156
    """
    return log_rank_ratio(law.probabilities, check_nonnegative("mu", mu))


def selection_event(law: RunLaw, mu: float) -> Selection:
    """Event of publishing the best of a random number of `mu`-GDP runs.

    Parameters
    ----------
    law : RunLaw
        Law of the number of runs.
    mu : float
        Each run is `mu`-GDP in its output and noisy score together: training with
        ``mu_train`` and a score with ``mu_score`` make
        ``mu = hypot(mu_train, mu_score)``.

    Returns
    -------
    Selection
        To be charged once, instead of the events of the runs.

    Raises
    ------
    ValueError
        If `mu` is negative or NaN.

    Notes
    -----
    Privacy: valid for the output of `dp_halfspace.privacy.tune.select_best`. The classical
    bound is ``Selection(law.mean, selection_log_ratio(law, mu), mu)``; the event splits
    its mass over smaller ratios, which allows a mu that is 5 to 15 percent larger.

    References
    ----------
    .. [1] J. Liu, K. Talwar. Private selection from private candidates. STOC 2019.
    .. [2] N. Papernot, T. Steinke. Hyperparameter tuning with Rényi differential
       privacy. ICLR 2022.
    .. [3] A. Koskela, R. Redberg, Y.-X. Wang. Privacy profiles for private selection.
       ICML 2024.

    Examples
    --------
    >>> from dp_halfspace.privacy.accounting import delta
    >>> from dp_halfspace.privacy.random_stopping import geometric_law, selection_event
    >>> f"{delta([selection_event(geometric_law(15.0), 0.15)], 1.0):.2e}"
    '2.82e-07'
    """
    mu = check_nonnegative("mu", mu)
    ratio = selection_log_ratio(law, mu)
    return Selection(law.mean, ratio, mu, chord_shares(law.probabilities, law.mean, mu, ratio))


def calibrate_selection(law: RunLaw, epsilon: float, delta: float) -> float:
    """Largest mu of a run for which the selection stays within a budget, rounded down.

    Parameters
    ----------
    law : RunLaw
        Law of the number of runs.
    epsilon : float
        Budget of the whole selection, >= 0; infinity gives infinity.
    delta : float
        In [0, 1); 0 gives 0 because no Gaussian noise is purely private.

    Returns
    -------
    float
        At most ``gdp_mu(epsilon, delta)``; ``selection_event(law, mu)`` was checked to be
        within the budget, and the largest such mu is larger by a relative 1e-5 at most.

    Raises
    ------
    ValueError
        If `epsilon` is negative or NaN or `delta` is outside [0, 1).

    Examples
    --------
    >>> from dp_halfspace.privacy.random_stopping import calibrate_selection, geometric_law
    >>> round(calibrate_selection(geometric_law(15.0), 1.0, 1e-6), 4)
    0.1559
    """
    epsilon, delta = check_nonnegative("epsilon", epsilon), check_delta(delta)
    whole = gdp_mu(epsilon, delta)
    if not 0.0 < whole < math.inf:
        return whole
    # The classical bound needs no chords: it brackets the answer in little time.
    classical = calibrate(
        lambda mu: [Selection(law.mean, selection_log_ratio(law, mu), mu)],
        epsilon,
        delta,
        lower=0.0,
        upper=whole,
        rtol=1e-2,
    )
    return calibrate(
        lambda mu: [selection_event(law, mu)],
        epsilon,
        delta,
        lower=0.5 * classical,
        upper=whole,
        rtol=1e-5,
    )
