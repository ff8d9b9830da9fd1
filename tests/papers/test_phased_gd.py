"""One pass of proximal steps: exact steps, one noise a phase, a record in one phase only."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize

from dp_halfspace.data.record_weights import WeighedRows
from dp_halfspace.papers import known_margin as module
from dp_halfspace.papers.known_margin import plan_phased_prox, proximal_pass
from dp_halfspace.privacy import Gaussian
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.rows.rows import Rows
from tests.adversarial import neighbouring_pairs, unit
from tests.conftest import separated
from tests.permits import problem_of, rows_door
from tests.releases import record_releases

ONES = np.ones(2)


def plan_pass(n, d, *, order=None, **budget):
    return plan_phased_prox(n, d, order=np.arange(n) if order is None else order, **budget)


def run(plan, X, codes):
    return plan.run(rows_door(Rows(X), codes, ONES, *plan.events))


class Scripted:
    """A permit whose releases are given: every data set then sees the same past."""

    def __init__(self, released):
        self.released, self.values, self.mechanisms = released, [], []

    def parallel(self, event):
        self.event = event
        return self

    def release(self, value, mechanism, block):
        assert mechanism.event == self.event
        self.values.append(value.copy())
        self.mechanisms.append(mechanism)
        return self.released[len(self.values) - 1]


@given(
    n=st.integers(1, 10**7),
    k=st.integers(1, 2000),
    mu=st.floats(1e-4, 50),
    margin=st.floats(1e-6, 1),
)
def test_phases_are_a_partition_into_halves(n, k, mu, margin):
    plan = plan_pass(n, k, mu=mu, margin=margin, order=np.arange(0))
    assert plan.events[0] == Gaussian(mu)
    lo, step = 0, plan.phases[0].step_size
    for phase in plan.phases:
        assert phase.lo == lo < phase.hi
        assert phase.hi - phase.lo == max(1, (n - lo) // 2)
        assert phase.step_size == step
        assert phase.mechanism.event == Gaussian(mu)
        assert phase.mechanism.sigma >= 2 * step / margin / mu
        lo, step = phase.hi, step / 4
    assert lo == n


@pytest.mark.parametrize("n", [1, 2, 1000, 10**5])
@pytest.mark.parametrize("margin", [0.01, 0.5])
def test_noise_is_that_of_two_steps(n, margin):
    first = plan_pass(n, 20, mu=0.3, margin=margin).phases[0]
    # What is added for rounding grows with the records: a ten-thousandth at a million.
    assert first.mechanism.sigma <= 2 * first.step_size / margin / 0.3 * (1 + 1e-4)


@pytest.mark.parametrize("n", [1, 1000, 10**5])
def test_the_allowance_for_rounding_covers_every_step_of_a_phase(n):
    """The bound of the proof: an error for each of its steps, and one for the mean."""
    first = plan_pass(2 * n, 20, mu=0.3, margin=0.1).phases[0]
    pull = first.step_size / 0.1
    of_a_step = 2.0**-51 * (20 + 16) * (2.0 + 0.1 + pull)
    assert first.mechanism.sensitivity >= 2 * (pull + (n + 1) * of_a_step)


@pytest.mark.parametrize("seed", range(12))
def test_step_is_the_minimiser(seed):
    """cap (margin - <z, v>)_+ + |v - w|^2 / 2, as a quadratic program with one slack."""
    rng = np.random.default_rng(seed)
    d, margin, cap = 3, rng.uniform(0.05, 1), rng.uniform(0.01, 1)
    z = rng.uniform(0.3, 1) * unit(rng, d)
    w = 0.4 * unit(rng, d)
    solution = minimize(
        lambda v: cap * v[d] + ((v[:d] - w) ** 2).sum() / 2,
        np.append(w, 1.0),
        jac=lambda v: np.append(v[:d] - w, cap),
        method="SLSQP",
        bounds=[(None, None)] * d + [(0, None)],
        constraints={
            "type": "ineq",
            "fun": lambda v: v[d] - margin + z @ v[:d],
            "jac": lambda v: np.append(z, 1.0),
        },
        options={"ftol": 1e-15, "maxiter": 500},
    ).x[:d]
    expected = solution / max(1.0, np.linalg.norm(solution))
    got, total = proximal_pass(w, z[None, :], np.array([cap]), margin)
    np.testing.assert_allclose(got, expected, atol=2e-6)
    np.testing.assert_array_equal(got, total)


vectors = st.lists(st.floats(-1, 1), min_size=3, max_size=3).map(np.array)


def in_ball(v):
    return v / max(1.0, np.linalg.norm(v))


@given(vectors, vectors, vectors, st.floats(1e-3, 1), st.floats(1e-3, 10))
def test_steps_do_not_expand_distances(a, b, z, margin, cap):
    a, b, z = in_ball(a), in_ball(b), in_ball(z)
    caps = np.array([cap])
    after = [proximal_pass(w, z[None, :], caps, margin)[0] for w in (a, b)]
    assert np.linalg.norm(after[0] - after[1]) <= np.linalg.norm(a - b) + 1e-14
    # Before the projection a step is as long as the cap at most; the ball only shortens it.
    assert np.linalg.norm(after[0] - a) <= cap * (1 + 1e-12) + 1e-15
    assert np.linalg.norm(after[0]) <= 1 + 1e-15


def passes(plan, released, *data_sets, weights=ONES):
    """Values of all phases, on data sets that see the same releases."""
    scripts = []
    for X, y in data_sets:
        script = Scripted(released)
        plan.run(Door(WeighedRows(Rows(X), y, weights), script))
        scripts.append(script)
    return scripts


def worst_ratio(*, weights=ONES, row_norm=1.0):
    """Change of the mean of a phase over its sensitivity, over neighbours and positions."""
    rng = np.random.default_rng(3)
    worst, touched = 0.0, []
    for trial, (X, y, other_X, other_y) in enumerate(
        neighbouring_pairs(rng, 300, row_norm=row_norm)
    ):
        n, d = X.shape
        order = rng.permutation(n)
        mu, margin = (0.1, 5.0)[trial % 2], (0.05, 1.0)[trial // 2 % 2]
        plan = plan_pass(n, d, mu=mu, margin=margin, order=order)
        released = rng.uniform(0, 2) * rng.standard_normal((len(plan.phases), d))
        a, b = passes(plan, released, (X, y), (other_X, other_y), weights=weights)
        changed = []
        for index, (first, second) in enumerate(zip(a.values, b.values, strict=True)):
            change = float(np.linalg.norm(first - second))
            worst = max(worst, change / a.mechanisms[index].sensitivity)
            if change:
                changed.append(index)
        touched.append(changed)
        position = int(np.flatnonzero(order == 0)[0])
        own = [i for i, p in enumerate(plan.phases) if p.lo <= position < p.hi]
        assert set(changed) <= set(own)
    assert any(touched)
    return worst


def test_mean_of_a_phase_moves_by_two_steps_at_most_and_does():
    worst = worst_ratio()
    assert 0.999 < worst <= 1
    assert worst_ratio(weights=np.array([1.0, 0.3])) <= 1


@pytest.mark.slow
def test_brute_force_sees_planted_bugs(monkeypatch):
    """Rows that are not normalised; weights not divided by the largest; what adding a row moves."""
    assert worst_ratio(row_norm=2.0) > 1.5
    assert worst_ratio(weights=np.array([1.0, 1.7])) > 1.3
    honest = module.GaussianNoise
    monkeypatch.setattr(module, "GaussianNoise", lambda s, mu: honest(s / 2, mu))
    assert worst_ratio() > 1.9


def long_pass(others):
    """Change of the first mean when the first of many records is turned round, and its bound."""
    n, margin = 400, 0.2
    plan = plan_pass(n, 2, mu=0.5, margin=margin)
    X = np.tile(np.asarray(others, dtype=float), (n, 1))
    X[0] = [1.0, 0.0]
    turned = X.copy()
    turned[0] = [-1.0, 0.0]
    released = np.zeros((len(plan.phases), 2))
    codes = np.ones(n, int)
    a, b = passes(plan, released, (X, codes), (turned, codes))
    return float(np.linalg.norm(a.values[0] - b.values[0])), a.mechanisms[0].sensitivity


def test_a_long_pass_neither_forgets_nor_amplifies():
    change, bound = long_pass([0.0, 0.0])
    assert bound * (1 - 1e-6) <= change <= bound
    for others in ([1.0, 0.0], [-1.0, 0.0], [0.6, 0.8], [0.0, 1.0]):
        change, bound = long_pass(others)
        assert change <= bound


def test_a_long_pass_sees_steps_that_expand(monkeypatch):
    """Planted: steps away from the hyperplane instead of towards the margin."""

    def expanding(start, rows, caps, margin):
        point, total = start.copy(), np.zeros_like(start)
        for row, cap in zip(rows, caps, strict=True):
            point = point + cap * (np.sign(row @ point) if point.any() else 1.0) * row
            total += point
        return point, total

    monkeypatch.setattr(module, "proximal_pass", expanding)
    change, bound = long_pass([1.0, 0.0])
    assert change > 10 * bound


def exact_pass(start, rows, caps, margin):
    """The pass in extended precision."""
    point = np.asarray(start, dtype=np.longdouble)
    total = np.zeros_like(point)
    for row, cap in zip(np.asarray(rows, dtype=np.longdouble), caps, strict=True):
        square = row @ row
        if square > 0:
            pull = min(max((np.longdouble(margin) - row @ point) / square, 0), np.longdouble(cap))
            point = point + pull * row
            point = point / max(np.longdouble(1), np.sqrt(point @ point))
        total = total + point
    return point, total


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="needs extended precision")
@pytest.mark.parametrize("margin", [1e-6, 0.1, 1.0])
def test_rounding_is_within_its_allowance(margin):
    rng = np.random.default_rng(0)
    worst = 0.0
    for n, d, mu in ((200, 3, 0.1), (1000, 40, 5.0), (50, 300, 40.0)):
        first = plan_pass(2 * n, d, mu=mu, margin=margin).phases[0]
        pull = first.step_size / margin
        allowance = first.mechanism.sensitivity / 2 - pull * (1 + 2.0**-30)
        rows = rng.standard_normal((n, d))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True) * (1 + 1e-13)
        start = in_ball(rng.standard_normal(d))
        caps = np.full(n, pull)
        got = proximal_pass(start, rows, caps, margin)[1] / n
        error = np.linalg.norm(np.asarray(got - exact_pass(start, rows, caps, margin)[1] / n))
        worst = max(worst, float(error) / allowance)
    assert 0 < worst < 1


def test_one_event_pays_for_all_phases_once():
    X, y = separated(300, 4)
    plan = plan_pass(300, 4, mu=0.5, margin=0.1)
    door = rows_door(Rows(X), y, ONES, *plan.events)
    with record_releases() as releases:
        point = plan.run(door)
        with pytest.raises(RuntimeError, match="not charged"):
            plan.run(door)
    assert [r.mechanism for r in releases] == [phase.mechanism for phase in plan.phases]
    np.testing.assert_array_equal(point[0], releases[-1].released)


def test_a_phase_starts_where_the_last_release_is_in_the_ball():
    X, y = np.zeros((40, 2)), np.zeros(40, int)
    plan = plan_pass(40, 2, mu=0.5, margin=0.1)
    released = np.tile([3.0, 4.0], (len(plan.phases), 1))
    (script,) = passes(plan, released, (X, y))
    np.testing.assert_array_equal(script.values[0], [0.0, 0.0])
    for value in script.values[1:]:
        np.testing.assert_allclose(value, [0.6, 0.8], rtol=1e-15)


def test_neither_storage_nor_blocks_change_anything(monkeypatch):
    X, y = separated(300, 5)
    X = np.where(np.abs(X) < 0.2, 0.0, X)
    plan = plan_pass(300, 5, mu=math.inf, margin=0.1)
    whole = run(plan, X, y)
    for form in (np.asfortranarray, sparse.csr_array):
        np.testing.assert_array_equal(run(plan, form(X), y), whole)
    monkeypatch.setattr(module, "block_size", lambda n, d, is_sparse: min(n, 7))
    # Sums of parts are rounded otherwise, the iterates are not.
    np.testing.assert_allclose(run(plan, X, y), whole, rtol=1e-12)


def test_class_weights_reach_the_steps():
    """Rows that all point the same way: the class with the larger weight decides."""
    X, y = np.tile([[1.0, 0.0]], (400, 1)), np.arange(400) % 2
    plan = plan_pass(400, 2, mu=300.0, margin=0.5)
    for weights, sign in (((0.1, 1.0), 1.0), ((1.0, 0.1), -1.0)):
        found = plan.run(rows_door(Rows(X), y, np.array(weights), *plan.events))
        assert sign * found[0, 0] > 0.3


def test_a_projection_keeps_a_part_of_the_margin():
    problem = replace(problem_of(200, 50), projection="rademacher", n_components=40)
    plan = module.plan_known_margin(problem, "phased_prox", 0.3, Budget.gaussian(1.0))
    assert plan.margin == 0.3
    assert plan.algorithm.margin == pytest.approx(0.1)
