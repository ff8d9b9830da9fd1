"""Constants of the algorithms: functions of public numbers, sane at the edges."""

import math

from hypothesis import given
from hypothesis import strategies as st

from dp_halfspace.estimators._kernel_features import (
    choose_n_features,
    length_scales,
    relative_scale,
)
from dp_halfspace.privacy.budget import Budget

records, classes = st.integers(1, 10**9), st.integers(2, 1000)
budgets = st.floats(1e-9, 1e9) | st.just(math.inf)


@given(records, classes, budgets, st.booleans())
def test_features_of_a_kernel_are_usable(n, n_classes, strength, is_pure):
    budget = Budget.of(strength, 0.0) if is_pure else Budget.gaussian(strength)
    size = choose_n_features(n, budget)
    assert 2 <= size <= (150 if budget.is_pure else 600)
    assert size % 2 == 0
    scales = length_scales(n, n_classes, size // 2)
    assert len(scales) == size // 2
    assert 0.04 <= scales.min() <= scales.max() == 0.7


def test_a_stated_length_is_told_in_units_of_the_norm():
    assert relative_scale(3.0, 2.0) == 1.5
    assert relative_scale("auto", 2.0) is None
