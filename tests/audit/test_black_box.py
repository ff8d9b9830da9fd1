"""The public black box: its confidence, what it sees, and what it cannot see."""

import math

import numpy as np
import pytest
from scipy.stats import beta, binom, norm
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from dp_halfspace import OutputPerturbationClassifier, PrivacyLedger, PrivateSearchCV, privacy
from dp_halfspace.audit import AuditResult, audit
from dp_halfspace.audit.black_box import (
    _Fit,
    _lower_bounds,
    _probability_low,
    _read_claim,
    _rows_that_differ,
    _split_outcomes,
)
from dp_halfspace.privacy import Gaussian, PrivacyRecord, Pure
from dp_halfspace.privacy.randomness import OS_RANDOMNESS
from tests.support import plant_noise


class Counter(BaseEstimator):
    """A peer: the noisy sum of the labels as its score; `skill` is the noise it leaves out."""

    def __init__(self, epsilon=1.0, delta=1e-5, skill=1.0, scale="public", ledger=None):
        self.epsilon, self.delta, self.skill = epsilon, delta, skill
        self.scale, self.ledger = scale, ledger

    def fit(self, X, y):
        sigma = 1.0 / privacy.gdp_mu(self.epsilon, self.delta) / self.skill
        if self.scale == "private":
            sigma *= 1.0 + np.sum(y)
        self.claim(self.epsilon, self.delta)
        seed = int.from_bytes(OS_RANDOMNESS.read(8), "little")
        # The noise of another world: only its distribution matters here.
        self.score_ = (
            np.sum(y) * (self.scale == "public")
            + sigma * np.random.default_rng(seed).standard_normal()
        )
        return self

    def claim(self, epsilon, delta):
        noise = Gaussian(privacy.gdp_mu(epsilon, delta))
        self.privacy_ = PrivacyRecord(epsilon=epsilon, delta=delta, events=(noise,), noise="os")

    def decision_function(self, X):
        return np.full(len(X), self.score_)


PAIR = (np.zeros((2, 1)), [0, 0], np.zeros((2, 1)), [1, 0])


def test_right_code_passes_and_shows_its_claim():
    result = audit(Counter(2.0), *PAIR, n_fits=200)
    assert isinstance(result, AuditResult)
    assert not result.is_violated
    assert (result.epsilon, result.delta, result.mu) == (2.0, 1e-5, privacy.gdp_mu(2.0, 1e-5))
    assert 0.0 <= result.mu_low <= privacy.gdp_mu(2.0, 1e-5)
    pure = audit(Counter(2.0), *PAIR, n_fits=8, claim=(2.0, 0.0))
    assert pure.mu == pytest.approx(2.0 * norm.ppf(math.exp(2.0) / (1.0 + math.exp(2.0))))


@pytest.mark.parametrize(
    ("model", "n_fits"),
    [
        (Counter(1.0, skill=60.0), 200),
        pytest.param(Counter(1.0, scale="private"), 4000, marks=pytest.mark.slow),
    ],
)
def test_missing_noise_and_a_scale_of_the_data_are_seen(model, n_fits):
    """The second has the same mean on both, and twice the noise on one."""
    result = audit(model, *PAIR, n_fits=n_fits, confidence=0.999)
    assert result.mu_low > privacy.gdp_mu(1.0, 1e-5)
    if model.skill > 1:
        assert result.is_violated


def test_bounds_hold_with_the_confidence_that_is_stated():
    """By the distribution of the counts: lower bounds of a share fail with at most alpha."""
    for n in (1, 7, 100):
        for share in (0.001, 0.2, 0.5, 0.99):
            hits = np.arange(n + 1)
            fails = _probability_low(hits, n, 0.025) > share
            assert binom.pmf(hits, n, share)[fails].sum() <= 0.025 * (1 + 1e-9)


def lower_bounds(first, second, delta, alpha, marks=None):
    """Bounds of the numbers of fits to each of two data sets, a row for each fit."""
    values = np.stack([first, second])
    marks = np.zeros((2, len(first), 0)) if marks is None else marks
    return _lower_bounds(values, marks, delta, alpha)


def test_bounds_are_those_of_fits_that_chose_nothing():
    """All fits of both are told apart, or only those that choose, or all but some of the others."""
    n, alpha, delta = 200, 0.05, 1e-3
    zeros, ones = np.zeros((n, 1)), np.ones((n, 1))
    least = beta.ppf(alpha / 4.0, 100, 1)
    bounds = lower_bounds(zeros, ones, delta, alpha)
    assert bounds == pytest.approx(
        (math.log((least - delta) / (1.0 - least)), 2.0 * norm.ppf(least))
    )
    early, late = ones.copy(), ones.copy()
    early[100:] = late[180:] = 0.0
    assert lower_bounds(zeros, early, delta, alpha) == (0.0, 0.0)
    some = beta.ppf(alpha / 4.0, 80, 21)
    assert lower_bounds(zeros, late, delta, alpha) == pytest.approx(
        (math.log((some - delta) / (1.0 - least)), norm.ppf(some) + norm.ppf(least))
    )


@pytest.mark.parametrize(("epsilon_low", "mu_low"), [(1.0, 2.5), (1.5, 2.0)])
def test_a_claim_is_violated_by_either_bound_and_by_no_equal_one(epsilon_low, mu_low):
    claim = {"epsilon": 1.0, "delta": 0.0, "mu": 2.0}
    assert AuditResult(epsilon_low, mu_low, **claim).is_violated
    assert not AuditResult(1.0, 2.0, **claim).is_violated


class Odd(Counter):
    """Right noise on everything, but what `how` makes of the first label."""

    def __init__(self, epsilon=1.0, delta=1e-5, how="nan"):
        self.epsilon, self.delta, self.how = epsilon, delta, how

    def fit(self, X, y):
        self.odd_ = y[0] == 1
        self.claim(self.epsilon, self.delta)
        if self.how == "raises" and self.odd_:
            raise ArithmeticError("did not converge")
        if self.how in ("types", "texts"):
            kind = ValueError if self.how == "types" and self.odd_ else ArithmeticError
            raise kind("diverged" if self.how == "texts" and self.odd_ else "did not converge")
        noise = np.random.default_rng(int.from_bytes(OS_RANDOMNESS.read(8), "little"))
        self.score_ = noise.standard_normal()
        return self

    def decision_function(self, X):
        ends = {"nan": (np.nan, 0.0), "infinity": (np.inf, np.finfo(float).max),
                "zero": (-0.0, 0.0), "overflow": (1.7e308, -1.7e308),
                "tiny": (5e-324, 1e-323), "size": (1.0, 1.0)}  # fmt: skip
        odd = ends.get(self.how, (0.0, 0.0))[0 if self.odd_ else 1]
        more = [0.0] if self.how == "size" and self.odd_ else []
        return np.array([self.score_, odd, *more])


ODD = ["nan", "infinity", "zero", "overflow", "tiny", "size", "raises", "types", "texts"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("how", ODD)
def test_what_is_no_finite_number_is_an_outcome(how):
    """NaN, infinity, a negative zero, what overflows, and a fit that raises on one side."""
    seen = audit(Odd(how=how), *PAIR, n_fits=60, claim=(1.0, 1e-5))
    assert seen.is_violated
    assert min(seen.epsilon_low, seen.mu_low) > 1.0
    same = audit(Odd(how="none" if how in ("types", "texts", "raises") else how), *PAIR[:2],
                 *PAIR[:2], n_fits=60)  # fmt: skip
    assert not same.is_violated


def test_the_counted_fits_do_not_choose_how_many_numbers_are_compared():
    """Of nine fits four choose; the other five, which have two numbers each, are more."""
    fits = [_Fit(np.ones(1 if k < 4 else 2)) for _ in range(2) for k in range(9)]
    assert _split_outcomes(fits, 9)[0].shape == (18, 1)


def test_an_exception_of_all_fits_is_raised():
    with pytest.raises(ArithmeticError, match="did not converge"):
        audit(Odd(how="raises"), *PAIR[2:], *PAIR[2:], n_fits=8)


@pytest.mark.slow
def test_outcomes_of_the_counted_fits_choose_no_line():
    """Marks of chance, many of them: as few false alarms as without them."""
    rng, wrong = np.random.default_rng(2), 0
    for _ in range(100):
        first, second = rng.standard_normal((2, 100, 1))
        marks = (rng.random((2, 100, 20)) < 0.02).astype(float)
        wrong += lower_bounds(first, second, 1e-5, 0.05, marks)[0] > 0.0
    assert wrong <= 5


def false_alarms(audits, n, mu, alpha):
    """Audits of a release that has exactly its mu, in which a bound is above it."""
    rng = np.random.default_rng(0)
    epsilon = privacy.gdp_epsilon(mu, 1e-5)
    wrong = 0
    for _ in range(audits):
        first, second = rng.standard_normal((2, n, 1))
        low, mu_low = lower_bounds(first, second + mu, 1e-5, alpha)
        wrong += low > epsilon or mu_low > mu
    return wrong


@pytest.mark.slow
def test_false_alarms_of_a_thousand_audits():
    """At 95 % fifty are allowed; of the tightest right code there are fewer, as lines are two."""
    assert false_alarms(1000, 1000, 0.5, 0.05) <= 50
    assert false_alarms(1000, 1000, 0.5, 0.001) <= 3


@pytest.mark.slow
def test_half_the_noise_is_caught_at_999():
    """At epsilon 4 and 99.9 %: of a hundred audits of half the noise none may miss."""
    mu = privacy.gdp_mu(4.0, 1e-5)
    rng = np.random.default_rng(1)
    draws = (rng.standard_normal((2, 4000, 1)) for _ in range(1000))
    assert sum(lower_bounds(a, b + 2 * mu, 1e-5, 0.001)[1] <= mu for a, b in draws) <= 1


def test_a_model_of_ours_and_its_planted_bug(monkeypatch):
    X, y = np.zeros((40, 2)), np.arange(40) % 2
    X[0, 0] = 1.0
    other = np.r_[1 - y[0], y[1:]]
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-3)
    model = OutputPerturbationClassifier(
        epsilon=4.0, data_norm=1.0, classes=[0, 1], loss="huber_hinge", alpha=3.0,
        ledger=ledger, random_state=3,
    )  # fmt: skip
    honest = audit(model, X, y, X, other, n_fits=60)
    assert not honest.is_violated
    assert honest.mu == pytest.approx(privacy.gdp_mu(4.0, 1 / 1600), rel=1e-6)
    plant_noise(monkeypatch, privacy.mechanisms.GaussianNoise, 1 / 16)
    assert audit(model, X, y, X, other, n_fits=60, confidence=0.999).is_violated
    search = PrivateSearchCV(model, {"alpha": [3.0]}, selection="exponential", epsilon=4.0)
    assert audit(search, X, y, X, other, n_fits=8).epsilon == 4.0
    assert not ledger.entries()


def test_features():
    result = audit(Counter(1.0, skill=100.0), *PAIR, n_fits=60, features=lambda m: m.score_)
    assert result.is_violated
    assert norm.cdf(result.mu_low) > 0.9


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"n_fits": 7}, "n_fits"),
        ({"n_fits": True}, "n_fits"),
        ({"n_fits": 8, "confidence": 1.0}, "confidence"),
    ],
)
def test_arguments_are_checked(params, match):
    with pytest.raises(ValueError, match=match):
        audit(Counter(), *PAIR, **params)


def test_what_claims_nothing_or_is_no_neighbour_is_refused():
    X, y = np.eye(4), [0, 1, 0, 1]
    with pytest.raises(ValueError, match="claim"):
        audit(LogisticRegression(), X, y, X, y, n_fits=8)
    with pytest.raises(ValueError, match="same shape"):
        audit(Counter(), X, y, X[:3], y[:3], n_fits=8)
    exact = audit(LogisticRegression(), X, y, X, [1, 1, 0, 1], n_fits=80, claim=(1.0, 0.0))
    assert exact.is_violated


def test_the_mu_of_a_claim_is_that_of_all_releases():
    def claimed(*events):
        record = PrivacyRecord(
            epsilon=40.0, delta=1e-5, adjacency="replace-one", events=events, noise="os", public={}
        )
        return _read_claim(record, None)

    assert claimed(Gaussian(1.0), Gaussian(1.0), Gaussian(2.0)) == pytest.approx(
        (40.0, 1e-5, math.sqrt(6.0))
    )
    assert claimed(Gaussian(1.0), Pure(0.5))[2] == math.inf


def test_rows_of_both_are_read():
    X = np.arange(6.0).reshape(3, 2)
    other = X.copy()
    other[1, 0] = 11.0
    assert _rows_that_differ(X, other).tolist() == [[2.0, 3.0], [11.0, 3.0]]
    assert _rows_that_differ(X, X) is X
