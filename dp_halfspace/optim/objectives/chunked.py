"""The objective of records in chunks: a point travels there, sums over each chunk come back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dp_halfspace.data.chunks import Chunks
from dp_halfspace.optim.objectives.function import Objective, depth, finish
from dp_halfspace.rows.blocks import FloatArray
from dp_halfspace.rows.chunked_rows import ChunkedRows
from dp_halfspace.rows.rows import Rows

__all__ = ["ChunkedObjective", "chunked_objective"]

# An objective needs a ridge: that of a chunk adds nothing. Ridge and linear term are added here.
_NOTHING = 5e-324


@dataclass(frozen=True, slots=True)
class ChunkedObjective:
    """A sum over chunks of the objectives that `make` makes of rows and classes; see `Objective`.

    Roundings are within the bound for all rows at once: ``docs/proofs/certificate.md``, section 8.
    """

    rows: ChunkedRows
    classes: Chunks
    make: Callable[..., Objective]
    ridge: float
    linear: FloatArray | None
    size: int
    initial_gap: float
    gradient_lipschitz: float

    @property
    def n_records(self) -> int:
        """Number of records."""
        return self.rows.shape[0]

    def value_and_gradient(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return ``J(w)`` and its gradient; see `Objective`."""
        found = self._total(_value_and_gradient, w)
        return finish(float(found[0]), found[1:], w, self.ridge, self.linear)

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient; see `Objective`."""
        return finish(0.0, self._total(_gradient, w), w, self.ridge, self.linear)[1]

    def hessian(self, w: FloatArray) -> FloatArray:
        """Return a (generalised) Hessian; see `Objective`."""
        hessian = self._total(_hessian, w)
        hessian.flat[:: self.size + 1] += self.ridge
        return hessian

    def hessian_product(self, w: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the product with a (generalised) Hessian, made again for every vector."""
        return lambda v: self._total(_product, w, v) + self.ridge * v

    def subsample(self, n_rows: int) -> None:
        """Return None: every chunk would have to be read for it."""

    def _total(self, function: Callable[..., Any], *arguments: Any) -> FloatArray:
        """Add what a function of the objective of each chunk returns."""
        return self.rows.total(_asked, self.classes, self.make, function, *arguments)


def chunked_objective(
    make: Callable[..., Objective],
    rows: ChunkedRows,
    classes: Chunks,
    *,
    size: int,
    ridge: float,
    linear: FloatArray | None,
) -> ChunkedObjective:
    """Sum ``make(rows, classes)`` over chunks, with `ridge` on the scale of the sum."""
    gap, lipschitz = rows.total(_asked, classes, make, _bounds).tolist()
    bounds = gap + depth(linear, ridge), lipschitz + ridge
    return ChunkedObjective(rows, classes, make, ridge, linear, size, *bounds)


def _asked(rows: Rows, classes: Any, make: Any, function: Any, *arguments: Any) -> Any:
    return function(make(rows, classes, ridge=_NOTHING, linear=None), *arguments)


def _bounds(part: Objective) -> FloatArray:
    return np.array([part.initial_gap, part.gradient_lipschitz])


def _gradient(part: Objective, w: FloatArray) -> FloatArray:
    return part.gradient(w)


def _value_and_gradient(part: Objective, w: FloatArray) -> FloatArray:
    return np.append(*part.value_and_gradient(w))


def _hessian(part: Objective, w: FloatArray) -> FloatArray:
    return part.hessian(w)


def _product(part: Objective, w: FloatArray, v: FloatArray) -> FloatArray:
    return part.hessian_product(w)(v)
