"""What the steps of scikit-learn read of the records, and what they tell of them.

Facts about classes by their names, and about their parameters. Nothing is fitted or imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

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
        "OneHotEncoder OrdinalEncoder",
    ),
    (
        "the categories that occur; with stated ones its warnings quote all others",
        "OneHotEncoder with categories=[...] stated",
        "MultiLabelBinarizer",
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
    "MissingIndicator": lambda step: step.features == "all",
    "SimpleImputer": lambda step: (
        (step.strategy, step.keep_empty_features, step.add_indicator) == ("constant", True, False)
    ),
    "SplineTransformer": lambda step: not isinstance(step.knots, str),
    "RBFSampler": lambda step: not isinstance(step.gamma, str),
}
_UNKNOWN = "records whose category is not stated, and its errors or warnings tell of them"
# What a step tells of the records beside what it learns: when, what, and what to use instead.
TELLING: dict[str, tuple[Callable[[Any], bool], str, str]] = {
    "OneHotEncoder": (
        lambda step: step.handle_unknown in ("error", "warn") or step.drop is not None,
        _UNKNOWN,
        "handle_unknown='ignore' with drop=None",
    ),
    "OrdinalEncoder": (
        lambda step: step.handle_unknown == "error",
        _UNKNOWN,
        "handle_unknown='use_encoded_value' with unknown_value=-1",
    ),
    "SplineTransformer": (
        lambda step: step.extrapolation == "error",
        "records outside the knots, and its errors tell of them",
        "extrapolation='constant'",
    ),
    "Pipeline": (
        lambda step: step.memory is not None,
        "all records, and keeps them and every fit in the files of a cache",
        "memory=None",
    ),
    "ColumnTransformer": (
        lambda step: step.sparse_threshold != 0 and not _is_dense(step),
        "how many entries are zero, by which it chooses between CSR and dense",
        "sparse_threshold=0",
    ),
}
# Steps that give dense columns whatever they are given; others make CSR, or keep it.
_DENSE_NAMES = (
    "GaussianRandomProjection OrdinalEncoder PolynomialCountSketch RBFSampler SkewedChi2Sampler"
)
_DENSE = frozenset(_DENSE_NAMES.split())

# Splitters that read neither labels nor other records; all that read labels have a name that
# says so. Of the folds of PredefinedSplit, as of lists, nothing is known.
_SPLITTER_NAMES = (
    "GroupKFold GroupShuffleSplit KFold LeaveOneGroupOut LeaveOneOut LeavePGroupsOut LeavePOut "
    "RepeatedKFold ShuffleSplit TimeSeriesSplit"
)
SPLITTERS = frozenset(_SPLITTER_NAMES.split())


def library_of(kind: type) -> str:
    """Name the library that a class is of; empty for one that only takes the name of another.

    A class is what its module holds under its name: subclasses may override what is known here.
    """
    held = getattr(sys.modules.get(kind.__module__), kind.__qualname__, None)
    return kind.__module__.split(".")[0] if held is kind else ""


def telling(step: Any) -> tuple[str, str] | None:
    """Say what a step tells of the records, if it does, and what to use instead."""
    tells, *finding = TELLING.get(type(step).__name__, (lambda _: False, "", ""))
    return (finding[0], finding[1]) if tells(step) else None


def column_finding(columns: Any) -> tuple[str, str] | None:
    """Say what a choice of columns reads: a function is handed the whole table.

    ``make_column_selector`` reads names, which are public, and dtypes if it is asked to; a reader
    of files infers those from the records.
    """
    instead = "names or positions of columns"
    if not callable(columns):
        return None
    kind = type(columns)
    if (library_of(kind), kind.__name__) != ("sklearn", "make_column_selector"):
        return "all records, which are handed to a function", instead
    if columns.dtype_include is None and columns.dtype_exclude is None:
        return None
    return "dtypes of columns, which a reader may have inferred from the records", instead


def _is_dense(step: Any, *, is_of_frame: bool = False) -> bool:
    """Tell whether the output of a step is certain to be dense, whatever the records are.

    Columns of a data frame that are handed on as they are stay a data frame.
    """
    name = type(step).__name__
    if isinstance(step, str):
        return step == "drop" or is_of_frame
    if name == "ColumnTransformer":
        members = [(held, _are_names(columns)) for _, held, columns in step.transformers]
        of_frame = bool(members) and all(named for _, named in members)
        members.append((step.remainder, of_frame))
        dense = all(_is_dense(held, is_of_frame=named) for held, named in members)
        return dense or step.sparse_threshold == 0
    if name == "FeatureUnion":
        return all(_is_dense(held) for _, held in step.transformer_list)
    if name == "Pipeline":
        return _is_dense(step.steps[-1][1])
    return (
        name in _DENSE
        or getattr(step, "sparse_output", True) is False
        or library_of(type(step)) == "dp_halfspace"
    )


def _are_names(columns: Any) -> bool:
    """Tell whether columns are chosen by name, which data frames have and matrices have not."""
    names = columns if isinstance(columns, list) else [columns]
    return bool(names) and all(isinstance(name, str) for name in names)
