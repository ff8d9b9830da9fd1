"""Constants of the algorithms: functions of public numbers, sane at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_halfspace.algorithms.defaults import (
    WIDE,
    engine_defaults,
    kernel_engine_defaults,
    length_scales,
    n_kernel_components,
    objective_defaults,
)

records, columns, classes = st.integers(1, 10**9), st.integers(1, 10**6), st.integers(2, 1000)
budgets = st.one_of(st.floats(1e-9, 1e6), st.just(math.inf))


@given(records, columns, classes, st.floats(1e-9, 1e9))
def test_descent_is_always_usable(n, k, n_classes, mu):
    defaults = engine_defaults(n, k, n_classes, mu)
    assert 0.1 <= defaults.bias <= 0.5
    assert 0 <= defaults.metric_share < 1
    assert 0 < defaults.clip <= math.sqrt(2)
    assert 0 < defaults.window <= 1
    assert 0 <= defaults.momentum < 1
    assert defaults.n_steps >= 1
    assert 0 < defaults.scale <= 5


@pytest.mark.parametrize("n_classes", [2, 3])
def test_descent_with_an_infinite_budget(n_classes):
    for k in (10, WIDE + 1):
        assert math.isfinite(engine_defaults(100, k, n_classes, math.inf).scale)


@given(records, columns, classes, budgets, st.one_of(st.just(0.0), st.floats(1e-30, 0.49)))
def test_objective_perturbation_is_always_usable(n, k, n_classes, epsilon, delta):
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


def test_number_of_kernel_features():
    sizes = [n_kernel_components(n, 0.1) for n in (1, 100, 1000, 3000, 10**4, 10**9)]
    assert sizes == sorted(sizes)
    assert sizes[0] == 64
    assert sizes[-1] == n_kernel_components(10, math.inf) == 600
    assert all(size % 2 == 0 for size in sizes)


@pytest.mark.parametrize(("kernel", "factor"), [("rbf", 1.0), ("laplacian", 3.0)])
@pytest.mark.parametrize(
    ("n", "n_classes", "n_fine"),
    [(1, 2, 50), (4000, 2, 50), (20_000, 2, 10), (10**7, 2, 0), (1, 10, 10)],
)
def test_length_scales(kernel, factor, n, n_classes, n_fine):
    scales = length_scales(kernel, n, 9, n_classes, 100) / factor
    np.testing.assert_allclose(scales[: 100 - n_fine], 0.7)
    fine = scales[100 - n_fine :]
    assert len(fine) == n_fine
    assert ((fine > 0.04) & (fine < 0.35)).all()


@pytest.mark.parametrize(("n_classes", "clip"), [(2, 0.5), (3, 1.0), (10, 1.0)])
def test_descent_on_kernel_features(n_classes, clip):
    defaults = kernel_engine_defaults(n_classes)
    assert defaults.clip == clip
    assert defaults.metric_columns > 2000
