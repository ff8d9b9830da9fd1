"""What the noise of the steps does to released coefficients, from released numbers alone.

*Corrections.* Where noise is large, steps are short, and end before the sum of the losses is least.
The gradients at the last points, which are released, say how far: their entry of the constant is
the sum of the clipped slopes, and their product with the coefficients that of slopes times scores.
From these two sums intercept and length of the coefficients follow (`corrected_line`), of several
classes the length alone.

*Standard errors.* The steps are nearly linear in their noise. Along an eigenvector of the second
moment of final rows, the noise of every step is passed on by a recursion of public numbers and of
one curvature, which is the mean second derivative of the loss, estimated from released scores,
times the eigenvalue.

Derivations: ``docs/proofs/engine.md``, sections 6 and 7.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from dp_halfspace.engine.probabilities import (
    MASSES,
    NODES,
    ScoresOfMany,
    corrected_line,
    link_of,
    probabilities_of,
)
from dp_halfspace.engine.release import released
from dp_halfspace.engine.steps import Known, clip_of
from dp_halfspace.rows.blocks import FloatArray


def recalibrated(known: Known) -> Known:
    """Return what is known, with the intercept and the length that the last gradients tell."""
    walk, centring, total = released(known.walk), released(known.centring), known.total
    size, constant = len(centring.mean), centring.constant / centring.length
    point, gradient = walk.average, walk.last / (walk.n_averaged * total)
    shared = centring.with_shared_trace()
    moment = shared.resolved / centring.length**2
    variance = float(np.square(point[:size] @ centring.directions) @ moment)
    intercept, norm = float(point[size]) * constant, float(np.linalg.norm(point[:size]))
    if not (walk.deviation and variance):
        return known
    weights = known.class_weights
    curvature = mean_curvatures(np.array([intercept]), np.array([variance]), weights)
    # The coefficients follow the noise of the gradients, so that it is in their product twice.
    common = walk.common_variance(total * curvature * moment).sum() / total
    found = np.array([gradient[size] / constant, gradient[:size] @ point[:size] - common])
    deviation = walk.deviation / (math.sqrt(walk.n_averaged) * total)
    deviations = deviation * np.array([1.0 / constant, norm])
    scores = math.sqrt(variance) * NODES
    how: dict[str, Any] = {"class_weights": weights, "total": total}
    numbers = intercept, scores, found, deviations
    corrected, factor = corrected_line(*numbers, **how, clip=clip_of(2), odds_of=link_of)
    average = np.append(factor * point[:size], corrected / constant)
    how = {"total": walk.n_averaged * average, "deviation": factor * walk.deviation}
    return replace(known, walk=replace(walk, **how))


def rescaled(known: Known) -> Known:
    """Return what is known of several classes, with the length that the last gradients tell.

    Coefficients follow the sample as they follow the noise, so that its part in their product with
    the gradients is not there in other samples. It is known but roughly, and counts as an error of
    its own size.
    """
    walk, centring, total = released(known.walk), released(known.centring), known.total
    size, constant = len(centring.mean), centring.constant / centring.length
    points, intercepts = walk.average[:size], walk.average[size] * constant
    moment = centring.with_shared_trace().resolved / centring.length**2
    along = centring.directions.T @ points
    covariance = along.T @ (moment[:, None] * along)
    if not (walk.deviation and covariance.any()):
        return known
    n_classes = len(intercepts)
    scores = ScoresOfMany.of(intercepts, covariance, known.class_weights, clip_of(n_classes))
    by_noise = by_sample = 0.0
    for curvature, variance in zip(scores.curvatures, scores.slope_variances, strict=True):
        along_each = total * curvature * moment
        # The mean of the noise over the classes was subtracted.
        by_noise += (1.0 - 1.0 / n_classes) * float(walk.common_variance(along_each).sum()) / total
        by_sample += float(walk.drift(along_each) @ moment) * variance
    product = float((walk.last[:size] * points).sum()) / (walk.n_averaged * total)
    noise = walk.deviation * float(np.linalg.norm(points)) / (math.sqrt(walk.n_averaged) * total)
    factor = scores.factor(product - by_noise - by_sample, noise, by_sample)
    average = np.vstack([factor * points, walk.average[size]])
    how: dict[str, Any] = {"total": walk.n_averaged * average}
    return replace(known, walk=replace(walk, deviation=factor * walk.deviation, **how))


def standard_errors(
    known: Known, scale_errors: tuple[float, float] = (0.0, 0.0)
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the standard errors of the coefficients of first rows, and of the intercepts.

    The `scale_errors` are those of the centre and of the width of a column, relative to its width.

    Returns
    -------
    along : FloatArray of shape (n_scores, n_columns)
        Standard errors by the steps, along the directions of the centring.
    widths : FloatArray of shape (n_scores, n_columns)
        Standard errors by the widths, column by column.
    intercepts : FloatArray of shape (n_scores,)
        Standard errors of the intercepts.
    """
    walk, centring = released(known.walk), released(known.centring)
    n_columns, length = len(centring.mean), centring.length
    points = np.atleast_2d(walk.average.T)[:, :n_columns] @ centring.directions
    found = step_errors(known)[0]
    constant = centring.constant / length
    factors = centring.factors / length
    coefficients = (points * factors) @ centring.directions.T
    # The noise of the constant, of the coefficients at the mean, of the mean, and of the centres.
    squares = np.square(found[:, -1] * constant)
    squares += np.square(found[:, :-1]) @ np.square(factors * (centring.mean @ centring.directions))
    of_centres = np.square(coefficients).sum(axis=1)
    squares += of_centres * (centring.mean_error**2 + scale_errors[0] ** 2)
    return found[:, :-1] * factors, np.abs(coefficients) * scale_errors[1], np.sqrt(squares)


def step_errors(known: Known) -> tuple[FloatArray, FloatArray]:
    """Return standard errors of final coefficients by the noise of the steps, and by the sample.

    They are those along the directions of the centring, then of the constant, of shape (n_scores,
    n_columns + 1); see `standard_errors`.
    """
    walk, centring = released(known.walk), released(known.centring)
    average = np.atleast_2d(walk.average.T)
    n_columns, length = len(centring.mean), centring.length
    # Directions that the noise hides may have any curvature; without any, their noise is largest.
    moment, constant = centring.resolved / length**2, centring.constant / length
    points = average[:, :n_columns] @ centring.directions
    means = average[:, n_columns:].sum(axis=1) * constant
    curvatures = mean_curvatures(means, np.square(points) @ moment, known.class_weights)
    along = known.total * np.multiply.outer(curvatures, np.append(moment, constant**2))
    by_noise, by_sample = map(np.array, zip(*map(walk.errors_along, along), strict=True))
    if len(average) > 1:
        # With several classes the mean of the noise over the classes is subtracted.
        by_noise *= math.sqrt(1.0 - 1.0 / len(average))
    return by_noise, by_sample


def mean_curvatures(
    means: FloatArray, variances: FloatArray, class_weights: FloatArray
) -> FloatArray:
    """Return the mean second derivative of the clipped loss by each score.

    Scores are taken as normal, with these means and variances over the rows. The derivative is zero
    where a slope is clipped, that is, for the less probable of two classes.
    """
    deviations = np.sqrt(variances)[:, None] * NODES
    if len(means) == 1:
        scores = (means[:, None] + deviations)[0]
        p = probabilities_of(scores)
        likelier = np.argmax(p, axis=1)
        # The share of the likelier class among records, and its weight.
        kept = p[np.arange(len(p)), likelier] / (p / class_weights).sum(axis=1)
        slopes = 0.25 / np.square(np.cosh(0.5 * np.clip(scores, -700.0, 700.0)))
        return np.asarray([(slopes * kept) @ MASSES])
    weight = 1.0 / np.mean(1.0 / class_weights)
    rest = np.array([np.logaddexp.reduce(np.delete(means, k)) for k in range(len(means))])
    margins = np.clip(means[:, None] + deviations - rest[:, None], -700.0, 700.0)
    slopes = 0.25 / np.square(np.cosh(0.5 * margins))
    return np.asarray(weight * slopes @ MASSES)
