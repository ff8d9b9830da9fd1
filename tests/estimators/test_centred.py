"""Perturbed minimisers of centred rows: budget, neighbours, certificate, coefficients."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from dp_halfspace import (
    AdaptiveMarginClassifier,
    ObjectivePerturbationClassifier,
    OutputPerturbationClassifier,
    privacy,
)
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine import linear
from dp_halfspace.engine.linear import (
    Known,
    Shape,
    clipped_rows_over,
    in_columns,
    length_of,
)
from dp_halfspace.engine.moment import CONSTANT, LENGTHENED, centring_of, packed
from dp_halfspace.engine.plan import PublicFacts
from dp_halfspace.estimators._centred import (
    centred_rows,
    plan_centred_objective,
    plan_centred_output,
    recalibrated_minimiser,
    rescaled_minimiser,
    risk_of,
)
from dp_halfspace.optim.losses import LOGISTIC, get_loss, huber_hinge
from dp_halfspace.papers.objective import GaussianLinearTerm
from dp_halfspace.papers.output import mapped_row_ridge, plan_output
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.interception import intercept_releases
from dp_halfspace.privacy.mechanisms import (
    GaussianNoise,
    L2LaplaceNoise,
    NoNoise,
    noise_deviation,
)
from dp_halfspace.rows.mapped_rows import FormedRows
from tests.adversarial import neighbouring_pairs
from tests.conftest import separated
from tests.engine.test_recalibration import white
from tests.papers.test_objective import gradients
from tests.permits import rows_door, table_door
from tests.releases import record_releases
from tests.support import fitted

HUBER = huber_hinge(0.5)
ONE_CLASS_EACH = {"two classes": (LOGISTIC, 2), "softmax": (LOGISTIC, 4), "stacked": (HUBER, 3)}
each_problem = pytest.mark.parametrize(("loss", "k"), ONE_CLASS_EACH.values(), ids=ONE_CLASS_EACH)


def noise_of(plan, number):
    """The noise of the length, or of the moment."""
    return plan.releases[number].noise(Known())


def shape_of(n, d, k=2, *, weight=1.0, constant=1.0, **facts):
    return Shape(PublicFacts(n, d, k, (weight,) * k, **facts), constant)


@pytest.mark.sampled(7)
@each_problem
@pytest.mark.parametrize("delta", [0.0, 1e-7])
@pytest.mark.parametrize("epsilon", [0.1, 8.0])
@pytest.mark.parametrize("ridge", [None, 1.0])
def test_an_objective_spends_the_whole_budget_and_no_more(loss, k, delta, epsilon, ridge):
    plan = plan_centred_objective(
        shape_of(20000, 30, k), loss, Budget.of(epsilon, delta), ridge=ridge
    )
    assert plan.releases
    spent = privacy.epsilon(plan.events, delta)
    assert epsilon * (1 - 1e-6) <= spent <= epsilon * (1 + 1e-12)


@each_problem
@pytest.mark.parametrize("epsilon", [0.1, 8.0])
def test_an_output_spends_the_whole_budget_and_no_more(loss, k, epsilon):
    plan = plan_centred_output(shape_of(20000, 30, k), loss, Budget.of(epsilon, 1e-7))
    length, moment, minimiser = plan.events
    assert moment.mu**2 == pytest.approx(0.18 / 0.82 * minimiser.mu**2)
    assert length.mu**2 == pytest.approx(0.02 / 0.98 * (moment.mu**2 + minimiser.mu**2))
    spent = privacy.epsilon(plan.events, 1e-7)
    assert epsilon * (1 - 1e-6) <= spent <= epsilon * (1 + 1e-12)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("k", [2, 12])
@pytest.mark.parametrize("delta", [0.0, 0.25])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 50.0])
@pytest.mark.parametrize("n", [1, 40])
def test_tiny_data_and_budgets_have_a_plan(n, k, delta, epsilon):
    """No moment if it would exceed delta beside the vertices at every regulariser."""
    plan = plan_centred_objective(shape_of(n, 3, k), LOGISTIC, Budget.of(epsilon, delta))
    assert privacy.epsilon(plan.events, delta) <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize(("n", "d", "epsilon"), [(10**6, 513, 1.0), (40, 3, 0.1)])
def test_no_moment_where_it_is_not_worth_its_price(n, d, epsilon):
    shape, budget = shape_of(n, d), Budget.of(epsilon, 1e-7)
    assert plan_centred_output(shape, LOGISTIC, budget) is None
    assert not plan_centred_objective(shape, LOGISTIC, budget).releases


def test_only_rows_without_a_moment_have_the_constant_of_the_intercept():
    """The mean of the rows is read off the moment by a constant that is known."""
    shape = replace(shape_of(4000, 3), constant=4.0)
    plan = plan_centred_objective(shape, LOGISTIC, Budget.of(1.0, 1e-7))
    assert plan.releases
    ones = np.ones((1, 4))
    for each, constant in ((shape, CONSTANT), (replace(shape, constant=0.0), 0.0)):
        coefficients, intercepts = in_columns(each, Known(), ones)
        np.testing.assert_allclose(coefficients, 1.0 / math.hypot(1.0, constant))
        np.testing.assert_allclose(intercepts, constant / math.hypot(1.0, constant))
    X, y = np.full((1000, 3), 0.5), np.arange(1000) % 2
    plain = replace(plan, releases=())
    with intercept_releases(lambda *_: ones):
        fitted = plain.run(table_door(X, y, *plain.events))
    np.testing.assert_allclose(fitted.coefficients, 1.0)
    np.testing.assert_allclose(fitted.intercepts, 4.0 * CONSTANT)


def centred(X, constant=1.0):
    """Final rows behind the exact moment."""
    rows = clipped_rows_over(X, LENGTHENED, 1.0 / LENGTHENED, (CONSTANT / LENGTHENED,), None)
    moment = packed(rows.gram())
    centring = centring_of(moment, X.shape[0], NoNoise(), constant=constant)[0]
    return centred_rows(rows, centring)


def hard_tables():
    """Ill-conditioned, degenerate and extreme features with labels of three classes."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((600, 5)) * [1.0, 1e-2, 1e-4, 1e-6, 1e-8]
    y = rng.integers(3, size=600)
    yield "ill-conditioned", X, y
    yield "far from zero", X + 3.0, y
    yield "identical", np.tile(X[:1], (600, 1)), y
    yield "one class", X, np.zeros(600, dtype=int)
    yield "zeros", 0.0 * X, y
    yield "one huge row", np.where(np.arange(600)[:, None] == 7, 1e200 * X, X), y


TABLES = pytest.mark.parametrize("table", list(hard_tables()), ids=lambda table: table[0])


@TABLES
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("constant", [1.0, 7.0])
def test_no_final_row_is_longer_than_the_bound(table, form, constant):
    formed, surrogate = centred(form(table[1]), constant=constant)
    lengths = np.concatenate(
        [np.linalg.norm(Z.astype(np.longdouble), axis=1) for _, _, Z in formed.blocks()]
    )
    assert lengths.max() <= formed.row_bound == 1.0 + 2.0**-40
    np.testing.assert_allclose(
        surrogate.adjoint(np.eye(600)), formed.adjoint(np.eye(600)), atol=1e-6
    )


def final(X, plan, length, released):
    """Final rows by other means, from the length and the moment that were released."""
    X = X / length_of(float(length[0]), len(X), noise_of(plan, 0))
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    first = np.column_stack([X / np.maximum(norms, 1.0), np.full(len(X), CONSTANT)]) / LENGTHENED
    centring = centring_of(released, len(X), noise_of(plan, 1), constant=1.0)[0]
    images = first @ centring.to_final.T
    lengths = np.linalg.norm(images, axis=1, keepdims=True)
    images *= centring.longest / np.maximum(lengths, centring.longest)
    return np.column_stack([images, np.full(len(X), centring.constants[0])]), centring


@pytest.mark.sampled(8)
@TABLES
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_private_query_is_certified(table, k, delta):
    """An independent gradient behind the moment that was released, at the private query."""
    _, X, y = table
    X = np.clip(X, -1e100, 1e100)
    codes, weights = (y if k > 2 else (y == 1).astype(int)), np.linspace(0.5, 2.0, k)
    facts = PublicFacts(len(X), X.shape[1], k, tuple(weights))
    plan = plan_centred_objective(Shape(facts, 1.0), LOGISTIC, Budget.of(9.0, delta))
    with record_releases() as releases:
        fitted = plan.run(table_door(X, codes, *plan.events))
    assert plan.releases
    Z, centring = final(X, plan, releases[0].released, releases[1].released)
    linear = np.vstack([r.released for r in releases[2:-1]])
    gradient = gradients(plan.minimiser, Z, codes, weights, linear, releases[-1].value)
    assert np.linalg.norm(gradient) <= plan.minimiser.tolerance.certified + 1e-7
    # Coefficients in columns give the scores of final rows that are not clipped.
    w, rows = releases[-1].released, np.clip(X, -0.1, 0.1)
    w = w if k == 2 else w - w.mean(axis=0)
    assert plan.recalibrates
    tell = recalibrated_minimiser if k == 2 else rescaled_minimiser
    w = tell(plan.minimiser, w, centring, float(len(X)), weights)
    unit = length_of(float(releases[0].released[0]), len(X), noise_of(plan, 0))
    images = (rows / unit - centring.mean) @ centring.whitening.T / centring.length
    expected = images @ w[:, :-1].T + w[:, -1] * centring.constants[0]
    found = rows @ fitted.coefficients.T + fitted.intercepts
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kind", [OutputPerturbationClassifier, ObjectivePerturbationClassifier])
def test_a_record_of_the_heaviest_class_decides_what_a_weighted_fit_costs(kind):
    X, y = np.zeros((500, 3)), np.arange(500) % 2
    how = {"data_norm": 1.0, "alpha": 0.1, "preconditioner": True, "classes": [0, 1]}
    costs = []
    for weights in (None, {0: 1.0, 1: 0.01}, {0: 0.01, 1: 1.0}):
        record = kind(**how, class_weight=weights).plan(X, y)
        costs.append((record.events, dict(record.public).get("sensitivity")))
    assert costs[0] == costs[1] == costs[2]


def longest_first_row(table, form, constant):
    """Largest norm of a row of a fit without a moment, with its constant."""
    X = form(table[1])
    shape = replace(shape_of(*X.shape), constant=constant)
    plan = plan_centred_objective(shape, LOGISTIC, Budget.of(1.0, 0.0), has_moment=False)
    data = TrainingData(X, np.zeros(X.shape[0], int), np.arange(2), None)
    rows = plan._minimised_rows(linear.Known(), data).rows
    return float(np.linalg.norm(rows.dense(np.arange(X.shape[0])), axis=1).max())


@TABLES
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("constant", [0.0, 1.0, 7.0])
def test_without_a_moment_rows_have_norm_one(table, form, constant):
    assert longest_first_row(table, form, constant) <= 1.0 + 2.0**-40


def stretched(rng, d):
    """Maps that stretch rows by very different factors."""
    root = rng.standard_normal((d, d))
    return np.linalg.inv(root @ root.T + 0.01 * np.eye(d))


def worst_change(k, loss=LOGISTIC):
    """Largest change of the gradient of neighbours behind one map, over the bound."""
    rng = np.random.default_rng(6)
    worst = 0.0
    for X, y, other_X, other_y in neighbouring_pairs(rng, 60, n_classes=k):
        d = X.shape[1]
        transform = stretched(rng, d)
        shape = shape_of(len(X), d - 1, k)
        plan = plan_centred_objective(shape, loss, Budget.of(1.0, 0.0), has_moment=False)
        W = 30.0 * rng.standard_normal((1 if k == 2 else k, d))
        found = []
        for features, labels in ((X, y), (other_X, other_y)):
            first = clipped_rows_over(features, 1.0, 1.0, (), None)
            Z = FormedRows(first, transform, 1.0).adjoint(np.eye(len(features))).T
            assert np.linalg.norm(Z, axis=1).max() <= 1.0 + 2.0**-40
            found.append(gradients(plan.minimiser, Z, labels, np.ones(k), 0.0 * W, W))
        change = float(np.linalg.norm(found[0] - found[1]))
        worst = max(worst, change / plan.minimiser.risk.gradient_change)
    return worst


@pytest.mark.parametrize("k", [2, 4])
def test_change_behind_a_map_is_that_of_rows_of_norm_one(k):
    assert 0.5 < worst_change(k) <= 1.0


def gaussian(sensitivity):
    return GaussianNoise(sensitivity, 1.0)


def worst_ratio(loss, k, trials=30):
    """Largest distance of minimisers of neighbours behind one map, over the sensitivity."""
    rng, worst = np.random.default_rng(2), 0.0
    for X, y, other, flipped in neighbouring_pairs(rng, trials, n_classes=k):
        n, d = X.shape
        risk = risk_of(shape_of(n, d - 1, k), loss, is_formed=True)
        plan, transform, queries = plan_output(risk, 3.0, gaussian), stretched(rng, d), []
        for features, labels in ((X, y), (other, flipped)):
            rows = FormedRows(clipped_rows_over(features, 1.0, 1.0, (), None), transform, 1.0)
            with record_releases() as releases:
                plan.run(rows_door(rows, labels, np.ones(k), *plan.events))
            queries.append(releases[-1].value)
        distance = float(np.linalg.norm(queries[0] - queries[1]))
        worst = max(worst, distance / plan.output.sensitivity)
    return worst


@pytest.mark.parametrize(
    ("loss", "k", "least"), [(LOGISTIC, 2, 0.6), (LOGISTIC, 4, 0.6), (HUBER, 3, 0.6)]
)
def test_sensitivity_against_brute_force(loss, k, least):
    """Given the released map each row is a function of one record, of norm at most one."""
    assert least < worst_ratio(loss, k) <= 1.0


def moved_length(plan):
    """How far two neighbours are apart in the length."""
    values = []
    for first in ([0.0, 0.0], [3.0, 4.0]):
        X = np.ones((2000, 2))
        X[0] = first
        with record_releases() as releases:
            plan.run(table_door(X, np.arange(2000) % 2, *plan.events))
        values.append(releases[0].value)
    return np.linalg.norm(values[0] - values[1]) / releases[0].mechanism.sensitivity


def test_a_record_moves_the_length_by_its_sensitivity_at_most_and_does(monkeypatch):
    """Planted: half of the sensitivity."""
    plan = plan_centred_objective(shape_of(2000, 2), LOGISTIC, Budget.of(30.0, 1e-6))
    assert 0.999 < moved_length(plan) <= 1.0
    monkeypatch.setattr(linear, "length_noise", lambda budget: budget.noise(0.5))
    plan = plan_centred_objective(shape_of(2000, 2), LOGISTIC, Budget.of(30.0, 1e-6))
    assert moved_length(plan) > 1.0


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_record_moves_the_moment_by_its_sensitivity_at_most_and_does(delta):
    """Two opposite records of norm one, whose rows with their constants are orthogonal."""
    shape, n = shape_of(2000, 2), 2000
    plan = plan_centred_objective(shape, LOGISTIC, Budget.of(30.0, delta))
    # So many rows of norm one are read as they are.
    X, values = np.tile([0.0, 1.0], (n, 1)), []
    for first in ([1.0, 0.0], [-1.0, 0.0]):
        X[0] = first
        with record_releases() as releases:
            plan.run(table_door(X, np.arange(n) % 2, *plan.events))
        values.append(releases[1].value)
    noise = releases[1].mechanism
    assert isinstance(noise, L2LaplaceNoise if delta == 0.0 else GaussianNoise)
    # |x|^2 = 1, <x, z> = (1/4 - 1) / (5/4).
    moved = np.linalg.norm(values[0] - values[1])
    assert moved == pytest.approx(np.sqrt(2.0 - 2.0 * 0.6**2), rel=1e-9)
    assert moved <= noise.sensitivity


@pytest.mark.parametrize("is_sparse", [False, True])
def test_plan_counts_the_rows_that_are_summed_at_a_time(is_sparse):
    """Whatever the layout of the data, rows are formed in the blocks of the bound."""
    shape = shape_of(3000, 100, is_sparse=is_sparse)
    plan = plan_centred_objective(shape, LOGISTIC, Budget.of(9.0, 1e-7))
    X = np.zeros((3000, 100))
    formed, _ = centred(sparse.csr_array(X) if is_sparse else X)
    sizes = [hi - lo for lo, hi, _ in formed.blocks()]
    assert max(sizes) == plan.minimiser.risk.block_rows == formed.block_rows
    assert sum(sizes) == 3000


def test_ridge_follows_the_noise_and_has_a_ceiling():
    many = risk_of(shape_of(10**5, 4), LOGISTIC, is_formed=True)
    few = risk_of(shape_of(10**5, 299, 20), LOGISTIC, is_formed=True)
    heavy = risk_of(shape_of(10**5, 4, weight=3.0), LOGISTIC, is_formed=True)
    assert mapped_row_ridge(many, 0.1) == pytest.approx(1e-3)
    assert mapped_row_ridge(few, 0.1) == pytest.approx(20 * np.sqrt(6000) * 1e-6)
    assert mapped_row_ridge(many, 1e-6) == 1.0
    assert mapped_row_ridge(many, np.inf) == many.least_ridge
    assert mapped_row_ridge(heavy, 0.1) == pytest.approx(3e-3)
    # A quadratic loss has the noise of one with slope one at its own largest slope.
    quadratic = risk_of(shape_of(10**5, 4), get_loss("squared"), is_formed=True)
    ridge = mapped_row_ridge(quadratic, 0.1)
    slope = quadratic.loss.slope_bound(quadratic.row_norm * quadratic.radius(ridge))
    assert slope > 5.0
    assert quadratic.sensitivity(ridge) == pytest.approx(2.0 / (1e-3 * 10**5), rel=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        ObjectivePerturbationClassifier(data_norm=1.0, delta=0.0),
        OutputPerturbationClassifier(data_norm=1.0, alpha=0.1, preconditioner=True),
        AdaptiveMarginClassifier(data_norm=1.0, solver="objective_perturbation"),
    ],
    ids=repr,
)
def test_rows_beyond_a_stated_norm_are_scored_as_the_fit_reads_them(model):
    """Otherwise the intercept would be for rows of another length."""
    X, y = separated(400, 3)
    model = fitted(model, 30.0 * X, y, epsilon=3.0, classes=[0, 1], random_state=0)
    directions = X / np.linalg.norm(X, axis=1, keepdims=True)
    scores = model.decision_function(50.0 * directions)
    np.testing.assert_allclose(scores, model.decision_function(directions), atol=1e-12)


# --- probabilities ---


def short_minimiser(n, size, n_classes=2, ridge=0.05):
    """A minimiser whose regulariser shortens the coefficients by far."""
    budget, shape = Budget.of(9.0, 1e-6), shape_of(n, size, n_classes)
    plan = plan_centred_output(shape, LOGISTIC, budget, ridge=ridge)
    assert plan is not None
    return plan.minimiser


@pytest.mark.parametrize("of_objective", [False, True])
@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.2, 1.0), (1.0, 0.2)])
def test_a_short_minimiser_becomes_calibrated(weights, of_objective):
    """The noise is small here; rows are normal, and 10 % of them are of the second class."""
    n, size = 40_000, 4
    rng = np.random.default_rng(0)
    rows, mass = rng.standard_normal((n, size)), np.asarray(weights)
    odds = rows @ [1.5, -1.0, 0.5, 0.0] - 3.2
    labels = (rng.random(n) < 1.0 / (1.0 + np.exp(-odds))).astype(int)
    centring, mass = white(size), np.asarray(weights)[labels]
    final = np.column_stack([rows, np.ones(n)]) / centring.length
    logistic = LogisticRegression(C=1.0 / (0.05 * n), fit_intercept=False, tol=1e-10)
    found = logistic.fit(final, labels, sample_weight=mass).coef_
    linear = GaussianLinearTerm(1.0, 1.0, 0.0, ()) if of_objective else None
    minimiser = replace(short_minimiser(n, size), output=GaussianNoise(1e-6, 1.0), linear=linear)
    corrected = recalibrated_minimiser(minimiser, found, centring, float(n), np.array(weights))
    share = np.average(labels, weights=mass)
    before, after = (1.0 / (1.0 + np.exp(-final @ w[0])) for w in (found, corrected))
    assert abs(np.average(before, weights=mass) - share) > 0.03
    assert np.average(after, weights=mass) == pytest.approx(share, abs=0.004)
    top = after > np.quantile(after, 0.95)
    observed = np.average(labels[top], weights=mass[top])
    assert np.average(after[top], weights=mass[top]) == pytest.approx(observed, abs=0.02)
    factor = corrected[0, 0] / found[0, 0]
    assert factor > 1.5
    np.testing.assert_allclose(corrected[0, :-1], factor * found[0, :-1])


@pytest.mark.parametrize("of_objective", [False, True])
@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (0.2, 1.0, 1.0)])
def test_a_short_minimiser_of_several_classes_becomes_calibrated(weights, of_objective):
    """The noise is small here; no prediction changes."""
    n, size = 40_000, 4
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((n, size))
    truth = np.array([[1.5, -1.0, -0.5], [-1.0, 1.0, 0.0], [0.0, 1.0, -1.0], [0.0, 0.0, 0.0]])
    labels = (rows @ truth + rng.gumbel(size=(n, 3))).argmax(axis=1)
    centring, mass = white(size), np.asarray(weights)[labels]
    final = np.column_stack([rows, np.ones(n)]) / centring.length
    logistic = LogisticRegression(C=1.0 / (0.05 * n), fit_intercept=False, tol=1e-10)
    found = logistic.fit(final, labels, sample_weight=mass).coef_
    linear = GaussianLinearTerm(1.0, 1.0, 0.0, ()) if of_objective else None
    minimiser = short_minimiser(n, size, 3)
    minimiser = replace(minimiser, output=GaussianNoise(1e-6, 1.0), linear=linear)
    corrected = rescaled_minimiser(minimiser, found, centring, float(n), np.array(weights))
    factor = corrected[0, 0] / found[0, 0]
    np.testing.assert_allclose(corrected, factor * found)
    plain = logistic.set_params(C=np.inf).fit(final, labels, sample_weight=mass).coef_
    full = np.linalg.norm(plain[:, :-1]) / np.linalg.norm(found[:, :-1])
    assert full > 1.5
    assert factor == pytest.approx(full, rel=0.1)


def test_a_stated_regulariser_is_kept():
    """Coefficients are then those of the minimiser that was asked for."""
    facts = PublicFacts(1000, 4, 2, (1.0, 1.0))
    shape, budget = Shape(facts, 1.0), Budget.of(3.0, 1e-6)
    for plan in (plan_centred_objective, plan_centred_output):
        assert plan(shape, LOGISTIC, budget).recalibrates
        assert not plan(shape, LOGISTIC, budget, ridge=0.1).recalibrates
        # No sum tells an intercept that is not there, or the odds of another loss.
        assert not plan(replace(shape, constant=0.0), LOGISTIC, budget).recalibrates
        assert not plan(shape, HUBER, budget).recalibrates


def test_the_gradient_has_the_noise_of_the_release():
    """That of the point times the second derivative, or that of the linear term."""
    curvatures, minimiser = np.array([0.5, 3.0]), short_minimiser(1000, 4)
    linear = GaussianLinearTerm(4.0, 2.0, 0.0, ())
    output = replace(minimiser, output=GaussianNoise(6.0, 2.0))
    np.testing.assert_allclose(output.gradient_noise(curvatures), [1.5, 9.0])
    np.testing.assert_allclose(replace(output, linear=linear).gradient_noise(curvatures), 2.0)
    assert not replace(output, linear=NoNoise()).gradient_noise(curvatures).any()


@pytest.mark.parametrize(
    ("n_classes", "ridge", "least", "most"),
    [(2, 0.05, -0.1, 0.02), (3, 0.05, -0.02, 0.02), (3, 0.006, -0.22, -0.14)],
)
def test_a_minimiser_of_noise_alone_does_not_grow(n_classes, ridge, least, most):
    """The product of point and gradient has their common noise, which is subtracted.

    So is the part that follows the sample, which is as doubtful as it is large: the minimiser
    shrinks, but not by far.
    """
    size, logarithms = 100, []
    tell = recalibrated_minimiser if n_classes == 2 else rescaled_minimiser
    minimiser = short_minimiser(1000, size, n_classes, ridge)
    deviation = noise_deviation(minimiser.output)
    for seed in range(20):
        rows = n_classes if n_classes > 2 else 1
        noise = deviation * np.random.default_rng(seed).standard_normal((rows, size + 1))
        noise -= noise.mean(axis=0) * (rows > 1)
        how = minimiser, noise, white(size), 1000.0, np.ones(n_classes)
        found = tell(*how)
        logarithms.append(np.log(np.linalg.norm(found[:, :-1]) / np.linalg.norm(noise[:, :-1])))
    assert least < np.mean(logarithms) < most
    exact = replace(minimiser, output=NoNoise())
    assert tell(exact, noise, white(size), 1000.0, np.ones(n_classes)) is noise


def skewed(share, n=4000, seed=0):
    """A rare flag, which raises the odds, beside normal columns; a public share of positives."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([(rng.random(n) < 0.05), rng.standard_normal((n, 4))]).astype(float)
    score = X[:, 1] * 0.7 + 1.2 * X[:, 0]
    y = (score + rng.logistic(size=n) > np.quantile(score + rng.logistic(size=n), 1 - share)) * 1
    return X, y


@pytest.mark.parametrize("share", [0.08, 0.3])
def test_a_rare_flag_has_the_right_sign_at_every_share(share):
    """With the labels exchanged the sign is the other one."""
    X, y = skewed(share)
    plan = plan_centred_objective(shape_of(len(X), 5), LOGISTIC, Budget.of(3.0, 1e-8))

    def effect(labels):
        return plan.run(table_door(X, labels, *plan.events)).coefficients[0, 0]

    assert effect(y) > 0.0 > effect(1 - y)


def test_rows_of_the_usual_length_are_scored_as_they_are():
    """All of a row but what is clipped in its columns, as something is in three of four rows."""
    X = np.random.default_rng(0).normal(5.0, 1.0, size=(4000, 9))
    model = OutputPerturbationClassifier(epsilon=20.0, classes=[0, 1])
    scaler = model.fit(X, (X[:, 0] > 5.0).astype(int)).scaler_
    kept = np.isclose(scaler.transform(X) * scaler.scale + scaler.center, X).all(axis=1)
    assert kept.mean() > 0.1


@pytest.mark.parametrize("kind", [OutputPerturbationClassifier, ObjectivePerturbationClassifier])
def test_longer_rows_are_shortened_as_in_the_fit(kind):
    X, far = np.random.default_rng(0).normal(5.0, 1.0, size=(4000, 9)), np.full((1, 9), 1e9)
    model = kind(epsilon=20.0, classes=[0, 1]).fit(X, (X[:, 0] > 5.0).astype(int))
    rows = model.scaler_.transform(far)
    assert np.linalg.norm(rows) < 0.9 * 3.0 * model.scaler_.clip
    np.testing.assert_allclose(
        model.decision_function(far), rows @ model.coef_[0] + model.intercept_
    )


def test_rows_are_scaled_down_to_a_stated_norm_unless_they_are_projected():
    X, y = separated(100, 30)
    model = ObjectivePerturbationClassifier(classes=[0, 1], epsilon=0.5, data_norm=1.0)
    short, long = (fitted(model, size * X, y, random_state=0) for size in (1.0, 5.0))
    assert not dict(short.privacy_.public)["private_second_moment"]
    np.testing.assert_allclose(long.coef_, short.coef_, rtol=1e-6)
    assert short.data_norm_ == 1.0
    projected = fitted(model, *separated(100, 600), delta=0.0, epsilon=5.0)
    assert projected.data_norm_ == math.inf
