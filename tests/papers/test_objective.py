"""Objective perturbation of every risk: exact densities, the plan, the certified solution."""

import itertools
import math
from dataclasses import astuple, replace
from functools import cache, partial

import numpy as np
import pytest
from scipy.special import softmax

from dp_halfspace.exceptions import BudgetError, CertificateError
from dp_halfspace.optim import empirical_risk
from dp_halfspace.optim import risks as risk_module
from dp_halfspace.optim.certificate import solver_tolerance
from dp_halfspace.optim.losses import (
    LOGISTIC,
    SQUARED,
    SQUARED_HINGE,
    huber_hinge,
)
from dp_halfspace.optim.objectives import Adversary
from dp_halfspace.papers import objective as module
from dp_halfspace.papers.objective import feasible_ridge, plan_objective
from dp_halfspace.papers.pair_objective import PairRisk, balanced_normaliser
from dp_halfspace.privacy import (
    Exponential,
    Gaussian,
    PrivacyRecord,
    Pure,
    Repeated,
    accounting,
    gdp_delta,
    gdp_mu,
)
from dp_halfspace.rows.rows import clipped_rows
from tests.adversarial import unit
from tests.papers.pair_cases import differences
from tests.permits import rows_door
from tests.releases import record_releases

HUBER = huber_hinge(0.5)


def records(loss=LOGISTIC, n=1000, d=10, k=2, **rest):
    return empirical_risk(loss, n, d, k, 1.0, max(1, min(n, 1000)), **rest)


def pairs(loss=LOGISTIC, n=1000, d=10):
    return PairRisk(loss, n, d, 1.0, n, balanced_normaliser(n))


def heavy(**sizes):
    return records(HUBER, **sizes, max_weight=5.0)


class Planted:
    """A risk with some wrong answers."""

    def __init__(self, risk, **wrong):
        self.risk = risk
        vars(self).update(wrong)

    def __getattr__(self, name):
        return getattr(self.risk, name)


# -- exact densities -----------------------------------------------------------------
#
# The exact minimiser w has the density |det D b(w)| times that of b at b(w), where b(w) is
# the linear term that makes w the minimiser. Nothing below uses the calibration.


def linear_term_at(risk, total, X, codes, weights, W):
    """Linear term and log-determinant at points W of shape (m, size)."""
    m, size = W.shape
    b, hessian = -total * W, np.zeros((m, size, size)) + total * np.eye(size)
    if risk.n_blocks > 1:
        k = risk.n_blocks
        for x, code, c in zip(X, codes, weights, strict=True):
            own = np.eye(k)[code]
            p = softmax(W.reshape(m, k, -1) @ x, axis=1)
            b -= c * ((p - own)[:, :, None] * x).reshape(m, -1)
            block = p[:, :, None] * np.eye(k) - p[:, :, None] * p[:, None, :]
            hessian += c * np.einsum("mij,a,b->miajb", block, x, x).reshape(m, size, size)
        return b, np.linalg.slogdet(hessian)[1]
    signed = X * (2.0 * codes - 1.0)[:, None]
    if risk.pairwise:
        signed = differences(X, codes == 1)
        weights = np.full(len(signed), 1.0 / risk.normaliser)
    for z, c in zip(signed, weights, strict=True):
        margins = W @ z
        b -= c * risk.loss.derivative(margins)[:, None] * z
        hessian += c * risk.loss.second_derivative(margins)[:, None, None] * np.outer(z, z)
    return b, np.linalg.slogdet(hessian)[1]


def log_densities(risk, ridge, datasets, W, log_noise):
    for data in datasets:
        b, log_det = linear_term_at(risk, risk.total(ridge), *data, W)
        yield log_noise(b) + log_det


def log_gaussian(sigma):
    return lambda b: (
        -(b * b).sum(axis=1) / (2 * sigma**2)
        - b.shape[1] * math.log(sigma * math.sqrt(2 * math.pi))
    )


def exact_delta(log_p, log_q, cell, epsilon, earlier=0.0):
    """Hockey-stick divergence of two densities given on a grid, beside a Gaussian release."""
    if earlier:
        few = slice(None, None, 12)
        rest = np.array([gdp_delta(earlier, epsilon - x) for x in (log_p - log_q)[few]])
        return float((np.exp(log_p[few]) * rest * cell[few]).sum() * 12)
    excess = np.exp(log_p) * -np.expm1(np.minimum(epsilon + log_q - log_p, 0.0))
    return float((excess * cell).sum())


# Other records beside the one that is replaced, on a line: values and classes.
ALIKE = (((), ()), ((0.5,), (1,)), ((1.0, -1.0), (1, 1)), ((-1.0, -1.0, -1.0), (1, 1, 1)))
CROWDS = (
    ((-1.0,), (0,)),
    ((-1.0, -1.0, -1.0), (0, 0, 0)),
    ((-1.0, 1.0, -1.0), (0, 1, 1)),
    ((0.3, -1.0, 1.0, -0.5), (1, 1, 1, 1)),
)
RECORD_BUDGETS = tuple(
    (ridge, *budget)
    for ridge in (1e-9, 0.3, 3.0)
    for budget in ((0.5, 1e-2), (2.0, 1e-2), (1.0, 1e-6))
)
WEIGHTED = tuple((15.0, *budget) for _, *budget in RECORD_BUDGETS[:3])
PAIR_BUDGETS = ((0.02, 1.0, 1e-2), (0.5, 3.0, 1e-3), (500.0, 1.0, 1e-2))
OF_RECORDS, OF_PAIRS = (ALIKE, RECORD_BUDGETS), (CROWDS, PAIR_BUDGETS)


def neighbours(rests):
    """Record 0 crosses over, changes its class, does both, vanishes."""
    for (xs, labels), (x, y) in itertools.product(rests, ((-1.0, 1), (1.0, 0), (-1.0, 0), (0, 1))):
        yield tuple(
            (np.array([[a, *xs]]).T, np.array([label, *labels])) for a, label in ((1.0, 1), (x, y))
        )


def line(total, sigma, change):
    """Points for every w that matters in one dimension, dense where the records act."""
    far = (10 * sigma + 4 * change) / total
    near = min(20.0, far)
    points = np.concatenate([np.linspace(-far, far, 3001), np.linspace(-near, near, 3001)])
    points = np.unique(points)
    return points[:, None], np.gradient(points)


def worst_ratio(make, where, *, shrink=1.0, weight=1.0, earlier=0.0):
    """Largest exact over claimed delta in one dimension, over neighbours and budgets."""
    rests, budgets = where
    others, worst = (Gaussian(earlier),) if earlier else (), 0.0

    @cache
    def planned(n, ridge, epsilon, delta):
        """Plan for tables of a size, and what it claims at several epsilons."""
        plan = plan_objective(make(n=n, d=1), ridge, epsilon, delta, earlier=others)
        at = [factor * epsilon for factor in (0.3, 0.5, 1.0, 1.5)]
        return plan, [(x, accounting.delta([*others, plan.linear.event], x)) for x in at]

    for data, budget in itertools.product(neighbours(rests), budgets):
        n = len(data[0][1])
        plan, claims = planned(n, *budget)
        risk, sigma = make(n=n, d=1), plan.linear.sigma * shrink
        W, cell = line(risk.total(plan.ridge), sigma, plan.linear.change)
        datasets = [(X, y, np.full(n, weight)) for X, y in data]
        logs = list(log_densities(risk, plan.ridge, datasets, W, log_gaussian(sigma)))
        assert (np.exp(logs[0]) * cell).sum() == pytest.approx(1, abs=4e-3)
        for at, claimed in claims:
            for p, q in (logs, logs[::-1]):
                worst = max(worst, exact_delta(p, q, cell, at, earlier) / claimed)
    return worst


# On a line two opposite records cannot both have the full slope of the logistic loss; the
# bound is for every dimension.
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("make", "loss", "least"),
    [
        (records, LOGISTIC, 0.1),
        (records, HUBER, 0.7),
        (pairs, LOGISTIC, 0.01),
        (pairs, HUBER, 0.2),
    ],
    ids=lambda value: getattr(value, "name", getattr(value, "__name__", value)),
)
def test_exact_delta_in_one_dimension(make, loss, least):
    where = OF_RECORDS if make is records else OF_PAIRS
    ratio = worst_ratio(lambda **sizes: make(loss, **sizes), where)
    assert least < ratio < 1.0


def test_exact_delta_with_class_weights():
    assert 0.7 < worst_ratio(heavy, (ALIKE, RECORD_BUDGETS[:3] + WEIGHTED), weight=5.0) < 1.0


@pytest.mark.slow
def test_exact_delta_beside_an_earlier_release():
    assert 0.1 <= worst_ratio(partial(pairs, HUBER), OF_PAIRS, earlier=0.1) <= 1


@pytest.mark.parametrize("make", [records, pairs])
def test_missing_zero_vertex_is_refused(make):
    """Planted: the vertex at which nothing changes is left out."""
    risk = make()
    with pytest.raises(ValueError, match="mu = 0"):
        plan_objective(Planted(risk, vertices=risk.vertices[1:]), 0.1, 1.0, 1e-6)


def plane(total, sigma, reach, points=130):
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
        case = records(loss, n=n, d=2)
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


@pytest.mark.sampled(1)
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
        ((), (1.0, -1.0)), (((1.0, 0), (-1.0, 0)), ((1.0, 0), (1.0, 1)), ((1.0, 0), (0.0, 0)))
    ):
        n = 1 + len(others)
        case = records(loss, n=n, d=1, k=3)
        plan = plan_objective(case, 1.0, 2.0, 1e-2)
        sigma = plan.linear.sigma * shrink
        V, cell = plane(plan.ridge * n, sigma, 2 * n)
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


def test_exact_delta_of_the_softmax():
    assert 0.02 < worst_softmax_ratio(LOGISTIC) < 1.0


def worst_pure_loss(loss, k, shrink=1.0):
    """Largest log-ratio of densities over neighbours and points, over the claimed epsilon."""
    rng = np.random.default_rng(4)
    worst = 0.0
    for trial in range(60):
        n, d = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        case = records(loss, n=n, d=d, k=k)
        plan = plan_objective(case, (1e-9, 1.0 / n)[trial % 2], 1.0, 0.0)
        scale, blocks = plan.linear.scale * shrink, case.n_blocks
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


def worst_pure_pair_loss(loss, shrink=1.0):
    """The same over pairs, on a line."""
    worst = 0.0
    for data, (ridge, epsilon) in itertools.product(
        neighbours(CROWDS), ((0.05, 2.0), (2.0, 1.0), (50.0, 1.0))
    ):
        risk = pairs(loss, n=len(data[0][1]), d=1)
        plan = plan_objective(risk, ridge, epsilon, 0.0)
        scale = plan.linear.scale * shrink
        W = np.linspace(-1, 1, 6001) * (10 * scale + 4 * plan.linear.change) / plan.ridge
        datasets = [(X, y, None) for X, y in data]

        def log_laplace(b, scale=scale):
            return -np.abs(b[:, 0]) / scale

        p, q = log_densities(risk, plan.ridge, datasets, W[:, None], log_laplace)
        worst = max(worst, float(np.abs(p - q).max()) / plan.linear.epsilon)
    return worst


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("loss", "least"), [(LOGISTIC, 0.5), (HUBER, 0.9)], ids=lambda value: getattr(value, "name", "")
)
def test_pure_loss_of_pairs_is_bounded_everywhere(loss, least):
    assert least <= worst_pure_pair_loss(loss) <= 1.0


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("loss", "k", "least"),
    [(LOGISTIC, 2, 0.5), (HUBER, 2, 0.99), (LOGISTIC, 4, 0.6)],
    ids=["logistic", "huber_hinge", "softmax"],
)
def test_pure_loss_is_bounded_everywhere(loss, k, least):
    assert least < worst_pure_loss(loss, k) <= 1.0
    assert worst_pure_loss(loss, k, shrink=0.3) > 1.0


def without_jacobian(make):
    return lambda **sizes: Planted(make(**sizes), log_ratio=lambda ridge: 0.0)


def small_change(make, factor):
    def planted(**sizes):
        honest = make(**sizes)
        return Planted(honest, gradient_change=honest.gradient_change / factor)

    return planted


FEW, OF_WEIGHTS = (ALIKE, RECORD_BUDGETS[6:]), (ALIKE, WEIGHTED)
PLANTED = {
    "half of sigma": lambda: worst_ratio(partial(records, HUBER), FEW, shrink=0.5),
    "nine tenths of sigma": lambda: worst_ratio(partial(records, HUBER), FEW, shrink=0.9),
    "half of sigma for pairs": lambda: worst_ratio(partial(pairs, HUBER), OF_PAIRS, shrink=0.5),
    # The sum over 9 vertices is generous.
    "a third of sigma for a softmax": lambda: worst_softmax_ratio(shrink=1 / 3),
    "half of the scale for pairs": lambda: worst_pure_pair_loss(HUBER, shrink=0.5),
    "no Jacobian": lambda: worst_ratio(without_jacobian(partial(records, HUBER)), OF_RECORDS),
    "no Jacobian for pairs": lambda: worst_ratio(
        without_jacobian(partial(pairs, huber_hinge(0.05))), OF_PAIRS
    ),
    "no largest weight": lambda: worst_ratio(small_change(heavy, 5.0), OF_WEIGHTS, weight=5.0),
    "the radius, not the diameter": lambda: worst_ratio(
        small_change(partial(pairs, HUBER), 2.0), OF_PAIRS
    ),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("bug", PLANTED)
def test_density_tests_see_a_planted_bug(bug):
    assert PLANTED[bug]() > 1.0


# -- calibration ---------------------------------------------------------------------

RISKS = {
    "binary": records(),
    "classes": records(k=3),
    "twenty classes": records(k=20),
    "stacked": records(HUBER, k=4),
    "pairs": pairs(),
    "pairs, huber": pairs(HUBER),
}
every_risk = pytest.mark.parametrize("risk", RISKS.values(), ids=RISKS)


@pytest.mark.sampled(6)
@every_risk
@pytest.mark.parametrize(("ridge", "epsilon"), [(1e-9, 0.1), (1e-2, 1.0), (1e-9, 8.0)])
def test_budget_is_spent_and_not_exceeded(risk, epsilon, ridge):
    plan = plan_objective(risk, ridge, epsilon, 1e-6)
    assert 1e-6 * (1 - 1e-5) <= accounting.delta(plan.events, epsilon) <= 1e-6
    assert risk.n_stacked * plan.linear.log_ratio <= epsilon / 2 * (1 + 1e-9)
    assert plan.linear.event.pairwise == risk.pairwise
    assert plan.ridge >= ridge
    PrivacyRecord(epsilon=epsilon, delta=1e-6, events=plan.events, noise="os")


@every_risk
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 40.0])
def test_pure_budget_is_spent_and_not_exceeded(risk, epsilon):
    plan = plan_objective(risk, 1e-9, epsilon, 0.0)
    linear, output = plan.linear.event, plan.output.event
    copies = risk.n_stacked
    assert plan.events == (linear if copies == 1 else Repeated(linear, copies), output)
    assert isinstance(linear, Pure)
    assert isinstance(output, Pure)
    assert epsilon * (1 - 1e-9) < copies * linear.epsilon + output.epsilon <= epsilon
    PrivacyRecord(epsilon=epsilon, delta=0.0, events=plan.events, noise="os")


@pytest.mark.parametrize("k", [2, 60])
@pytest.mark.parametrize(("epsilon", "delta"), [(1e-3, 0.25), (1e-3, 0.01), (1e-6, 0.49)])
def test_many_vertices_with_a_tiny_epsilon_still_fit(k, epsilon, delta):
    plan = plan_objective(records(n=2, k=k), 0.1, epsilon, delta)
    assert accounting.delta(plan.events, epsilon) <= delta * (1 + 1e-9)
    assert plan.linear.mu > 0


UNFIT = [make(loss) for make in (records, pairs) for loss in (SQUARED, SQUARED_HINGE)]


@pytest.mark.parametrize(
    "risk", [*UNFIT, records(tilt=1.0), records(adversary=Adversary(0.1, 2, 10))]
)
def test_risks_that_do_not_qualify_are_refused(risk):
    for plan in (plan_objective, feasible_ridge):
        with pytest.raises(ValueError, match="monotone loss of bounded slope"):
            plan(risk, math.inf, 1.0, 1e-6, earlier=(Gaussian(0.1),))


def test_plan_refuses_what_cannot_be_certified():
    with pytest.raises(CertificateError):
        plan_objective(records(n=10**12), 1e-4, 1.0, 1e-6)


HEAVY = [(HUBER, 2), (HUBER, 3), (LOGISTIC, 4)]


@pytest.mark.parametrize("delta", [0.0, 1e-9])
@pytest.mark.parametrize(
    "risk",
    [*(records(loss, k=k, max_weight=3.0) for loss, k in HEAVY), pairs()],
    ids=["margin", "stacked", "classes", "pairs"],
)
def test_the_certificate_knows_the_linear_term(risk, delta):
    """Numbers that reach the rule, written out."""
    plan = plan_objective(risk, 0.1, 0.01, delta)
    total = plan.ridge * (1 if risk.pairwise else 1000)
    blocks = risk.n_classes if plan.risk.n_blocks > 1 else 1
    size, rounding = plan.linear.norm_bound(blocks, 10), plan.linear.rounding(blocks, 10)
    change = risk.gradient_change
    assert plan.linear.change == (change if delta else risk.block_change)
    radius = risk.radius(plan.ridge) + size / total
    largest = radius + change / total
    rule = solver_tolerance(
        change, risk.gradient_error(plan.ridge, largest, size), rounding, largest
    )
    assert plan.radius == pytest.approx(radius, rel=1e-10)
    assert plan.tolerance.float_error >= rule.float_error * (1 - 1e-15)
    assert astuple(plan.tolerance) == pytest.approx(astuple(rule), rel=1e-10)
    # Twice the distance to the exact minimiser of the ideal term, all problems together.
    needed = 2.0 * math.sqrt(risk.n_stacked) * plan.tolerance.certified / total
    assert needed <= plan.output.sensitivity <= needed * (1 + 1e-9)
    parts = plan.tolerance.target + plan.tolerance.float_error + rounding
    assert plan.tolerance.certified >= parts * (1 - 1e-15)


# -- beside earlier releases ---------------------------------------------------------


SHARES = [((Gaussian, 0.05),), ((Pure, 0.2),), ((Gaussian, 0.02), (Pure, 0.1)),
          ((Exponential, 0.02),)]  # fmt: skip


@pytest.mark.sampled(6)
@pytest.mark.parametrize("risk", [records(), pairs(HUBER)], ids=["records", "pairs"])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
@pytest.mark.parametrize("shares", SHARES, ids=range(len(SHARES)))
def test_earlier_releases_share_the_budget(risk, epsilon, shares):
    earlier = tuple(kind(share * epsilon) for kind, share in shares)
    plan = plan_objective(risk, 1e-4, epsilon, 1e-6, earlier=earlier)
    events = (*earlier, *plan.events)
    assert 0.99e-6 <= accounting.delta(events, epsilon) <= 1e-6
    assert epsilon * (1 - 1e-5) <= accounting.epsilon(events, 1e-6) <= epsilon * (1 + 1e-12)
    assert plan.linear.log_ratio <= epsilon / 2 * (1 + 1e-9)
    assert plan.linear.mu < plan_objective(risk, 1e-4, epsilon, 1e-6).linear.mu


def test_what_earlier_releases_leave_may_be_nothing():
    for risk, ridge, mu in ((records(), 1e-9, 0.23), (pairs(n=100, d=5), 1.0, 1.0)):
        with pytest.raises(BudgetError, match="use all of it"):
            plan_objective(risk, ridge, 1.0, 1e-6, earlier=(Gaussian(mu),))


def test_earlier_releases_may_leave_less_for_the_output_than_its_share():
    earlier = (Gaussian(0.2355),)
    plan = plan_objective(records(), 1.0, 1.0, 1e-6, earlier=earlier)
    assert 0.0 < plan.output.mu < 0.01 * gdp_mu(1.0, 1e-6)
    assert 0.99e-6 < accounting.delta((*earlier, *plan.events), 1.0) <= 1e-6


def test_feasible_ridge_leaves_half_of_delta():
    earlier = (Gaussian(math.sqrt(0.8) * gdp_mu(1.0, 1e-7)),)
    for risk in (RISKS["binary"], RISKS["stacked"], RISKS["pairs"]):
        ridge = feasible_ridge(risk, 1e-9, 1.0, 1e-7, earlier)
        plan = plan_objective(risk, ridge, 1.0, 1e-7, earlier=earlier)
        assert plan.ridge == ridge
        assert accounting.delta((*earlier, *plan.events), 1.0) <= 1e-7
        jacobian = Repeated(replace(plan.linear, mu=0.0).event, risk.n_stacked)
        assert accounting.delta((*earlier, jacobian), 1.0) <= 0.5e-7
    assert feasible_ridge(records(), 0.5, 1.0, 1e-7, earlier) == 0.5
    assert feasible_ridge(records(), 1e-9, 1.0, 0.0) == records().ridge_floor(1.0)


# -- draw and solution ---------------------------------------------------------------


def table(n=120, d=4, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True), rng.integers(k, size=n)


def solve(make=records, loss=LOGISTIC, k=2, epsilon=1.0, delta=1e-6, ridge=1e-2, weights=None):
    X, codes = table(k=k)
    weights = np.ones(k) if weights is None else weights
    sizes = {"n": len(X), "d": X.shape[1]}
    if make is records:
        sizes |= {"k": k, "max_weight": float(weights.max())}
    plan = plan_objective(make(loss, **sizes), ridge, epsilon, delta)
    with record_releases() as releases:
        plan.run(rows_door(clipped_rows(X, 1.0), codes, weights, *plan.events))
    assert len(releases) == plan.risk.n_stacked + 1
    linear = np.vstack([release.released for release in releases[:-1]])
    return plan, X, codes, weights, linear, releases[-1].value


def gradients(plan, X, codes, weights, linear, W):
    """Gradients by the definition, a row for each row of W: what is missing to the linear term."""
    risk, total = plan.risk, plan.ridge * (1 if plan.risk.pairwise else len(X))
    if risk.n_stacked > 1:
        problems = [(codes == k, w[None, :]) for k, w in enumerate(W)]
    else:
        problems = [(codes, W.reshape(1, -1))]
    needed = [linear_term_at(risk, total, X, y, weights[codes], w)[0] for y, w in problems]
    return linear - np.reshape(needed, W.shape)


CASES = [
    {},
    {"delta": 0.0},
    {"loss": HUBER},
    {"epsilon": 0.1},
    {"k": 3},
    {"k": 4},
    {"k": 3, "delta": 0.0, "weights": np.array([1.0, 3.0, 0.5])},
    {"loss": HUBER, "k": 3},
    {"loss": HUBER, "weights": np.array([1.0, 5.0]), "ridge": 1e-9},
    {"make": pairs, "ridge": 0.2, "epsilon": 2.0},
    {"make": pairs, "ridge": 0.2, "delta": 0.0},
    {"make": pairs, "ridge": 1e-9},
]
KINDS = [{}, {"k": 3}, {"loss": HUBER, "k": 3}, {"make": pairs, "ridge": 0.2}]
every_kind = pytest.mark.parametrize("params", KINDS, ids=["margin", "classes", "stacked", "pairs"])


def assert_certified(**params):
    plan, *data, solution = solve(**params)
    gradient = gradients(plan, *data, solution).reshape(plan.risk.n_stacked, -1)
    assert np.linalg.norm(gradient, axis=1).max() <= plan.tolerance.certified
    assert np.linalg.norm(solution) <= plan.radius * math.sqrt(plan.risk.n_stacked)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("params", CASES, ids=range(len(CASES)))
def test_solution_is_certified(params):
    assert_certified(**params)


@pytest.mark.sampled(2)
@every_kind
def test_certificate_test_sees_a_linear_term_that_is_left_out(monkeypatch, params):
    """Planted: the minimiser of the objective without noise."""
    honest = module.minimisers

    def noiseless(*args, linear, **rest):
        del linear
        return honest(*args, **rest)

    monkeypatch.setattr(module, "minimisers", noiseless)
    with pytest.raises(AssertionError):
        assert_certified(**params)


@every_kind
def test_certificate_test_sees_an_unconverged_solver(monkeypatch, params):
    """Planted: one gradient step."""

    def one_step(objective, gamma, *, radius, **rest):
        return -objective.gradient(np.zeros(objective.size)) / objective.gradient_lipschitz

    monkeypatch.setattr(risk_module, "certified_minimum", one_step)
    with pytest.raises(AssertionError):
        assert_certified(**params)


def tolerances_used(monkeypatch, **params):
    """What the solver is asked for in several fits; the drawn terms differ."""
    used, honest = set(), risk_module.certified_minimum

    def remember(objective, gamma, **rest):
        used.add(gamma)
        return honest(objective, gamma, **rest)

    monkeypatch.setattr(risk_module, "certified_minimum", remember)
    for _ in range(4):
        used.add(solve(**params)[0].tolerance.target)
    return used


@pytest.mark.sampled(4)
@pytest.mark.parametrize("params", CASES, ids=range(len(CASES)))
def test_tolerance_does_not_depend_on_the_draw(monkeypatch, params):
    assert len(tolerances_used(monkeypatch, **params)) == 1


@every_kind
def test_tolerance_test_sees_one_made_from_the_drawn_norm(monkeypatch, params):
    """Planted: the tolerance is relative to the norm of the drawn term."""
    honest = module.minimisers

    def cheat(*args, linear, target, **rest):
        coarse = 1e-7 * float(np.linalg.norm(linear[0]))
        return honest(*args, linear=linear, target=coarse, **rest)

    monkeypatch.setattr(module, "minimisers", cheat)
    assert len(tolerances_used(monkeypatch, **params)) > 1
