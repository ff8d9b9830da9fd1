"""The factors of `_rounding` bring computed numbers to the safe side of the exact ones."""

import math
from fractions import Fraction
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import lambertw

from dp_halfspace import ObjectivePerturbationClassifier, OutputPerturbationClassifier
from dp_halfspace._rounding import DOWN, FAR_DOWN, FAR_UP, UP, WIDE_DOWN
from dp_halfspace.engine.counts import count_noise
from dp_halfspace.engine.linear import Shape, length_noise
from dp_halfspace.engine.moment import moment_noise
from dp_halfspace.engine.plan import PublicFacts
from dp_halfspace.engine.scales import plan_column_scales
from dp_halfspace.engine.steps import step_sensitivity
from dp_halfspace.estimators import _centred
from dp_halfspace.ledger import cap
from dp_halfspace.model_selection import _search_plan
from dp_halfspace.model_selection._search_plan import score_sensitivity, scores_sensitivity
from dp_halfspace.optim import losses, minimiser_radius
from dp_halfspace.optim.certificate import error_of_sums, gradient_error
from dp_halfspace.optim.losses import LOGISTIC, huber_hinge, softmax_diameter
from dp_halfspace.optim.objectives import Adversary
from dp_halfspace.optim.risks import MarginRisk, SoftmaxRisk, jacobian_floor, logistic_diameter
from dp_halfspace.papers import known_margin, margin_selection, pair_objective
from dp_halfspace.papers.labels import plan_labels, statistic_sensitivity
from dp_halfspace.papers.margin_selection import plan_margin_choice
from dp_halfspace.papers.network import NetworkShape, network_sensitivity
from dp_halfspace.papers.objective import (
    GaussianLinearTerm,
    LaplaceLinearTerm,
    plan_objective,
)
from dp_halfspace.papers.output import plan_output
from dp_halfspace.papers.pair_objective import PairRisk, balanced_normaliser
from dp_halfspace.privacy.accounting import mu_beside
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Gaussian, Pure, to_dp_event
from dp_halfspace.privacy.mechanisms import GaussianNoise, L2LaplaceNoise, SampledGaussianNoise
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.random_stopping import (
    calibrate_random_stopping,
    run_count_distribution,
)
from dp_halfspace.rows.rows import clipped_rows
from dp_halfspace.selection import small_trees
from dp_halfspace.selection.small_tables import plan_error_count, plan_small_table
from dp_halfspace.selection.small_trees import plan_small_tree, plan_staged_tree
from tests.permits import problem_of
from tests.releases import record_releases

RNG = np.random.default_rng(0)


def chain(n_steps):
    """Return a number after steps of float64, and the same number in 60 digits."""
    value = float(RNG.uniform(1.0, 2.0))
    with mpmath.workdps(60):
        exact = mpmath.mpf(value)
        for _ in range(n_steps):
            factor = float(RNG.uniform(0.5, 2.0))
            value, exact = value * factor, exact * factor
            value, exact = value / 1.7 + factor, exact / mpmath.mpf(1.7) + factor
            value, exact = float(np.sqrt(value)), mpmath.sqrt(exact)
        return value, exact


def test_a_bound_after_thousands_of_operations_is_not_too_low():
    """Planted: without the factor some are."""
    chains = [chain(n_steps) for n_steps in (1, 10, 1000) for _ in range(8)]
    assert all(mpmath.mpf(value * UP) >= exact for value, exact in chains)
    assert all(mpmath.mpf(value * DOWN) <= exact for value, exact in chains)
    assert any(mpmath.mpf(value) < exact for value, exact in chains)
    assert any(mpmath.mpf(value) > exact for value, exact in chains)


def test_parts_of_a_budget_fit_into_it_exactly():
    """Planted: without the factor some do not."""
    whole = []
    for epsilon in RNG.uniform(0.01, 10.0, size=300).tolist():
        for n_parts in (3, 7, 11):
            part = epsilon / n_parts
            assert n_parts * Fraction(part * DOWN) <= Fraction(epsilon)
            whole.append(n_parts * Fraction(part) <= Fraction(epsilon))
    assert not all(whole)


def test_roots_found_by_iteration_are_on_the_safe_side():
    """Planted: without the factors some are not."""
    roots = []
    for target in RNG.uniform(0.1, 5.0, size=100).tolist():
        root = float(brentq(lambda x, y=target: x**3 - y, 0.0, 5.0, xtol=1e-300, rtol=1e-12))
        with mpmath.workdps(60):
            exact = mpmath.cbrt(mpmath.mpf(target))
        assert mpmath.mpf(root * FAR_DOWN) <= exact <= mpmath.mpf(root * FAR_UP)
        roots.append((root, exact))
    assert any(mpmath.mpf(root) < exact for root, exact in roots)
    assert any(mpmath.mpf(root) > exact for root, exact in roots)


# -- every bound that is computed is raised, every share of a budget is lowered -----------------

SQRT = math.sqrt
FEW = 10  # records: what sums of so many can be off by is far below a factor
MARGIN, SOFT = MarginRisk(LOGISTIC, FEW, 3, 2, 1.0, FEW), SoftmaxRisk(FEW, 3, 4, 1.0, FEW)
PAIRS = PairRisk(LOGISTIC, FEW, 3, 1.0, FEW, balanced_normaliser(FEW))
TILTED = MarginRisk(
    LOGISTIC, FEW, 3, 2, 1.0, FEW, tilt=0.5, adversary=Adversary(0.1, "inf", 3), min_weight=1.0
)
PROBLEM = problem_of(300, 4)
RAMP = huber_hinge(0.3)


def raised_bounds():
    """Name what is stated, what it is made of without its factor, and the factor."""
    pure, gaussian = Budget.of(0.7, 0.0), Budget.gaussian(0.7)
    for n_classes, are_weighed, exact in ((2, False, 1), (2, True, SQRT(2)), (3, False, SQRT(2))):
        counts = count_noise(n_classes, gaussian, has_weights=are_weighed)
        yield "counts of classes", counts.sensitivity, exact, UP
    scales = plan_column_scales(FEW, 7, gaussian)
    yield "counts of octaves", scales.octaves.sensitivity, SQRT(14), UP
    yield "moments of columns", scales.moments.sensitivity, 2 * SQRT(7), UP
    yield "squared lengths", length_noise(gaussian).sensitivity, 1, UP
    moment = moment_noise(FEW, FEW, gaussian, is_single=False)
    yield "second moment", moment.sensitivity, SQRT(2), UP
    yield "labels, two classes", statistic_sensitivity(FEW, 2, FEW), 1, UP
    yield "labels, more classes", statistic_sensitivity(FEW, 3, FEW), SQRT(2), UP
    rows = SimpleNamespace(shape=(FEW, 3), block_rows=FEW)
    net = plan_labels("net", rows, 2, pure, ridge=None, n_candidates=100, seed=0)
    yield "losses of labels", net.sensitivity, 1, FAR_UP
    yield "losses of networks", network_sensitivity(0, NetworkShape(3, (2,), 1.0)), 1, FAR_UP
    yield "scores of margins", margin_selection._score_bound(PROBLEM, population=False), 1, UP
    yield "scores of a search", score_sensitivity(FEW), 1, UP
    each = score_sensitivity(FEW)
    yield "scores of three models", scores_sensitivity(FEW, 3), SQRT(3) * each, UP
    phase = known_margin._noise(FEW, 3, 0.5, 0.1, 0.7)
    yield "mean of proximal steps", phase.sensitivity, 2 * 0.5 / 0.1, FAR_UP
    choice = plan_margin_choice(PROBLEM, "noisy_gd", Budget.of(1.0, 1e-6)).choice
    yield "least losses of margins", choice.sensitivities[0], 1 + 2 + 1.5, FAR_UP
    yield "scale of Gaussian noise", GaussianNoise(3.0, 0.7).sigma, 3.0 / 0.7, FAR_UP
    yield "scale of one record", SampledGaussianNoise(5, 3.0, 0.7).sigma, 3.0 / 0.7, FAR_UP
    yield "scale of Laplace noise", L2LaplaceNoise(3.0, 0.7).scale, 3.0 / 0.7, FAR_UP
    term = GaussianLinearTerm(3.0, 0.7, 0.1, ((1, 0.0), (2, 0.5), (1, 1.0)))
    yield "scale of a Gaussian term", term.sigma, 3.0 / 0.7, FAR_UP
    yield "scale of a Laplace term", LaplaceLinearTerm(3.0, 0.7, 0.1).scale, 3.0 / 0.6, FAR_UP
    for risk in (MARGIN, SOFT, PAIRS):
        plan, total = plan_output(risk, 0.3, gaussian.noise), risk.total(0.3)
        exact = risk.sensitivity(0.3) + 2.0 * plan.tolerance.certified / total
        yield "noisy minimiser", plan.sensitivity, SQRT(risk.n_stacked) * exact, UP
    plan = plan_objective(MARGIN, 0.3, 1.0, 1e-6)
    total = MARGIN.total(plan.ridge)
    exact = 2.0 * SQRT(MARGIN.n_stacked) * plan.tolerance.certified / total
    yield "distance to a minimiser", plan.output.sensitivity, exact, UP
    exact = plan.linear.norm_bound(MARGIN.n_blocks, MARGIN.n_columns) / total
    yield "norm beside a term", plan.radius - MARGIN.radius(plan.ridge), exact, UP
    yield from raised_risks()
    yield "Gaussian noise for pure", cap._MU_OF_PURE, SQRT(0.5 * math.pi), UP
    yield "sum of squares", cap._as_gaussian([Gaussian(0.3), Gaussian(0.4)]), 0.5, UP
    rows = clipped_rows(np.ones((2, 2)), 0.7, 0.3)
    yield "clipped rows", rows.row_bound, math.hypot(0.7, 0.3), UP


def raised_risks():
    """Name what the risks say of one record, as in `raised_bounds`."""
    plain = 0.7 / MARGIN.n_samples
    yield "ratio of Jacobians", MARGIN.log_ratio(plain), math.log1p(0.25 / 0.7), UP
    floor = jacobian_floor(MARGIN.curvature, 0.7 / 2.0) / FEW
    yield "least regulariser", MARGIN.ridge_floor(0.7), floor, UP
    yield "gradient", MARGIN.gradient_change, 2.0, UP
    yield "gradient of a softmax", SOFT.gradient_change, 2.0 * SQRT(2), UP
    yield "blocks of a softmax", SOFT.block_change, SOFT.gradient_change * SQRT(2), UP
    yield "edge of a softmax", SOFT.vertices[2][1], SQRT(0.75), UP
    yield "edge of a pair", PAIRS.vertices[1][1], SQRT(0.75), UP
    yield "gradient of pairs", PAIRS.gradient_change, PAIRS.partners * 2.0, UP
    yield "number of pairs", PAIRS.mass, 1.0, UP
    reach = PAIRS.diameter * PAIRS.radius(0.3)
    exact = PAIRS.partners * LOGISTIC.slope_bound(reach) * PAIRS.diameter / 0.3
    yield "minimiser of pairs", PAIRS.sensitivity(0.3), exact, FAR_UP
    one = PairRisk(LOGISTIC, FEW, 1, 1.0, FEW, balanced_normaliser(FEW))
    exact = math.log1p(4.0 * one.partners * 0.25 / 0.3)
    yield "Jacobians of pairs on a line", one.log_ratio(0.3), exact, UP
    exact = 2.0 * logistic_diameter(MARGIN.radius(0.3)) / (0.3 * FEW)
    yield "minimiser", MARGIN.sensitivity(0.3), exact, FAR_UP
    exact = 2.0 * softmax_diameter(4, SOFT.radius(0.3)) / (0.3 * FEW)
    yield "minimiser of a softmax", SOFT.sensitivity(0.3), exact, FAR_UP
    peak = float(lambertw(3.0 * math.exp(-1.0)).real)
    yield "norm of a softmax", SOFT.radius(0.3), SQRT(peak / 0.3), FAR_UP
    exact = SQRT(LOGISTIC.self_bound / 1e-6)
    yield "norm", minimiser_radius(LOGISTIC, row_norm=1.0, ridge=1e-6), exact, FAR_UP
    root = brentq(lambda norm: norm - 1.0 / (1.0 + math.exp(norm)), 0.0, 1.0, xtol=1e-15)
    yield "short norm", minimiser_radius(LOGISTIC, row_norm=1.0, ridge=1.0), root, FAR_UP
    within = TILTED._highest_margin(TILTED.radius(0.3))
    exact, inner = (SQRT(float(LOGISTIC.h(m)) / 0.3) for m in (within * FAR_UP, within))
    yield "norm under an attack", TILTED.radius(0.3), exact, FAR_UP
    yield "margin under an attack", TILTED.radius(0.3), inner * FAR_UP, exact / inner
    # Two factors each: that of the result, and that of what is inside.
    spread, far = TILTED.spread(0.3), FAR_UP - 1.0
    outer = FEW / (1.0 + (FEW - 1) * math.exp(-0.5 * spread * FAR_UP))
    yield "weight in a tilted mean", TILTED.influence(0.3), outer, FAR_UP
    inner = FEW / (1.0 + (FEW - 1) * math.exp(-0.5 * spread))
    gain = 1.0 + far * 0.5 * spread * (1.0 - inner / FEW)
    yield "losses in a tilted mean", TILTED.influence(0.3), inner * FAR_UP, gain
    lowest, attack = TILTED.row_length * TILTED.radius(0.3), TILTED.adversary
    highest = TILTED._highest_margin(TILTED.radius(0.3)) * FAR_UP
    most, least = (float(LOGISTIC.value(margin)) for margin in (-lowest * FAR_UP, highest))
    yield "spread of losses", spread, most - least, 1.0 + far * most / (most - least)
    low = float(LOGISTIC.value(-lowest))
    gain = 1.0 + (most - low) / (most - least)
    yield "largest loss", spread, low - least + most * far, gain
    high = float(LOGISTIC.value(highest / FAR_UP))
    gain = 1.0 + (high - least) / (most - least)
    yield "least loss", spread, most - high + most * far, gain
    yield "half a diameter", logistic_diameter(0.0), 0.5, FAR_UP
    yield "half a diameter of a softmax", softmax_diameter(4, 0.0), SQRT(0.75), FAR_UP
    yield "slope", LOGISTIC.slope_bound(0.3), -float(LOGISTIC.derivative(-0.3)), UP
    for loss in (LOGISTIC, RAMP):
        peak = float(loss.h(np.asarray(loss.self_argmax)))
        yield "largest t l'(t)", loss.self_bound, peak, UP
    yield "loss of zeros", LOGISTIC.at_zero, float(LOGISTIC.value(0.0)), UP
    inside = np.linspace(-2.0, 2.0, 4001)
    yield "curvature of a ramp", RAMP.smoothness, float(RAMP.second_derivative(inside).max()), UP
    yield "norm of signs", attack.k, SQRT(3), UP
    yield "row norm that an attack adds", attack.added_row_norm, 0.1 * attack.k, UP
    yield "slack of an attack", attack.slack, 0.1 * 1e-3 * 3, UP


def too_low(bounds):
    """Half of what a factor adds is left when all roundings of a formula went against it."""
    return [
        (name, number)
        for number, (name, stated, exact, factor) in enumerate(bounds)
        if not mpmath.mpf(stated) >= mpmath.mpf(exact) * (1 + mpmath.mpf(factor - 1.0) / 2)
    ]


def test_a_bound_is_raised_by_its_factor():
    bounds = list(raised_bounds())
    with mpmath.workdps(40):
        assert too_low(bounds) == []
        # Planted: what a formula gives by itself.
        plain = [(name, float(exact), exact, factor) for name, _, exact, factor in bounds]
        assert len(too_low(plain)) == len(bounds) > 50


def allowances():
    """Name what is added for the roundings of many records, and what its page states."""
    n, m = 10**8, 10**4
    stated = statistic_sensitivity(n, 3, m) - SQRT(2) * UP
    yield "labels", stated, 2.02 * (m + n // m + 8) * 2.0**-53 * n
    n, rows = 10**6, SimpleNamespace(shape=(10**6, 3), block_rows=m)
    budget = Budget.of(0.7, 0.0)
    net = plan_labels("net", rows, 2, budget, ridge=None, n_candidates=100, seed=0)
    yield "losses of labels", net.sensitivity - FAR_UP, 2.0**-50 * n**2
    stated = network_sensitivity(n, NetworkShape(3, (2, 5), 1.0)) - FAR_UP
    units = 2**4 * (3 + 4) * 2**8 + (2 + 4) * (2**4 + 2**7) + 5 + 32
    yield "losses of networks", stated, 2.0 * n * units * 2.0**-37 + 2.0**-50 * n**2
    stated = margin_selection._score_bound(problem_of(10**9, 4), population=False) - UP
    yield "scores of margins", stated, (2 + 4) * 2.0**-52 * 10**9
    stated = known_margin._noise(n, 3, 0.5, 0.1, 0.7).sensitivity / 2.0 - 5.0 * FAR_UP
    yield "proximal steps", stated, (n + 1) * 2.0**-51 * (3 + 16) * (2.0 + 0.1 + 5.0)
    steps = known_margin.margin_steps(n, 6, 1, margin=0.1, mu=0.7)
    sizes = {"n_samples": n, "n_columns": 6, "n_outputs": 1, "block_rows": 512}
    stated = known_margin.plan_descent(steps, **sizes, mu=0.7).mechanism.sensitivity / 2.0 - FAR_UP
    radius = 8.0 * steps.path_length * (1.0 + SQRT(6))
    sums = error_of_sums(n, 6, 512, slope=1.0, n_outputs=1)
    yield "noisy steps", stated, sums + n * 1.01 * (6 + 3) * 2.0**-53 * radius
    stated = step_sensitivity(n, 6, 2, 512, 3.0, is_single=False) / 2.0 - 0.5 * (1.0 + 2.0**-40)
    sums = error_of_sums(n, 6 + 2, 512, slope=0.5, n_outputs=2)
    sums += n * 0.5 * 1.01 * (6 + 4) * SQRT(6 + 2) * 2.0**-53
    margins = n * 0.5 * 1.01 * (6 + 5) * 2.0**-53 * 3.0 * 8.0 * 1.2 * SQRT(2) * (1.0 + SQRT(6))
    yield "default steps", stated, 3.0 * sums + margins
    bounds = {"row_norm": 1.0, "slope": 1.0, "smoothness": 1.0, "evaluation": 24.0}
    error = gradient_error(**PROBLEM.sizes(), **bounds, ridge=2.0 * 300 / 5.0, radius=5.0)
    stated = margin_selection._cost_rounding(PROBLEM, 5.0, 1e5)
    yield "least losses", stated, 10.0 * (1.0 + 5.0) * error + 2.0**-51 * (300 + 1e5)


def test_what_roundings_may_add_is_what_the_pages_state():
    for name, stated, page in allowances():
        assert stated == pytest.approx(page, rel=1e-6), name


def lowered_budgets():
    """Name what is spent, the budget that it is a part of, and the factor."""
    mu, epsilon = 0.7, 0.7
    sizes = {"n_samples": 3000, "n_columns": 6, "n_outputs": 1, "block_rows": 512}
    taken = known_margin.margin_steps(3000, 6, 1, margin=0.1, mu=mu)
    steps = known_margin.plan_descent(taken, **sizes, mu=mu)
    yield "steps", mpmath.sqrt(steps.steps.n_steps) * steps.mechanism.mu, mu, DOWN
    whole = Budget.of(1.0, 1e-6)
    margins = plan_margin_choice(PROBLEM, "noisy_gd", whole)
    beside = mu_beside(margins.choice.epsilon, 1.0, 1e-6)
    training = margins.candidates[0].algorithm
    spent = mpmath.sqrt(training.steps.n_steps) * training.mechanism.mu
    yield "steps beside a choice of a margin", spent, mpmath.mpf(beside) * DOWN, DOWN
    for counts in (False, True):
        small = plan_small_table(300, 4, epsilon, seed=0, counts=counts).choice
        tree = plan_small_tree(300, 4, 3, epsilon, seed=0, counts=counts).choice
        yield "one selection", small.epsilon, epsilon, DOWN
        yield "one selection of a tree", tree.epsilon, epsilon, DOWN
    count, left = plan_error_count(300, epsilon, 4)
    yield "what a count leaves", left, mpmath.mpf(epsilon) - count.epsilon, FAR_DOWN
    first, second = plan_staged_tree(300, 4, 5, epsilon, seed=0).epsilons
    yield "first of two selections", first, mpmath.mpf(epsilon) * small_trees._FIRST_SHARE, DOWN
    yield "second of two selections", second, mpmath.mpf(epsilon) - first, FAR_DOWN
    pure, gaussian = Budget.of(epsilon, 0.0), Budget.gaussian(mu, 1e-6)
    yield "rest of epsilon", pure.split(0.3)[1].epsilon, mpmath.mpf(epsilon) * (1 - 0.3), DOWN
    yield "rest of mu", gaussian.split(0.3)[1].mu, mu * mpmath.sqrt(1 - 0.3), DOWN
    yield "third of epsilon", pure.equal_parts(3).epsilon, mpmath.mpf(epsilon) / 3, DOWN
    yield "third of mu", gaussian.equal_parts(3).mu, mu / mpmath.sqrt(3), DOWN
    yield "part of epsilon", pure.parts((0.3, 0.7))[0].epsilon, mpmath.mpf(epsilon) * 0.3, DOWN
    yield "part of mu", gaussian.parts((0.3, 0.7))[0].mu, mu * mpmath.sqrt(0.3), DOWN
    yield "epsilon of a part of mu", gdp_mu(gaussian.epsilon, 1e-6), mu, FAR_DOWN
    multiplier = to_dp_event(Gaussian(mu))["noise_multiplier"]
    yield "noise multiplier", multiplier, 1 / mpmath.mpf(mu), DOWN
    yield from lowered_searches()


def searches(delta):
    """A search over five candidates that each cost their budget."""

    def planned(epsilon):
        event = Gaussian(gdp_mu(epsilon, delta)) if delta else Pure(epsilon)
        return SimpleNamespace(events=(event,))

    return _search_plan.Search([planned] * 5, 3000, 1.0, delta)


def gaussian_search():
    return searches(1e-6).gaussian(run_count_distribution(5, 0.1, eta=2.0))


def lowered_searches():
    """Name what the runs of a search spend, as in `lowered_budgets`."""

    search, runs = searches(1e-6), run_count_distribution(5, 0.1, eta=2.0)
    mu = calibrate_random_stopping(runs, search.epsilon, search.delta)
    spent, mu_score = search.run_mu(runs)
    yield (
        "a Gaussian run",
        spent,
        mpmath.sqrt(mpmath.mpf(mu) ** 2 - mpmath.mpf(mu_score) ** 2),
        WIDE_DOWN,
    )
    search = searches(0.0)
    plan = search.pure(run_count_distribution(5, 0.1, eta=1.0))
    spent = mpmath.mpf(plan.epsilon) + plan.choice.epsilon
    yield "a pure run", spent, mpmath.mpf(1) / 3, WIDE_DOWN
    plan = search.exponential()
    yield "one of five runs", plan.epsilon, mpmath.mpf(1 - 0.1) / 5, WIDE_DOWN


def too_high(budgets):
    """Tell of what is not below its budget by half of what a factor takes off."""
    return [
        name
        for name, spent, budget, factor in budgets
        if not mpmath.mpf(spent) <= mpmath.mpf(budget) * (1 - mpmath.mpf(1.0 - factor) / 2)
    ]


def test_what_a_budget_is_divided_into_is_lowered_by_its_factor():
    with mpmath.workdps(40):
        budgets = list(lowered_budgets())
        assert too_high(budgets) == []
        # Planted: the budget itself.
        whole = [(name, budget, budget, factor) for name, _, budget, factor in budgets]
        assert len(too_high(whole)) == len(budgets) > 15


def releases_of(estimator):
    """Mechanisms of a fit of few records."""
    X = np.tile([[0.6, 0.8], [-0.8, 0.6]], (15, 1))
    with record_releases() as releases:
        estimator.fit(X, np.tile([0, 1], 15))
    return [release.mechanism for release in releases]


OF_ROWS = {"data_norm": 1.0, "classes": [0, 1], "alpha": 0.5, "epsilon": 2.0, "delta": 1e-3}
NOISY = OutputPerturbationClassifier(preconditioner=False, **OF_ROWS)
PERTURBED = ObjectivePerturbationClassifier(rows="clipped", **OF_ROWS)
CENTRED = Shape(PublicFacts(30, 2, 2, (1.0, 1.0)), 1.0)


@pytest.mark.parametrize(
    ("module", "name", "stated"),
    [
        (_centred, "UP", lambda: releases_of(NOISY)[0].sensitivity),
        (_centred, "UP", lambda: releases_of(PERTURBED)[0].change),
        (_centred, "UP", lambda: _centred.risk_of(CENTRED, LOGISTIC, is_formed=True).row_norm),
        (losses, "FAR_UP", lambda: softmax_diameter.__wrapped__(4, 5.0)),
        (pair_objective, "FAR_UP", lambda: PAIRS.log_ratio(0.3)),
        (_search_plan, "UP", lambda: gaussian_search().events[0].mu),
    ],
    ids=["noisy rows", "perturbed rows", "centred rows", "softmax", "pairs", "dearest run"],
)
def test_a_factor_inside_a_plan_is_used(module, name, stated, monkeypatch):
    """A plan without it says less."""
    with_factor, factor = stated(), getattr(module, name)
    monkeypatch.setattr(module, name, 1.0)
    assert with_factor >= stated() * (1.0 + 0.5 * (factor - 1.0))
