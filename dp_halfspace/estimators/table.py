"""A private classifier for tables with strings, categories, dates and numbers in any units."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._budget import warn_of_scales
from dp_halfspace._memory import NUMBER_BYTES, refuse_beyond_memory
from dp_halfspace._params import resolved_delta
from dp_halfspace._rounding import FAR_DOWN
from dp_halfspace._sklearn_compat import StrOptions
from dp_halfspace.data.chunked_data import as_chunks, by_chunks
from dp_halfspace.data.encoding import CodedRows, Encoding
from dp_halfspace.data.frame import Frame, read_frame
from dp_halfspace.data.schema import label_set, read_schema, resolved_columns, unstated_kinds
from dp_halfspace.data.validation import TrainingData, is_chunked
from dp_halfspace.engine.features import Features, columns_in_scales, joint_features, scales_pay
from dp_halfspace.engine.linear import plan_features
from dp_halfspace.engine.moment import WIDEST
from dp_halfspace.engine.plan import FitPlan, Fitted, PublicFacts
from dp_halfspace.engine.probabilities import log_odds_of, log_probabilities_of, surety
from dp_halfspace.engine.scales import CLIP, SCALES, affordable_scales
from dp_halfspace.estimators._choose import plan_kernel_training
from dp_halfspace.estimators._small_tables import plan_small_fit
from dp_halfspace.estimators._table_plans import (
    COUNT_SHARE,
    KEPT_FEATURES,
    ColumnRankingFit,
    EncodedTable,
    PureFit,
    RareTableFit,
    TableFit,
    columns_of,
    owners_of,
    repeats_of,
    stated_scales,
)
from dp_halfspace.estimators._wrapped_plans import plan_balanced
from dp_halfspace.estimators.adaptive_margin import AdaptiveMarginClassifier
from dp_halfspace.estimators.base import PrivateClassifier
from dp_halfspace.estimators.kernel import (
    COLUMN_TERMS,
    PURE_MOST,
    PrivateKernelClassifier,
    n_terms,
)
from dp_halfspace.exceptions import warn_caller
from dp_halfspace.papers.kernel import KernelTraining
from dp_halfspace.papers.training import Problem
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Either, Pure
from dp_halfspace.privacy.exponential import TalliedChoice
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.privacy.record import PrivacyRecord
from dp_halfspace.projection.features import AdditiveMap
from dp_halfspace.selection.rule import rare_class_limit


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateTableClassifier(PrivateClassifier):
    """Private classifier for data frames, with probabilities, within one budget.

    Strings, categories, booleans and dates are encoded by public rules; the scales of numeric
    columns are stated, or estimated within the budget. A number has two cosines beside it, and an
    indicator of what is missing. A noisy second moment centres and whitens these features, and
    noisy steps of logistic regression follow. Probabilities follow from the scores and cost
    nothing. If `features` is ``"auto"`` and there are few rows (``n epsilon`` below 120 times the
    root of the geometric mean of the numbers of columns and of encoded columns, indicators not
    counted, or with ``delta=0`` below 1500 or 120 for each number without a range; at most 512
    encoded columns and seven classes; rows in memory, no `groups`, weights of records or balanced
    classes), the model is selected from a public list of classifiers by a pure DP mechanism.
    With two classes and ``n epsilon`` from 300 to 3500, a noisy count of the classes comes first: a
    class of at most ``60 / epsilon`` records is ranked by one selected column, and every predicted
    label is the other one.

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
        ``unit``, ``format``, ``missing`` (``"ignore"`` if a column of numbers or dates is complete,
        or what is missing says nothing; otherwise ``"indicator"``) and ``columns`` (the number of
        columns in which the words of a text are counted).
        The kind of a column that is not named follows from its dtype and is declared public, with a
        `PrivacyWarning`. The mapping may also be the value of ``"columns"``, next to ``"target"``,
        a list of labels.
    features : {"auto", "additive", "linear"}, default="auto"
        The features of the model: the columns themselves (``"linear"``); in addition two cosines
        of each numeric column (``"additive"``); in addition, with many rows, Fourier features of
        all numbers together (``"auto"``, which also shortens rows far from the mean when it scores
        them).
    probability : bool, default=True
        Whether `predict_proba` is there. In small tables a noisy count of errors takes a share of
        ``20 / (n epsilon)`` of the budget for it, within .05 and .25 (.15 with more than two
        classes); otherwise it costs nothing.
        With ``delta=0`` only small tables have probabilities.
    class_weight : dict, "balanced" or None, default=None
        PUBLIC weight of each label, in [1e-50, 1e50]. Probabilities of two classes are those of a
        population with these weights. ``"balanced"`` weights classes inversely to their sizes,
        which noisy counts within the budget estimate; it needs ``delta > 0``. The largest weight is
        then one.
    random_state : int or None, default=None
        None draws the noise from the operating system. An int repeats the noise on any machine, and
        raises `PrivacyWarning`: anyone who knows it can subtract the noise.
    ledger : object with a method ``charge(record)``, path or None, default=None
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
        The released model of encoded rows; the latter for a small table or a selected column.
    certainty_ : float or None
        For a small table the log odds of a correct prediction, by a noisy count of errors, and for
        a selected column nearly so, by that of the classes; None if log odds follow from the
        scores, or, with pure DP, if there are none.
    column_that_ranks_ : str or None
        The name of the column that was selected to rank a rare class, if one was.
    privacy_ : PrivacyRecord
        The privacy guarantee of the fit, its events, and what was assumed public.
    n_features_in_ : int
        Number of columns of the table.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, when `X` had them.

    See Also
    --------
    PrivateKernelClassifier : The same method for numeric arrays.
    PrivateThresholdClassifier : A threshold for a recall or precision, from other records.
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
    Proofs: ``docs/proofs/engine.md``, ``column_scales.md``, ``rare.md``, ``small_tables.md``.

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

    _can_balance_classes: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateClassifier._parameter_constraints,
        "schema": [dict, str, os.PathLike, None],
        "features": [StrOptions({"auto", "linear", "additive"})],
        "probability": ["boolean"],
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
        n_counted = frame.n_rows if table is None and groups is None else 1
        width = sum(encoding.widths)
        refuse_beyond_memory(
            # As encoded, and in column scales.
            2 * NUMBER_BYTES * n_counted * width,
            f"a table of {width} encoded columns, one for each category and place of a text,",
            "state fewer categories, or give the rows in chunks, as dask frames or by "
            "dp_halfspace.datasets.read_parquet",
        )
        rows: Any = encoding.to_coded_rows(frame).dense(np.float64)
        if table is not None:
            rows = replace(table.each(_encode_rows, encoding), sample=rows)
        classes = label_set(target, y) if self.classes is None else self.classes
        data = self._checked(rows, y, groups, classes=classes, allow_missing=True)
        # Encoding takes longer than a step. A list of words may be as long as the rows.
        used = sum(each.n_columns or 1 for each in encoding.columns if each.kind != "drop")
        if table is not None and NUMBER_BYTES * int(data.X.shape[0]) * used <= KEPT_FEATURES:
            data = replace(data, X=data.X.kept())
        return EncodedTable(**vars(data), encoding=encoding)

    def _names_read(self, data: TrainingData) -> list[str]:
        """Return the names of the columns that the schema does not drop, if they have names."""
        assert isinstance(data, EncodedTable)
        encoding = data.encoding
        return [c.name for c in encoding.columns if encoding.is_named and c.kind != "drop"]

    def _n_columns(self, data: TrainingData | None) -> int:
        # Indicators of missing numbers are left out: most of them are nearly constant.
        if data is None:
            return int(self.model_.n_features_in_) - len(self.encoding_.indicated)
        return int(data.X.shape[1])

    @property
    def _finding(self) -> str:
        column = self.column_that_ranks_
        if column is None:
            return str(self.model_._finding) or self._finding_of_ranges()
        return (
            f"by a noisy count one class is rare, so the model is one column, {column!r}, selected "
            "to rank that class: every predicted label is the other one. Rank rows by the "
            "probability of that class"
        )

    def _finding_of_ranges(self) -> str:
        """Name columns that released scales show to be clipped to one end of their range."""
        released, found = self._columns_in_estimated_scales, self.column_scales_
        named = []
        scaled = zip(self.encoding_.numbers, found.center, found.scale, strict=True)
        for column, center, scale in scaled:
            to_end = min(center - column.low, column.high - center)
            if column.name in released and to_end < scale < (column.high - column.low) / 1000:
                named.append(column.name)
        if not named:
            return ""
        return (
            f"by released scales nearly all cells of {', '.join(map(repr, named))} are at or "
            "beyond one end of the stated range: state the range in the unit of the table, or "
            '"number"'
        )

    @property
    def _is_selected(self) -> bool:
        """Whether the model was selected from a list."""
        return isinstance(self.model_, AdaptiveMarginClassifier)

    @property
    def _columns_in_estimated_scales(self) -> frozenset[str]:
        """Names of the columns whose scales the fit has released; all others are as stated.

        The record of a search, which the best of its models has, does not list them.
        """
        found, stated = self.column_scales_, stated_scales(self.encoding_)
        is_released = (found.center != stated.center) | (found.scale != stated.scale)
        names = np.array([column.name for column in self.encoding_.numbers], dtype=object)
        return frozenset(names[is_released].tolist())

    def _fit_plan(self, data: TrainingData) -> FitPlan:
        """Plan one selection for a small table, otherwise scales, moment and steps."""
        assert isinstance(data, EncodedTable)
        # The public facts of the encoded table, with indicators of missing numbers.
        facts = self._facts_of(
            data,
            n_features=data.X.shape[1] + len(data.encoding.indicated),
            data_norm=data.encoding.length,
            is_scale_stated=False,
        )
        budget = Budget.of(float(self.epsilon), resolved_delta(self.delta, data.n_privacy_units))
        selection = self._selection(data, facts, budget)
        rare = self._rare_fit(data, facts, budget, selection)
        plan = rare or selection or self._steps(data, facts, budget)
        facts.refuse_unsupported(plan.takes)
        return plan

    def _selection(self, data: EncodedTable, facts: PublicFacts, budget: Budget) -> TableFit | None:
        """Plan one selection for a table of few rows, by public facts only."""
        if self.features != "auto":
            return None
        inner = plan_small_fit(
            replace(facts, data_norm=1.0),
            budget,
            self.random_state,
            # Errors are not counted for a population with other weights.
            counts=self.probability and self.class_weight is None,
            widths=data.encoding.widths,
            n_unscaled=sum(not column.has_range for column in data.encoding.numbers),
        )
        return None if inner is None else self._selected_fit(data, inner)

    def _selected_fit(self, data: EncodedTable, inner: FitPlan) -> TableFit:
        """Return the fit of a table by a selection from a list."""
        model = AdaptiveMarginClassifier(**self._options_of(data))
        # A column without a range keeps its unit, since the list has logarithmic steps.
        return TableFit(data.encoding, data.classes, model, inner, columns_of(data))

    def _rare_fit(
        self, data: EncodedTable, facts: PublicFacts, budget: Budget, plan: TableFit | None
    ) -> RareTableFit | None:
        """Plan a count of two classes, and what may follow, by public facts only.

        `plan` is the selection for the whole budget, None where steps would be taken. The result is
        None if no column ranks a class, however rare it is.
        """
        asks_for_more = (self.features, self.class_weight) != ("auto", None)
        is_refused = facts.is_chunked or facts.has_people or facts.has_weights
        is_other = facts.n_classes != 2 or (budget.is_pure and plan is None)
        limit, epsilon = rare_class_limit(facts.n_privacy_units, budget.epsilon), budget.epsilon
        if asks_for_more or is_refused or is_other or limit is None:
            return None
        # Replacing a record changes the count by at most one: docs/proofs/rare.md, Lemma 1.
        count = DiscreteLaplaceNoise(1, COUNT_SHARE * epsilon)
        left = (1.0 - COUNT_SHARE) * epsilon * FAR_DOWN
        follows: Either | Pure = Pure(left)
        default: TableFit | None
        if plan is not None:
            default = self._selection(data, facts, Budget.of(left, budget.delta))
            assert default is not None
        else:
            mu = accounting.mu_of_either(count.event, left, epsilon, budget.delta)
            follows = Either(left, mu)
            default = self._steps(data, facts, Budget.gaussian(mu, budget.delta))
        # A record moves the cost of each column by at most one: docs/proofs/rare.md, Lemma 4.
        n_samples, repeats = facts.n_privacy_units, repeats_of(owners_of(data.encoding))
        inner = ColumnRankingFit(n_samples, repeats, TalliedChoice(left), count)
        ranking = self._selected_fit(data, inner)
        return RareTableFit(n_samples, count, limit, follows, ranking, default)

    def _steps(self, data: EncodedTable, facts: PublicFacts, budget: Budget) -> TableFit:
        """Plan scales of columns, features, and a fit of them."""
        encoding, n_samples = data.encoding, data.n_privacy_units
        n_numbers, n_columns = len(encoding.numbers), facts.n_features
        estimated = np.flatnonzero([not column.has_range for column in encoding.numbers])
        if not budget.is_pure and scales_pay(n_samples, n_numbers, budget.mu):
            estimated = np.arange(n_numbers)
        limit = PURE_MOST if budget.is_pure else WIDEST
        n_plain, terms = n_columns - n_numbers, 1
        if self.features != "linear" and n_numbers:
            terms = n_terms(n_numbers, limit - n_plain, COLUMN_TERMS)
        drawn = AdditiveMap(n_columns, terms, n_plain=n_plain, length=encoding.length)
        seed = 0
        if self.features == "auto" and not budget.is_pure:
            seed = int(public_generator(self.random_state, "features").integers(2**63))
            sizes, limits = (n_samples, sum(encoding.widths)), (limit, KEPT_FEATURES)
            drawn = joint_features(drawn, sizes, budget.mu, limits, seed)
        is_auto = self.features == "auto"
        columns = columns_of(data)
        features = replace(columns, feature_map=drawn, estimated=estimated, clips_rows=is_auto)
        stated = {"n_components": drawn.n_components, "feature_seed": seed}
        kernel = "auto" if is_auto else "additive"
        model = PrivateKernelClassifier(kernel=kernel, **self._options_of(data))
        plan = self._pure if budget.is_pure else plan_features
        wanted = partial(plan, features=features, public=stated)
        inner = plan_balanced(wanted, facts, budget)
        return TableFit(data.encoding, data.classes, model, inner, features)

    def _pure(
        self, facts: PublicFacts, budget: Budget, features: Features, public: dict[str, Any]
    ) -> PureFit:
        """Plan scales and a perturbed objective for pure DP."""
        scales, n_estimated = None, len(features.estimated)
        if n_estimated:
            paid = affordable_scales(facts.n_privacy_units, n_estimated, budget)
            scales, budget = paid or (None, budget)
            if paid is None:
                warn_of_scales(facts.n_privacy_units, n_estimated, budget.epsilon)
        assert isinstance(features.feature_map, AdditiveMap)
        of_features = replace(facts, n_features=features.n_columns, is_sparse=False)
        problem = Problem(of_features, 1.0, seed=self.random_state)
        training = plan_kernel_training(
            problem, "noisy_gd", None, budget, feature_map=features.feature_map
        )
        given = features.feature_map, features.unit
        inner = KernelTraining(training, *given, memory=KEPT_FEATURES, parameters=public)
        first = () if scales is None else scales.events
        events = (*first, *inner.events)
        asks = (*[SCALES] * len(first), *["coefficients"] * len(inner.events))
        return PureFit(scales, features, inner, events, asks, inner.public, inner.takes)

    def _options_of(self, data: EncodedTable) -> dict[str, Any]:
        """Return the parameters that the released model has in common with the table."""
        names = ("epsilon", "delta", "class_weight", "random_state")
        return {"classes": data.classes, **{name: getattr(self, name) for name in names}}

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

    @by_chunks
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score rows: log odds if there are probabilities, for more classes up to a constant.

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
        encoding: Encoding = self.encoding_
        return encoding.to_coded_rows(_with_rows(X))

    def _bytes_to_score_a_row(self) -> int:
        # As encoded, and in column scales.
        return 2 * NUMBER_BYTES * int(self.model_.n_features_in_)

    def _in_scales(self, rows: CodedRows) -> NDArray[np.float64]:
        """Return encoded rows in the column scales of the model inside."""
        clip = math.inf if self._is_selected else CLIP
        return columns_in_scales(rows, self.column_scales_, self.encoding_.indicated, clip)

    def _scores(self, rows: CodedRows) -> NDArray[np.float64]:
        return self._odds_of(self.model_.decision_function(self._in_scales(rows)))

    def _odds_of(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log odds of two classes, or log probabilities up to a constant."""
        if self._is_selected:
            scores = surety(scores)
        if self.certainty_ is not None:
            return np.asarray(self.certainty_ * scores)
        return log_odds_of(scores) if scores.ndim == 1 else log_probabilities_of(scores)

    def _why_no_probabilities(self) -> str:
        if not self.probability:
            return "probabilities need probability=True"
        if hasattr(self, "privacy_") and self.privacy_.delta == 0.0 and self.certainty_ is None:
            return (
                "with delta=0 only a small table, where a classifier is selected, has "
                "probabilities: the scores of this fit are no log odds. Use decision_function, "
                "or a delta above 0"
            )
        return ""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def _with_rows(X: Any) -> Frame:
    """Return the columns of a table, which must have rows, before they are encoded."""
    frame = read_frame(X)
    if not frame.n_rows:
        raise ValueError("X has no rows")
    return frame


def _encode_rows(chunk: Any, encoding: Encoding) -> CodedRows:
    return encoding.to_coded_rows(read_frame(chunk))
