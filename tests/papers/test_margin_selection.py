"""Choosing a margin: what scores may change by, exact cost, and what must never be seen."""

import importlib
import io
import itertools
import json
import logging
import math
import pickle
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dp_halfspace import AdaptiveMarginClassifier, _budget, privacy
from dp_halfspace.data.record_weights import WeighedRows
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.datasets import make_halfspace
from dp_halfspace.papers import MARGIN_SELECTIONS
from dp_halfspace.papers.margin_selection import plan_selection
from dp_halfspace.papers.training import LinearTraining
from dp_halfspace.privacy import PrivacyRecord, authorise, noise_source
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import RandomStopping, single_runs
from dp_halfspace.privacy.interception import intercept_releases
from dp_halfspace.privacy.mechanisms import ExponentialChoice, GaussianNoise, NoNoise
from dp_halfspace.rows.rows import Rows
from tests.adversarial import neighbouring_pairs
from tests.permits import problem_of
from tests.releases import record_releases
from tests.support import RELEASED, Book

MODULE = importlib.import_module("dp_halfspace.papers.margin_selection")
PROBLEM = problem_of(300, 4)
FIXED = ("exponential", "gaussian")


def plan_for(
    kind, margins=(0.05, 0.2), *, solver="phased_prox", epsilon=2.0, delta=1e-5, population=False
):
    return plan_selection(
        PROBLEM, solver, kind, margins, Budget.of(epsilon, delta), population=population
    )


def permit_for(plan, epsilon=2.0, delta=1e-5):
    noise = "none" if math.isinf(epsilon) else "os"
    record = PrivacyRecord(epsilon=epsilon, delta=delta, events=plan.events, noise=noise)
    return authorise(record, noise_source(None))


def data():
    X, y = make_halfspace(300, 4, margin=0.2, random_state=0)
    return X, (y > 0).astype(int)


def select(plan, permit=None):
    X, codes = data()
    permit = permit_for(plan) if permit is None else permit
    return plan.run(Door(TrainingData(X, codes, np.arange(2), None), permit))


def errors(rows, classes, weights, model):
    """Minus the score without a penalty."""
    return -MODULE._score(model, 0.0, WeighedRows(rows, classes, weights))[0]


def largest_change(n_classes, weights):
    """Of the error count of any released model, over neighbours."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for X, y, other_X, other_y in neighbouring_pairs(rng, 60, n_classes=n_classes):
        for _ in range(5):
            shape = (1 if n_classes == 2 else n_classes, X.shape[1])
            model = rng.standard_normal(shape)
            counts = [
                errors(Rows(features), labels, weights, model)
                for features, labels in ((X, y), (other_X, other_y))
            ]
            worst = max(worst, abs(counts[0] - counts[1]))
    return worst


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_record_moves_the_count_by_one_at_most_and_does(n_classes):
    assert largest_change(n_classes, np.ones(n_classes)) == 1.0
    weights = np.array([0.3, 1.0, 0.2, 0.7])[:n_classes]
    # Weighted counts are rounded: that is what the bound has beyond one.
    problem = problem_of(7, 4, n_classes)
    worst = largest_change(n_classes, weights)
    assert 0.99 < worst <= MODULE._score_bound(problem, population=False) < 1 + 1e-11


@pytest.mark.parametrize("kind", FIXED)
def test_what_was_chosen_is_returned_whatever_the_exact_scores_are(kind):
    plan, found = plan_for(kind), []
    for chosen in range(2):
        number = itertools.count(1.0)

        def answer(value, mechanism, source, chosen=chosen, number=number):
            if mechanism is not plan.choice:
                return np.full(np.shape(value), next(number))
            return np.eye(2)[chosen] if kind == "gaussian" else np.array([float(chosen)])

        with intercept_releases(answer):
            found.append(select(plan).coefficients)
    # Both runs were given the same models, of which the second one is longer.
    assert np.linalg.norm(found[0]) < np.linalg.norm(found[1])


def test_a_run_may_release_its_candidate_and_one_score(monkeypatch):
    seen, honest = set(), MODULE.authorise
    monkeypatch.setattr(
        MODULE,
        "authorise",
        lambda record, source: seen.add(record.events) or honest(record, source),
    )
    plan = plan_for("random_stopping")
    select(plan)
    assert len(seen) > 0
    assert seen <= {(*candidate.events, plan.choice.event) for candidate in plan.candidates}


def test_count_test_sees_weights_above_one():
    """Planted: class weights that are not divided by the largest."""
    assert largest_change(2, np.array([0.5, 3.0])) == 3.0


def test_count_is_that_of_the_predictions():
    X, codes = data()
    model = np.array([[0.3, -1.0, 0.2, 0.1]])
    wrong = ((X @ model[0]) > 0) != (codes == 1)
    weights = np.array([0.25, 1.0])
    assert errors(Rows(X), codes, weights, model) == weights[codes[wrong]].sum()
    # A score of zero is the first class, as in predict.
    zeros, labels = Rows(np.zeros((3, 4))), np.array([0, 1, 1])
    assert errors(zeros, labels, np.ones(2), model) == 2


def test_rounding_of_weighted_counts_is_within_its_allowance():
    """Many classes with weights that are no binary fractions."""
    rng = np.random.default_rng(2)
    n, n_classes = 200_000, 30
    weights = rng.random(n_classes)
    weights /= weights.max()
    codes = rng.integers(n_classes, size=n)
    model = rng.standard_normal((n_classes, 1))
    count = errors(Rows(np.ones((n, 1))), codes, weights, model)
    wrong = np.bincount(codes[codes != model[:, 0].argmax()], minlength=n_classes)
    exact = math.fsum(float(w) * int(k) for w, k in zip(weights, wrong, strict=True))
    problem = problem_of(n, 4, n_classes)
    allowed = MODULE._score_bound(problem, population=False) - 1
    assert 2 * abs(count - exact) <= allowed < 1e-6
    assert MODULE._score_bound(problem, population=True) - 1 > allowed


def assert_scores_have_their_noise(margins, mu):
    """J counts change by sqrt(J) together: the standard deviation on counts, not a variance."""
    share = {"gaussian": 0.5, "random_stopping": 0.2}
    for kind, part in share.items():
        plan = plan_for(kind, margins)
        together = len(margins) if kind == "gaussian" else 1
        whole = mu if kind == "gaussian" else plan.events[0].mu
        expected = math.sqrt(together) / (whole * math.sqrt(part))
        assert expected <= plan.choice.sigma <= expected * (1 + 1e-8)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_scores_have_their_noise(count):
    margins = np.linspace(0.1, 0.5, count).tolist()
    assert_scores_have_their_noise(margins, privacy.gdp_mu(2.0, 1e-5))


def assert_budget_is_used(plan, epsilon, delta):
    spent = privacy.delta(plan.events, epsilon)
    assert delta * (1 - 1e-3) <= spent <= delta * (1 + 2.0**-38)


@pytest.mark.parametrize("kind", FIXED)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-4), (1.0, 1e-8), (20.0, 1e-3)])
@pytest.mark.parametrize("count", [1, 3, 6])
@pytest.mark.parametrize("solver", ["noisy_gd", "phased_prox"])
def test_events_use_the_whole_budget(kind, epsilon, delta, count, solver):
    margins = np.linspace(0.1, 0.5, count).tolist()
    plan = plan_for(kind, margins, solver=solver, epsilon=epsilon, delta=delta)
    assert_budget_is_used(plan, epsilon, delta)
    assert len(plan.candidates) == count
    assert [c.margin for c in plan.candidates] == margins


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("epsilon", "delta", "count"), [(1.0, 1e-8, 1), (1.0, 1e-8, 3), (0.1, 1e-4, 4), (8.0, 1e-6, 2)]
)
def test_random_stopping_uses_the_whole_budget_with_one_event(epsilon, delta, count):
    margins = np.linspace(0.1, 0.5, count).tolist()
    plan = plan_for("random_stopping", margins, epsilon=epsilon, delta=delta)
    (event,) = plan.events
    assert isinstance(event, RandomStopping)
    assert_budget_is_used(plan, epsilon, delta)
    # A run, training and score together, is what the event says.
    for candidate in plan.candidates:
        (training,) = candidate.events
        run = math.hypot(training.mu, plan.choice.mu)
        assert event.mu * (1 - 1e-9) <= run <= event.mu
    assert event.mean_runs == plan.distribution.mean


@pytest.mark.parametrize("kind", FIXED)
@pytest.mark.parametrize("solver", ["noisy_gd", "phased_prox"])
def test_releases_are_those_that_were_charged(kind, solver):
    plan = plan_for(kind, solver=solver)
    with record_releases() as releases:
        fitted = select(plan)
    made = Counter(r.mechanism.event for r in releases)
    charged = single_runs(plan.events)
    assert set(made) == set(charged)
    if solver == "noisy_gd":
        assert made == charged
    assert releases[-1].mechanism == plan.choice
    assert fitted.attributes["margin_"] in [candidate.margin for candidate in plan.candidates]
    assert fitted.coefficients.shape == (1, 4)
    scores = releases[-1].value
    assert scores.shape == (2,)
    assert (scores == np.rint(scores)).all()
    assert ((scores <= 0) & (scores >= -300)).all()


def test_releases_of_random_stopping_are_whole_runs():
    plan = plan_for("random_stopping")
    counts = set()
    for _ in range(5):
        permit = permit_for(plan)
        with record_releases() as releases:
            select(plan, permit)
        scores = [r for r in releases if r.mechanism == plan.choice]
        counts.add(len(scores))
        assert releases[-1].mechanism == plan.choice
        assert len(releases) % len(scores) == 0
        # The event is used up: nothing more can be released under the same permit.
        with pytest.raises(RuntimeError, match="not charged"):
            select(plan, permit)
    assert len(counts) > 1


@pytest.mark.parametrize("kind", FIXED)
def test_an_exact_choice_is_refused(kind):
    """Planted: the best of the exact scores."""
    plan = plan_for(kind)
    with pytest.raises(RuntimeError, match="not charged"):
        select(replace(plan, choice=NoNoise()), permit_for(plan))


def test_a_choice_that_is_not_paid_for_is_refused():
    """Planted: random stopping whose score has half of its noise."""
    plan = plan_for("random_stopping")
    loud = GaussianNoise(1.0, 8.0)
    with pytest.raises(ValueError, match="events prove"):
        select(replace(plan, choice=loud))


def constant(margin, w):
    """A way to fit that always releases the same coefficients."""
    plan = SimpleNamespace(events=(), run=lambda door: np.array([w]))
    problem = problem_of(300, 1, intercept=None)
    return LinearTraining(problem, "fixed", plan, margin, 1.0, None)


@pytest.mark.parametrize("kind", MARGIN_SELECTIONS)
def test_the_better_candidate_is_chosen(kind):
    """Errors 0 and n: noise of a few dozen counts cannot turn that round."""
    plan = plan_for(kind)
    good, bad = constant(0.1, [1.0]), constant(0.2, [-1.0])
    rigged = replace(plan, candidates=(bad, good))
    table = TrainingData(np.ones((300, 1)), np.ones(300, int), np.arange(2), None)
    wins = 0
    for _ in range(40):
        fitted = rigged.run(Door(table, permit_for(plan)))
        is_good = fitted.attributes["margin_"] == good.margin
        assert fitted.coefficients.tolist() == [[1.0 if is_good else -1.0]]
        wins += is_good
    # Random stopping misses a candidate with probability one tenth: 15 times with probability 1e-6.
    assert wins == 40 if kind in FIXED else wins >= 26


@pytest.mark.parametrize("kind", ["gaussian", "random_stopping"])
def test_each_candidate_is_scored_on_rows_of_its_own_projection(kind):
    X = np.random.default_rng(0).standard_normal((100, 300)) / 30.0
    model = AdaptiveMarginClassifier(
        margin=[0.5, 0.9], selection=kind, projection="rademacher", data_norm=1.0,
        classes=[0, 1],
    )  # fmt: skip
    found = model.fit(X, np.arange(100) % 2)
    assert dict(found.privacy_.public)["n_components"] == (None, 246)


def test_population_scores_add_a_public_penalty():
    training, population = plan_for("gaussian"), plan_for("gaussian", population=True)
    assert training.penalties == (0.0, 0.0)
    expected = 2.5 * 5 * math.log(600)
    assert population.penalties == (expected, expected)
    assert population.events == training.events
    rigged = replace(population, penalties=(0.0, 1e6))
    for _ in range(5):
        assert select(rigged).attributes["margin_"] == rigged.candidates[0].margin


def fit(kind, **more):
    X, y = make_halfspace(300, 4, margin=0.2, random_state=0)
    model = AdaptiveMarginClassifier(
        margin=[0.05, 0.2],
        selection=kind,
        solver="phased_prox",
        classes=[-1, 1],
        **more,
        data_norm=1.0,
    )
    return model.fit(X, y)


@pytest.mark.parametrize("kind", MARGIN_SELECTIONS)
def test_ledger_is_charged_once_with_public_numbers(kind):
    record = assert_one_charge_that_says_nothing(kind)
    assert dict(record.public)["margins"] == (0.05, 0.2)
    assert len(record.events) == (1 if kind == "random_stopping" else 3)


def floats_of(model):
    """Every float that a fitted model holds, wherever it is."""
    found = []

    class Walker(pickle.Pickler):
        def reducer_override(self, held):
            if isinstance(held, np.ndarray) and held.dtype.kind == "f":
                found.extend(held.ravel().tolist())
            return NotImplemented

    Walker(io.BytesIO()).dump(model)
    shown = [v for v in vars(model).values() if isinstance(v, float | list)]
    for text in (model.privacy_.to_json(), json.dumps(shown, default=np.ndarray.tolist)):
        json.loads(text, parse_float=lambda digits: found.append(float(digits)))
    return set(found)


def traces(model, releases):
    """Released numbers that a model shows beside its coefficients; the index may be known."""
    index = [r for r in releases if isinstance(r.mechanism, ExponentialChoice)]
    exact = {float(v) for r in releases for v in np.ravel(r.value)} - {0.0}
    releases = [r for r in releases if not any(r is known for known in index)]
    released = {float(v) for r in releases for v in np.ravel(r.released)}
    return floats_of(model) & (released | exact) - set(model.coef_.ravel().tolist())


@pytest.mark.parametrize("kind", MARGIN_SELECTIONS)
def test_losers_scores_and_runs_leave_no_trace(kind, capsys, caplog):
    caplog.set_level(logging.DEBUG)
    with record_releases() as releases:
        model = fit(kind, verbose=2)
    said, warned = capsys.readouterr()
    assert said.splitlines()[0].endswith(f"is about to release: {model.privacy_}")
    assert len(said.splitlines()) == 2
    assert not warned
    assert caplog.records == []
    assert set(vars(model)) - set(model.get_params()) <= RELEASED
    assert model.margin_ in (0.05, 0.2)
    assert traces(model, releases) == set()
    # The coefficients themselves are the last release of one of the runs.
    assert any(np.array_equal(model.coef_[0], np.ravel(r.released)[:4]) for r in releases)


@pytest.mark.parametrize("leak", ["score", "loser"])
def test_trace_test_sees_what_is_kept(leak):
    """Planted: the winning score, and the coefficients of another run."""
    with record_releases() as releases:
        model = fit("gaussian")
    model.extra = float(releases[-1].released.max()) if leak == "score" else [releases[8].released]
    assert traces(model, releases) != set()


@pytest.mark.parametrize("epsilon", [0.01, 8.0])
def test_margins_of_rows_of_norm_one_are_at_most_one(epsilon):
    budget = Budget.of(epsilon, 1e-5)
    # Four columns, and the constant.
    centre = min(4.0 * math.sqrt(5.0) / (300 * budget.mu), 1.0)
    grid = MODULE.margin_grid(PROBLEM, budget)
    expected = sorted({min(centre * factor, 1.0) for factor in (0.5, 1.0, 2.0, 4.0)})
    assert grid == pytest.approx(expected)
    assert (max(grid) == 1.0) == (epsilon < 1.0)


@pytest.mark.parametrize("bug", ["variance", "average", "one score"])
def test_score_noise_test_sees_the_published_slips(monkeypatch, bug):
    """Planted: the variance used as standard deviation, the sensitivity of the mean, of one."""

    class Cheat(GaussianNoise):
        def __post_init__(self):
            super().__post_init__()
            wrong = {
                "variance": self.sigma**2,
                "average": self.sigma / 300,
                "one score": 1 / self.mu,
            }
            object.__setattr__(self, "sigma", wrong[bug])

    monkeypatch.setattr(MODULE, "GaussianNoise", Cheat)
    with pytest.raises(AssertionError):
        assert_scores_have_their_noise([0.1, 0.2], privacy.gdp_mu(2.0, 1e-5))


def test_budget_test_sees_runs_that_are_not_divided(monkeypatch):
    """Planted: every candidate trains with what is there for all."""
    honest = MODULE.plan_known_margin
    monkeypatch.setattr(
        MODULE,
        "plan_known_margin",
        lambda p, s, margin, each: honest(p, s, margin, Budget.gaussian(math.sqrt(2) * each.mu)),
    )
    for kind in FIXED:
        with pytest.raises(AssertionError):
            assert_budget_is_used(plan_for(kind), 2.0, 1e-5)


def assert_one_charge_that_says_nothing(kind):
    """One record, the same for every fit, whatever was run in it."""
    books = [Book() for _ in range(4)]
    models = [fit(kind, ledger=book) for book in books]
    assert all(len(book.records) == 1 for book in books)
    assert len({book.records[0].to_json() for book in books}) == 1
    assert all(m.privacy_ == book.records[0] for m, book in zip(models, books, strict=True))
    return models[0].privacy_


def test_ledger_test_sees_every_run_charged(monkeypatch):
    """Planted: the runs of random stopping go through the ledger one by one."""
    honest = MODULE.authorise
    ledgers = []

    def remembering(record, source, ledger=None):
        ledgers.append(ledger)
        return authorise(record, source, ledger)

    monkeypatch.setattr(_budget, "authorise", remembering)
    monkeypatch.setattr(
        MODULE, "authorise", lambda record, source: honest(record, source, ledgers[-1])
    )
    with pytest.raises(AssertionError):
        assert_one_charge_that_says_nothing("random_stopping")
