"""Thresholds of a fit: one record moves utilities by one, targets are met by other rows, words."""

import math
import re
from itertools import product

import numpy as np
import pytest

from dp_halfspace import PrivateTableClassifier
from dp_halfspace.audit import replay
from dp_halfspace.data.people import People
from dp_halfspace.estimators import _operating_point as operating_point
from dp_halfspace.estimators._operating_point import TARGETS, plan_threshold, score_counts
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Exponential, Gaussian
from dp_halfspace.privacy.interception import intercept_releases
from dp_halfspace.privacy.mechanisms import NoNoise
from tests.permits import permit_for

every_target = pytest.mark.parametrize("target", TARGETS)
WANTED = {"recall": 0.9, "precision": 0.5, "false_positive_rate": 0.1}
EVEN = (1.0, 1.0)


def choose(odds, labels, target, wanted=None, epsilon=1.0, weights=EVEN, **given):
    odds, labels = np.asarray(odds, dtype=float), np.asarray(labels)
    plan, _ = plan_threshold(
        (target, wanted or WANTED[target]), len(odds), Budget.of(epsilon, 1e-8)
    )
    return plan.run(odds, labels, np.array(weights), permit_for(*plan.events), **given)


# What the counts of scores released, whichever records there are.
KNOWN = score_counts(np.linspace(-3.0, 3.0, 40), np.arange(40) % 2)


def choice(odds, labels, target, weights, people, record_weights):
    plan, _ = plan_threshold((target, 0.7), 7, Budget.of(1.0, 1e-8))
    given = {"people": people, "record_weights": record_weights}
    return plan.run(odds, labels, np.array(weights), permit_for(*plan.events), **given)


def worst(target, weights=EVEN, kind="records"):
    """Largest move of the utilities over replaced records, or persons of up to thirty records."""
    rng, largest = np.random.default_rng(0), 0.0
    for _ in range(4):
        odds, labels = rng.choice([-9.0, -1.0, 0.0, 1.0, 9.0], 6), rng.integers(2, size=6)
        some = rng.random(6)
        found = []
        sizes, own = ((1, 30), (1.0,)) if kind == "people" else ((1,), (0.0, 0.3, 1.0))
        own = own if kind == "weights" else (1.0,)
        for x, label, size, weight in product((-9.0, 0.0, 9.0), (0, 1), sizes, own):
            people = People(np.array([1] * 6 + [size])) if kind == "people" else None
            all_weights = np.array([*some, weight]) if kind == "weights" else None
            rows = np.array([*odds, *[x] * size]), np.array([*labels, *[label] * size])
            found.append((*rows, target, weights, people, all_weights))
        asked = [queries(*given) for given in found]
        largest = max(largest, *(move_between(one, two) for one, two in product(asked, asked)))
    return largest


def queries(*given):
    """The counts of scores and the utilities, each with its sensitivity."""
    asked = []

    def answer(value, mechanism, source):
        asked.append((np.array(value), mechanism.sensitivity))
        return KNOWN if value.shape == KNOWN.shape else np.array([0.0])

    with intercept_releases(answer):
        choice(*given)
    counts, utilities = asked
    assert counts[0].shape == KNOWN.shape
    return counts, utilities


def move_between(one, two):
    """Largest move of any utility: the norm of an exponential mechanism is that of the maximum."""
    ((first, bound), utilities), ((second, _), others) = one, two
    of_counts = float(np.linalg.norm(first - second)) / bound
    return max(of_counts, float(np.abs(utilities[0] - others[0]).max()) / utilities[1])


@every_target
@pytest.mark.parametrize("weights", [EVEN, (0.25, 1.0), (1.0, 0.1)], ids=["even", "low", "high"])
def test_a_record_moves_utilities_by_one_at_most(target, weights):
    found = worst(target, weights)
    assert found <= 1.0
    assert weights != EVEN or found > 1.0 - 1e-9


@every_target
@pytest.mark.parametrize("kind", ["people", "weights"])
def test_a_person_or_a_weighted_record_moves_them_by_no_more(target, kind):
    assert worst(target, kind=kind) <= 1.0


def test_a_record_moves_whole_counts_by_three_at_most():
    """One cell less, one more, and one record more of the second label, in absolute sum."""
    plan, _ = plan_threshold(("recall", 0.7), 400, Budget.of(1.0, 0.0))
    assert plan.is_of_integers
    found = [score_counts(np.array([odds]), np.array([k])) for odds in (-9.0, 9.0) for k in (0, 1)]
    moves = [float(np.abs(one - other).sum()) for one, other in product(found, found)]
    assert max(moves) == plan.noise.sensitivity


def test_large_weights_of_classes_do_not_move_the_threshold_of_a_table_further():
    """Only their ratio counts, as for the steps before it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    other_X, other_y = X.copy(), y.copy()
    X[0], y[0], other_X[0], other_y[0] = 3.0, 1, 3.0, 0
    model = PrivateTableClassifier(
        epsilon=50.0, classes=[0, 1], schema={"0": [-3, 3]}, features="linear",
        class_weight={0: 40.0, 1: 20.0}, threshold={"precision": 0.5},
    )  # fmt: skip
    result = replay(model, X, y, other_X, other_y, n_histories=1, random_state=0)
    assert result.findings == ()
    last = result.releases[-1]
    assert last.mechanism == "ExponentialChoice"
    assert 0.5 < last.ratio <= 1.0


def test_planted_bug_a_utility_that_counts_twice_is_seen(monkeypatch):
    honest = operating_point.crossing_utilities
    monkeypatch.setattr(operating_point, "crossing_utilities", lambda excess: 2.0 * honest(excess))
    assert worst("recall") > 1.5


@pytest.mark.slow
def test_planted_bug_rows_of_a_person_that_weigh_one_are_seen(monkeypatch):
    monkeypatch.setattr(People, "weights_for", lambda self, _: np.ones(self.counts.sum()))
    assert worst("recall", kind="people") > 5.0


def test_counts_above_are_those_of_their_definition():
    rng = np.random.default_rng(1)
    odds, labels = np.round(rng.normal(0.0, 4.0, 500) * 16.0) / 16.0, rng.integers(2, size=500)
    found = operating_point._counts_above(odds, labels)
    for place, border in enumerate([math.inf, *operating_point._BORDERS[::-1], -math.inf]):
        for k in (0, 1):
            assert found[k, place] == np.sum(odds[labels == k] >= border)


def test_sums_of_weights_and_their_factors_are_exact():
    """Weights in units of 2^-10 times factors in units of 2^-12."""
    weights = np.random.default_rng(0).random(200)
    found = operating_point._counts_above(np.zeros(200), np.arange(200) % 2, None, weights)
    assert (found * 2**10 == np.floor(found * 2**10)).all()
    assert 0.0 <= weights.sum() - found[:, -1].sum() <= 200 * 2.0**-10


def drawn(n, rng, share=0.1):
    """Scores whose log odds are exact: a normal score of each class, two deviations apart."""
    labels = (rng.random(n) < share).astype(int)
    score = rng.standard_normal(n) + 2.0 * labels
    return 2.0 * score - 2.0 + math.log(share / (1.0 - share)), labels


def reached(target, above, labels):
    rates = {"recall": above[labels == 1], "precision": labels[above]}
    return float(rates.get(target, above[labels == 0]).mean())


@pytest.mark.sampled(1)
@every_target
def test_other_rows_meet_a_target_with_confidence_and_the_interval_holds_it(target):
    """For scores that do not depend on the rows, so that no allowance is needed."""
    rng = np.random.default_rng(2)
    # So many that their own error is small beside the interval.
    tested, truth = drawn(2_000_000, rng)
    met, held, values = [], [], []
    for _ in range(200):
        odds, labels = drawn(10_000, rng)
        point = choose(odds, labels, target)
        assert point.warning == ""
        value = reached(target, tested >= point.log_odds, truth)
        values.append(value)
        is_below = value <= point.wanted
        met.append(is_below if target == "false_positive_rate" else not is_below)
        held.append(point.interval[0] <= value <= point.interval[1])
        assert point.interval[0] < point.estimate < point.interval[1]
    assert np.mean(met) >= 0.95
    assert np.mean(held) >= 0.88
    # Not by being useless.
    assert abs(np.mean(values) - WANTED[target]) < 0.06


def test_scores_that_do_not_separate_are_the_reason_where_rows_are_enough():
    labels = np.arange(20_000) % 2
    odds = np.random.default_rng(0).normal(size=20_000)
    point = choose(odds, labels, "precision", 0.9)
    assert point.log_odds == math.inf
    assert "the scores separate the labels too little for a precision of 0.9" in point.warning
    assert "takes about" not in point.warning


@every_target
def test_too_few_records_are_announced_and_the_target_is_met_by_all_or_none(target):
    n = 60 if target == "false_positive_rate" else 600
    odds, labels = drawn(n, np.random.default_rng(3))
    found = [choose(odds, labels, target, epsilon=0.3) for _ in range(40)]
    # A noisy count may be far above the number of records.
    assert sum("takes about" in point.warning for point in found) > 20
    found = [point for point in found if point.warning]
    infinite = [point for point in found if math.isinf(point.log_odds)]
    assert infinite
    for point in infinite:
        is_recall = target == "recall"
        assert point.log_odds == (-math.inf if is_recall else math.inf)
        assert point.estimate == point.interval[0] == point.interval[1] == float(is_recall)
        assert f"{'every' if is_recall else 'no'} row is predicted" in point.warning
    # Where a threshold is finite, nothing is known but the target.
    ends = (0.0, WANTED[target]) if target == "false_positive_rate" else (WANTED[target], 1.0)
    assert {point.interval for point in found if point not in infinite} <= {ends}


def test_a_recall_that_takes_nearly_every_row_is_announced():
    """Enough positives were counted: they are above the other rows, or among them."""
    odds, n = np.linspace(-3.0, 3.0, 20_000), np.arange(20_000)
    assert choose(odds, (n >= 15_000).astype(int), "recall", 0.9).warning == ""
    among = choose(odds, (n % 4 == 0).astype(int), "recall", 0.97).warning
    assert re.match(r"by noisy counts (9[5-9]|100)% of the rows are predicted to have", among)
    # Few rows with the first label may be all that a small rate allows.
    assert choose(odds, (n % 4 == 0).astype(int), "false_positive_rate", 0.9).warning == ""


def test_a_precision_that_all_rows_have_needs_no_threshold():
    odds, labels = drawn(5000, np.random.default_rng(6), share=0.5)
    point = choose(odds, labels, "precision", wanted=0.3)
    assert point.log_odds == -math.inf
    assert point.warning == ""
    assert point.interval == (0.3, 1.0)


def test_the_number_of_positives_is_that_of_the_counts():
    odds, labels = drawn(3000, np.random.default_rng(4))
    warning = choose(odds, labels, "recall", epsilon=0.5).warning
    found = int(re.search(r"there are (\d+):", warning)[1])
    assert abs(found - labels.sum()) < 500


def test_counts_of_scores_are_those_of_their_definition():
    rng = np.random.default_rng(7)
    odds, labels = rng.normal(0.0, 5.0, 300), rng.integers(2, size=300)
    found = score_counts(odds, labels)
    counts = found[:-1].reshape(2, -1)
    assert found[-1] == labels.sum()
    ends = [-math.inf, *operating_point._EDGES, math.inf]
    for k in (0, 1):
        np.testing.assert_array_equal(counts[k], np.histogram(odds[labels == k], ends)[0])
    other, others = odds.copy(), labels.copy()
    other[0], others[0] = 9.0, 1 - labels[0]
    assert np.linalg.norm(score_counts(other, others) - found) == pytest.approx(math.sqrt(3.0))


def test_precision_is_that_of_the_weighted_population():
    """A tenth of the weight of negative records lets ten times as many be predicted positive."""
    odds, labels = drawn(20_000, np.random.default_rng(5))
    plain, weighted = (
        choose(odds, labels, "precision", epsilon=math.inf, weights=weights).log_odds
        for weights in (EVEN, (0.1, 1.0))
    )
    above = odds >= weighted
    share = labels[above].sum() / (labels[above].sum() + 0.1 * (1 - labels[above]).sum())
    assert 0.5 <= share < 0.56
    assert weighted < plain - 1.5


def test_a_plan_costs_what_it_takes_and_leaves_the_rest():
    for epsilon, n in ((0.3, 3000), (1.0, 10_000), (3.0, 10_000), (1.0, 100_000)):
        budget = Budget.of(epsilon, n**-2.0)
        plan, rest = plan_threshold(("recall", 0.9), n, budget)
        counts, event = plan.events
        assert event == Exponential(min(0.3 * epsilon, 30.0 / math.sqrt(n)))
        mu = math.hypot(counts.mu, rest.mu)
        assert counts.mu == pytest.approx(0.2 * mu)
        spent = accounting.delta((event, Gaussian(mu)), epsilon)
        assert 0.99 * budget.delta <= spent <= budget.delta
        assert 0.0 < plan.optimism < 0.02
    pure, rest = plan_threshold(("recall", 0.9), 10_000, Budget.of(1.0, 0.0))
    assert pure.choice.epsilon == pytest.approx(0.3)
    assert rest.is_pure
    assert pure.choice.epsilon + pure.noise.epsilon + rest.epsilon <= 1.0
    assert pure.is_of_integers
    single, _ = plan_threshold(("recall", 0.9), 1, Budget.of(1e4, 0.0))
    assert 0.0 < single.optimism <= 0.02
    exact, rest = plan_threshold(("recall", 0.9), 10_000, Budget.of(math.inf, 0.0))
    assert isinstance(exact.choice, NoNoise)
    assert rest.is_infinite
