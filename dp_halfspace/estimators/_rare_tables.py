"""Tables of two classes and a small budget, where one column may rank a rare class.

A noisy count of the second class decides between a choice of one column and the default fit.
Proofs: ``docs/proofs/rare.md``, section 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.engine.counts import counts_asked
from dp_halfspace.engine.plan import FitPlan, Fitted
from dp_halfspace.estimators._small_tables import fitted_of
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Either, Event, Pure
from dp_halfspace.privacy.exponential import TalliedChoice
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise
from dp_halfspace.selection.column_rankings import choose_column
from dp_halfspace.selection.small_tables import share_of

# What the record calls the share of a class up to which a column ranks it.
LIMIT = "ranked_by_a_column_up_to"
# Share of epsilon for the count of the second class.
COUNT_SHARE = 0.06
# Number of times that the list contains a column of the table with either sign. The encoded columns
# of one of them share this number, so that a text with many codes is not chosen by chance.
_REPEATS = 60


def repeats_of(owners: Sequence[int]) -> NDArray[np.intp]:
    """Return how often each encoded column is listed, by the column of the table that it encodes.

    A negative number stands for a column that is not listed.
    """
    places, counts = np.unique(owners, return_inverse=True, return_counts=True)[1:]
    shared = np.maximum(np.rint(_REPEATS / counts[places]), 1.0)
    return np.where(np.asarray(owners) < 0, 0, shared).astype(np.intp)


@dataclass(frozen=True, slots=True)
class ColumnRankingFit(FitPlan):
    """A choice of a column to rank the rarer of two classes, after a count of the classes.

    `repeats` states how often the list contains each column, and `noisy` is the released number of
    records of the second class, of `n_samples`.
    """

    n_samples: int
    repeats: NDArray[np.intp]
    choice: TalliedChoice
    count: DiscreteLaplaceNoise
    noisy: float = 0.0

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        return (self.choice.event,)

    @property
    def public(self) -> Mapping[str, Any]:
        """Public facts for the record: none."""
        return {}

    def run(self, door: Door) -> Fitted:
        """Choose a column; the share of the rarer class is the probability of an error."""
        n_samples = self.n_samples
        is_second_common = self.noisy > 0.5 * n_samples
        n_rare, rate = min(self.noisy, n_samples - self.noisy), self.count.epsilon
        model = choose_column(door, int(is_second_common), self.repeats, self.choice)
        share = share_of(n_rare, n_samples, (rate, rate))
        return fitted_of(replace(model, error_share=share))


@dataclass(frozen=True, slots=True)
class RareTableFit(FitPlan):
    """Count the classes; if one is rare, rank by a single column, otherwise run the default fit.

    A single column is used if the released share of the rarer class of `n_samples` records is at
    most `limit`. `ranking` and `default` are the two plans of a table; `follows` covers both.
    """

    n_samples: int
    count: DiscreteLaplaceNoise
    limit: float
    follows: Either | Pure
    ranking: Any
    default: FitPlan

    @property
    def events(self) -> tuple[Event, ...]:
        """The events of a run: the count, and one of two kinds of releases, chosen by the count."""
        return (self.count.event, self.follows)

    @property
    def asks(self) -> tuple[str, ...]:
        """What each event asks for, in words."""
        otherwise = ", ".join(dict.fromkeys(self.default.asks))
        return "sizes of the classes", f"one column if a class is rare; else {otherwise}"

    @property
    def public(self) -> Mapping[str, Any]:
        """Public facts for the record."""
        public = self.default.public
        return {**public, "solver": f"one_column or {public['solver']}", LIMIT: self.limit}

    def run(self, door: Door) -> Fitted:
        """Return the fitted attributes of the table.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one.
        - Released: a noisy count of the second class, and the releases of one of two plans.
        - Sensitivity: 1 for the count, which is an integer.
        - Proof: ``docs/proofs/rare.md``, sections 1 and 4.
        """
        # 1. Release the number of records of the second class.
        noisy = float(door.release(lambda data: counts_asked(data, 2), self.count)[0])
        # 2. The released number alone decides between the two plans.
        n_samples, plan = self.n_samples, self.default
        if min(noisy, n_samples - noisy) <= self.limit * n_samples:
            inner = replace(self.ranking.inner, noisy=noisy)
            plan = replace(self.ranking, inner=inner)
        # 3. Run that plan, whose events are covered by `follows`.
        door.permit.enter(self.follows, plan.events)
        return plan.run(door)
