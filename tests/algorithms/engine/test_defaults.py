"""Constants of the algorithms: functions of public numbers, sane at the edges."""

import math

from hypothesis import given
from hypothesis import strategies as st

from dp_halfspace.algorithms.engine.defaults import (
    WIDE,
    additive_defaults,
    engine_defaults,
)

records, columns, classes = st.integers(1, 10**9), st.integers(1, 10**6), st.integers(2, 1000)


@given(records, columns, classes, st.floats(1e-9, 1e9))
def test_descent_is_always_usable(n, k, n_classes, mu):
    defaults = engine_defaults(n, k, n_classes, mu)
    assert 0.1 <= defaults.constant_column <= 0.5
    assert 0 <= defaults.preconditioner_share < 1
    assert 0 < defaults.clip <= math.sqrt(2)
    assert 0 < defaults.tail_fraction <= 1
    assert 0 <= defaults.momentum < 1
    assert defaults.n_steps >= 1
    assert 0 < defaults.path_length <= 5


@given(records, st.integers(1, WIDE - 1), st.integers(2, 2000), classes, st.floats(1e-9, 1e9))
def test_features_lengthen_the_path_of_tables_of_two_classes_alone(n, lead, more, n_classes, mu):
    sizes = n, lead + more, n_classes, mu
    defaults = additive_defaults(*sizes, lead=lead, behind=1.0, is_table=True)
    plain = engine_defaults(n, min(lead + more, WIDE), n_classes, mu).path_length
    assert plain <= defaults.path_length <= max(plain, 2.0 * mu**-0.25)
    assert math.isclose(defaults.rare_step_factor * defaults.path_length, plain)
    assert additive_defaults(*sizes, lead=lead, behind=1.0).path_length == plain
    # The step after the average is for features alone.
    has_features = lead + 1 < lead + more
    assert (defaults.last_step > 0.0) == has_features
    assert engine_defaults(n, min(lead + more, WIDE), n_classes, mu).last_step == 0.0
    if n_classes > 2:
        assert defaults.path_length == plain
