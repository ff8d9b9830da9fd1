"""The logistic loss over all pairs against all pairs written out."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial.chebyshev import chebvander

from dp_halfspace.optim.losses import LOGISTIC, softplus_curvature, softplus_slope
from dp_halfspace.papers import pair_objective as pairs
from dp_halfspace.papers.pair_objective import (
    NODES,
    chebyshev_points,
    chebyshev_transform,
    logistic_curvature,
    logistic_pairs,
    logistic_rounding,
)
from tests.papers.pair_cases import RANGES, brute_sums, relative, scores


def errors(positive, negative):
    """Relative errors of value and derivatives; largest error for each pair."""
    value, p, q = brute_sums(LOGISTIC, positive, negative)
    sums = logistic_pairs(positive, negative)
    per_pair = max(
        float(np.abs(sums.positive - p).max()) / len(negative),
        float(np.abs(sums.negative - q).max()) / len(positive),
    )
    return (
        float(abs(sums.value / value - 1)),
        relative(sums.positive, p),
        relative(sums.negative, q),
    ), per_pair


@pytest.mark.sampled(4)
@pytest.mark.parametrize("reach", [*RANGES, 1e6, 1e9])
@pytest.mark.parametrize("sizes", [(400, 900), (30, 2500)])
def test_equals_brute_force_at_every_range(reach, sizes):
    relative_errors, per_pair = errors(*scores(reach, *sizes))
    assert max(relative_errors) <= 1e-13
    assert per_pair <= logistic_rounding(sum(sizes)) <= 1e-11


CENTRES = np.array([0.0, -1e5, 3e5, 300.0, 1e6])


def clusters():
    """Most pairs are on the straight part of the loss."""
    rng = np.random.default_rng(1)
    positive = CENTRES[rng.integers(5, size=700)] + rng.normal(size=700)
    negative = CENTRES[rng.integers(5, size=600)] + rng.normal(size=600)
    return positive, np.append(negative, 1e12)


def crowd():
    """A crowd beside single scores."""
    singles = 40.0 * np.arange(60)
    positive = np.append(np.linspace(0, 1, 900), singles)
    return positive, np.append(np.linspace(0.5, 2, 800), singles + 1.0)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("make", [clusters, crowd])
def test_clusters_far_apart(make):
    positive, negative = make()
    relative_errors, per_pair = errors(positive, negative)
    assert max(relative_errors) <= 1e-12
    assert per_pair <= logistic_rounding(len(positive) + len(negative))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.7e308])
def test_what_is_not_finite_stays_so(bad):
    sums = logistic_pairs(np.array([bad, 0.0]), np.array([1.0, -1.7e308]))
    assert not np.isfinite(sums.value)


@pytest.mark.parametrize("reach", [1e16, 1e20, 1e25, 1e200])
def test_scores_that_doubles_cannot_resolve_are_not_a_number(reach):
    """Rounded places would be outside of their cells."""
    positive, negative = scores(reach, 3000, 200)
    assert np.isnan(logistic_pairs(positive, negative).value)
    columns = np.ones((3000, 1)), np.ones((200, 1))
    assert np.isnan(logistic_curvature(positive, negative)(*columns)[0]).all()


def test_one_pair_and_equal_scores():
    sums = logistic_pairs(np.array([3.0]), np.array([3.0]))
    assert sums.value == pytest.approx(np.log(2), rel=1e-15)
    sums = logistic_pairs(np.full(5000, 7.0), np.full(4000, 7.0))
    assert sums.value == pytest.approx(5000 * 4000 * np.log(2), rel=1e-13)
    np.testing.assert_allclose(sums.positive, -2000.0, rtol=1e-13)


@given(st.floats(-1e3, 1e3), st.integers(0, 10**6))
def test_invariant_under_a_common_shift(shift, seed):
    positive, negative = scores(30.0, 150, 200, seed)
    first = logistic_pairs(positive, negative)
    second = logistic_pairs(positive + shift, negative + shift)
    assert second.value == pytest.approx(first.value, rel=1e-12)
    np.testing.assert_allclose(second.positive, first.positive, atol=1e-10)
    assert first.positive.sum() == pytest.approx(-first.negative.sum(), rel=1e-12)


@pytest.mark.slow
def test_the_lagrange_polynomials_are_exact():
    """The assumption of Theorem 3 about them, in 50 digits."""
    x = np.concatenate([[-1.0, 1.0, 1.0 - 2.0**-53], np.random.default_rng(0).uniform(-1, 1, 200)])
    found = chebvander(x, NODES - 1) @ chebyshev_transform(NODES)
    with mpmath.workdps(50):
        points = [mpmath.cos(mpmath.pi * (2 * a + 1) / (2 * NODES)) for a in range(NODES)]
        for place, row in zip(x.tolist(), found.tolist(), strict=True):
            error = mpmath.mpf(0)
            for b, node in enumerate(points):
                rest = [c for a, c in enumerate(points) if a != b]
                error += abs(mpmath.fprod((place - c) / (node - c) for c in rest) - row[b])
            assert error <= pairs._BASIS_ERROR / 4


def test_lebesgue_constants_of_the_proof():
    x = np.linspace(-1, 1, 4001)
    for p, bound in ((NODES, pairs._LEBESGUE),):
        points = chebyshev_points(p)
        total = sum(
            np.abs(np.prod((x[:, None] - np.delete(points, b)) / (c - np.delete(points, b)), 1))
            for b, c in enumerate(points)
        )
        assert total.max() <= bound


def test_sums_of_coefficients_of_the_proof():
    """Slopes as functions of the place of a source, at targets all over the near cells."""
    targets = np.linspace(-45, 45, 9001)
    slopes = softplus_slope(targets[:, None] - chebyshev_points(NODES))
    coefficients = np.abs(slopes @ chebyshev_transform(NODES).T).sum(axis=1)
    assert 1.0 <= coefficients.max() <= pairs._COEFFICIENTS
    transform = np.abs(chebyshev_transform(NODES))
    assert transform.sum(axis=1).max() <= 2.0
    assert transform.sum() <= 2.0 * NODES


@pytest.mark.parametrize("n_nodes", [2, 7, NODES])
def test_condensed_scores_have_the_sums_of_polynomials(n_nodes):
    rng = np.random.default_rng(n_nodes)
    values = np.append(rng.uniform(3, 9, size=200), [-40.0, 17.5])
    columns = rng.normal(size=(202, 3))
    found = pairs._condense(pairs._find_cells(values), n_nodes, columns)
    assert found.places.size < 202
    for degree in range(n_nodes):
        want = (values / 40) ** degree @ columns
        got = ((found.centres + found.places) / 40) ** degree @ found.weights
        np.testing.assert_allclose(got, want, atol=1e-11)


@pytest.mark.parametrize("reach", [3.0, 1e4, 1e5, 1e9])
def test_cells_hold_every_score_once(reach):
    """Few cells are ordered as integers of 16 bits, many as doubles."""
    values = np.random.default_rng(0).uniform(-reach, reach, size=500)
    cells = pairs._find_cells(values)
    assert sorted(cells.order.tolist()) == list(range(500))
    assert (np.diff(cells.centres) > 0).all()
    seen = 0
    for centre, inside in cells.each():
        seen += inside.stop - inside.start
        assert centre % 2 == 1
        assert np.abs(cells.places[inside]).max() <= 1.0
        exact = values[cells.order[inside]] - centre
        np.testing.assert_array_equal(cells.places[inside], exact)
    assert seen == 500


def test_too_few_nodes_are_seen(monkeypatch):
    monkeypatch.setattr(pairs, "NODES", 7)
    relative_errors, per_pair = errors(*scores(20.0, 400, 900))
    assert max(relative_errors) > 1e-9
    assert per_pair > logistic_rounding(1300)


@pytest.mark.slow
@pytest.mark.parametrize(("far", "seen"), [(41.0, False), (26.0, True)])
def test_a_short_reach_is_seen(monkeypatch, far, seen):
    """Planted: the loss is a straight line from 25 units on."""
    monkeypatch.setattr(pairs, "_CURVED_WITHIN", far)
    assert (errors(*scores(100.0, 400, 900))[1] > 1e-14) is seen


@pytest.mark.parametrize("block", [7, 100])
def test_blocks_of_sums_hold_every_pair_once(monkeypatch, block):
    monkeypatch.setattr(pairs, "PAIR_BLOCK", block)
    assert max(errors(*scores(50.0, 300, 700))[0]) <= 1e-13


# -- products with the second derivatives of all pairs, against the matrix written out ---------


def products(positive, negative, seed=0):
    rng = np.random.default_rng(seed)
    v, u = rng.normal(size=(len(positive), 3)), rng.normal(size=(len(negative), 3))
    matrix = softplus_curvature(positive[:, None] - negative)
    size = np.sqrt((matrix**2).sum())
    found = logistic_curvature(positive, negative)(v, u)
    gaps = found[0] - matrix @ u, found[1] - matrix.T @ v
    return max(float(np.abs(gap).max()) for gap in gaps) / size


@pytest.mark.parametrize("reach", [*RANGES, 1e6])
def test_products_equal_those_of_the_matrix(reach):
    assert products(*scores(reach, 500, 900)) <= 1e-7


def test_products_of_crowded_pieces():
    rng = np.random.default_rng(0)
    positive = np.concatenate([rng.normal(size=900), 5000 + rng.normal(size=900)])
    negative = np.concatenate([rng.normal(size=900), 5000 + rng.normal(size=900)])
    assert products(positive, negative) <= 1e-7


def test_products_of_nothing_and_of_what_is_not_finite():
    v, u = np.ones((0, 2)), np.ones((3, 2))
    at_p, at_q = logistic_curvature(np.empty(0), np.zeros(3))(v, u)
    assert at_p.shape == (0, 2)
    assert not at_q.any()
    at_p, _ = logistic_curvature(np.array([np.nan]), np.zeros(3))(np.ones((1, 2)), u)
    assert np.isnan(at_p).all()


def test_too_few_nodes_of_products_are_seen(monkeypatch):
    monkeypatch.setattr(pairs, "CURVATURE_NODES", 5)
    assert products(*scores(20.0, 500, 900)) > 1e-6
