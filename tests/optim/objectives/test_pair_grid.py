"""The logistic loss over all pairs against all pairs written out."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_halfspace.optim import pairs as pair_cells
from dp_halfspace.optim.losses import LOGISTIC
from dp_halfspace.optim.pairs import (
    NODES,
    chebyshev_points,
    logistic_curvature,
    logistic_pairs,
    logistic_rounding,
    part_table,
)
from tests.optim.pair_cases import RANGES, brute_sums, relative, scores


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
    assert per_pair <= logistic_rounding(sum(sizes), reach) <= 1e-10 + reach * 1e-15


CENTRES = np.array([0.0, -1e5, 3e5, 300.0, 1e6])


def clusters():
    """Gaps are shortened, what their loss is worth is kept."""
    rng = np.random.default_rng(1)
    positive = CENTRES[rng.integers(5, size=700)] + rng.normal(size=700)
    negative = CENTRES[rng.integers(5, size=600)] + rng.normal(size=600)
    return positive, np.append(negative, 1e12), 1e12


def crowd():
    """A crowd beside single scores."""
    singles = 40.0 * np.arange(60)
    positive = np.append(np.linspace(0, 1, 900), singles)
    return positive, np.append(np.linspace(0.5, 2, 800), singles + 1.0), 2400.0


@pytest.mark.parametrize("make", [clusters, crowd])
def test_clusters_far_apart(make):
    positive, negative, reach = make()
    relative_errors, per_pair = errors(positive, negative)
    assert max(relative_errors) <= 1e-12
    assert per_pair <= logistic_rounding(len(positive) + len(negative), reach)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.7e308])
def test_what_is_not_finite_stays_so(bad):
    sums = logistic_pairs(np.array([bad, 0.0]), np.array([1.0, -1.7e308]))
    assert not np.isfinite(sums.value)


@pytest.mark.parametrize("reach", [1e16, 1e20, 1e25, 1e200])
def test_a_range_that_doubles_cannot_resolve_is_not_a_number(reach):
    """Rounded places would be outside of their cells, and an index outside of its array."""
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


@pytest.mark.parametrize(("parts", "powers"), [pair_cells._FINE_PARTS, pair_cells._COARSE_PARTS])
def test_table_is_exact(parts, powers):
    """The assumptions of Theorem 3 about the table, in 50 digits."""
    table = part_table(parts, powers).reshape(NODES, powers, parts)
    assert np.abs(table).sum(axis=(0, 1)).max() <= pair_cells._ABSOLUTE_TABLE
    with mpmath.workdps(50):
        points = [mpmath.cos(mpmath.pi * (2 * a + 1) / (2 * NODES)) for a in range(NODES)]
        local = [mpmath.cos(mpmath.pi * (2 * a + 1) / (2 * powers)) for a in range(powers)]
        inverse = mpmath.matrix([[x**m for m in range(powers)] for x in local]) ** -1
        for part in (0, 1, parts // 2, parts - 1):
            error = 0.0
            centre = mpmath.mpf(2 * part + 1) / parts - 1
            for b, node in enumerate(points):
                rest = [c for a, c in enumerate(points) if a != b]
                values = mpmath.matrix(
                    [
                        mpmath.fprod((centre + x / parts - c) / (node - c) for c in rest)
                        for x in local
                    ]
                )
                exact = inverse * values
                error += sum(abs(float(exact[m] - table[b, m, part])) for m in range(powers))
            assert error <= pair_cells._TABLE_ERROR


def test_lebesgue_constants_of_the_proof():
    x = np.linspace(-1, 1, 4001)
    for p, bound in ((NODES, 2.97), (4, 1.85), (5, 1.99)):
        points = chebyshev_points(p)
        total = sum(
            np.abs(np.prod((x[:, None] - np.delete(points, b)) / (c - np.delete(points, b)), 1))
            for b, c in enumerate(points)
        )
        assert total.max() <= bound


@pytest.fixture
def planted(monkeypatch):
    """Set a constant of the tables, which are made anew."""

    def clear():
        part_table.cache_clear()
        pair_cells.pair_kernels.cache_clear()

    def change(name, value):
        clear()
        for module in (pair_cells,):
            monkeypatch.setattr(module, name, value)

    yield change
    monkeypatch.undo()
    clear()


def test_too_few_nodes_are_seen(planted):
    planted("NODES", 7)
    relative_errors, per_pair = errors(*scores(20.0, 400, 900))
    assert max(relative_errors) > 1e-9
    assert per_pair > logistic_rounding(1300, 20.0)


def test_a_short_reach_is_seen(planted):
    """Planted: cells 20 units apart do not see each other."""
    planted("NEAR_CELLS", 9)
    assert max(errors(*scores(100.0, 400, 900))[0]) > 1e-11


@pytest.mark.parametrize("reach", [0.2, 3.0, 100.0])
def test_both_resolutions(monkeypatch, reach):
    """Many scores in a cell and few; the choice is forced here. Planted: parabolas in its parts."""
    for parts in (pair_cells._FINE_PARTS, pair_cells._COARSE_PARTS):
        monkeypatch.setattr(pair_cells, "_COARSE_PARTS", parts)
        relative_errors, per_pair = errors(*scores(reach, 300, 700))
        assert max(relative_errors) <= 1e-13
        assert per_pair <= 5e-14
    monkeypatch.setattr(pair_cells, "_COARSE_PARTS", (128, 3))
    assert errors(*scores(20.0, 400, 900))[1] > logistic_rounding(1300, 20.0)


def test_pieces_cover_every_pair_once():
    positive, negative = (np.sort(s) for s in scores(1e4, 500, 600))
    covered = 0
    for piece in pair_cells.cut_pieces(positive, negative):
        assert piece.high - piece.low < pair_cells.CELL_WIDTH * pair_cells.MAX_CELLS
        rows = positive[piece.positive]
        covered += rows.size
        left, right = negative[: piece.near.start], negative[piece.near.stop :]
        assert not left.size or rows.min() - left.max() > 40
        assert not right.size or right.min() - rows.max() > 40
    assert covered == positive.size
