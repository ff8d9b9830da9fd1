"""A threshold for a recall, a precision or a false positive rate, chosen on the rows of the fit.

Noisy counts of scores by label say how many rows there are, and one exponential mechanism chooses
the threshold. The target is raised so that new rows meet it with a stated confidence. Proof:
``docs/proofs/operating_points.md``, sections 1 and 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dp_halfspace._params import resolved_delta
from dp_halfspace._rounding import UP
from dp_halfspace.data.chunks import sum_over_chunks
from dp_halfspace.data.people import People
from dp_halfspace.estimators._crossing import (
    COUNT_GRID,
    candidates,
    chosen_places,
    crossing_utilities,
    excess_of,
    most_and_variance,
    rounded_up,
    safe_target,
)
from dp_halfspace.privacy.accounting import mu_beside
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import (
    ExponentialChoice,
    GaussianNoise,
    NoNoise,
    Permit,
    noise_deviation,
)
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise
from dp_halfspace.rows.blocks import FloatArray

# What a threshold can be chosen for.
TARGETS = ("recall", "precision", "false_positive_rate")
# The choice has this share of epsilon, but no more than this number over the square root of the
# number of records: its noise is then as large as the sampling error of a recall of .9 with 10 % of
# positive rows.
_THRESHOLD_SHARE = 0.3
_MOST_EPSILON = 30.0
# Share of mu^2, or of a pure epsilon, for noisy counts of scores by label.
_COUNTS_SHARE = 0.04
_PURE_COUNTS_SHARE = 0.1
# Borders of the cells in which they are counted, in log odds.
_EDGES = np.linspace(-8.0, 8.0, 17)
# Public candidates: log odds of the second label.
_BORDERS = np.linspace(-8.0, 8.0, 257)
# Standard deviations by which a target is raised, for a confidence of 95 %.
_DEVIATIONS = 1.645
# The rows of the fit meet a target more easily than new ones, by about this number times the
# largest advantage of an attacker times the square root of the numbers of records and of those that
# count.
_THRESHOLD_OPTIMISM = 0.02
# Up to this multiple of the records that a target takes, a threshold is often useless.
_AMPLE = 1.5
# Share of predicted rows from which a threshold for a recall separates little.
_NEARLY_EVERY = 0.95
# Weights of records are rounded down to multiples of one over this for exact utilities.
_WEIGHT_GRID = 2**10


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A threshold, and what it is expected to reach: a function of what was released.

    Parameters
    ----------
    target : str
        ``"recall"``, ``"precision"`` or ``"false_positive_rate"`` of the second class.
    wanted : float
        The value that was asked for, in (0, 1), and that is met with a confidence of 95 %.
    log_odds : float
        Rows whose log odds are at least this have the second label; infinite if all rows
        have it, or none.
    estimate : float
        The expected value.
    interval : tuple of float
        Ends of an interval for the value, at 90 %: `wanted` is one of them.
    warning : str
        Says that the counted records are too few for a useful threshold, or that nearly all rows
        are predicted to have the second label; empty otherwise.
    """

    target: str
    wanted: float
    log_odds: float
    estimate: float
    interval: tuple[float, float]
    warning: str = ""


@dataclass(frozen=True, slots=True)
class ThresholdReleases:
    """The public numbers of the choice of a threshold.

    `n_records` is the number of records, or people, and `optimism` times the square root of it and
    of the number of those that count is the allowance for rows to which the model was fitted.
    """

    target: str
    wanted: float
    noise: GaussianNoise | DiscreteLaplaceNoise | NoNoise
    choice: ExponentialChoice | NoNoise
    n_records: int
    optimism: float

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        return self.noise.event, self.choice.event

    @property
    def is_of_integers(self) -> bool:
        """Whether the noise of the counts is an integer, as it is for pure DP."""
        return isinstance(self.noise, DiscreteLaplaceNoise)

    @property
    def variance(self) -> float:
        """Variance of the excess of the chosen candidate, if there is a candidate at every rank."""
        if isinstance(self.choice, NoNoise):
            return 0.0
        return 2.0 / (0.5 * self.choice.epsilon) ** 2

    def run(
        self,
        odds: Any,
        classes: Any,
        weights: FloatArray,
        permit: Permit,
        *,
        people: People | None = None,
        record_weights: FloatArray | None = None,
    ) -> OperatingPoint:
        """Count the rows of each class, then those above every candidate, and choose one.

        `odds` are the log odds of the second class for all rows, by the released model; `weights`
        are those of the classes.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one, of a record or of a person with all rows.
        - Released: noisy counts of scores, and one candidate.
        - Sensitivity: ``sqrt(3)`` for the counts, or 3 for pure DP; 1 for the candidates.
        - Proof: ``docs/proofs/operating_points.md``, sections 1 and 2.
        """
        exact = sum_over_chunks(score_counts, odds, classes, people, record_weights)
        released = permit.release(exact, self.noise)
        counts, second = released[:-1].reshape(2, -1), float(released[-1])
        # The number of records is public, unless they have weights.
        total = self.n_records if record_weights is None else float(counts.sum())
        counted = total - second if self.target == "false_positive_rate" else second
        # Of the population of the weights.
        by_cell = weights @ counts
        above = sum_over_chunks(_counts_above, odds, classes, people, record_weights)
        value = safe_target(self.target, self.wanted)
        most, variance = most_and_variance(self.target, value, weights)
        deviation = noise_deviation(self.noise)
        most_counted = min(max(counted + deviation, 1.0), float(self.n_records))
        usual = _DEVIATIONS * math.sqrt(variance * most_counted + self.variance)
        allowance = self.optimism * math.sqrt(self.n_records * most_counted)
        slack = rounded_up(usual + allowance)
        excess = excess_of(self.target, value, above[1], above[0], weights) - slack
        # The last candidate meets every target: no row, or every row, is positive.
        excess[-1] = self.n_records
        released = permit.release(crossing_utilities(excess), self.choice)
        place = int(chosen_places(released, self.choice)[0])
        thresholds = candidates(self.target, _BORDERS)
        threshold, is_last = float(thresholds[place]), place == len(thresholds) - 1
        warning = self._warning(counted, slack / max(most, 1.0 / COUNT_GRID), is_last)
        if is_last:
            reached = 1.0 if self.target == "recall" else 0.0
            ends = reached, reached
        else:
            among = _number_above(by_cell, threshold) if self.target == "precision" else counted
            # Without a candidate that is preferred to it, one may exceed the target by anything.
            is_open = bool(warning) or place <= 1
            width = math.inf if is_open else (2.0 * usual + allowance) / max(among, 1.0)
            reached, ends = self._expected(width)
            warning = warning or self._warning_of_share(by_cell, threshold)
        return OperatingPoint(self.target, self.wanted, threshold, reached, ends, warning)

    def _expected(self, width: float) -> tuple[float, tuple[float, float]]:
        """Return the expected value, and an interval of this width that begins at the target."""
        if self.target == "false_positive_rate":
            end = max(self.wanted - width, 0.0)
            return 0.5 * (self.wanted + end), (end, self.wanted)
        end = min(self.wanted + width, 1.0)
        return 0.5 * (self.wanted + end), (self.wanted, end)

    def _warning(self, counted: float, takes: float, is_last: bool) -> str:
        """Say what the target takes, if little more was counted, or that no threshold was found."""
        if counted > _AMPLE * takes and not is_last:
            return ""
        who = "every" if self.target == "recall" else "no"
        label = "first" if self.target == "false_positive_rate" else "second"
        follows = f"{who} row is" if is_last else f"nearly {who} row may be"
        wanted = f"a {self.target.replace('_', ' ')} of {self.wanted:g} with a confidence of 95 %"
        # With enough rows, the scores do not separate the labels.
        reason = f"the scores separate the labels too little for {wanted}"
        if counted <= _AMPLE * takes:
            reason = (
                f"{wanted} takes about {takes:.0f} rows of the {label} label at this budget, "
                f"better {_AMPLE * takes:.0f}, and by a noisy count there are "
                f"{max(counted, 0.0):.0f}"
            )
        return (
            f"{reason}: {follows} predicted to have the second label. More rows, a larger epsilon "
            "or an easier target leave room for a threshold"
        )

    def _warning_of_share(self, by_cell: FloatArray, threshold: float) -> str:
        """Say so if nearly every row has the second label, by the noisy counts of scores."""
        share = _number_above(by_cell, threshold) / max(_number_above(by_cell, -math.inf), 1.0)
        if self.target != "recall" or share < _NEARLY_EVERY:
            return ""
        return (
            f"by noisy counts {min(share, 1.0):.0%} of the rows are predicted to have the second "
            f"label, to reach a recall of {self.wanted:g} with a confidence of 95 %. More rows, a "
            "larger epsilon or an easier target leave room for a threshold"
        )


def _number_above(by_cell: FloatArray, log_odds: float) -> float:
    """Return the number of records above a threshold, from those in cells at `_EDGES`."""
    below = np.concatenate([[0.0], np.cumsum(by_cell)])
    ends = np.concatenate([[_EDGES[0] - 1.0], _EDGES, [_EDGES[-1] + 1.0]])
    return float(below[-1] - np.interp(log_odds, ends, below))


def read_target(threshold: dict[str, Any]) -> tuple[str, float]:
    """Return the name and the value of the target of a threshold."""
    name, wanted = next(iter(threshold.items()), (None, None))
    name = "false_positive_rate" if name == "fpr" else name
    is_number = isinstance(wanted, Real) and not isinstance(wanted, bool | np.bool_)
    value = float(wanted) if is_number and wanted is not None else 0.0
    if len(threshold) == 1 and name in TARGETS and 0.0 < value < 1.0:
        return str(name), value
    raise ValueError(
        f"threshold must be None or a dict of one of {', '.join(TARGETS)} and a number "
        'between 0 and 1, such as {"recall": 0.9}'
    )


def plan_threshold(
    target: tuple[str, float], n_records: int, budget: Budget
) -> tuple[ThresholdReleases, Budget]:
    """Plan counts and choice within a part of the budget of a fit; return the remaining budget."""
    if budget.is_infinite:
        none = NoNoise()
        return ThresholdReleases(*target, none, none, n_records, _THRESHOLD_OPTIMISM), budget
    share = min(_THRESHOLD_SHARE, _MOST_EPSILON / math.sqrt(n_records) / budget.epsilon)
    part, usual = share * budget.epsilon, budget
    noise: GaussianNoise | DiscreteLaplaceNoise
    if budget.is_pure:
        # The noise of pure DP is larger than this Gaussian noise.
        usual = Budget.of(budget.epsilon, resolved_delta("auto", n_records))
        counts, rest = budget.split(share)[1].split(_PURE_COUNTS_SHARE)
        noise = DiscreteLaplaceNoise(3, counts.epsilon)
    else:
        rest = Budget.gaussian(mu_beside(part, budget.epsilon, budget.delta), budget.delta)
        counts, rest = rest.split(_COUNTS_SHARE)
        noise = GaussianNoise(math.sqrt(3.0) * UP, counts.mu)
    optimism = _THRESHOLD_OPTIMISM * (2.0 * float(ndtr(0.5 * usual.mu)) - 1.0)
    # A record moves every utility by at most one: `docs/proofs/operating_points.md`, Lemma 3.
    choice = ExponentialChoice(1.0, part)
    return ThresholdReleases(*target, noise, choice, n_records, optimism), rest


def score_counts(
    odds: FloatArray,
    classes: NDArray[np.intp],
    people: People | None = None,
    record_weights: FloatArray | None = None,
) -> FloatArray:
    """Return the exact counts of rows by label and cell of log odds, and of the second label.

    They are one vector. Replacing a record moves it by at most ``sqrt(3)`` in Euclidean norm and by
    3 in the sum of absolute values: it leaves one cell, enters another one, and the number of
    records of the second label changes by one at most.
    """
    n_cells = len(_EDGES) + 1
    weights = record_weights if people is None else people.weights
    cell = np.searchsorted(_EDGES, odds, side="right") + n_cells * (classes == 1)
    counts = np.bincount(cell, weights, minlength=2 * n_cells).astype(np.float64)
    return np.append(counts, counts[n_cells:].sum())


def _counts_above(
    odds: FloatArray,
    classes: NDArray[np.intp],
    people: People | None = None,
    record_weights: FloatArray | None = None,
) -> FloatArray:
    """Count the rows of each class with log odds of at least each candidate, from the highest down.

    The result has shape (2, n_candidates): above the first candidate is no row, above the last are
    all. The counts are exact, also with weights, which have few enough bits for utilities.
    """
    weights = None
    if people is not None:
        weights = people.weights_for(COUNT_GRID)
    elif record_weights is not None:
        weights = np.floor(record_weights * _WEIGHT_GRID) / _WEIGHT_GRID
    n_cells = len(_BORDERS) + 1
    cell = np.searchsorted(_BORDERS, odds, side="right") + n_cells * (classes == 1)
    counts = np.bincount(cell, weights, minlength=2 * n_cells).reshape(2, n_cells)
    return np.hstack([np.zeros((2, 1)), np.cumsum(counts[:, ::-1], axis=1, dtype=np.float64)])
