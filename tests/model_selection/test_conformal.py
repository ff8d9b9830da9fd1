"""Sets of classes: coverage at every budget, one record moves utilities by what is charged."""

from __future__ import annotations

import math
import pickle
import re
import warnings
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from dp_halfspace import (
    BudgetError,
    PrivacyWarning,
    PrivateConformalClassifier,
    PrivateThresholdClassifier,
)
from dp_halfspace.audit import replay
from dp_halfspace.data.people import People
from dp_halfspace.model_selection import prefit
from dp_halfspace.model_selection._crossing import COUNT_GRID
from dp_halfspace.privacy.events import Exponential
from tests.model_selection.prefit_models import Several
from tests.releases import record_releases
from tests.support import Book

X, Y = Several().records(np.random.default_rng(0), 1500)


class Given(Several):
    """Says what is written in the record: a probability of each of three classes."""

    def predict_proba(self, X):
        return X


def largest_moves(*, people=False, coverage=0.9, epsilon=30.0):
    """Largest change of the utilities over replaced records, over what is charged for."""
    rng, largest = np.random.default_rng(0), 0.0
    ends = [[0.0, 0.1, 1.0], [0.99, 0.005, 0.005], [0.2, 0.7, 0.1]]
    sizes = (1, 2, 30) if people else (1,)
    for n in (2, 40):
        rows, labels = rng.dirichlet(np.ones(3), n), rng.integers(3, size=n)
        found = []
        for x, label, size in product(ends, range(3), sizes):
            Z, y = np.vstack([rows, np.tile(x, (size, 1))]), [*labels, *[label] * size]
            own = {"groups": [*range(n), *[n] * size]} if people else {}
            with record_releases() as releases:
                model = PrivateConformalClassifier(Given(), coverage=coverage, epsilon=epsilon)
                model.fit(Z, y, **own)
            found.append(releases[0])
        noise = found[0].mechanism
        for first, second in product(found, found):
            change = np.atleast_2d(np.abs(first.value - second.value)).max(axis=1).sum()
            largest = max(largest, change / noise.sensitivity)
    return largest


@pytest.mark.parametrize(
    ("coverage", "epsilon", "least"),
    [(0.5, 30, 0.85), (0.62, 30, 0.85), (0.9, 30, 0.85), (0.9, 1, 0)],
)
def test_no_record_moves_utilities_by_more_than_is_charged_for(coverage, epsilon, least):
    """With little budget sets of everything are the best, whatever the records are."""
    assert least <= largest_moves(coverage=coverage, epsilon=epsilon) <= 1.0


def test_a_person_moves_them_no_more():
    assert 0.85 <= largest_moves(people=True) <= 1.0


def test_planted_bug_rows_of_a_person_that_weigh_one_are_seen(monkeypatch):
    monkeypatch.setattr(People, "weights_for", lambda self, _: np.ones(self.counts.sum()))
    assert largest_moves(people=True) > 3.0


def replayed(n_histories):
    """A record has other scores and another class."""
    rows, labels = X[:300].copy(), Y[:300].copy()
    rows[0], labels[0] = [9.0, -9.0, 0.0], (labels[0] + 1) % 3
    model = PrivateConformalClassifier(FrozenEstimator(Several()), epsilon=2.0)
    pair = X[:300], Y[:300], rows, labels
    return replay(model, *pair, n_histories=n_histories, random_state=0)


def test_a_replay_of_neighbours_finds_nothing():
    result = replayed(5)
    assert result.findings == ()
    assert max(release.ratio for release in result.releases) <= 1.0


def coverage_of(model, runs, n, epsilon, *, stated=0.9, seed=0):
    """Mean coverage, and mean size."""
    rng, inside, sizes = np.random.default_rng(seed), [], []
    for _ in range(runs):
        rows, labels = model.records(rng, n)
        fresh, truth = model.records(rng, 400)
        wrapper = PrivateConformalClassifier(model, coverage=stated, epsilon=epsilon)
        sets = wrapper.fit(rows, labels).predict_set(fresh)
        inside.append(sets[np.arange(400), truth].mean())
        sizes.append(sets.sum(axis=1).mean())
    return np.mean(inside), np.mean(sizes)


def test_sets_cover_as_stated():
    for n, epsilon in ((500, 1.0), (40, 0.5)):
        assert coverage_of(Several(), 40, n, epsilon)[0] >= 0.9 - 0.01


@pytest.mark.slow
@pytest.mark.parametrize(("n", "epsilon"), [(500, 1.0), (2000, 0.3), (30, 0.3), (12, 5.0)])
def test_sets_cover_as_stated_in_many_runs(n, epsilon):
    assert coverage_of(Several(), 2000, n, epsilon)[0] >= 0.9


def test_sets_are_hardly_larger_than_without_privacy():
    for model in (Several(3, 1.5), Several(2, 2.0)):
        exact, private = (coverage_of(model, 25, 2000, e)[1] for e in (math.inf, 0.3))
        assert exact <= private < 1.1 * exact


@pytest.mark.parametrize("many", [1, 60])
@pytest.mark.parametrize("short", [1.0, 4.0])
def test_a_target_is_met_in_the_mean_however_many_candidates_miss_it(many, short):
    """The worst case of the proof: all but one candidate lack as much, and the last has none."""
    mean, step, _ = prefit.mean_slacks(0.5, 0.1)
    assert step * 0.5 == pytest.approx(0.1, rel=1e-3)
    excess = np.array([-short] * many + [0.0, 1e6]) - mean
    excess[many:] = 0.0, 1e6
    steps = np.arange(many + 1.0, -1.0, -1.0)
    weights = np.exp(0.5 * (prefit.crossing.crossing_utilities(excess) - step * steps))
    lacking = (short + mean) * weights[:many].sum() / weights.sum()
    assert lacking <= mean
    # Near what the proof allows at the worst distance, with two candidates that meet the target.
    worst, odds = 1.0 / 0.5 + math.exp(-0.5) * mean, 1.0 / math.expm1(0.5 * step)
    sides, meeting = odds * math.exp(-0.5 * worst), math.exp(0.5 * step) + math.exp(-0.5)
    found = worst * sides / (meeting + math.exp(-0.5) * sides)
    assert found == pytest.approx(mean, rel=1e-3)


def test_inequalities_of_the_slack_hold_at_all_rates_that_use_them():
    """``operating_points.md``, (1) to (3) of Theorem 6, in units of 1/rho, with room for a grid."""
    for rate in np.linspace(1e-3, prefit._LARGEST_RATE_OF_TWO, 250):
        mean, loss, _ = prefit.mean_slacks(rate, 0.1)
        step, moved, short = math.exp(rate * loss), math.exp(-rate), rate * mean
        least, odds = rate * prefit._LEAST_MISSED * mean, 1.0 / math.expm1(rate * loss)
        assert rate + 1.5 >= 0.04 + short * (1.0 + (step - 1.0) / moved)
        near = np.linspace(0.0, short, 200)
        spare = (1.0 - moved) * (short - near) + moved * least
        found = np.exp(near) * spare + moved / step * (short - near) * np.exp(-near)
        assert (found >= short * (1.07 + moved / step)).all()
        far = short + np.linspace(0.0, 9.0, 200)
        most = odds * np.exp(-far) * (1.0 / math.e + moved * (far - short))
        assert (moved * least * np.exp(far) >= most + 0.2).all()


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.99])
def test_the_fewest_records_are_those_of_the_proof(coverage):
    """``operating_points.md``, section 3: with fewer, sets of everything must be chosen."""
    wrapper = PrivateConformalClassifier(Several(), coverage=coverage)
    plan = wrapper._plan_release(SimpleNamespace(n=100))
    share = plan.coverage
    assert coverage <= share < coverage + 1e-3
    assert plan.choice.sensitivity == 1.0
    odds = 1.0 / math.expm1(0.5 * plan.step)
    least = 1.25 * share * plan.slack / (1.0 - share)
    assert least <= plan.few < least + 1e-3
    lacking = math.log(odds / (1.0 - share))
    assert lacking <= plan.lacking < lacking + 1e-3


def test_planted_bug_no_slack_does_not_cover(monkeypatch):
    honest = prefit.mean_slacks
    monkeypatch.setattr(prefit, "mean_slacks", lambda *how: (-8.0, *honest(*how)[1:]))
    assert coverage_of(Several(), 60, 100, 1.0)[0] < 0.89


def test_without_noise_ranks_are_those_of_split_conformal_prediction(monkeypatch):
    grid = np.linspace(1e-3, 0.999, 4000)
    monkeypatch.setattr(prefit, "_LOG_ODDS_OF_SETS", grid)
    model = PrivateConformalClassifier(Several(), epsilon=math.inf).fit(X, Y)
    probabilities = np.sort(Several().predict_proba(X)[np.arange(1500), Y])[::-1]
    rank = math.ceil(prefit.crossing.rounded_up(0.9) * 1501)
    smallest = probabilities[rank - 1]
    assert model.threshold_ == grid[grid <= smallest][-1]


def test_sets_of_everything_are_announced_before_they_are_paid():
    """The number of records decides alone, so nothing of them is said."""
    model = PrivateConformalClassifier(
        Several(), coverage=0.95, epsilon=0.3, ledger=Book(refuse=True)
    )
    texts = set()
    for labels in (Y[:80], Y[:80][::-1], 0 * Y[:80]):
        with pytest.warns(PrivacyWarning) as caught, pytest.raises(BudgetError):
            model.fit(X[:80], labels)
        texts |= {str(w.message) for w in caught}
    (text,) = texts
    assert re.match(r"a coverage of 0.95 at epsilon=0.3 takes more than \d+ records", text)
    assert "and there are 80: every set would contain all classes" in text
    model.set_params(ledger=None)
    for _ in range(5):
        with pytest.warns(PrivacyWarning):
            model.fit(X[:80], Y[:80])
        assert model.threshold_ == 0.0


def test_large_sets_of_enough_records_are_said_only_if_they_are_released():
    model = PrivateConformalClassifier(Several(), epsilon=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        model.fit(X, Y)
    model.threshold_ = 0.0
    plan = SimpleNamespace(takes=10.0)
    with pytest.warns(PrivacyWarning, match="every set contains all classes"):
        model._warn_of_release(plan, SimpleNamespace(classes=[0, 1], n=1500))


def test_a_probability_that_is_no_number_is_zero():
    class Odd(Several):
        def predict_proba(self, X):
            return np.full((len(X), 3), math.nan)

    model = PrivateConformalClassifier(Odd(), epsilon=1.0)
    for call in (model.predict_set, PrivateThresholdClassifier(Odd()).predict_proba):
        with pytest.raises(NotFittedError):
            call(X)
    assert model.fit(X, Y).threshold_ == 0.0
    assert model.predict_set(X).all()


def test_classes_of_a_model_may_be_in_any_order():
    class Backwards(Several):
        def __init__(self):
            super().__init__()
            self.classes_ = np.array(["c", "b", "a"])

        def predict(self, X):
            return self.classes_[super().predict(X)]

    names = Backwards().classes_[Y]
    found = PrivateConformalClassifier(Backwards(), epsilon=math.inf).fit(X, names)
    plain = PrivateConformalClassifier(Several(), epsilon=math.inf).fit(X, Y)
    assert found.classes_.tolist() == ["a", "b", "c"]
    assert found.threshold_ == plain.threshold_
    np.testing.assert_array_equal(found.predict_set(X), plain.predict_set(X)[:, ::-1])
    assert np.mean(found.predict(X) == names) > 0.7


def test_it_is_an_estimator_of_scikit_learn():
    """It shares with a threshold how tables of every kind are read."""
    inner = LogisticRegression().fit(X, Y)
    model = PrivateConformalClassifier(FrozenEstimator(inner), coverage=0.8, epsilon=5.0)
    twin = clone(model).fit(X, Y)
    same = pickle.loads(pickle.dumps(twin))
    np.testing.assert_array_equal(same.predict_set(X), twin.predict_set(X))
    np.testing.assert_array_equal(twin.predict(X), inner.predict(X))
    assert twin.score(X, Y) == inner.score(X, Y)
    assert twin.privacy_.events == model.plan(X, Y).events == (Exponential(5.0),)


def test_a_coverage_of_all_is_refused():
    """What else is refused, and at no cost, is that of a threshold."""
    with pytest.raises(ValueError, match="'coverage' parameter of PrivateConformalClassifier"):
        PrivateConformalClassifier(Several(), coverage=1.0).fit(X, Y)


def test_weights_of_people_leave_room_for_the_factors_of_utilities(factors_of_people):
    """Sums of weights times these factors are exact, so that no rounding moves a utility."""
    PrivateConformalClassifier(Several()).fit(X, Y, groups=np.arange(1500))
    assert factors_of_people == [16 * COUNT_GRID]


def test_a_probability_at_a_threshold_is_in_the_set_and_none_is_outside_of_zero():
    class Stated:
        classes_ = np.arange(2)

        def predict_proba(self, X):
            return np.asarray(X, dtype=float)

    fitted = PrivateConformalClassifier(Stated())
    fitted.classes_, fitted.threshold_, fitted.privacy_ = np.arange(2), 0.5, None
    rows = np.array([[0.5, 0.5], [0.75, 0.25], [np.nan, np.nan], [1.0, -1e-17]])
    assert fitted.predict_set(rows).tolist() == [[1, 1], [1, 0], [0, 0], [1, 0]]
    fitted.threshold_ = 0.0
    assert fitted.predict_set(rows).all()


def test_the_records_that_a_coverage_takes_are_those_at_which_every_set_is_whole():
    wrapper = PrivateConformalClassifier(Several(), coverage=0.95)
    plan = wrapper._plan_release(SimpleNamespace(n=100))
    wanted = plan.coverage * (plan.takes + 1.0)
    assert wanted - plan.few == pytest.approx(plan.lacking)


def test_candidates_farther_from_all_classes_are_worth_less():
    """Records whose classes are sure: all candidates have the same sets, and the same excess."""
    rows = np.tile([1.0, 0.0, 0.0], (400, 1))
    with record_releases() as releases:
        PrivateConformalClassifier(Given(), coverage=0.9).fit(rows, np.zeros(400, dtype=int))
    assert (np.diff(releases[0].value[1:-1]) > 0.0).all()


def test_planted_bug_a_utility_that_counts_twice_is_found_by_a_replay(monkeypatch):
    honest = prefit.crossing.crossing_utilities
    monkeypatch.setattr(prefit.crossing, "crossing_utilities", lambda excess: 4.0 * honest(excess))
    assert any("times the sensitivity" in text for text in replayed(3).findings)
