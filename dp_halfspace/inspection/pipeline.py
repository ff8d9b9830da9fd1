"""What stands around a private model and reads the records without paying.

A walk over the steps of a pipeline, by what is known of their classes; nothing is fitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from dp_halfspace.inspection._step_facts import (
    HOLDERS,
    READERS,
    SPLITTERS,
    STATED,
    STATELESS,
    column_finding,
    library_of,
    telling,
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
        generator or a ``PredefinedSplit`` it is not known what made them.

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
    outer = () if cv is None else _of_splits("cv", cv)
    return (*_walk("", estimator), *outer)


def _walk(path: str, step: Any) -> Iterator[PipelineFinding]:
    """Look at a step and at those that it holds."""
    if step is None or isinstance(step, str):
        return
    kind = type(step)
    name, library = kind.__name__, library_of(kind)
    shown = f"{path} ({name})" if path else name
    if library == "dp_halfspace":
        yield from _of_parameters(shown, step)
    elif kind.__module__.split(".")[0] == "imblearn" and name not in HOLDERS:
        yield PipelineFinding(shown, _RESAMPLED, "class_weight={...} of the classifier")
    elif library not in ("sklearn", "imblearn"):
        yield PipelineFinding(shown, "not known", "a step that keeps nothing of the records")
    elif name in READERS and not (name in STATED and STATED[name](step)):
        yield PipelineFinding(shown, *READERS[name])
        if name.endswith("SearchCV"):
            yield from _of_splits(f"{path}__cv" if path else "cv", step.cv)
    elif name not in READERS.keys() | STATELESS | HOLDERS:
        stops = " and stops early by some of them" if _stops_early(step) else ""
        yield PipelineFinding(shown, f"all records, without privacy{stops}", _MODEL)
    elif finding := telling(step):
        yield PipelineFinding(shown, *finding)
    if library and name == "ColumnTransformer":
        yield from _of_columns(path, step)
    if name not in STATELESS or not library:
        for inner, held in _held(step):
            yield from _walk(f"{path}__{inner}" if path else inner, held)


def _of_columns(path: str, step: Any) -> Iterator[PipelineFinding]:
    """Look at how the columns of every transformer are chosen."""
    for held, _, columns in step.transformers:
        if finding := column_finding(columns):
            place = f"{path}__{held}" if path else held
            yield PipelineFinding(f"{place} (columns)", *finding)


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
    shown_kind, instead = f"{shown} ({name})", "KFold(5, shuffle=True) or ShuffleSplit"
    if cv is None or isinstance(cv, Integral) or "Stratified" in name:
        kind = name if "Stratified" in name else "stratified folds"
        yield PipelineFinding(f"{shown} ({kind})", "labels, to make the folds", instead)
    elif name not in SPLITTERS or library_of(type(cv)) != "sklearn":
        yield PipelineFinding(shown_kind, "not known", instead)
    elif name == "GroupKFold" and not cv.shuffle:
        reads = "how many records each group has, to make folds of one size"
        yield PipelineFinding(shown_kind, reads, "GroupKFold(5, shuffle=True)")
