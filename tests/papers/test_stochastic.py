"""Stochastic subgradients and Katyusha: what is proved of them, and that privacy ignores them."""

from functools import partial

import numpy as np
import pytest

from dp_halfspace import OutputPerturbationClassifier
from dp_halfspace.datasets import make_halfspace
from dp_halfspace.optim import certified_minimum
from dp_halfspace.optim.losses import LOGISTIC
from dp_halfspace.optim.objectives import MarginObjective
from dp_halfspace.optim.solvers import FiniteSum
from dp_halfspace.papers import stochastic
from dp_halfspace.papers.stochastic import STOCHASTIC, katyusha, stochastic_subgradients
from dp_halfspace.rows.rows import clipped_rows
from dp_halfspace.theory import katyusha_iterations
from dp_halfspace.theory.bounds import published_rate
from tests.support import releases_of


def problem(n=60, d=3, ridge=0.05):
    X, y = make_halfspace(n, d, margin=0.1, random_state=0)
    y[::7] *= -1
    J = MarginObjective(clipped_rows(X, bound=1.0), y, np.ones(n), LOGISTIC, ridge * n)
    best = certified_minimum(J, 1e-9, radius=50.0)
    F = FiniteSum(J, 2 * float(np.linalg.norm(best)))
    return F, F.value(best)


@pytest.mark.parametrize("runs", [5, pytest.param(1000, marks=pytest.mark.slow)])
def test_subgradients_stay_below_the_published_excess(runs):
    F, least = problem()
    steps = 200
    found = [
        F.value(stochastic_subgradients(F, np.zeros(F.size), n_steps=steps, seed=seed)) - least
        for seed in range(runs)
    ]
    slope = 1.0 + F.strong_convexity * F.radius
    bound = 2 * slope**2 / (F.strong_convexity * (steps + 1))
    assert 0 < np.mean(found) <= bound
    fewer = stochastic_subgradients(F, np.zeros(F.size), n_steps=10)
    assert F.value(fewer) - least > np.mean(found)


def test_subgradients_average_the_points_at_which_they_are_taken():
    F = FiniteSum(problem(n=1)[0].objective, 100.0)
    start = np.full(F.size, 0.1)
    np.testing.assert_allclose(stochastic_subgradients(F, start, n_steps=1), start)
    second = start - F.gradient_of(np.array([0]), start) / F.strong_convexity
    found = stochastic_subgradients(F, start, n_steps=2)
    np.testing.assert_allclose(found, (start + 2 * second) / 3)


def test_by_default_steps_follow_from_the_records(monkeypatch):
    monkeypatch.setattr(stochastic, "_MOST_STOCHASTIC_STEPS", 40)
    for n, solver, given in (
        (3, stochastic_subgradients, {"n_steps": 18}),
        (60, stochastic_subgradients, {"n_steps": 40}),
        (3, katyusha, {"n_epochs": 6}),
    ):
        F, start = problem(n=n)[0], np.zeros(3)
        np.testing.assert_array_equal(solver(F, start), solver(F, start, **given))


def test_katyusha_converges_linearly():
    F, least = problem(n=20, ridge=0.01)
    gaps = [
        F.value(katyusha(F, np.zeros(F.size), n_epochs=epochs)) - least for epochs in (1, 4, 16)
    ]
    assert gaps[0] > 10 * gaps[1] > 100 * gaps[2]
    assert gaps[2] < 1e-6
    # With little curvature the last points count, too.
    F, least = problem(n=20, ridge=0.001)
    assert F.value(katyusha(F, np.zeros(F.size), n_epochs=16)) - least < 1e-4
    # With much curvature the weights of the steps grow beyond 1e100.
    F, least = problem(n=260, ridge=10.0)
    found = F.value(katyusha(F, np.zeros(F.size), n_epochs=1)) - least
    assert 0.0 < found < 0.2 * (F.value(np.zeros(F.size)) - least)


def test_iterates_are_in_the_ball_of_the_minimisers():
    F, _ = problem()
    inside = FiniteSum(F.objective, 0.01)
    for steps in (1, 50):
        w = stochastic_subgradients(inside, np.ones(F.size), n_steps=steps)
        assert np.linalg.norm(w) <= 0.01 * (1 + 1e-12)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", STOCHASTIC)
def test_the_certificate_is_the_same_for_them(name, monkeypatch):
    monkeypatch.setattr(stochastic, "_MOST_STOCHASTIC_STEPS", 1000)
    X, y = make_halfspace(400, 4, margin=0.2, random_state=0)
    options = {"classes": [-1, 1], "data_norm": 1.0, "alpha": 0.05, "preconditioner": False}
    exact = []
    for optimizer in ("auto", name):
        model = OutputPerturbationClassifier(optimizer=optimizer, **options)
        exact.append(releases_of(model, X, y)[-1].value)
    tolerance = 1e-6
    np.testing.assert_allclose(exact[0], exact[1], atol=tolerance)
    monkeypatch.setitem(STOCHASTIC, name, lambda F, start: start + np.inf)  # planted: no answer
    broken = releases_of(OutputPerturbationClassifier(optimizer=name, **options), X, y)[-1].value
    np.testing.assert_allclose(exact[0], broken, atol=tolerance)


@pytest.mark.parametrize("name", STOCHASTIC)
def test_a_tilt_is_no_mean_over_records(name):
    model = OutputPerturbationClassifier(optimizer=name, tilt=0.1, alpha=0.1, classes=[0, 1])
    with pytest.raises(ValueError, match="tilt=0"):
        model.fit(np.eye(4), [0, 1, 0, 1])


def test_which_records_are_read_is_public():
    F, _ = problem(n=20)
    for solver in (partial(stochastic_subgradients, n_steps=20), partial(katyusha, n_epochs=1)):
        np.testing.assert_array_equal(*(solver(F, np.zeros(F.size)) for _ in range(2)))


def test_large_tables_are_read_in_batches(monkeypatch):
    monkeypatch.setattr(stochastic, "_STEPS_PER_PASS", 20)
    monkeypatch.setattr(stochastic, "_MOST_STOCHASTIC_STEPS", 120)
    F, least = problem(n=100)
    for solver in (stochastic_subgradients, katyusha):
        assert F.value(solver(F, np.zeros(F.size))) - least < 0.05
    read, honest = [], FiniteSum.gradient_of
    monkeypatch.setattr(FiniteSum, "gradient_of", lambda F, i, w: read.append(i) or honest(F, i, w))
    stochastic_subgradients(F, np.zeros(F.size), n_steps=1)
    stochastic_subgradients(F, np.zeros(F.size))
    assert list(map(len, read[:2])) == [1, 5]


@pytest.mark.parametrize("runs", [1, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_katyusha_reaches_the_printed_accuracy_and_not_in_a_quarter_of_the_steps(delta, runs):
    n, d, epsilon = 40, 3, 1000.0
    F, least = problem(n, d)
    smooth = {"strong_convexity": F.strong_convexity, "smoothness": F.smoothness}
    slope = 1.0 + F.strong_convexity * F.radius
    steps = katyusha_iterations(n, d, epsilon, delta, lipschitz=slope, radius=F.radius, **smooth)
    kappa = F.smoothness / F.strong_convexity
    noise = published_rate(n, d, epsilon, delta) * n
    accuracy = slope**2 / (F.strong_convexity * n**2) * min(kappa * noise**2, 1.0)

    def gap(steps):
        epochs = -(-steps // (2 * n))
        found = [F.value(katyusha(F, np.zeros(d), n_epochs=epochs, seed=s)) for s in range(runs)]
        return np.mean(found) - least

    assert gap(steps) <= accuracy
    assert gap(steps // 4) > accuracy
