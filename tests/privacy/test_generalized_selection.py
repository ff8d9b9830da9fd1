"""Selection with different sensitivities: normalised scores, privacy, utility."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dp_halfspace.privacy import Exponential, exponential
from dp_halfspace.privacy.exponential import GeneralizedChoice
from dp_halfspace.privacy.randomness import OS_RANDOMNESS
from tests.privacy.oracles import seeded

REACH = (1.0, 3.0, 40.0)


def rounded_change(trials=600):
    """Largest excess over one of a computed score, over what is allowed; and over one alone.

    Neighbours whose costs move as far as they may in exact arithmetic, with costs up to 10^9
    sensitivities and every size of the term that raises them.
    """
    rng = np.random.default_rng(0)
    relative, absolute = 0.0, 0.0
    for _ in range(trials):
        reach = np.exp2(rng.uniform(0, 8, rng.integers(2, 6)))
        choice = GeneralizedChoice(tuple(reach.tolist()), float(10 ** rng.uniform(-10, 1)))
        costs = rng.uniform(-1, 1, len(reach)) * 10 ** rng.uniform(0, 9) * reach
        moved = costs + rng.choice([-1.0, 1.0], len(reach)) * reach
        for i, bound in enumerate(reach):
            while abs(Fraction(moved[i]) - Fraction(costs[i])) > Fraction(bound):
                moved[i] = np.nextafter(moved[i], costs[i])
        excess = np.abs(choice.normalise_costs(costs) - choice.normalise_costs(moved)).max() - 1.0
        relative = max(relative, excess / (choice.sensitivity - 1.0))
        absolute = max(absolute, excess)
    return relative, absolute


def test_rounded_scores_change_by_the_sensitivity_at_most(monkeypatch):
    """Planted: no allowance for rounding."""
    relative, absolute = rounded_change()
    assert 0.01 < relative <= 1.0
    # Neither one nor a constant that is right for a large budget would do for a small one.
    assert absolute > 2.0**-20
    monkeypatch.setattr(GeneralizedChoice, "sensitivity", 1.0 + 2.0**-52)
    assert rounded_change()[0] > 1.0


@pytest.mark.parametrize("epsilon", [1e-10, 0.1, 3.0])
def test_the_mechanism_is_given_the_proved_sensitivity(monkeypatch, epsilon):
    given = {}

    def keep(scores, epsilon, **rest):
        given.update(rest, scores=scores, epsilon=epsilon)
        return 0

    monkeypatch.setattr(exponential, "exponential_mechanism", keep)
    choice, costs = GeneralizedChoice(REACH, epsilon), np.array([1.0, 2.0, 3.0])
    choice.perturb(costs, OS_RANDOMNESS)
    assert choice.event == Exponential(epsilon)
    assert choice.normalise_costs(costs).min() == 0.0
    np.testing.assert_array_equal(given["scores"], -choice.normalise_costs(costs))
    t = 2 / epsilon * math.log(3 / 0.05)
    assert given["epsilon"] == epsilon
    assert given["sensitivity"] == pytest.approx(1 + 2**-20 + t * 2**-49, rel=1e-15)
    assert given["sensitivity"] >= 1 + 2**-20


def test_extremes():
    choice = GeneralizedChoice(REACH, 1.0)
    for costs in ([np.nan, 1.0, 2.0], [np.inf, 1.0, 2.0], [-np.inf, np.inf, np.nan]):
        with np.errstate(all="ignore"):
            assert choice.perturb(np.array(costs), OS_RANDOMNESS)[0] in (0.0, 1.0, 2.0)
    for n in (1, 2):
        choice = GeneralizedChoice((2.0,) * n, 5.0)
        assert choice.perturb(np.arange(n) * 1000.0, OS_RANDOMNESS)[0] == 0


def worst_change(choice, trials=4000):
    """Largest change of a normalised score when every cost moves as far as it may."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(trials):
        costs = rng.uniform(-200, 200, size=3)
        moved = costs + np.array(REACH) * rng.choice([-1.0, 1.0, 0.3], size=3)
        change = choice.normalise_costs(costs) - choice.normalise_costs(moved)
        worst = max(worst, np.abs(change).max())
    return worst


def test_normalised_scores_change_by_one_at_most():
    """Planted: half of one of the sensitivities."""
    assert 0.99 < worst_change(GeneralizedChoice(REACH, 0.5)) <= 1 + 1e-9
    assert worst_change(GeneralizedChoice((1.0, 3.0, 20.0), 0.5)) > 1 + 1e-9


def test_choice_has_the_distribution_of_the_exponential_mechanism():
    choice, costs, source = GeneralizedChoice(REACH, 2.0), np.array([1.0, 2.0, 3.0]), seeded()
    assert choice.event == Exponential(2.0)
    scores = choice.normalise_costs(costs)
    assert scores.min() == 0.0
    drawn = [int(choice.perturb(costs, source)[0]) for _ in range(4000)]
    weights = np.exp(-scores)
    shares = np.bincount(drawn, minlength=3) / 4000
    np.testing.assert_allclose(shares, weights / weights.sum(), atol=5 * math.sqrt(0.25 / 4000))
