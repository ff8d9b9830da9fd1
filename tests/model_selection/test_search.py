"""A search spends its budget once and releases one model, whatever happens inside."""

import json
import math
import warnings
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from pandas import DataFrame
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from dp_halfspace import (
    AdaptiveMarginClassifier,
    BudgetError,
    LabelPrivateClassifier,
    ObjectivePerturbationClassifier,
    OutputPerturbationClassifier,
    PrivacyLedger,
    PrivateAUCClassifier,
    PrivateSearchCV,
    PrivateTableClassifier,
    privacy,
)
from dp_halfspace._params import MOST_TRAINED
from dp_halfspace.model_selection import _search_plan as plan_module
from dp_halfspace.model_selection import _search_runs as candidates
from dp_halfspace.model_selection._search_plan import score_sensitivity
from dp_halfspace.privacy import Exponential, Gaussian, Pure, random_stopping
from dp_halfspace.privacy.events import RandomStopping
from dp_halfspace.privacy.mechanisms import ExponentialChoice
from dp_halfspace.privacy.random_stopping import (
    best_run,
)
from dp_halfspace.privacy.randomness import SeededBytes
from tests.conftest import separated
from tests.releases import record_releases
from tests.support import Book, checks

pytestmark = pytest.mark.usefixtures("plans_are_made_once")
X, Y = separated(400, 3, 2)
GRID = {"alpha": [1e-3, 1e-2, 1e-1]}
OUTPUT = OutputPerturbationClassifier(classes=[0, 1], data_norm=1.0)
# Of one release, where what is tested is the search and not what a run spends.
PLAIN = OutputPerturbationClassifier(classes=[0, 1], data_norm=1.0, preconditioner=False)
OBJECTIVE = ObjectivePerturbationClassifier(classes=[0, 1], data_norm=1.0)
# Its loss is a sum over pairs of records, which no selection accounts for.
RANKING = PrivateAUCClassifier(mechanism="objective", classes=[0, 1], data_norm=1.0)
CASES = [
    (OUTPUT, "random_stopping", "auto"),
    (OUTPUT, "random_stopping", 0.0),
    (OUTPUT, "exponential", "auto"),
    (OUTPUT, "exponential", 0.0),
    (OUTPUT, "gaussian", "auto"),
    (OBJECTIVE, "gaussian", "auto"),
    (OBJECTIVE, "random_stopping", 0.0),
    (OBJECTIVE, "exponential", "auto"),
    (
        AdaptiveMarginClassifier(solver="noisy_gd", classes=[0, 1], data_norm=1.0),
        "random_stopping",
        "auto",
    ),
]
each_case = pytest.mark.parametrize(("estimator", "selection", "delta"), CASES)


def search(estimator=PLAIN, grid=GRID, **params):
    if isinstance(estimator, AdaptiveMarginClassifier):
        grid = {"margin": ["auto", 0.1, 0.3]}
    if estimator is OBJECTIVE and params.get("selection") in {"exponential", "gaussian"}:
        grid = {"alpha": [1e-2, 1e-1]}
    return PrivateSearchCV(estimator, grid, **{"epsilon": 2.0, **params})


@pytest.mark.sampled(4)
@each_case
def test_the_budget_is_spent_and_no_more(estimator, selection, delta):
    fitted = search(estimator, selection=selection, delta=delta).fit(X, Y)
    record = fitted.privacy_
    assert (record.epsilon, record.delta) == (2.0, 0.0 if delta == 0.0 else 400.0**-2)
    spent = record.epsilon_at(record.delta)
    assert 0.97 * 2.0 <= spent <= 2.0 * (1 + 1e-9)
    assert fitted.best_estimator_.privacy_ is record
    assert fitted.best_params_ in list(fitted._grid())
    kinds = {type(event) for event in record.events}
    assert kinds == {RandomStopping} or selection != "random_stopping" or kinds == {Pure}


def planned(candidates, selection, delta):
    return plan_module.plan_search(plan_module.Search(candidates, 400, 2.0, delta), selection, 0.1)


@pytest.mark.sampled(3)
@each_case
def test_every_run_has_the_budget_that_was_accounted_for(estimator, selection, delta):
    """Recompute the total from the runs, by the definition of the selection."""
    fitted = search(estimator, selection=selection, delta=delta)
    at = 0.0 if delta == 0.0 else 1e-5
    candidates = [{**params, "delta": at} for params in fitted._grid()]
    plan = planned([fitted._candidate(c)._plans(X, Y) for c in candidates], selection, at)
    runs = [fitted._candidate({**each, "epsilon": plan.epsilon}) for each in candidates]
    records = [run.plan(X, Y) for run in runs]
    if selection == "exponential":
        events = [event for record in records for event in record.events]
        assert Exponential(plan.choice.epsilon) in plan.events
        assert privacy.delta([*events, plan.choice.event], 2.0) <= at
    elif selection == "gaussian":
        events = [event for record in records for event in record.events]
        assert plan.events == (*events, Gaussian(plan.choice.mu))
        assert privacy.delta([*events, Gaussian(plan.choice.mu)], 2.0) <= at
        assert plan.choice.sensitivity >= math.sqrt(len(records)) * score_sensitivity(400)
    elif delta == 0.0:
        runs = [privacy.epsilon([*r.events, plan.choice.event], 0.0) for r in records]
        assert 3.0 * max(runs) <= 2.0
    else:
        for record in records:
            run = [*record.events, Gaussian(plan.choice.mu)]
            # All Gaussian: mu of a run from its profile.
            mu = privacy.gdp_mu(privacy.epsilon(run, 1e-6), 1e-6)
            event = privacy.random_stopping_event(plan.distribution, mu * (1 - 1e-6))
            assert privacy.delta([event], 2.0) <= at
    assert plan.choice.sensitivity >= score_sensitivity(400) > 1.0


def test_account_test_sees_scores_that_are_not_charged(monkeypatch):
    """Planted: noise on all scores that is not among the events while budgets are divided."""
    honest = plan_module._all_events
    monkeypatch.setattr(plan_module, "_all_events", lambda *given: honest(*given)[:-1])
    with pytest.raises(AssertionError):
        test_every_run_has_the_budget_that_was_accounted_for(OUTPUT, "gaussian", "auto")


def test_nothing_else_leaves():
    """No number of runs, no scores, no losers; the ledger sees one record."""
    ledger = PrivacyLedger(epsilon=10.0, delta=1e-3)
    for selection in ("random_stopping", "exponential"):
        fitted = search(ledger=ledger, selection=selection).fit(X, Y)
        names = set(vars(fitted)) - set(fitted.get_params(deep=False))
        assert names == {
            "best_estimator_",
            "best_params_",
            "classes_",
            "privacy_",
        }
    assert [entry.record for entry in ledger.entries()][-1] == fitted.privacy_
    assert len(ledger.entries()) == 2
    assert fitted.best_estimator_.ledger is ledger
    json.dumps({k: v for k, v in fitted.get_params(deep=False).items() if k != "estimator"})


@pytest.mark.parametrize(
    ("stated", "refused"),
    [
        ({"epsilon": 3.0}, "states epsilon=3.0 and the search epsilon=2.0"),
        ({"delta": 1e-4}, "states delta=0.0001 and the search delta='auto'"),
        ({"epsilon": 2.0}, None),
        ({"delta": 0.0}, None),
    ],
)
def test_an_estimator_with_another_budget_is_refused_before_any_charge(stated, refused):
    """A reader cannot tell whether its budget is that of a candidate or of the whole search."""
    ledger = PrivacyLedger(epsilon=10.0, delta=0.1)
    model = OutputPerturbationClassifier(data_norm=1.0, classes=[0, 1], **stated)
    each = PrivateSearchCV(model, {}, epsilon=2.0, ledger=ledger)
    if refused is None:
        assert each.plan(X, Y).epsilon == 2.0
    else:
        for method in (each.plan, each.fit):
            with pytest.raises(ValueError, match=refused):
                method(X, Y)
    assert ledger.spent() == 0.0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("selection", ["exponential", "random_stopping"])
@pytest.mark.parametrize("delta", ["auto", 0.0])
def test_what_is_protected_is_what_the_estimator_protects(selection, delta):
    """A search over models that protect labels only must not pass for more."""
    model = LabelPrivateClassifier(classes=[0, 1], n_fourier=20, delta=delta)
    params = {"selection": selection, "delta": delta if delta == 0.0 else 1e-4}
    grid = {"whitening": [0.0, 0.5]}
    fitted = search(model, grid=grid, **params).fit(X, Y)
    assert fitted.privacy_.adjacency == "replace-one-label"
    ledger = PrivacyLedger(epsilon=10.0, delta=0.1)
    with pytest.raises(
        BudgetError, match=r"replace-one-label.* does not protect what .* whole records"
    ):
        search(model, grid=grid, ledger=ledger, **params).fit(X, Y)


@pytest.mark.parametrize("selection", ["exponential", "random_stopping"])
def test_a_full_ledger_stops_the_search_before_any_noise(selection):
    model = search(selection=selection, ledger=Book(refuse=True))
    with record_releases() as releases, pytest.raises(BudgetError):
        model.fit(X, Y)
    assert releases == []
    assert not hasattr(model, "best_estimator_")


class Unsendable:
    """A scoring that no worker can be given."""

    def __call__(self, model, X, y):
        return np.ones(len(y))

    def __reduce__(self):
        raise TypeError("cannot pickle a lock")


def older_joblib(given):
    """As joblib 1.2, which does not hand out results one by one."""

    def pool(n_jobs=None, verbose=0):
        raise AssertionError("an argument is missing")

    return pool(**given)


REFUSED = {
    "jobs": {"n_jobs": 0},
    "too many": {"n_jobs": 2**70},
    "pickle": {"n_jobs": 2, "scoring": Unsendable()},
}


@pytest.mark.parametrize("selection", ["exponential", "random_stopping"])
@pytest.mark.parametrize("case", [*REFUSED, "joblib"])
def test_what_joblib_refuses_costs_nothing(case, selection, monkeypatch):
    ledger = PrivacyLedger(epsilon=10.0, delta=1e-3)
    model = search(selection=selection, ledger=ledger, **REFUSED.get(case, {}))
    if case == "joblib":
        monkeypatch.setattr(candidates, "Parallel", lambda **given: older_joblib(given))
    before = dict(vars(model))
    with record_releases() as releases, pytest.raises(ValueError, match=r"n_jobs=.*: joblib could"):
        model.fit(X, Y)
    assert ledger.entries() == releases == []
    assert vars(model) == before


@pytest.mark.filterwarnings("ignore:random_state")
@pytest.mark.slow
def test_the_number_of_jobs_does_not_change_the_result():
    models = [
        search(selection="random_stopping", random_state=3, n_jobs=n_jobs).fit(X, Y)
        for n_jobs in (None, 2)
    ]
    assert models[0].best_params_ == models[1].best_params_
    np.testing.assert_array_equal(models[0].best_estimator_.coef_, models[1].best_estimator_.coef_)
    assert models[0].privacy_.noise == "seeded"


def ties_of(source):
    return Counter(best_run([(i, 1.0) for i in range(3)], source)[1] for _ in range(3000))


def test_equal_runs_are_equally_likely():
    counts = ties_of(SeededBytes(0, "ties"))
    assert all(abs(counts[i] - 1000) < 130 for i in range(3))


def test_tie_test_sees_the_first_of_equal_runs(monkeypatch):
    """Planted: the first of equal runs is kept."""
    monkeypatch.setattr(random_stopping, "uniform_below", lambda bound, source: 1)
    counts = ties_of(SeededBytes(0, "ties"))
    assert not all(abs(counts[i] - 1000) < 130 for i in range(3))


def test_scores_are_cut_to_one_number_in_the_unit_interval_for_each_record():
    def generous(model, X, y):
        place = np.arange(len(y)) % 4
        return np.select([place == 0, place == 1, place == 2], [1e9, -1e9, np.nan], 0.25)

    with record_releases() as releases:
        search(selection="exponential", scoring=generous).fit(X, Y)
    choices = [r for r in releases if isinstance(r.mechanism, ExponentialChoice)]
    np.testing.assert_array_equal(choices[-1].value, np.full(3, 125.0))
    with pytest.raises(ValueError, match="one number for each record"):
        search(scoring=lambda model, X, y: 0.5).fit(X, Y)


@pytest.mark.parametrize(
    ("estimator", "size", "delta", "taken"),
    [
        (OUTPUT, 4, "auto", "exponential"),
        (OUTPUT, 5, "auto", "random_stopping"),
        pytest.param(OBJECTIVE, 5, "auto", "exponential", marks=pytest.mark.slow),
        (OBJECTIVE, 4, 0.0, "random_stopping"),
        (OUTPUT, 3, 0.0, "exponential"),
    ],
)
def test_the_way_is_chosen_by_public_numbers(estimator, size, delta, taken):
    at = 0.0 if delta == 0.0 else 1e-5
    plans = [
        clone(estimator).set_params(alpha=alpha, delta=at)._plans(X, Y)
        for alpha in np.logspace(-2, 0, size)
    ]
    assert (planned(plans, "auto", at).distribution is None) == (taken == "exponential")


def test_the_data_are_checked_once_for_a_candidate_and_not_for_each_repeat(monkeypatch):
    honest, made = OutputPerturbationClassifier._plans, []

    def counted(self, *given):
        made.append(self.alpha)
        return honest(self, *given)

    monkeypatch.setattr(OutputPerturbationClassifier, "_plans", counted)
    record = search(n_repeats=2).plan(X, Y)
    assert made == GRID["alpha"]
    assert [dict(each)["alpha"] for each in dict(record.public)["candidates"]] == sorted(2 * made)


def test_one_candidate_without_an_account_decides_the_way():
    """Random stopping needs an account of every candidate."""

    gaussian = lambda epsilon: SimpleNamespace(events=(Gaussian(0.01 * epsilon),))  # noqa: E731
    other = lambda epsilon: SimpleNamespace(events=(Pure(0.01 * epsilon),))  # noqa: E731
    mixed = [*3 * [gaussian], other, *2 * [gaussian]]
    assert planned(mixed, "auto", 1e-5).distribution is None
    assert planned(6 * [gaussian], "auto", 1e-5).distribution is not None
    with pytest.raises(ValueError, match="selection='exponential'"):
        planned(mixed, "random_stopping", 1e-5)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"grid": None}, "param_grid"),
        ({"grid": []}, "param_grid lists no candidate"),
        ({"grid": {"epsilon": [1.0]}}, "'epsilon': the search states it"),
        ({"grid": {"aplha": [1.0]}}, "'aplha': there is no such"),
        ({"estimator": RandomForestClassifier()}, "of this package"),
        ({"estimator": make_pipeline(Normalizer(), OUTPUT)}, "the search is the last step"),
        ({"estimator": OutputPerturbationClassifier}, "and a class is not"),
        ({"estimator": RANKING, "selection": "random_stopping"}, "selection='exponential'"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"miss": 1.5}, "miss"),
        ({"scoring": "f1"}, "scoring"),
        ({"selection": "best"}, "selection"),
        ({"selection": "gaussian", "delta": 0.0}, "delta > 0"),
    ],
)
def test_bad_parameters_are_named_and_leave_the_search_alone(params, message):
    model = search(**params)
    before = dict(vars(model))
    with record_releases() as releases, pytest.raises(ValueError, match=message):
        model.fit(X, Y)
    assert releases == []
    assert vars(model) == before


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore:random_state")
@pytest.mark.parametrize(
    ("estimator", "check"),
    checks(
        PrivateSearchCV(
            OutputPerturbationClassifier(data_norm=1.0),
            {"alpha": [0.1, 1.0]},
            epsilon=500.0,
            selection=kind,
        )
        for kind in ("exponential", "random_stopping", "gaussian")
    ),
)
def test_sklearn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("estimator", "selection"),
    [(OUTPUT, "random_stopping"), (OUTPUT, "exponential"), (OBJECTIVE, "exponential")],
)
def test_too_little_for_one_run_is_a_budget_error(estimator, selection):
    few = np.arange(5)
    model = search(estimator, selection=selection, epsilon=1e-3, delta=0.2)
    with pytest.raises(BudgetError, match="too small for a search"):
        model.fit(X[few], Y[few])
    assert not hasattr(model, "privacy_")


def test_runs_that_would_be_choices_of_a_small_table_are_planned_as_one():
    """Enough records for Gaussian steps with the whole budget, too few with that of a run."""
    X, y = separated(300, 3)
    grid = {"class_weight": [None, *({0: 1.0, 1: 1.0 + k} for k in range(1, 6))]}

    def planned(**params):
        model = AdaptiveMarginClassifier(classes=[0, 1], data_norm=1.0)
        return PrivateSearchCV(model, grid, epsilon=1.0, **params).plan(X, y)

    record = planned()
    assert all(isinstance(event, Exponential) for event in record.events)
    assert record.epsilon_at(record.delta) <= 1.0
    with pytest.raises(ValueError, match="solver='noisy_gd'"):
        planned(selection="random_stopping")


# -- where the noise of a search comes from ---------------------------------------------------


@pytest.mark.filterwarnings("ignore:random_state")
def test_the_record_says_where_the_noise_comes_from():
    for selection in ("exponential", "random_stopping"):
        assert search(selection=selection).plan(X, Y).noise == "os"
        assert search(selection=selection, random_state=3).plan(X, Y).noise == "seeded"
        assert search(selection=selection, epsilon=math.inf).plan(X, Y).noise == "none"


def test_no_candidate_has_a_seed_of_its_own():
    for model in (OUTPUT, OUTPUT.__class__(**{**OUTPUT.get_params(), "random_state": 5})):
        candidate = search(model)._candidate({"alpha": 0.1, "epsilon": 1.0, "delta": 1e-6})
        assert candidate.random_state is None
        assert candidate.ledger is None


@pytest.mark.parametrize("selection", ["exponential", "random_stopping"])
def test_runs_of_an_unseeded_search_never_draw_the_same_noise(selection):
    first, second = (search(grid={"alpha": [1e-2]}, selection=selection, n_repeats=2).fit(X, Y)
                     for _ in range(2))  # fmt: skip
    assert not np.array_equal(first.best_estimator_.coef_, second.best_estimator_.coef_)


@pytest.mark.parametrize("seed", [None, 7])
def test_the_noise_of_a_score_is_the_streams(seed):
    """A seed repeats it for the same run, and for no other one; without a seed nothing does."""
    noise = privacy.GaussianNoise(1.0, 1.0)

    def scored(run):
        model = search()._candidate({"alpha": 0.1, "epsilon": math.inf})
        return candidates.train_and_score(
            model, run, X=X, y=Y, scoring="accuracy", noise=noise, seed=seed
        )[1]

    assert scored(1) != scored(2)
    assert (scored(1) == scored(1)) == (seed is not None)


def test_names_of_an_earlier_table_are_forgotten():
    search = PrivateSearchCV(OUTPUT, {"alpha": [1.0]})
    search.fit(DataFrame(X, columns=["a", "b", "c"]), Y)
    assert search.feature_names_in_.tolist() == ["a", "b", "c"]
    search.fit(X[:, :2], Y)
    assert search.n_features_in_ == 2
    assert not hasattr(search, "feature_names_in_")


@pytest.mark.slow
@pytest.mark.parametrize("case", [CASES[0], CASES[3], CASES[8]])
def test_account_test_sees_candidates_with_too_much(monkeypatch, case):
    """Planted: candidates get twice the budget that is left for them."""
    honest = plan_module.run_epsilon
    monkeypatch.setattr(plan_module, "run_epsilon", lambda mu, delta: 2.0 * honest(mu, delta))
    monkeypatch.setattr(plan_module, "WIDE_DOWN", 2.0 if case[2] == 0.0 else 1.0)
    # The planner itself notices, or the test does.
    monkeypatch.setattr(plan_module, "random_stopping_event", lambda *given: Gaussian(0.01))
    with pytest.raises((AssertionError, RuntimeError)):
        test_every_run_has_the_budget_that_was_accounted_for(*case)


def test_score_test_sees_scores_that_are_not_cut(monkeypatch):
    """Planted: a record may count for as much as it likes."""
    careless = SimpleNamespace(**{**vars(math), "fsum": lambda each: 1e9})
    monkeypatch.setattr(candidates, "math", careless)
    with pytest.raises(AssertionError):
        test_scores_are_cut_to_one_number_in_the_unit_interval_for_each_record()


@pytest.mark.parametrize("n_repeats", [1, 2])
def test_a_search_of_one_candidate_too_many_is_refused(n_repeats):
    grid = {"intercept_scaling": np.arange(1.0, MOST_TRAINED // n_repeats + 2)}
    search = PrivateSearchCV(AdaptiveMarginClassifier(classes=[0, 1]), grid, n_repeats=n_repeats)
    with pytest.raises(ValueError, match="a search has at most 1000 candidates"):
        search.plan(X, Y)


def test_models_that_do_not_fit_into_memory_are_refused(monkeypatch):
    """All models are kept until one is chosen, but for those of a random number of runs."""
    monkeypatch.setattr("dp_halfspace._memory._MOST_BYTES", 8 * 6 * X.shape[1])
    for classes, most in (([0, 1], 6), ([0, 1, 2], 2), (None, 6)):
        one = search(clone(OUTPUT).set_params(classes=classes), selection="exponential")
        one._check_size(X, most)
        with pytest.raises(ValueError, match=f"keeps {most + 1} models until one is chosen"):
            one._check_size(X, most + 1)
        one.set_params(selection="random_stopping")._check_size(X, most + 1)


def test_a_pure_estimator_is_searched_with_pure_dp():
    """Unless the search states a delta of its own, as the page says."""
    model = AdaptiveMarginClassifier(delta=0.0, data_norm=1.0, classes=[0, 1])
    assert PrivateSearchCV(model, {"margin": [0.1, 0.2]}).plan(X, Y).delta == 0.0
    # A third of epsilon is for a run, and a tenth of that for its score.
    runs = plan_module.run_count_distribution(4, 0.1, eta=1.0)
    plan = plan_module.Search([], 400, 30.0, 0.0).pure(runs)
    assert plan.epsilon == pytest.approx(9.0, rel=1e-5)


def test_a_search_has_the_facts_of_all_candidates_and_one_label_set():
    """A candidate that takes the labels from the records would give away which of them occur."""
    plans = [search(grid={"classes": [each]}).plan(X, Y) for each in ([0, 1], None)]
    sources = [dict(plan.public)["classes_source"] for plan in plans]
    assert sources == ["stated by the user", "taken from the labels seen"]
    with pytest.raises(ValueError, match="the grid changes the label set"):
        search(grid={"classes": [[0, 1], None]}).plan(X, Y)
    assert "data_norm" not in dict(search(grid={"data_norm": [1.0, 2.0]}).plan(X, Y).public)


def test_columns_are_no_fact_of_a_search_that_chooses_their_schema():
    schemas = [dict.fromkeys(map(str, range(X.shape[1])), kind) for kind in ("number", [-1, 1])]
    model = PrivateTableClassifier(classes=[0, 1], schema=schemas[0])
    for grid, is_fact in (({}, True), ({"schema": schemas}, False)):
        assert ("columns" in dict(PrivateSearchCV(model, grid).plan(X, Y).public)) is is_fact
