"""Errors are counted in exact arithmetic, and no record moves another one's score."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace.projection import draw_projection
from dp_halfspace.projection.linear import PROJECTIONS
from dp_halfspace.rows import directions
from dp_halfspace.rows.directions import (
    EXPONENTS,
    CellStream,
    DirectionStream,
    IntegerRows,
    counts_below,
    integer_rows,
    margin_costs,
    open_records,
    scores,
)
from dp_halfspace.rows.rows import Rows, normalised_rows
from tests.adversarial import stretched_pairs

ONES = np.ones(2)


def error_counts(block, rows, members):
    """Errors on either class, as a search counts them."""
    none = np.array([], dtype=np.intp)
    return [
        errors(block, rows, [m if k == code else none for k, m in enumerate(members)], ONES)[
            : block.shape[1]
        ]
        for code in (0, 1)
    ]


def negative_counts(block, rows, index):
    return counts_below(block, rows, index, np.zeros((1, block.shape[1]), dtype=np.float32))[0]


def members(codes):
    return np.flatnonzero(codes == 0), np.flatnonzero(codes == 1)


def strange(d):
    """Directions, rows of zeros, huge and tiny ones among them, and classes."""
    rng = np.random.default_rng(d)
    X, codes = rng.standard_normal((23, d)), rng.integers(2, size=23)
    X[3] = 0.0
    X[4, 0], X[5] = 1e300, 1e-300
    block = DirectionStream(d + 1, 40, (0,), constant=0.5).block(0)
    return block, normalised_rows(X, 1.0, 0.5), codes


def plain(n_directions):
    """Directions, 700 rows and classes."""
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((700, 4)), rng.integers(2, size=700)
    block = DirectionStream(5, n_directions, (0,), constant=0.5).block(0)
    return block, normalised_rows(X, 1.0, 0.5), codes


def test_no_block_of_a_stream_repeats_another_one(monkeypatch):
    monkeypatch.setattr(directions, "_BLOCK_ENTRIES", 6)
    cells, stream = CellStream(3, 4 * 2 * len(EXPONENTS), (0,)), DirectionStream(3, 8, (0,))
    blocks = [cells.block(*place)[0] for place in cells.blocks]
    blocks += [stream.block(number) for number in range(stream.n_blocks)]
    assert len({block.tobytes() for block in blocks}) == len(blocks) == 2 * len(EXPONENTS) + 2


def test_directions_of_columns_without_meaning_prefer_no_sign():
    """Others have a part that is the same for all columns."""
    for spherical, spread in ((True, 0.1), (False, 0.5)):
        block = DirectionStream(100, 4000, (0,), spherical=spherical).block(0)
        cosines = block.sum(axis=0) / np.linalg.norm(block, axis=0) / 10.0
        assert np.std(cosines) == pytest.approx(spread, rel=0.2)


def test_tiles_and_classes_add_up(monkeypatch):
    block, rows, codes = plain(6000)
    whole = error_counts(block, integer_rows(rows), members(codes))
    monkeypatch.setattr(directions, "TILE_ROWS", 17)
    monkeypatch.setattr(directions, "AT_ONCE", 100)
    np.testing.assert_array_equal(whole, error_counts(block, integer_rows(rows), members(codes)))
    monkeypatch.setattr(directions, "KEPT_BYTES", 0)
    assert integer_rows(rows).kept is None
    shuffled = [np.random.default_rng(1).permutation(index) for index in members(codes)]
    np.testing.assert_array_equal(whole, error_counts(block, integer_rows(rows), shuffled))


def cones(seed, d):
    """Cones round a released direction, and rows on which their outermost directions turn."""
    rng = np.random.default_rng(seed)
    centre = DirectionStream(d, 2, (seed,), constant=0.5).block(0)[:, 0].astype(float)
    unit = centre / np.linalg.norm(centre)
    for radius in (1.0, 0.5, 0.125, 2.0**-6, 2.0**-12, 0.0):
        stream = DirectionStream(d, 3000, (seed, 1), centre=centre, radius=radius)
        block = stream.block(0).astype(float)
        along = unit @ block
        across = block - np.outer(unit, along)
        sines = np.linalg.norm(across, axis=0) / np.linalg.norm(block, axis=0)
        last = np.argsort(np.where(along > 0.0, sines, 0.0))[-20:]
        away = -across[:, last] / np.maximum(np.linalg.norm(across[:, last], axis=0), 1e-300)
        share = rng.uniform(0.3, 1.1, (12, 1)) * np.minimum(sines[last], 0.9)
        X = share[..., None] * unit + np.sqrt(1.0 - share**2)[..., None] * away.T
        X = np.vstack([X.reshape(-1, d), rng.standard_normal((60, d)), np.zeros((1, d)), [unit]])
        X *= rng.choice([-1.0, 1.0], (len(X), 1))
        yield stream, integer_rows(normalised_rows(X, 1e3, None))


def wrongly_set_aside():
    """Whether a record was set aside on which the directions of a cone do not agree."""
    wrong, n_aside = False, 0
    for seed, d in enumerate((2, 3, 7, 31)):
        for stream, rows in cones(seed, d):
            index = np.arange(rows.rows.shape[0])
            left, (n_negative, _) = open_records(stream, rows, index)
            n_aside += len(index) - len(left)
            for number in range(stream.n_blocks):
                block = stream.block(number)
                whole = negative_counts(block, rows, index)
                wrong |= bool((whole != negative_counts(block, rows, left) + n_negative).any())
    assert n_aside > 200
    return wrong


@pytest.mark.parametrize("at_once", [7, 10**6])
def test_records_that_are_set_aside_count_as_they_would_otherwise(monkeypatch, at_once):
    monkeypatch.setattr(directions, "AT_ONCE", at_once)
    rng = np.random.default_rng(5)
    codes, centre = (rng.random(60) < 0.3).astype(int), np.array([3.0, 2.0, 1.0])
    rows = integer_rows(normalised_rows(rng.standard_normal((60, 3)), 1.0, None))
    stream = DirectionStream(3, 40, (1,), centre=centre, radius=0.1)
    parts = [open_records(stream, rows, index) for index in members(codes)]
    settled = [numbers for _, numbers in parts]
    assert np.min(settled) > 0
    assert settled[0][0] != settled[1][0]  # nor do they cancel each other
    left, block = tuple(kept for kept, _ in parts), stream.block(0)
    np.testing.assert_array_equal(
        margin_costs(block, rows, left, ONES, 0.0, paired=False, settled=settled),
        margin_costs(block, rows, members(codes), ONES, 0.0, paired=False),
    )


@pytest.mark.parametrize("code", [0, 1])
def test_a_score_of_the_limit_is_right_and_a_smaller_one_is_wrong(code):
    scores_of_rows = np.array([[-2.0], [-1.0], [0.0], [1.0], [2.0]], dtype=np.float32)
    index, none = np.arange(5), np.array([], dtype=int)
    own = (none, index) if code else (index, none)
    one = np.ones((1, 1), dtype=np.float32)
    for row in range(5):
        mine = tuple(part[part == row] for part in own)
        (cost,) = margin_costs(one, scores_of_rows, mine, ONES, 0.0, paired=False)
        assert cost == (row <= 2 if code else row >= 2)


def test_records_are_set_aside_only_where_all_directions_agree():
    assert not wrongly_set_aside()
    everywhere = DirectionStream(3, 10, (0,))
    rows = integer_rows(Rows(np.eye(3)))
    assert open_records(everywhere, rows, np.arange(3))[1] == (0, 0)
    assert len(open_records(everywhere, rows, np.arange(3))[0]) == 3


def test_directions_are_rounded_to_the_nearest_integers():
    stream = DirectionStream(3, 4, (0,), centre=np.array([1.0, 2.0, 2.0]), radius=0.0)
    exact = stream.length * np.array([[1.0], [2.0], [2.0]]) / 3.0
    assert np.abs(stream.block(0) - exact).max() <= 0.5


def test_a_record_on_the_edge_of_a_cone_is_not_set_aside():
    """Its computed score may be off by roundings of float64."""
    rows = IntegerRows(Rows(np.eye(2)), np.array([[300.0, 400.0]], dtype=np.float32))
    stream = DirectionStream(2, 10, (0,), centre=np.array([1.0, 0.0]), radius=0.0)
    rounding = (np.sqrt(2.0) / 2.0 + 1.0) / stream.length
    edge = (0.6 - rounding) / (1.0 + rounding)
    for radius, is_open in ((edge * (1.0 - 1e-12), True), (edge * (1.0 - 1e-5), False)):
        left, numbers = open_records(replace(stream, radius=radius), rows, np.arange(1))
        assert (len(left), numbers) == (is_open, (0, not is_open))


def largest_change(costs, trials=60):
    """Largest change of a cost over adversarial neighbours, other rows as strange as can be."""
    worst = 0
    for trial, *data in stretched_pairs(trials):
        weights = np.array([(1.0, 0.3), (0.77, 1.0), (1.0, 1.0)][trial % 3])
        block = DirectionStream(data[0][0].shape[1] + 1, 600, (trial,), constant=0.5).block(0)
        values = [
            costs(block, integer_rows(normalised_rows(X, 1.0, 0.5)), members(y), weights)
            for X, y in data
        ]
        worst = max(worst, int(np.abs(values[0] - values[1]).max()))
    return worst


def errors(block, rows, index, weights):
    """Weighted errors of all directions and of their opposites."""
    return margin_costs(block, rows, index, weights, 0.0, paired=True)


def test_a_record_changes_a_score_by_one_at_most():
    assert largest_change(errors) == 1


def test_weights_are_within_their_resolution():
    counts = (np.array([3, 0, 5]), np.array([2, 4, 0]))
    np.testing.assert_array_equal(scores(counts, (5, 4), np.ones(2), paired=False), [5, 4, 5])
    half = scores(counts, (5, 4), np.array([1.0, 0.5]), paired=True)
    np.testing.assert_array_equal(half, [4, 2, 5, 3, 5, 2])
    np.testing.assert_array_equal(
        scores(counts, (5, 4), np.array([1e-9, 1.0]), paired=False), [2, 4, 0]
    )


def test_rows_that_are_too_long_are_zero():
    """Whatever comes in, no product leaves the range in which float32 is exact."""
    rows = Rows(np.array([[3.0, 4.0], [0.6, 0.8]]))
    integers = directions._integers(rows, np.arange(2))
    np.testing.assert_array_equal(integers[0], [0.0, 0.0])
    assert 4090 < np.linalg.norm(integers[1]) <= 4095


@pytest.mark.parametrize("kind", list(PROJECTIONS))
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_projected_row_does_not_look_at_the_others(kind, form):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 70))
    other = X.copy()
    other[0] = rng.standard_normal(70) * 1e8
    other[0, ::2] = 0.0
    linear_map = draw_projection(kind, 70, 33, rng)
    integers = [
        integer_rows(normalised_rows(form(table), 8.0, 0.5, linear_map)).kept[1:]
        for table in (X, other)
    ]
    np.testing.assert_array_equal(*integers)
    images = [linear_map.apply(form(table))[1:] for table in (X, other)]
    np.testing.assert_array_equal(*images)


def test_no_weight_counts_for_more_than_one_record():
    """Whatever the caller gives: the sensitivity is that of weights in [0, 1]."""
    counts, sizes = (np.array([3]), np.array([2])), (5, 4)
    for weights, same in (([7.0, 1.0], [1.0, 1.0]), ([0.5, -3.0], [0.5, 0.0])):
        for paired in (False, True):
            np.testing.assert_array_equal(
                scores(counts, sizes, np.array(weights), paired=paired),
                scores(counts, sizes, np.array(same), paired=paired),
            )
