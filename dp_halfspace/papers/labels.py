"""The ways in which LabelPrivateClassifier can fit, as plans of numbers that no label enters.

The logistic loss is ``ln(2 cosh(z / 2)) - y z / 2`` with ``z = <w, x>``: a function of the
features, which are public here, minus a linear function of ``s = 1/2 sum_i y_i x_i``. For
``K > 2`` classes the same holds with ``S = sum_i (e_{y_i} - 1/K) x_i``. The sum is released
once; every model that is then fitted to it is free. The other way is a search among random linear
classifiers by their errors. Proofs: ``docs/proofs/label_privacy.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from dp_halfspace._memory import AT_ONCE, NUMBER_BYTES, rows_of_block
from dp_halfspace._rounding import FAR_UP, TINY, UP
from dp_halfspace.optim.certificate import RELATIVE
from dp_halfspace.optim.losses import LOGISTIC
from dp_halfspace.optim.objectives import MarginObjective, SoftmaxObjective
from dp_halfspace.optim.solvers import certified_minimum
from dp_halfspace.papers.staged_search import StagedSearch, default_stages, plan_search, run_search
from dp_halfspace.privacy.accounting import calibrate
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Event, Pure
from dp_halfspace.privacy.mechanisms import AdditiveNoise, noise_deviation
from dp_halfspace.privacy.noise import RandomizedResponse
from dp_halfspace.rows.blocks import FloatArray
from dp_halfspace.rows.rows import Rows

Noise: TypeAlias = AdditiveNoise | RandomizedResponse

# Chosen on satimage and ijcnn1, see docs/evidence/label_private.md: prior variance of a coefficient
# of a normalised row where noise rules.
_PRIOR = 0.3
# Ratio of noise to curvature at which it is doubled.
_BALANCE = 3.0
# Largest prior variance.
_LARGEST_PRIOR = 10.0
# Mean curvature of the loss, relative to that at zero.
_CURVATURE = 0.6


def label_statistic(rows: Rows, class_indices: NDArray[np.intp], n_classes: int) -> FloatArray:
    """Return the sum through which the private labels `class_indices` enter a logistic model.

    For public rows of norm at most one it is ``1/2 sum y_i x_i``, of shape (1, D), with y = -1
    for class 0; with more classes ``sum (e_{y_i} - 1/K) x_i``, of shape (n_classes, D).
    """
    if n_classes == 2:
        return rows.adjoint(np.where(class_indices == 1, 0.5, -0.5))[None, :]
    indicators = np.full((len(class_indices), n_classes), -1.0 / n_classes)
    indicators[np.arange(len(class_indices)), class_indices] += 1.0
    return np.ascontiguousarray(rows.adjoint(indicators).T)


def statistic_sensitivity(n_samples: int, n_classes: int, block_rows: int) -> float:
    """Bound the Euclidean change of `label_statistic` when one label is replaced.

    It is 1 for two classes, ``sqrt(2)`` for more, plus what rounding can add in sums of
    `block_rows` at a time: ``docs/proofs/label_privacy.md``, section 1.
    """
    exact = 1.0 if n_classes == 2 else math.sqrt(2.0)
    terms = block_rows + math.ceil(n_samples / block_rows) + 8
    return exact * UP + 2.02 * terms * 2.0**-53 * n_samples


def statistic_ridge(n_samples: int, n_columns: int, n_classes: int, noise_variance: float) -> float:
    """Return the ridge that balances shrinkage against the noise of a coordinate."""
    share = 1.0 / n_classes
    curvature = _CURVATURE * share * (1.0 - share) * n_samples / n_columns
    ratio = noise_variance / curvature
    prior = min(_PRIOR * (1.0 + (_BALANCE / max(ratio, 1e-9)) ** 1.5), _LARGEST_PRIOR)
    return float((ratio + 1.0) / prior)


def statistic_minimiser(rows: Rows, statistic: FloatArray, ridge: float) -> FloatArray:
    """Fit the logistic model that belongs to a released statistic: post-processing.

    Returns the minimiser of ``sum ln(2 cosh(<w, x_i> / 2)) - <s, w> + ridge / 2 ||w||^2``, or of
    its counterpart with ``ln sum_k exp <w_k, x_i>``. It exists for every statistic.
    """
    # Every record has the same label, and a linear term takes back what that adds.
    n_samples, n_classes = rows.shape[0], len(statistic)
    ones = np.ones(n_samples)
    total = rows.adjoint(ones)
    objective: MarginObjective | SoftmaxObjective
    if n_classes == 1:
        linear = 0.5 * total - statistic[0]
        objective = MarginObjective(rows, ones, ones, LOGISTIC, ridge, linear)
    else:
        linear = -statistic - total / n_classes
        linear[0] += total
        same = np.zeros(n_samples, dtype=np.intp)
        objective = SoftmaxObjective(rows, same, n_classes, ones, ridge, linear.ravel())
    # Strong convexity: the minimiser is no farther from zero than this.
    steepest = float(np.linalg.norm(objective.gradient(np.zeros(objective.size))))
    radius = 1.0 + steepest / ridge
    found = certified_minimum(objective, RELATIVE * max(1.0, steepest), radius=radius)
    return found.reshape(statistic.shape)


def noise_variance(mechanism: Noise, size: int, squares: float) -> float:
    """Return the variance of one of `size` entries of the sum.

    The `squares` are the sum of those of its column: responses have noise of their own.
    """
    if isinstance(mechanism, RandomizedResponse):
        return mechanism.variance * squares
    return noise_deviation(mechanism, size) ** 2


def shift_without_ridge(
    rows: Rows, released: FloatArray, ridge: float, mechanism: Noise
) -> FloatArray:
    """Return the shifts of all scores that the ridge took with the coefficients of the constant.

    The minimiser satisfies ``sum c_i (p_i - y_i) + ridge w = 0`` for the last column c, its
    coefficients w and the labels y of the noisy sum. The shifts are those of scores whose
    probabilities have ``sum c_i p_i = sum c_i y_i``, as far as noise does not explain that these
    sums differ, with at least the share of one record for each class. So this is post-processing;
    the shape is that of `log_odds_shift`.
    """
    unit = np.zeros((rows.shape[1], 1))
    unit[-1] = 1.0
    constants, scores = rows.scores(unit)[:, 0], rows.scores(released.T)
    taken = ridge * released[:, -1]
    variance = noise_variance(mechanism, released.size, float(constants @ constants))
    # As James and Stein shrink, but by twice the squares of the noise: otherwise chance would often
    # favour some of many classes.
    by_noise = 2.0 * len(taken) * variance / max(float(taken @ taken), TINY)
    taken *= max(1.0 - by_noise, 0.0)
    if len(released) == 1:
        scores, taken = np.column_stack([np.zeros(len(scores)), scores]), np.append(-taken, taken)
    total = float(constants.sum())
    wanted = np.maximum((constants @ softmax(scores, axis=1) + taken) / total, 1.0 / len(scores))
    wanted /= wanted.sum()

    def excess(shift: FloatArray) -> tuple[float, FloatArray]:
        shifted = scores + shift
        value = constants @ logsumexp(shifted, axis=1) / total - wanted @ shift
        return float(value), constants @ softmax(shifted, axis=1) / total - wanted

    found = minimize(excess, np.zeros(len(wanted)), jac=True, method="BFGS", tol=1e-10).x
    return np.array([found[1] - found[0]]) if len(released) == 1 else found - found.mean()


def log_odds_shift(weights: FloatArray) -> FloatArray:
    """Turn public class weights into a shift of scores: weighting a class multiplies its odds.

    For two classes it is the shift of the score of the second one, of shape (1,).

    >>> log_odds_shift(np.array([1.0, 2.0])).round(3), log_odds_shift(np.ones(3))
    (array([0.693]), array([0., 0., 0.]))
    """
    logs = np.log(weights)
    return np.array([logs[1] - logs[0]]) if len(logs) == 2 else np.asarray(logs - logs.mean())


def linear_losses(
    points: FloatArray,
    class_indices: NDArray[np.intp],
    weights: FloatArray,
    margin: float | None = None,
) -> Callable[[FloatArray], FloatArray]:
    """Return a function from candidates, (m, D) or (m, K D) for ``K > 2``, to weighted errors.

    With a public `margin`, for two classes, it counts the scores of unit candidates below half of
    it, as Algorithm 4 of Bassily, Mohri and Suresh (2022) does.

    `points` are public, the class `weights` in (0, 1]. Scores are shifted by `log_odds_shift`,
    too: many candidates make no error on a heavy class. A label changes a loss by at most one: a
    prediction depends on public numbers only, so it is the same on both of two neighbouring data
    sets, rounding included. Two sums of ``n`` weights may differ by ``n^2 2^-52`` more.
    """
    n_samples, n_columns = points.shape
    n_classes = len(weights)
    record_weights, shift = weights[class_indices], log_odds_shift(weights)

    def losses(candidates: FloatArray) -> FloatArray:
        total = np.zeros(len(candidates))
        step = min(AT_ONCE, rows_of_block(NUMBER_BYTES * len(candidates) * n_classes))
        for lo in range(0, n_samples, step):
            block, labels = points[lo : lo + step], class_indices[lo : lo + step]
            if margin is not None:
                scores = block @ candidates.T + shift[0]
                least = margin / 2.0 * np.linalg.norm(candidates, axis=1)
                wrong = np.where(labels[:, None] == 1, scores < least, -scores < least)
            elif n_classes == 2:
                wrong = (block @ candidates.T > -shift[0]) != labels[:, None]
            else:
                scores = block @ candidates.reshape(-1, n_columns).T
                predicted = (scores.reshape(len(block), -1, n_classes) + shift).argmax(axis=2)
                wrong = predicted != labels[:, None]
            total += record_weights[lo : lo + step] @ wrong
        return total

    return losses


@dataclass(frozen=True, slots=True)
class LabelStatistic:
    """A noisy sum of labelled rows, or one of randomized responses, and a minimiser made of it.

    `sensitivity` is that of the sum; responses have none.
    """

    n_classes: int
    mechanism: Noise
    sensitivity: float | None
    ridge: float

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        return (self.mechanism.event,)

    @property
    def public(self) -> dict[str, Any]:
        """Public facts for the record."""
        return {"sensitivity": self.sensitivity, "alpha": self.ridge}

    def run(self, door: Door, rows: Rows, weights: FloatArray) -> FloatArray:
        """Release the sum and minimise on public normalised rows; class weights are not used.

        Behind the door are the classes of the records.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one-label; rows and weights of classes are public.
        - Released: the noisy sum of labelled rows, or a randomized response for each label.
        - Sensitivity: of the sum 1 for two classes, ``sqrt(2)`` for more; responses need none.
        - Proof: ``docs/proofs/label_privacy.md``, sections 1 to 3.
        """
        if isinstance(self.mechanism, RandomizedResponse):
            noisy = door.release(lambda classes: classes.astype(np.float64), self.mechanism)
            statistic = label_statistic(rows, noisy.astype(np.intp), self.n_classes)
            statistic /= self.mechanism.contrast
        else:
            statistic = door.release(
                lambda classes: label_statistic(rows, classes, self.n_classes), self.mechanism
            )
        return statistic_minimiser(rows, statistic, self.ridge)


@dataclass(frozen=True, slots=True)
class LabelSearch:
    """A search among random linear classifiers, drawn from a public seed."""

    n_classes: int
    search: StagedSearch
    sensitivity: float
    seed: int
    margin: float | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        return self.search.events

    @property
    def public(self) -> dict[str, Any]:
        """Public facts for the record."""
        asked = {} if self.margin is None else {"margin": self.margin}
        return {"sensitivity": self.sensitivity, "alpha": None, **asked}

    def run(self, door: Door, rows: Rows, weights: FloatArray) -> FloatArray:
        """Choose a classifier of public normalised rows by its weighted errors.

        Behind the door are the classes of the records.
        """
        n_outputs = self.n_classes if self.n_classes > 2 else 1
        points = rows.dense(np.arange(rows.shape[0]))
        relative, size = weights / weights.max(), n_outputs * rows.shape[1]
        losses = door.map(lambda classes: linear_losses(points, classes, relative, self.margin))
        return run_search(self.search, size, losses, seed=self.seed).reshape(n_outputs, -1)


def plan_labels(
    kind: str,
    rows: Rows,
    n_classes: int,
    budget: Budget,
    *,
    ridge: float | None,
    n_candidates: int,
    seed: int,
    n_stages: int | None = None,
    margin: float | None = None,
) -> LabelStatistic | LabelSearch:
    """Plan one fit on public rows within a budget; no argument depends on a label.

    A `margin` is for ``"net"`` and two classes.
    """
    n_samples, n_columns = rows.shape
    epsilon, delta = budget.epsilon, budget.delta
    if kind == "net":
        # A label moves the number of errors by at most one, and two rounded sums of n weights
        # differ by at most n^2 2^-52 more: `docs/proofs/label_privacy.md`, section 4.
        sensitivity = FAR_UP + 2.0**-50 * n_samples**2
        search = plan_search(
            budget,
            n_candidates=n_candidates,
            n_stages=n_stages or default_stages(n_samples * epsilon),
            sensitivity=sensitivity,
        )
        return LabelSearch(n_classes, search, sensitivity, seed, margin)
    mechanism: Noise
    if kind == "randomized_response" and math.isfinite(epsilon):
        spent = epsilon
        if delta > 0:
            # Delta allows a slightly larger epsilon.
            ends = {"lower": epsilon, "upper": epsilon + 2.0}
            spent = calibrate(lambda pure: (Pure(pure),), epsilon, delta, **ends)
        mechanism = RandomizedResponse(n_classes, spent)
        bound = None
    else:
        bound = statistic_sensitivity(n_samples, n_classes, rows.block_rows)
        mechanism = budget.noise(bound)
    if ridge is None:
        size = n_columns * (n_classes if n_classes > 2 else 1)
        variance = noise_variance(mechanism, size, n_samples / n_columns)
        ridge = statistic_ridge(n_samples, n_columns, n_classes, variance)
    return LabelStatistic(n_classes, mechanism, bound, ridge)
