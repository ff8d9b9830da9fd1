"""No bound can be divided by four: for each theorem a case in which a quarter of it fails.

Where the case is in another file, `ELSEWHERE` names it. Zero rows are errors of every halfspace,
and their hinge loss is one; so a share of them is a part of every bound that no method avoids.
"""

import math
import re
from inspect import isfunction
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

from dp_halfspace import theory
from dp_halfspace.optim.losses import HINGE, huber_hinge
from dp_halfspace.privacy import gdp_mu
from dp_halfspace.privacy.random_stopping import run_count_distribution
from dp_halfspace.theory import margin_bound
from dp_halfspace.theory.pure_bounds import chernoff_bound
from tests.theory.risk_problems import draw_noise, errors, hinges, mean_step, robust_risk
from tests.theory.test_margin_bound import poisoned

BUDGETS = [(0.5, 0.0), (2.0, 1e-5)]
every_budget = pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "gauss"])
ELSEWHERE = {
    "convex_excess_risk": "test_bounds::test_convex_bound_with_little_regularization_is_met",
    "fourier_distortion": "test_paper_theorems::test_inner_products_of_fourier_features",
    "fourier_frequencies": "test_paper_theorems::test_inner_products_of_fourier_features",
    "katyusha_iterations": "../papers/test_stochastic::test_katyusha_reaches_the_printed",
    "margin_risk_bound": "test_margin_bound::test_outliers_do_what_the_bound_allows",
    "margin_sample_complexity": "test_sample_complexity::test_a_quarter_of_these_records_is_not",
    "margin_score_sensitivity": "test_paper_theorems::test_margin_scores_on_neighbours",
    "margin_selection_cost": "test_paper_theorems::test_cost_of_a_selected_margin_and_the_printed",
    "objective_risk_bound": "test_paper_theorems::test_a_quarter_of_the_bound_of_objective_pert",
    "optimal_regularization": "test_bounds::test_regularization_minimises_the_bound",
    "population_risk_bound": "test_population_bound::test_linear_losses_meet_the_smooth_bound",
    "sgd_iterations": "test_printed_numbers::test_printed_numbers_of_steps",
    "strongly_convex_excess_risk": "test_bounds::test_strongly_convex_bound_is_met_and_half_of_it",
}
HERE = [
    "adversarial_risk_bound",
    "hinge_risk_bound",
    "kernel_risk_bound",
    "label_risk_bound",
    "last_iterate_risk_bound",
    "network_risk_bound",
    "phased_risk_bound",
    "pure_error_lower_bound",
    "pure_lower_bound",
    "pure_risk_bound",
    "random_stopping_risk_bound",
    "ranking_risk_bound",
    "selected_margin_risk_bound",
    "tilted_risk_bound",
]


def test_every_theorem_has_a_case():
    functions = {name for name in dir(theory) if isfunction(getattr(theory, name))}
    assert {name for name in functions if "lazy" not in name and name[0] != "_"} == {
        *ELSEWHERE,
        *HERE,
    }
    folder = Path(__file__).parent
    for place in ELSEWHERE.values():
        file, test = place.split("::")
        assert re.search(rf"^def {test}", (folder / f"{file}.py").read_text("utf-8"), re.MULTILINE)
    own = Path(__file__).read_text("utf-8")
    assert all(own.count(name) > 1 for name in HERE)


# Output perturbation


def opposite_rows(d):
    """Two records whose minimiser is zero, whatever the loss."""
    Z = np.zeros((2, d))
    Z[:, 0] = 1.0, -1.0
    return Z


@every_budget
@pytest.mark.parametrize("tilt", [1.0, 5.0])
def test_a_tilted_risk(budget, tilt):
    loss, ridge, Z = huber_hinge(h=0.5), 0.5 * tilt, opposite_rows(3)
    own = {"tilt": tilt, "loss": loss, "regularization": ridge}
    whole = theory.tilted_risk_bound(2000, 3, *budget, **own)
    plain = theory.tilted_risk_bound(2000, 3, *budget, **own, radius=1e-9)
    W = draw_noise(np.random.default_rng(0), 100_000, 3, *budget, whole.sensitivity)
    excess = robust_risk(loss, Z, W, tilt=tilt) - robust_risk(loss, Z, np.zeros(3), tilt=tilt)
    assert 0.4 * plain.value < excess.mean() <= plain.value
    excess = excess + ridge / 2 * np.sum(W**2, axis=1)
    assert 0.6 * whole.value < excess.mean() <= whole.value


@every_budget
@pytest.mark.parametrize(("norm", "d", "radius"), [(2, 30, 2.0), ("inf", 30, 2.0), (2, 5, 0.3)])
def test_an_adversarial_risk(budget, norm, d, radius):
    own = {"attack_radius": radius, "attack_norm": norm, "loss": "hinge", "regularization": 0.1}
    bound = theory.adversarial_risk_bound(10**5, d, *budget, **own)
    W = draw_noise(np.random.default_rng(0), 20_000, d, *budget, bound.sensitivity)

    def dual(W):
        return np.linalg.norm(np.atleast_2d(W), ord=2 if norm == 2 else 1, axis=1)

    excess = robust_risk(HINGE, opposite_rows(d), W, radius=radius, dual=dual) - 1.0
    excess = excess + 0.05 * np.sum(W**2, axis=1)
    assert 0.6 * bound.value < excess.mean() <= 1.01 * bound.value


@every_budget
def test_a_ranking(budget):
    """All differences are one, and the loss of a difference is its size."""
    epsilon, delta = budget[0] / 10, budget[1]
    bound = theory.ranking_risk_bound(
        500, 500, 1, epsilon, delta, radius=1e-9, diameter=1.0, regularization=1.0
    )
    noise = draw_noise(np.random.default_rng(0), 100_000, 1, epsilon, delta, bound.sensitivity)
    assert 0.9 * bound.value < np.abs(noise).mean() <= bound.value
    # The sensitivity is that of Lemma 1 of the paper, as printed.
    assert bound.sensitivity == pytest.approx(2 * 1.0 * 1.0 / 1.0 * (1 / 500 + 1 / 500))


@every_budget
def test_a_ranking_by_a_smooth_loss(budget):
    """Squares of one and minus one more than the score, half of each: w^2 + 1."""
    epsilon, delta = budget[0] / 100, budget[1]
    bound = theory.ranking_risk_bound(
        500, 500, 1, epsilon, delta, radius=1e-9, diameter=1.0, regularization=1.0,
        lipschitz=math.inf, smoothness=2.0,
    )  # fmt: skip
    noise = draw_noise(np.random.default_rng(0), 100_000, 1, epsilon, delta, bound.sensitivity)
    excess = ((1 - noise) ** 2 + (1 + noise) ** 2) / 2 - 1
    assert 0.9 * bound.value < excess.mean() <= 1.02 * bound.value
    # The sensitivity is that of Lemma 1 for the largest slope, 2 (1 + D sqrt(2 / ridge)).
    slope = 2 * (1 + math.sqrt(2))
    assert bound.sensitivity == pytest.approx(2 * slope * (1 / 500 + 1 / 500))


@every_budget
@pytest.mark.parametrize("linear_model", [False, True])
def test_a_smooth_convex_loss_with_the_best_regulariser(budget, linear_model):
    """A parabola at the minimiser, of all coefficients or of the first; a third is the bias."""
    n, d, beta, radius = 10**6, 4, 0.3, 1.0
    own = {"lipschitz": 1.0, "smoothness": beta, "linear_model": linear_model, "radius": radius}
    factor = theory.optimal_regularization(n, d, *budget, **own)
    bound = theory.convex_excess_risk(n, d, *budget, **own)
    W = draw_noise(np.random.default_rng(0), 100_000, d, *budget, 2 / (factor * n))
    felt = W[:, :1] if linear_model else W
    excess = beta / 2 * np.sum(felt**2, axis=1).mean()
    assert beta * np.quantile(np.abs(felt), 0.999) < 1.0  # slopes below one, but for few draws
    assert bound / 4 < excess <= bound
    known = theory.convex_excess_risk(
        n, d, *budget, **own | {"radius": 1e-9}, regularization=factor
    )
    assert excess == pytest.approx(known, rel=0.03)


@every_budget
@pytest.mark.parametrize("name", ["ranking_risk_bound", "population_risk_bound"])
def test_a_smooth_loss_on_fresh_records(budget, name):
    """A parabola at the minimiser of every sample, for so little budget that noise decides."""
    epsilon, delta, beta, ridge = budget[0] / 100, budget[1], 0.25, 10.0
    own = {"radius": 1e-9, "lipschitz": 1.0, "smoothness": beta, "regularization": ridge}
    if name == "ranking_risk_bound":
        bound = theory.ranking_risk_bound(500, 500, 1, epsilon, delta, diameter=1.0, **own)
    else:
        bound = theory.population_risk_bound(200, 1, epsilon, delta, linear_model=True, **own)
    noise = draw_noise(np.random.default_rng(0), 100_000, 1, epsilon, delta, bound.sensitivity)
    assert beta * np.quantile(np.abs(noise), 0.999) < 1.0  # slopes below one, but for few draws
    excess = beta / 2 * np.mean(noise**2)
    assert bound.value / 2 < excess <= bound.value


# Error for a margin


def test_the_last_iterate_where_outliers_decide():
    margin, n, n_steps = 0.25, 10**6, 2500
    U, counts = poisoned(margin, n)
    bound = theory.last_iterate_risk_bound(
        n, 2, 1.0, 1e-6, margin, n_outliers=int(counts[1]), n_steps=n_steps
    )
    rng, mu = np.random.default_rng(2), gdp_mu(1.0, 1e-6)
    step = mean_step(n, 2, mu, 1 / margin, n_steps)
    deviation = 2 * math.sqrt(n_steps) / (n * mu)
    W = np.zeros((2, 2))
    for _ in range(n_steps):
        W += step * ((W @ U.T < 1) * counts @ U / n + deviation * rng.standard_normal(W.shape))
    wrong = ((W @ U.T <= 0) * counts).sum(axis=1) / n
    assert bound / 2 < wrong.mean() <= bound < 1


@pytest.mark.parametrize("factor", [0.1, 1.0, 10.0])
def test_the_last_iterate_with_steps_too_short_and_too_long(factor):
    """Orthogonal rows; the bound is on the hinge loss of the iterate, too."""
    d, n_steps, mu = 10, 400, 2.0
    n, length, rng = 20 * d, math.sqrt(d), np.random.default_rng(1)
    step = factor * mean_step(n, d, mu, length, n_steps)
    deviation = 2 * math.sqrt(n_steps) / (n * mu)
    W = np.zeros((40, d))
    for _ in range(n_steps):
        W = W + step * ((W < 1) / d + deviation * rng.standard_normal(W.shape))
    case = margin_bound._Separated(n, d, 0, length)
    bound = margin_bound._excess_for(case, n_steps, deviation, step, beta=0.05)
    last = hinges(W, np.eye(d))
    assert np.mean(last > bound) <= 0.05
    assert factor > 0.1 or bound / 3 < last.mean() <= bound < 1


@pytest.mark.parametrize("how", [{}, {"half_width": 0.5}, {"n_components": 30_000}])
def test_random_stopping_where_the_good_candidate_is_missed(how):
    """Three candidates are wrong everywhere: so is the choice, unless the fourth is drawn."""
    n, d = (10**9, 10**5) if "n_components" in how else (300_000, 1)
    bound = theory.random_stopping_risk_bound(
        n, d, 1.0, 1e-6, 1.0, n_candidates=4, n_steps=10**4, **how
    )
    runs = run_count_distribution(4, 0.1, eta=2.0)
    missed = runs.probabilities @ 0.75 ** np.arange(1, runs.k_max + 1)
    assert missed <= bound < 1.2 * missed


@pytest.mark.parametrize("half_width", [0.0, 0.5])
@pytest.mark.parametrize("population", [False, True])
def test_rows_that_every_halfspace_gets_wrong(population, half_width):
    """A share of zero rows: their hinge loss and their error are one."""
    share, n = 0.3, 10**7
    assert errors(np.ones((1, 2)), np.zeros((1, 2))) == hinges(np.ones((1, 2)), np.zeros((1, 2)))
    own = {"hinge_loss": share, "n_steps": 10**4}
    rounded = own | {"half_width": half_width, "population": population}
    for bound in (
        theory.hinge_risk_bound(n, 2, 0.01, 1e-6, 1.0, **rounded),
        theory.phased_risk_bound(n, 2, 1.0, 1e-6, 1.0, hinge_loss=share),
        theory.selected_margin_risk_bound(n, 2, 1.0, 1e-6, 1.0, **own),
    ):
        assert share <= bound < 1.5 * (1 + half_width) * share
    own = {"n_outliers": round(share * n), "n_steps": 10**5, "half_width": half_width}
    for name in ("margin_risk_bound", "last_iterate_risk_bound"):
        bound = getattr(theory, name)(n, 2, 1.0, 1e-6, 1.0, population=population, **own)
        assert share <= bound < 4 * share


@pytest.mark.parametrize("half_width", [0.0, 0.5])
@pytest.mark.parametrize("population", [False, True])
def test_records_with_both_labels(population, half_width):
    """A function is wrong on one of two equal records; their mean hinge loss is at least one."""
    share = 0.4
    margins = np.linspace(-3, 3, 601)
    assert (np.maximum(0, 1 - margins) + np.maximum(0, 1 + margins)).min() / 2 == 1.0
    bound = theory.kernel_risk_bound(
        10**7, 10**4, 0.1, 1e-6, 1.0, hinge_loss=share, n_steps=10**4, population=population,
        half_width=half_width,
    )  # fmt: skip
    assert share / 2 <= bound < 4 * share / 2


@pytest.mark.parametrize("n_components", [None, 30_000])
@pytest.mark.parametrize("population", [False, True])
@pytest.mark.parametrize("n_candidates", [1, 3])
@pytest.mark.parametrize("name", ["margin_risk_bound", "last_iterate_risk_bound"])
def test_rows_that_every_candidate_gets_wrong(name, n_candidates, population, n_components):
    """A share of zero rows, which a projection leaves as they are, for all branches."""
    share, n = 0.2, 10**9
    own = {"n_outliers": round(share * n), "n_candidates": n_candidates, "population": population}
    own |= {"n_components": n_components, "n_steps": 20_000}
    if name == "margin_risk_bound":
        own["selection_epsilon"] = 0.1 if n_candidates > 1 else 0.0
    else:
        own["step_size"] = 0.005
    bounds = [getattr(theory, name)(n, 10**5 if n_components else 2, 1.0, 1e-6, 1.0, **own)]
    if population and n_candidates > 1:
        own["candidate_dimension"] = n_components or 2
        bounds += [getattr(theory, name)(n, 10**5 if n_components else 2, 1.0, 1e-6, 1.0, **own)]
    for bound in bounds:
        assert share <= bound < min(1.0, 4 * share)


# Pure choices


@pytest.mark.parametrize("d", [5, 10**6])
def test_choices_among_records_with_both_labels(d):
    """Half of the records are the outliers of any member of a class, and its errors.

    With a million columns the bounds are those after a projection.
    """
    n, share = 10**8, 0.3
    outliers = round(n * share)
    for bound in (
        theory.pure_risk_bound(n, d, 1.0, 0.5, n_outliers=outliers),
        theory.network_risk_bound(n, d, 1.0, 0.5, n_outliers=outliers),
        theory.label_risk_bound(n, d, 1.0, 0.5, n_outliers=outliers).value,
    ):
        assert share <= bound < 1.1 * share


@pytest.mark.parametrize("epsilon", [0.01, 0.05])
def test_a_choice_from_many_bad_members_of_a_class(epsilon):
    """The bound of nets, networks and labels: all members but one make as many errors as it says.

    Member j errs where the j-th of many independent bits of a record is set, so that many errors in
    training are as many on fresh records.
    """
    n, size, beta = 10**5, 15.0, 0.02
    many = round(math.exp(size))
    bound = chernoff_bound(n, size, epsilon, 0.0, beta)
    share = 2 * (size - 5.0) / (n * epsilon)
    # One member is right everywhere, the others err on this share.
    wrong = 1 - 1 / (1 + (many - 1) * math.exp(-epsilon * n * share / 2))
    assert wrong > 1 - beta
    assert bound / 3 < share <= bound


def test_pure_lower_bound_within_two():
    """Two halfspaces in one column, told apart by a logistic choice that is private."""
    epsilon, beta = 0.05, 0.1
    least = theory.pure_lower_bound(1, epsilon, 0.5, beta=beta)

    def failure(n):
        counts = np.arange(n + 1)  # positive records
        chosen = softmax(np.stack([epsilon * counts, epsilon * (n - counts)]) / 2, axis=0)
        assert np.abs(np.diff(np.log(chosen))).max() <= epsilon * (1 + 1e-9)
        return chosen[0, 0]  # no positive record, and yet the positive halfspace

    assert failure(least - 1) > beta
    assert failure(4 * least) < beta  # so many would refute a bound that is four times larger


def test_pure_error_lower_bound_within_four():
    """The same choice on the hard distributions with four times the error."""
    n, epsilon, beta = 2000, 0.1, 0.1
    case = theory.pure_error_lower_bound(n, 2, epsilon, 0.01, beta=beta)
    assert case.dimension == 1
    rng = np.random.default_rng(3)

    def failure(share):
        informative = rng.binomial(n, share, size=20_000)
        return float(np.mean(1 / (1 + np.exp(epsilon * informative / 2))))

    assert failure(case.share) > beta
    assert failure(4 * case.share) < beta
