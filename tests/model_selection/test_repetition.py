"""Repetition boosts confidence by the rule of the papers, within one budget."""

import math

import numpy as np
import pytest

from dp_halfspace import OutputPerturbationClassifier, PrivateSearchCV, privacy
from dp_halfspace.model_selection import confidence_repeats
from tests.conftest import separated
from tests.model_selection.test_search_distributions import (
    Known,
    admitted,  # noqa: F401 - for every test here
    no_run_was_seen,  # noqa: F401 - for every test here
    records,
)

X, Y = separated(300, 3, 2)
MODEL = OutputPerturbationClassifier(classes=[0, 1], data_norm=1.0, preconditioner=False)


@pytest.mark.parametrize(
    ("beta", "count"), [(0.05, 4), (0.1, 3), (0.01, 6), (2 / math.e**3 * (1 + 1e-9), 3), (0.999, 1)]
)
def test_the_rule_of_the_papers(beta, count):
    """Algorithm 5 of Bassily et al. (2022), and Algorithm 3 of Nguyen et al. (2020)."""
    assert confidence_repeats(beta) == count == math.ceil(math.log(2 / beta))
    assert confidence_repeats(beta / 4) == math.ceil(math.log(8 / beta))
    # All runs fail with half of beta at most, and fewer would not do.
    assert math.exp(-confidence_repeats(beta)) <= beta / 2 < math.exp(1 - count)


@pytest.mark.parametrize("beta", [0.0, 1.0, -0.1, math.nan, 2.0])
def test_a_probability_is_asked_for(beta):
    with pytest.raises(ValueError, match="beta must be in"):
        confidence_repeats(beta)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("delta", [1e-5, 0.0])
@pytest.mark.parametrize("selection", ["exponential", "random_stopping"])
def test_repeats_share_one_budget(selection, delta):
    search = PrivateSearchCV(
        MODEL, {}, epsilon=2.0, delta=delta, n_repeats=confidence_repeats(0.05), selection=selection
    ).fit(X, Y)
    record = search.privacy_
    assert dict(record.public)["candidates"] == ((),) * 4
    assert 0.97 * 2.0 <= privacy.epsilon(record.events, delta) <= 2.0 * (1 + 1e-9)
    assert search.best_params_ == {}
    assert search.best_estimator_.epsilon < 2.0
    if selection == "exponential":
        assert len(record.events) == 4 + 1
        # About half of the signal to noise ratio of one fit, or a quarter of a pure epsilon.
        share = search.best_estimator_.epsilon / 2.0
        assert 0.2 < share < (0.6 if delta else 0.25)


def test_every_candidate_of_a_grid_takes_part_as_often():
    grid = {"alpha": [0.1, 1.0]}
    search = PrivateSearchCV(MODEL, grid, epsilon=2.0, n_repeats=3, selection="exponential")
    candidates = dict(search.fit(X, Y).privacy_.public)["candidates"]
    assert [dict(each)["alpha"] for each in candidates] == [0.1] * 3 + [1.0] * 3
    with pytest.raises(ValueError, match="n_repeats"):
        PrivateSearchCV(MODEL, grid, n_repeats=0).fit(X, Y)


class Wavering(Known):
    """Wrong about 40 records, with luck; about 300 more in hardly less than 1 / e of the fits."""

    def fit(self, X, y):
        super().fit(X, y)
        self.hits = 60 if LUCK.random() < BAD else 360
        return self

    def __sklearn_clone__(self):
        return Wavering(**self.get_params())


LUCK = np.random.default_rng(0)
BAD, BETA = 0.36, 0.05


def failures(draws, n_repeats=None):
    """How often a result misses the promise of the proposition."""
    rows, y = records()
    repeats = confidence_repeats(BETA) if n_repeats is None else n_repeats
    search = PrivateSearchCV(
        Wavering(), {}, epsilon=40.0, delta=1e-3, n_repeats=repeats, selection="exponential"
    )
    count = 0
    for _ in range(draws):
        found = search.fit(rows, y).best_estimator_
        errors = len(y) - np.count_nonzero(found.predict(rows) == y)
        (choice,) = [e for e in search.privacy_.events if isinstance(e, privacy.Exponential)]
        slack = 2.0 / choice.epsilon * math.log(2 * repeats / BETA)
        count += errors > 40 + math.e * BAD * 300 + slack
    return count


def test_bad_draws_win_as_seldom_as_the_rule_says():
    """Binomial with .05, 100 times: more than 18 has a probability below 1e-6."""
    assert failures(100) <= 18


@pytest.mark.slow
def test_that_test_sees_a_single_run():
    """Planted: one run fails with probability 1 / e."""
    assert failures(100, n_repeats=1) > 18
