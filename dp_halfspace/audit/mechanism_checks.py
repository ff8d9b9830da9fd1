"""What a replay checks for every mechanism, implemented independently of `privacy`.

The largest distance of two values, the size of the noise, and the total cost of releases. The
accounting of `privacy` is not used, so that mistakes there are detected.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import chdtr, log_ndtr, logsumexp, ndtr

from dp_halfspace.papers.objective import GaussianLinearTerm, LaplaceLinearTerm
from dp_halfspace.privacy.exponential import (
    CountedChoice,
    GeneralizedChoice,
    TalliedChoice,
    TalliedChoices,
)
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
# Larger values of epsilon are treated as infinite.
_INFINITE_EPSILON = 1e9
LINEAR_TERMS = (GaussianLinearTerm, LaplaceLinearTerm)


def distance(mechanism: Any, first: Array, second: Array) -> tuple[float, float]:
    """Return the distance of two values in the norm of a mechanism, and its limit."""
    apart: Any
    change = np.abs(np.subtract(first, second, dtype=np.float64))
    most = getattr(mechanism, "change", getattr(mechanism, "sensitivity", 1.0))
    match mechanism:
        case NoNoise():
            apart, most = np.linalg.norm(change), math.inf
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
    return float(apart), float(most)


def utilities(choice: Any, value: Array) -> Array:
    """Return the utilities of an exponential mechanism; larger is better."""
    match choice:
        case ExponentialChoice():
            return value
        case TalliedChoice() | TalliedChoices() | CountedChoice():
            return -value.astype(np.float64)
        case GeneralizedChoice():
            return -choice.normalise_costs(value)
    raise TypeError(f"{type(choice).__name__} is not a mechanism that an audit knows")


def lists_of(choice: Any, utilities: Array) -> list[Array]:
    """Return the utilities of each list of candidates; one number is released for each list."""
    if isinstance(choice, TalliedChoices):
        return choice.parts(utilities)
    return [utilities]


def noise_level(releases: Iterable[tuple[Any, Array, Array]]) -> float:
    """Return the probability that correct noise is as small as that of this release.

    Squares of Gaussian noise and norms of Laplace noise add up to a chi-square variable for each
    kind of mechanism. For discrete noise, and for a step on a secret record, a likelihood ratio
    against half of the noise is used, whose mean is one.
    """
    sums: dict[type, tuple[float, int]] = {}
    log_ratio = 0.0
    for mechanism, value, released in releases:
        added = 0.0, 0
        noise = released - value if np.shape(released) == np.shape(value) else released
        match mechanism:
            case NoNoise():
                continue
            case GaussianNoise() | GaussianLinearTerm():
                added = float(np.sum(np.square(noise / mechanism.sigma))), np.size(value)
            case SampledGaussianNoise():
                gaps = np.square((released - value) / mechanism.sigma).sum(axis=1)
                log_ratio += np.size(released) * math.log(2.0)
                log_ratio += float(logsumexp(-2.0 * gaps) - logsumexp(-0.5 * gaps))
            case L2LaplaceNoise() | LaplaceLinearTerm():
                blocks = (
                    noise if isinstance(mechanism, LaplaceLinearTerm) else np.ravel(noise)[None]
                )
                lengths = float(np.linalg.norm(blocks, axis=1).sum()) / mechanism.scale
                added = 2.0 * lengths, 2 * np.size(value)
            case DiscreteLaplaceNoise():
                rate = 2.0 * math.asinh(math.sqrt(0.5) / mechanism.deviation)
                more = math.log(math.tanh(rate) / math.tanh(rate / 2.0))
                log_ratio += noise.size * more - rate * float(np.abs(noise).sum())
            case RandomizedResponse():
                # Against twice the epsilon, where a change has the odds of being kept less epsilon.
                planted = RandomizedResponse(mechanism.n_classes, 2.0 * mechanism.epsilon)
                kept = math.log(planted.keep_probability / mechanism.keep_probability)
                log_ratio += len(value) * kept - np.count_nonzero(noise) * mechanism.epsilon
            case CountedChoice():
                log_ratio += _counted_ratio(mechanism, value, released)
            case _:
                rate = mechanism.epsilon / (2.0 * getattr(mechanism, "sensitivity", 1.0))
                exponents = utilities(mechanism, value) * float(rate)
                for row, chosen in zip(lists_of(mechanism, exponents), released, strict=True):
                    log_ratio += row[int(chosen)] + logsumexp(row) - logsumexp(2.0 * row)
        square, freedom = sums.get(type(mechanism), (0.0, 0))
        sums[type(mechanism)] = square + added[0], freedom + added[1]
    small = [float(chdtr(freedom, square)) for square, freedom in sums.values() if freedom]
    return min(1.0, (1 + len(small)) * min(math.exp(-max(log_ratio, 0.0)), *small, 1.0))


def _counted_ratio(mechanism: CountedChoice, value: Array, released: Array) -> float:
    """Return the log likelihood ratio of a choice and a count against twice the epsilon."""
    chosen = int(released[0])
    rates = np.array([float(rate) for rate in mechanism.rates])
    exponents = utilities(mechanism, value) * mechanism.choice_epsilon / 2.0
    ratio = exponents[chosen] + logsumexp(exponents) - logsumexp(2.0 * exponents)
    noise = released[1] - float(value[chosen])
    sums = [-math.log(-np.expm1(-k * rates.sum())) for k in (1.0, 2.0)]
    parts = [np.log(-np.expm1(-k * rates)).sum() for k in (1.0, 2.0)]
    more = (parts[1] + sums[1]) - (parts[0] + sums[0])
    return float(ratio + more - rates[int(noise > 0)] * abs(noise))


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
                rate = 2.0 * math.asinh(math.sqrt(0.5) / mechanism.deviation)
                bound = mechanism.sensitivity * rate
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
    up = 1.0 / (1.0 + math.exp(-bound))
    found: dict[float, float] = {}
    for loss, probability in losses.items():
        for step, part in ((bound, up), (-bound, 1.0 - up)):
            key = round(loss + step, 12)
            found[key] = found.get(key, 0.0) + part * probability
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
    """Return the total epsilon of releases at `delta`."""
    mu, losses, largest = losses_of(mechanisms)
    if delta == 0.0:
        return largest if mu == 0.0 else math.inf
    if delta_at(mu, losses, 0.0) <= delta:
        return 0.0
    if delta_at(mu, losses, _INFINITE_EPSILON) > delta:
        return math.inf
    ends = 0.0, _INFINITE_EPSILON
    return float(brentq(lambda at: delta_at(mu, losses, at) - delta, *ends, xtol=1e-12))
