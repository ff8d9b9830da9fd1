"""Guarantees for margins: the bounds of Bassily, Mohri and Suresh (2022), with explicit constants.

Proofs: ``docs/proofs/theorems.md``, sections 3 to 7. All are functions of public quantities and use
no budget.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from scipy.special import ndtr, ndtri

from dp_halfspace._params import checked_size, require
from dp_halfspace.privacy.accounting import mu_beside
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.theory.margin_bound import excess_of_unit
from dp_halfspace.theory.pure_bounds import chernoff_bound, pure_risk_bound

# Share of epsilon for one choice of a margin or of a candidate of a search, which costs three per
# cent of mu, and the largest one for the noisy score of a pure DP run.
CHOICE_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class ErrorBound:
    """A bound on an error, and the number that the paper states for it.

    Attributes
    ----------
    value : float
        The bound that is proved in this project.
    published : float
        The value of the formula in the paper.
    """

    value: float
    published: float


def hinge_risk_bound(
    n_samples: int,
    n_features: int,
    epsilon: float,
    delta: float,
    margin: float,
    *,
    hinge_loss: float = 0.0,
    n_steps: int = 200,
    half_width: float = 0.0,
    population: bool = False,
) -> float:
    r"""Bound the error of noisy gradient descent by the smallest hinge loss of the data.

    The method is that of `margin_risk_bound`, without assumptions on the data. The bound is on the
    mean fraction of errors over the noise and, on fresh records, over the sample.

    Parameters
    ----------
    n_samples, n_features, epsilon, delta, n_steps, half_width
        As for `margin_risk_bound`, for rows of norm at most one.
    margin : float
        The margin :math:`\rho` of the hinge ``max(0, 1 - margin / rho)``, in (0, 1].
    hinge_loss : float, default=0.0
        The least mean hinge loss of a vector of norm one on the sample, at least 0.
    population : bool, default=False
        Whether to bound the error on fresh records, `hinge_loss` being a mean over samples.

    Returns
    -------
    float
        In (0, 1].

    Notes
    -----
    Privacy: a function of public quantities. The bound is

    .. math:: (1+h)\Bigl(\hat L^\rho
        + \frac1\rho\sqrt{\frac1T+\frac{4\min(d,n)}{(n\mu)^2}}\Bigr)=:b,

    and :math:`\Phi(\Phi^{-1}(b)+\mu)` on fresh records: a private model cannot fit its sample much
    better than a fresh one. The dimension is capped by n, so no projection is needed. The paper
    states orders of magnitude.

    References
    ----------
    R. Bassily, M. Mohri, A. T. Suresh (2022), Lemma 3.1 and Theorem 3.2, for full-batch steps and
    in the mean: ``docs/proofs/theorems.md``, section 3.

    Examples
    --------
    >>> from dp_halfspace.theory import hinge_risk_bound
    >>> round(hinge_risk_bound(100_000, 50, 1.0, 1e-6, 0.2, hinge_loss=0.1, n_steps=10_000), 3)
    0.15
    """
    n, d = checked_size("n_samples", n_samples), checked_size("n_features", n_features)
    steps = checked_size("n_steps", n_steps)
    _check_separation(margin, hinge_loss)
    require("in [0, 1]", half_width=half_width)
    mu = gdp_mu(epsilon, delta)
    if mu == 0.0:
        return 1.0
    bound = hinge_loss + excess_of_unit(n, min(d, n), steps, mu) / margin
    bound = min((1.0 + half_width) * bound, 1.0)
    return float(ndtr(ndtri(bound) + mu)) if population else bound


def phased_risk_bound(
    n_samples: int,
    n_features: int,
    epsilon: float,
    delta: float,
    margin: float,
    *,
    hinge_loss: float = 0.0,
) -> float:
    r"""Bound the error on fresh records of one pass of noisy proximal steps.

    The method is ``AdaptiveMarginClassifier(margin=, solver="phased_prox")`` without a projection
    and without class weights. The bound is on the mean over the sample and the noise.

    Parameters
    ----------
    n_samples, n_features, epsilon, delta
        As for `margin_risk_bound`, a constant column included, for rows of norm at most one.
    margin : float
        The margin of the hinge, in (0, 1].
    hinge_loss : float, default=0.0
        The least mean hinge loss on fresh records of a vector of norm one, at least 0.

    Returns
    -------
    float
        In (0, 1].

    Notes
    -----
    Privacy: a function of public quantities. With :math:`\eta_j,n_j` the step size and the records
    of phase j, :math:`s_j=2\eta_j/(\rho\mu)` and :math:`\Delta_1=1`,
    :math:`\Delta_j^2=d\,s_{j-1}^2` it is

    .. math:: L^\rho+\sum_j\Bigl(\frac{\Delta_j^2}{2\eta_jn_j}
        +\frac{\eta_j}{2\rho^2}\bigl(1+\tfrac1{n_j}\bigr)
        +\frac{\Delta_j}{\rho n_j}[j>1]\Bigr)+\frac{s_J}\rho\sqrt{2/\pi}.

    A single pass needs no bound on the generalisation gap. The paper states orders of magnitude.

    References
    ----------
    R. Bassily, M. Mohri, A. T. Suresh (2022), Lemma 3.1 and Theorem 3.2, Algorithm 5 without
    repetition: ``docs/proofs/theorems.md``, section 4.

    Examples
    --------
    >>> from dp_halfspace.theory import phased_risk_bound
    >>> round(phased_risk_bound(100_000, 20, 1.0, 1e-6, 0.3), 3)
    0.067
    """
    n, d = checked_size("n_samples", n_samples), checked_size("n_features", n_features)
    _check_separation(margin, hinge_loss)
    mu = gdp_mu(epsilon, delta)
    if mu == 0.0:
        return 1.0
    eta = margin / math.sqrt(n * (0.5 + 2.0 * math.sqrt(d) / mu))
    bound, deviation, offset, left = hinge_loss, 0.0, 1.0, n
    while left > 0:
        size = max(1, left // 2)
        bound += offset**2 / (2.0 * eta * size) + eta / (2.0 * margin**2) * (1.0 + 1.0 / size)
        if left < n:
            bound += offset / (margin * size)
        deviation = 2.0 * eta / (margin * mu)
        offset, left, eta = math.sqrt(d) * deviation, left - size, eta / 4.0
    return min(bound + deviation / margin * math.sqrt(2.0 / math.pi), 1.0)


def fourier_distortion(n_frequencies: int, n_samples: int, beta: float = 0.05) -> ErrorBound:
    r"""Bound how far inner products of random Fourier features are from the kernel.

    Parameters
    ----------
    n_frequencies : int
        Number of independent frequencies, half of the number of features.
    n_samples : int
        Number of records, at least 2; the bound is for all pairs of them.
    beta : float, default=0.05
        Probability with which the draw of the frequencies may fail.

    Returns
    -------
    ErrorBound
        For a kernel with ``k(x, x) = 1``: ours is :math:`\sqrt{2\ln(n(n-1)/\beta)/D}`, the
        published number :math:`2\sqrt{\ln(n/\beta)/D}`.

    Notes
    -----
    Privacy: a function of public quantities; no guarantee of a fit depends on it.

    References
    ----------
    R. Bassily, M. Mohri, A. T. Suresh (2022), Theorem 4.1. ``docs/proofs/theorems.md``, section 5.

    Examples
    --------
    >>> from dp_halfspace.theory import fourier_distortion
    >>> bound = fourier_distortion(2000, 100)
    >>> round(bound.value, 4), round(bound.published, 4)
    (0.1104, 0.1233)
    """
    size = checked_size("n_frequencies", n_frequencies)
    n = checked_size("n_samples", n_samples, least=2)
    require("in (0, 1)", beta=beta)
    ours = math.sqrt(2.0 * math.log(n * (n - 1) / beta) / size)
    return ErrorBound(ours, 2.0 * math.sqrt(math.log(n / beta) / size))


def fourier_frequencies(distortion: float, n_samples: int, beta: float = 0.05) -> int:
    """Return the number of frequencies with which `fourier_distortion` is at most a number.

    Parameters
    ----------
    distortion : float
        Positive.
    n_samples, beta
        As for `fourier_distortion`.

    Returns
    -------
    int
        Half of the number of features. The paper's Algorithm 3 needs a distortion of about ``1/n``:
        ``n**2 ln(2 n / beta)`` frequencies, which `kernel_risk_bound` does not need.

    References
    ----------
    R. Bassily, M. Mohri, A. T. Suresh (2022), Theorem 4.1.

    Examples
    --------
    >>> from dp_halfspace.theory import fourier_frequencies
    >>> fourier_frequencies(0.1, 100)
    2440
    """
    require("positive and finite", distortion=distortion)
    n = checked_size("n_samples", n_samples, least=2)
    require("in (0, 1)", beta=beta)
    return math.ceil(2.0 * math.log(n * (n - 1) / beta) / distortion**2)


def kernel_risk_bound(
    n_samples: int,
    n_frequencies: int,
    epsilon: float,
    delta: float,
    margin: float,
    *,
    hinge_loss: float = 0.0,
    n_steps: int = 200,
    half_width: float = 0.0,
    population: bool = False,
) -> float:
    r"""Bound the error of noisy gradient descent on random Fourier features.

    The method is that of `hinge_risk_bound` on features of independent frequencies of a kernel with
    ``k(x, x) = 1``. The bound is on the mean over frequencies and noise.

    Parameters
    ----------
    n_samples, epsilon, delta, margin, n_steps, half_width, population
        As for `hinge_risk_bound`.
    n_frequencies : int
        Number of independent frequencies, half of the number of features.
    hinge_loss : float, default=0.0
        The least mean hinge loss of a function of norm one in the space of the kernel.

    Returns
    -------
    float
        In (0, 1].

    Notes
    -----
    Privacy: a function of public quantities. The bound is `hinge_risk_bound` in twice as many
    dimensions as there are frequencies, D, plus :math:`(1+h)/(\rho\sqrt D)`: D about n is enough,
    where the paper needs :math:`n^2\ln(2n/\beta)`. The paper states orders of magnitude.

    References
    ----------
    R. Bassily, M. Mohri, A. T. Suresh (2022), Theorem 4.2, in the mean.
    ``docs/proofs/theorems.md``, section 5.

    Examples
    --------
    >>> from dp_halfspace.theory import kernel_risk_bound
    >>> round(kernel_risk_bound(100_000, 10_000, 8.0, 1e-6, 0.2, n_steps=10_000), 3)
    0.101
    """
    size = checked_size("n_frequencies", n_frequencies)
    _check_separation(margin, hinge_loss)
    return hinge_risk_bound(
        n_samples,
        2 * size,
        epsilon,
        delta,
        margin,
        hinge_loss=hinge_loss + 1.0 / (margin * math.sqrt(size)),
        n_steps=n_steps,
        half_width=half_width,
        population=population,
    )


def network_risk_bound(
    n_samples: int,
    n_features: int,
    epsilon: float,
    margin: float,
    *,
    n_hidden: Sequence[int] = (4, 3),
    weight_norm: float = 1.0,
    slope: float = 1.0,
    n_outliers: int = 0,
    beta: float = 0.05,
) -> float:
    r"""Bound the error on fresh records of the exponential mechanism over a cover of networks.

    The networks have bounded weights in every layer and an activation that is zero at zero; they
    are preceded by a projection by random signs if that makes the bound smaller. The cover is too
    large to be used in practice.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of the data; rows have norm at most one.
    epsilon : float
        Pure privacy budget, at least 0.
    margin : float
        Positive, in units of the output of the network.
    n_hidden : sequence of int, default=(4, 3)
        Neurons of each hidden layer; empty for a halfspace.
    weight_norm : float, default=1.0
        Bound on the Frobenius norm of the weights of a layer.
    slope : float, default=1.0
        Lipschitz constant of the activation.
    n_outliers : int, default=0
        Number of records with an output below the margin, for some network of the class.
    beta : float, default=0.05
        Probability with which the bound may fail, over sample, projection and mechanism.

    Returns
    -------
    float
        In (0, 1].

    Notes
    -----
    Privacy: a function of public quantities. Only the first layer is projected. The width of the
    other layers is an argument, and usually smaller than the dimension after the inner projections
    of the paper. The paper states orders of magnitude, for equal widths of all layers.

    References
    ----------
    R. Bassily, M. Mohri, A. T. Suresh (2022), Theorem 5.1, with constants.
    ``docs/proofs/theorems.md``, section 6.

    Examples
    --------
    >>> from dp_halfspace.theory import network_risk_bound
    >>> round(network_risk_bound(100_000, 10, 1.0, 0.2), 3)
    0.01
    """
    n, d = checked_size("n_samples", n_samples), checked_size("n_features", n_features)
    widths = [checked_size("n_hidden", width) for width in n_hidden]
    outliers = checked_size("n_outliers", n_outliers, least=0)
    require("positive and finite", margin=margin, weight_norm=weight_norm, slope=slope)
    require("at least 0 and finite", epsilon=epsilon)
    require("in (0, 1)", beta=beta)
    stretch = (slope * weight_norm) ** len(widths)  # of the layers after the first
    if margin > stretch * weight_norm:
        return 1.0  # no network of the class has such an output
    share = outliers / n

    def bound(columns: int, left: float, distortion: float, failure: float) -> float:
        sizes = [columns, *widths, 1]
        parameters = sum(a * b for a, b in pairwise(sizes))
        distance = left / (len(sizes) - 1) / (stretch * (1.0 + distortion))
        longest = weight_norm * math.sqrt(1.0 + distortion)
        size = parameters * math.log1p(2.0 * longest / distance)
        return chernoff_bound(n, size, epsilon, share, failure)

    found = [bound(d, margin, 0.0, beta / 2.0)]
    e = margin / (2.0 * stretch * weight_norm)
    rows = widths[0] if widths else 1
    images = 2 * n * rows + n + rows
    components = math.ceil(4.0 * math.log(2.0 * images * 3.0 / beta) / (e * e - e**3 / 1.5))
    if components < d:
        found.append(bound(components, margin / 2.0, e, beta / 3.0))
    return min(found)


def label_risk_bound(
    n_samples: int,
    n_features: int,
    epsilon: float,
    margin: float,
    *,
    n_outliers: int = 0,
    fat_dimension: float | None = None,
    beta: float = 0.05,
) -> ErrorBound:
    r"""Bound the error on fresh records of a purely label-private choice from a cover.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of the data, rows of norm at most one.
    epsilon : float
        Pure budget of one label, positive.
    margin : float
        In (0, 1].
    n_outliers : int, default=0
        Number of records with less than the margin, for some member of the class.
    fat_dimension : float or None, default=None
        Fat-shattering dimension of the class at ``margin / 32``. None is for halfspaces of norm
        one, :math:`(32/\rho)^2`, or their own cover where that is smaller.
    beta : float, default=0.05
        Probability with which the bound may fail.

    Returns
    -------
    ErrorBound
        Both in (0, 1]. The published one is the product of the terms of the cover and of the
        confidence.

    Notes
    -----
    Privacy: a function of public quantities. A method that protects whole records also protects
    their labels, so `pure_risk_bound` holds for halfspaces as well, and is much smaller.

    References
    ----------
    R. Bassily, M. Mohri, A. T. Suresh (2022), Theorem 6.1. ``docs/proofs/theorems.md``, section 7.

    Examples
    --------
    >>> from dp_halfspace.theory import label_risk_bound
    >>> bound = label_risk_bound(10_000_000, 50, 1.0, 0.5, fat_dimension=51)
    >>> round(bound.value, 3), round(bound.published, 3)
    (0.031, 0.95)
    """
    n = checked_size("n_samples", n_samples)
    checked_size("n_features", n_features)
    outliers = checked_size("n_outliers", n_outliers, least=0)
    require("in (0, 1]", margin=margin)
    require("in (0, 1)", beta=beta)
    require("positive and finite", epsilon=epsilon)
    fat = (32.0 / margin) ** 2 if fat_dimension is None else fat_dimension
    require("positive and finite", fat_dimension=fat)
    error = min(outliers / n, 1.0)

    capacity = _log_cover(n, fat) + math.log(2.0 / beta)
    ours = error + 2.0 * capacity / (n * epsilon)
    a = (_log_cover(2 * n, fat) + math.log(8.0 / beta)) / n
    ours = min(ours + 2.0 * a + 2.0 * math.sqrt(a * (a + ours)), 1.0)
    if fat_dimension is None:
        direct = pure_risk_bound(n, n_features, epsilon, margin, n_outliers=outliers, beta=beta)
        ours = min(ours, direct)
    published = error + 2.0 * math.sqrt(error * capacity / n) + 2.0 * capacity / n
    published += 64.0 * capacity * math.log(2.0 / beta) / (epsilon * n)
    return ErrorBound(ours, min(published, 1.0))


def _log_cover(n: int, fat: float) -> float:
    """Bound the logarithm of a cover of n points by the fat-shattering dimension."""
    scale = 17.0  # the constant c of Theorem 6.1 of the paper
    ratio = max(2.0 * scale * math.e * n / fat, 2.0)
    return 1.0 + fat * math.log2(2.0 * scale**2 * n) * math.log2(ratio)


def margin_score_sensitivity(
    n_samples: int, margin: float, *, loss: str = "hinge", capacity: float = 0.0
) -> float:
    r"""Bound the sensitivity of the score by which a margin is selected.

    The score of a margin is the smallest loss of a class, plus a term of the theorem.

    Parameters
    ----------
    n_samples : int
    margin : float
        In (0, 1], for halfspaces of norm one and rows of norm at most one.
    loss : {"hinge", "errors"}, default="hinge"
        The mean hinge loss, or the share of records below the margin.
    capacity : float, default=0.0
        With ``"errors"``, the number M of a score
        :math:`\hat R+2\sqrt{\hat RM/n}` and a term that is public; 0 for :math:`\hat R` alone.

    Returns
    -------
    float
        :math:`(1+1/\rho)/n`, printed as :math:`2/(\rho n)`; or :math:`(1+2\sqrt M)/n`.

    Notes
    -----
    Privacy: a sensitivity under replace-one adjacency of an exact minimum; ``margin="select"`` adds
    the error of a computed minimum (``docs/proofs/kernel.md``, section 4).

    References
    ----------
    R. Bassily, M. Mohri, A. T. Suresh (2022), Lemma F.3, F1 to F5. ``docs/proofs/theorems.md``,
    section 7.

    Examples
    --------
    >>> from dp_halfspace.theory import margin_score_sensitivity
    >>> margin_score_sensitivity(1000, 0.25)
    0.005
    """
    n = checked_size("n_samples", n_samples)
    require("in (0, 1]", margin=margin)
    require("at least 0 and finite", capacity=capacity)
    if loss == "hinge":
        return (1.0 + 1.0 / margin) / n
    if loss == "errors":
        return (1.0 + 2.0 * math.sqrt(capacity)) / n
    raise ValueError(f"loss must be 'hinge' or 'errors'; got {loss!r}.")


def margin_selection_cost(
    n_candidates: int, sensitivity: float, epsilon: float, *, beta: float = 0.05
) -> ErrorBound:
    r"""Bound the excess of a margin chosen by the generalised exponential mechanism.

    Parameters
    ----------
    n_candidates : int
        Number of margins, at least 1.
    sensitivity : float
        Sensitivity of the score of the best margin; other margins may have larger ones.
    epsilon : float
        Parameter of the mechanism.
    beta : float, default=0.05
        Probability with which the bound may fail.

    Returns
    -------
    ErrorBound
        :math:`4\Delta\ln(K/\beta)/\varepsilon`. Lemma F.1 states it without the factor 4, with
        :math:`\ln n` for K; the mechanism does not satisfy that bound.

    Notes
    -----
    Privacy: a function of public quantities.

    References
    ----------
    R. Bassily, M. Mohri, A. T. Suresh (2022), Lemma F.1. ``docs/proofs/kernel.md``, Lemma 4.

    Examples
    --------
    >>> from dp_halfspace.theory import margin_selection_cost
    >>> cost = margin_selection_cost(7, 0.005, 1.0)
    >>> round(cost.value, 4), round(cost.published, 4)
    (0.0988, 0.0247)
    """
    count = checked_size("n_candidates", n_candidates)
    require("at least 0 and finite", sensitivity=sensitivity)
    require("positive", epsilon=epsilon)
    require("in (0, 1)", beta=beta)
    cost = sensitivity * math.log(count / beta) / epsilon
    return ErrorBound(4.0 * cost, cost)


def selected_margin_risk_bound(
    n_samples: int,
    n_features: int,
    epsilon: float,
    delta: float,
    margin: float,
    *,
    hinge_loss: float = 0.0,
    n_steps: int = 200,
    beta: float = 0.05,
) -> float:
    r"""Bound the error where the margin is selected from powers of one half.

    A tenth of epsilon is spent on the choice by the generalised exponential mechanism, whose costs
    are the smallest hinge losses plus the public term of `hinge_risk_bound`; the rest is spent on
    gradient descent. The bound is on the mean fraction of training errors over choice and noise.

    Parameters
    ----------
    n_samples, n_features, epsilon, delta, n_steps
        As for `hinge_risk_bound`.
    margin : float
        Any margin in (0, 1] that is at least the smallest of the grid, about ``n**-.5``: it is not
        known to the method.
    hinge_loss : float, default=0.0
        The least mean hinge loss for that margin.
    beta : float, default=0.05
        Failure probability of the choice, which the bound contains.

    Returns
    -------
    float
        In (0, 1].

    Notes
    -----
    Privacy: a function of public quantities. Compared with a known margin, the cost is at most a
    factor of two in the margin, and `margin_selection_cost`.

    References
    ----------
    R. Bassily, M. Mohri, A. T. Suresh (2022), Corollary F.2. ``docs/proofs/theorems.md``,
    section 7.

    Examples
    --------
    >>> from dp_halfspace.theory import selected_margin_risk_bound
    >>> round(selected_margin_risk_bound(1_000_000, 50, 1.0, 1e-6, 0.2, n_steps=10_000), 3)
    0.132
    """
    n, d = checked_size("n_samples", n_samples), checked_size("n_features", n_features)
    steps = checked_size("n_steps", n_steps)
    _check_separation(margin, hinge_loss)
    require("in (0, 1)", beta=beta)
    count = max(1, round(0.5 * math.log2(n)))
    known = next((0.5**j for j in range(1, count + 1) if 0.5**j <= margin), None)
    mu_all = gdp_mu(epsilon, delta)
    if known is None or mu_all == 0.0:
        return 1.0
    choice = CHOICE_SHARE * epsilon
    mu = mu_all if math.isinf(epsilon) else mu_beside(choice, epsilon, delta)
    bound = hinge_loss + excess_of_unit(n, min(d, n), steps, mu) / known
    if math.isfinite(epsilon):
        sensitivity = margin_score_sensitivity(n, known)
        bound += margin_selection_cost(count, sensitivity, choice, beta=beta).value + beta
    return min(bound, 1.0)


def _check_separation(margin: float, hinge_loss: float) -> None:
    require("in (0, 1]", margin=margin)
    require("at least 0 and finite", hinge_loss=hinge_loss)
