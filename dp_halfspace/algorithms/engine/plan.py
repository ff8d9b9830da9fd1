"""Every private training algorithm is a plan of public numbers that is charged, then run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.data.chunks import Chunks
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import GaussianNoise, L2LaplaceNoise, NoNoise, Permit
from dp_halfspace.rows.rows import Rows

FloatArray: TypeAlias = NDArray[np.float64]
Noise: TypeAlias = GaussianNoise | L2LaplaceNoise | NoNoise


class Plan(Protocol):
    """A private training algorithm whose public numbers are fixed before the data are read.

    A fit makes a plan, charges its events, and only then runs it.
    """

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""

    def run(
        self, rows: Rows, classes: NDArray[np.intp], weights: FloatArray, permit: Permit
    ) -> FloatArray:
        """Train within the budget.

        `rows` have the public norm that was planned, constant column included; `classes` are
        the class indices of the records, `weights` the public weights of the classes; `permit`
        is charged with `events`. Returns released coefficients of shape (1, n_columns) or
        (n_classes, n_columns); using them further is post-processing.
        """


def rows_over(make: Callable[..., Any], X: Any, *arguments: Any, **options: Any) -> Any:
    """Return ``make(X, ...)``; if `X` comes in chunks, so do the rows: see `chunked_rows`."""
    if isinstance(X, Chunks):
        from dp_halfspace.rows.chunked_rows import chunked_rows  # noqa: PLC0415

        return chunked_rows(make, X, *arguments, **options)
    return make(X, *arguments, **options)
