"""Constants of the algorithms: functions of public numbers, sane at the edges."""

import math

from hypothesis import given
from hypothesis import strategies as st

from dp_halfspace.estimators._kernel_features import length_scales, n_kernel_components

records, classes = st.integers(1, 10**9), st.integers(2, 1000)
budgets = st.floats(1e-9, 1e9) | st.just(math.inf)


@given(records, classes, budgets)
def test_features_of_a_kernel_are_usable(n, n_classes, mu):
    size = n_kernel_components(n, mu)
    assert 64 <= size <= 600
    assert size % 2 == 0
    scales = length_scales(n, n_classes, size // 2)
    assert len(scales) == size // 2
    assert 0.04 <= scales.min() <= scales.max() == 0.7
