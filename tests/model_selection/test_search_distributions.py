"""Distributions of what a search does inside: runs, candidates, scores, choice.

Each of them carries the guarantee: a number of runs that is fixed, scores without their noise or
the largest score in place of a random choice void it, and nothing else shows. The candidates here
are classifiers whose number of correct predictions is known, so every distribution can be written
down.
"""

import itertools
import math
from collections import Counter
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.base import BaseEstimator, ClassifierMixin

from dp_halfspace import PrivateSearchCV, _budget, privacy
from dp_halfspace._params import resolved_delta
from dp_halfspace.model_selection import _search_plan as plan_module
from dp_halfspace.model_selection import _search_runs as candidates
from dp_halfspace.model_selection import search as search_module
from dp_halfspace.privacy import (
    Exponential,
    Gaussian,
    Pure,
    RandomStopping,
    mechanisms,
)
from dp_halfspace.privacy.interception import intercept_releases
from dp_halfspace.privacy.mechanisms import authorise
from dp_halfspace.privacy.random_stopping import RunCountDistribution
from dp_halfspace.privacy.randomness import noise_kind, noise_source
from dp_halfspace.privacy.record import PrivacyRecord
from tests.privacy.oracles import slope
from tests.releases import record_releases

# Below the 1e-6 that is meant: the chi-square distribution is not exact in its tail.
FALSE_ALARM = 1e-8
N = 400
RUNS = []


class Known(ClassifierMixin, BaseEstimator):
    """Right about the first records, and about record 0 if its label is as expected."""

    def __init__(self, **params):
        common = {"epsilon": 1.0, "delta": "auto", "ledger": None, "random_state": None}
        common["classes"] = None
        vars(self).update({"hits": 0, "expected": 0, "share": 1.0, **common, **params})

    def get_params(self, deep=True):
        return {k: v for k, v in vars(self).items() if not k.endswith("_")}

    def __sklearn_clone__(self):
        return Known(**self.get_params())

    def plan(self, X, y):
        delta = resolved_delta(self.delta, len(y))
        if math.isinf(self.epsilon) or delta == 0.0:
            event = Pure(self.epsilon)
        else:
            event = Gaussian(self.share * privacy.gdp_mu(self.epsilon, delta))
        return PrivacyRecord(
            epsilon=self.epsilon,
            delta=delta,
            adjacency="replace-one",
            events=(event,),
            noise=noise_kind(self.random_state, self.epsilon),
            public={"n_samples": len(y), "classes": (0, 1)},
        )

    def _plans(self, X, y):
        return lambda epsilon: Known(**{**self.get_params(), "epsilon": epsilon}).plan(X, y)

    def fit(self, X, y):
        record = self.plan(X, y)
        authorise(record, noise_source(self.random_state), self.ledger)
        RUNS.append(self)
        self.classes_ = np.array([0, 1])
        self.privacy_ = record
        return self

    def predict(self, X):
        labels, place = np.asarray(X, dtype=int).T
        right = np.where(place == 0, labels == self.expected, place <= self.hits)
        return np.where(right, labels, 1 - labels)


@pytest.fixture(autouse=True)
def admitted(monkeypatch):
    """Searches take classifiers of the package alone, and this stands for one."""
    honest = search_module.is_private
    monkeypatch.setattr(search_module, "is_private", lambda k: issubclass(k, Known) or honest(k))


def records(first=0):
    """Rows that hold their label and their place; record 0 has the given label."""
    y = np.arange(N) % 2
    y[0] = first
    return np.column_stack([y, np.arange(N)]), y


# One record moves the first two candidates in opposite directions.
GRID = [
    {"hits": [200], "expected": [0]},
    {"hits": [200], "expected": [1]},
    {"hits": [203], "expected": [0]},
    {"hits": [190], "expected": [0]},
    {"hits": [196], "expected": [1]},
]


def scores(first=0):
    return np.array([each["hits"][0] + (each["expected"][0] == first) for each in GRID], float)


def search(**params):
    return PrivateSearchCV(Known(), GRID, **{"epsilon": 2.0, "delta": 1e-3, **params})


@pytest.fixture(autouse=True)
def no_run_was_seen(plans_are_made_once):
    """Hundreds of fits share a plan, and each test begins to count runs."""
    RUNS.clear()


def plan_of(model):
    X, y = records()
    plans = [
        model._candidate({**each, "delta": model.delta})._plans(X, y) for each in model._grid()
    ]
    given = plan_module.Search(plans, N, model.epsilon, model.delta)
    return plan_module.plan_search(given, model.selection, model.miss)


def pvalue(counts, distribution, draws):
    """Chi-square test, what is rare in one class."""
    expected = draws * np.asarray(distribution)
    rare = expected < 20
    merged = np.append(expected[~rare], expected[rare].sum())
    seen = np.append(np.asarray(counts)[~rare], np.asarray(counts)[rare].sum())
    if merged[-1] < 20:
        merged[-2:] = [merged[-2:].sum(), 0]
        seen[-2:] = [seen[-2:].sum(), 0]
        merged, seen = merged[:-1], seen[:-1]
    return stats.chisquare(seen, merged * seen.sum() / merged.sum()).pvalue


def chosen(draws, first=0, **params):
    """How often each candidate is released, and all numbers of runs and all candidates run."""
    X, y = records(first)
    won, counts, tried = Counter(), [], Counter()
    for _ in range(draws):
        RUNS.clear()
        fitted = search(**params).fit(X, y)
        won[name_of(fitted.best_params_)] += 1
        counts.append(len(RUNS))
        tried.update(name_of(vars(run)) for run in RUNS)
    order = [name_of({k: v[0] for k, v in each.items()}) for each in GRID]
    assert set(won) | set(tried) <= set(order)
    return [won[name] for name in order], counts, [tried[name] for name in order]


def name_of(params):
    return params["hits"], params["expected"]


def distribution_of_stopping(distribution, mu, values):
    """Distribution of the best of a random number of runs with noisy scores: (b) of Theorem 1."""
    values = np.asarray(values)
    low, high = values.min() - 10 / mu, values.max() + 10 / mu
    s = np.linspace(low, high, 20_001)
    below = stats.norm.cdf((s[:, None] - values) * mu).mean(axis=1)
    density = stats.norm.pdf((s[:, None] - values) * mu) * mu / len(values)
    won = integrate.trapezoid(slope(distribution, below)[:, None] * density, s, axis=0)
    assert won.sum() == pytest.approx(1.0, abs=1e-6)
    return won


def distribution_of_exponential(epsilon, values):
    weights = np.exp(0.5 * epsilon * (np.asarray(values) - max(values)))
    return weights / weights.sum()


# -- random stopping --------------------------------------------------------------------------

# A large epsilon makes the noise of a score as large as the differences of scores.
LOUD = {"selection": "random_stopping", "epsilon": 4.0, "miss": 0.3}


@cache
def stopping_plan():
    plan = plan_of(search(**LOUD))
    # The noise matters: neither does the best always win, nor are all alike.
    distribution = distribution_of_stopping(plan.distribution, plan.choice.mu, scores())
    assert 0.25 < distribution.max() < 0.7
    return plan


@pytest.mark.slow
def test_random_stopping_has_the_distribution_of_the_proof():
    plan, draws = stopping_plan(), 700
    for first in (0, 1):
        won, counts, tried = chosen(draws, first, **LOUD)
        exact = distribution_of_stopping(plan.distribution, plan.choice.mu, scores(first))
        number = np.bincount(counts, minlength=plan.distribution.k_max + 1)[1:]
        assert len(number) == plan.distribution.k_max
        found = {
            "released": pvalue(won, exact, draws),
            "number of runs": pvalue(number, plan.distribution.probabilities, draws),
            "tried": stats.chisquare(tried).pvalue,
        }
        assert min(found.values()) > FALSE_ALARM, found


def test_the_number_of_runs_that_is_drawn_and_noisy_scores_decide(monkeypatch):
    """Any of five runs may have the highest noisy score, whatever the exact scores are."""
    monkeypatch.setattr(RunCountDistribution, "draw", lambda self, source: 5)
    for highest in range(5):
        RUNS.clear()
        numbers = itertools.count()

        def answer(value, mechanism, source, highest=highest, numbers=numbers):
            return np.array([float(next(numbers) == highest)])

        model = search(selection="random_stopping")
        with intercept_releases(answer):
            model.fit(*records())
        assert len(RUNS) == next(numbers) == 5
        assert model.best_estimator_ is RUNS[highest]


def caught(test, **params):
    with pytest.raises(AssertionError):
        test(**params)


def order_of(seed):
    """The candidates that run with a seed."""
    RUNS.clear()
    search(random_state=seed, **LOUD).fit(*records())
    return [name_of(vars(run)) for run in RUNS]


def test_every_run_draws_randomness_of_its_own(monkeypatch):
    X, y = records()
    seeds, streams, honest = [], [], candidates.SeededBytes

    def keep(seed, label):
        streams.append((seed, label))
        return honest(seed, label)

    monkeypatch.setattr(candidates, "SeededBytes", keep)
    for seed in range(8):
        RUNS.clear()
        with pytest.warns(match="random_state"):
            fitted = search(random_state=seed, **LOUD).fit(X, y)
        assert fitted.best_estimator_.random_state == seed
        assert fitted.best_estimator_ in RUNS
        seeds += [run.random_state for run in RUNS if run is not fitted.best_estimator_]
    assert len(set(seeds)) == len(seeds) > 8
    assert len(set(streams)) == len(streams) > 2 * 8
    assert not set(seeds) & set(range(8))
    RUNS.clear()
    search(**LOUD).fit(X, y)
    assert {run.random_state for run in RUNS} == {None}
    with pytest.warns(match="random_state"):
        orders = [order_of(seed) for seed in (*range(8), *range(8))]
    assert orders[:8] == orders[8:]


# -- the exponential mechanism ------------------------------------------------------------------


SHARP = {"selection": "exponential", "epsilon": 4.0}


@pytest.mark.parametrize("params", [SHARP, {"selection": "gaussian", "epsilon": 4.0}])
def test_a_released_choice_among_the_exact_scores_decides(params):
    """Its distribution is that of the mechanism, which has tests of its own."""
    choice = plan_of(search(**params)).choice
    for first, best in itertools.product((0, 1), range(len(GRID))):
        seen = []

        def answer(value, mechanism, source, best=best, seen=seen):
            seen.append((value.tolist(), mechanism))
            return np.array([float(best)]) if params is SHARP else np.eye(len(GRID))[best]

        RUNS.clear()
        with intercept_releases(answer):
            fitted = search(**params).fit(*records(first))
        assert seen == [(scores(first).tolist(), choice)]
        assert len(RUNS) == len(GRID)
        assert fitted.best_estimator_ is RUNS[best]


# -- neighbours -------------------------------------------------------------------------


def divergence(p, q, epsilon):
    return max(np.maximum(a - math.exp(epsilon) * b, 0.0).sum() for a, b in ((p, q), (q, p)))


def test_exact_distributions_of_neighbours_are_within_the_charge():
    """The distributions above, integrated: what the choice alone gives away."""
    for params in (LOUD, SHARP):
        plan = plan_of(search(**params))
        if plan.distribution is None:
            distributions = [
                distribution_of_exponential(plan.choice.epsilon, scores(first)) for first in (0, 1)
            ]
        else:
            distributions = [
                distribution_of_stopping(plan.distribution, plan.choice.mu, scores(first))
                for first in (0, 1)
            ]
        for epsilon in (0.0, 0.5, 2.0):
            assert divergence(*distributions, epsilon) <= privacy.delta(plan.events, epsilon)


# -- what is charged for the distributions ---------------------------------------------------------


SHARES = (1.0, 0.5, 0.9, 0.2, 0.7)


def assert_charge_covers_the_runs(**params):
    """Every candidate spends another share: the dearest run sets the price of all."""
    grid = [{**each, "share": [share]} for each, share in zip(GRID, SHARES, strict=True)]
    model = search(**params).set_params(param_grid=grid)
    plan = plan_of(model)
    X, y = records()
    budget = {"epsilon": plan.epsilon, "delta": model.delta}
    runs = [model._candidate({**params, **budget}) for params in model._grid()]
    spent = [run.plan(X, y).events for run in runs]
    fitted = model.fit(X, y)
    assert fitted.privacy_.events == plan.events
    if plan.distribution is None:
        assert Counter(plan.events) == Counter(
            [*(event for events in spent for event in events), Exponential(plan.choice.epsilon)]
        )
        assert privacy.delta(plan.events, model.epsilon) <= model.delta
        return
    runs = [math.hypot(events[0].mu, plan.choice.mu) for events in spent]
    (event,) = plan.events
    assert max(runs) <= event.mu <= max(runs) * (1 + 1e-9)
    assert event == privacy.random_stopping_event(plan.distribution, event.mu)
    # Not only is it within the budget: next to nothing is left.
    assert 0.99 * model.delta <= privacy.delta(plan.events, model.epsilon) <= model.delta


@pytest.mark.parametrize("params", [LOUD, SHARP])
def test_the_charge_covers_the_dearest_run(params):
    assert_charge_covers_the_runs(**params)


@pytest.mark.parametrize("params", [LOUD, SHARP])
def test_a_search_uses_up_what_it_was_permitted(monkeypatch, params):
    """One selection for one charge: of random stopping, nothing is left to draw from again."""
    permits = []

    def keep(*given):
        permits.append(authorise(*given))
        return permits[-1]

    monkeypatch.setattr(_budget, "authorise", keep)
    search(**params).fit(*records())
    (permit,) = permits
    selections = [e for e in permit.record.events if isinstance(e, RandomStopping | Exponential)]
    assert len(selections) == 1
    for event in selections:
        with pytest.raises(RuntimeError, match="was not charged"):
            permit.consume(event)


@pytest.fixture
def wrong_plans(monkeypatch):
    """Plans that no other test may share."""
    monkeypatch.setattr(search_module, "plan_search", plan_module.plan_search)


@pytest.mark.usefixtures("wrong_plans")
def test_that_test_sees_the_cheapest_run_charged(monkeypatch):
    monkeypatch.setattr(plan_module, "max", min, raising=False)
    caught(assert_charge_covers_the_runs, **LOUD)


@pytest.mark.usefixtures("wrong_plans")
def test_that_test_sees_scores_that_are_not_charged(monkeypatch):
    monkeypatch.setattr(
        plan_module,
        "math",
        type("M", (), {"hypot": lambda a, b: a, "sqrt": math.sqrt, "isinf": math.isinf}),
    )
    caught(assert_charge_covers_the_runs, **LOUD)


@pytest.mark.parametrize("kind", ["pure", "gaussian"])
def test_scores_are_perturbed_by_what_was_charged(kind):
    """The scale of the noise of one score is that of the mechanism that the plan accounts for."""
    delta = 0.0 if kind == "pure" else 1e-3
    plan = plan_of(search(**{**LOUD, "delta": delta}))
    if kind == "gaussian":
        assert isinstance(plan.choice, mechanisms.GaussianNoise)
        assert plan.choice.sigma >= plan.choice.sensitivity / plan.choice.mu * (1 - 1e-12)
    else:
        assert isinstance(plan.choice, mechanisms.L2LaplaceNoise)
        assert plan.choice.scale >= plan.choice.sensitivity / plan.choice.epsilon
        each = plan.epsilon + plan.choice.epsilon
        assert (2.0 + plan.distribution.eta) * each <= 4.0
        assert (2.0 + plan.distribution.eta) * each >= 4.0 * (1 - 1e-5)


# -- the sum of the scores ------------------------------------------------------------------------


def worst_change_of_a_sum(n):
    """Change of a rounded sum when one number moves from 0 to 1, past the next power of two.

    There the spacing of floats doubles, and a fraction that was exact is rounded up.
    """
    power = 2 ** int(math.log2(n - 1))
    fraction = 3 * power * 2.0**-53
    rest = [*np.ones(power - 1), fraction, *np.zeros(n - 1 - power)]
    return math.fsum([1.0, *rest]) - math.fsum([0.0, *rest])


@pytest.mark.parametrize("n", [3, 37, 1025, 32_769])
def test_sums_of_scores_change_by_no_more_than_their_sensitivity(n):
    assert 1.0 < worst_change_of_a_sum(n) <= plan_module.score_sensitivity(n)


@pytest.mark.parametrize("selection", ["random_stopping", "gaussian", "exponential", "pure"])
def test_many_scores_pay_for_roundings_and_have_no_finer_noise_than_tells(selection):
    """Sums of 2^40 numbers are rounded visibly; additive noise is a 2000th of them at least."""
    delta = 0.0 if selection == "pure" else 1e-3
    n, (X, y) = 2**40, records()
    given = plan_module.Search([Known(delta=delta)._plans(X, y)] * 5, n, 2.0, delta)
    plan = plan_module.plan_search(given, selection if delta else "random_stopping", 0.1)
    count = 5 if selection == "gaussian" else 1
    assert plan.choice.sensitivity >= math.sqrt(count) * plan_module.score_sensitivity(n)
    if selection != "exponential":
        scale = plan.choice.sigma if delta else plan.choice.scale
        assert scale == pytest.approx(5e-4 * n, rel=1e-3)


def worst_change_of_scores(count, factor=1.0):
    """Scores of fixed models on neighbours: right on both, one or none of a record's two forms."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(200):
        rest = rng.integers(0, 2, (36, count)).sum(axis=0)
        old, new = rng.integers(0, 2, (2, count))
        worst = max(worst, float(np.linalg.norm((rest + old) - (rest + new))))
    worst = max(worst, float(np.linalg.norm(np.ones(count) - np.zeros(count))))
    return worst / (factor * plan_module.scores_sensitivity(37, count))


@pytest.mark.parametrize("count", [1, 4, 9])
def test_scores_of_all_candidates_move_together(count):
    assert 1 - 1e-9 < worst_change_of_scores(count) <= 1.0
    # Planted: the sensitivity of one score.
    assert (worst_change_of_scores(count, 1 / math.sqrt(count)) > 1.0) == (count > 1)


def test_sums_of_scores_are_rounded_once():
    """A sum in another order or in blocks may be off by more than the sensitivity allows."""
    each = np.random.default_rng(0).random(N)
    assert math.fsum(each) != np.sum(each)
    with record_releases() as releases:
        search(**SHARP, scoring=lambda model, X, y: each).fit(*records())
    (choice,) = [r for r in releases if isinstance(r.mechanism, mechanisms.ExponentialChoice)]
    assert choice.value.tolist() == [math.fsum(each)] * len(GRID)


def test_that_test_sees_a_plain_sum(monkeypatch):
    monkeypatch.setattr(candidates, "math", SimpleNamespace(**{**vars(math), "fsum": np.sum}))
    caught(test_sums_of_scores_are_rounded_once)
