"""What objective perturbation asks of a risk of records, against brute force over neighbours.

Changes of the gradient, their vertices and ratios of Jacobians; pairs have a test of their own.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

from dp_halfspace.exceptions import BudgetError
from dp_halfspace.optim import MarginRisk, SoftmaxRisk
from dp_halfspace.optim.losses import LOGISTIC, huber_hinge
from dp_halfspace.optim.risks import RIDGE_FLOOR, jacobian_floor
from tests.adversarial import unit

LOSSES = [LOGISTIC, huber_hinge(0.5), huber_hinge(0.1)]


def margin(loss=LOGISTIC, n=10, d=3, k=2, norm=1.5, weight=2.0):
    return MarginRisk(loss, n, d, k, norm, 10, weight)


def multinomial(k, n=10, d=3, norm=1.5, weight=2.0):
    return SoftmaxRisk(n, d, k, norm, 10, weight)


def probabilities(case, w, x, label):
    return softmax(w @ x)


def record_gradient(case, w, x, label, weight):
    """Gradient of one record, a row for each class of the softmax."""
    if isinstance(case, SoftmaxRisk):
        p = probabilities(case, w, x, label)
        p[label] -= 1.0
        return weight * np.outer(p, x)
    sign = 2 * label - 1
    return weight * sign * float(case.loss.derivative(np.array(sign * (w[0] @ x)))) * x[None]


def record_hessian(case, w, x, label, weight):
    if isinstance(case, SoftmaxRisk):
        p = probabilities(case, w, x, label)
        return weight * np.kron(np.diag(p) - np.outer(p, p), np.outer(x, x))
    margin = np.array((2 * label - 1) * (w[0] @ x))
    return weight * float(case.loss.second_derivative(margin)) * np.outer(x, x)


def replacements(rng, case, trials=300):
    """Pairs of records of full length and weight, half of them opposite, and a point."""
    for trial in range(trials):
        x = case.row_norm * unit(rng, case.n_columns)
        other = -x if trial % 2 else case.row_norm * unit(rng, case.n_columns)
        label = int(rng.integers(case.n_classes))
        other_label = label if trial % 3 else int(rng.integers(case.n_classes))
        weights = (case.max_weight, case.max_weight * rng.choice([0.1, 1.0]))
        rows = case.n_blocks
        w = rng.choice([0.1, 3.0, 60.0]) * rng.standard_normal((rows, case.n_columns))
        if trial % 5 == 0:
            # Opposite scores of the two records: both slopes are as large as they can be.
            w[:] = -10 * (x if label == rows - 1 else -x) * (1 if rows == 1 else -1)
            w[0] = -w[0]
        yield w, (x, label, weights[0]), (other, other_label, weights[1])


def measured_changes(case, seed=0):
    """Largest Euclidean change of the gradient, and largest sum over its blocks."""
    rng = np.random.default_rng(seed)
    euclidean = blocks = 0.0
    for w, first, second in replacements(rng, case):
        change = record_gradient(case, w, *first) - record_gradient(case, w, *second)
        euclidean = max(euclidean, float(np.linalg.norm(change)))
        blocks = max(blocks, float(np.linalg.norm(change, axis=1).sum()))
    return euclidean, blocks


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_gradient_change_of_margin_losses(loss):
    """Planted: half the bound, which is the change of adding a record."""
    case = margin(loss)
    euclidean, _ = measured_changes(case)
    assert 0.8 * case.gradient_change < euclidean <= case.gradient_change
    assert euclidean > case.gradient_change / 2
    assert case.block_change == case.gradient_change


@pytest.mark.parametrize("k", [3, 5])
def test_gradient_change_of_the_softmax(k):
    case = multinomial(k, norm=1.0, weight=1.0)
    euclidean, blocks = measured_changes(case)
    assert 0.8 * case.gradient_change < euclidean <= case.gradient_change
    assert 0.8 * 4.0 < blocks <= 4.0 <= case.block_change <= 4.0 * (1 + 1e-9)


def vertex_lengths(case, first, second):
    """Norms of all differences of vertices of the two records' sets of gradients."""
    (x, label, weight), (other, other_label, other_weight) = first, second
    if not isinstance(case, SoftmaxRisk):
        own = [np.zeros_like(x), weight * (2 * label - 1) * x]
        new = [np.zeros_like(x), other_weight * (2 * other_label - 1) * other]
    else:
        basis = np.eye(case.n_classes)
        own = [weight * np.outer(e - basis[label], x) for e in basis]
        new = [other_weight * np.outer(e - basis[other_label], other) for e in basis]
    return sorted(float(np.linalg.norm(a - b)) for a, b in itertools.product(own, new))


@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_vertices_dominate_those_of_every_pair(k):
    """Planted: sqrt(6) replaced by 2, an unequal pair that is too short."""
    case = margin(d=2) if k == 2 else multinomial(k, d=2)
    vertices = sorted(
        length * case.gradient_change for m, length in case.vertices for _ in range(m)
    )
    assert len(vertices) == k**2
    assert vertices[0] == 0.0
    reached = np.zeros(len(vertices))
    for _, first, second in replacements(np.random.default_rng(1), case):
        lengths = np.array(vertex_lengths(case, first, second))
        assert (lengths <= np.array(vertices) + 1e-12).all()
        reached = np.maximum(reached, lengths)
    assert reached[-1] == pytest.approx(vertices[-1])
    assert reached.sum() > 0.99 * sum(vertices)
    assert k == 2 or reached[-3] > 2.0 / math.sqrt(8.0) * case.gradient_change


def measured_log_ratio(case, ridge, seed=2, trials=120):
    """Largest log-ratio of determinants over neighbours with few or no common records."""
    rng = np.random.default_rng(seed)
    total = ridge * case.n_samples
    worst = -math.inf
    for trial, (w, first, second) in enumerate(replacements(rng, case, trials)):
        if trial % 2:
            w = w * 0.0  # where the curvature of most losses is largest
        common = total * np.eye(w.size)
        for _ in range(trial % 3):
            row, label = case.row_norm * unit(rng, case.n_columns), rng.integers(case.n_classes)
            common += record_hessian(case, w, row, int(label), case.max_weight)
        x, label, _ = first
        if isinstance(case, SoftmaxRisk):
            if trial % 2:  # all classes equally likely for the first record
                w[label] = 0.0
        elif case.loss.name != "logistic":
            w = (case.loss.self_argmax * (2 * label - 1) * x / (x @ x))[None]
        determinants = [
            np.linalg.slogdet(common + record_hessian(case, w, *record))[1]
            for record in (first, second)
        ]
        worst = max(worst, abs(determinants[0] - determinants[1]))
        # The other record may contribute nothing at all.
        worst = max(worst, abs(determinants[0] - np.linalg.slogdet(common)[1]))
    return worst


JACOBIANS = [margin(loss) for loss in LOSSES]
JACOBIANS += [multinomial(k) for k in (3, 6)]


@pytest.mark.parametrize("case", JACOBIANS)
@pytest.mark.parametrize("ridge", [1e-3, 0.1, 10.0])
def test_jacobian_ratio(case, ridge):
    """Nearly attained. Planted: the class weight is left out."""
    found, bound = measured_log_ratio(case, ridge), case.log_ratio(ridge)
    assert found <= bound + 1e-12  # slogdet itself errs by 1e-14
    assert found > 0.99 * bound
    assert found > replace(case, max_weight=1.0).log_ratio(ridge)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 5.0])
def test_floor_leaves_half_of_the_budget(epsilon):
    cases = [margin(loss, n=1000, k=k) for loss in LOSSES for k in (2, 3, 8)]
    for case in (*cases, *(multinomial(k, n=1000) for k in (3, 8))):
        spent = case.n_stacked * case.log_ratio(case.ridge_floor(epsilon))
        assert spent == pytest.approx(epsilon / 2, rel=1e-6)
    for huge in (1e4, math.inf):
        for case in (margin(norm=2.0), multinomial(3, norm=2.0)):
            assert case.ridge_floor(huge) == RIDGE_FLOOR * 4.0


@pytest.mark.parametrize("share", [0.0, -0.1, math.nan])
def test_no_regulariser_makes_up_for_a_budget_that_is_spent(share):
    with pytest.raises(BudgetError, match="too small for a perturbed objective"):
        jacobian_floor(1.0, share)
