"""What stands around a private model and reads the records without paying.

A table of what the steps of scikit-learn learn from data, and a walk over the steps of a pipeline.
Steps are known by module and name, and nothing is fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any


@dataclass(frozen=True, slots=True)
class PipelineFinding:
    """A step that a privacy record does not cover.

    Attributes
    ----------
    step : str
        Its name, with those of the steps around it, joined by two underscores; and its class.
    reads : str
        What it takes from the records, or that it is not known.
    instead : str
        What to use in its place.
    """

    step: str
    reads: str
    instead: str


_MODEL = "a classifier of dp_halfspace"
_MEMBERS = "one classifier of dp_halfspace with the whole budget"
# What is read, what to use instead, and by which classes of scikit-learn.
_READERS = [
    (
        "means, spreads, extremes or quantiles of columns",
        "PublicScaler with stated ranges, or data_norm=None, which learns units within the budget",
        "StandardScaler MinMaxScaler MaxAbsScaler RobustScaler PowerTransformer "
        "QuantileTransformer",
    ),
    (
        "which entries are missing, or what stands in their place in other records",
        "SimpleImputer(strategy='constant', keep_empty_features=True), or data_norm=None, which "
        "takes NaN",
        "SimpleImputer KNNImputer IterativeImputer MissingIndicator",
    ),
    (
        "which columns vary or go with the labels",
        "columns chosen before, by what they mean",
        "GenericUnivariateSelect RFE RFECV SelectFdr SelectFpr SelectFromModel SelectFwe "
        "SelectKBest SelectPercentile SequentialFeatureSelector VarianceThreshold",
    ),
    (
        "directions, centres or neighbours among the records",
        "GaussianRandomProjection, or PrivateKernelClassifier",
        "BernoulliRBM Birch BisectingKMeans CCA DictionaryLearning FactorAnalysis FastICA "
        "FeatureAgglomeration IncrementalPCA Isomap KMeans KNeighborsTransformer KernelCenterer "
        "KernelPCA LatentDirichletAllocation LinearDiscriminantAnalysis LocallyLinearEmbedding "
        "MiniBatchDictionaryLearning MiniBatchKMeans MiniBatchNMF MiniBatchSparsePCA NMF "
        "NeighborhoodComponentsAnalysis Nystroem PCA PLSCanonical PLSRegression PLSSVD "
        "RadiusNeighborsTransformer RandomTreesEmbedding SparsePCA TSNE TruncatedSVD RBFSampler",
    ),
    (
        "words or names that occur, or how often",
        "HashingVectorizer or FeatureHasher, or a stated vocabulary with use_idf=False",
        "CountVectorizer TfidfVectorizer TfidfTransformer DictVectorizer",
    ),
    (
        "the categories that occur, or how often",
        "categories=[...] stated, or PrivateTableClassifier",
        "OneHotEncoder OrdinalEncoder MultiLabelBinarizer",
    ),
    (
        "the labels",
        "categories=[...] stated, and classes=[...] of the classifier",
        "TargetEncoder LabelBinarizer LabelEncoder IsotonicRegression",
    ),
    (
        "extremes or quantiles of columns, to place cells and knots",
        "SplineTransformer(knots=array), or PrivateKernelClassifier(kernel='additive')",
        "KBinsDiscretizer SplineTransformer",
    ),
    (
        "the records many times, and each fit spends a budget of its own",
        _MEMBERS,
        "BaggingClassifier VotingClassifier VotingRegressor OneVsRestClassifier "
        "OneVsOneClassifier OutputCodeClassifier ClassifierChain MultiOutputClassifier",
    ),
    (
        "errors of earlier models on the records, or their answers in folds that follow the labels",
        _MEMBERS,
        "AdaBoostClassifier StackingClassifier StackingRegressor SelfTrainingClassifier",
    ),
    (
        "exact scores of the records, to calibrate probabilities or move the threshold",
        "PrivateTableClassifier, PrivateAUCClassifier, or FixedThresholdClassifier",
        "CalibratedClassifierCV TunedThresholdClassifierCV",
    ),
    (
        "exact scores on the records, to choose parameters",
        "PrivateSearchCV",
        "GridSearchCV RandomizedSearchCV HalvingGridSearchCV HalvingRandomSearchCV",
    ),
]
READERS = {name: entry[:2] for entry in _READERS for name in entry[2].split()}
# These learn nothing but public shapes and names; or hold others, which are looked at.
_NAMES = (
    "AdditiveChi2Sampler Binarizer FeatureHasher FrozenEstimator FunctionTransformer "
    "GaussianRandomProjection HashingVectorizer Normalizer PatchExtractor PolynomialCountSketch "
    "PolynomialFeatures SkewedChi2Sampler SparseCoder SparseRandomProjection"
)
STATELESS = frozenset(_NAMES.split())
HOLDERS = frozenset({"Pipeline", "FeatureUnion", "ColumnTransformer", "FixedThresholdClassifier"})


def _has_categories(step: Any) -> bool:
    limits = (step.min_frequency, step.max_categories)
    return not isinstance(step.categories, str) and limits == (None, None)


# Readers that read nothing when their parameters say so.
STATED: dict[str, Callable[[Any], bool]] = {
    "CountVectorizer": lambda step: step.vocabulary is not None,
    "TfidfVectorizer": lambda step: step.vocabulary is not None and not step.use_idf,
    "TfidfTransformer": lambda step: not step.use_idf,
    "OneHotEncoder": _has_categories,
    "OrdinalEncoder": _has_categories,
    "MultiLabelBinarizer": lambda step: step.classes is not None,
    "MissingIndicator": lambda step: step.features == "all",
    "SimpleImputer": lambda step: (
        (step.strategy, step.keep_empty_features, step.add_indicator) == ("constant", True, False)
    ),
    "SplineTransformer": lambda step: not isinstance(step.knots, str),
    "SelectFromModel": lambda step: bool(step.prefit),
    "RBFSampler": lambda step: not isinstance(step.gamma, str),
}
# Splitters that do not read labels; all that do have a name that says so.
_SPLITTERS = (
    "GroupKFold GroupShuffleSplit KFold LeaveOneGroupOut LeaveOneOut LeavePGroupsOut LeavePOut "
    "PredefinedSplit RepeatedKFold ShuffleSplit TimeSeriesSplit"
)
_RESAMPLED = "labels or neighbours, to leave out, repeat or invent records"


def check_pipeline(estimator: Any, cv: Any = None) -> tuple[PipelineFinding, ...]:
    """Find every step around a private model that learns from the records without paying.

    Parameters
    ----------
    estimator : estimator object
        A classifier of this package, or a pipeline, column transformer, feature union, search or
        other meta-estimator of scikit-learn around one, fitted or not.
    cv : int, splitter, iterable of splits or None, default=None
        Of a cross-validation round it; None means that there is none.

    Returns
    -------
    tuple of PipelineFinding
        Empty if nothing is known to void the guarantee. Steps that are not of scikit-learn,
        imbalanced-learn or this package are reported as not known.

    Notes
    -----
    **Privacy.** Parameters are looked at and no data, so calling it costs nothing. What the
    function of a ``FunctionTransformer`` does is not seen: it must treat every row by itself. What
    a ``FrozenEstimator`` holds must have been fitted to other records, or be paid for.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer, StandardScaler
    >>> from dp_halfspace import AdaptiveMarginClassifier
    >>> from dp_halfspace.inspection import check_pipeline
    >>> model = AdaptiveMarginClassifier(classes=[0, 1])
    >>> for finding in check_pipeline(make_pipeline(StandardScaler(), Normalizer(), model)):
    ...     print(finding.step, "reads", finding.reads)
    standardscaler (StandardScaler) reads means, spreads, extremes or quantiles of columns
    """
    outer = () if cv is None else _of_splits("cv", cv)
    return (*_walk("", estimator), *outer)


def _walk(path: str, step: Any) -> Iterator[PipelineFinding]:
    """Look at a step and at those that it holds."""
    if step is None or isinstance(step, str):
        return
    name, library = type(step).__name__, type(step).__module__.split(".")[0]
    shown = f"{path} ({name})" if path else name
    if library == "dp_halfspace":
        yield from _of_parameters(shown, step)
    elif library == "imblearn" and name not in HOLDERS:
        yield PipelineFinding(shown, _RESAMPLED, "class_weight={...} of the classifier")
    elif library not in ("sklearn", "imblearn"):
        yield PipelineFinding(shown, "not known", "a step that keeps nothing of the records")
    elif name in READERS:
        if name in STATED and STATED[name](step):
            return
        yield PipelineFinding(shown, *READERS[name])
        if name.endswith("SearchCV"):
            yield from _of_splits(f"{path}__cv" if path else "cv", step.cv)
    elif name not in STATELESS | HOLDERS:
        stops = " and stops early by some of them" if _stops_early(step) else ""
        yield PipelineFinding(shown, f"all records, without privacy{stops}", _MODEL)
    if name not in STATELESS:
        for inner, held in _held(step):
            yield from _walk(f"{path}__{inner}" if path else inner, held)


def _held(step: Any) -> Iterator[tuple[str, Any]]:
    """Name the steps inside one."""
    for group in ("steps", "transformer_list", "transformers", "estimators"):
        members = getattr(step, group, None)
        for i, held in enumerate(members if isinstance(members, list | tuple) else ()):
            yield (held[0], held[1]) if isinstance(held, tuple) else (str(i), held)
    for name in ("estimator", "final_estimator", "remainder"):
        if hasattr(getattr(step, name, None), "get_params"):
            yield name, getattr(step, name)


def _of_parameters(shown: str, step: Any) -> Iterator[PipelineFinding]:
    """Look at what parameters of this package give away."""
    if hasattr(step, "epsilon") and isinstance(step.random_state, Integral):
        reads = "noise from a seed, which whoever knows it can subtract"
        yield PipelineFinding(shown, reads, "random_state=None")
    if getattr(step, "classes", ()) is None:
        yield PipelineFinding(shown, "the labels that occur", "classes=[...] stated")


def _stops_early(step: Any) -> bool:
    """Tell whether a foreign model holds records out to know when to stop."""
    counted = getattr(step, "n_iter_no_change", None) and not hasattr(step, "early_stopping")
    return bool(getattr(step, "early_stopping", False) or counted)


def _of_splits(shown: str, cv: Any) -> Iterator[PipelineFinding]:
    """Look at who decides which record is in which fold."""
    name = type(cv).__name__
    instead = "KFold(5, shuffle=True) or ShuffleSplit"
    if cv is None or isinstance(cv, Integral) or "Stratified" in name:
        kind = name if "Stratified" in name else "stratified folds"
        yield PipelineFinding(f"{shown} ({kind})", "labels, to make the folds", instead)
    elif hasattr(cv, "split") and name not in _SPLITTERS.split():
        yield PipelineFinding(f"{shown} ({name})", "not known", instead)
