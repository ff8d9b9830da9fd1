"""Detection of pipeline steps around a private model that read the records outside its budget.

The steps of a pipeline are checked by their classes and parameters. Nothing is fitted, and no data
are read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from dp_halfspace.data.cells import canonical


def _has_texts_for_categories(step: Any) -> bool:
    """Whether no reader takes a category for a number, a boolean, a date or a missing value."""
    lists = (column if isinstance(column, Iterable) else [column] for column in step.categories)
    categories = (each for column in lists for each in column)
    return all(isinstance(each, str) and isinstance(canonical(each), str) for each in categories)


# A value that the user states: neither a text, such as "auto", nor None.
_STATED = object()
_CATEGORIES = {"categories": _STATED, "min_frequency": None, "max_categories": None}
# Steps of scikit-learn that learn only public shapes and names if these parameters have these
# values. Every other step is a finding.
_STATELESS: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("Binarizer", "FeatureHasher", "FrozenEstimator")},
    **{name: {} for name in ("GaussianRandomProjection", "SparseRandomProjection")},
    **{name: {} for name in ("HashingVectorizer", "Normalizer", "PolynomialFeatures")},
    **{name: {} for name in ("FeatureUnion", "FixedThresholdClassifier")},
    "Pipeline": {"memory": None},
    # The format of its output, CSR or dense, would follow the number of zeros.
    "ColumnTransformer": {"sparse_threshold": 0},
    # Errors and warnings about categories that are not stated would quote them.
    "OneHotEncoder": {**_CATEGORIES, "handle_unknown": "ignore", "drop": None},
    "OrdinalEncoder": {
        **_CATEGORIES,
        "handle_unknown": "use_encoded_value",
        "unknown_value": _STATED,
    },
    "SimpleImputer": {"strategy": "constant", "keep_empty_features": True, "add_indicator": False},
    "SplineTransformer": {"knots": _STATED, "extrapolation": "constant"},
    "CountVectorizer": {"vocabulary": _STATED},
    "TfidfVectorizer": {"vocabulary": _STATED, "use_idf": False},
    "RBFSampler": {"gamma": _STATED},
    # Its warning tells whether the inverse restores some of the rows.
    "FunctionTransformer": {"check_inverse": False},
}
# Splitters that read neither labels nor other records.
_SPLITTERS = (
    *("KFold", "LeaveOneOut", "LeavePOut", "RepeatedKFold", "ShuffleSplit", "TimeSeriesSplit"),
    *("GroupKFold", "GroupShuffleSplit"),
)


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


SEVERAL = "one classifier of dp_halfspace with the whole budget"
# Models of scikit-learn whose result is an exact function of the records, and what to use instead.
NOT_PRIVATE = {
    **dict.fromkeys(("GridSearchCV", "RandomizedSearchCV"), "PrivateSearchCV"),
    **dict.fromkeys(("HalvingGridSearchCV", "HalvingRandomSearchCV"), "PrivateSearchCV"),
    "CalibratedClassifierCV": "PrivateTableClassifier, which has probabilities",
    "TunedThresholdClassifierCV": "PrivateThresholdClassifier",
    **dict.fromkeys(("StackingClassifier", "AdaBoostClassifier"), SEVERAL),
    **dict.fromkeys(("SelfTrainingClassifier", "RFECV", "SequentialFeatureSelector"), SEVERAL),
    # The number of records of each two labels is that of a fit.
    "OneVsOneClassifier": SEVERAL,
}
_READS = "the records, as far as is known"
_READS_TYPES = "dtypes of columns, which a reader may have inferred from the records"
_INSTEAD = "a step or classifier of dp_halfspace, stated values or a FrozenEstimator of public data"


def check_pipeline(estimator: Any, cv: Any = None) -> tuple[PipelineFinding, ...]:
    """Find every step around a private model that learns from the records without paying.

    Parameters
    ----------
    estimator : estimator object
        A classifier of this package, or a pipeline, column transformer, feature union, search or
        other meta-estimator of scikit-learn around one, fitted or not.
    cv : int, splitter, iterable of splits or None, default=None
        That of a cross-validation around the estimator; None means that there is none. What made
        splits in a list, a generator or a ``PredefinedSplit`` is not known. Folds of groups must be
        drawn without a seed, because scikit-learn sorts the groups by their identifiers.

    Returns
    -------
    tuple of PipelineFinding
        Empty if all steps are known to keep the guarantee: those of this package, and steps of
        scikit-learn that learn only public shapes and names with their parameters. All others are
        reported, and so are subclasses.

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
    standardscaler (StandardScaler) reads the records, as far as is known
    """
    outer = () if cv is None else check_splits("cv", cv)
    return (*_walk("", estimator), *outer)


def findings_of_pipeline(calls: Iterable[tuple[str, Mapping[str, Any]]]) -> list[PipelineFinding]:
    """Check the outermost pipeline that is being fitted, by the running calls, the outermost first.

    Steps of this package warn themselves, and those of other libraries are left to their users.
    """
    owners = (held.get("self") for name, held in calls if ".pipeline." in name and "fit" in name)
    outermost = next((owner for owner in owners if getattr(owner, "steps", None)), None)
    return [finding for finding in _walk("", outermost) if finding.reads == _READS]


def _walk(path: str, step: Any) -> Iterator[PipelineFinding]:
    """Check a step and the steps inside it."""
    if step is None or isinstance(step, str):
        return
    kind = type(step)
    name, library = kind.__name__, library_of(kind)
    shown = f"{path} ({name})" if path else name
    wanted = _STATELESS.get(name)
    if library == "dp_halfspace":
        yield from _check_parameters(shown, step)
    elif library not in ("sklearn", "imblearn"):
        reads = _READS if kind.__module__.startswith("imblearn.") else "not known"
        yield PipelineFinding(shown, reads, _INSTEAD)
    elif wanted is None or not all(_has(step, *value) for value in wanted.items()):
        instead = f"{name}({_written(wanted)})" if wanted else NOT_PRIVATE.get(name, _INSTEAD)
        yield PipelineFinding(shown, _READS, instead)
        if name.endswith("SearchCV"):
            yield from check_splits(f"{path}__cv" if path else "cv", step.cv)
    elif name in ("OneHotEncoder", "OrdinalEncoder") and not _has_texts_for_categories(step):
        # One text turns all numbers of a column into texts, which are no categories then.
        instead = "texts that are no numbers as categories, or PrivateTableClassifier with a schema"
        yield PipelineFinding(shown, _READS_TYPES, instead)
    if library and name == "ColumnTransformer":
        yield from _check_columns(path, step)
    if name != "FrozenEstimator" or not library:
        for inner, held in _inner_steps(step):
            yield from _walk(f"{path}__{inner}" if path else inner, held)


def _has(step: Any, parameter: str, value: Any) -> bool:
    """Return whether a parameter has a value, or one with which the step learns as little."""
    given = getattr(step, parameter)
    if value is _STATED:
        return not (given is None or isinstance(given, str))
    if parameter == "check_inverse" and None in (step.func, step.inverse_func):
        return True
    if parameter == "extrapolation":
        return bool(given != "error")
    return given is None if value is None else bool(given == value)


def _written(wanted: Mapping[str, Any]) -> str:
    return ", ".join(f"{k}={'...' if v is _STATED else repr(v)}" for k, v in wanted.items())


def _check_columns(path: str, step: Any) -> Iterator[PipelineFinding]:
    """Check how the columns of every transformer are chosen; a function gets the whole table.

    ``make_column_selector`` reads the public names, and dtypes if requested, which a reader of
    files infers from the records.
    """
    for held, _, columns in step.transformers:
        reads, kind = "", type(columns)
        if (library_of(kind), kind.__name__) == ("sklearn", "make_column_selector"):
            if columns.dtype_include is not None or columns.dtype_exclude is not None:
                reads = _READS_TYPES
        elif callable(columns):
            reads = "all records, which are passed to a function"
        if reads:
            shown = f"{path}__{held} (columns)" if path else f"{held} (columns)"
            yield PipelineFinding(shown, reads, "names or positions of columns")


def _inner_steps(step: Any) -> Iterator[tuple[str, Any]]:
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


def check_splits(shown: str, cv: Any) -> Iterator[PipelineFinding]:
    """Check which information a cross-validation uses to assign records to folds.

    Folds of groups are drawn by secret randomness, since the groups are sorted by their
    identifiers, and not by the sizes of the groups.
    """
    name = type(cv).__name__
    is_good = name in _SPLITTERS and library_of(type(cv)) == "sklearn"
    if name.startswith("Group"):
        is_good = is_good and getattr(cv, "shuffle", True) and cv.random_state is None
    if not is_good:
        instead = "KFold(5, shuffle=True), or GroupKFold(5, shuffle=True) without a seed"
        reads = "labels, groups or records, as far as is known, to make the folds"
        yield PipelineFinding(f"{shown} ({name})", reads, instead)


def library_of(kind: type) -> str:
    """Return the library of a class; empty for a class that only has the name of another.

    Subclasses may override the known behaviour, so the class must be the one in its module.
    """
    held = getattr(sys.modules.get(kind.__module__), kind.__qualname__, None)
    return kind.__module__.split(".")[0] if held is kind else ""
