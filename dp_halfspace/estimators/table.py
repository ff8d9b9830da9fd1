"""A private classifier for tables with strings, categories, dates and numbers in any units."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._budget import warn_of_scales
from dp_halfspace._memory import NUMBER_BYTES, refuse_beyond_memory, rows_of_block
from dp_halfspace._params import explains_absence, explains_foreign_parameters, resolved_delta
from dp_halfspace._rounding import FAR_DOWN
from dp_halfspace._sklearn_compat import StrOptions
from dp_halfspace.algorithms.engine.calibration import (
    DEFAULT_SLOPE,
    SIGNIFICANT,
    CalibrationPlan,
    affordable_calibration,
    evidence_of_ranking,
    line,
    prior_slope,
    uncounted_curve,
)
from dp_halfspace.algorithms.engine.class_counts import Rarity
from dp_halfspace.algorithms.engine.defaults import (
    RARE_COUNT_SHARE,
    SMALL_OF_TWO_IN_SCALE,
    rare_class_limit,
)
from dp_halfspace.algorithms.engine.operating_point import (
    TARGETS,
    ThresholdPlan,
    plan_threshold,
)
from dp_halfspace.algorithms.engine.outlook import Linear, Ranking, Table
from dp_halfspace.algorithms.engine.training import Problem
from dp_halfspace.algorithms.kernel_training import KernelPlan
from dp_halfspace.algorithms.search.column_rankings import plan_column_ranking
from dp_halfspace.data.chunked_data import (
    as_chunks,
    by_chunks,
    check_chunks,
    without_ledger_and_seed,
)
from dp_halfspace.data.chunks import Chunks, LocalChunks, apply_to_chunks, kept
from dp_halfspace.data.encoding import CodedRows, Encoding, numbers_of, written_out
from dp_halfspace.data.frame import Frame, read_frame
from dp_halfspace.data.people import place_rows
from dp_halfspace.data.schema import (
    Column,
    label_set,
    read_schema,
    resolved_columns,
    unstated_kinds,
)
from dp_halfspace.data.validation import (
    TrainingData,
    check_training_data,
    is_chunked,
    sort_training_data,
)
from dp_halfspace.engine.plan import FitPlan, Fitted, PublicFacts, relative_weights
from dp_halfspace.engine.scales import (
    ColumnScales,
    ColumnScalesPlan,
    affordable_scales,
    in_column_scales,
)
from dp_halfspace.estimators._options import read_directions
from dp_halfspace.estimators._small_tables import (
    ColumnRankingFit,
    SmallTableFit,
    plan_small_fit,
)
from dp_halfspace.estimators.adaptive_margin import AdaptiveMarginClassifier
from dp_halfspace.estimators.base import PrivateClassifier
from dp_halfspace.estimators.kernel import PrivateKernelClassifier
from dp_halfspace.exceptions import warn_caller
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Either, Event, Pure
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise
from dp_halfspace.privacy.record import PrivacyRecord
from dp_halfspace.projection import AdditiveMap, FeatureMap
from dp_halfspace.rows.single_rows import single_feature_rows

if TYPE_CHECKING:
    from typing_extensions import Self

# Number of bytes of encoded rows in chunks that are kept between passes, because encoding takes
# longer than a step.
_KEPT = 2**28
# What the record calls the share of a class up to which a column ranks it.
_LIMIT = "ranked_by_a_column_up_to"
# Half of the range of a column on the scale of its cosine features.
_HALF_RANGE = 1.5
# Number of generated rows that show where scores lie, and number of standard deviations of these
# scores from their mean within which a rare class is looked for.
_N_MADE_UP = 500
_BEYOND = 2.5
# Largest absolute score of a selected classifier, less one: `_surety` maps scores to this range.
_SURER = 0.1
# From this value of n mu / sqrt(columns) on, column scales are also estimated within stated ranges.
_RANGES_ESTIMATED = 150.0


@dataclass(eq=False, repr=False)
class _Engine(PrivateKernelClassifier):
    """The default engine for encoded rows; the first `n_curved` columns have more than two values.

    `is_ranged` states that these columns have public ranges, so that values may be concentrated
    near a limit. `count` is the noise of a count of the second class that is released before the
    fit.
    """

    n_curved: int = 0
    is_linear: bool = False
    is_ranged: bool = False
    count: DiscreteLaplaceNoise | None = None

    def _facts(self, data: TrainingData) -> PublicFacts:
        # Columns with stated ranges get the same scale as columns with estimated ones.
        facts = super()._facts(data)
        return replace(
            facts,
            is_scale_stated=False,
            in_column_scales=True,
            is_single=facts.copies_are_single,
            count=self.count,
            is_table=True,
        )

    def _drawn_map(
        self, problem: Problem, facts: PublicFacts, budget: Budget, seed: int
    ) -> FeatureMap:
        drawn: FeatureMap = AdditiveMap(problem.n_features, 1)
        if self.n_curved and not self.is_linear:
            curved = replace(problem, n_features=self.n_curved)
            drawn = super()._drawn_map(curved, facts, budget, seed)
        assert isinstance(drawn, AdditiveMap)
        return self._with_others(drawn, problem, facts)

    def _draw_whitened(
        self, problem: Problem, facts: PublicFacts, mu: float, seed: int
    ) -> AdditiveMap | None:
        if not self.n_curved or self.is_linear:
            return None
        curved = replace(problem, n_features=self.n_curved)
        drawn = super()._draw_whitened(curved, facts, mu, seed)
        return None if drawn is None else self._with_others(drawn, problem, facts)

    def _with_others(self, drawn: AdditiveMap, problem: Problem, facts: PublicFacts) -> AdditiveMap:
        """Return the feature map of all columns; the last columns have no features."""
        n_features, length = problem.n_features, facts.data_norm
        n_plain = n_features - self.n_curved
        powers = self.is_ranged and problem.n_classes == 2
        sizes = replace(drawn, n_features_in=n_features, n_plain=n_plain, length=length)
        return replace(sizes, has_powers=powers)


@dataclass(frozen=True)
class _EncodedTable(TrainingData):
    """Encoded rows, with columns that have scales first, and the public rules of the encoding."""

    encoding: Encoding = field(kw_only=True)
    stated_classes: Any = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class _TableFit(FitPlan):
    """Estimate column scales, run the inner plan on encoded rows, and calibrate the scores.

    `estimated` marks the numeric columns whose scales are estimated. The inner plan is that of
    `model`, and the record shows `parameters`.
    """

    encoding: Encoding
    model: _Engine | AdaptiveMarginClassifier
    inner: FitPlan
    parameters: Mapping[str, Any]
    estimated: NDArray[np.bool_]
    scales: ColumnScalesPlan | None = None
    calibration: CalibrationPlan | None = None
    threshold: ThresholdPlan | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        parts = (self.scales, self.inner, self.calibration, self.threshold)
        return tuple(event for part in parts if part is not None for event in part.events)

    @property
    def public(self) -> Mapping[str, Any]:
        """Public facts for the record."""
        names = np.array([column.name for column in self.encoding.numbers])
        counts = isinstance(self.inner, SmallTableFit) and self.inner.counts
        return {
            **self.parameters,
            **self.inner.public,
            "columns": {column.name: column.describe() for column in self.encoding.columns},
            "private_column_scales": [] if self.scales is None else names[self.estimated],
            "threshold": {self.threshold.target: self.threshold.wanted} if self.threshold else None,
            "calibrated": counts or self.calibration is not None,
        }

    @property
    def takes(self) -> frozenset[str]:
        """The inputs of the inner plan, without weights if a count has integer noise."""
        counts = self.calibration is not None and self.calibration.is_of_integers
        return self.inner.takes - {"sample_weight"} if counts else self.inner.takes

    def run(self, data: TrainingData, permit: Permit) -> Fitted:
        """Return the fitted attributes of the table in addition to those of the inner model."""
        # 1. Release the column scales, and divide the rows by them.
        scales = self._released_scales(data, permit)
        as_is = _as_they_are(self.encoding, self.model)
        rows = replace(data, X=self._in_scales(data.X, scales, as_is))
        # 2. Fit the inner model to these rows.
        fitted, model = self.inner.run(rows, permit), self.model
        model._set_fitted(fitted, rows, permit.record)
        # 3. Turn scores into log odds: by counts of the classes, of errors, or of scores.
        curve, centre, slope = uncounted_curve(fitted.rarity), 0.0, DEFAULT_SLOPE
        if fitted.rarity is not None and len(data.classes) == 2:
            generated = _scores_of_generated_rows(self.encoding, model)
            curve = uncounted_curve(fitted.rarity, float(generated.mean()))
            centre = _centre_of_scores(generated, fitted.rarity)
            slope = prior_slope(float(generated.std()))
        if fitted.error_share is not None:
            n_others = model._facts(rows).n_classes - 1
            odds = math.log((1.0 - fitted.error_share) * n_others / fitted.error_share)
            # All scores of a selected column are far from zero.
            is_ranked = isinstance(self.inner, ColumnRankingFit)
            curve = line(odds / (1.0 + _SURER) if is_ranked else odds)
        threshold = None
        if self.calibration is not None:
            # A pure DP fit does not count classes, and its class weights are public.
            stated = model._facts(rows).class_weights
            seen = _in_parts(rows)
            scores = _scores_of_all(model, seen, self.inner.is_single)
            # Of more than two classes, the scores are read once.
            scores = kept(scores) if len(data.classes) == 2 else scores
            curve = self.calibration.run(
                scores,
                seen.class_indices,
                relative_weights(fitted.population or stated),
                permit,
                data.people,
                rarity=fitted.rarity,
                record_weights=seen.weights,
                centre=centre,
                slope=slope,
            )
            # 4. Choose the threshold for a target.
            if self.threshold is not None:
                threshold = self.threshold.run(
                    curve,
                    scores,
                    data.class_indices,
                    permit,
                    rarity=fitted.rarity,
                    people=data.people,
                    record_weights=data.weights,
                )
        attributes = {
            "encoding_": self.encoding,
            "column_scales_": scales,
            "model_": model,
            "calibration_": curve,
            "threshold_": threshold,
        }
        return replace(fitted, attributes=attributes)

    def _in_scales(self, X: Any, scales: ColumnScales, as_is: NDArray[np.bool_]) -> Any:
        """Scale rows in the precision that the inner plan assumes.

        In float32, they are few numbers compared with their features, and are not copied.
        """
        if not self.inner.is_single:
            return apply_to_chunks(_rows_in_scales, X, scales, as_is)
        if not isinstance(X, Chunks):
            return _rows_in_scales(X, scales, as_is, np.float32)
        rows = X.each(_coded_in_scales, scales, np.float32)
        is_kept = _bytes_of(X, self.encoding, 4) <= _KEPT
        return rows.kept() if is_kept else rows

    def _released_scales(self, data: TrainingData, permit: Permit) -> ColumnScales:
        """Estimate the unknown column scales; the other columns have the scales of their ranges."""
        columns = self.encoding.numbers
        ends = np.array(
            [(c.low, c.high) if c.has_range else (-_HALF_RANGE, _HALF_RANGE) for c in columns]
        )
        ends = ends.reshape(-1, 2) / 2.0
        scales = ColumnScales(ends.sum(axis=1), np.diff(ends)[:, 0] / _HALF_RANGE)
        if self.scales is not None:
            numbers = apply_to_chunks(_columns, data.X, np.flatnonzero(self.estimated))
            found = self.scales.run(numbers, permit, data.people)
            scales.center[self.estimated], scales.scale[self.estimated] = found.center, found.scale
        return scales


@dataclass(frozen=True, slots=True)
class _RareTableFit(FitPlan):
    """Count the classes; if one is rare, rank by a single column, otherwise run the default fit.

    A single column is used if the released share of the rarer class is at most `limit`. `default`
    is a selection from listed classifiers, or gradient steps; `follows` covers both continuations.
    """

    count: DiscreteLaplaceNoise
    limit: float
    follows: Either | Pure
    ranking: _TableFit
    default: _TableFit

    @property
    def events(self) -> tuple[Event, ...]:
        """The events of a run: the count, and one of two kinds of releases, chosen by the count."""
        return (self.count.event, self.follows)

    @property
    def public(self) -> Mapping[str, Any]:
        """Public facts for the record."""
        listed = self.ranking.inner.public
        return {**listed, **self.default.public, _LIMIT: self.limit}

    def run(self, data: TrainingData, permit: Permit) -> Fitted:
        """Return the fitted attributes of the table.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one.
        - Released: a noisy count of the second class, and the releases of one of two plans.
        - Sensitivity: 1 for the count, which is an integer.
        - Proof: ``docs/proofs/rare.md``, sections 1 and 6.
        """
        # 1. Release the number of records of the second class.
        exact = np.array([np.count_nonzero(data.class_indices)], dtype=np.float64)
        noisy = float(permit.release(exact, self.count)[0])
        # 2. The released number alone decides between the two plans.
        n_samples = len(data.class_indices)
        is_rare = min(noisy, n_samples - noisy) <= self.limit * n_samples
        ranking, plan = self.ranking.inner, self.default
        assert isinstance(ranking, ColumnRankingFit)
        if isinstance(plan.inner, KernelPlan):
            plan = replace(plan, inner=plan.inner.with_count(noisy))
        if is_rare:
            plan = replace(self.ranking, inner=replace(ranking, noisy=noisy))
        # 3. Run that plan, whose events are covered by `follows`.
        permit.enter(self.follows, plan.events)
        return plan.run(data, permit)


@explains_foreign_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class PrivateTableClassifier(PrivateClassifier):
    """Private classifier for data frames, with probabilities, within one budget.

    Strings, categories, booleans and dates are encoded by public rules; the scales of numeric
    columns are stated, or estimated within the budget. The encoded rows are fitted like those of
    ``PrivateKernelClassifier(kernel="auto")``, and noisy counts of scores calibrate the
    probabilities. If `features` is ``"auto"`` and there are few rows (``n epsilon`` below 600,
    below 300 with three to seven classes, or below 1500 with ``delta=0``; at most 512 encoded
    columns and seven classes), the model is selected from a public list of classifiers by a pure DP
    mechanism. With two classes and ``n epsilon`` from 250 to 3500 (from 600 on only with
    ``delta > 0``), a noisy count of the classes comes first; if one class is rare, the model is one
    column that is selected to rank it.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one fit, in [1e-9, 1e6]; infinity means no noise and no guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 requests pure DP.
    classes : array-like of labels or None, default=None
        PUBLIC label set. None takes the list ``"target"`` of `schema`; without one it declares the
        labels in `y` to be public.
    schema : dict, str, path or None, default=None
        PUBLIC facts about columns, or the path of a JSON file with them. It maps the name of a
        column to ``[low, high]`` (values outside are clipped to this range), to a list of
        categories, to a kind (``"number"``, ``"date"``, ``"boolean"``, ``"text"``, ``"words"``,
        ``"drop"``), or to a mapping with some of ``kind``, ``range``, ``categories``, ``decimal``,
        ``format`` and ``columns`` (the number of columns in which the words of a text are counted).
        The kind of a column that is not named follows from its dtype and is declared public, with a
        `PrivacyWarning`. The mapping may also be the value of ``"columns"``, next to ``"target"``,
        a list of labels.
    features : {"auto", "additive", "linear"}, default="auto"
        The features of the model: the columns themselves (``"linear"``); in addition cosines or
        polynomials of each numeric column with decaying weights (``"additive"``); in addition
        features of all columns where they help (``"auto"``).
    probability : bool, default=True
        Whether to calibrate probabilities. Noisy counts of scores then take 4 % of the budget (a
        tenth with pure DP) where that helps. In small tables a noisy count of errors takes a share
        of ``20 / (n epsilon)`` instead, within .05 and .25.
    threshold : dict or None, default=None
        A target for the decision threshold of `predict` with two classes: ``{"recall": .9}``,
        ``{"precision": .5}`` or ``{"false_positive_rate": .1}`` (also ``"fpr"``), where the value
        is a PUBLIC number in (0, 1) and the second label is the positive one. New rows meet the
        target with a confidence of 95 %. The choice takes 0.3 of epsilon, at most ``30 / sqrt(n)``;
        it needs ``probability=True`` and a table that is not small. With too few rows all are
        predicted positive (for a recall) or none, and a `PrivacyWarning` says so. None predicts the
        more probable label.
    class_weight : dict, "balanced" or None, default=None
        PUBLIC weight of each label, in [1e-50, 1e50]. Probabilities of two classes are those of a
        population with these weights. ``"balanced"`` weights classes inversely to their sizes,
        which noisy counts within the budget estimate; it needs ``delta > 0``. The largest weight is
        then one.
    random_state : int or None, default=None
        None draws the noise from the operating system. An int repeats the noise on any machine, and
        raises `PrivacyWarning`: anyone who knows it can subtract the noise.
    ledger : object with a method ``charge(record)``, or None
        Privacy ledger that is charged before any noise is drawn.
    verbose : int, default=0
        If above 0, `fit` prints its public privacy record before it releases anything, and a line
        when it has finished. Nothing that is printed depends on private data.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The public label set.
    encoding_ : Encoding
        The public rules by which rows become numbers.
    column_scales_ : ColumnScales
        ``center`` and ``scale`` of every numeric column, stated or released. In a small table
        numeric columns without a range are used unscaled.
    model_ : PrivateKernelClassifier or AdaptiveMarginClassifier
        The released model of encoded rows; the latter for a small table, or if one column is
        selected to rank a rare class.
    calibration_ : CalibrationCurve
        Released curve that maps scores to log odds. For a small table its slope is the log odds of
        a correct prediction, by a noisy count of errors.
    threshold_ : OperatingPoint or None
        Released threshold on `decision_function`, the expected value of the target metric, and a 90
        % interval that begins or ends at the target; None if no target was given.
    privacy_ : PrivacyRecord
        The privacy guarantee of the fit, its events, and what was assumed public.
    n_features_in_ : int
        Number of columns of the table.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, when `X` had them.

    See Also
    --------
    PrivateKernelClassifier : The same method for numeric arrays.
    AdaptiveMarginClassifier : The linear default for numeric arrays.

    Notes
    -----
    **Privacy.** ``fit`` is (epsilon, delta)-differentially private under replace-one adjacency.
    Public: the number of rows, names and kinds of columns, the label set, every parameter. Private:
    everything else. A missing entry, an unseen category, a number outside its range or a string in
    a numeric column causes no error and changes no shape; a wrong schema costs accuracy only. The
    encoded row is a function of its own cells and of `schema`: the dtype that a file reader has
    inferred for a column plays no part if `schema` names the column. With `groups` the unit of
    privacy is a person with all rows, and the number of people is public instead of the number of
    rows (``docs/proofs/persons.md``).

    References
    ----------
    Proofs: ``docs/proofs/column_scales.md``, ``kernel.md``, ``calibration.md``, ``rare.md``,
    ``small_tables.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace import PrivateTableClassifier
    >>> rng = np.random.default_rng(0)
    >>> age, city = rng.uniform(20, 90, size=8000), rng.choice(["Rome", "Oslo"], size=8000)
    >>> X, y = np.column_stack([age, city]), (age > 50) ^ (city == "Oslo")
    >>> schema = {"0": [0, 120], "1": ["Oslo", "Paris", "Rome"]}
    >>> model = PrivateTableClassifier(schema=schema, classes=[False, True]).fit(X, y)
    >>> model.predict_proba([[88, "Rome"], [None, "Bonn"]]).shape
    (2, 2)
    """

    schema: Any = None
    features: str = "auto"
    probability: bool = True
    threshold: dict[str, float] | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateClassifier._parameter_constraints,
        "schema": [dict, str, os.PathLike, None],
        "features": [StrOptions({"auto", "linear", "additive"})],
        "probability": ["boolean"],
        "threshold": [dict, None],
    }

    def _validate(self, X: Any, y: ArrayLike, groups: Any) -> TrainingData:
        """Encode the table and validate the labels."""
        table = as_chunks(X) if is_chunked(X) else None
        frame = _with_rows(X) if table is None else read_frame(table.sample)
        rules, target = read_schema(self.schema)
        encoding = Encoding(resolved_columns(frame, rules), frame.is_named)
        if not frame.columns:
            # In the words of scikit-learn; with groups the number of rows is private.
            shape = f" (shape=({frame.n_rows}, 0))" if groups is None else ""
            raise ValueError(f"X has 0 feature(s){shape} while a minimum of 1 is required.")
        if not encoding.widths:
            raise ValueError("every column of X is dropped by the schema: keep at least one")
        unstated = unstated_kinds(encoding.columns)
        if unstated:
            warn_caller(unstated)
        # The rows of a person are private in number, and chunks are encoded one by one.
        is_counted = table is None and groups is None
        _refuse_wide_tables(frame.n_rows if is_counted else 1, encoding)
        rows = _encode_table(frame, encoding)
        classes = label_set(target, y) if self.classes is None else self.classes
        if table is not None:
            chunks = replace(table.each(_encode_rows, encoding), sample=rows)
            data = check_chunks(self, chunks, y, classes=classes, allow_missing=True)
            if _bytes_of(data.X, encoding, 8) <= _KEPT:
                data = replace(data, X=data.X.kept())
        else:
            hidden = groups is not None
            data = check_training_data(
                self, rows, y, classes=classes, allow_missing=True, hides_rows=hidden
            )
        if groups is not None:
            data = sort_training_data(groups, data)
        return _EncodedTable(
            data.X,
            data.class_indices,
            data.classes,
            data.feature_names,
            data.people,
            encoding=encoding,
            stated_classes=classes,
        )

    def _names_read(self, data: TrainingData) -> list[str]:
        """Return the names of the columns that the schema does not drop, if they have names."""
        assert isinstance(data, _EncodedTable)
        encoding = data.encoding
        return [c.name for c in encoding.columns if encoding.is_named and c.kind != "drop"]

    def _outlook_facts(
        self, n_samples: int, data: TrainingData | None = None
    ) -> tuple[int, bool, Linear | Ranking | Table] | None:
        """Count columns before encoding: the codes of one column are one fact of a record."""
        if data is None:
            columns, n_encoded = self.encoding_.columns, self.model_.n_features_in_
            limit = dict(self.privacy_.public).get(_LIMIT, 0.0)
        else:
            assert isinstance(data, _EncodedTable)
            columns, n_encoded = data.encoding.columns, data.X.shape[1]
            limit = self._column_limit(data) or 0.0
        facts = [max(c.n_columns, 1) for c in columns if c.kind != "drop"]
        known = {"n_facts": max(sum(facts), 1), "column_limit": limit}
        return max(len(facts), 1), False, Table(n_encoded, **known)

    def _releases_rarity(self, record: PrivacyRecord) -> bool:
        """Return true: classes are counted, or the errors of a selection."""
        del record
        return True

    def _describe_rarer(
        self, fitted: Fitted, data: TrainingData, record: PrivacyRecord
    ) -> tuple[float | None, str]:
        """Say what a fit released of the rarer class, and if the model is one column."""
        limit = dict(record.public).get(_LIMIT)
        if limit is None or fitted.error_share is None:
            share, warning = super()._describe_rarer(fitted, data, record)
            return share, warning or self._describe_evidence(fitted, data, share)
        column = self._column_that_ranks
        if column is None:
            # A classifier with few errors was selected, because no class seemed to be rare.
            share = max(fitted.error_share, math.nextafter(limit, 1.0))
            outlook = self._outlook(data, share)
            found = (
                f"by noisy counts each class has more than {100 * limit:.2g}% of the records, and "
                f"{fitted.error_share:.2g} of them are misclassified; if no more than {share:.2g} "
                "are in the rarer class"
            )
            is_rare = outlook is not None and outlook.cannot_rank_rare
            return share, outlook.after_counts(found) if outlook and is_rare else ""
        share = min(fitted.error_share, limit)
        outlook = self._outlook(data, share)
        found = (
            f"by a noisy count {share:.2g} of the records are in the rarer class, so that the "
            f"model is one column, {column!r}, selected to rank that class: every predicted label "
            "is the other one, and every row has nearly the same probability. Of this ranking"
        )
        return share, outlook.after_counts(found) if outlook else ""

    def _describe_evidence(self, fitted: Fitted, data: TrainingData, share: float | None) -> str:
        """Warn if the released counts of scores do not show that the model ranks records."""
        seen, outlook = self.calibration_.counts, self._outlook(data, share)
        if seen is None or outlook is None:
            return ""
        generated = _scores_of_generated_rows(self.encoding_, self.model_)
        found = evidence_of_ranking(seen, generated, data.n_privacy_units, fitted.rarity)
        return outlook.without_evidence() if found < SIGNIFICANT else ""

    @property
    def _is_listed(self) -> bool:
        """Whether the model was selected from the list of classifiers for two classes.

        The scores of these classifiers, and of no other model of a table, are divided by lengths.
        """
        return hasattr(self.model_, "row_lengths_")

    @property
    def _column_that_ranks(self) -> str | None:
        """The name of the column of the table that was selected to rank a rare class, if any."""
        is_of_steps = isinstance(self.model_, PrivateKernelClassifier)
        if is_of_steps or self._is_listed or _LIMIT not in dict(self.privacy_.public):
            return None
        encoding, place = self.encoding_, int(np.flatnonzero(self.model_.coef_[0])[0])
        others = [c for c in encoding.columns if not (c.is_number or c.kind == "drop")]
        ends = np.cumsum(encoding.widths)
        return str([*encoding.numbers, *others][int(np.searchsorted(ends, place, "right"))].name)

    @property
    def _columns_in_estimated_scales(self) -> frozenset[str]:
        """Names of the columns whose scales the fit has released."""
        if self._column_that_ranks is not None:
            return frozenset()
        return frozenset(map(str, dict(self.privacy_.public)["private_column_scales"]))

    def _fit_plan(self, data: TrainingData) -> FitPlan:
        """Plan one selection for a small table, otherwise scales, model and calibration.

        For some sizes a count of the classes decides first whether a single column is selected.
        """
        assert isinstance(data, _EncodedTable)
        delta = resolved_delta(self.delta, data.n_privacy_units)
        budget = Budget.of(float(self.epsilon), delta)
        threshold = self._checked_threshold(data)
        rare = self._rare_fit(data, budget)
        if rare is not None:
            return rare
        plan = self._small_fit(data, budget) or self._engine_fit(data, budget)
        if threshold is not None and plan.calibration is None:
            size = data.n_privacy_units * budget.epsilon
            enough = "1500" if budget.is_pure else "600 (more if delta is far below 1/n^2)"
            raise ValueError(
                "threshold needs noisy counts of scores, for which the number of rows and epsilon "
                f"are too small: their product is {size:.3g}, and about {enough} is enough. Use "
                "more rows, a larger epsilon, or no threshold; PrivateThresholdClassifier "
                "chooses a threshold from other records"
            )
        return plan

    def _checked_threshold(self, data: _EncodedTable) -> tuple[str, float] | None:
        """Return the target of the threshold, if there is one, or refuse an impossible one."""
        if self.threshold is None:
            return None
        if len(data.classes) != 2 or not self.probability:
            raise ValueError("threshold needs two classes and probability=True")
        return _target(self.threshold)

    def _selected_model(self, data: _EncodedTable) -> AdaptiveMarginClassifier:
        """Return the unfitted model for the result of a selection."""
        return AdaptiveMarginClassifier(
            delta=self.delta,
            classes=data.stated_classes,
            class_weight=self.class_weight,
            random_state=self.random_state,
        )

    def _small_fit(self, data: _EncodedTable, budget: Budget) -> _TableFit | None:
        """Plan one selection for a table of few rows, by public facts only."""
        model = self._selected_model(data)
        facts = model._facts(data)
        inner = plan_small_fit(
            facts,
            budget,
            self.random_state,
            {"margin_": 0.0},
            # Errors are not counted for a population with other weights.
            counts=self.probability and self.class_weight is None,
            # With features, and probabilities of single rows, gradient steps need fewer rows.
            has_features=True,
        )
        if self.features != "auto" or facts.balances_classes or inner is None:
            return None
        none = np.zeros(len(data.encoding.numbers), dtype=bool)
        return _TableFit(data.encoding, model, inner, model._public_parameters(data), none)

    def _column_limit(self, data: _EncodedTable) -> float | None:
        """Return the share of a class up to which one column ranks it, None if it never does.

        The answer depends on public facts alone.
        """
        limit = rare_class_limit(data.n_privacy_units, float(self.epsilon))
        asks_for_steps = self.features != "auto" or not self.probability
        asks_for_steps |= self.class_weight is not None or self.threshold is not None
        if limit is None or asks_for_steps or len(data.classes) != 2:
            return None
        facts = self._selected_model(data)._facts(data)
        if facts.is_chunked or facts.has_people or facts.has_weights:
            return None
        delta, epsilon = resolved_delta(self.delta, data.n_privacy_units), float(self.epsilon)
        is_small = self._small_fit(data, Budget.of(epsilon, delta)) is not None
        is_of_small = data.n_privacy_units * epsilon < SMALL_OF_TWO_IN_SCALE
        return limit if is_of_small == is_small and (is_small or delta > 0.0) else None

    def _rare_fit(self, data: _EncodedTable, budget: Budget) -> _RareTableFit | None:
        """Plan a count of two classes, and the two possible continuations, by public facts only."""
        limit, epsilon = self._column_limit(data), budget.epsilon
        if limit is None:
            return None
        # Replacing a record changes the count by at most one: docs/proofs/rare.md, Lemma 1.
        count = DiscreteLaplaceNoise(1, RARE_COUNT_SHARE * epsilon)
        left = (1.0 - RARE_COUNT_SHARE) * epsilon * FAR_DOWN
        follows: Either | Pure
        default: _TableFit | None
        if data.n_privacy_units * epsilon < SMALL_OF_TWO_IN_SCALE:
            follows = Pure(left)
            default = self._small_fit(data, Budget.of(left, budget.delta))
            assert default is not None
        else:
            mu = accounting.mu_of_either(count.event, left, epsilon, budget.delta)
            follows = Either(left, mu)
            default = self._engine_fit(data, Budget.gaussian(mu, budget.delta), count)
        model = self._selected_model(data)
        inner = ColumnRankingFit(
            model._facts(data), plan_column_ranking(data.encoding.widths, left), count
        )
        none = np.zeros(len(data.encoding.numbers), dtype=bool)
        parameters = model._public_parameters(data)
        ranking = _TableFit(data.encoding, model, inner, parameters, none)
        return _RareTableFit(count, limit, follows, ranking, default)

    def _engine_fit(
        self, data: _EncodedTable, budget: Budget, count: DiscreteLaplaceNoise | None = None
    ) -> _TableFit:
        """Divide the budget between calibration, column scales and model."""
        n_samples, numbers = data.n_privacy_units, data.encoding.numbers
        calibration, scales, left = None, None, budget
        target, threshold = self._checked_threshold(data), None
        if target is not None:
            threshold, left = plan_threshold(target, data.n_privacy_units, left)
        if self.probability:
            calibration, left = affordable_calibration(n_samples, left)
        estimated = _estimated_columns(numbers, n_samples, left)
        if estimated.any():
            n_estimated = int(estimated.sum())
            paid = affordable_scales(n_samples, n_estimated, left)
            scales, left = paid or (None, left)
            if paid is None:
                warn_of_scales(n_samples, n_estimated, budget.epsilon)
        model = _Engine(
            "additive" if self.features == "additive" else "auto",
            delta=budget.delta,
            data_norm=data.encoding.length,
            classes=data.stated_classes,
            class_weight=self.class_weight,
            random_state=self.random_state,
            n_curved=len(numbers),
            is_linear=self.features == "linear",
            is_ranged=not (estimated.any() or budget.is_pure),
            count=count,
        )
        facts = model._facts(data)
        plan_fit = model._plan_balanced if facts.balances_classes else model._plan
        inner = plan_fit(facts, left)
        parameters = model._public_parameters(data)
        plan = _TableFit(
            data.encoding, model, inner, parameters, estimated, scales, calibration, threshold
        )
        facts.refuse_unsupported(plan.takes)
        return plan

    def _set_fitted(self, fitted: Fitted, data: TrainingData, record: PrivacyRecord) -> None:
        self._forget()
        encoding: Encoding = fitted.attributes["encoding_"]
        self.classes_, self.privacy_ = data.classes, record
        self.n_features_in_ = len(encoding.columns)
        if encoding.is_named:
            names = [column.name for column in encoding.columns]
            self.feature_names_in_ = np.array(names, dtype=object)
        for name, value in fitted.attributes.items():
            setattr(self, name, value)
        if self.threshold_ is not None and self.threshold_.warning:
            warn_caller(self.threshold_.warning)

    @by_chunks
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score rows: calibrated log odds, up to a constant of each row for more classes.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            Rows to score. Columns are found by name and may have other dtypes than in the fit,
            further columns are ignored; without names, they are found by position.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores; with two classes, positive means ``classes_[1]``.

        Raises
        ------
        ValueError
            If a column of the fit is missing.
        """
        return self._predicted(X, np.asarray)

    def _checked_rows(self, X: Any) -> CodedRows:
        check_is_fitted(self)
        return _encode_rows(_with_rows(X), self.encoding_)

    def _bytes_to_score_a_row(self) -> int:
        # As encoded, and in column scales.
        return 2 * NUMBER_BYTES * int(self.model_.n_features_in_)

    def _scores(self, rows: CodedRows) -> NDArray[np.float64]:
        as_is = _as_they_are(self.encoding_, self.model_)
        encoded = _rows_in_scales(rows.dense(np.float64), self.column_scales_, as_is)
        scores = self.model_.decision_function(encoded)
        if isinstance(self.model_, AdaptiveMarginClassifier):
            scores = _surety(scores)
        return np.asarray(self.calibration_(scores))

    @by_chunks
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels, by the threshold where a target was given.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            As for `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        check_is_fitted(self)
        return self._predicted(X, self._labels, n_numbers=1)

    def _labels(self, scores: NDArray[np.float64]) -> NDArray[Any]:
        if self.threshold_ is None:
            return super()._labels(scores)
        return np.asarray(self.classes_[(scores >= self.threshold_.log_odds).astype(np.intp)])

    def with_monotone(self, monotone: Mapping[str, str]) -> Self:
        """Return a copy whose score rises, or falls, with single columns; it costs nothing.

        Parameters
        ----------
        monotone : dict
            PUBLIC knowledge: name of a column of numbers or dates to ``"increasing"`` or
            ``"decreasing"``. Columns without names are ``"0"``, ``"1"``, ...

        Returns
        -------
        PrivateTableClassifier
            A fitted copy in which the curves of these columns are the nearest monotone ones, by
            isotonic regression of the released curves. If two rows agree in all other columns,
            their scores are in order, exactly.

        Raises
        ------
        ValueError
            If the model is no sum of curves (``features="additive"`` or ``"linear"``), has more
            than two classes, or a column or a direction is unknown.

        Notes
        -----
        **Privacy.** Post-processing of released coefficients; ``privacy_`` is that of the model.

        Examples
        --------
        >>> import numpy as np
        >>> from dp_halfspace import PrivateTableClassifier
        >>> X = np.random.default_rng(0).uniform(20, 90, size=(3000, 1))
        >>> model = PrivateTableClassifier(
        ...     schema={"0": [0, 120]}, classes=[False, True], features="additive"
        ... ).fit(X, X[:, 0] > 50)
        >>> scores = model.with_monotone({"0": "increasing"}).decision_function([[30], [50], [70]])
        >>> bool((np.diff(scores) >= 0).all())
        True
        """
        check_is_fitted(self)
        numbers = [column.name for column in self.encoding_.numbers]
        directions = read_directions(monotone, numbers)
        if not isinstance(self.model_, PrivateKernelClassifier):
            raise ValueError(
                "with_monotone needs a score that is a sum of curves, and the model "
                "of a small table or of a rare class is one selected classifier: use "
                'features="additive" or "linear"'
            )
        changed = copy(self)
        changed.model_ = self.model_._with_curves(directions)
        return changed

    @available_if(
        explains_absence(lambda self: self.probability, "predict_proba needs probability=True")
    )
    @by_chunks
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the probability of every label; there with ``probability=True``.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            As for `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.
        """
        return self._predicted(X, PrivateKernelClassifier._probabilities)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def _target(threshold: dict[str, Any]) -> tuple[str, float]:
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


def _with_rows(X: Any) -> Frame:
    """Return the columns of a table, which must have rows, before they are encoded."""
    frame = read_frame(X)
    if not frame.n_rows:
        raise ValueError("X has no rows")
    return frame


def _encode_table(table: Any, encoding: Encoding) -> NDArray[np.float64]:
    """Return encoded rows, with the numeric columns first."""
    return _encode_rows(table, encoding).dense(np.float64)


def _refuse_wide_tables(n_rows: int, encoding: Encoding) -> None:
    """Refuse encoded rows that would not fit into memory, by public numbers."""
    width = sum(encoding.widths)
    refuse_beyond_memory(
        # As encoded, and in column scales.
        2 * NUMBER_BYTES * n_rows * width,
        f"a table of {width} encoded columns, one for each category and place of a text,",
        "state fewer categories, or give the rows in chunks (docs/scaling.md)",
    )


def _encode_rows(table: Any, encoding: Encoding) -> CodedRows:
    return encoding.to_coded_rows(table if isinstance(table, Frame) else read_frame(table))


def _bytes_of(X: Any, encoding: Encoding, size: int) -> int:
    """Return the largest memory of coded rows, for numbers of the given size in bytes.

    The bound depends on public sizes. A list of words, in float64, may be as long as the rows.
    """
    kinds = [column.kind for column in encoding.columns]
    n_words = sum(column.n_columns for column in encoding.columns if column.kind == "words")
    n_coded = len(kinds) - kinds.count("drop") - len(encoding.numbers)
    return int(X.shape[0]) * (size * len(encoding.numbers) + 4 * n_coded + 8 * n_words)


def _columns(rows: Any, columns: NDArray[np.intp]) -> NDArray[np.float64]:
    return np.asarray(numbers_of(rows)[:, columns])


def _coded_in_scales(rows: CodedRows, scales: ColumnScales, kind: type) -> CodedRows:
    """Scale the numbers of coded rows."""
    blocks: Any = tuple((table.astype(kind), places) for table, places in rows.blocks)
    return CodedRows(in_column_scales(rows.numbers, scales, kind=kind), blocks)


def _as_they_are(encoding: Encoding, model: Any) -> NDArray[np.bool_]:
    """Return which numeric columns are not scaled: those of small tables without a range."""
    is_small = isinstance(model, AdaptiveMarginClassifier)
    return np.array([is_small and not c.has_range for c in encoding.numbers], dtype=bool)


def _rows_in_scales(
    rows: Any,
    scales: ColumnScales,
    as_is: NDArray[np.bool_],
    kind: type = np.float64,
) -> NDArray[Any]:
    """Scale the numbers of encoded rows, except for the columns `as_is`."""
    numbers, others = np.hsplit(written_out(rows), [len(scales.center)])
    scaled = in_column_scales(numbers, scales, kind=kind)
    scaled[:, as_is] = np.nan_to_num(numbers[:, as_is])
    return np.hstack([scaled, others.astype(kind, copy=False)])


def _surety(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Map scores to numbers of size about one, with the same order and signs.

    With several classes, the largest score becomes one and the others zero.
    """
    if scores.ndim == 2:
        sure = np.zeros(scores.shape)
        np.put_along_axis(sure, scores.argmax(axis=1)[:, None], 1.0, axis=1)
        return sure
    size = np.abs(scores)
    return np.asarray(np.sign(scores) * (1.0 + _SURER * size / (1.0 + size)))


def _scores(rows: Any, model: PrivateKernelClassifier, in_single: bool) -> NDArray[np.float64]:
    if not len(rows):
        return np.empty((0, len(model.coef_)) if len(model.coef_) > 1 else 0)
    if not in_single:
        return model.decision_function(written_out(rows))
    made = single_feature_rows(rows, model.data_norm_, model.feature_map_, None)
    scores = made.scores(model.coef_.T) + model.intercept_
    return scores if scores.shape[1] > 1 else scores[:, 0]


def _in_parts(data: TrainingData) -> TrainingData:
    """Return rows in chunks if the scores of all classes would not fit in one block of memory."""
    n_rows, n_classes = data.X.shape[0], len(data.classes)
    step = rows_of_block(NUMBER_BYTES * n_classes)
    if isinstance(data.X, Chunks) or data.people is not None or n_classes == 2 or n_rows <= step:
        return data

    def parts(values: Any) -> LocalChunks:
        return LocalChunks.of(values[lo : lo + step] for lo in range(0, n_rows, step))

    weights: Any = None if data.weights is None else parts(data.weights)
    return replace(data, X=parts(data.X), class_indices=parts(data.class_indices), weights=weights)


def _scores_of_all(model: PrivateKernelClassifier, data: TrainingData, in_single: bool) -> Any:
    """Score the rows of the fit, each at its place."""
    if data.people is None:
        return apply_to_chunks(_scores, data.X, without_ledger_and_seed(model), in_single)
    return data.people.gather_blocks(
        len(data.people), lambda *where: model.decision_function(place_rows(data.X, *where))
    )


def _scores_of_generated_rows(encoding: Encoding, model: Any) -> NDArray[np.float64]:
    """Score generated rows with independent columns: a function of the released model."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((_N_MADE_UP, len(encoding.numbers)))
    for width in encoding.widths[len(encoding.numbers) :]:
        chosen = rng.integers(max(width, 2), size=(_N_MADE_UP, 1))
        rows = np.hstack([rows, chosen == np.arange(max(width, 2))[-width:]])
    return _scores(rows, model, in_single=False)


def _centre_of_scores(generated: NDArray[np.float64], rarity: Rarity) -> float:
    """Return a score that few records of the common one of two classes reach, on its side of zero.

    While a class is rare and noise is large, all scores lie far on the side of the common class.
    They are estimated by those of `generated` rows.
    """
    side = -1.0 if rarity.common == 0 else 1.0
    sizes = side * generated
    beyond = max(0.0, float(sizes.mean() - _BEYOND * sizes.std()))
    return side * math.sqrt(rarity.degree) * beyond


def _estimated_columns(
    columns: tuple[Column, ...], n_samples: int, budget: Budget
) -> NDArray[np.bool_]:
    """Return which columns get estimated scales: those without a range, or all if better."""
    without = np.array([not column.has_range for column in columns], dtype=bool)
    strength = 0.0 if budget.is_pure else n_samples * budget.mu
    return without | (strength >= _RANGES_ESTIMATED * math.sqrt(max(len(columns), 1)))
