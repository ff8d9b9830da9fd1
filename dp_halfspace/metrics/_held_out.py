"""Validated held-out records, the model outputs for them, and groups of records.

A record is in one group, so one noisy table of confusions for each group has the sensitivity of one
table, for any number of groups (``docs/proofs/metrics.md``, sections 1 and 5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from dp_halfspace._sklearn_compat import rows_of
from dp_halfspace.data.chunked_data import labelled_chunks, of_rows, without_ledger_and_seed
from dp_halfspace.data.chunks import Chunks, apply_to_chunks, kept
from dp_halfspace.data.owners import sort_by_person
from dp_halfspace.data.people import People
from dp_halfspace.data.sparse_rows import checked_csr
from dp_halfspace.data.validation import (
    call_silently,
    check_length,
    class_indices,
    is_chunked,
    n_rows,
    refuse_foreign_arrays,
)

_MODEL_FAILED = (
    "the model failed for these records, and its message may quote them: call its methods yourself"
)


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Checked records; `order` and the labels keep the records of one person together.

    `classes` are sorted, as the codes of labels are, whatever their order in the model. `values`
    are what a model says of each record, in the order of the codes.
    """

    X: Any
    codes: Any
    classes: NDArray[Any]
    people: People | None = None
    order: Any = None
    n_groups: int = 1
    values: Any = None

    @property
    def n(self) -> int:
        """Public number of records, or of people."""
        return int(self.codes.shape[0]) if self.people is None else len(self.people)

    @property
    def unit(self) -> str:
        """What is counted: records, or people."""
        return "records" if self.people is None else "persons"

    def outcomes(self, outcome: Callable[..., Any], model: Any) -> Any:
        """Return the model output for each record, computed independently, next to the record.

        What the model says of the records is private: a warning may be about a single one.
        """
        return call_silently(lambda: self._outcomes(outcome, model), _MODEL_FAILED)

    def _outcomes(self, outcome: Callable[..., Any], model: Any) -> Any:
        nothing = None
        if isinstance(self.X, Chunks):
            model = without_ledger_and_seed(model)
            # Columns are checked before any chunk is sent to a worker.
            codes = np.zeros(len(self.X.sample), dtype=np.intp)
            nothing = outcome(model, self.X.sample, codes, self.classes)[:0]
        if self.people is None:
            about = (outcome, model, nothing, self.codes, self.classes)
            return kept(apply_to_chunks(of_rows, self.X, *about))

        def of(index: NDArray[np.intp]) -> NDArray[Any]:
            rows = rows_of(self.X, self.order[index])
            return np.asarray(outcome(model, rows, self.codes[index], self.classes))

        return self.people.row_by_row(of)


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
    refuse_foreign_arrays("X", X)
    # Rows are taken from the matrix before the model checks them.
    X = checked_csr(X) if sparse.issparse(X) else X
    codes, classes = class_indices(y, classes)
    check_length("y", codes, n_rows(X), hides_rows=groups is not None)
    if not len(codes):
        raise ValueError("X has no rows")
    order, people, codes = sort_by_person(groups, np.arange(len(codes)), codes)
    return HeldOut(X, codes, classes, people, order)
