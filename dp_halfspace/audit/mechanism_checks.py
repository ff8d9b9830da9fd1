"""What a replay checks for every mechanism, implemented independently of `privacy`.

The largest distance of two values, the size of the noise, and the total cost of releases. The
accounting of `privacy` is not used, so that mistakes there are detected.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr, logsumexp, ndtr

from dp_halfspace._params import EPSILON_RANGE
from dp_halfspace.papers.objective import GaussianLinearTerm, LaplaceLinearTerm
from dp_halfspace.privacy.exponential import CountedChoice, TalliedChoice, TalliedChoices
from dp_halfspace.privacy.mechanisms import (
    ExponentialChoice,
    GaussianNoise,
    L2LaplaceNoise,
    NoNoise,
    SampledGaussianNoise,
)
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise, RandomizedResponse

Array: TypeAlias = NDArray[Any]
# Smallest probability that is computed as one minus another.
_LEAST_COMPLEMENT = 1e-9
# Parts of the noise that a replay looks for: hardly less, a good deal less, and half.
_DIVISORS = (1.1, 1.4, 2.0)
LINEAR_TERMS = (GaussianLinearTerm, LaplaceLinearTerm)


def distance(mechanism: Any, first: Array, second: Array) -> tuple[float, float]:
    """Return the distance of two values in the norm of a mechanism, and its limit."""
    apart: Any
    change = np.abs(np.subtract(first, second, dtype=np.float64))
    most = getattr(mechanism, "change", getattr(mechanism, "sensitivity", 1.0))
    match mechanism:
        case NoNoise():
            return float(np.linalg.norm(change)), math.inf
        case GaussianNoise() | L2LaplaceNoise() | GaussianLinearTerm():
            apart = np.linalg.norm(change)
        case DiscreteLaplaceNoise():
            apart = change.sum()
        case SampledGaussianNoise() | LaplaceLinearTerm():
            # The exact value is one row for each record, or for each coefficient.
            apart = np.linalg.norm(change, axis=1).sum()
        case RandomizedResponse():
            apart = np.count_nonzero(change)
        case TalliedChoices():
            # The bound is on the sum of costs, one from each list.
            signed = mechanism.parts(np.subtract(first, second, dtype=np.float64))
            highest, lowest = (sum(end(part) for part in signed) for end in (np.max, np.min))
            apart = max(highest, -lowest)
        case _:
            apart = np.abs(utilities(mechanism, first) - utilities(mechanism, second)).max()
    # A value that is not a number is released as another one, at no bounded distance.
    return math.inf if math.isnan(apart) else float(apart), float(most)


def utilities(choice: Any, value: Array) -> Array:
    """Return the utilities of an exponential mechanism; larger is better."""
    match choice:
        case ExponentialChoice():
            return value
        case TalliedChoice() | TalliedChoices() | CountedChoice():
            return -value.astype(np.float64)
    return np.asarray(-choice.normalise_costs(value))


def lists_of(choice: Any, utilities: Array) -> list[Array]:
    """Return the utilities of each list of candidates; one number is released for each list."""
    if isinstance(choice, TalliedChoices):
        return choice.parts(utilities)
    return [utilities]


def distort(
    value: Array,
    drawn: Array,
    mechanism: Any,
    distortion: tuple[float, float],
    source: Any,
) -> Array:
    """Return the answer of an adversary that replaces an honest draw.

    Linear terms remain honest, because their norm is bounded.
    """
    if isinstance(mechanism, (*LINEAR_TERMS, NoNoise)):
        return drawn
    number, (of_value, of_noise) = int.from_bytes(source.read(8), "little"), distortion
    match mechanism:
        case GaussianNoise() | L2LaplaceNoise() | DiscreteLaplaceNoise() | SampledGaussianNoise():
            is_step = isinstance(mechanism, SampledGaussianNoise)
            true = value[number % len(value)] if is_step else value
            return np.asarray(of_value * true + of_noise * (drawn - true))
        case RandomizedResponse():
            return (value + number) % mechanism.n_classes
        case CountedChoice():
            chosen, count = number % len(value), value[int(drawn[0])]
            return np.array([chosen, of_value * value[chosen] + of_noise * (drawn[1] - count)])
    rows = lists_of(mechanism, utilities(mechanism, value))
    return np.array([number % len(row) for row in rows], dtype=np.float64)


@np.errstate(under="ignore")
def noise_level(releases: Iterable[tuple[Any, Array, Array]]) -> float:
    """Return a bound on the probability that correct noise is as small as that of these releases.

    The likelihood of noise that is divided by a number, over that of correct noise, has a mean of
    one. So the mean of such ratios exceeds 1/p with a probability of at most p.
    """
    ratios = np.zeros(len(_DIVISORS))
    for mechanism, value, released in releases:
        if not isinstance(mechanism, NoNoise):
            once, *others = (
                _log_likelihood(mechanism, value, released, k) for k in (1.0, *_DIVISORS)
            )
            ratios += np.subtract(others, once)
    return math.exp(min(0.0, math.log(len(ratios)) - float(logsumexp(ratios))))


def _log_likelihood(mechanism: Any, value: Array, released: Array, k: float) -> float:
    """Return the log likelihood of a release by noise that is divided by `k`, up to a constant."""
    noise = released - value if np.shape(released) == np.shape(value) else released
    match mechanism:
        case GaussianNoise() | GaussianLinearTerm():
            square = np.square(k * noise / mechanism.sigma).sum()
            return float(np.size(value) * math.log(k) - 0.5 * square)
        case L2LaplaceNoise() | LaplaceLinearTerm():
            blocks = noise if isinstance(mechanism, LaplaceLinearTerm) else np.ravel(noise)[None]
            lengths = np.linalg.norm(blocks, axis=1).sum() / mechanism.scale
            return float(np.size(value) * math.log(k) - k * lengths)
        case SampledGaussianNoise():
            gaps = np.square((released - value) * k / mechanism.sigma).sum(axis=1)
            return float(np.size(released) * math.log(k) + logsumexp(-0.5 * gaps))
        case DiscreteLaplaceNoise():
            rates = np.full(2, k * _rate_of(mechanism))
            return float(sum(_log_of_laplace(rates, each) for each in np.ravel(noise)))
        case RandomizedResponse():
            # A changed label has the odds of the own one less epsilon.
            epsilon = k * mechanism.epsilon
            kept = RandomizedResponse(mechanism.n_classes, epsilon).keep_probability
            return len(value) * math.log(kept) - epsilon * np.count_nonzero(noise)
    is_counted = isinstance(mechanism, CountedChoice)
    epsilon = mechanism.choice_epsilon if is_counted else mechanism.epsilon
    rate = k * float(epsilon) / (2.0 * getattr(mechanism, "sensitivity", 1.0))
    rows = lists_of(mechanism, utilities(mechanism, value) * rate)
    places = [int(released[0])] if is_counted else map(int, released)
    found = sum(row[j] - logsumexp(row) for row, j in zip(rows, places, strict=True))
    if is_counted:
        rates = k * np.array([float(rate) for rate in mechanism.rates])
        found += _log_of_laplace(rates, released[1] - float(value[int(released[0])]))
    return float(found)


def _log_of_laplace(rates: Array, noise: float) -> float:
    """Return the log likelihood of discrete Laplace noise with a rate below zero and one above."""
    ends = np.log(-np.expm1(-rates)).sum() - math.log(-math.expm1(-rates.sum()))
    return float(ends - rates[int(noise > 0)] * abs(noise))


def _rate_of(mechanism: DiscreteLaplaceNoise) -> float:
    """Return the rate of discrete Laplace noise, from its deviation."""
    return 2.0 * math.asinh(math.sqrt(0.5) / mechanism.deviation)


def losses_of(mechanisms: Sequence[Any]) -> tuple[float, dict[float, float], float]:
    """Return the mu of all Gaussian losses, the others with probabilities, and their largest sum.

    The privacy loss of a choice or of a perturbed objective has no simple distribution. It is
    replaced for a choice by that of randomized response with half of its range; for an objective by
    that of a response with the ratio of its Jacobians, together with Gaussian noise for its longest
    vertex; and for a step on a secret record by that of Gaussian noise with the same total
    variation. The guarantee of the mechanism allows each of these losses, so a correct release
    never costs more than its charge.
    """
    squares = largest = 0.0
    losses = {0.0: 1.0}
    for mechanism in mechanisms:
        bound = 0.0
        match mechanism:
            case NoNoise():
                return math.inf, losses, math.inf
            case GaussianNoise():
                squares += (mechanism.sensitivity / mechanism.sigma) ** 2
            case SampledGaussianNoise():
                apart = 2.0 * ndtr(0.5 * mechanism.sensitivity / mechanism.sigma) - 1.0
                squares += 2.0 * math.pi * (float(apart) / mechanism.n_records) ** 2
            case GaussianLinearTerm():
                longest = max(length for _, length in mechanism.vertices)
                squares += (longest * mechanism.change / mechanism.sigma) ** 2
                bound = mechanism.log_ratio
            case L2LaplaceNoise():
                bound = mechanism.sensitivity / mechanism.scale
            case LaplaceLinearTerm():
                bound = mechanism.change / mechanism.scale + mechanism.log_ratio
            case DiscreteLaplaceNoise():
                bound = mechanism.sensitivity * _rate_of(mechanism)
            case RandomizedResponse():
                keep, bound = mechanism.keep_probability, mechanism.epsilon
                if 1.0 - keep > _LEAST_COMPLEMENT:
                    bound = math.log(keep * (mechanism.n_classes - 1) / (1.0 - keep))
            case CountedChoice():
                # The change of both releases by one cost that changes by one, and that of the
                # choice by all other costs.
                below, above = map(float, mechanism.rates)
                own = mechanism.choice_epsilon / 2.0
                bound = own + max(own + below, above - own)
            case _:
                largest += mechanism.epsilon / 2.0
                bound = mechanism.epsilon / 2.0
        largest += bound
        losses = _with_response(losses, bound) if bound else losses
    return math.sqrt(squares), losses, largest


def _with_response(losses: dict[float, float], bound: float) -> dict[float, float]:
    """Add the privacy loss of a randomized response."""
    up, found = 1.0 / (1.0 + math.exp(-bound)), defaultdict[float, float](float)
    for loss, probability in losses.items():
        found[round(loss + bound, 12)] += up * probability
        found[round(loss - bound, 12)] += (1.0 - up) * probability
    return found


@np.errstate(under="ignore")
def delta_at(mu: float, losses: dict[float, float], epsilon: float) -> float:
    """Return the hockey-stick divergence at `epsilon`."""
    e = epsilon - np.array(list(losses))
    if mu == 0.0:
        parts = -np.expm1(np.minimum(e, 0.0))
    else:
        parts = ndtr(mu / 2 - e / mu) - np.exp(e + log_ndtr(-mu / 2 - e / mu))
    return float(parts @ np.array(list(losses.values())))


def epsilon_of(mechanisms: Sequence[Any], delta: float) -> float:
    """Return the total epsilon of releases at `delta`, infinity beyond what a fit can ask for."""
    mu, losses, largest = losses_of(mechanisms)
    if delta == 0.0:
        return largest if mu == 0.0 else math.inf
    if delta_at(mu, losses, 0.0) <= delta:
        return 0.0
    if delta_at(mu, losses, EPSILON_RANGE[1]) > delta:
        return math.inf
    most = EPSILON_RANGE[1]
    return float(brentq(lambda at: delta_at(mu, losses, at) - delta, 0.0, most, xtol=1e-12))
