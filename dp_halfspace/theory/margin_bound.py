"""Bounds on the training error for a given margin and privacy budget, before any fit.

Functions of public quantities, so they use no budget and may be minimised over all arguments.
Proof: ``docs/proofs/margin_risk.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dp_halfspace._params import checked_size, require
from dp_halfspace.privacy.accounting import mu_beside
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.random_stopping import calibrate_random_stopping, run_count_distribution
from dp_halfspace.projection.linear import jl_distortion, jl_margin


def margin_risk_bound(
    n_samples: int,
    n_features: int,
    epsilon: float,
    delta: float,
    margin: float,
    *,
    n_outliers: int = 0,
    data_norm: float = 1.0,
    n_steps: int = 200,
    n_components: int | None = None,
    beta: float = 0.05,
    n_candidates: int = 1,
    selection_epsilon: float = 0.0,
    population: bool = False,
    candidate_dimension: int | None = None,
    half_width: float = 0.0,
) -> float:
    r"""Bound the error of noisy gradient descent on data that a halfspace nearly separates.

    All records but `n_outliers` lie at a distance of at least `margin` on the right side of some
    hyperplane through the origin. The method is full-batch gradient descent with Gaussian noise on
    the hinge loss ``max(0, 1 - margin / c)``, from zero, all iterates averaged, with the step size
    of the proof; optionally after a projection by random signs and a clipping (``c`` is then the
    retained margin), and with a selection among candidates by the exponential mechanism on their
    error counts. The bound is on the mean fraction of errors over the noise, where a score of zero
    counts as an error.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of the data, a constant column included.
    epsilon : float
        Privacy budget of training and selection together, at least 0; ``inf`` means no
        noise.
    delta : float
        In [0, 1). With 0 there is no Gaussian noise, and the bound is 1.
    margin : float
        In the units of `data_norm`, in (0, data_norm].
    n_outliers : int, default=0
        Number of records that may lie anywhere.
    data_norm : float, default=1.0
        Norm to which rows are clipped.
    n_steps : int, default=200
        Number of noisy gradients. The bound never increases with their number.
    n_components : int or None, default=None
        Components of a projection by `dp_halfspace.projection.draw_rademacher`; None for
        no projection.
    beta : float, default=0.05
        Probability, over the projection and the sample, with which the bound may fail; shared
        equally if both are used. Ignored otherwise.
    n_candidates : int, default=1
        Number of models that are trained with equal budgets; the bound holds if one of
        them is the method above.
    selection_epsilon : float, default=0.0
        Parameter of the exponential mechanism, a part of the budget. Positive if there is
        more than one candidate.
    population : bool, default=False
        Whether to bound the error on fresh records instead, for independent records of
        any distribution whose sample has the margin.
    candidate_dimension : int or None, default=None
        With `population` and several candidates: at least the Vapnik-Chervonenkis dimension of the
        class of each candidate, which is the number of its columns for a halfspace. None is for
        error counts with a penalty for that dimension, as by ``selection_score="population"``; the
        penalty changes nothing where all candidates are halfspaces of equally many columns.
    half_width : float, default=0.0
        Half width of the parabola that rounds the corner of the hinge, at least 0. It is .5 for
        ``AdaptiveMarginClassifier(margin=, iterate="mean")``, whose steps are those of the proof;
        its constant column counts as a column of rows of norm one.

    Returns
    -------
    float
        In (0, 1].

    Notes
    -----
    Privacy: a function of public quantities, so calling it uses no budget. It describes the
    release; the privacy of the release follows from clipping and noise. Numbers read off the data,
    such as its true margin, must not be passed if the result is used to choose a fit.

    With rank :math:`k = \min(d, n)`, row norm :math:`v` and :math:`\mu` the Gaussian
    privacy of one candidate the bound is

    .. math:: \frac{n_{out}}{n}\Bigl(1+\frac vc\Bigr)
        + \frac vc\sqrt{\frac1T + \frac{4k}{(n\mu)^2}} + \frac{2 \ln K}{n\varepsilon_{sel}},

    with :math:`(1 + h) v / c` in place of :math:`v / c` for a half width h. It does not cover other
    losses, other step sizes or averages of the last iterates, which are often more accurate in
    practice. The paper's constant is :math:`8 L \sqrt k / (n\mu)` for the second term, four times
    ours.

    The other candidates may be anything for the training error, but not for fresh records: one that
    memorises the records makes few training errors and is chosen. Hence `candidate_dimension`.

    References
    ----------
    E. Wang, Y. Zhu, Y.-X. Wang. Adapting to linear separable subsets with large-margin in
    differentially private learning. 2025. Lemma D.1, with other constants.

    Examples
    --------
    >>> from dp_halfspace.theory import margin_risk_bound
    >>> round(margin_risk_bound(100_000, 50, 1.0, 1e-6, 0.2, n_steps=10_000), 3)
    0.05
    """
    candidates = checked_size("n_candidates", n_candidates)
    mu = _training_mu(epsilon, delta, candidates, selection_epsilon)
    share = beta / 2.0 if population and n_components is not None else beta
    shape, lengths = (n_samples, n_features), (margin, data_norm)
    case = _check_bound_case(shape, lengths, n_outliers, n_components, half_width, share)
    bound = case.mean_error(checked_size("n_steps", n_steps), mu)
    if candidates > 1:
        bound += 2.0 * math.log(candidates) / (case.n * selection_epsilon)
    if not population:
        return min(bound, 1.0)
    return _population_bound(case, bound, share, candidates, candidate_dimension)


@dataclass(frozen=True, slots=True)
class _Separated:
    """Public facts about rows of norm one: number, columns, outliers, and the separator.

    `length` is the norm of a vector that has no loss on the other rows, for slopes of at most one;
    it is infinite if no margin remains after a projection.
    """

    n: int
    dimension: int
    outliers: float
    length: float

    @property
    def rank(self) -> int:
        """Dimension of the span of the rows, in which the noise acts."""
        return min(self.dimension, self.n)

    @property
    def loss(self) -> float:
        """Bound the mean loss of the separator."""
        return self.outliers / self.n * (1.0 + self.length)

    def mean_error(self, n_steps: int, mu: float) -> float:
        """Bound the mean error of the mean iterate: ``docs/proofs/margin_risk.md``, Theorem 1."""
        if math.isinf(self.length) or mu == 0.0:
            return 1.0
        return self.loss + excess_of_unit(self.n, self.rank, n_steps, mu) * self.length


def excess_of_unit(n: int, rank: int, n_steps: int, mu: float) -> float:
    """Bound the mean excess loss of the mean iterate over a vector of norm one."""
    return math.hypot(1.0 / math.sqrt(n_steps), 2.0 * math.sqrt(rank) / (n * mu))


def _check_bound_case(  # noqa: PLR0917 - the arguments of three bounds, in their order
    shape: tuple[int, int],
    lengths: tuple[float, float],
    n_outliers: int,
    n_components: int | None,
    half_width: float,
    beta: float,
) -> _Separated:
    """Check the arguments of the bounds; `beta` is the failure probability of a projection.

    `shape` is that of the data, and `lengths` are the margin and the norm of a row.
    """
    margin, data_norm = lengths
    n, d = checked_size("n_samples", shape[0]), checked_size("n_features", shape[1])
    outliers = checked_size("n_outliers", n_outliers, least=0)
    if outliers > n:
        raise ValueError(f"n_outliers cannot exceed n_samples; got {n_outliers!r}.")
    require("positive and finite", data_norm=data_norm)
    if not 0.0 < margin <= data_norm:
        raise ValueError(f"margin must be positive and at most data_norm; got {margin!r}.")
    require("in [0, 1]", half_width=half_width)
    require("in (0, 1)", beta=beta)
    relative = margin / data_norm
    if n_components is not None:
        relative = jl_margin(relative, distortion=jl_distortion(n_components, n, beta))
        d = min(d, n_components)
    return _Separated(n, d, outliers, (1.0 + half_width) / relative if relative else math.inf)


def last_iterate_risk_bound(
    n_samples: int,
    n_features: int,
    epsilon: float,
    delta: float,
    margin: float,
    *,
    n_outliers: int = 0,
    data_norm: float = 1.0,
    n_steps: int = 200,
    step_size: float | None = None,
    n_components: int | None = None,
    beta: float = 0.05,
    n_candidates: int = 1,
    score_share: float = 0.5,
    population: bool = False,
    candidate_dimension: int | None = None,
    half_width: float = 0.0,
) -> float:
    r"""Bound the error of the last noisy gradient iterate, with high probability over the noise.

    The method is that of `margin_risk_bound`, but the last iterate is released. With several
    candidates, each is trained with an equal share of the budget, and the candidate with the
    smallest noisy number of errors is returned, with Gaussian noise on all counts
    (``selection="gaussian"``).

    Parameters
    ----------
    n_samples, n_features, epsilon, delta, margin, n_outliers, data_norm, n_steps, n_components
        As for `margin_risk_bound`.
    step_size : float or None, default=None
        Step on the mean loss with slopes of at most one, rows of norm one. None takes the one that
        minimises the bound.
    beta : float, default=0.05
        Probability with which the bound may fail, over the noise, the projection, the selection and
        the sample; shared equally between those that are used.
    n_candidates : int, default=1
        Number of models; the bound holds if one of them is the method above.
    score_share : float, default=0.5
        Share of the squared Gaussian budget for the scores, in (0, 1); unused with one candidate.
    population : bool, default=False
        Whether to bound the error on fresh records.
    candidate_dimension : int or None, default=None
        As for `margin_risk_bound`.
    half_width : float, default=0.0
        As for `margin_risk_bound`.

    Returns
    -------
    float
        In (0, 1].

    Notes
    -----
    Privacy: a function of public quantities, so calling it uses no budget.

    The papers state orders of magnitude without constants. The last iterate with a constant step
    size costs a factor that is logarithmic in `n_steps`.

    References
    ----------
    E. Wang, Y. Zhu, Y.-X. Wang (2025), Lemmas 6.3 and D.3, Theorems 6.5 (2), 6.7, L.1 and L.2,
    with constants: ``docs/proofs/theorems.md``, section 1.

    Examples
    --------
    >>> from dp_halfspace.theory import last_iterate_risk_bound
    >>> round(last_iterate_risk_bound(100_000, 50, 1.0, 1e-6, 0.2, n_steps=10_000), 3)
    0.167
    """
    candidates = checked_size("n_candidates", n_candidates)
    require("in (0, 1)", score_share=score_share)
    mu = gdp_mu(epsilon, delta)
    is_chosen = candidates > 1
    share = beta / (1 + is_chosen + population + (n_components is not None))
    shape, lengths = (n_samples, n_features), (margin, data_norm)
    case = _check_bound_case(shape, lengths, n_outliers, n_components, half_width, share)
    each = mu * math.sqrt((1.0 - score_share) / candidates) if is_chosen else mu
    steps = checked_size("n_steps", n_steps)
    if math.isinf(case.length) or each == 0.0:
        return 1.0
    bound = case.loss + _last_excess(case, steps, each, step_size, share)
    if is_chosen and math.isfinite(mu):
        deviation = math.sqrt(candidates / score_share) / mu
        own = math.sqrt(2.0 * math.log(2.0 / share))
        smallest = math.sqrt(2.0 * math.log(2.0 * candidates / share))
        bound += deviation * (own + smallest) / case.n
    if not population:
        return min(bound, 1.0)
    return _population_bound(case, bound, share, candidates, candidate_dimension)


def _last_excess(
    case: _Separated, n_steps: int, mu: float, step_size: float | None, beta: float
) -> float:
    """Bound the excess loss of the last iterate over the separator."""
    deviation = 2.0 * math.sqrt(n_steps) / (case.n * mu)
    if step_size is not None:
        require("positive and finite", step_size=step_size)
        return _excess_for(case, n_steps, deviation, step_size, beta)
    scale = case.length / math.sqrt((n_steps + 1) * (1.0 + case.rank * deviation**2))
    steps = scale * np.geomspace(0.05, 2.0, 16)
    return min(_excess_for(case, n_steps, deviation, step, beta) for step in steps)


def _excess_for(
    case: _Separated, n_steps: int, deviation: float, step: float, beta: float
) -> float:
    """Return the bound of ``docs/proofs/theorems.md``, Theorem 1, for the best of its parameters.

    `deviation` is that of the noise of one coordinate of the mean gradient.
    """
    n, x, R = n_steps + 1, math.log(3.0 / beta), case.length
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(n - 1, 0, -1))])
    best = math.inf
    for factor in np.geomspace(1e-3, 1e2, 11) if deviation > 0.0 else [math.inf]:
        rate = 2.0 * x * n / R**2 * factor
        slack = rate * (step * deviation) ** 2 if deviation > 0.0 else 0.0
        w = 1.0 / (1.0 + slack * harmonic)
        tails = np.cumsum(w[::-1])[::-1]
        v = np.append(w[-1] / tails[1:], 1.0)
        first = w[-1] / tails[0]
        a = w * v
        noisy = a[:-1]
        squares = float(noisy @ noisy)
        total = case.rank * noisy.sum() + 2.0 * math.sqrt(case.rank * x * squares)
        total = deviation**2 * (total + 2.0 * x * float(noisy.max()))
        total += 2.0 * deviation * math.sqrt(2.0 * x * squares) + a.sum()
        value = 0.5 * first * R**2 + x / rate + 0.5 * slack * (first * R) ** 2
        best = min(best, (value / step + 0.5 * step * total) / w[-1])
    return float(best)


def random_stopping_risk_bound(
    n_samples: int,
    n_features: int,
    epsilon: float,
    delta: float,
    margin: float,
    *,
    n_candidates: int,
    n_outliers: int = 0,
    data_norm: float = 1.0,
    n_steps: int = 200,
    n_components: int | None = None,
    beta: float = 0.05,
    miss: float = 0.1,
    shape: float = 2.0,
    score_share: float = 0.2,
    half_width: float = 0.0,
) -> float:
    r"""Bound the error of the best of a random number of runs.

    A random number of times, a candidate is drawn and trained by the method of `margin_risk_bound`,
    and its errors are counted with noise; the best run is returned
    (``selection="random_stopping"``). The bound is on the mean fraction of errors, if one of the
    candidates is the method for the margin.

    Parameters
    ----------
    n_samples, n_features, epsilon, delta, margin, n_outliers, data_norm, n_steps, n_components
        As for `margin_risk_bound`.
    n_candidates : int
        Number of candidates, at least one.
    beta : float, default=0.05
        Probability, over the projection, with which the bound may fail. Unused without one.
    miss : float, default=0.1
        Probability that a given candidate is never drawn, in (0, 1).
    shape : float, default=2.0
        Shape of the truncated negative binomial distribution of the number of runs; 1 is the
        geometric distribution of the paper.
    score_share : float, default=0.2
        Share of the squared Gaussian budget of a run for its score, in (0, 1).
    half_width : float, default=0.0
        As for `margin_risk_bound`.

    Returns
    -------
    float
        In (0, 1].

    Notes
    -----
    Privacy: a function of public quantities, so calling it uses no budget. With the default
    arguments the numbers are those of ``selection="random_stopping"``.

    The paper takes ``miss`` for :math:`1/n^2`, hence about :math:`n^2K` runs, and has an order of
    magnitude for the error but for the term :math:`12\ln(n^2K/\delta)/(n\varepsilon)` of the
    scores, which is ours here: :math:`\sigma\sqrt{2\ln EN}/n`.

    References
    ----------
    E. Wang, Y. Zhu, Y.-X. Wang (2025), Theorem 7.1, Lemmas 7.2 and K.6, with constants:
    ``docs/proofs/theorems.md``, section 2.

    Examples
    --------
    >>> from dp_halfspace.theory import random_stopping_risk_bound
    >>> round(random_stopping_risk_bound(
    ...     100_000, 50, 1.0, 1e-6, 0.2, n_candidates=4, n_steps=10_000), 3)
    0.151
    """
    require("in (0, 1)", score_share=score_share)
    shape_of_X, lengths = (n_samples, n_features), (margin, data_norm)
    case = _check_bound_case(shape_of_X, lengths, n_outliers, n_components, half_width, beta)
    if delta == 0.0 and math.isfinite(epsilon):
        return 1.0
    runs = run_count_distribution(checked_size("n_candidates", n_candidates), miss, eta=shape)
    is_free = math.isinf(epsilon)
    mu = math.inf if is_free else calibrate_random_stopping(runs, epsilon, delta)
    bound = case.mean_error(checked_size("n_steps", n_steps), mu * math.sqrt(1.0 - score_share))
    if mu > 0.0 and not is_free:
        deviation = 1.0 / (mu * math.sqrt(score_share))
        bound += deviation * math.sqrt(2.0 * math.log(max(runs.mean, 1.0))) / case.n
    return min(bound + (miss if n_candidates > 1 else 0.0), 1.0)


def _training_mu(
    epsilon: float, delta: float, n_candidates: int, selection_epsilon: float
) -> float:
    """Return the Gaussian privacy parameter of one candidate, given the selection."""
    require("at least 0", selection_epsilon=selection_epsilon)
    if n_candidates > 1 and selection_epsilon == 0.0:
        raise ValueError("selection among several candidates needs a positive selection_epsilon.")
    mu = gdp_mu(epsilon, delta)
    if selection_epsilon > 0.0 and math.isfinite(mu):
        mu = mu_beside(selection_epsilon, epsilon, delta)
    return mu / math.sqrt(n_candidates)


def _population_bound(
    case: _Separated, error: float, beta: float, n_candidates: int, candidate_dimension: int | None
) -> float:
    """Bound the error on fresh records: ``docs/proofs/margin_risk.md``, section 5."""
    n, dimension = case.n, case.dimension
    confidence = math.log(4.0 * n_candidates / beta)
    if n_candidates > 1:
        if candidate_dimension is None:
            penalty = 2.5 * (dimension * math.log(2.0 * n) + confidence) / n
            return min(1.0, 5.0 / 3.0 * (error + penalty))
        dimension = max(dimension, checked_size("candidate_dimension", candidate_dimension))
    m = 2.0 * n
    # Logarithm of the number of ways to classify 2n records (Sauer's lemma).
    patterns = dimension * (1.0 + math.log(m / dimension)) if dimension < m else math.inf
    a = (min(patterns, m * math.log(2.0)) + confidence) / n
    error = min(error, 1.0)
    return min(1.0, error + 2.0 * a + 2.0 * math.sqrt(a * (a + error)))
