"""Margins below a tenth of a known one, counted exactly: one record, one count."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dp_halfspace.rows.directions import (
    DirectionStream,
    integer_rows,
    margin_costs,
    margin_limits,
)
from dp_halfspace.rows.rows import Rows
from tests.rows.test_direction_counts import largest_change, members, strange

ONES = np.ones(2)


def costs(block, rows, codes, margin, weights=ONES, paired=True):
    return margin_costs(block, integer_rows(rows), members(codes), weights, margin, paired=paired)


def exact(block, rows, codes, margin):
    """The definition on integer rows: rational scores, and limits by an exact square root."""
    n, d = rows.shape
    scale = 4094.0 - math.sqrt(d) / 2.0
    integers = [[round(v * scale) for v in row] for row in rows.dense(np.arange(n)).tolist()]
    found = []
    for sense in (1, -1):
        for w in block.T.astype(int).tolist():
            limit = max(round(margin / 10 * scale * math.sqrt(sum(v * v for v in w))), 1)
            scores = [
                sense * (2 * code - 1) * sum(Fraction(a) * b for a, b in zip(row, w, strict=True))
                for row, code in zip(integers, codes.tolist(), strict=True)
            ]
            found.append(sum(score < limit for score in scores))
    return np.array(found)


@pytest.mark.parametrize("d", [1, 3, 6])
@pytest.mark.parametrize("margin", [0.0, 1e-9, 0.2, 1.0])
def test_costs_are_the_definition(d, margin):
    block, rows, codes = strange(d)
    got = costs(block, rows, codes, margin)
    np.testing.assert_array_equal(got, exact(block, rows, codes, margin))
    half = costs(block, rows, codes, margin, paired=False)
    np.testing.assert_array_equal(got[: len(got) // 2], half)


def test_a_score_at_the_limit_does_not_count_and_zero_does_for_either_label():
    rows = Rows(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]))
    block = np.array([[2000.0], [0.0]], dtype=np.float32)
    # The limit is the very score of the first two rows.
    margin = 10.0 * 4093.0 / (4094.0 - math.sqrt(2.0) / 2.0)
    assert margin_limits(block, margin) == 4093.0 * 2000.0
    at_limit = costs(block, rows, np.array([1, 0, 1, 0]), margin, paired=False)
    np.testing.assert_array_equal(at_limit, [3])
    np.testing.assert_array_equal(costs(block, rows, np.array([1, 0, 0, 1]), 1e-9), [3, 3])


def test_limits_are_integers_of_one_at_least():
    block = DirectionStream(5, 50, (0,), constant=0.5).block(0)
    for margin in (1e-9, 0.5, 1.0):
        limits = margin_limits(block, margin)
        np.testing.assert_array_equal(limits, np.rint(limits))
        assert 1.0 <= limits.min() <= limits.max() <= 0.1 * 2047 * 4095


def near(block, rows, index, weights):
    """Weighted records below a tenth of a small margin, and of the largest there is."""
    small, large = (margin_costs(block, rows, index, weights, m, paired=True) for m in (0.1, 1.0))
    return np.concatenate([small, large])


def test_a_record_changes_a_cost_by_one_at_most():
    assert largest_change(near) == 1
