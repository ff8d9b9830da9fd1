"""Probabilities in closed form: where the expected clipped slope vanishes, whatever the scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_halfspace.engine.probabilities import (
    certainty_of,
    log_odds_of,
    log_probabilities_of,
    probabilities_of,
    surety,
)
from dp_halfspace.engine.steps import clipped_slopes, clipped_slopes_of_many

SCORES = st.lists(st.floats(-30, 30), min_size=2, max_size=5)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_log_odds_of_a_selection_make_the_errors_that_were_counted(n_classes):
    odds = np.append(certainty_of(0.3, n_classes), np.zeros(n_classes - 1))
    assert np.exp(odds[0]) / np.exp(odds).sum() == pytest.approx(0.7)


def expected_slopes(scores, probabilities):
    """Mean of the clipped slopes of a record with these scores, over its class."""
    slopes = clipped_slopes_of_many(np.arange(len(scores)), np.ones(len(scores)))
    return probabilities @ slopes(np.tile(scores, (len(scores), 1)), 0, len(scores))


@given(SCORES)
def test_the_expected_clipped_slope_of_many_classes_vanishes(scores):
    scores = np.array(scores)
    (found,) = probabilities_of(scores[None, :])
    assert found.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(expected_slopes(scores, found), 0.0, atol=1e-12)


@given(st.floats(-30, 30))
def test_the_expected_clipped_slope_of_two_classes_vanishes(score):
    (found,) = probabilities_of(np.array([score]))
    slopes = clipped_slopes(np.array([0, 1]), np.ones(2))(np.array([score, score]), 0, 2)
    assert float(found @ slopes) == pytest.approx(0.0, abs=1e-12)
    # Two classes with opposite scores are the same model.
    (other,) = probabilities_of(np.array([[-score / 2, score / 2]]))
    np.testing.assert_allclose(found, other, rtol=1e-9)


def test_far_scores_have_finite_logarithms():
    found = log_probabilities_of(np.array([-1e5, 0.0, 1e5]))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[1], np.log(0.5))
    assert found[0, 1] == pytest.approx(-1e5 + np.log(2.0))
    with np.errstate(over="ignore"):
        assert np.isfinite(log_odds_of(np.array([-1e308, 1e308]))).all()


def test_log_odds_never_fall_where_scores_rise():
    """Neighbouring numbers of all sizes, on both sides of zero and of the largest multiple."""
    sizes = 10.0 ** np.random.default_rng(8).uniform(-12, 4, 4000)
    starts = np.concatenate([[0.0, 255.9999, 256.0], sizes])
    up = np.stack([starts + k * np.spacing(starts) for k in range(-40, 41)], axis=1)
    for scores in (up, -up[:, ::-1]):
        assert np.diff(log_odds_of(scores), axis=1).min() >= 0.0
    np.testing.assert_allclose(
        log_odds_of(np.array([0.0, 2.0, -2.0])), [0.0, 1.4337808, -1.4337808]
    )


@given(SCORES)
def test_a_selection_is_surer_far_from_its_cuts_and_keeps_its_labels(scores):
    """Two classes with opposite scores are as sure as their difference."""
    near = np.array([scores])
    sure = surety(np.vstack([near, 2.0 * near]))
    assert (np.count_nonzero(sure, axis=1) == 1).all()
    np.testing.assert_array_equal(sure.argmax(axis=1), near.argmax())
    assert sure[1].max() >= sure[0].max() >= 1.0
    assert sure[1].max() > sure[0].max() or np.ptp(near) < 1e-12
    half = 0.5 * near[:, 0]
    both = surety(np.column_stack([-half, half])).max(axis=1)
    np.testing.assert_allclose(both, np.abs(surety(near[:, 0])) if half else 1.0)
