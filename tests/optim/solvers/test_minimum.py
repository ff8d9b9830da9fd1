"""The gradient is small at what is returned: checked without the code that returned it."""

import math
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from dp_halfspace.optim import solvers
from dp_halfspace.optim.losses import LOGISTIC, SQUARED, SQUARED_HINGE, huber_hinge
from dp_halfspace.optim.objectives import MarginObjective, SoftmaxObjective
from dp_halfspace.optim.risks import MarginRisk, tolerance
from dp_halfspace.optim.solvers import OPTIMIZERS, Point, accelerated_gradient, certified_minimum
from dp_halfspace.rows.rows import clipped_rows
from tests.optim.cases import (
    LOSSES,
    Counting,
    clipped_float128,
    data_sets,
    loss_id,
    mostly_zero,
    naive_gradient,
    naive_softmax_gradient,
    random_problem,
)

CASES = list(data_sets())
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])


def typical(n=2000, d=6, seed=0, loss=LOGISTIC, ridge=1e-2, form=np.asarray):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.where(X @ rng.standard_normal(d) + rng.standard_normal(n) > 0, 1.0, -1.0)
    J = MarginObjective(clipped_rows(form(X), 1.0, 0.5), y, np.ones(n), loss, ridge * n)
    return J, clipped_float128(X, 1.0, 0.5), y


def rule_for(J):
    """Tolerance and radius as an estimator would fix them."""
    n, largest = J.rows.shape[0], J.weights.max()
    risk = MarginRisk(
        J.loss, *J.rows.shape, 2, J.rows.row_bound, J.rows.block_rows, largest, min_weight=0.0
    )
    radius = risk.radius(J.ridge / n)
    slope = J.loss.slope_bound(J.rows.row_bound * radius)
    change = 2 * J.rows.row_bound * largest * slope
    return radius, tolerance(risk, J.ridge / n, radius, change)


def is_certified(w, Z, signs, J, rule):
    """The claim of the certificate, from a gradient in extended precision."""
    gradient = naive_gradient(Z, signs, J.weights, J.loss, J.ridge, w, J.linear)
    small = float(np.sqrt((gradient**2).sum())) <= rule.certified
    return small and float(np.linalg.norm(w)) <= rule.radius


def solve_and_check(J, Z, signs, **options):
    radius, rule = rule_for(J)
    w = certified_minimum(J, rule.target, radius=radius, **options)
    assert is_certified(w, Z, signs, J, rule)
    assert np.linalg.norm(J.gradient(w)) <= rule.target
    return w


def sparse_problem(n, d, density, loss, ridge=0.4, bias=0.5):
    """More coefficients than a dense Hessian allows."""
    rng = np.random.default_rng(0)
    X = mostly_zero(n, d, density, rng)
    signs = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    rows = clipped_rows(X, 1.0, bias)
    return MarginObjective(rows, signs, np.ones(n), loss, ridge), X, signs


@pytest.mark.sampled(28)
@each_case
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
@pytest.mark.parametrize("ridge", [1e-1, 1e-4])
def test_certified_on_every_data_set(case, loss, ridge, capsys):
    """In silence; with a linear term, too."""
    _, X, signs = case
    weights = np.where(signs > 0, 1.0, 0.3)
    rows, Z = clipped_rows(X, 1.0, 0.5), clipped_float128(X, 1.0, 0.5)
    J = MarginObjective(rows, signs, weights, loss, ridge * len(X))
    solve_and_check(J, Z, signs)
    J = replace(J, linear=np.random.default_rng(3).standard_normal(J.size))
    w = certified_minimum(J, 1e-6, radius=1e6)
    gradient = naive_gradient(Z, signs, weights, loss, J.ridge, w, J.linear)
    assert float(np.sqrt((gradient**2).sum())) <= 2e-6
    assert capsys.readouterr() == ("", "")


@pytest.mark.sampled(28)
@each_case
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_certified_by_every_optimizer(case, optimizer):
    _, X, signs = case
    for form in (np.asarray, sparse.csr_array):
        rows = clipped_rows(form(X), 1.0, 0.5)
        J = MarginObjective(rows, signs, np.ones(len(X)), huber_hinge(0.5), 0.02 * len(X))
        solve_and_check(J, clipped_float128(X, 1.0, 0.5), signs, optimizer=optimizer)


each_smooth = pytest.mark.parametrize(
    "loss", [LOGISTIC, huber_hinge(0.5), SQUARED_HINGE], ids=loss_id
)


@pytest.mark.sampled(1)
@each_smooth
def test_certified_on_many_records_and_columns(loss):
    for form in (np.asarray, np.asfortranarray, sparse.csr_array):
        solve_and_check(*typical(30_000, 12, loss=loss, ridge=1e-3, form=form))
    J, X, signs = sparse_problem(400, 900, 0.02, loss)
    solve_and_check(J, clipped_float128(X.toarray(), 1.0, 0.5), signs)


@pytest.mark.sampled(1)
@each_smooth
def test_few_passes_over_the_data(loss):
    for ridge in (1e-1, 1e-2, 1e-3):
        J = Counting(typical(6000, 20, loss=loss, ridge=ridge)[0])
        certified_minimum(J, 2e-7, radius=100.0)
        assert J.gradients <= 25
        assert J.hessians == 0
    J = Counting(sparse_problem(1000, 1500, 0.02, LOGISTIC, 10.0, None)[0])
    certified_minimum(J, 2e-7, radius=100.0)
    assert (J.gradients <= 25, J.products <= 60) == (True, True)


MANY = np.random.default_rng(0).standard_normal((3000, 60))
MANY_CLASSES = ("many coefficients", MANY, np.where(MANY[:, 0] > 0, 1.0, -1.0))


@pytest.mark.sampled(13)
@pytest.mark.parametrize("case", [*CASES, MANY_CLASSES], ids=lambda case: case[0])
@pytest.mark.parametrize("ridge", [1e-1, 1e-4])
def test_softmax_is_certified(case, ridge):
    name, X, signs = case
    K = 10 if name == "many coefficients" else 4
    targets = (signs > 0).astype(int) + (np.arange(len(X)) % 3 == 0) * (K - 3)
    Z, ones = clipped_float128(X, 1.0, 0.5), np.ones(len(X))
    J = SoftmaxObjective(clipped_rows(X, 1.0, 0.5), targets, K, ones, ridge * len(X))
    w = certified_minimum(J, 1e-9, radius=1e6)
    gradient = naive_softmax_gradient(Z, targets, K, ones, J.ridge, w)
    assert float(np.sqrt((gradient**2).sum())) <= 2e-9


@pytest.mark.slow
def test_fast_path_is_enough_on_random_problems(monkeypatch):
    """The fallback takes thousands of passes: nothing but a bug should need it."""
    monkeypatch.setattr(solvers, "accelerated_gradient", None)
    for seed in range(200):
        X, signs, weights, ridge = random_problem(seed)
        loss = LOSSES[seed % len(LOSSES)]
        bias = 1.0 if seed % 3 else None
        rows = clipped_rows(X, 1.0, bias)
        J = MarginObjective(rows, signs, weights, loss, ridge * len(X))
        solve_and_check(J, clipped_float128(X, 1.0, bias), signs)


# --- the certificate can fail ---


def solve_nothing(objective, target):
    """Return a point that meets no goal."""
    return Point(np.zeros(objective.size), np.zeros(objective.size), math.inf)


def test_a_solver_that_stops_early_is_seen(monkeypatch):
    J, Z, signs = typical()
    radius, rule = rule_for(J)
    monkeypatch.setattr(Point, "meets", lambda self, target, radius: self.norm <= 1e4 * target)
    monkeypatch.setattr(solvers, "_solve_auto", solve_nothing)
    w = certified_minimum(J, rule.target, radius=radius)
    assert not is_certified(w, Z, signs, J, rule)


def test_a_gradient_without_one_record_is_seen():
    """Planted bug: a solver that overlooks a record is certified for other data only."""
    J, Z, signs = typical()
    radius, rule = rule_for(J)
    weights = J.weights.copy()
    weights[17] = 0.0
    w = certified_minimum(replace(J, weights=weights), rule.target, radius=radius)
    assert not is_certified(w, Z, signs, J, rule)


# --- the fallback ---

BAD_POINTS = {
    "nothing": lambda size: Point(np.zeros(size), np.zeros(size), math.inf),
    "nan": lambda size: Point(np.full(size, np.nan), np.full(size, np.nan), math.nan),
    "too long": lambda size: Point(np.full(size, 1e9), np.zeros(size), 0.0),
}


@pytest.mark.sampled(12)
@each_case
@pytest.mark.parametrize("bad", BAD_POINTS)
def test_fallback_certifies_when_the_fast_path_fails(case, bad, monkeypatch):
    _, X, signs = case
    J = MarginObjective(clipped_rows(X, 1.0, 0.5), signs, np.ones(len(X)), LOGISTIC, 0.01 * len(X))
    reached = []

    def watched(*arguments):
        reached.append(1)
        return accelerated_gradient(*arguments)

    monkeypatch.setattr(solvers, "accelerated_gradient", watched)
    monkeypatch.setattr(solvers, "_solve_auto", lambda objective, target: BAD_POINTS[bad](J.size))
    solve_and_check(J, clipped_float128(X, 1.0, 0.5), signs)
    assert reached


@pytest.mark.parametrize(
    ("norm", "share"), [(50.0 + 2.000002e-6, 0.0), (0.0, 1.0 - 1e-7)], ids=["norm", "gradient"]
)
def test_a_point_on_the_edge_of_the_goal_is_not_returned(norm, share, monkeypatch):
    """A computed norm may be too small, so the goals are stricter than what is promised."""
    J = typical(300, ridge=1.0 / 300)[0]
    edge = Point(np.eye(J.size)[0] * norm, np.zeros(J.size), share * 1e-6)
    monkeypatch.setattr(solvers, "_solve_auto", lambda objective, target: edge)
    w = certified_minimum(J, 1e-6, radius=50.0)
    assert np.linalg.norm(J.gradient(w)) < 1e-6


def test_the_promised_number_of_accelerated_steps_is_enough(monkeypatch):
    """The guarantee itself: never look at the gradient, trust the count; no more than promised."""
    J, target = Counting(typical(300)[0]), 1e-10
    kappa = J.gradient_lipschitz / J.ridge
    promised = math.sqrt(kappa) * math.log(4 * J.gradient_lipschitz * J.initial_gap / target**2)
    assert accelerated_gradient(J, target, radius=50.0).norm <= target
    assert J.gradients <= promised + 2
    monkeypatch.setattr(Point, "meets", lambda self, target, radius: False)
    for loss, ridge in ((LOGISTIC, 1e-2), (SQUARED, 1e-2)):
        J, _, _ = typical(200, loss=loss, ridge=ridge)
        for target in (1e-2, 1e-6):
            J = Counting(J)
            promised = math.sqrt(J.gradient_lipschitz / J.ridge) * math.log(
                4 * J.gradient_lipschitz * J.initial_gap / target**2
            )
            assert accelerated_gradient(J, target, radius=200.0).norm <= target
            assert J.gradients >= promised
    assert np.linalg.norm(accelerated_gradient(J, 1e-2, radius=0.1).w) == pytest.approx(0.1)


def test_momentum_errors_are_polished_away(monkeypatch):
    """When the fallback ends above the target, Newton steps from there finish."""
    J, Z, signs = typical(500)
    stuck = solvers.point_at(J, np.full(J.size, 0.1))
    monkeypatch.setattr(solvers, "_solve_auto", solve_nothing)
    monkeypatch.setattr(solvers, "accelerated_gradient", lambda *arguments: stuck)
    solve_and_check(J, Z, signs)


# --- optimizers of users ---


def test_a_user_optimizer_is_used_and_believed_when_right():
    J = Counting(typical(500)[0])
    _, rule = rule_for(J)
    exact = certified_minimum(J, rule.target / 10, radius=100.0)
    before = J.gradients
    w = certified_minimum(J, rule.target, radius=100.0, optimizer=lambda fun, x0: exact)
    np.testing.assert_array_equal(w, exact)
    assert J.gradients == before + 1


def test_a_user_optimizer_gets_the_mean_over_records():
    J, Z, signs = typical(500)

    def through_scipy(fun, x0):
        assert not x0.any()
        value, gradient = fun(x0)
        assert value == pytest.approx(math.log(2))
        np.testing.assert_array_equal(gradient, J.gradient(x0) / 500)
        reached.append(minimize(fun, x0, jac=True, method="BFGS", options={"maxiter": 5}).x)
        return reached[-1]

    reached = []
    solve_and_check(J, Z, signs, optimizer=through_scipy)
    assert len(reached) == 1


# --- cost and silence ---


def test_blas_is_held_at_one_thread(monkeypatch):
    held = []

    @contextmanager
    def recorded():
        held.append("in")
        yield
        held.append("out")

    monkeypatch.setattr(solvers, "single_blas_thread", recorded)
    J, _, _ = typical(50)
    certified_minimum(J, 1e-6, radius=100.0, optimizer=lambda fun, x0: held.append("use"))
    assert held == ["in", "use", "out"]


def test_a_surrogate_only_shows_the_way():
    """However wrong it is, the certificate is that of the objective itself."""
    J, _, _ = typical(40, 3, ridge=0.025)
    wrong = replace(J, signs=-J.signs)
    found = certified_minimum(J, 1e-6, radius=60.0, surrogate=wrong)
    assert np.linalg.norm(J.gradient(found)) <= 1e-6
    assert np.linalg.norm(wrong.gradient(found)) > 1.0


@pytest.mark.parametrize("share", [0.3, 0.1, 1e-2, 1e-6])
def test_a_path_of_ridges_ends_with_the_gradient_of_the_objective(share):
    """Also where the last point of the path is near enough."""
    rng = np.random.default_rng(0)
    signs = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    rows = clipped_rows(rng.standard_normal((40, 3)), 1.0)
    J = MarginObjective(rows, signs, np.ones(40), LOGISTIC, 1e-9)
    point = solvers.newton_cg_path(J, share * float(np.linalg.norm(J.gradient(np.zeros(3)))))
    np.testing.assert_array_equal(point.gradient, J.gradient(point.w))
    assert point.norm == np.linalg.norm(point.gradient)


@pytest.mark.parametrize("w", [1.0, np.nan])
def test_a_goal_is_not_met_by_what_is_no_number(w):
    norm = np.nan if w == 1.0 else 0.0
    assert not Point(np.array([w]), np.zeros(1), norm).meets(1.0, 1.0)


def test_bad_arguments():
    J, _, _ = typical(50)
    steep = MarginObjective(J.rows, J.signs, J.weights, SQUARED, 1.0, tilt=1.0)
    for objective, gamma, radius, optimizer, message in (
        *((J, 1e-6, 1.0, bad, "optimizer") for bad in ("adam", "newton", "", 3, None)),
        *((J, bad, 1.0, "auto", "gamma") for bad in (0.0, -1.0, math.nan, math.inf)),
        *((J, 1e-6, bad, "auto", "radius") for bad in (0.0, -1.0, math.nan, math.inf)),
        (steep, 1e-6, 1.0, "auto", "smooth"),
        *((replace(J, ridge=bad), 1e-6, 1.0, "auto", "ridge") for bad in (0.0, -1.0, math.nan)),
    ):
        with pytest.raises(ValueError, match=message):
            certified_minimum(objective, gamma, radius=radius, optimizer=optimizer)
