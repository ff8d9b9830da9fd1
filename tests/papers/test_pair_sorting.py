"""Piecewise quadratic losses over all pairs, by sorting, against all pairs written out."""

from __future__ import annotations

import numpy as np
import pytest

from dp_halfspace.papers import pair_objective as pairs
from dp_halfspace.papers.pair_objective import (
    PAIR_BLOCK,
    block_sum,
    parabola_curvature,
    parabola_pairs,
    prefix_sums,
    ramp_curvature,
    ramp_pairs,
)
from tests.papers.pair_cases import RANGES, scores

RAMPS = [(1.5, 1.0), (1.05, 0.1), (1.0, 1.0), (1.0, 0.3)]


def wide_ramp(positive, negative, knot, width):
    """Value, slopes and curvature of all pairs; those of the squared hinge without a width."""
    x = np.longdouble(knot) - (np.asarray(positive, np.longdouble)[:, None] - negative)
    if width is None:
        x = np.maximum(x, 0)
        return (x**2).sum(), 2 * x, 2.0 * (x > 0)
    inner = np.clip(x, 0, width)
    value = (inner**2 / (2 * np.longdouble(width)) + np.maximum(x - width, 0)).sum()
    return value, inner / np.longdouble(width), ((x > 0) & (x < width)) / width


def pairs_of(positive, negative, knot, width):
    """Sums and curvature by sorting."""
    if width is None:
        return parabola_pairs(positive, negative), parabola_curvature(positive, negative)
    ramp = positive, negative, knot, width
    return ramp_pairs(*ramp), ramp_curvature(*ramp)


@pytest.mark.sampled(20)
@pytest.mark.parametrize("reach", [0.0, *RANGES, 1e8])
@pytest.mark.parametrize(("knot", "width"), [*RAMPS, (1.0, None)])
@pytest.mark.parametrize("offset", [0.0, -77.7])
def test_ramp_equals_brute_force(reach, knot, width, offset):
    positive, negative = (s + offset for s in scores(reach, 150, 260))
    value, slopes, curvature = wide_ramp(positive, negative, knot, width)
    sums, product = pairs_of(positive, negative, knot, width)
    # Scores of size t have errors of t 2^-53, which the slope magnifies.
    slack = 1e-12 + 4e-16 * abs(offset) / (width or 0.5)
    room = {"rtol": slack, "atol": slack if width else slack * (1 + reach)}
    assert sums.value == pytest.approx(float(value), rel=slack)
    np.testing.assert_allclose(sums.positive, -slopes.sum(axis=1).astype(float), **room)
    np.testing.assert_allclose(sums.negative, slopes.sum(axis=0).astype(float), **room)
    # At a tie with knot = width the second derivative has two values.
    if offset == 0.0 and knot != width:
        v, u = np.random.default_rng(0).normal(size=(2, 260, 2))
        at_p, at_q = product(v[:150], u)
        np.testing.assert_allclose(at_p, (curvature @ u).astype(float), atol=1e-10)
        np.testing.assert_allclose(at_q, (curvature.T @ v[:150]).astype(float), atol=1e-10)


@pytest.mark.parametrize(("knot", "width"), [(1.5, 1.0), (1.0, None)])
def test_no_scores_warn(knot, width):
    """Neither empty classes, nor what is not finite, nor what is enormous."""
    for p, q in ((0, 0), (0, 3), (3, 0)):
        sums, _ = pairs_of(np.ones(p), np.ones(q), knot, width)
        assert not np.any([sums.value, *sums.positive, *sums.negative])
    for bad in (np.nan, np.inf, 1e308, 1e17):
        scored = np.array([bad, 0.0]), np.array([-bad, 1.0])
        sums = ramp_pairs(*scored, knot, width) if width else parabola_pairs(*scored)
        assert sums.positive.shape == (2,)


def test_integers_are_exact():
    """Scores on the knots, where a pair may be counted on either side but never twice."""
    positive, negative = np.arange(6.0), np.arange(8.0) - 2.0
    for knot, width in ((1.0, 1.0), (2.0, 2.0), (1.5, 1.0)):
        value, slopes, _ = wide_ramp(positive, negative, knot, width)
        sums = ramp_pairs(positive, negative, knot, width)
        assert sums.value == value
        assert (sums.positive == -slopes.sum(axis=1)).all()
        assert (sums.negative == slopes.sum(axis=0)).all()


def test_sums_in_blocks():
    rng = np.random.default_rng(0)
    for n in (0, 1, PAIR_BLOCK - 1, PAIR_BLOCK, 3 * PAIR_BLOCK + 5):
        x = rng.normal(size=(n, 2))
        exact = np.vstack([np.zeros((1, 2)), np.cumsum(x.astype(np.longdouble), axis=0)])
        np.testing.assert_allclose(prefix_sums(x), exact.astype(float), atol=1e-11)
        assert block_sum(x[:, 0]) == pytest.approx(float(exact[-1, 0]), abs=1e-11)


def test_a_missing_second_run_is_seen(monkeypatch):
    """Planted: pairs on the parabola that lie in the next stretch are forgotten."""
    honest = pairs._find_bands

    def planted(*args):
        bands = honest(*args)
        return pairs._Bands(
            bands.place, bands.source_place, bands.start, bands.middle, bands.middle
        )

    monkeypatch.setattr(pairs, "_find_bands", planted)
    positive, negative = scores(20.0, 150, 260)
    _, slopes, _ = wide_ramp(positive, negative, 1.5, 1.0)
    sums = ramp_pairs(positive, negative, 1.5, 1.0)
    assert np.abs(sums.positive + slopes.sum(axis=1)).max() > 1e-3
