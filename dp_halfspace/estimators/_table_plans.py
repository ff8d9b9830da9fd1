"""Plans of a fit of an encoded table: what is released, and what is made of it.

Of two classes and a small budget, one column may rank a rare class: a noisy count of the second
class decides between a choice of one column and the default fit (``docs/proofs/rare.md``,
section 4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.data.chunks import apply_to_chunks
from dp_halfspace.data.encoding import Encoding
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.counts import counts_asked
from dp_halfspace.engine.features import Features, estimated_numbers
from dp_halfspace.engine.plan import FitPlan, Fitted
from dp_halfspace.engine.probabilities import SURER, certainty_of
from dp_halfspace.engine.scales import ColumnScales, ColumnScalesPlan
from dp_halfspace.estimators._small_tables import SmallTableFit, fitted_of
from dp_halfspace.estimators.adaptive_margin import AdaptiveMarginClassifier
from dp_halfspace.estimators.kernel import PrivateKernelClassifier
from dp_halfspace.papers.kernel import KernelTraining
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Either, Event, Pure
from dp_halfspace.privacy.exponential import TalliedChoice
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise
from dp_halfspace.projection.features import AdditiveMap
from dp_halfspace.selection.column_rankings import choose_column
from dp_halfspace.selection.small_tables import share_of

# Number of bytes of features, and of encoded rows in chunks, that are kept between passes.
KEPT_FEATURES = 3 * 2**27
# Half of the range of a column in its stated scale.
_HALF_RANGE = 1.5
# What the record calls the share of a class up to which a column ranks it.
LIMIT = "ranked_by_a_column_up_to"
# Share of epsilon for the count of the second class.
COUNT_SHARE = 0.06
# Number of times that the list contains a column of the table with either sign. The encoded columns
# of one of them share this number, so that a text with many codes is not chosen by chance.
_REPEATS = 60


@dataclass(frozen=True)
class EncodedTable(TrainingData):
    """Encoded rows, with columns that have scales first, and the public rules of the encoding."""

    encoding: Encoding = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class PureFit(FitPlan):
    """Estimate column scales, and perturb the objective of public features, for pure DP."""

    scales: ColumnScalesPlan | None
    features: Features
    inner: KernelTraining
    events: tuple[Event, ...]
    asks: tuple[str, ...]
    public: Mapping[str, Any]
    # The inputs of the fit, since scales are sums over rows.
    takes: frozenset[str]

    def run(self, door: Door) -> Fitted:
        """Release the scales, and fit the features of rows in these scales."""
        features = self.features
        if self.scales is not None:
            numbers = door.map(lambda data: estimated_numbers(data, features.estimated))
            features = features.with_released(self.scales.run(numbers))
        rows = door.map(partial(_with_columns, features.columns))
        return replace(self.inner.run(rows), scales=features.scales)


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
class TableFit(FitPlan):
    """Fit encoded rows by the inner plan.

    `columns` writes the columns that the released `model` reads; the inner plan of a selection
    reads them, too, and other plans read encoded rows.
    """

    encoding: Encoding
    classes: NDArray[Any]
    model: PrivateKernelClassifier | AdaptiveMarginClassifier
    inner: FitPlan
    columns: Features

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        return self.inner.events

    @property
    def asks(self) -> tuple[str, ...]:
        """What each event asks for, in words."""
        return self.inner.asks

    @property
    def is_selection(self) -> bool:
        """Whether the model is selected from a list."""
        return isinstance(self.inner, SmallTableFit | ColumnRankingFit)

    @property
    def public(self) -> Mapping[str, Any]:
        """Public facts for the record."""
        names = np.array([column.name for column in self.encoding.numbers])
        counts = isinstance(self.inner, SmallTableFit) and self.inner.counts
        return {
            **self.inner.public,
            "columns": {column.name: column.describe() for column in self.encoding.columns},
            "private_column_scales": names[self.columns.estimated],
            "calibrated": counts,
        }

    @property
    def takes(self) -> frozenset[str]:
        """The inputs of the inner plan."""
        return self.inner.takes

    def run(self, door: Door) -> Fitted:
        """Return the fitted attributes of the table in addition to those of the model."""
        rows, columns = door, self.columns
        if self.is_selection:
            # Columns without a range keep their unit, and are not clipped.
            rows = door.map(partial(_with_columns, partial(columns.columns, clip=math.inf)))
        fitted, model = self.inner.run(rows), self.model
        if fitted.scales is not None:
            columns = replace(columns, scales=fitted.scales)
        # The rows of the model are in column scales.
        width = columns.feature_map.n_features_in
        shown = TrainingData(np.empty((0, width)), np.empty(0), self.classes, None)
        model._set_fitted(replace(fitted, scales=None), shown, door.permit.record)
        certainty, ranks = None, None
        if self.is_selection:
            assert fitted.error_share is not None
            certainty = certainty_of(fitted.error_share, len(self.classes))
            if isinstance(self.inner, ColumnRankingFit):
                # All scores of a selected column are far from zero.
                certainty /= 1.0 + SURER
                place = int(np.flatnonzero(fitted.coefficients[0])[0])
                ranks = _name_of(self.encoding, owners_of(self.encoding)[place])
        attributes: dict[str, Any] = {
            "encoding_": self.encoding,
            "column_scales_": columns.scales,
            "model_": model,
            "certainty_": certainty,
            "column_that_ranks_": ranks,
        }
        return replace(fitted, attributes=attributes)


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


def _with_columns(columns: Callable[[Any], Any], data: TrainingData) -> TrainingData:
    """Return the columns that a model reads in the place of encoded rows."""
    return replace(data, X=apply_to_chunks(columns, data.X))


def columns_of(data: EncodedTable) -> Features:
    """Return the columns of an encoded table in their stated scales, as their own features."""
    encoding = data.encoding
    width = data.X.shape[1] + len(encoding.indicated)
    return Features(
        AdditiveMap(width, 1, n_plain=width, length=encoding.length),
        unit=encoding.length,
        scales=stated_scales(encoding),
        indicated=encoding.indicated,
        memory=KEPT_FEATURES,
    )


def _name_of(encoding: Encoding, owner: int) -> str:
    """Return the name of the column at a place of `owners_of`."""
    coded = [c for c in encoding.columns if not (c.is_number or c.kind == "drop")]
    return str([*encoding.numbers, *coded][owner].name)


def owners_of(encoding: Encoding) -> list[int]:
    """Return the place of the column that each column of a model encodes, numbers first.

    It is -1 for those that show what is missing.
    """
    widths, n_numbers = list(encoding.widths), len(encoding.numbers)
    widths[n_numbers:n_numbers] = [len(encoding.indicated)]
    owners = [*range(n_numbers), -1, *range(n_numbers, len(widths) - 1)]
    return np.repeat(owners, widths).tolist()


def stated_scales(encoding: Encoding) -> ColumnScales:
    """Return the scales of the ranges of numbers; those without one have a usual range."""
    usual, columns = (-_HALF_RANGE, _HALF_RANGE), encoding.numbers
    ranges = [(column.low, column.high) if column.has_range else usual for column in columns]
    ends = np.array(ranges).reshape(-1, 2) / 2.0
    return ColumnScales(ends.sum(axis=1), np.diff(ends)[:, 0] / _HALF_RANGE)


def repeats_of(owners: Sequence[int]) -> NDArray[np.intp]:
    """Return how often each encoded column is listed, by the column of the table that it encodes.

    A negative number stands for a column that is not listed.
    """
    places, counts = np.unique(owners, return_inverse=True, return_counts=True)[1:]
    shared = np.maximum(np.rint(_REPEATS / counts[places]), 1.0)
    return np.where(np.asarray(owners) < 0, 0, shared).astype(np.intp)
