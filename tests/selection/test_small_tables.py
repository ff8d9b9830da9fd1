"""One selection for a small table: the distribution, exact counts, and what one record can do."""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from dp_halfspace.engine.plan import LinearPrior, PublicFacts
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.exponential import CountedChoice, TalliedChoice
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise
from dp_halfspace.privacy.randomness import SeededBytes
from dp_halfspace.rows import directions as cells_module
from dp_halfspace.rows.directions import (
    EXPONENTS,
    LARGEST_CELL,
    LARGEST_SUM,
    CellStream,
    asinh_cells,
)
from dp_halfspace.rows.rows import normalised_rows
from dp_halfspace.selection.rule import pays_for_stages, small_table_rule
from dp_halfspace.selection.small_tables import (
    BIAS,
    TableSelection,
    counted_share,
    plan_choice,
    plan_error_count,
    plan_small_table,
    share_of,
)
from tests.adversarial import stretched_pairs
from tests.permits import table_door
from tests.releases import record_releases

EPSILON, ONES = 0.5, np.ones(2)


def test_few_records_pay_a_quarter_for_a_count_and_several_classes_less():
    two, three = (plan_choice(60, 0.7, k, counts=True) for k in (2, 3))
    assert [c.choice_epsilon for c in (two, three)] == pytest.approx([0.7 * 0.75, 0.7 * 0.85])
    assert plan_small_table(60, 2, 0.7, seed=0, counts=True).choice == two
    assert plan_error_count(60, 0.7, 2)[0] == DiscreteLaplaceNoise(1, 0.7 * 0.25)


def small_plan(n_columns, n_candidates=60, seed=(1,)):
    return TableSelection(n_columns, n_candidates, 3, TalliedChoice(EPSILON), seed)


def costs(plan, X, codes, weights=ONES):
    return np.concatenate(list(plan.costs(X, codes, weights)))


def predictions(model, X):
    """What the released model of a candidate says, on the scores that it is counted by."""
    if model.exponent is None and model.coefficients.any():
        d = X.shape[1] + 1
        integers = np.rint(
            normalised_rows(X, 1.0, 0.5, None, clips=False).dense(np.arange(len(X)))
            * (4094.0 - math.sqrt(d) / 2.0)
        )
        found = integers @ np.append(model.coefficients, model.intercept / 0.5)
        return np.where(np.abs(found) < 1e-6, 0.0, found)
    rows = X if model.exponent is None else asinh_cells(X, model.exponent).astype(float)
    return rows @ model.coefficients + model.intercept


def wild(n, d, n_classes=2, seed=0):
    """Rows of all sizes, zeros among them, and classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-12, 12, (n, d))
    X[0], X[1, 0], X[2] = 0.0, 1e308, -1e-320
    return X, rng.integers(n_classes, size=n)


def test_cells_are_the_definition():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(4000) * 10.0 ** rng.uniform(-30, 30, 4000)
    x = np.concatenate([x, [0.0, np.nan, 1e308, -1e308, 5e-324]])
    for exponent in EXPONENTS:
        with np.errstate(over="ignore"):
            y = np.arcsinh(np.nan_to_num(x) * 2.0**-exponent)
        expected = np.rint(256.0 * np.clip(y, -64.0, 64.0))
        np.testing.assert_array_equal(asinh_cells(x, exponent), expected)


def test_cells_of_an_entry_do_not_depend_on_its_place():
    x = wild(40, 7)[0]
    for exponent in EXPONENTS:
        whole = asinh_cells(x, exponent)
        one_by_one = [[asinh_cells(np.array([v]), exponent)[0] for v in row] for row in x]
        np.testing.assert_array_equal(whole, one_by_one)
        np.testing.assert_array_equal(
            whole, asinh_cells(np.asfortranarray(x)[:, ::-1], exponent)[:, ::-1]
        )


def test_candidates_read_few_columns_as_often_as_many():
    """Half of them read at most the root of the number of columns."""
    stream = CellStream(100, 40_000, (0,))
    kept = np.count_nonzero(stream.block(*stream.blocks[0])[0], axis=0)
    assert np.median(kept) == pytest.approx(10, abs=2)
    assert small_plan(3).directions.constant == BIAS


@pytest.mark.parametrize("d", [1, 2, 30, 512])
def test_every_sum_of_products_is_exact_in_single_precision(d):
    """Integers whose absolute products add up to less than 2^24, and blocks that repeat."""
    stream = CellStream(d, 3000, (7,))
    assert sum(width for _, _, width in stream.blocks) * 2 >= 2900
    for place in stream.blocks:
        coefficients, thresholds = stream.block(*place)
        for array in (coefficients, thresholds):
            np.testing.assert_array_equal(array, np.rint(array))
        assert np.abs(coefficients).sum(axis=0).max() <= LARGEST_SUM
        assert np.abs(thresholds).max() < 2**24
        assert (np.abs(coefficients).sum(axis=0) > 0).all()
        for one, other in zip(stream.block(*place), (coefficients, thresholds), strict=True):
            np.testing.assert_array_equal(one, other)
    assert LARGEST_SUM * LARGEST_CELL < 2**24


def exact_costs(plan, X, codes, weights):
    """Weights of the errors of the cells' candidates by rational arithmetic, rounded down."""
    own = [Fraction(weight) for weight in weights[codes].tolist()]
    found = []
    for place in plan.cells.blocks:
        coefficients, thresholds = plan.cells.block(*place)
        table = asinh_cells(X, place[0]).tolist()
        wrong = []
        for a, limit in zip(coefficients.T.tolist(), thresholds.tolist(), strict=True):
            scores = [
                sum(Fraction(u) * Fraction(v) for u, v in zip(a, row, strict=True)) for row in table
            ]
            above = [score > Fraction(limit) + Fraction(1, 2) for score in scores]
            wrong.append(
                sum(w for up, code, w in zip(above, codes, own, strict=True) if up != code)
            )
        found += [math.floor(each) for each in (*wrong, *(sum(own) - w for w in wrong))]
    return found


@pytest.mark.parametrize("weights", [ONES, np.array([1.0, 0.25]), np.array([0.75, 1.0])])
def test_counts_are_exact(weights):
    X, codes = wild(50, 3)
    plan = small_plan(3, 400)
    first = 2 * sum(plan.directions.block(b).shape[1] for b in range(plan.directions.n_blocks))
    counted = costs(plan, X, codes, weights)
    np.testing.assert_array_equal(
        counted[first : -2 * plan.n_constants], exact_costs(plan, X, codes, weights)
    )
    ends = counted[-2 * plan.n_constants :]
    sizes = np.floor(np.bincount(codes) * weights)
    np.testing.assert_array_equal(ends, np.repeat(sizes, plan.n_constants))


def test_a_missing_entry_counts_as_zero_and_not_as_what_others_have():
    X, codes = wild(50, 3)
    X += 5.0
    X[::3, 1] = np.nan
    plan = small_plan(3, 400)
    np.testing.assert_array_equal(costs(plan, X, codes), costs(plan, np.nan_to_num(X), codes))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("d", [1, 4])
def test_a_candidate_predicts_what_was_counted(d):
    """Every number of the list leads to a model with exactly its errors, by their weights."""
    X, codes = wild(60, d, seed=1)
    plan, weights = small_plan(d, 200), np.array([1.0, 0.25])
    counted = costs(plan, X, codes, weights)
    assert len(counted) == plan.n_listed
    for number, cost in enumerate(counted):
        scores = predictions(plan.candidate(number), X)
        wrong = np.where(codes == 1, scores <= 0, scores >= 0)
        assert int(weights[codes[wrong]].sum()) == cost


def test_distribution_is_the_exponential_mechanism_over_the_list(monkeypatch):
    X, codes = wild(8, 2)
    plan = small_plan(2, 40)
    blocks = list(plan.costs(X, codes, ONES))
    # Counted once for all draws.
    monkeypatch.setattr(TableSelection, "costs", lambda *_: blocks)
    weights = np.exp(-EPSILON * np.concatenate(blocks) / 2.0)
    models = [str(plan.candidate(k)) for k in range(len(weights))]
    probability = Counter()
    for model, weight in zip(models, weights / weights.sum(), strict=True):
        probability[model] += weight
    source, draws = SeededBytes(0, "test"), 400
    seen = Counter(
        str(plan.run(table_door(X, codes, *plan.events, source=source), 8, ONES))
        for _ in range(draws)
    )
    names = sorted(probability, key=probability.get)
    expected = draws * np.array([probability[name] for name in names])
    observed = np.array([seen[name] for name in names])
    # Those that are rare are counted together, with the first one that is not.
    few = expected < 5
    groups = np.where(few, np.argmin(few), np.arange(len(names)))
    expected, observed = (np.bincount(groups, v)[~few] for v in (expected, observed))
    assert chisquare(observed, expected).pvalue > 1e-4


def largest_change(plan_of, weights, trials, **how):
    """Largest change of a cost over adversarial neighbours, other rows as strange as can be."""
    worst = 0
    for trial, *data in stretched_pairs(trials, **how):
        plan = plan_of(data[0][0].shape[1], (trial,))
        values = [costs(plan, *one, np.array(weights[trial % 3])) for one in data]
        worst = max(worst, int(np.abs(values[0] - values[1]).max()))
    return worst


def test_a_record_changes_a_cost_by_one_at_most():
    weights = (1.0, 0.3), (0.77, 1.0), (1.0, 1.0)
    assert largest_change(lambda d, seed: small_plan(d, 600, seed), weights, 36) == 1


def assert_one_choice(plan, X, codes, weights):
    """One release of the whole budget, of one number."""
    (event,) = plan.events
    assert EPSILON * (1 - 1e-9) < event.epsilon <= EPSILON
    with record_releases() as releases:
        plan.run(table_door(X, codes, *plan.events), 30, weights)
    (release,) = releases
    assert release.mechanism == plan.choice
    assert np.size(release.released) == 1


def test_one_choice_is_released_and_nothing_else():
    assert_one_choice(plan_small_table(30, 2, EPSILON, seed=0), *wild(30, 2), ONES)


def test_the_list_is_public_randomness_and_not_that_of_the_noise():
    first, second = (plan_small_table(300, 4, 1.0, seed=3) for _ in range(2))
    assert first == second
    assert first != plan_small_table(300, 4, 1.0, seed=4)
    assert plan_small_table(300, 4, 1.0, seed=None) != plan_small_table(300, 4, 1.0, seed=None)
    assert first.directions.seed != first.cells.seed


def test_memory_is_in_blocks():
    for d in (1, 30, 512):
        plan = plan_small_table(400, d, 1.0, seed=0)
        assert max(d * width for _, _, width in plan.cells.blocks) <= cells_module._BLOCK_ENTRIES


def rule(*, n_samples=400, n_classes=2, widths=(1,) * 100, epsilon=1.0, delta=1e-5, **changed):
    facts = PublicFacts(n_samples, len(widths), n_classes, (1.0,) * n_classes)
    prior = changed.pop("prior", None)
    budget = Budget.of(epsilon, delta)
    return small_table_rule(replace(facts, prior=prior), budget, widths, **changed)


def test_rule_is_that_of_the_pages():
    for n_classes in range(2, 8):
        assert rule(n_classes=n_classes, n_samples=1199)
        assert not rule(n_classes=n_classes, n_samples=1200)
        assert rule(n_classes=n_classes, n_samples=1499, delta=0.0)
        assert not rule(n_classes=n_classes, n_samples=1500, delta=0.0, n_unscaled=12)
        assert rule(n_classes=n_classes, n_samples=2399, delta=0.0, n_unscaled=20)
        assert not rule(n_classes=n_classes, n_samples=2400, delta=0.0, n_unscaled=20)
        assert not rule(n_classes=n_classes, n_samples=1200, n_unscaled=20)
    assert rule(n_samples=239, widths=(1,) * 4)
    assert not rule(n_samples=240, widths=(1,) * 4)
    assert rule(n_samples=479, widths=(16,) * 4)
    assert not rule(n_samples=480, widths=(16,) * 4)
    prior = LinearPrior(np.zeros((1, 100)), np.zeros(1), np.zeros(100))
    assert rule(n_samples=2999, prior=prior)
    assert not rule(n_samples=3000, prior=prior)
    assert rule(n_samples=1199, prior=prior, n_classes=3)
    assert not rule(n_samples=1200, prior=prior, n_classes=3)
    assert not rule(n_classes=8, n_samples=10)
    assert pays_for_stages(334, 3, 1.0)
    assert not pays_for_stages(333, 3, 1.0)
    assert pays_for_stages(200, 5, 1.0)
    assert not pays_for_stages(199, 5, 1.0)
    assert not rule(n_classes=8, delta=0.0, n_samples=10)
    assert not rule(widths=(1,) * 513)
    assert not rule(epsilon=math.inf)


def test_a_count_of_errors_is_within_the_budget():
    """That of the classifier that was chosen, an exact integer; seldom the number itself.

    Whether it is constant decides what its errors on other records are, and no label does.
    """
    X, codes = wild(200, 2)
    plan = plan_small_table(200, 2, EPSILON, seed=0, counts=True)
    (event,) = plan.events
    assert event == plan.choice.event
    assert EPSILON * (1 - 1e-8) <= event.epsilon <= EPSILON
    plan = replace(plan, n_candidates=2000, n_constants=500)
    counted, kinds = [], Counter()
    for trial in range(20):
        labels = np.zeros_like(codes) if trial % 2 else codes
        with record_releases() as releases:
            model = plan.run(table_door(X, labels, *plan.events), 200, ONES)
        (release,) = releases
        number, noisy = release.released
        is_constant = not model.coefficients.any()
        share = counted_share(noisy, 200, plan.choice, 2, is_constant=is_constant)
        assert model.error_share == share
        counted.append(release.value[int(number)] != noisy)
        kinds[trial % 2, is_constant] += 1
    assert any(counted)
    assert len(kinds) > 2


def test_shares_of_errors_follow_the_count_and_stay_between_zero_and_one_half():
    rates = (0.5, 2.0)
    shares = [share_of(noisy, 400, rates) for noisy in (-1e4, 0.0, 40.0, 100.0, 1e4)]
    assert shares == sorted(shares)
    assert 0.0 < shares[0] < 0.02 < 0.08 < shares[2] < 0.12 < 0.48 < shares[-1] < 0.5
    assert 0.1 < share_of(40.0, 400, (1e-3, 1e-3)) < 0.4
    # Noise is seldom far above: a high count tells of as many errors, a low one of more.
    assert share_of(40.0, 400, (0.05, 1.0)) > 0.1 > share_of(40.0, 400, (1.0, 0.05))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_errors_on_other_records_are_more_than_were_counted_but_of_constants(n_classes):
    choice = CountedChoice(2.0, 1.8)
    below, above = map(float, choice.rates)
    guess = 1.0 - 1.0 / n_classes
    for noisy in (20.0, 90.0, 1e4):
        share = share_of(noisy, 400, (below, above), n_classes)
        assert counted_share(noisy, 400, choice, n_classes, is_constant=True) == share
        more = counted_share(noisy, 400, choice, n_classes, is_constant=False)
        assert share < more <= share + 0.25 * 0.9 * share * (1.0 - share)
        assert more < guess


def test_parts_of_the_list_follow_from_public_numbers():
    for n_samples, listed in ((100, 200_000), (40_000, 25_000), (10**9, 1_000)):
        plan = plan_small_table(n_samples, 3, 0.3, seed=0, counts=n_samples == 100)
        # Every scale of cells has a whole number of them.
        assert dict(plan.public)["n_candidates"] == pytest.approx(listed, rel=5e-3)
        assert 2 * plan.n_constants / listed == pytest.approx(0.05, rel=1e-2)
        looking = listed - 2 * plan.n_constants
        assert plan.directions.n_directions / looking == pytest.approx(0.28, rel=1e-2)
        n_of_cells = 2 * sum(width for _, _, width in plan.cells.blocks)
        assert n_of_cells / looking == pytest.approx(0.72, rel=1e-2)


@pytest.mark.parametrize("of_choice", [0.2, 0.8])
def test_a_choice_of_a_larger_epsilon_fits_more_by_chance(of_choice):
    seen = 30.0, 100, CountedChoice(1.0, of_choice), 2
    share = counted_share(*seen, is_constant=True)
    more = counted_share(*seen, is_constant=False) - share
    assert more == pytest.approx(0.125 * of_choice * share * (1.0 - share))
