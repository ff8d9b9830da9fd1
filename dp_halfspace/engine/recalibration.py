"""Intercept and length of the coefficients of two classes, corrected by the last gradients.

Where noise is large, steps are short, and end before the sum of the losses is least. The gradients
at the last points, which are released, say how far: their entry of the constant is the sum of the
clipped slopes, and their product with the coefficients that of slopes times scores. Both sums
vanish at the least sum of the losses. If scores are normal and the log odds of a label are those
of its score but for an intercept and a factor, two equations tell these two numbers. The noisy
minimiser of a regularised risk tells both sums, too.
Derivation: ``docs/proofs/engine.md``, section 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import least_squares
from scipy.special import expit

from dp_halfspace.engine.moment import Centring
from dp_halfspace.engine.probabilities import link_of
from dp_halfspace.engine.standard_errors import MASSES, NODES, mean_curvatures
from dp_halfspace.engine.steps import Walk, clip_of
from dp_halfspace.rows.blocks import FloatArray

# Prior standard deviation of the logarithm of the factor of the coefficients.
_DOUBT = 0.5


def recalibrated(walk: Walk, centring: Centring, total: float, class_weights: FloatArray) -> Walk:
    """Return the walk with the intercept and the length that its last gradients tell.

    `total` is the number of rows, or their weight, and `class_weights` are relative to the largest.
    """
    size, constant = len(centring.mean), centring.constant / centring.length
    point, gradient = walk.average, walk.last / (walk.n_averaged * total)
    shared = centring.with_shared_trace()
    moment = shared.resolved / centring.length**2
    variance = float(np.square(point[:size] @ centring.directions) @ moment)
    intercept, norm = float(point[size]) * constant, float(np.linalg.norm(point[:size]))
    if not (walk.deviation and variance):
        return walk
    curvature = mean_curvatures(np.array([intercept]), np.array([variance]), class_weights)
    # The coefficients follow the noise of the gradients, so that it is in their product twice.
    common = walk.common_variance(total * curvature * moment).sum() / total
    found = np.array([gradient[size] / constant, gradient[:size] @ point[:size] - common])
    deviation = walk.deviation / (math.sqrt(walk.n_averaged) * total)
    deviations = deviation * np.array([1.0 / constant, norm])
    scores = math.sqrt(variance) * NODES
    how: dict[str, Any] = {"class_weights": class_weights, "total": total}
    numbers = intercept, scores, found, deviations
    corrected, factor = corrected_line(*numbers, **how, clip=clip_of(2), odds_of=link_of)
    average = np.append(factor * point[:size], corrected / constant)
    return replace(walk, total=walk.n_averaged * average, deviation=factor * walk.deviation)


def corrected_line(
    intercept: float,
    scores: FloatArray,
    found: FloatArray,
    deviations: FloatArray,
    *,
    class_weights: FloatArray,
    total: float,
    clip: float,
    odds_of: Callable[[FloatArray], FloatArray],
) -> tuple[float, float]:
    """Return the intercept and the factor of the scores that explain two sums over the records.

    `scores` are the nodes of a normal distribution of scores without the intercept. `found` are the
    means of slopes, clipped to `clip`, and of slopes times scores; `deviations` are those of their
    noise. `odds_of` maps right scores to log odds. What noise explains of the means counts as zero.
    """
    # A single number is worth a correction if its square is more than twice its variance.
    hidden = 2.0 * np.square(deviations)
    found = found * np.maximum(1.0 - hidden / np.maximum(np.square(found), hidden), 0.0)
    # Slopes of records of the second and of the first class.
    second = np.minimum(expit(-intercept - scores), clip) * class_weights[1]
    first = np.minimum(expit(intercept + scores), clip) * class_weights[0]
    prior_odds = math.log(class_weights[1] / class_weights[0])

    def misfit(corrected: FloatArray) -> FloatArray:
        odds = odds_of(corrected[0] + math.exp(corrected[1]) * scores) - prior_odds
        slopes = MASSES * (expit(odds) * second - expit(-odds) * first)
        sums = np.array([slopes.sum(), slopes @ scores])
        return np.append((sums - found) / deviations, corrected[1] / _DOUBT)

    # No class is rarer than one record, before the classes are weighted.
    widest = max(math.log(max(total, 2.0)) + abs(prior_odds), abs(intercept))
    limits = [-widest, -np.inf], [widest, np.inf]
    # The tolerance is tight, so that machines which round differently return the same model.
    precise = dict.fromkeys(("ftol", "xtol", "gtol"), 1e-14)
    corrected = least_squares(misfit, [intercept, 0.0], "3-point", limits, **precise).x
    return float(corrected[0]), math.exp(corrected[1])
