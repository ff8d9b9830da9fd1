"""What training error a margin buys under a privacy budget, before any fit.

A function of public quantities alone, so it costs no privacy and may be minimised over
everything that it takes. Proof: ``docs/proofs/margin_risk.md``.
"""

from __future__ import annotations

import math

from dp_halfspace.privacy.accounting import calibrate
from dp_halfspace.privacy.events import Exponential, Gaussian
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.projection.base import checked_size
from dp_halfspace.projection.jl import jl_distortion, jl_margin
from dp_halfspace.theory._noise_cost import require


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
) -> float:
    r"""Bound the error of noisy gradient descent on data that a halfspace nearly separates.

    All records but `n_outliers` lie at a distance of at least `margin` on the right side of some
    hyperplane through the origin. The method is full-batch gradient descent with Gaussian noise on
    the hinge loss ``max(0, 1 - margin / c)``, from zero, all iterates averaged, with the step size
    of the proof; optionally after a projection by random signs and a clipping (``c`` is then the
    retained margin), and with a selection among candidates by the exponential mechanism on their
    error counts. The bound is on the mean fraction of errors over the noise, a score of zero being
    one.

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
        Number of noisy gradients. More never hurts the bound.
    n_components : int or None, default=None
        Components of a projection by `dp_halfspace.projection.draw_rademacher`; None for
        no projection.
    beta : float, default=0.05
        Probability, over the projection and the sample, with which the bound may fail;
        shared equally between the two where both matter. Unused without them.
    n_candidates : int, default=1
        Number of models that are trained with equal budgets; the bound holds if one of
        them is the method above.
    selection_epsilon : float, default=0.0
        Parameter of the exponential mechanism, a part of the budget. Positive if there is
        more than one candidate.
    population : bool, default=False
        Whether to bound the error on fresh records instead, for independent records of
        any law whose sample has the margin.

    Returns
    -------
    float
        In (0, 1].

    Notes
    -----
    Privacy: a function of public quantities, so calling it costs nothing. It describes the release;
    clipping and noise make it private. Numbers read off the data, such as its true margin, must not
    be passed if the result is used to choose a fit.

    With rank :math:`k = \min(d, n)`, row norm :math:`v` and :math:`\mu` the Gaussian
    privacy of one candidate the bound is

    .. math:: \frac{n_{out}}{n}\Bigl(1+\frac vc\Bigr)
        + \frac vc\sqrt{\frac1T + \frac{4k}{(n\mu)^2}} + \frac{2 \ln K}{n\varepsilon_{sel}}.

    It does not cover other losses, other step sizes or averages of the last iterates,
    which are often better in practice. For a Huber hinge of half-width ``h`` on the margin
    ``c / (1 + h)`` replace ``v / c`` by ``(1 + h) v / c``.

    References
    ----------
    Y. Wang, Z. Zhu, Y.-X. Wang. Adapting to linear separable subsets with large margin in
    differentially private learning. 2025. Lemma D.1, with other constants.

    Examples
    --------
    >>> from dp_halfspace.theory import margin_risk_bound
    >>> round(margin_risk_bound(100_000, 50, 1.0, 1e-6, 0.2, n_steps=10_000), 3)
    0.05
    """
    n = checked_size("n_samples", n_samples)
    d = checked_size("n_features", n_features)
    steps = checked_size("n_steps", n_steps)
    candidates = checked_size("n_candidates", n_candidates)
    outliers = checked_size("n_outliers", n_outliers, least=0)
    if outliers > n:
        raise ValueError(f"n_outliers cannot exceed n_samples; got {n_outliers!r}.")
    require("data_norm", data_norm)
    if not 0.0 < margin <= data_norm:
        raise ValueError(f"margin must be positive and at most data_norm; got {margin!r}.")
    if not 0.0 < beta < 1.0:
        raise ValueError(f"beta must be in (0, 1); got {beta!r}.")
    mu = _training_mu(epsilon, delta, candidates, selection_epsilon)
    share = beta / 2.0 if population and n_components is not None else beta
    relative, dimension = margin / data_norm, d
    if n_components is not None:
        relative = jl_margin(relative, distortion=jl_distortion(n_components, n, share))
        dimension = min(d, n_components)
    if relative == 0.0 or mu == 0.0:
        return 1.0
    # The noise acts in the span of the rows: its rank, not the dimension, is what counts.
    rank = min(dimension, n)
    noise = 2.0 * math.sqrt(rank) / (n * mu)
    bound = outliers / n * (1.0 + 1.0 / relative)
    bound += math.hypot(1.0 / math.sqrt(steps), noise) / relative
    if candidates > 1:
        bound += 2.0 * math.log(candidates) / (n * selection_epsilon)
    bound = min(bound, 1.0)
    return _population_bound(bound, n, dimension, share) if population else bound


def _training_mu(
    epsilon: float, delta: float, n_candidates: int, selection_epsilon: float
) -> float:
    """Return the Gaussian privacy of one candidate beside the selection."""
    if not selection_epsilon >= 0.0:
        raise ValueError(f"selection_epsilon must be at least 0; got {selection_epsilon!r}.")
    if n_candidates > 1 and selection_epsilon == 0.0:
        raise ValueError("selection among several candidates needs a positive selection_epsilon.")
    mu = gdp_mu(epsilon, delta)
    if selection_epsilon > 0.0 and math.isfinite(mu):
        event = lambda value: (Exponential(selection_epsilon), Gaussian(value))  # noqa: E731
        mu = calibrate(event, epsilon, delta, lower=0.0, upper=mu)
    return mu / math.sqrt(n_candidates)


def _population_bound(error: float, n: int, dimension: int, beta: float) -> float:
    """Return the relative Vapnik-Chervonenkis bound, concave in the training error."""
    m = 2.0 * n
    # Logarithm of the number of ways to classify 2n records (Sauer's lemma).
    patterns = dimension * (1.0 + math.log(m / dimension)) if dimension < m else math.inf
    a = (min(patterns, m * math.log(2.0)) + math.log(4.0 / beta)) / n
    return min(1.0, error + 2.0 * a + 2.0 * math.sqrt(a * (a + error)))
