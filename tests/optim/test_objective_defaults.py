"""Constants of objective perturbation: functions of public numbers, sane at the edges."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from dp_halfspace.optim.defaults import WIDE
from dp_halfspace.optim.objective_defaults import objective_defaults

budgets = st.one_of(st.floats(1e-9, 1e6), st.just(math.inf))


@given(
    st.integers(1, 10**9),
    st.integers(1, 10**6),
    st.integers(2, 1000),
    budgets,
    st.one_of(st.just(0.0), st.floats(1e-30, 0.49)),
)
def test_always_usable(n, k, n_classes, epsilon, delta):
    defaults = objective_defaults(n, k, n_classes, epsilon, delta)
    assert 0.1 <= defaults.bias <= 2.5
    assert 0.0 <= defaults.shift <= 4.0
    assert 0.0 < defaults.stretch < math.inf
    assert 0.0 < defaults.jacobian_share <= 0.5
    assert (defaults.n_components is not None) == (delta == 0 and k > WIDE)


def test_more_data_or_budget_may_be_stretched_further():
    base = objective_defaults(10**4, 30, 2, 0.5, 1e-8)
    for better in (
        objective_defaults(10**5, 30, 2, 0.5, 1e-8),
        objective_defaults(10**4, 10, 2, 0.5, 1e-8),
        objective_defaults(10**4, 30, 2, 2.0, 1e-8),
    ):
        assert better.stretch > base.stretch
