"""Directions are small integers, the same when read again."""

import numpy as np
import pytest

from dp_halfspace.rows import directions
from dp_halfspace.rows.directions import (
    DirectionStream,
    counts_below,
    unit_length,
)


def streams():
    centre = np.array([3.0, -1.0, 0.0, 2.0])
    yield DirectionStream(4, 3001, (1, 2), constant=0.5)
    yield DirectionStream(4, 3000, (1, 2), spherical=True)
    yield DirectionStream(4, 3000, (1, 2), centre=centre, radius=0.25)
    yield DirectionStream(1, 10, (0,))
    yield DirectionStream(directions.MOST_COLUMNS, 2, (0,), constant=0.5)


@pytest.mark.parametrize("stream", list(streams()))
def test_directions_are_small_integers_and_repeat(stream, monkeypatch):
    monkeypatch.setattr(directions, "_BLOCK_ENTRIES", max(4 * 500, stream.n_columns))
    total = 0
    for number in range(stream.n_blocks):
        block = stream.block(number)
        total += block.shape[1]
        assert block.dtype == np.float32
        np.testing.assert_array_equal(block, np.rint(block))
        assert (np.square(block.astype(np.float64)).sum(axis=0) <= 2047**2).all()
        if stream.n_columns < 10:
            np.testing.assert_array_equal(block, stream.block(number))
    assert total * (2 if stream.paired else 1) in (stream.n_directions, stream.n_directions + 1)


def test_norms_do_not_depend_on_where_the_array_is():
    rng = np.random.default_rng(0)
    columns = rng.standard_normal((37, 500))
    expected = unit_length(columns)
    for offset in range(1, 9):
        memory = np.empty(37 * 500 + offset)
        moved = memory[offset:].reshape(37, 500)
        moved[:] = columns
        np.testing.assert_array_equal(unit_length(moved), expected)
        np.testing.assert_array_equal(unit_length(columns[:, offset:]), expected[:, offset:])
    np.testing.assert_array_equal(unit_length(np.zeros((2, 1))), np.zeros((2, 1)))


def test_cones_are_as_wide_as_they_say():
    centre = np.array([1.0, 2.0, 2.0])
    for radius in (1.0, 0.25):
        block = DirectionStream(3, 4000, (0,), centre=centre, radius=radius).block(0)
        cosine = unit_length(block).T @ (centre / 3.0)
        widest = np.sqrt(max(1.0 - radius**2, 0.0))
        assert cosine.min() > widest - 0.01
        assert cosine.min() < widest + 0.1


def test_no_count_of_a_tile_overflows_its_byte():
    """All records of many tiles are below the limit of every direction."""
    nothing, limits = np.zeros((600, 2), dtype=np.float32), np.ones((1, 3), dtype=np.float32)
    found = counts_below(np.zeros((2, 3), dtype=np.float32), nothing, np.arange(600), limits)
    assert found.tolist() == [[600, 600, 600]]
