"""Selections follow the exact distribution of the best run and say nothing else."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from dp_halfspace.privacy.accounting import delta
from dp_halfspace.privacy.noise import uniform_below
from dp_halfspace.privacy.random_stopping import (
    RunCountDistribution,
    geometric_run_count,
    random_stopping_event,
    select_best,
)
from tests.privacy.oracles import CAUGHT, FALSE_ALARM, seeded

DISTRIBUTION = RunCountDistribution(1.0, 0.25, 20)


def noisy_coin(source):
    """Run of five outcomes: candidate 0 is a fair coin, candidate 1 scores 1 or 2."""

    def run(candidate):
        output = uniform_below(2 + candidate, source)
        return output, float(candidate * (1 + (output == 2)))

    return run


def exact_distribution():
    """Distribution of (candidate, output) of the best run; equal scores share their probability."""
    outcomes = {(0, 0): 1 / 4, (0, 1): 1 / 4, (1, 0): 1 / 6, (1, 1): 1 / 6, (1, 2): 1 / 6}
    groups = [((0, 0), (0, 1)), ((1, 0), (1, 1)), ((1, 2),)]
    f = np.polynomial.Polynomial([0.0, *DISTRIBUTION.probabilities])
    distribution, reached = {}, 0.0
    for group in groups:
        mass = sum(outcomes[z] for z in group)
        gained = f(min(1.0, reached + mass)) - f(reached)
        distribution |= {z: gained * outcomes[z] / mass for z in group}
        reached += mass
    return distribution


def pvalue(select, count=2500):
    """Chi-square test of what a selection returns."""
    source = seeded(3)
    distribution = exact_distribution()
    counts = dict.fromkeys(distribution, 0)
    for _ in range(count):
        counts[select(noisy_coin(source), [0, 1], DISTRIBUTION, source)] += 1
    return stats.chisquare(
        list(counts.values()), count * np.array(list(distribution.values()))
    ).pvalue


def test_selected_distribution_is_that_of_the_proof():
    assert sum(exact_distribution().values()) == pytest.approx(1.0, rel=1e-12)
    assert pvalue(select_best) > FALSE_ALARM


def replay(scores, source):
    """Select among runs of given scores, all of one candidate; return the index chosen."""
    log = iter(enumerate(scores))
    fixed = SimpleNamespace(draw=lambda source: len(scores))
    return select_best(lambda _: next(log), ["only"], fixed, source)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([1.0], [0]),
        ([3.0, 1.0, 2.0], [0]),
        ([1.0, 2.0, 3.0], [2]),
        ([-math.inf, -1e300, math.nan], [1]),
        ([math.inf, 1e308, 5.0], [0]),
        ([np.float64(2.0), np.float32(2.5), 1], [1]),
        ([2.0, 1.0, 2.0, 0.0, 2.0], [0, 2, 4]),
        ([1.0, 1.0, 3.0, 0.0, 3.0, 3.0, 2.0, 3.0], [2, 4, 5, 7]),
        ([math.nan, -math.inf, math.nan], [0, 1, 2]),
    ],
)
def test_largest_score_wins_and_ties_are_broken_uniformly(scores, best):
    """In particular a worse run between equal ones does not favour the later."""
    source = seeded(5)
    wins = [replay(scores, source)[1] for _ in range(3000 if len(best) > 1 else 20)]
    counts = np.bincount(wins, minlength=len(scores))
    assert counts[best].sum() == len(wins)
    assert len(best) == 1 or stats.chisquare(counts[best]).pvalue > FALSE_ALARM


def test_a_first_score_that_is_no_number_is_the_worst():
    assert replay([math.nan, 1.0, 2.0], seeded(5))[1] == 2


def test_candidates_are_drawn_uniformly_and_afresh():
    source, distribution, tried = seeded(6), geometric_run_count(10), []

    def run(candidate):
        tried.append(candidate)
        return None, 0.0

    for _ in range(300):
        select_best(run, np.array(["a", "b", "c"]), distribution, source)
    counts = [tried.count(c) for c in "abc"]
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    repeats = sum(x == y for x, y in itertools.pairwise(tried))
    assert stats.binomtest(repeats, len(tried) - 1, 1 / 3).pvalue > FALSE_ALARM
    # Without a source the randomness is that of the operating system.
    assert (
        len({select_best(lambda c: (c, 0.0), range(10**6), DISTRIBUTION)[0] for _ in range(20)})
        > 10
    )
    with pytest.raises(ValueError, match="candidates must not be empty"):
        select_best(run, np.array([]), distribution)


def test_nothing_but_the_winner_is_returned(capsys, recwarn):
    """Losers are released, and nothing tells two numbers of runs apart."""
    calls = []

    class Model:
        alive = 0

        def __init__(self):
            Model.alive += 1

        def __del__(self):
            Model.alive -= 1

    def run(candidate):
        calls.append(candidate)
        return Model(), 1.0 / len(calls)

    results = []
    for seed in range(20):
        calls.clear()
        results.append(select_best(run, [0, 1], DISTRIBUTION, seeded(seed)))
        assert Model.alive == len(results)
        assert all(type(r) is tuple and len(r) == 2 for r in results)
        assert all(r[0] in (0, 1) and not vars(r[1]) for r in results)
    assert capsys.readouterr() == ("", "")
    assert not recwarn.list


@pytest.mark.slow
def test_planted_selection_bugs_are_caught():
    def one_more_run(run, candidates, distribution, source):
        return select_best(
            run,
            candidates,
            RunCountDistribution(distribution.eta, distribution.r * 0.7, distribution.k_max),
            source,
        )

    def each_candidate_in_turn(run, candidates, distribution, source):
        runs = [(c, *run(c)) for c in candidates for _ in range(distribution.draw(source) // 2 + 1)]
        candidate, output, _ = max(runs, key=lambda r: r[2])
        return candidate, output

    def rescored(score):
        def select(run, candidates, distribution, source):
            def changed(candidate):
                output, old = run(candidate)
                return output, score(output, old)

            return select_best(changed, candidates, distribution, source)

        return select

    worst, ties_by_output = rescored(lambda _, s: -s), rescored(lambda output, s: s + 0.01 * output)
    for bug in (one_more_run, each_candidate_in_turn, worst, ties_by_output):
        assert pvalue(bug) < CAUGHT


def excess(select, event_mu, mu, count, seed):
    """Largest excess of observed frequencies over the bound, and what noise explains."""
    distribution, source = geometric_run_count(6), seeded(seed)
    rng = np.random.default_rng(seed)

    def release(shift):
        def run(_):
            value = rng.normal(shift, 1 / mu)
            return value, value

        return np.array([select(run, [None], distribution, source)[1] for _ in range(count)])

    near, far = release(0.0), release(1.0)
    cuts, epsilons = np.linspace(-3.0, 6.0, 13) / mu, (0.0, 0.5, 1.0)
    bounds = [
        delta([random_stopping_event(distribution, event_mu)], epsilon) for epsilon in epsilons
    ]
    worst = max(
        first.mean() - math.exp(epsilon) * second.mean() - bound
        for cut in cuts
        for first, second in ((near < cut, far < cut), (far >= cut, near >= cut))
        for epsilon, bound in zip(epsilons, bounds, strict=True)
    )
    # Hoeffding for the two frequencies of 13 * 2 * 3 comparisons, false alarms at 1e-6.
    noise = math.sqrt(math.log(2 * 78 / FALSE_ALARM) / (2 * count)) * (1 + math.e)
    return worst, noise


@pytest.mark.parametrize("count", [2000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_released_outputs_obey_the_bound(count):
    """Planted: many runs whose best is published at the price of a fraction of one."""
    worst, noise = excess(select_best, 0.3, 0.3, count, 0)
    assert worst <= noise

    def peeking(run, candidates, distribution, source):
        return max((run(candidates[0]) for _ in range(60)), key=lambda pair: pair[1])

    worst, noise = excess(peeking, 0.01, 2.0, 2000, 1)
    assert worst > noise
