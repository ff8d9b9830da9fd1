"""Detection of pipeline steps around a private model that read the records outside its budget.

The steps of a pipeline are checked by their classes and parameters. Nothing is fitted, and no data
are read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from sklearn import get_config

_MEMBERS = "one classifier of dp_halfspace with the whole budget"
# Information that a step reads, what to use instead, and the classes of scikit-learn that read it.
_READERS_BY_KIND = [
    (
        "means, spreads, extremes or quantiles of columns",
        "PublicScaler with stated ranges, or data_norm=None, which estimates scales within the "
        "budget",
        "StandardScaler MinMaxScaler MaxAbsScaler RobustScaler PowerTransformer "
        "QuantileTransformer",
    ),
    (
        "which entries are missing, or statistics of other records to replace them",
        "SimpleImputer(strategy='constant', keep_empty_features=True), or data_norm=None, which "
        "takes NaN",
        "SimpleImputer KNNImputer IterativeImputer MissingIndicator",
    ),
    (
        "which columns vary or go with the labels",
        "columns chosen beforehand by their meaning",
        "GenericUnivariateSelect RFE RFECV SelectFdr SelectFpr SelectFromModel SelectFwe "
        "SelectKBest SelectPercentile SequentialFeatureSelector VarianceThreshold",
    ),
    (
        "principal components, centres or neighbours among the records",
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
_READERS = {name: entry[:2] for entry in _READERS_BY_KIND for name in entry[2].split()}


def what_it_reads(name: str) -> tuple[str, str]:
    """Return what a class of scikit-learn reads of the records, and what to use instead."""
    reads, instead = _READERS[name]
    return reads, instead


def _names(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


# Steps that learn only public shapes and names.
_STATELESS = _names(
    "AdditiveChi2Sampler Binarizer FeatureHasher FrozenEstimator FunctionTransformer "
    "GaussianRandomProjection HashingVectorizer Normalizer PatchExtractor PolynomialCountSketch "
    "PolynomialFeatures SkewedChi2Sampler SparseCoder SparseRandomProjection"
)
# Steps that only contain other steps, which are checked one by one.
_CONTAINERS = _names("Pipeline FeatureUnion ColumnTransformer FixedThresholdClassifier")


def _has_stated_categories(step: Any) -> bool:
    """Return whether the categories of an encoder are stated and none is chosen by frequency."""
    limits = (step.min_frequency, step.max_categories)
    return not isinstance(step.categories, str) and limits == (None, None)


# Parameters with which a step that otherwise reads the records reads nothing.
_READS_NOTHING: dict[str, Callable[[Any], bool]] = {
    "CountVectorizer": lambda step: step.vocabulary is not None,
    "TfidfVectorizer": lambda step: step.vocabulary is not None and not step.use_idf,
    "TfidfTransformer": lambda step: not step.use_idf,
    "OneHotEncoder": _has_stated_categories,
    "OrdinalEncoder": _has_stated_categories,
    "MissingIndicator": lambda step: step.features == "all",
    "SimpleImputer": lambda step: (
        (step.strategy, step.keep_empty_features, step.add_indicator) == ("constant", True, False)
    ),
    "SplineTransformer": lambda step: not isinstance(step.knots, str),
    "RBFSampler": lambda step: not isinstance(step.gamma, str),
}
_UNKNOWN_CATEGORIES = "records whose category is not stated, and its errors or warnings reveal them"
# Information that a step reveals about the records in addition to its attributes: parameters, what
# it reads, and what to use instead.
_REVEALS: dict[str, tuple[Callable[[Any], bool], str, str]] = {
    "OneHotEncoder": (
        lambda step: step.handle_unknown in ("error", "warn") or step.drop is not None,
        _UNKNOWN_CATEGORIES,
        "handle_unknown='ignore' with drop=None",
    ),
    "OrdinalEncoder": (
        lambda step: step.handle_unknown == "error",
        _UNKNOWN_CATEGORIES,
        "handle_unknown='use_encoded_value' with unknown_value=-1",
    ),
    "SplineTransformer": (
        lambda step: step.extrapolation == "error",
        "records outside the knots, and its errors reveal them",
        "extrapolation='constant'",
    ),
    "FunctionTransformer": (
        lambda step: None not in (step.func, step.inverse_func) and step.check_inverse,
        "some of the records, and its warning tells whether the inverse restores them",
        "check_inverse=False",
    ),
    "SparseCoder": (
        lambda step: step.transform_algorithm != "threshold",
        "each record by a solver whose warnings reveal it",
        "transform_algorithm='threshold'",
    ),
    "Pipeline": (
        lambda step: step.memory is not None,
        "all records, and stores them and every fit in the files of a cache",
        "memory=None",
    ),
    "ColumnTransformer": (
        lambda step: step.sparse_threshold != 0 and not _is_dense(step),
        "how many entries are zero, by which it chooses between CSR and dense",
        "sparse_threshold=0",
    ),
}
# Steps whose output is always dense; others return CSR, or keep it.
_DENSE = _names(
    "GaussianRandomProjection OrdinalEncoder PolynomialCountSketch RBFSampler SkewedChi2Sampler"
)

# Splitters that read neither labels nor other records; the names of splitters that read labels say
# so. Nothing is known about the folds of PredefinedSplit and of lists.
_SPLITTERS = _names(
    "GroupKFold GroupShuffleSplit KFold LeaveOneGroupOut LeaveOneOut LeavePGroupsOut LeavePOut "
    "RepeatedKFold ShuffleSplit TimeSeriesSplit"
)
# Splitters that sort the groups by their identifiers, and take them in this order or a random one.
_GROUP_SPLITTERS = _names("GroupKFold GroupShuffleSplit LeaveOneGroupOut LeavePGroupsOut")


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
_RESAMPLED = "labels or neighbours, to leave out, repeat or invent records"


def check_pipeline(estimator: Any, cv: Any = None) -> tuple[PipelineFinding, ...]:
    """Find every step around a private model that learns from the records without paying.

    Parameters
    ----------
    estimator : estimator object
        A classifier of this package, or a pipeline, column transformer, feature union, search or
        other meta-estimator of scikit-learn around one, fitted or not.
    cv : int, splitter, iterable of splits or None, default=None
        Of a cross-validation round it; None means that there is none. Of splits in a list, a
        generator or a ``PredefinedSplit`` it is not known what made them. Folds of groups must be
        drawn without a seed, because scikit-learn sorts the groups by their identifiers.

    Returns
    -------
    tuple of PipelineFinding
        Empty if nothing is known to void the guarantee. Steps that are not of scikit-learn,
        imbalanced-learn or this package are reported as not known, and so are subclasses of
        theirs.

    Notes
    -----
    **Privacy.** Parameters are looked at and no data, so calling it costs nothing. What the
    function of a ``FunctionTransformer``, or an analyzer of text, does is not seen: it must treat
    every row by itself and keep nothing. What a ``FrozenEstimator`` holds must have been fitted to
    other records, or be private itself. ``make_column_selector`` may choose columns by their names;
    by their dtypes it is a finding, because readers of files infer dtypes from the records.

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
    outer = () if cv is None else _check_splits("cv", cv)
    return (*_walk("", estimator), *outer)


def findings_in_front(calls: Iterable[tuple[str, Mapping[str, Any]]]) -> list[PipelineFinding]:
    """Check the pipeline steps before the running fit, by the calls around it.

    Nothing is known about steps of other libraries, and those of this package warn themselves.
    """
    found: list[PipelineFinding] = []
    is_step = False
    for name, held in calls:
        module, _, function = name.rpartition(".")
        steps = getattr(held.get("self"), "steps", None)
        if module not in ("sklearn.pipeline", "imblearn.pipeline") or not steps:
            continue
        if function == "_fit":
            # The running fit belongs to an earlier step, and no step is known to precede it.
            is_step = True
        elif function.startswith("fit"):
            for path, step in () if is_step else steps[:-1]:
                if library_of(type(step)) != "dp_halfspace":
                    found += [f for f in _walk(path, step) if f.reads != "not known"]
            is_step = False
    return found


def _walk(path: str, step: Any) -> Iterator[PipelineFinding]:
    """Check a step and the steps inside it."""
    if step is None or isinstance(step, str):
        return
    kind = type(step)
    name, library = kind.__name__, library_of(kind)
    shown = f"{path} ({name})" if path else name
    if library == "dp_halfspace":
        yield from _check_parameters(shown, step)
    elif kind.__module__.split(".")[0] == "imblearn" and name not in _CONTAINERS:
        yield PipelineFinding(shown, _RESAMPLED, "class_weight={...} of the classifier")
    elif library not in ("sklearn", "imblearn"):
        yield PipelineFinding(shown, "not known", "a step that stores nothing about the records")
    elif name in _READERS and not (name in _READS_NOTHING and _READS_NOTHING[name](step)):
        yield PipelineFinding(shown, *_READERS[name])
        if name.endswith("SearchCV"):
            yield from _check_splits(f"{path}__cv" if path else "cv", step.cv)
    elif name not in _READERS.keys() | _STATELESS | _CONTAINERS:
        stops = " and uses some of them for early stopping" if _stops_early(step) else ""
        yield PipelineFinding(shown, f"all records, without privacy{stops}", _MODEL)
    elif name in _REVEALS and _REVEALS[name][0](step):
        yield PipelineFinding(shown, *_REVEALS[name][1:])
    if library and name == "ColumnTransformer":
        yield from _check_columns(path, step)
    if name not in _STATELESS or not library:
        for inner, held in _inner_steps(step):
            yield from _walk(f"{path}__{inner}" if path else inner, held)


def _check_columns(path: str, step: Any) -> Iterator[PipelineFinding]:
    """Check how the columns of every transformer are chosen; a function gets the whole table.

    ``make_column_selector`` reads the public names, and dtypes if requested, which a reader of
    files infers from the records.
    """
    for held, _, columns in step.transformers:
        reads, kind = "", type(columns)
        if (library_of(kind), kind.__name__) == ("sklearn", "make_column_selector"):
            if columns.dtype_include is not None or columns.dtype_exclude is not None:
                reads = "dtypes of columns, which a reader may have inferred from the records"
        elif callable(columns):
            reads = "all records, which are passed to a function"
        if reads:
            shown = f"{path}__{held} (columns)" if path else f"{held} (columns)"
            yield PipelineFinding(shown, reads, "names or positions of columns")


def _inner_steps(step: Any) -> Iterator[tuple[str, Any]]:
    """Return the steps inside a step, with their names."""
    for group in ("steps", "transformer_list", "transformers", "estimators"):
        members = getattr(step, group, None)
        for i, held in enumerate(members if isinstance(members, list | tuple) else ()):
            yield (held[0], held[1]) if isinstance(held, tuple) else (str(i), held)
    for name in ("estimator", "final_estimator", "remainder"):
        if hasattr(getattr(step, name, None), "get_params"):
            yield name, getattr(step, name)


def _check_parameters(shown: str, step: Any) -> Iterator[PipelineFinding]:
    """Check whether the parameters of an estimator of this package weaken its guarantee."""
    if hasattr(step, "epsilon") and isinstance(step.random_state, Integral):
        reads = "noise from a seed, which anyone who knows the seed can subtract"
        yield PipelineFinding(shown, reads, "random_state=None")
    if getattr(step, "classes", ()) is None:
        yield PipelineFinding(shown, "the labels that occur", "classes=[...] stated")


def _stops_early(step: Any) -> bool:
    """Return whether a model of another library holds out records for early stopping."""
    counted = getattr(step, "n_iter_no_change", None) and not hasattr(step, "early_stopping")
    return bool(getattr(step, "early_stopping", False) or counted)


def _check_splits(shown: str, cv: Any) -> Iterator[PipelineFinding]:
    """Check which information a cross-validation uses to assign records to folds."""
    name = type(cv).__name__
    shown_kind, instead = f"{shown} ({name})", "KFold(5, shuffle=True) or ShuffleSplit"
    if cv is None or isinstance(cv, Integral) or "Stratified" in name:
        kind = name if "Stratified" in name else "stratified folds"
        yield PipelineFinding(f"{shown} ({kind})", "labels, to make the folds", instead)
    elif name not in _SPLITTERS or library_of(type(cv)) != "sklearn":
        yield PipelineFinding(shown_kind, "not known", instead)
    elif name == "GroupKFold" and not cv.shuffle:
        reads = "how many records each group has, to make folds of one size"
        yield PipelineFinding(shown_kind, reads, "GroupKFold(5, shuffle=True)")
    elif name in _GROUP_SPLITTERS and getattr(cv, "random_state", "fixed") is not None:
        # With secret randomness, the folds of the others have one distribution for all identifiers.
        reads = "the identifiers of groups, whose order decides which folds the others are in"
        yield PipelineFinding(shown_kind, reads, "GroupKFold(5, shuffle=True) without a seed")


def library_of(kind: type) -> str:
    """Return the library of a class; empty for a class that only has the name of another.

    Subclasses may override the known behaviour, so the class must be the one in its module.
    """
    held = getattr(sys.modules.get(kind.__module__), kind.__qualname__, None)
    return kind.__module__.split(".")[0] if held is kind else ""


def _is_dense(step: Any, *, is_of_frame: bool = False) -> bool:
    """Return whether the output of a step is dense for all records.

    Columns of a data frame that are passed through remain a data frame.
    """
    name = type(step).__name__
    if isinstance(step, str):
        return step == "drop" or is_of_frame
    if _gives_frames(step):
        return True
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


def _gives_frames(step: Any) -> bool:
    """Return whether a transformer returns data frames, and an error in place of CSR."""
    stated = getattr(step, "_sklearn_output_config", {})
    return bool(stated.get("transform", get_config()["transform_output"]) != "default")


def _are_names(columns: Any) -> bool:
    """Return whether columns are chosen by name, which is possible for data frames only."""
    names = columns if isinstance(columns, list) else [columns]
    return bool(names) and all(isinstance(name, str) for name in names)
