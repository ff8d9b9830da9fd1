"""The ways to fit: what they cost, that the noise drawn is that noise, what is public."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import chi2

from dp_halfspace import privacy
from dp_halfspace.algorithms.fits.margin_training import (
    Problem,
    asked_margin,
    plan_gaussian_training,
    plan_training,
)
from dp_halfspace.algorithms.gradient.margin_gd import default_margin
from dp_halfspace.algorithms.gradient.noisy_gd import plan_descent
from dp_halfspace.datasets import make_halfspace
from dp_halfspace.optim.design.rows import unit_rows
from dp_halfspace.optim.objectives.adversary import Adversary
from dp_halfspace.privacy import PrivacyRecord, Pure, Repeated, authorise, noise_source
from dp_halfspace.privacy.mechanisms import GaussianNoise, recording
from dp_halfspace.projection import PROJECTIONS, jl_dimension, jl_margin
from tests.adversarial import neighbouring_pairs

PROBLEM = Problem(
    n_samples=400,
    n_features=6,
    n_classes=2,
    is_sparse=False,
    intercept=1.0,
    projection="auto",
    n_components=None,
    averaged=True,
    seed=None,
)
WAYS = [
    ("noisy_gd", None),
    ("noisy_gd", 0.1),
    ("objective_perturbation", None),
    ("objective_perturbation", 0.1),
    ("phased_prox", None),
    ("phased_prox", 0.1),
]
every_way = pytest.mark.parametrize(("solver", "margin"), WAYS)


def permit_for(training, epsilon, delta):
    noise = "none" if math.isinf(epsilon) else "os"
    record = PrivacyRecord(epsilon=epsilon, delta=delta, events=training.events, noise=noise)
    return authorise(record, noise_source(None))


def fitted(training, X, codes, epsilon, delta, weights=None):
    rows = unit_rows(X, 1.0, training.bias, training.linear_map)
    weights = np.ones(codes.max() + 1 if codes.max() > 0 else 2) if weights is None else weights
    permit = permit_for(training, epsilon, delta)
    with recording() as releases:
        return training.plan.run(rows, codes, weights, permit), releases


def flat(events):
    """Events with their multiplicities."""
    counts = Counter()
    for event in events:
        count = 1
        while isinstance(event, Repeated):
            count, event = count * event.count, event.event
        counts[event] += count
    return counts


# -- cost ----------------------------------------------------------------------------


@every_way
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-9), (20.0, 1e-3)])
def test_events_use_the_whole_budget_and_no_more(solver, margin, epsilon, delta):
    training = plan_training(PROBLEM, solver, margin, epsilon, delta)
    spent = privacy.delta(training.events, epsilon)
    assert delta * (1 - 1e-3) <= spent <= delta * (1 + 2.0**-38)
    assert training.solver == solver


@pytest.mark.parametrize("margin", [None, 0.1])
@pytest.mark.parametrize("solver", ["noisy_gd", "objective_perturbation"])
def test_pure_epsilon_is_a_perturbed_objective(solver, margin):
    training = plan_training(replace(PROBLEM, n_samples=4000), solver, margin, 1.0, 0.0)
    assert training.solver == "objective_perturbation"
    assert privacy.delta(training.events, 1.0) == 0
    assert privacy.epsilon(training.events, 0.0) == pytest.approx(1.0, rel=1e-6)


@every_way
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_infinite_epsilon_charges_nothing_and_learns(solver, margin, delta):
    X, y = make_halfspace(400, 6, margin=0.2, random_state=0)
    codes = (y > 0).astype(int)
    training = plan_training(PROBLEM, solver, margin, math.inf, delta)
    assert set(flat(training.events)) == {Pure(math.inf)}
    a, b = (fitted(training, X, codes, math.inf, delta)[0] for _ in range(2))
    if solver != "phased_prox":
        np.testing.assert_array_equal(a, b)
    scores = unit_rows(X, 1.0, training.bias).margins(a[0])
    assert np.mean((scores > 0) == (codes == 1)) > 0.95


def test_a_share_of_mu_is_taken_as_it_is():
    for solver, margin in (("noisy_gd", None), ("noisy_gd", 0.2), ("phased_prox", 0.2)):
        events = plan_gaussian_training(PROBLEM, solver, margin, 0.25).events
        assert privacy.epsilon(events, 1e-6) == pytest.approx(
            privacy.gdp_epsilon(0.25, 1e-6), rel=1e-9
        )


# -- noise ---------------------------------------------------------------------------


def assert_releases_match_the_events(training, epsilon=2.0, delta=1e-5):
    """Mechanisms are those charged, their scale is sensitivity / mu, the noise has it."""
    X, y = make_halfspace(400, 6, margin=0.2, random_state=0)
    _, releases = fitted(training, X, (y > 0).astype(int), epsilon, delta)
    made = Counter(r.mechanism.event for r in releases)
    charged = flat(training.events)
    if training.solver == "phased_prox":
        assert list(made) == list(charged)
    else:
        assert made == charged
    total, degrees = 0.0, 0
    for release in releases:
        mechanism = release.mechanism
        assert isinstance(mechanism, GaussianNoise)
        assert mechanism.event.mu == mechanism.mu
        noise = np.ravel(release.released - release.value)
        total += float(noise @ noise) * (mechanism.mu / mechanism.sensitivity) ** 2
        degrees += noise.size
    assert min(chi2.cdf(total, degrees), chi2.sf(total, degrees)) > 1e-9


@pytest.mark.parametrize(
    ("solver", "margin"), [("noisy_gd", None), ("noisy_gd", 0.1), ("phased_prox", 0.1)]
)
def test_drawn_noise_is_the_noise_that_was_charged(solver, margin):
    assert_releases_match_the_events(plan_training(PROBLEM, solver, margin, 2.0, 1e-5))


@pytest.mark.parametrize("factor", [0.5, 1 / math.sqrt(2)])
def test_noise_test_sees_less_of_it(monkeypatch, factor):
    """Planted: sigma / 2, and the noise of one step of two."""
    honest = GaussianNoise.perturb

    def cheat(self, value, source):
        return value + factor * (honest(self, value, source) - value)

    monkeypatch.setattr(GaussianNoise, "perturb", cheat)
    with pytest.raises(AssertionError):
        assert_releases_match_the_events(plan_training(PROBLEM, "noisy_gd", 0.1, 2.0, 1e-5))


@pytest.mark.parametrize("solver", ["noisy_gd", "phased_prox"])
def test_first_release_of_neighbours_is_within_its_sensitivity(solver, record_property):
    """Intercept, normalisation and all: later releases start from different points."""
    worst = 0.0
    for seed, (X, y, other_X, other_y) in enumerate(
        neighbouring_pairs(np.random.default_rng(0), 24)
    ):
        sizes = {"n_samples": len(y), "n_features": X.shape[1], "seed": seed, "intercept": None}
        training = plan_training(replace(PROBLEM, **sizes), solver, 1.0, 8.0, 1e-4)
        a, b = (
            fitted(training, features, labels, 8.0, 1e-4, np.ones(2))[1]
            for features, labels in ((X, y), (other_X, other_y))
        )
        assert [r.mechanism for r in a] == [r.mechanism for r in b]
        change = np.linalg.norm(a[0].value - b[0].value)
        worst = max(worst, float(change) / a[0].mechanism.sensitivity)
    record_property("measured / bound", float(worst))
    assert 0.99 < worst <= 1


# -- public objects ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["rademacher", "hadamard", "auto", None])
@pytest.mark.parametrize("n_components", [None, 3, 50])
@pytest.mark.parametrize("solver", ["noisy_gd", "phased_prox"])
def test_projection_that_is_drawn(kind, n_components, solver):
    problem = replace(PROBLEM, projection=kind, n_components=n_components, seed=1)
    training = plan_gaussian_training(problem, solver, 0.3, 1.0)
    # A map to as many columns could only lose margin: the identity stands for it.
    if kind is None or n_components != 3:
        assert training.linear_map is None
        return
    drawn = PROJECTIONS["rademacher" if kind == "auto" else kind](6, 2, np.random.default_rng(0))
    assert type(training.linear_map) is type(drawn)
    assert training.linear_map.n_features_in == 6
    assert training.linear_map.n_components == 3
    assert problem.n_columns(training.linear_map) == 4
    again = plan_gaussian_training(problem, solver, 0.3, 1.0).linear_map
    np.testing.assert_array_equal(training.linear_map.to_array(), again.to_array())
    free = replace(problem, seed=None)
    # Several: two Hadamard maps of so few columns are equal with chance 1 / 3584.
    maps = [plan_gaussian_training(free, solver, 0.3, 1.0).linear_map for _ in range(6)]
    assert len({drawn.to_array().tobytes() for drawn in maps}) > 1


def test_projection_of_many_columns_keeps_what_is_proved():
    wide = replace(PROBLEM, n_features=4000, projection="rademacher", n_samples=50)
    training = plan_gaussian_training(wide, "noisy_gd", 0.5, 1.0)
    k = jl_dimension(0.5, 50)
    assert training.linear_map.n_components == k < 4000
    # The step size is that of the margin which is kept, the attribute that which was asked.
    assert training.margin == 0.5
    kept = jl_margin(0.5)
    assert 0.5 / 3 < kept < 0.5
    direct = plan_gaussian_training(
        replace(wide, n_features=k, projection=None), "noisy_gd", kept, 1.0
    )
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
    problem = replace(PROBLEM, **{"n_samples": 14_999, **changed})
    training = plan_training(problem, solver, margin, 0.1, 0.0)
    assert training.solver == chosen
    assert 0.1 * (1 - 1e-6) <= privacy.epsilon(training.events, 0.0) <= 0.1 * (1 + 1e-12)


def test_automatic_projection_for_pure_epsilon_on_many_columns():
    wide = replace(PROBLEM, n_samples=4000, n_features=2000)
    assert plan_training(wide, "noisy_gd", None, 1.0, 0.0).linear_map.n_components == 150
    assert plan_training(wide, "noisy_gd", None, 1.0, 1e-6).linear_map is None
    without = replace(wide, projection=None)
    assert plan_training(without, "noisy_gd", None, 1.0, 0.0).linear_map is None


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kind", ["rademacher", "hadamard", None])
@pytest.mark.parametrize("intercept", [None, 1.0])
def test_planned_sizes_are_those_of_the_rows(form, kind, intercept):
    """They enter the bound on rounding errors."""
    X = form(np.random.default_rng(0).random((9000, 40)))
    problem = Problem(9000, 40, 2, sparse.issparse(X), intercept, kind, 7, True, None)
    training = plan_gaussian_training(problem, "noisy_gd", 0.1, 1.0)
    rows = unit_rows(X, 1.0, training.bias, training.linear_map)
    n_samples, n_columns, block_rows = problem.sizes(training.linear_map).values()
    assert rows.shape == (n_samples, n_columns)
    assert rows.block_rows == block_rows
    assert rows.lengths().max() <= 1 + 1e-15


def test_sizes_test_sees_the_blocks_of_the_unprojected_rows():
    problem = Problem(9000, 4000, 2, False, None, "rademacher", 7, True, None)
    assert problem.sizes()["block_rows"] != problem.sizes(problem.drawn(None))["block_rows"]


def test_order_of_the_pass_is_public_and_seeded():
    """Drawn before the data are read: the same for the same seed, fresh without one."""
    X, y = make_halfspace(400, 6, margin=0.2, random_state=0)
    codes = (y > 0).astype(int)

    def first_value(seed):
        training = plan_training(replace(PROBLEM, seed=seed), "phased_prox", 0.1, 2.0, 1e-5)
        return fitted(training, X, codes, 2.0, 1e-5)[1][0].value

    np.testing.assert_array_equal(first_value(3), first_value(3))
    assert not np.array_equal(first_value(3), first_value(4))
    assert not np.array_equal(first_value(None), first_value(None))


@pytest.mark.parametrize("margin", [None, 0.1])
def test_last_iterate_has_the_same_price(margin):
    last = replace(PROBLEM, averaged=False)
    a, b = (plan_training(p, "noisy_gd", margin, 1.0, 1e-6) for p in (PROBLEM, last))
    assert a.events == b.events
    X, y = make_halfspace(400, 6, margin=0.2, random_state=0)
    codes = (y > 0).astype(int)
    exact = [
        fitted(plan_training(p, "noisy_gd", margin, math.inf, 0.0), X, codes, math.inf, 0.0)[0]
        for p in (PROBLEM, last)
    ]
    assert not np.array_equal(*exact)


# -- the margin that is reported -----------------------------------------------------


def test_known_margin_is_reported():
    for solver in ("noisy_gd", "objective_perturbation", "phased_prox"):
        training = plan_training(PROBLEM, solver, 0.07, 1.0, 1e-6)
        assert asked_margin(training, np.ones((1, 7))) == 0.07
    automatic = plan_training(PROBLEM, "phased_prox", None, 1.0, 1e-6)
    expected = default_margin(400, 7, privacy.gdp_mu(1.0, 1e-6))
    assert asked_margin(automatic, np.ones((1, 7))) == expected


def test_automatic_margin_is_the_shift_over_the_norm():
    training = plan_training(PROBLEM, "noisy_gd", None, 1.0, 1e-6)
    w = np.zeros((1, 7))
    assert asked_margin(training, w) == 1.0
    w[0, :2] = 3.0, 4.0
    assert asked_margin(training, 10 * w) == pytest.approx(training.shift / 50)
    assert asked_margin(training, 1e-3 * w) == 1.0
    # Several classes: the largest difference, here of the first and the last.
    classes = np.array([[3.0, 0.0], [0.0, 0.5], [-3.0, 8.0]])
    assert asked_margin(training, classes) == pytest.approx(training.shift / 10)


def test_the_noise_against_an_attack_is_that_of_moved_rows():
    """``docs/proofs/noisy_gradient.md``, Lemma 3: the attack raises the allowance for rounding."""
    attack = Adversary(0.2, 2, PROBLEM.n_features)
    plan = plan_gaussian_training(replace(PROBLEM, attack=attack), "noisy_gd", None, 1.0).plan
    mu = (1.0 - 2.0**-40) * 1.0
    steps, sizes = plan.descent.steps, PROBLEM.sizes()
    honest = plan_descent(steps, **sizes, n_outputs=1, mu=mu, attack=plan.adversary)
    blind = plan_descent(steps, **sizes, n_outputs=1, mu=mu)
    assert 0.0 < plan.adversary.radius < attack.radius
    assert plan.descent.mechanism == honest.mechanism
    assert plan.descent.mechanism.sensitivity > blind.mechanism.sensitivity
