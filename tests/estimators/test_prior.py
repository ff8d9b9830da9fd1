"""A public prior: what one record can do to the choice, planted bugs, replays, refusals.

Proofs: ``docs/proofs/prior.md``.
"""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

from dp_halfspace import AdaptiveMarginClassifier, PrivateSearchCV
from dp_halfspace.datasets import in_chunks
from dp_halfspace.engine.plan import LinearPrior
from dp_halfspace.estimators import _priors
from dp_halfspace.exceptions import PrivacyWarning
from dp_halfspace.inspection.card import outlook_for
from dp_halfspace.preprocessing import PublicScaler
from dp_halfspace.privacy.exponential import TalliedChoice
from dp_halfspace.selection.small_tables import classes_of, plan_small_table
from dp_halfspace.selection.small_trees import plan_small_tree
from tests.adversarial import neighbouring_pairs
from tests.releases import record_releases
from tests.support import largest_ratio

pytestmark = pytest.mark.filterwarnings("ignore::dp_halfspace.PrivacyWarning")

SCALES = np.array([12.0, 1e4, 0.1, 3.0])


def table(n, n_classes=2, seed=0):
    """Columns in units of their own, and labels that two of them decide but for some noise."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, 4))
    score = Z[:, 0] + Z[:, 1] + 0.4 * rng.standard_normal(n)
    y = np.digitize(score, [0.0] if n_classes == 2 else [-0.8, 0.8])
    return Z * SCALES + [60.0, 2e4, 1.0, 0.0], y


def good(n_classes=2):
    """A model of other rows of the same table."""
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(*table(400, n_classes, seed=9))


def pair_of(model):
    """Coefficients and intercepts for columns as they are."""
    scaler, last = model[0], model[-1]
    coefficients = last.coef_ / scaler.scale_
    return coefficients, last.intercept_ - coefficients @ scaler.mean_


def bad(model):
    """The opposite of a model."""
    coefficients, intercepts = pair_of(model)
    return -coefficients, -intercepts


def classifier(**params):
    labels = [0, 1, 2] if params.pop("n_classes", 2) == 3 else [0, 1]
    return AdaptiveMarginClassifier(classes=labels, **params)


# What is released, and what one record can do to it.


def largest_change(trials=60):
    """Largest change of the cost of a prior over adversarial neighbours."""
    worst, rng = 0, np.random.default_rng(1)
    for trial, (X, y, other_X, other_y) in enumerate(neighbouring_pairs(rng, trials)):
        d = X.shape[1]
        model = rng.standard_normal((1, d)), np.array([0.1 * (trial % 3 - 1)]), np.full(d, 0.3)
        other_X[0] *= (1.0, 1e150, np.nan, -1e300)[trial % 4]
        listed = plan_small_table(len(X), d, 0.5, seed=0, prior=LinearPrior(*model))
        listed = replace(listed, n_candidates=40, n_constants=3)
        weights = np.array(((2**16, 2**16), (2**16, 20000), (7, 2**16))[trial % 3]) / 2**16
        found = [
            np.concatenate(list(listed.costs(a, b, weights)))[-listed.n_listed :]
            for a, b in ((X, y), (other_X, other_y))
        ]
        worst = max(worst, int(np.abs(found[0] - found[1]).max()))
    return worst


def test_a_prior_of_divided_rows_fills_them_with_divided_numbers():
    X = np.random.default_rng(0).normal(size=(200, 3))
    X[::3, 0] = np.nan
    numbers = [[1.0, -2.0, 0.5]], [0.3], [4.0, 1.0, 0.0]
    prior = LinearPrior(*map(np.array, numbers))
    np.testing.assert_array_equal(classes_of(prior.over(8.0), X / 8.0), classes_of(prior, X))


def test_a_record_changes_the_errors_of_a_prior_by_one_at_most():
    assert largest_change() == 1


def test_a_tree_list_counts_the_errors_of_the_prior():
    X, y = table(60, 3)
    prior = LinearPrior(*pair_of(good(3)), np.zeros(4))
    plan = plan_small_tree(60, 4, 3, 1.0, seed=0, prior=prior)
    weights = np.array([1.0, 0.5, 0.25])
    wrong = good(3).predict(X) != y
    last = list(plan.costs(X, y, weights))[-1]
    assert len(last) == plan.n_listed == dict(plan.public)["n_candidates"] // 2
    assert set(last) == {int(np.floor(weights[y[wrong]].sum()))}
    assert wrong.any()


def test_the_class_of_a_row_does_not_depend_on_others_or_its_place():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 7)) * 10.0 ** rng.uniform(-9, 9, (500, 7))
    X[rng.random(X.shape) < 0.1] = np.nan
    for size in (1, 3):
        coefficients, intercepts = rng.standard_normal((size, 7)), rng.standard_normal(size)
        fill = np.arange(7.0)
        # Rows on the boundary, where a bit decides.
        intercepts[0] = -np.where(np.isnan(X[3]), fill, X[3]) @ coefficients[0]
        prior = LinearPrior(coefficients, intercepts, fill)
        whole = classes_of(prior, X)
        turned = classes_of(prior, np.asfortranarray(X[::-1]))[::-1]
        single = [classes_of(prior, X[i : i + 1])[0] for i in range(500)]
        np.testing.assert_array_equal(whole, turned)
        np.testing.assert_array_equal(whole, single)


def test_errors_of_a_prior_are_those_of_its_predictions_at_a_score_of_zero_too():
    prior = LinearPrior(np.ones((1, 1)), np.zeros(1), np.zeros(1))
    assert classes_of(prior, np.array([[-1.0], [0.0], [1.0], [np.nan]])).tolist() == [0, 0, 1, 0]
    filled = LinearPrior(np.ones((1, 1)), np.full(1, -1.0), np.full(1, 2.0))
    assert classes_of(filled, np.array([[np.nan]])).tolist() == [1]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("n", "epsilon", "n_classes", "norm"),
    [
        (60, 1.0, 2, None),
        (60, 1.0, 3, None),
        (90, 2.5, 3, None),
        (90, 30.0, 2, 1e5),
    ],
)
def test_a_neighbour_changes_nothing_that_is_not_paid_for(n, epsilon, n_classes, norm):
    X, y = table(n, n_classes)
    other_X, other_y = X.copy(), y.copy()
    other_X[0], other_y[0] = -X[0] * 1e3, (y[0] + 1) % n_classes
    model = classifier(epsilon=epsilon, prior=good(n_classes), n_classes=n_classes, data_norm=norm)
    assert largest_ratio(model, X, y, other_X, other_y) <= 1.0


def test_what_is_charged_is_what_is_released():
    X, y = table(300)
    model = classifier(prior=good())
    planned = model.plan(X, y)
    with record_releases() as releases:
        model.fit(X, y)
    assert model.privacy_.events == planned.events
    (released,) = releases
    assert isinstance(released.mechanism, TalliedChoice)
    assert planned.events == (released.mechanism.event,)
    assert released.value[-1] == np.sum(good().predict(X) != y)
    # Nearly all that was asked for is used.
    assert 0.97 < planned.epsilon_at(0.0) <= 1.0
    text = dict(planned.public)["prior"]
    assert text.startswith("public linear model, SHA-256 ")
    assert text in planned.summary()
    assert dict(clone(model).set_params(prior=bad(good())).plan(X, y).public)["prior"] != text


# What it does.


def test_a_good_prior_is_kept_or_improved_on_and_a_bad_one_left():
    X, y = table(300)
    Z, t = table(2000, seed=3)
    model = classifier(epsilon=0.1, prior=good()).fit(X, y)
    assert model.score(Z, t) > 0.8
    model = classifier(epsilon=0.1, prior=bad(good())).fit(X, y)
    assert model.score(Z, t) > 0.4


def test_a_prior_that_is_kept_predicts_what_it_predicted():
    prior, Z = good(), table(500, seed=3)[0]
    for norm in (None, 1e5):
        # Labels that the prior alone gets right in all cases: other candidates make errors.
        X = table(300)[0]
        model = classifier(prior=prior, data_norm=norm).fit(X, prior.predict(X))
        np.testing.assert_array_equal(model.predict(Z), prior.predict(Z))
        np.testing.assert_allclose(model.decision_function(Z), prior.decision_function(Z))
        assert model.margin_ == 0.0
        assert model.projection_ is None


@pytest.mark.parametrize("plan", [plan_small_table, plan_small_tree])
def test_only_the_numbers_of_the_prior_are_the_prior(plan):
    """Constant classifiers end the list of the others, whatever follows it."""
    prior = LinearPrior(np.ones((1, 4)), np.zeros(1), np.zeros(4))
    classes = () if plan is plan_small_table else (2,)
    listed = plan(200, 4, *classes, 1.0, seed=0, prior=prior)
    lengths = [listed.n_listed - 2 * listed.n_constants, 2 * listed.n_constants, listed.n_listed]
    for number, is_prior in ((lengths[0], False), (sum(lengths[:2]) - 1, False),
                             (sum(lengths[:2]), True), (sum(lengths) - 1, True)):  # fmt: skip
        found = listed.candidate(number)
        assert (found.is_prior, bool(np.any(found.coefficients))) == (is_prior, is_prior)


def test_a_prior_fills_missing_entries_with_its_own_public_centre():
    prior, X, epsilon = good(), table(300)[0], 9.0
    gaps = np.random.default_rng(0).random(X.shape) < 0.2
    filled = np.where(gaps, prior[0].mean_, X)
    labels = prior.predict(filled)
    model = classifier(epsilon=epsilon, prior=prior).fit(np.where(gaps, np.nan, X), labels)
    np.testing.assert_array_equal(model.predict(np.where(gaps, np.nan, X)), labels)
    scores = model.decision_function(np.where(gaps, np.nan, X))
    np.testing.assert_allclose(scores, prior.decision_function(filled), atol=1e-9)
    assert model.scaler_.clip == np.inf
    without = classifier(epsilon=epsilon, prior=pair_of(prior)).fit(X, prior.predict(X))
    np.testing.assert_array_equal(without.predict(X), prior.predict(X))


# What may be a prior.


@pytest.mark.parametrize("params", [{"with_mean": False}, {"with_std": False}])
def test_a_scaler_before_a_prior_is_read_as_it_scales(params):
    X, y = table(300)
    ranges = PublicScaler([(-100, 300)] * X.shape[1])
    steps = StandardScaler(**params), ranges, LinearSVC(random_state=0)
    model = make_pipeline(*steps).fit(X / SCALES, y)
    read = _priors.read_prior(model, classifier()._validate(X, y, None))
    scores = (X / SCALES) @ read.coefficients[0] + read.intercepts[0]
    np.testing.assert_allclose(scores, model.decision_function(X / SCALES), rtol=1e-6, atol=1e-6)


def test_a_prior_is_read_from_models_and_numbers():
    X, y = table(300)
    frame = pd.DataFrame(X, columns=list("abcd"))
    labels = np.where(y == 1, "ill", "well")
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, labels)
    private = AdaptiveMarginClassifier(epsilon=50, classes=["ill", "well"]).fit(frame, labels)
    coefficients, intercepts = pair_of(model)
    raw = LinearSVC(random_state=0).fit(X / SCALES, y)
    given = AdaptiveMarginClassifier(epsilon=1.0, classes=["ill", "well"])
    data = given._validate(frame, labels, None)
    for prior in (
        model,
        FrozenEstimator(model),
        (coefficients, intercepts),
        [coefficients[0], intercepts[0]],
    ):
        read = _priors.read_prior(prior, data)
        np.testing.assert_allclose(read.coefficients, coefficients)
        np.testing.assert_allclose(read.intercepts, intercepts)
    read = _priors.read_prior(private, data)
    scores = X @ read.coefficients[0] + read.intercepts[0]
    private.scaler_.row_clip = None
    expected = private.decision_function(frame)
    inside = np.abs(private.scaler_.transform(frame)).max(axis=1) < private.scaler_.clip
    np.testing.assert_allclose(scores[inside], expected[inside], rtol=1e-6, atol=1e-9)
    numbers = classifier()._validate(X, y, None)
    np.testing.assert_array_equal(_priors.read_prior(raw, numbers).coefficients, raw.coef_)
    # Labels in another order: the sign, or the rows, follow.
    raw.classes_ = raw.classes_[::-1]
    read = _priors.read_prior(raw, numbers)
    np.testing.assert_array_equal(read.coefficients, -raw.coef_)
    np.testing.assert_array_equal(read.intercepts, -raw.intercept_)
    three = good(3)[-1]
    three.classes_ = np.array([2, 0, 1])
    numbers = classifier(n_classes=3)._validate(*table(300, 3), None)
    read = _priors.read_prior(three, numbers)
    np.testing.assert_array_equal(read.coefficients, three.coef_[[1, 2, 0]])
    np.testing.assert_array_equal(read.intercepts, three.intercept_[[1, 2, 0]])


@pytest.mark.parametrize(
    ("prior", "says"),
    [
        (LogisticRegression(), "is not fitted"),
        (GaussianNB().fit(*table(50)), "GaussianNB has none"),
        (LinearRegression().fit(*table(50)), "LinearRegression has none"),
        (make_pipeline(MinMaxScaler(), LogisticRegression()).fit(*table(50)), "another step"),
        (RidgeClassifier().fit(table(50)[0], table(50)[1] + 1), "other labels"),
        ((np.ones(3), 0.0), "1 x 4 coefficients"),
        ((np.ones(4), [0.0, 1.0]), "1 x 4 coefficients"),
        ((["a"] * 4, 0.0), "1 x 4 coefficients"),
        ((np.ones(4),), "prior must be a fitted linear model"),
        ((np.full(4, np.nan), 0.0), "not finite"),
        ((np.full(4, 1e51), 0.0), "beyond 1e\\+50"),
        ("a model", "'prior' parameter"),
    ],
)
def test_what_is_no_prior_is_refused_before_anything_is_spent(prior, says):
    X, y = table(60)
    model = classifier(prior=prior)
    for call in (model.fit, model.plan):
        with pytest.raises(ValueError, match=says):
            call(X, y)


def test_a_prior_that_compares_pairs_of_classes_is_refused():
    X, y = table(300, 3)
    prior = SVC(kernel="linear").fit(X / SCALES, y)
    assert prior.coef_.shape == (3, 4)
    with pytest.raises(ValueError, match="compares classes in pairs: use LinearSVC"):
        classifier(n_classes=3, prior=prior).plan(X, y)


def test_other_columns_and_logarithmic_scales_are_refused():
    X, y = table(300)
    frame = pd.DataFrame(X, columns=list("abcd"))
    prior = RidgeClassifier().fit(frame, y)
    with pytest.raises(ValueError, match="other columns than those of X, or in another order"):
        classifier(prior=prior).fit(frame[list("bacd")], y)
    model = classifier(epsilon=0.7, random_state=0)
    for seed in range(20):
        model.set_params(random_state=seed).fit(X, y)
        if model.scaler_ is not None:
            break
    with pytest.raises(ValueError, match="logarithms of the columns"):
        classifier(prior=model).fit(X, y)


@pytest.mark.parametrize(
    ("n", "params"),
    [
        (3000, {}),
        (300, {"margin": 0.1}),
        (300, {"solver": "objective_perturbation"}),
        (300, {"selection": "gaussian"}),
        (300, {"class_weight": "balanced"}),
        (300, {"projection": "rademacher", "n_components": 3}),
    ],
)
def test_fits_that_are_no_selection_refuse_a_prior(n, params):
    with pytest.raises(ValueError, match="prior needs few records and the default parameters"):
        classifier(prior=good(), **params).fit(*table(n))


def test_chunks_people_and_weights_of_records_are_refused_beside_a_prior():
    X, y = table(300)
    model = classifier(prior=good())
    for rows, labels, given in (
        (in_chunks(X, 100), in_chunks(y, 100), {}),
        (X, y, {"groups": np.arange(300) // 2}),
        (X, y, {"sample_weight": np.ones(300)}),
    ):
        with pytest.raises(ValueError, match="prior needs few records"):
            model.fit(rows, labels, **given)


def test_pure_epsilon_and_public_class_weights():
    X, y = table(300)
    model = classifier(prior=good(), delta=0.0, class_weight={0: 0.5, 1: 1.0}).fit(X, y)
    assert model.privacy_.delta == 0.0


# Copies.


def test_copies_keep_what_the_prior_has_learnt(tmp_path):
    (X, y), prior = table(200), good()
    model = classifier(prior=prior, random_state=0)
    for twin in (clone(model), clone(make_pipeline(StandardScaler(), model))[-1]):
        assert twin.prior is prior
        assert twin.get_params()["prior"] is prior
    fitted = model.fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))
    np.testing.assert_array_equal(clone(model).fit(X, y).coef_, fitted.coef_)
    search = PrivateSearchCV(classifier(prior=good()), {"fit_intercept": [True]}, epsilon=1.0)
    assert search.fit(X, y).score(X, y) > 0.5


def test_a_search_takes_priors_as_they_are():
    X, y = table(200)
    prior = LogisticRegression(C=0.5, verbose=1, max_iter=1000).fit(*table(400, seed=9))
    before = prior.get_params()
    for stated, grid in ((prior, {"class_weight": [None]}), (None, {"prior": [prior]})):
        PrivateSearchCV(classifier(prior=stated), grid, epsilon=1.0).fit(X, y)
    assert prior.get_params() == before


def test_nothing_is_expected_of_a_fit_that_may_keep_a_prior():
    """Neither by a warning at the fit nor on the card."""
    X, y = table(300)
    with_prior = classifier(epsilon=0.1, prior=good())
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        with_prior.plan(X[:30], y[:30])
    assert outlook_for(with_prior.fit(X, y)) is None
