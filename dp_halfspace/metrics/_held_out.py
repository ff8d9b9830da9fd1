"""Held-out records, checked, and what a model that is given makes of each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_halfspace._sklearn_compat import rows_of
from dp_halfspace.data.chunked_data import labelled_chunks, travelling
from dp_halfspace.data.chunks import Chunks, apply_to_chunks, kept
from dp_halfspace.data.people import People
from dp_halfspace.data.validation import (
    check_lengths,
    class_indices,
    is_chunked,
    refuse_mask,
    sort_by_person,
)


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Checked records; those of one person stand together in `order`, as the labels do.

    `classes` are sorted, as the codes of labels are, whatever their order in the model. Of scores
    by group, `group` is the number of the group of each record, in the order of the labels.
    """

    X: Any
    codes: Any
    classes: NDArray[Any]
    people: People | None = None
    order: Any = None
    group: NDArray[np.intp] | None = None
    n_groups: int = 1

    @property
    def n(self) -> int:
        """Public number of records, or of people."""
        return int(self.codes.shape[0]) if self.people is None else len(self.people)

    def outcomes(self, outcome: Callable[..., Any], model: Any) -> Any:
        """Return what the model makes of each record, by itself, which stays beside it."""
        if isinstance(self.X, Chunks):
            model = travelling(model)
            # What is wrong with the columns is said before anything travels.
            codes = np.zeros(len(self.X.sample), dtype=np.intp)
            outcome(model, self.X.sample, codes, self.classes)
        if self.people is None:
            return kept(apply_to_chunks(_by_rows, self.X, outcome, model, self.codes, self.classes))

        def of(index: NDArray[np.intp]) -> NDArray[Any]:
            rows = rows_of(self.X, self.order[index])
            return np.asarray(outcome(model, rows, self.codes[index], self.classes))

        return self.people.row_by_row(of)


def _by_rows(X: Any, outcome: Callable[..., Any], model: Any, *labels: Any) -> Any:
    """Call a function of a model with the rows first, as chunks are mapped."""
    return outcome(model, X, *labels)


def known_classes(model: Any) -> NDArray[Any]:
    """Return the public label set of a model, in its order."""
    if not hasattr(model, "classes_"):
        raise ValueError("model must be a fitted classifier: it has no attribute classes_")
    return np.asarray(model.classes_)


def held_out(model: Any, X: Any, y: ArrayLike, groups: Any) -> HeldOut:
    """Check the schema of the records against the model."""
    classes = known_classes(model)
    if is_chunked(X):
        rows, labels = labelled_chunks(X, y, classes)
        sort_by_person(groups, rows)  # refuses groups
        return HeldOut(rows, labels, np.unique(classes))
    refuse_mask("X", X)
    codes, classes = class_indices(y, classes)
    check_lengths(X, codes, hides_rows=groups is not None)
    order, people, codes = sort_by_person(groups, np.arange(len(codes)), codes)
    return HeldOut(X, codes, classes, people, order)
