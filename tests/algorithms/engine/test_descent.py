"""DP gradient descent behind a preconditioner: budget, change of coordinates, accuracy."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dp_halfspace.algorithms.engine.defaults import engine_defaults
from dp_halfspace.algorithms.engine.noisy_gd import plan_descent, plan_gradient
from dp_halfspace.rows.blocks import block_size
from dp_halfspace.rows.rows import normalised_rows
from tests.algorithms.support import assert_costs, permit_for, share_right, stretched


def plan_for(n, k, n_classes=2, mu=1.0, block_rows=1000, defaults=None):
    defaults = defaults or engine_defaults(n, k, n_classes, mu)
    sizes = {"n_samples": n, "n_columns": k, "n_classes": n_classes, "block_rows": block_rows}
    return plan_gradient(defaults, **sizes, mu=mu)


def run(X, y, plan, weights=None):
    weights = np.ones(max(2, plan.descent.n_outputs)) if weights is None else weights
    return plan.run(normalised_rows(X, 1.0, None), y, weights, permit_for(*plan.events))


@pytest.mark.parametrize("mu", [0.02, 0.3, 5.0])
@pytest.mark.parametrize("k", [5, 400, 600])
@pytest.mark.parametrize("n_classes", [2, 7])
def test_whole_budget_and_no_more(mu, k, n_classes):
    assert_costs(plan_for(20000, k, n_classes, mu).events, mu, 1e-7)


@pytest.mark.parametrize("n_classes", [2, 7])
def test_steps_allow_for_the_preconditioner_that_is_planned(n_classes):
    """Rounding errors grow with what the preconditioner stretches, rows and coefficients."""
    n, k, mu = 20_000, 400, 0.3
    plan, defaults = plan_for(n, k, n_classes, mu), engine_defaults(n, k, n_classes, mu)
    assert plan.preconditioner is not None
    outputs = 1 if n_classes == 2 else n_classes
    public = {"n_samples": n, "n_columns": k, "n_outputs": outputs, "block_rows": 1000}
    # Eigenvalues are between a thousandth of their mean and sixteen times the number of rows.
    expected = plan_descent(
        defaults,
        **public,
        mu=math.sqrt(1.0 - defaults.preconditioner_share) * mu,
        amplification=math.sqrt(1000 * k),
        compression=4.0,
    )
    sensitivity = expected.mechanism.sensitivity
    assert plan.descent.mechanism.sensitivity == pytest.approx(sensitivity, rel=1e-14)
    assert plan.descent.mapped_radius == pytest.approx(expected.mapped_radius)


def test_class_weights_reach_the_steps():
    """Rows that all point the same way: the class with the larger weight decides."""
    X, y = np.tile([[1.0, 0.0]], (400, 1)), np.arange(400) % 2
    plan = replace(plan_for(400, 2, mu=math.inf), preconditioner=None)
    for weights, sign in (((0.1, 1.0), 1.0), ((1.0, 0.1), -1.0)):
        assert np.sign(run(X, y, plan, np.array(weights))[0, 0]) == sign


def test_preconditioner_pays_on_stretched_data():
    """Two strong directions without signal, one weak one with it."""
    X, y = stretched(20000)
    with_preconditioner = share_right(X, run(X, y, plan_for(20000, 3, mu=0.05)), y)
    plain = plan_for(20000, 3, mu=0.05, defaults=engine_defaults(20000, 600, 2, 0.05))
    assert plain.preconditioner is None
    assert with_preconditioner > 0.95
    assert with_preconditioner >= share_right(X, run(X, y, plain), y) - 0.01


@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize("n_samples", [10**3, 10**5, 10**6])
@pytest.mark.parametrize("n_columns", [5, 50, 500, 5000])
def test_rounding_hardly_adds_to_the_noise(n_samples, n_columns, n_classes):
    defaults = engine_defaults(n_samples, n_columns, n_classes, 0.2)
    block = block_size(n_samples, n_columns, is_sparse=False)
    plan = plan_for(n_samples, n_columns, n_classes, 0.2, block)
    assert 1.0 < plan.descent.mechanism.sensitivity / (2.0 * defaults.clip) < 1.02


def test_wider_preconditioner_is_paid_for_in_the_length_of_rows():
    defaults = replace(
        engine_defaults(10**5, 2049, 2, 1.0), preconditioner_share=0.2, preconditioner_columns=2049
    )
    plan = plan_for(10**5, 2049, mu=1.0, block_rows=96, defaults=defaults)
    assert plan.preconditioner is not None
    relative = plan.descent.mechanism.sensitivity / (2 * defaults.clip) - 1
    # Lengths of mapped rows are off by (k + 8) sqrt(k) |A| |A^-1| 2^-52 at most.
    worst = 2057 * 2049 * math.sqrt(1e3) * 4 * 2.0**-52
    assert worst < relative < 0.02
