"""A plan states at least the sensitivity that its proof derives, allowances for rounding included.

A replay sees only the moves that its neighbours make, and few make the largest one: here the stated
numbers are compared with those of the proofs, which are written out again.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from dp_halfspace.data.people import People
from dp_halfspace.engine.moment import moment_noise
from dp_halfspace.engine.plan import PublicFacts
from dp_halfspace.estimators._ranking import plan_ranking, plan_threshold
from dp_halfspace.metrics._tallies import Cells
from dp_halfspace.optim.certificate import gradient_error
from dp_halfspace.optim.losses import get_loss
from dp_halfspace.optim.objectives import Adversary
from dp_halfspace.optim.risks import MarginRisk, logistic_diameter
from dp_halfspace.papers import labels as label_training
from dp_halfspace.papers import pairs
from dp_halfspace.papers.known_margin import Steps, plan_descent, plan_single_records
from dp_halfspace.papers.labels import plan_labels
from dp_halfspace.papers.margin_selection import plan_selection
from dp_halfspace.papers.objective import GaussianLinearTerm, LaplaceLinearTerm
from dp_halfspace.privacy.budget import Budget
from tests.permits import problem_of

DELTAS = pytest.mark.parametrize("delta", [0.0, 1e-6])


@DELTAS
@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_move_a_statistic_by_one_or_the_root_of_two(delta, n_classes):
    """``label_privacy.md``, section 1: with twice the error of a sum of so many blocks."""
    n, block = 10**6, 4096
    rows = SimpleNamespace(shape=(n, 5), block_rows=block)
    plan = plan_labels(
        "statistic", rows, n_classes, Budget.of(1.0, delta), ridge=1.0, n_candidates=1, seed=0
    )
    exact = 1.0 if n_classes == 2 else math.sqrt(2.0)
    error = 1.01 * (block + math.ceil(n / block) + 8) * 2.0**-53 * n
    assert plan.mechanism.sensitivity >= exact + 2.0 * error


def test_planted_bug_half_of_the_noise_of_a_statistic_is_seen(monkeypatch):
    bound = label_training.statistic_sensitivity
    monkeypatch.setattr(label_training, "statistic_sensitivity", lambda *a: 0.5 * bound(*a))
    with pytest.raises(AssertionError):
        test_labels_move_a_statistic_by_one_or_the_root_of_two(1e-6, 2)


def ranking(mechanism, delta):
    """Plan a ranking of rows in the unit ball."""
    facts = PublicFacts(4000, 5, 2, (1.0, 1.0))
    problem = pairs.RankingProblem(facts, "logistic", 1.0, None, None, 0.0)
    return plan_ranking(problem, mechanism, Budget.of(2.0, delta))


@DELTAS
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_pairs_are_of_rows_of_norm_one(mechanism, delta):
    """``pairwise.md``: every bound grows with the norm of a row, a division included."""
    assert ranking(mechanism, delta).direction.plan.risk.row_norm >= 1.0 + 2.0**-53 * 4


def test_two_records_pull_by_rows_that_are_two_apart_and_their_roundings():
    """``noisy_gradient.md``, single records: computed rows are hardly longer than one."""
    plan = plan_single_records(4, 3, margin=0.2, budget=Budget.of(2.0, 1e-3), tail_fraction=0.5)
    assert plan.mechanism.sensitivity >= 2.0 * (1.0 + 2.0**-31)


def test_centred_rows_are_hardly_longer_than_one():
    """``engine.md``, section 2: a perturbed objective allows for their roundings."""
    assert ranking("noisy_gd", 0.0).direction.minimiser.risk.row_norm >= 1.0 + 2.0**-53 * 4


@pytest.mark.parametrize("n", [1000, 10**6])
def test_a_threshold_and_a_net_pay_for_their_roundings(n):
    """``auc.md``, section 1: a record adds one to the loss of a threshold."""
    d = 7
    rounding = n * (d + 16) * 2.0**-36 + 2.0**-50 * n * n
    assert plan_threshold(n, d, 1.0).sensitivity >= 1.0 + 2.0**-31 + rounding
    # ``label_privacy.md``, section 4: so does a label to two rounded numbers of errors.
    rows, budget = SimpleNamespace(shape=(n, d)), Budget.of(1.0, 0.0)
    how = {"ridge": None, "n_candidates": 9, "n_stages": 1, "seed": 0}
    net = plan_labels("net", rows, 2, budget, **how).search.mechanism
    assert net.sensitivity >= 1.0 + 2.0**-52 * n * n


def test_planted_bug_shorter_rows_are_seen(monkeypatch):
    monkeypatch.setattr(pairs, "UP", 0.5)
    with pytest.raises(AssertionError):
        test_pairs_are_of_rows_of_norm_one("output", 1e-6)


@pytest.mark.parametrize(("kind", "factor"), [("exponential", 1.0), ("gaussian", math.sqrt(2.0))])
def test_a_record_moves_the_error_of_every_margin_by_one(kind, factor):
    """``selection.md``, section 6: each score by one, so two of them together by the root of 2."""
    problem = problem_of(300, 4)
    given = problem, "phased_prox", kind, (0.05, 0.2), Budget.of(2.0, 1e-5)
    plain, penalised = (
        plan_selection(*given, population=population).choice for population in (False, True)
    )
    # A penalty is rounded together with the errors.
    assert penalised.sensitivity > plain.sensitivity >= factor


@pytest.mark.parametrize("is_single", [False, True])
def test_a_second_moment_pays_for_the_rounding_of_a_group_of_float32(is_single):
    """``certificate.md``, sections 7 and 9: twice the error of a group of 256 rows."""
    noise = moment_noise(10**6, 4096, Budget.gaussian(1.0), is_single=is_single)
    group = 2.04 * 2.0**-24 * (256 + 8) * 256
    beyond = noise.sensitivity - math.sqrt(2.0)
    assert (group if is_single else 0.0) < beyond < (group if is_single else 0.0) + 1e-4


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 7.77])
def test_the_steps_cost_no_more_than_the_run_as_real_numbers(mu):
    sizes = {"n_samples": 3000, "n_columns": 6, "n_outputs": 1, "block_rows": 512}
    for n_steps in range(2, 60):
        steps = Steps(
            margin_offset=2.0, n_steps=n_steps, path_length=3.0, tail_fraction=0.5, max_stride=8.0
        )  # fmt: skip
        plan = plan_descent(steps, **sizes, mu=mu)
        assert n_steps * Fraction(plan.mechanism.mu) ** 2 <= Fraction(mu) ** 2


@pytest.mark.parametrize(
    "term",
    [
        GaussianLinearTerm(3.0, 0.2, 0.1, ((1, 0.0), (2, 0.5), (1, 1.0))),
        LaplaceLinearTerm(3.0, 0.5, 0.1),
    ],
    ids=lambda term: type(term).__name__,
)
def test_the_bound_on_a_linear_term_holds_half_a_cell_of_its_grid(term, monkeypatch):
    """``objective_perturbation.md``: what is used is the ideal term, rounded to a grid."""
    whole, cell = term.norm_bound(3, 5), term.rounding(3, 5)
    monkeypatch.setattr(type(term), "rounding", lambda *_: 0.0)
    assert cell > 0.0
    assert whole == term.norm_bound(3, 5) + cell


@pytest.mark.parametrize("norm", [2, "inf"])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huber_hinge"])
def test_a_record_under_attack_moves_a_minimiser_as_far_as_the_theorem_says(loss, norm):
    """``robust.md``, Theorem 4: with the steepest slope of margins up to the radius."""
    n, row, found = 500, 1.0, get_loss(loss)
    for ridge, reach in product((1e-3, 0.1, 3.0), (0.1, 0.4, 2.0)):
        adversary = Adversary(reach, norm, 4)
        risk = MarginRisk(found, n, 4, 2, row, 512, adversary=adversary)
        length = row + adversary.added_row_norm
        margin = length * risk.radius(ridge)
        width = -float(found.derivative(-margin)) * max(2.0 * row, length)
        if loss == "logistic":
            width = min(width, 2.0 * length * logistic_diameter(margin))
        assert risk.sensitivity(ridge) >= width / (ridge * n)


class Many(People):
    """So many people that sums of their weights would need more bits than a float has."""

    def __len__(self) -> int:
        return 2**40


def test_weights_of_many_people_keep_their_sums_exact():
    """``persons.md``: a sum over all people of a whole factor has at most 52 bits."""
    for largest in (1, 4, 64):
        weights = Many(np.array([1, 3, 7])).weights_for(largest)
        whole = weights * 2.0 ** (52 - 41 - (largest - 1).bit_length())
        assert (whole == np.rint(whole)).all()
        assert weights[0] == 1.0
    # A right prediction counts four units.
    people = Many(np.array([1, 3, 7]))
    assert Cells(2, people=people).weights.tolist() == people.weights_for(4).tolist()
    assert people.weights_for(4).tolist() != people.weights.tolist()


def test_compensated_sums_count_no_more_than_the_blocks_that_are_added_plainly():
    """``certificate.md``, Theorem 2: up to 256 blocks one after the other, more by Kahan's rule."""
    sizes = {"n_columns": 3, "block_rows": 100, "row_norm": 1.0, "ridge": 0.1, "radius": 1.0}
    slopes = {"slope": 1.0, "smoothness": 0.25, "evaluation": 8.0}
    for n_blocks, counted in ((1, 1), (200, 200), (256, 256), (1000, 256)):
        n = 100 * n_blocks
        plain, kahan = (
            gradient_error(n_samples=n, **sizes, **slopes, compensated=rule)
            for rule in (False, True)
        )
        fewer = 1.01 * 2.0**-53 * n * (n_blocks - counted)
        assert plain - kahan == pytest.approx(fewer, rel=1e-9, abs=1e-12 * plain)
