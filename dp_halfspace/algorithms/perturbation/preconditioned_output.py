"""Output perturbation of unit rows behind a private preconditioner.

Rows are mapped to where their released second moment is flat and brought back to norm one, each by
itself; then one regularised minimiser of all mapped rows is released with noise. Derivations:
``docs/proofs/stability.md``, section 8, and ``docs/proofs/preconditioner.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.algorithms.engine.defaults import PRECONDITIONER_SHARE
from dp_halfspace.algorithms.engine.plan import FloatArray
from dp_halfspace.algorithms.engine.preconditioner import (
    PreconditionerPlan,
    plan_preconditioner,
    release_preconditioner,
)
from dp_halfspace.algorithms.perturbation.output import OutputPlan, plan_output
from dp_halfspace.algorithms.perturbation.regulariser import mapped_row_ridge
from dp_halfspace.data.record_weights import Weights
from dp_halfspace.optim.risks import MarginRisk, SoftmaxRisk
from dp_halfspace.optim.solvers import Optimizer
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.rows.mapped_rows import FormedRows, MappedRows, formed_block_rows
from dp_halfspace.rows.rows import Rows, preconditioned


class Mapped(NamedTuple):
    """Released coefficients, for rows as given, and the released map behind them.

    The image of a row under `transform`, brought to norm one, is what the minimiser was for.
    """

    coefficients: FloatArray
    transform: FloatArray


@dataclass(frozen=True, slots=True)
class PreconditionedOutputPlan:
    """The public numbers of a preconditioner and of one noisy minimiser behind it."""

    preconditioner: PreconditionerPlan
    output: OutputPlan

    @property
    def events(self) -> tuple[Event, ...]:
        """What a run releases."""
        return (self.preconditioner.mechanism.event, *self.output.events)

    @property
    def public(self) -> dict[str, Any]:
        """What a record says about it."""
        return self.output.public

    def run(
        self, rows: Rows, classes: NDArray[np.intp], weights: Weights, permit: Permit
    ) -> Mapped:
        """Release the map and the minimiser; `rows` have norm one, otherwise as in `Plan`."""
        # 1. Release the second moment, and with it the map to where it is flat.
        # 2. Release the certified minimiser for the mapped rows, of norm one again, with noise.
        # 3. Map its coefficients back: post-processing.
        with single_blas_thread():
            # A rotation of the images changes no distribution, and makes half of the map zero.
            released = release_preconditioner(rows, self.preconditioner, permit)
            transform = np.asarray(
                np.linalg.qr(released @ np.eye(self.preconditioner.n_columns), mode="r")
            )
            # Without the images, roundings would be stretched by the map: the solver may do
            # without them, the certificate may not.
            unmapped = preconditioned(rows, transform, row_bound=self.preconditioner.compression)
            surrogate = MappedRows(unmapped, transform)
            formed = FormedRows(rows, transform)
            found = self.output.run(formed, classes, weights, permit, surrogate=surrogate)
            return Mapped(np.asarray(found @ transform), transform)


def mean_squares(transform: FloatArray, power: float) -> tuple[float, float]:
    """Estimate two means over the unit rows from a released map and the power it was used to.

    Of the squared length of the image of a row, and of the square of its last entry. The map is
    ``(H / n)^(-power / 2)`` with a moment ``H`` of trace n but for its floor, which is taken off
    again: ``docs/proofs/preconditioner.md``, section 2. Post-processing.
    """
    squares, directions = eigh(transform.T @ transform)
    moment = squares ** (-1.0 / power)
    floor = max(float(moment.sum()) - 1.0, 0.0) / len(moment)
    moment = np.maximum(moment - floor, 0.0)
    return float(squares @ moment), float(directions[-1] ** 2 @ moment)


def plan_preconditioned_output(
    risk: MarginRisk | SoftmaxRisk,
    budget: Budget,
    *,
    ridge: float | None = None,
    power: float = 1.0,
    optimizer: Optimizer = "auto",
    projects: bool = False,
) -> PreconditionedOutputPlan | None:
    """Divide a budget between the preconditioner and one noisy minimiser, for ``delta > 0``.

    The rows of the risk have norm at most one. `ridge` is per mean loss and raised to a public
    floor; None chooses it from public sizes. `power` of the map is used. None where the
    preconditioner is not worth its price: beyond 512 columns, or where the noise would drown it.
    Raises as :func:`plan_output`.
    """
    part, rest = budget.split(PRECONDITIONER_SHARE)
    sizes = (risk.n_samples, risk.n_columns, risk.block_rows)
    preconditioner = plan_preconditioner(*sizes, mu=part.mu)
    if preconditioner is None:
        return None
    formed = formed_block_rows(risk.n_samples, risk.n_columns)
    mapped = replace(risk, row_norm=1.0, block_rows=formed)
    plan = plan_output(
        mapped,
        mapped_row_ridge(mapped, rest.mu) if ridge is None else ridge,
        rest.noise,
        optimizer=optimizer,
        projects=projects,
    )
    return PreconditionedOutputPlan(replace(preconditioner, power=power), plan)
