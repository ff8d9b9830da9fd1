"""Dense signs, and the margin that they keep, against the formulas."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_halfspace.projection import draw_rademacher, jl_dimension, jl_distortion, jl_margin, linear
from dp_halfspace.projection.linear import RademacherMap
from tests.projection.references import matrix_of

margins = st.floats(1e-3, 1.0)
betas = st.floats(1e-6, 0.999)
counts = st.integers(1, 10**8)


def exponent(e):
    """Of the tail bound, for each component."""
    return e**2 / 4 - e**3 / 6


def test_entries_are_fair_independent_signs():
    k = 200
    matrix = matrix_of(draw_rademacher(300, k, np.random.default_rng(0))) * math.sqrt(k)
    np.testing.assert_array_equal(np.abs(np.round(matrix, 12)), 1.0)
    assert abs(matrix.mean()) < 5 / math.sqrt(matrix.size)
    correlation = np.abs(matrix @ matrix.T / 300 - np.eye(k))
    assert correlation.max() < 6 / math.sqrt(300)


def test_every_byte_of_signs_is_drawn():
    assert len(np.unique(draw_rademacher(100, 800, np.random.default_rng(0)).bits)) == 256


def test_bits_are_read_highest_first():
    projection = RademacherMap(np.array([[0b10110000, 0b01000000]], dtype=np.uint8), 10)
    np.testing.assert_allclose(
        matrix_of(projection)[:, 0] * math.sqrt(10), [-1, 1, -1, -1, 1, 1, 1, 1, 1, -1]
    )


def test_signs_in_several_blocks_are_those_of_one(monkeypatch):
    projection = draw_rademacher(5, 70, np.random.default_rng(0))
    whole = matrix_of(projection)
    monkeypatch.setattr(linear, "rows_of_block", lambda n_bytes: 2)
    np.testing.assert_array_equal(matrix_of(projection), whole)
    assert len(list(projection._signs())) > 2


@given(margins, counts, betas)
def test_dimension_is_the_least_that_meets_the_union_bound(margin, n, beta):
    k, e = jl_dimension(margin, n, beta), margin / 2
    slack = 1e-9
    assert (3 * n + 1) * math.exp(-k * exponent(e)) <= beta * (1 + slack * k)
    assert (3 * n + 1) * math.exp(-(k - 1) * exponent(e)) >= beta * (1 - slack * k)


@given(st.integers(1, 10**7), counts, betas)
def test_distortion_meets_the_union_bound_and_is_the_least(k, n, beta):
    e = jl_distortion(k, n, beta)
    target = math.log((3 * n + 1) / beta)
    if math.isinf(e):
        assert k * exponent(1.0) < target * (1 + 1e-12)
    else:
        assert 0 < e <= 1
        assert k * exponent(e) >= target * (1 - 1e-9)
        assert k * exponent(0.999 * e) < target


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: jl_dimension(0.0, 10), "margin"),
        (lambda: jl_dimension(1.5, 10), "margin"),
        (lambda: jl_dimension(math.nan, 10), "margin"),
        (lambda: jl_dimension(0.5, 0), "n_samples"),
        (lambda: jl_dimension(0.5, 10, 0.0), "beta"),
        (lambda: jl_dimension(0.5, 10, 1.0), "beta"),
        (lambda: jl_dimension(0.5, 10, math.nan), "beta"),
        (lambda: jl_distortion(0, 10), "n_components"),
        (lambda: jl_distortion(5, 2.5), "n_samples"),
        (lambda: jl_margin(-0.1), "margin"),
        (lambda: jl_margin(0.1, distortion=-1e-9), "distortion"),
        (lambda: jl_margin(0.1, distortion=math.nan), "distortion"),
    ],
)
def test_refusals(call, word):
    with pytest.raises(ValueError, match=word):
        call()


def test_a_margin_loses_the_distortion_and_is_divided_by_longer_rows():
    assert jl_margin(0.6) == pytest.approx(0.3 / 1.3)
    assert jl_margin(0.3, distortion=0.1) == pytest.approx(0.2 / 1.1)
    assert jl_margin(0.1, distortion=0.1) == jl_margin(0.1, distortion=0.2) == 0.0
