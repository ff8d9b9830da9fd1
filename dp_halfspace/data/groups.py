"""Who owns which rows: what users hand in as groups, checked, and rows sorted by it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dp_halfspace.data.people import People
from dp_halfspace.data.validation import (
    TrainingData,
    are_chunks,
    is_arrow_scalar,
    is_missing,
    refuse_mask,
)


def owned_by(groups: Any, data: TrainingData) -> TrainingData:
    """Return a training set sorted by person."""
    X, people, codes = sorted_by_person(groups, data.X, data.codes)
    return replace(data, X=X, codes=codes, people=people)


def sorted_by_person(groups: Any, X: Any, codes: Any = None) -> tuple[Any, People | None, Any]:
    """Sort rows and codes by person, people in order of their first rows, if there are groups."""
    if groups is None:
        return X, None, codes
    if are_chunks(X):
        raise ValueError("groups is not supported for rows in chunks: give them as arrays")
    owner = _owners(groups, X.shape[0])
    order = np.argsort(owner, kind="stable")
    if sparse.issparse(X):
        rows = X[order]
    else:
        rows = np.empty_like(X)  # in the order of X, which lengths of rows are summed in
        np.take(X, order, axis=0, out=rows)
    return rows, People(np.bincount(owner)), None if codes is None else codes[order]


def _owners(groups: Any, n_rows: int) -> NDArray[np.intp]:
    """Return the person of each row, numbered by first rows; no error shows or counts any."""
    refuse_mask("groups", groups)
    rule = "groups must be one-dimensional: one hashable value, who it belongs to, for each row"
    if isinstance(groups, str | bytes) or getattr(groups, "ndim", 1) != 1:
        raise ValueError(rule)
    number: dict[Any, int] = {}
    try:
        values = groups.tolist() if hasattr(groups, "tolist") else list(groups)
        owners = [number.setdefault(value, len(number)) for value in values]
        has_missing = any(map(_has_missing_part, number))
    except (TypeError, ValueError, ArithmeticError):
        values, has_missing = None, False
    if values is None or len(values) != n_rows:  # outside, so that no other message is a context
        raise ValueError(rule)
    if has_missing:
        raise ValueError("groups contains a missing value: every row needs a person")
    return np.array(owners, dtype=np.intp)


def _has_missing_part(owner: Any) -> bool:
    """Tell whether a value, or a part of a tuple or of what Arrow nests, is missing."""
    parts = [owner]
    while parts:
        part = parts.pop()
        if is_missing(part):
            return True
        if is_arrow_scalar(part):
            part = part.as_py()
        if isinstance(part, dict):
            parts += [*part.keys(), *part.values()]
        elif isinstance(part, tuple | frozenset | list):
            parts += part
    return False
