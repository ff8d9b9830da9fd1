"""The card of any model from Python: what it says, and that it says it safely."""

import re
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dp_halfspace import (
    AdaptiveMarginClassifier,
    LabelPrivateClassifier,
    PrivacyLedger,
    PrivateConformalClassifier,
    PrivateKernelClassifier,
    PrivateTableClassifier,
    PrivateThresholdClassifier,
    __version__,
)
from dp_halfspace.estimators._outlook import Outlook
from dp_halfspace.inspection import (
    ColumnEffect,
    EffectsDisplay,
    model_card,
    natural_coefficients,
)
from dp_halfspace.inspection import card as card_module
from dp_halfspace.inspection.card import outlook_for
from dp_halfspace.metrics import private_score
from dp_halfspace.privacy.record import rounded_text
from tests.cli.test_models import read_page
from tests.conftest import separated

RNG = np.random.default_rng(5)
X = np.column_stack([RNG.normal(55, 12, 2000), RNG.normal(2e5, 4e4, 2000)])
Y = (X[:, 0] > 58).astype(int)


def text_of(card, tmp_path):
    path = tmp_path / "read.html"
    path.write_text(card, encoding="utf-8")
    return read_page(path)


def test_a_linear_model_and_what_its_author_states(tmp_path):
    ledger = PrivacyLedger(tmp_path / "l.db", epsilon=3.0, delta=1e-5)
    model = AdaptiveMarginClassifier(classes=[0, 1], ledger=ledger).fit(X, Y)
    stated = {
        "purpose": "Triage\non arrival <script>",
        "population": "Adults, 2019 to 2024",
        "limits": "Not for children",
        "contact": "a@example.org",
    }
    path = tmp_path / "card.html"
    card = model_card(model, path, title="ward", ledger=ledger, **stated)
    assert path.read_text(encoding="utf-8") == card
    # Also where the package is not installed.
    assert f'<th scope="row">dp-halfspace</th><td>{__version__}</td>' in card
    source, text = read_page(path)
    assert "<script" not in source
    for words in (
        "Private model of ward",
        "Purpose Triage on arrival <script>",
        "Population Adults, 2019 to 2024",
        "Limits Not for children",
        "Contact a@example.org",
        "what one unit of each adds to the score",
        "x0",
        "ε = 1 and δ = 2.5e-07",
        "0.1 %",
        "This fit ε = 1, δ = 2.5e-07",
        "Ledger of 'data': 1 entry, epsilon 1 of 3 asked for at delta 2.5e-07.",
        "are together (3, 1e-05)-differentially private",
        "Number of columns 2",
        "of the area under the ROC curve above one half",
    ):
        assert words in text, words
    # What was asked for comes first; the only fit costs less at the delta of the ledger.
    spent = re.search(r"By exact composition, epsilon ([\d.]+) of 3 at delta 1e-05", text).group(1)
    assert spent == rounded_text(model.privacy_.epsilon_at(1e-5))
    assert "times as likely, up to a probability of 2.5e-07." in text
    natural = natural_coefficients(model)
    assert natural.has_sign[0].tolist() == [True, False]
    assert "(?) marks a coefficient within two of them" in text
    numbers = zip(natural.coefficients[0], natural.errors[0], ("", " (?)"), strict=True)
    for name, (coefficient, error, mark) in zip(natural.names, numbers, strict=True):
        shown = f"{coefficient:.3g} ± {error:.2g}{mark}"
        assert f" {name} {shown} {natural.importances[name]:.2g}" in text
    assert "Behind ± is the standard error due to the noise" in text
    with pytest.raises(ValueError, match="file of a privacy ledger"):
        model_card(model, tmp_path / "l.db")
    assert "About" not in text_of(model_card(model), tmp_path)[1]


def test_numbers_are_short_and_on_the_safe_side(tmp_path):
    model = AdaptiveMarginClassifier(epsilon=0.123456, classes=[0, 1]).fit(X, Y)
    _, text = text_of(model_card(model), tmp_path)
    before = text[: text.index("For auditors")]
    # Versions of the software and coefficients apart, no number has more than three decimals.
    promise = before[before.index("What is promised") : before.index("What to expect")]
    assert not re.search(r"\d\.\d{4,}", promise)
    assert "ε = 0.124" in promise
    sure = float(re.search(r"in at most ([\d.]+) %", promise).group(1))
    exact = 50 * (1 + model.privacy_.attack_advantage())
    assert exact <= sure <= exact + 1
    for rate in (0.001, 0.01, 0.1):
        shown = re.search(rf"(?<![\d.]){100 * rate:g} % ([\d.]+) % at most", promise)
        assert float(shown.group(1)) >= 100 * model.privacy_.attack_tpr(rate)


def test_a_poor_outlook_is_said_with_what_it_would_take(tmp_path):
    rows, y = RNG.standard_normal((100, 4)), np.arange(100) % 2
    model = PrivateTableClassifier(
        epsilon=0.1, classes=[0, 1], schema={str(j): "number" for j in range(4)}
    )
    model.fit(rows, y)
    found = outlook_for(model)
    assert found == Outlook(100, 4, 0.1)
    assert found.is_poor
    _, text = text_of(model_card(model), tmp_path)
    assert f"{found}. Computed from the number of records and of encoded columns" in text
    # Neither a range nor a scale of a column is known, so there is no axis in its units.
    assert "No column has a known range or known categories to draw." in text


def test_pure_dp_has_no_exceptions(tmp_path):
    model = AdaptiveMarginClassifier(classes=[0, 1], delta=0.0, data_norm=3e5).fit(X, Y)
    source, text = text_of(model_card(model), tmp_path)
    assert "<h1>AdaptiveMarginClassifier</h1>" in source
    assert "Labels, stated 0, 1" in text
    assert "times as likely. Suppose" in text
    assert "Columns not used" not in text


@pytest.mark.parametrize(("delta", "what"), [("auto", "log odds"), (0.0, "score")])
def test_scores_of_a_table_are_log_odds_only_with_probabilities(tmp_path, delta, what):
    pytest.importorskip("matplotlib")
    schema = {"0": [0, 120], "1": [0, 4e5]}
    model = PrivateTableClassifier(epsilon=9, delta=delta, classes=[0, 1], schema=schema)
    _, text = text_of(model_card(model.fit(X, Y)), tmp_path)
    assert hasattr(model, "predict_proba") == (what == "log odds")
    assert f"one column adds to the {what} of 1" in text


def test_the_largest_effects_are_drawn_first(monkeypatch):
    monkeypatch.setattr(card_module, "_MOST_CURVES", 2)
    effects = {"small": [0.1, -0.2], "large": [0.0, -3.0], "middle": [1.0, 0.0]}
    columns = [
        ColumnEffect(name, np.arange(2.0), np.array(each)[:, None])
        for name, each in effects.items()
    ]
    shown = []
    honest = EffectsDisplay.plot

    def plot(self, figure):
        shown.extend(column.name for column in self.columns)
        return honest(self, figure)

    monkeypatch.setattr(EffectsDisplay, "plot", plot)
    said = card_module._curves(
        EffectsDisplay(columns, [1], np.ones(1)), SimpleNamespace(classes_=[0, 1, 2])
    )
    assert shown == ["large", "middle"]
    assert "The 2 of 3 columns with the largest effects:" in said


def test_a_display_that_explains_nothing_is_not_shown():
    """Flat effects are left out by name, and a sum that does not describe the score as a whole."""
    levels = np.arange(3.0)

    def said(explained, **effects):
        columns = [
            ColumnEffect(name, levels, np.array(each)[:, None], deviations=np.full((3, 1), 0.5))
            for name, each in effects.items()
        ]
        display = EffectsDisplay(columns, [1], np.array([explained]))
        return card_module._curves(display, SimpleNamespace(classes_=[0, 1]))

    flat, steep, nothing = [0.1, -0.9, 0.9], [0.0, 1.1, 0.2], [0.0, 0.0, 0.0]
    both = said(0.9, age=steep, sex=flat, unit=nothing)
    assert "<figure>" in both
    assert "cannot be told from noise or are zero: sex, unit." in both
    assert ">sex<" not in both[both.index("<figure>") :]
    alone = said(0.9, sex=flat)
    assert "No effect is shown." in alone
    poor = said(0.29, age=steep)
    assert "effects of single columns do not describe the score" in poor
    assert "<figure>" not in alone + poor
    assert "<figure>" in said(0.31, age=steep)


def test_columns_that_are_not_used_are_named_and_noise_is_grey(tmp_path):
    schema = {"0": [0, 120], "1": "number", "2": "drop"}
    rows = np.column_stack([X, X[:, 0]])
    model = PrivateTableClassifier(
        epsilon=2.0, classes=[0, 1], schema=schema, features="additive"
    ).fit(rows, Y)
    source, text = text_of(model_card(model), tmp_path)
    assert "Columns not used 2" in text
    assert re.search(r"Types of the columns: 0 number .* 1 number", text)
    assert "Number of columns 2" in text
    assert "Grey effects may be due to noise alone" in text
    assert "#999999" in source


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("model", "words"),
    [
        (LabelPrivateClassifier(classes=[0, 1], n_fourier=20), "its features are not protected"),
        (AdaptiveMarginClassifier(classes=[0, 1], epsilon=np.inf), "the fit had no noise"),
        (PrivateKernelClassifier(kernel="rbf", classes=[0, 1], data_norm=1.0), "no public ranges"),
        (PrivateKernelClassifier(kernel="additive", classes=[0, 1]), "adds to the score of 1"),
        (
            make_pipeline(StandardScaler(), AdaptiveMarginClassifier(classes=[0, 1])),
            "Not covered: StandardScaler",
        ),
    ],
    ids=["labels", "no noise", "rbf", "additive", "pipeline"],
)
@pytest.mark.filterwarnings("ignore:steps of this pipeline")
def test_every_kind_of_model_has_a_card(model, words, tmp_path):
    _, text = text_of(model_card(model.fit(*separated(1500, 3))), tmp_path)
    assert words in text


class Forest(ClassifierMixin, BaseEstimator):
    """A model of another library, fitted to who knows what."""

    classes_ = np.array([0, 1])

    def fit(self, X, y):
        return self

    def predict(self, X):
        return (np.asarray(X)[:, 0] > 58).astype(int)

    def predict_proba(self, X):
        chance = 1.0 / (1.0 + np.exp((58 - np.asarray(X)[:, 0]) / 5))
        return np.column_stack([1.0 - chance, chance])


@pytest.mark.parametrize("kind", [PrivateThresholdClassifier, PrivateConformalClassifier])
def test_what_wraps_a_model_promises_nothing_of_the_model(kind, tmp_path):
    wrapper = kind(FrozenEstimator(Forest()), epsilon=3.0).fit(X, Y)
    text = text_of(model_card(wrapper, title="ward"), tmp_path)[1]
    part = kind.learnt_part
    assert f"Private {part} of ward" in text
    assert f"The {part} would have been almost as likely" in text
    assert "The model would" not in text
    assert "With this model" not in text
    assert f"the guarantee of the {part} alone, for the held-out records" in text
    unprotected = "the model inside, Forest, which has no record of what it spent"
    assert unprotected in text
    assert "nothing protects them" in text
    assert "have a card" not in text
    assert "no public ranges" not in text


@pytest.mark.filterwarnings("ignore:steps of this pipeline")
@pytest.mark.parametrize("frozen", [False, True])
def test_what_wraps_a_private_model_tells_its_guarantee(frozen, tmp_path):
    model = PrivateTableClassifier(epsilon=2.0, delta=1e-7, classes=[0, 1]).fit(X, Y)
    inside = FrozenEstimator(model) if frozen else model
    wrapper = PrivateThresholdClassifier(inside, epsilon=3.0).fit(X, Y)
    text = text_of(model_card(wrapper), tmp_path)[1]
    said = (
        "The model inside, PrivateTableClassifier, has another one for the records that it was "
        f"fitted to: {model.privacy_}. If both are records of one data set, the two add up."
    )
    assert said in text
    behind = make_pipeline(StandardScaler(), AdaptiveMarginClassifier(classes=[0, 1])).fit(X, Y)
    wrapper = PrivateThresholdClassifier(behind, epsilon=3.0).fit(X, Y)
    assert "Not covered: StandardScaler" in text_of(model_card(wrapper), tmp_path)[1]


def test_the_card_of_a_model_with_names_issues_no_warning():
    frame = pd.DataFrame(X, columns=["age", "platelets"])
    model = PrivateKernelClassifier(classes=[0, 1]).fit(frame, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "platelets" in model_card(model)


# -- sentences that depend on what is known ---------------------------------------------------


@pytest.fixture(scope="module")
def scored():
    """A ledger with a fit and two scores, the model, and the scores."""
    ledger = PrivacyLedger(epsilon=9.0, delta=1e-5)
    model = AdaptiveMarginClassifier(delta=1e-7, classes=[0, 1], ledger=ledger).fit(X, Y)
    given = {"delta": 1e-8, "ledger": ledger}
    accuracy = private_score(model, X, Y, epsilon=0.5, **given)
    others = private_score(model, X, Y, metric=["roc_auc", "confusion_matrix"], **given)
    return ledger, model, accuracy, others


def quality(model, **given):
    page = model_card(model, **given)
    part = page[page.index("How good it is") : page.index("What the columns do")]
    return " ".join(re.sub(r"<[^>]*>", " ", part).split())


def test_a_card_shows_the_scores_that_it_is_given(scored):
    ledger, model, accuracy, others = scored
    low, high = accuracy.interval
    text = quality(model, scores=[accuracy], ledger=ledger)
    assert quality(model, scores=accuracy, ledger=ledger.handle) == text
    assert f"accuracy {accuracy.value:.3f} {low:.3f} to {high:.3f}" in text
    assert "majority class {:.3f} {:.3f} to {:.3f}".format(*accuracy.majority) in text
    assert "The scores on 2000 records were released with (ε, δ)-differential privacy" in text
    assert "ε = 0.5 and δ = 1e-08." in text
    assert "is the accuracy of a model that ignores all columns" in text
    assert "No score" not in text
    text = quality(model, scores=[accuracy, *others])
    for words in ("ε = 0.5 and", "ε = 1 and", "0, predicted 1", "roc_auc"):
        assert words in text


@pytest.mark.filterwarnings("ignore:random_state is an int")
def test_a_card_says_which_scores_and_fits_are_not_private(scored):
    _, model, *_ = scored
    exact = private_score(model, X, Y, epsilon=np.inf)
    assert "have no noise (ε is infinite), so they are not private" in quality(
        model, scores=[exact]
    )
    seeded = private_score(model, X, Y, random_state=0)
    assert "protects from nobody who knows the seed" in quality(model, scores=[seeded])
    page = model_card(AdaptiveMarginClassifier(classes=[0, 1], random_state=0).fit(X, Y))
    assert "Nothing: the noise of the fit was drawn from a seed" in page
    assert "times as likely" not in page


def test_a_card_shows_scores_of_groups(scored):
    _, model, *_ = scored
    ward = np.where(np.arange(2000) % 2, "north", "south")
    scores = private_score(model, X, Y, by=ward, by_values=["north", "south"], epsilon=3.0)
    text = quality(model, scores=[scores])
    assert f"accuracy, north {scores.value[0]:.3f}" in text
    assert "accuracy, other" in text


def test_a_card_refuses_what_contradicts_the_record(scored):
    """Persons that were not protected; scores of a model of other classes."""
    _, model, accuracy, _ = scored
    with pytest.raises(
        ValueError, match="names persons, and this fit does not protect them: leave it out"
    ):
        model_card(model, groups="patient")
    of_others = AdaptiveMarginClassifier(classes=[1, 2]).fit(X, Y + 1)
    with pytest.raises(ValueError, match=r"classes \[0, 1\], and the model of \[1, 2\]"):
        model_card(of_others, scores=[accuracy])


def test_a_card_counts_persons_and_escapes_the_record():
    labels, people = np.where(Y, "<b>", "c"), np.arange(2000) // 2
    model = AdaptiveMarginClassifier(classes=["<b>", "c"]).fit(X, labels, groups=people)
    card = model_card(model)
    assert "for 1000 persons: if no class is rare, expect about" in card
    assert "Number of persons" in card
    assert "<b>" not in card


def test_what_is_left_names_the_mechanism(scored):
    ledger, model, *_ = scored
    for given in (ledger, ledger.handle):
        assert "or one more Gaussian release at delta 1e-05" in model_card(model, ledger=given)
    pure = model_card(model, ledger=PrivacyLedger(epsilon=9.0, delta=0.0))
    assert "one more pure DP release: epsilon 9" in pure
    assert "Gaussian release at delta 0" not in pure
