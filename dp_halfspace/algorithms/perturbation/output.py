"""Output perturbation: the minimiser of a regularised risk, with noise.

The risk says how far one record can move its minimiser. The solver certifies how near it came
to it, and twice that distance is added. The sum is the sensitivity that the noise hides.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import UP
from dp_halfspace.algorithms.engine.plan import FloatArray
from dp_halfspace.data.record_weights import Weights
from dp_halfspace.optim.certificate import Tolerance
from dp_halfspace.optim.risks import Risk, minimisers, tolerance
from dp_halfspace.optim.solvers import Optimizer
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.interception import Mechanism
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.rows.mapped_rows import Design


@dataclass(frozen=True, slots=True)
class OutputPlan:
    """The public numbers of one noisy minimiser.

    `radius` bounds the norm of each separate exact minimiser, `tolerance` is what the solver must
    certify for it. `sensitivity` bounds the distance of the *computed* minimisers of neighbouring
    data sets, all problems together: exact sensitivity, twice the certified distance, rounding.
    If it `projects`, the release is brought back to the ball of all minimisers.
    """

    risk: Risk
    ridge: float
    radius: float
    tolerance: Tolerance
    sensitivity: float
    noise: Mechanism
    optimizer: Optimizer = "auto"
    projects: bool = False

    @property
    def events(self) -> tuple[Event, ...]:
        """What a run releases."""
        return (self.noise.event,)

    @property
    def public(self) -> dict[str, Any]:
        """What a record says about it."""
        return {
            "alpha": self.ridge,
            "sensitivity": self.sensitivity,
            "mechanism": type(self.noise).__name__,
        }

    def run(
        self,
        rows: Design,
        classes: NDArray[np.intp],
        weights: Weights,
        permit: Permit,
        *,
        surrogate: Design | None = None,
    ) -> FloatArray:
        """Release the certified minimiser; see `Plan`.

        `surrogate` are the same rows with cheaper passes, as in
        :func:`~dp_halfspace.optim.risks.minimisers`.
        """
        # 1. Minimise the regularised risk to a certified distance, on every data set.
        # 2. Release the point with noise for its sensitivity and twice that distance.
        # 3. If asked for, bring it back to where minimisers can be: post-processing.
        exact = minimisers(
            self.risk,
            rows,
            classes,
            weights,
            ridge=self.ridge,
            target=self.tolerance.target,
            radius=self.radius,
            optimizer=self.optimizer,
            surrogate=surrogate,
        )
        released = permit.release(exact, self.noise)
        # All minimisers lie in this ball, so going back to it costs no budget.
        largest = self.radius * math.sqrt(self.risk.n_stacked)
        norm = float(np.linalg.norm(released))
        return released * (largest / norm) if self.projects and norm > largest else released


def plan_output(
    risk: Risk,
    ridge: float,
    noise: Callable[[float], Mechanism],
    *,
    optimizer: Optimizer = "auto",
    projects: bool = False,
) -> OutputPlan:
    """Fix every public number of a noisy minimiser.

    `ridge` is raised to :attr:`Risk.least_ridge`; `noise` turns a sensitivity into the mechanism
    that the budget covers. It is a `CertificateError` if floating-point error alone would
    double the noise: decided from public numbers, before any data are read.

    References: ``docs/proofs/stability.md``, section 5, and ``docs/proofs/certificate.md``; for
    pairs ``docs/proofs/pairwise.md``.
    """
    ridge = max(ridge, risk.least_ridge)
    radius, exact, total = risk.radius(ridge), risk.sensitivity(ridge), risk.total(ridge)
    goal = tolerance(risk, ridge, radius, exact * total)
    sensitivity = math.sqrt(risk.n_stacked) * (exact + 2.0 * (goal.certified / total)) * UP
    mechanism = noise(sensitivity)
    return OutputPlan(risk, ridge, radius, goal, sensitivity, mechanism, optimizer, projects)
