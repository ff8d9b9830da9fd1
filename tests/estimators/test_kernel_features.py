"""Constants of the algorithms: functions of public numbers, sane at the edges."""

import math

from hypothesis import given
from hypothesis import strategies as st

from dp_halfspace.estimators._kernel_features import choose_n_features, relative_scale
from dp_halfspace.privacy.budget import Budget

records = st.integers(1, 10**9)
budgets = st.floats(1e-9, 1e9) | st.just(math.inf)


@given(records, budgets, st.booleans())
def test_features_of_a_kernel_are_usable(n, strength, is_pure):
    budget = Budget.of(strength, 0.0) if is_pure else Budget.gaussian(strength)
    size = choose_n_features(n, budget)
    assert 2 <= size <= (150 if budget.is_pure else 600)
    assert size % 2 == 0


def test_a_stated_length_is_told_in_units_of_the_norm():
    assert relative_scale(3.0, 2.0) == 1.5
    assert relative_scale("auto", 2.0) is None
