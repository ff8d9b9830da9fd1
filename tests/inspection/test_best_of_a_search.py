"""What is shown of the best model of a search, whose record is that of the search."""

import numpy as np
import pandas as pd

from dp_halfspace import OutputPerturbationClassifier, PrivateSearchCV, PrivateTableClassifier
from dp_halfspace.inspection import EffectsDisplay, model_card, natural_coefficients
from dp_halfspace.inspection.card import outlook_for

RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.standard_normal(3000), "b": RNG.uniform(size=3000)})
Y = (X["a"] > 0.0).to_numpy(dtype=int)
SCHEMA = {"a": "number", "b": [0, 1]}


def test_the_best_table_has_effects_and_a_card():
    table = PrivateTableClassifier(schema=SCHEMA, classes=[0, 1])
    grid = {"features": ["linear", "additive"]}
    search = PrivateSearchCV(table, grid, epsilon=3.0).fit(X, Y)
    best = search.best_estimator_
    shown = {effect.name for effect in EffectsDisplay.from_estimator(best).columns}
    assert shown == {"a", "b"}
    assert EffectsDisplay.from_estimator(search).importances.keys() == shown
    card = model_card(best)
    assert "What the columns do" in card
    assert "with the largest effects" in card
    # The record of the search is that of the best model, and so is the card.
    assert model_card(search).split("Made by")[0] == card.split("Made by")[0]
    assert dict(dict(search.privacy_.public)["columns"]) == {"a": "number", "b": "number in [0, 1]"}
    # It was fitted with a part of the budget.
    assert outlook_for(best).epsilon == dict(search.privacy_.public)["epsilon_of_a_run"] < 3.0


def test_the_best_linear_model_has_coefficients():
    model = OutputPerturbationClassifier(classes=[0, 1], data_norm=2.0)
    search = PrivateSearchCV(model, {"alpha": [0.1, 1.0]}, epsilon=3.0).fit(X, Y)
    found, best = natural_coefficients(search), natural_coefficients(search.best_estimator_)
    assert found.importances == best.importances
    assert found.names == ("a", "b")
    # What is not known to be more than noise has no sign.
    assert found.errors is None
    assert not found.has_sign.any()
    card = model_card(search)
    assert "The noise in the coefficients is not known" in card
    assert "±" not in card
    assert "(?)" not in card


def test_released_scales_are_those_that_the_record_of_a_table_lists():
    for epsilon in (0.001, 1.0, 5.0):
        table = PrivateTableClassifier(epsilon=epsilon, schema=SCHEMA, classes=[0, 1])
        record = table.fit(X, Y).privacy_
        listed = dict(record.public)["private_column_scales"]
        assert table._columns_in_estimated_scales == frozenset(listed)
