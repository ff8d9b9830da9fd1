"""Constants of the engine: functions of public numbers, sane at the edges."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_halfspace.optim.defaults import WIDE, engine_defaults


@given(st.integers(1, 10**9), st.integers(1, 10**6), st.integers(2, 1000), st.floats(1e-9, 1e9))
def test_always_usable(n, k, n_classes, mu):
    defaults = engine_defaults(n, k, n_classes, mu)
    assert 0.1 <= defaults.bias <= 0.5
    assert 0 <= defaults.metric_share < 1
    assert 0 < defaults.clip <= math.sqrt(2)
    assert 0 < defaults.window <= 1
    assert 0 <= defaults.momentum < 1
    assert defaults.n_steps >= 1
    assert 0 < defaults.scale <= 5


@pytest.mark.parametrize("n_classes", [2, 3])
def test_infinite_budget(n_classes):
    for k in (10, WIDE + 1):
        assert math.isfinite(engine_defaults(100, k, n_classes, math.inf).scale)


def test_wide_binary_problems_have_their_own():
    assert engine_defaults(1000, WIDE, 2, 1.0).shift == 2.0
    assert engine_defaults(1000, WIDE + 1, 2, 1.0).shift == 4.0
    assert engine_defaults(1000, WIDE + 1, 2, 1.0).metric_share == 0.0
