"""The plan of objective perturbation against exact densities, and its certified solution."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy.special import expit, softmax

from dp_halfspace.exceptions import BudgetError, CertificateError
from dp_halfspace.optim import HINGE, LOGISTIC, SQUARED, huber_hinge, minimisers, shifted_logistic
from dp_halfspace.optim import objective_perturbation as module
from dp_halfspace.optim.erm import RidgeProblem
from dp_halfspace.optim.objective_bounds import jacobian_log_ratio
from dp_halfspace.optim.objective_perturbation import (
    draw_linear,
    minimise_perturbed,
    plan_objective,
    sketch_objective,
)
from dp_halfspace.optim.rows import clipped_rows
from dp_halfspace.privacy import (
    Gaussian,
    PrivacyRecord,
    Pure,
    Repeated,
    accounting,
    gdp_mu,
    noise_source,
)
from dp_halfspace.privacy.mechanisms import authorise, recording
from tests.adversarial import unit

HUBER = huber_hinge(0.5)


def problem(loss=LOGISTIC, n=1000, d=10, k=2, norm=1.0, weight=1.0):
    return RidgeProblem(loss, n, d, k, norm, max(1, min(n, 1000)), weight)


# -- exact densities -----------------------------------------------------------------
#
# The exact minimiser w has the density |det D b(w)| times that of b at b(w), where b(w) is
# the linear term that makes w the minimiser. Nothing below uses the calibration.


def linear_term_at(case, total, X, codes, weights, W):
    """Linear term and log-determinant at points W of shape (m, size)."""
    m, n_columns = len(W), case.n_columns
    size = W.shape[1]
    b, hessian = -total * W, np.zeros((m, size, size)) + total * np.eye(size)
    for x, code, c in zip(X, codes, weights, strict=True):
        if case.multinomial:
            scores = W.reshape(m, case.n_classes, n_columns) @ x
            p = softmax(scores - case.loss.shift * np.eye(case.n_classes)[code], axis=1)
            b -= c * ((p - np.eye(case.n_classes)[code])[:, :, None] * x).reshape(m, -1)
            block = p[:, :, None] * np.eye(case.n_classes) - p[:, :, None] * p[:, None, :]
            hessian += c * np.einsum("mij,a,b->miajb", block, x, x).reshape(m, size, size)
        else:
            sign = 2.0 * code - 1.0
            margins = sign * (W @ x)
            b -= c * (sign * case.loss.derivative(margins))[:, None] * x
            hessian += c * case.loss.second_derivative(margins)[:, None, None] * np.outer(x, x)
    return b, np.linalg.slogdet(hessian)[1]


def log_densities(case, plan_ridge, datasets, W, log_noise):
    total = plan_ridge * case.n_samples
    for data in datasets:
        b, log_det = linear_term_at(case, total, *data, W)
        yield log_noise(b) + log_det


def log_gaussian(sigma):
    return lambda b: (
        -(b * b).sum(axis=1) / (2 * sigma**2)
        - b.shape[1] * math.log(sigma * math.sqrt(2 * math.pi))
    )


def exact_delta(log_p, log_q, cell, epsilon):
    """Hockey-stick divergence of two densities given on a grid."""
    excess = np.exp(log_p) * -np.expm1(np.minimum(epsilon + log_q - log_p, 0.0))
    return float((excess * cell).sum())


def line(total, sigma, reach):
    """Points for every w that matters in one dimension, dense where the records act."""
    far = (9 * sigma + reach) / total
    points = np.unique(np.concatenate([np.linspace(-far, far, 8001), np.linspace(-8, 8, 8001)]))
    widths = np.gradient(points)
    return points[:, None], widths


def pairs_in_one_dimension(r):
    """Neighbours that differ in record 0: moves, flips, vanishing records, few others."""
    for others in ((), (0.5,), (1.0, -1.0), (-1.0, -1.0, -1.0)):
        rest = np.array(others)[:, None] * r
        labels = np.ones(len(others), dtype=int)
        for (x, y), (z, v) in (((1, 1), (-1, 1)), ((1, 1), (1, 0)), ((1, 1), (0, 1))):
            yield tuple(
                (
                    np.vstack([[[a * r]], rest]) if len(rest) else np.array([[a * r]]),
                    np.r_[b, labels],
                )
                for a, b in ((x, y), (z, v))
            )


def worst_gaussian_ratio(loss, *, ridges=(1e-9, 0.3, 3.0), shrink=1.0, weight=1.0):
    """Largest exact over claimed delta in one dimension, over neighbours and budgets."""
    worst = 0.0
    for (data, other), ridge, (epsilon, delta) in itertools.product(
        pairs_in_one_dimension(1.0), ridges, ((0.5, 1e-2), (2.0, 1e-2), (1.0, 1e-6))
    ):
        case = problem(loss, n=len(data[0]), d=1, weight=weight)
        plan = plan_objective(case, ridge, epsilon, delta)
        sigma = plan.linear.sigma * shrink
        total = plan.ridge * case.n_samples
        W, cell = line(total, sigma, case.n_samples * weight)
        datasets = [(X, y, np.full(len(y), weight)) for X, y in (data, other)]
        logs = list(log_densities(case, plan.ridge, datasets, W, log_gaussian(sigma)))
        assert (np.exp(logs[0]) * cell).sum() == pytest.approx(1, abs=2e-3)
        for at in (0.3 * epsilon, epsilon, 1.5 * epsilon):
            claimed = accounting.delta([plan.linear.event], at)
            for p, q in (logs, logs[::-1]):
                worst = max(worst, exact_delta(p, q, cell, at) / claimed)
    return worst


# On a line two opposite records cannot both have the full slope of the logistic loss; the
# bound is for every dimension.
@pytest.mark.parametrize(
    ("loss", "least"),
    [(LOGISTIC, 0.1), (shifted_logistic(2.0), 0.5), (HUBER, 0.7)],
    ids=["logistic", "shifted_logistic", "huber_hinge"],
)
def test_exact_delta_in_one_dimension(loss, least):
    assert least < worst_gaussian_ratio(loss) < 1.0


def test_exact_delta_with_class_weights():
    assert 0.7 < worst_gaussian_ratio(HUBER, weight=5.0, ridges=(1e-9, 15.0)) < 1.0


@pytest.mark.parametrize("factor", [0.5, 0.9])
def test_density_test_sees_too_small_a_sigma(factor):
    """Planted: the noise has a half, or nine tenths, of the standard deviation charged."""
    assert worst_gaussian_ratio(HUBER, shrink=factor, ridges=(3.0,)) > 1.0


def test_density_test_sees_a_missing_jacobian(monkeypatch):
    """Planted: the ratio of the Jacobians is forgotten."""
    monkeypatch.setattr(module, "jacobian_log_ratio", lambda *a: 0.0)
    assert worst_gaussian_ratio(HUBER) > 1.0


def test_density_test_sees_a_missing_class_weight(monkeypatch):
    """Planted: the largest weight is left out of the change of the gradient."""
    honest = module.gradient_change
    monkeypatch.setattr(
        module, "gradient_change", lambda case: honest(replace(case, max_weight=1.0))
    )
    assert worst_gaussian_ratio(HUBER, weight=5.0, ridges=(15.0,)) > 1.0


def test_missing_zero_corner_is_refused(monkeypatch):
    """Planted: the corner at which nothing changes is left out."""
    honest = module.gradient_corners
    monkeypatch.setattr(module, "gradient_corners", lambda case: honest(case)[1:])
    with pytest.raises(ValueError, match="mu = 0"):
        plan_objective(problem(), 0.1, 1.0, 1e-6)


def plane(total, sigma, reach, points=400):
    far = (7 * sigma + reach) / total
    axis = np.linspace(-far, far, points)
    W = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    return W, (axis[1] - axis[0]) ** 2


def worst_plane_ratio(loss, shrink=1.0):
    """As in one dimension, for rows of two columns."""
    rng = np.random.default_rng(3)
    worst = 0.0
    for trial in range(6):
        n = int(rng.integers(1, 4))
        X = np.array([unit(rng, 2) for _ in range(n)])
        y = rng.integers(2, size=n)
        Z, v = X.copy(), y.copy()
        if trial % 2:
            Z[0] = -X[0]
        else:
            v[0] = 1 - y[0]
        if trial == 4:
            Z[0] = unit(rng, 2)
        case = problem(loss, n=n, d=2)
        plan = plan_objective(case, 2.0 / n, 2.0, 1e-2)
        sigma = plan.linear.sigma * shrink
        W, cell = plane(plan.ridge * n, sigma, n)
        datasets = [(A, b, np.ones(n)) for A, b in ((X, y), (Z, v))]
        logs = list(log_densities(case, plan.ridge, datasets, W, log_gaussian(sigma)))
        assert np.exp(logs[0]).sum() * cell == pytest.approx(1, abs=5e-3)
        for at in (0.5, 2.0, 2.5):
            claimed = accounting.delta([plan.linear.event], at)
            worst = max(worst, exact_delta(*logs, cell, at) / claimed)
    return worst


@pytest.mark.parametrize("loss", [LOGISTIC, HUBER], ids=lambda loss: loss.name)
def test_exact_delta_in_two_dimensions(loss):
    assert 0.1 < worst_plane_ratio(loss) < 1.0
    assert worst_plane_ratio(loss, shrink=0.4) > 1.0


def worst_softmax_ratio(loss=LOGISTIC, shrink=1.0):
    """Three classes, one column: the mean over the classes separates, two dimensions are left."""
    basis = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]])
    basis /= np.linalg.norm(basis, axis=1, keepdims=True)
    worst = 0.0
    for others, ((x, y), (z, v)) in itertools.product(
        ((), (1.0, -1.0)),
        (((1.0, 0), (-1.0, 0)), ((1.0, 0), (1.0, 1)), ((1.0, 0), (0.0, 0))),
    ):
        n = 1 + len(others)
        case = problem(loss, n=n, d=1, k=3)
        plan = plan_objective(case, 1.0, 2.0, 1e-2)
        sigma = plan.linear.sigma * shrink
        V, cell = plane(plan.ridge * n, sigma, 2 * n, points=160)
        logs = []
        for a, label in ((x, y), (z, v)):
            data = np.array([[a], *([o] for o in others)]), np.r_[label, np.ones(n - 1, int)]
            b, log_det = linear_term_at(case, plan.ridge * n, *data, np.ones(n), V @ basis)
            # The third direction adds the same factor to both determinants.
            logs.append(log_gaussian(sigma)(b @ basis.T) + log_det - math.log(plan.ridge * n))
        assert np.exp(logs[0]).sum() * cell == pytest.approx(1, abs=1e-3)
        for at in (0.5, 2.0):
            claimed = accounting.delta([plan.linear.event], at)
            for p, q in (logs, logs[::-1]):
                worst = max(worst, exact_delta(p, q, cell, at) / claimed)
    return worst


@pytest.mark.parametrize("loss", [LOGISTIC, shifted_logistic(2.0)], ids=lambda loss: loss.name)
def test_exact_delta_of_the_softmax(loss):
    assert 0.02 < worst_softmax_ratio(loss) < 1.0


def test_softmax_density_test_sees_little_noise():
    """Planted: a third of the standard deviation (the sum over 9 corners is generous)."""
    assert worst_softmax_ratio(shrink=1 / 3) > 1.0


def worst_pure_loss(loss, k, shrink=1.0):
    """Largest log-ratio of densities over neighbours and points, over the claimed epsilon."""
    rng = np.random.default_rng(4)
    worst = 0.0
    for trial in range(60):
        n, d = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        case = problem(loss, n=n, d=d, k=k)
        plan = plan_objective(case, (1e-9, 1.0 / n)[trial % 2], 1.0, 0.0)
        scale, blocks = plan.linear.scale * shrink, plan.shape[0]
        X, y = np.array([unit(rng, d) for _ in range(n)]), rng.integers(k, size=n)
        Z, v = X.copy(), y.copy()
        Z[0] = (-X[0], X[0], 0 * X[0])[trial % 3]
        v[0] = (y[0] + (trial % 3 == 1)) % k
        radius = np.geomspace(1e-2, 1e3, 400)[:, None]
        W = radius * rng.standard_normal((400, blocks * d))
        along = np.kron(np.eye(blocks)[y[0] % blocks] - 1 / k, X[0])
        W[::2] = radius[::2] * rng.choice([-1, 1], size=(200, 1)) * along

        def log_laplace(b, blocks=blocks, d=d, scale=scale):
            return -np.linalg.norm(b.reshape(len(b), blocks, d), axis=2).sum(axis=1) / scale

        datasets = [(A, c, np.ones(n)) for A, c in ((X, y), (Z, v))]
        p, q = log_densities(case, plan.ridge, datasets, W, log_laplace)
        worst = max(worst, float(np.abs(p - q).max()) / plan.linear.epsilon)
    return worst


@pytest.mark.parametrize(
    ("loss", "k", "least"),
    [(LOGISTIC, 2, 0.5), (HUBER, 2, 0.99), (LOGISTIC, 4, 0.6), (shifted_logistic(2.0), 4, 0.6)],
    ids=["logistic", "huber_hinge", "softmax", "shifted_softmax"],
)
def test_pure_loss_is_bounded_everywhere(loss, k, least):
    assert least < worst_pure_loss(loss, k) <= 1.0
    assert worst_pure_loss(loss, k, shrink=0.3) > 1.0


# -- calibration ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "delta", "multiplier"),
    [(1, 1e-5, 3.730632), (1, 1e-6, 4.224679), (0.5, 1e-6, 8.057618)],
)
def test_without_jacobian_the_gaussian_mechanism_is_matched(epsilon, delta, multiplier):
    """Anchors of the analytic Gaussian mechanism; the output noise shares in quadrature."""
    plan = plan_objective(problem(), 1e9, epsilon, delta)
    mu = math.hypot(plan.linear.mu, plan.output.mu)
    assert 1 / mu == pytest.approx(multiplier, rel=2e-6)
    assert plan.output.mu == pytest.approx(0.05 * gdp_mu(epsilon, delta))


@pytest.mark.parametrize(
    ("log_ratio", "mu"), [(1e-9, 0.2367), (0.02, 0.2323), (0.05, 0.2257), (0.1, 0.2147)]
)
def test_noise_grows_with_the_jacobian(log_ratio, mu):
    ridge = 0.25 / (1000 * math.expm1(log_ratio))
    plan = plan_objective(problem(), ridge, 1.0, 1e-6)
    assert plan.linear.log_ratio == pytest.approx(log_ratio, rel=1e-9)
    assert math.hypot(plan.linear.mu, plan.output.mu) == pytest.approx(mu, abs=1e-4)


def corner_sum(plan, epsilon):
    """The claimed delta in 50 digits: a sum of Gaussian profiles, one for each corner."""
    with mpmath.workdps(50):
        total = mpmath.mpf(0)
        e = mpmath.mpf(epsilon) - mpmath.mpf(plan.linear.log_ratio)
        for count, length in plan.linear.corners:
            mu = mpmath.sqrt(mpmath.mpf(length * plan.linear.mu) ** 2 + plan.output.mu**2)
            first = mpmath.ncdf(mu / 2 - e / mu)
            total += count * (first - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu))
        return float(total)


@pytest.mark.parametrize("k", [2, 3, 20])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("ridge", [1e-9, 1e-2])
def test_budget_is_spent_and_not_exceeded(k, epsilon, ridge):
    plan = plan_objective(problem(k=k), ridge, epsilon, 1e-6)
    assert corner_sum(plan, epsilon) == pytest.approx(1e-6, rel=1e-5)
    assert corner_sum(plan, epsilon) <= 1e-6
    assert plan.linear.log_ratio <= epsilon / 2 * (1 + 1e-9)
    PrivacyRecord(epsilon=epsilon, delta=1e-6, events=plan.events, noise="os")


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("loss", [LOGISTIC, HUBER], ids=lambda loss: loss.name)
@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 1.0, 40.0])
def test_pure_budget_is_spent_and_not_exceeded(loss, k, epsilon):
    plan = plan_objective(problem(loss, k=k), 1e-9, epsilon, 0.0)
    linear, output = plan.events
    copies = linear.count if isinstance(linear, Repeated) else 1
    single = linear.event if isinstance(linear, Repeated) else linear
    assert isinstance(single, Pure)
    assert isinstance(output, Pure)
    assert epsilon * (1 - 1e-9) < copies * single.epsilon + output.epsilon <= epsilon
    PrivacyRecord(epsilon=epsilon, delta=0.0, events=plan.events, noise="os")


def test_one_against_the_rest_is_repeated():
    plan = plan_objective(problem(HUBER, k=4), 1.0, 1.0, 1e-6)
    assert plan.events == (Repeated(plan.linear.event, 4), Gaussian(plan.output.mu))
    assert accounting.delta(plan.events, 1.0) <= 1e-6
    one = plan_objective(problem(HUBER), 1.0, 1.0, 1e-6)
    assert 2.0 < plan.linear.sigma / one.linear.sigma < 2.5  # sqrt(4), and the Jacobians


@pytest.mark.parametrize("k", [2, 12, 60])
@pytest.mark.parametrize(("epsilon", "delta"), [(1e-3, 0.25), (1e-3, 0.01), (1e-6, 0.49)])
def test_many_corners_with_a_tiny_epsilon_still_fit(k, epsilon, delta):
    plan = plan_objective(problem(n=2, k=k), 0.1, epsilon, delta)
    assert accounting.delta(plan.events, epsilon) <= delta * (1 + 1e-9)
    assert plan.linear.mu > 0


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("k", [2, 5])
def test_sketch_is_near_the_plan(k, delta):
    case = problem(k=k)
    plan, sketch = (f(case, 0.02, 1.0, delta) for f in (plan_objective, sketch_objective))
    v, u = plan.linear.variance(10), sketch.linear.variance(10)
    assert u == pytest.approx(v, rel=0.5 if k > 2 else 0.01)
    assert sketch.ridge == plan.ridge
    if delta:
        with pytest.raises(ValueError, match="prove"):
            PrivacyRecord(epsilon=1.0, delta=delta, events=sketch.events, noise="os")


@pytest.mark.parametrize("loss", [HINGE, SQUARED], ids=lambda loss: loss.name)
def test_losses_that_do_not_qualify_are_refused(loss):
    with pytest.raises(ValueError, match="monotone"):
        plan_objective(problem(loss), 0.1, 1.0, 1e-6)


def test_plan_refuses_what_cannot_be_certified():
    with pytest.raises(CertificateError):
        plan_objective(problem(n=10**12), 1e-4, 1.0, 1e-6)


# -- tolerance, draw and solution ----------------------------------------------------


def table(n=120, d=4, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True), rng.integers(k, size=n)


def solve(loss=LOGISTIC, k=2, epsilon=1.0, delta=1e-6, ridge=1e-2, weights=None):
    X, codes = table(k=k)
    weights = np.ones(k) if weights is None else weights
    case = problem(loss, n=len(X), d=4, k=k, weight=float(weights.max()))
    plan = plan_objective(case, ridge, epsilon, delta)
    record = PrivacyRecord(epsilon=epsilon, delta=delta, events=plan.events, noise="os")
    permit = authorise(record, noise_source(None))
    linear = draw_linear(plan, permit)
    solution = minimise_perturbed(plan, clipped_rows(X, 1.0), codes, weights, linear)
    with recording() as releases:
        permit.release(solution, plan.output)
    assert len(releases) == 1
    return plan, X, codes, weights, np.vstack(linear), solution


def gradients(plan, X, codes, weights, linear, W):
    """Independent gradients, a row for each row of W."""
    case = plan.problem
    ridge = plan.ridge * len(X) * W + linear
    c = weights[codes]
    if case.multinomial:
        own = np.eye(case.n_classes)[codes]
        p = softmax(X @ W.T - case.loss.shift * own, axis=1) - own
        return (c[:, None] * p).T @ X + ridge
    rows = []
    for k, w in enumerate(W):
        signs = np.where(codes == (1 if case.n_classes == 2 else k), 1.0, -1.0)
        margins = signs * (X @ w)
        if case.loss.name == "huber_hinge":
            slope = -np.clip((1.5 - margins), 0, 1)
        else:
            slope = -expit((2.0 if case.loss.name == "shifted_logistic" else 0.0) - margins)
        rows.append((c * signs * slope) @ X)
    return np.array(rows) + ridge


CASES = [
    {},
    {"delta": 0.0},
    {"loss": HUBER},
    {"loss": shifted_logistic(2.0), "epsilon": 0.1},
    {"k": 3},
    {"k": 4, "loss": shifted_logistic(3.0)},
    {"k": 3, "delta": 0.0, "weights": np.array([1.0, 3.0, 0.5])},
    {"loss": HUBER, "k": 3},
    {"loss": HUBER, "weights": np.array([1.0, 5.0]), "ridge": 1e-9},
]


def assert_certified(**params):
    plan, *data, solution = solve(**params)
    gradient = gradients(plan, *data, solution)
    if plan.problem.multinomial:
        gradient = gradient.reshape(1, -1)
    assert np.linalg.norm(gradient, axis=1).max() <= plan.tolerance.certified


@pytest.mark.parametrize("params", CASES, ids=range(len(CASES)))
def test_solution_is_certified(params):
    assert_certified(**params)


def test_certificate_test_sees_an_unconverged_solver(monkeypatch):
    """Planted: one gradient step."""

    def one_step(objective, gamma, *, radius, **rest):
        return -objective.gradient(np.zeros(objective.size)) / objective.gradient_lipschitz

    monkeypatch.setattr(minimisers, "certified_minimum", one_step)
    with pytest.raises(AssertionError):
        assert_certified()


def test_certificate_test_sees_a_linear_term_that_is_left_out(monkeypatch):
    """Planted: the minimiser of the objective without noise."""
    honest = minimisers.certified_minimum
    monkeypatch.setattr(
        minimisers,
        "certified_minimum",
        lambda objective, *a, **k: honest(replace(objective, linear=None), *a, **k),
    )
    with pytest.raises(AssertionError):
        assert_certified()


def tolerances_used(monkeypatch, **params):
    """What the solver is asked for in several fits; the drawn terms differ."""
    used, honest = set(), minimisers.certified_minimum

    def remember(objective, gamma, **rest):
        used.add(gamma)
        return honest(objective, gamma, **rest)

    monkeypatch.setattr(minimisers, "certified_minimum", remember)
    for _ in range(4):
        module_solve = solve(**params)
        used.add(module_solve[0].tolerance.target)
    return used


@pytest.mark.parametrize("params", CASES, ids=range(len(CASES)))
def test_tolerance_does_not_depend_on_the_draw(monkeypatch, params):
    assert len(tolerances_used(monkeypatch, **params)) == 1


def test_tolerance_test_sees_one_made_from_the_drawn_norm(monkeypatch):
    """Planted: the tolerance is relative to the norm of the drawn term."""
    honest = module.minimise_perturbed

    def cheat(plan, rows, codes, weights, linear, **rest):
        target = 1e-7 * float(np.linalg.norm(linear[0]))
        coarse = replace(plan, tolerance=replace(plan.tolerance, target=target))
        return honest(coarse, rows, codes, weights, linear, **rest)

    monkeypatch.setitem(globals(), "minimise_perturbed", cheat)
    assert len(tolerances_used(monkeypatch)) > 1


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(
    ("loss", "k"),
    [(LOGISTIC, 2), (HUBER, 3), (LOGISTIC, 3)],
    ids=["logistic", "huber_hinge", "softmax"],
)
def test_output_noise_covers_the_certified_distance(loss, k, delta):
    """Twice the distance to the exact minimiser of the ideal term, all problems together."""
    plan = plan_objective(problem(loss, k=k), 1e-2, 1.0, delta)
    blocks = plan.shape[0]
    certified = plan.tolerance.target + plan.tolerance.float_error
    certified += plan.linear.rounding(blocks, 10)
    distance = math.sqrt(plan.problem.n_stacked) * certified / (plan.ridge * 1000)
    assert 2 * distance <= plan.output.sensitivity <= 2 * distance * (1 + 1e-9)
    assert plan.radius >= plan.linear.norm_bound(blocks, 10) / (plan.ridge * 1000)


def test_earlier_releases_share_the_budget():
    earlier = (Gaussian(0.1),)
    alone = plan_objective(problem(), 1e-2, 1.0, 1e-6)
    after = plan_objective(problem(), 1e-2, 1.0, 1e-6, earlier=earlier)
    assert accounting.delta((*earlier, *after.events), 1.0) <= 1e-6
    assert accounting.epsilon((*earlier, *after.events), 1e-6) > 1.0 - 1e-6
    assert after.linear.mu < 0.95 * alone.linear.mu
    with pytest.raises(BudgetError, match="leave nothing"):
        plan_objective(problem(), 1e-9, 1.0, 1e-6, earlier=(Gaussian(0.23),))


def test_output_noise_is_far_below_what_the_linear_term_does():
    plan = plan_objective(problem(n=30000, d=100), 1e-4, 1.0, 1e-9)
    total = plan.ridge * 30000
    assert plan.output.sigma < 2.4e-3 * plan.linear.sigma / total


def test_every_draw_is_fresh_and_paid_for():
    plan, *_, linear, _ = solve(HUBER, k=3)
    assert len(np.unique(linear, axis=0)) == 3
    record = PrivacyRecord(epsilon=1.0, delta=1e-6, events=plan.events, noise="os")
    permit = authorise(record, noise_source(None))
    draw_linear(plan, permit)
    with pytest.raises(RuntimeError, match="not charged"):
        draw_linear(plan, permit)


def test_a_plan_cannot_be_used_on_the_permit_of_another():
    cheap = plan_objective(problem(), 1e-2, 0.5, 1e-6)
    dear = plan_objective(problem(), 1e-2, 1.0, 1e-6)
    record = PrivacyRecord(epsilon=0.5, delta=1e-6, events=cheap.events, noise="os")
    with pytest.raises(RuntimeError, match="not charged"):
        draw_linear(dear, authorise(record, noise_source(None)))


def test_minimiser_norm_stays_within_the_radius():
    for _ in range(20):
        plan, *_, solution = solve(epsilon=0.05)
        assert np.linalg.norm(solution) <= plan.radius


def test_infinite_epsilon_has_neither_noise_nor_jacobian():
    plan = plan_objective(problem(), 1e-3, math.inf, 0.0)
    assert plan.ridge == 1e-3
    assert math.isinf(accounting.epsilon(plan.events, 1e-6))
    assert draw_linear(plan, authorise_all(plan))[0].any() == np.False_
    assert jacobian_log_ratio(problem(), 1e-3) > 0


def authorise_all(plan):
    record = PrivacyRecord(epsilon=math.inf, delta=0.0, events=plan.events, noise="none")
    return authorise(record, noise_source(None))
