"""Steps on single records: what one of them and all of them reveal, and what they do."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from dp_halfspace import AdaptiveMarginClassifier, PrivacyLedger
from dp_halfspace.datasets import make_halfspace
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.papers import known_margin as module
from dp_halfspace.papers.known_margin import plan_single_records
from dp_halfspace.privacy import (
    PrivacyRecord,
    Repeated,
    SampledGaussian,
    delta,
    noise_source,
)
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.interception import intercept_releases
from dp_halfspace.privacy.mechanisms import NoNoise, SampledGaussianNoise
from dp_halfspace.rows.rows import Rows
from tests.adversarial import neighbouring_pairs, unit
from tests.permits import rows_door
from tests.releases import record_releases

ONES = np.ones(2)
BUDGET = Budget.of(2.0, 1e-3)
SINGLE = AdaptiveMarginClassifier(
    margin=0.3, solver="noisy_sgd", iterate="last", data_norm=1.0, classes=[-1, 1]
)


def plan_of(n, d, budget=BUDGET, margin=0.3, tail_fraction=0.0):
    return plan_single_records(n, d, margin=margin, budget=budget, tail_fraction=tail_fraction)


@pytest.fixture
def any_noise(monkeypatch):
    """Let plans have noise of any size, which takes long to calibrate, where it does not matter."""
    monkeypatch.setattr(module, "_step_mu", lambda *sizes: 0.5)


def scripted(plan, X, codes, answers):
    """All exact values of a run whose releases are given, and what it returns."""
    values, given = [], iter(answers)

    def answer(value, mechanism, source):
        values.append(value.copy())
        return next(given)

    with intercept_releases(answer):
        found = plan.run(rows_door(Rows(X), codes, ONES, *plan.events))
    return np.array(values), found[0]


@pytest.mark.usefixtures("any_noise")
def test_values_of_neighbours_differ_in_one_row_by_the_sensitivity_at_most():
    rng, largest = np.random.default_rng(2), 0.0
    for X, y, other_X, other_y in neighbouring_pairs(rng, 15):
        plan = plan_of(len(X), X.shape[1])
        answers = [3.0 * unit(rng, X.shape[1]) for _ in range(plan.n_steps)]
        one, two = (scripted(plan, *data, answers)[0] for data in ((X, y), (other_X, other_y)))
        assert one.shape == (plan.n_steps, *X.shape)
        moved = np.linalg.norm(one - two, axis=2)
        assert not moved[:, 1:].any()  # to the last bit
        largest = max(largest, moved.max() / plan.mechanism.sensitivity)
    assert 0.999 < largest <= 1.0  # so half of it fails


def measured(mu, rate, epsilon, others, old, new):
    """Integrate the profile of a step: the replaced record pulls by `old`, then by `new`."""
    o = np.linspace(-12.0, 12.0 + mu, 10_001)
    rest = (1.0 - rate) * norm.pdf(o, others)
    excess = rest + rate * norm.pdf(o, old)
    excess = excess - math.exp(epsilon) * (rest + rate * norm.pdf(o, new))
    return float(np.maximum(excess, 0.0).sum() * (o[1] - o[0]))


@pytest.mark.parametrize("mu", [0.3, 2.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.005, 0.03])
def test_no_neighbour_exceeds_the_profile_of_a_step_and_one_attains_it(mu, epsilon):
    places = np.linspace(0.0, mu, 3)
    worst = max(
        measured(mu, 0.02, epsilon, *three) for three in itertools.product(places, repeat=3)
    )
    bound = delta([SampledGaussian(50, mu)], epsilon)
    assert worst <= bound * (1 + 1e-6) + 1e-12
    if bound > 1e-9:
        assert worst > 0.99 * bound
        # Planted: adding a record, which moves it half as far; twice the records.
        assert worst > delta([SampledGaussian(50, mu / 2)], epsilon) * (1 + 1e-6)
        assert worst > delta([SampledGaussian(100, mu)], epsilon) * (1 + 1e-6)


def test_drawn_rows_are_equally_likely_and_have_the_noise():
    value = 100.0 * np.arange(5.0)[:, None] * np.ones(2)
    noise = SampledGaussianNoise(5, 2.0, 1.0)
    source = noise_source(None)
    drawn = np.array([noise.perturb(value, source) for _ in range(2000)])
    rows = np.rint(drawn.mean(axis=1) / 100.0).astype(int)
    assert np.abs(np.bincount(rows, minlength=5) - 400).max() < 5 * math.sqrt(2000 * 0.16)
    errors = (drawn - value[rows]) / noise.sigma
    assert abs(errors.mean()) < 5 / math.sqrt(4000)
    assert abs(errors.std() - 1.0) < 5 / math.sqrt(8000)
    for table in (value[:4], np.ones((6, 2))):
        with pytest.raises(RuntimeError, match="one row for each record"):
            noise.perturb(table, source)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("n", "epsilon"), [(1, 1.0), (2, 1.0), (30, 0.3), (60, 1.0), (60, 8.0)])
def test_all_steps_spend_the_budget_and_no_more(n, epsilon):
    small = 1e-3
    plan = plan_of(n, 3, Budget.of(epsilon, small))
    (event,) = plan.events
    assert event == Repeated(SampledGaussian(n, plan.mechanism.mu), max(n * n - 1, 1))
    PrivacyRecord(epsilon=epsilon, delta=small, events=plan.events, noise="os")
    assert delta(plan.events, epsilon) <= small
    more = [Repeated(SampledGaussian(n, 1.01 * plan.mechanism.mu), event.count)]
    assert delta(more, epsilon) > small or plan.mechanism.mu == module.LARGEST_SAMPLED_MU
    assert plan.mechanism.sigma >= 2.0 / plan.mechanism.mu


@pytest.mark.usefixtures("any_noise")
def test_steps_are_those_of_the_listing():
    """Lines 13 to 16, by hand, for the releases of a run."""
    X, y = make_halfspace(12, 3, margin=0.3, random_state=1)
    plan = plan_of(12, 3)
    codes = (y == 1).astype(int)
    with record_releases() as releases:
        found = plan.run(rows_door(Rows(X), codes, ONES, *plan.events))
    assert len(releases) == 143
    w, gamma = np.zeros(3), 0.3
    scale = 2.0 / math.sqrt(1 + 3 * plan.mechanism.sigma**2)
    for t, release in enumerate(releases, start=1):
        pulls = (y * (X @ w) < 0.96 * gamma)[:, None] * y[:, None] * X
        np.testing.assert_allclose(release.value, pulls, atol=1e-12)
        w = w + scale / math.sqrt(t) * release.released
        w /= max(1.0, np.linalg.norm(w))
    np.testing.assert_allclose(found[0], w, rtol=1e-9)


@pytest.mark.usefixtures("any_noise")
def test_the_mean_is_that_of_the_last_share_of_the_iterates():
    X, y = make_halfspace(8, 2, margin=0.3, random_state=1)
    codes, runs = (y == 1).astype(int), {}
    for share in (0.0, 0.5, 1.0):
        plan = plan_of(8, 2, tail_fraction=share)
        answers = np.random.default_rng(0).standard_normal((plan.n_steps, 2))
        runs[share] = scripted(plan, X, codes, answers)[1]
    w, iterates = np.zeros(2), []
    scale = 2.0 / math.sqrt(1 + 2 * plan.mechanism.sigma**2)
    for t, answer in enumerate(answers, start=1):
        w = w + scale / math.sqrt(t) * answer
        w = w / max(1.0, np.linalg.norm(w))
        iterates.append(w)
    np.testing.assert_allclose(runs[0.0], iterates[-1], rtol=1e-12)
    np.testing.assert_allclose(runs[0.5], np.mean(iterates[-32:], axis=0), rtol=1e-12)
    np.testing.assert_allclose(runs[1.0], np.mean(iterates, axis=0), rtol=1e-12)


@pytest.mark.usefixtures("any_noise")
def test_weights_of_classes_shorten_rows():
    X, y = make_halfspace(6, 2, margin=0.3, random_state=1)
    plan, codes = plan_of(6, 2), (y == 1).astype(int)
    with record_releases() as releases:
        plan.run(rows_door(Rows(X), codes, np.array([0.25, 1.0]), *plan.events))
    np.testing.assert_allclose(
        np.linalg.norm(releases[0].value, axis=1), np.where(codes == 1, 1.0, 0.25)
    )


def test_without_noise_the_mean_row_is_followed():
    X, y = make_halfspace(60, 3, margin=0.3, random_state=0)
    model = AdaptiveMarginClassifier(**{**SINGLE.get_params(), "epsilon": math.inf}).fit(X, y)
    assert model.score(X, y) == 1.0
    assert isinstance(plan_of(5, 2, Budget.of(math.inf, 0.0)).mechanism, NoNoise)


@pytest.mark.parametrize("n", [12, pytest.param(30, marks=pytest.mark.slow)])
def test_it_learns_and_the_record_says_what_was_spent(n):
    X, y = make_halfspace(n, 3, margin=0.4, random_state=0)
    ledger = PrivacyLedger(epsilon=8.0, delta=1e-2)
    model = AdaptiveMarginClassifier(
        **{**SINGLE.get_params(), "epsilon": 8.0, "delta": 1e-3, "ledger": ledger}
    )
    planned = model.plan(X, y)
    model.fit(X, y)
    assert n < 30 or model.score(X, y) > 0.8  # of five fits about one is at 0.9
    assert model.privacy_.events == planned.events
    (event,) = model.privacy_.events
    assert event.count == n * n - 1
    assert f"one secret record of {n}" in model.privacy_.summary()
    assert planned.to_dp_events()[0]["event"]["type"] == "UnsupportedDpEvent"
    with pytest.raises(BudgetError):
        ledger.charge(planned)


@pytest.mark.slow
def test_beside_column_scales_and_balanced_classes():
    X, y = make_halfspace(30, 2, margin=0.4, random_state=0)
    common = {"margin": 0.3, "solver": "noisy_sgd", "classes": [-1, 1], "epsilon": 4.0}
    scaled = AdaptiveMarginClassifier(**common).plan(X, y)
    balanced = AdaptiveMarginClassifier(class_weight="balanced", data_norm=1.0, **common)
    for record in (scaled, balanced.plan(X, y)):
        assert record.events[-1].event.n_records == 30
        assert delta(record.events, 4.0) <= record.delta


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": [-1, 0, 1]}, "Only binary"),
        ({"delta": 0.0}, "noisy_sgd"),
        ({"margin": [0.1, 0.3], "selection": "gaussian"}, "selection='gaussian'"),
    ],
)
def test_refusals(change, message):
    X, y = make_halfspace(20, 2, margin=0.3, random_state=0)
    model = AdaptiveMarginClassifier(**{**SINGLE.get_params(), **change})
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_too_many_records_are_refused():
    with pytest.raises(ValueError, match="more than 3000 records"):
        plan_of(3001, 2)
