"""The ways to fit: what they cost, that the noise drawn is that noise, what is public."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace import privacy
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.datasets import make_halfspace
from dp_halfspace.estimators._choose import plan_objective_of_rows, plan_training
from dp_halfspace.papers.known_margin import default_margin
from dp_halfspace.papers.training import asked_margin
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.projection import jl_dimension, jl_margin
from dp_halfspace.rows.rows import normalised_rows
from tests.permits import problem_of, table_door
from tests.releases import record_releases

ONE = Budget.gaussian(1.0)
PROBLEM = problem_of(400, 6, projection="auto")


def test_projection_of_many_columns_keeps_what_is_proved():
    wide = problem_of(50, 4000, projection="rademacher")
    training = plan_training(wide, "noisy_gd", 0.5, ONE)
    k = jl_dimension(0.5, 50)
    assert training.linear_map.n_components == k < 4000
    # The step size is that of the margin which is kept, the attribute that which was asked.
    assert training.margin == 0.5
    kept = jl_margin(0.5)
    assert 0.5 / 3 < kept < 0.5
    direct = plan_training(problem_of(50, k), "noisy_gd", kept, ONE)
    assert direct.events == training.events


@pytest.mark.parametrize(
    ("changed", "solver", "margin", "chosen"),
    [
        ({}, "noisy_gd", None, "exponential_mechanism"),
        ({"n_samples": 15_001}, "noisy_gd", None, "objective_perturbation"),
        ({"n_classes": 3}, "noisy_gd", None, "objective_perturbation"),
        ({}, "objective_perturbation", None, "objective_perturbation"),
        ({}, "noisy_gd", 0.1, "objective_perturbation"),
    ],
)
def test_pure_epsilon_takes_directions_where_they_pay(changed, solver, margin, chosen):
    sizes = {"n_samples": 14_999, "n_features": 6, **changed}
    problem = problem_of(**sizes, projection="auto")
    training = plan_training(problem, solver, margin, Budget.of(0.1, 0.0))
    assert training.public["solver"] == chosen
    assert 0.1 * (1 - 1e-6) <= privacy.epsilon(training.events, 0.0) <= 0.1 * (1 + 1e-12)


def test_automatic_projection_for_pure_epsilon_on_many_columns():
    wide = problem_of(4000, 2000, projection="auto")
    planned = plan_training(wide, "noisy_gd", None, Budget.of(1.0, 0.0))
    assert planned.shape.linear_map.n_components == 150
    assert plan_training(wide, "noisy_gd", None, Budget.of(1.0, 1e-6)).linear_map is None
    without = replace(wide, projection=None)
    assert plan_training(without, "noisy_gd", None, Budget.of(1.0, 0.0)).shape.linear_map is None


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kind", ["rademacher", "hadamard", None])
@pytest.mark.parametrize("intercept", [None, 1.0])
def test_planned_sizes_are_those_of_the_rows(form, kind, intercept):
    """They enter the bound on rounding errors."""
    X = form(np.random.default_rng(0).random((9000, 40)))
    problem = problem_of(
        9000, 40, is_sparse=sparse.issparse(X), intercept=intercept, projection=kind, n_components=7
    )
    training = plan_training(problem, "noisy_gd", 0.1, ONE)
    rows = normalised_rows(X, 1.0, training.constant_column, training.linear_map)
    n_samples, n_columns, block_rows = problem.sizes(training.linear_map).values()
    assert rows.shape == (n_samples, n_columns)
    assert rows.block_rows == block_rows
    assert rows.lengths().max() <= 1 + 1e-15


@pytest.mark.parametrize("margin", [None, 0.1])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_perturbed_objective_pays_for_rows_as_long_as_they_are(margin, delta):
    """``objective_perturbation.md``: a gradient moves by slopes times the norm of a row."""
    X = np.random.default_rng(0).random((900, 40)) * 10.0 ** np.arange(-3, 6).repeat(100)[:, None]
    plan = plan_objective_of_rows(problem_of(*X.shape), margin, Budget.of(2.0, delta))
    data = TrainingData(X, np.zeros(len(X), int), np.arange(2), None)
    longest = plan.rows(data).rows.lengths().max()
    assert 0.99 < longest <= plan.algorithm.risk.row_norm * (1.0 + 1e-15)
    assert plan.algorithm.linear.change >= 0.99 * longest


def test_order_of_the_pass_is_public_and_seeded():
    """Drawn before the data are read: the same for the same seed, fresh without one."""
    X, y = make_halfspace(400, 6, margin=0.2, random_state=0)
    codes = (y > 0).astype(int)

    def first_value(seed):
        training = plan_training(
            replace(PROBLEM, seed=seed), "phased_prox", 0.1, Budget.of(2.0, 1e-5)
        )
        with record_releases() as releases:
            training.run(table_door(X, codes, *training.events))
        return releases[0].value

    np.testing.assert_array_equal(first_value(3), first_value(3))
    assert not np.array_equal(first_value(3), first_value(4))
    assert not np.array_equal(first_value(None), first_value(None))


def test_automatic_margin_is_the_shift_over_the_norm():
    assert plan_training(PROBLEM, "noisy_gd", None, ONE).margin == default_margin(400, 7, ONE.mu)
    mean = plan_training(problem_of(400, 6, tail_fraction=1.0), "noisy_gd", 0.1, ONE)
    assert mean.margin_offset == 1.0
    training = replace(plan_training(PROBLEM, "noisy_gd", 0.1, ONE), margin=None)
    w = np.zeros((1, 7))
    assert asked_margin(training, w) == 1.0
    w[0, :2] = 3.0, 4.0
    assert asked_margin(training, 10 * w) == pytest.approx(training.margin_offset / 50)
    assert asked_margin(training, 1e-3 * w) == 1.0
    # Several classes: the largest difference, here of the first and the last.
    classes = np.array([[3.0, 0.0], [0.0, 0.5], [-3.0, 8.0]])
    assert asked_margin(training, classes) == pytest.approx(training.margin_offset / 10)
