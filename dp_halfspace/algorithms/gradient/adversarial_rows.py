"""Rows that an adversary moves a little, as noisy gradient steps see them.

Every margin is lowered by the same function of the coefficients, which are public when a step
is computed. Proofs: ``docs/proofs/noisy_gradient.md``, "With an adversary".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dp_halfspace._rounding import UP
from dp_halfspace.algorithms.plan import FloatArray
from dp_halfspace.optim.design.blocks import clip_scales
from dp_halfspace.optim.design.rows import Rows
from dp_halfspace.optim.objectives.adversary import Adversary


@dataclass(frozen=True, slots=True, eq=False)
class AdversarialRows:
    """Rows of norm at most one and of two classes, with `signs` in {-1, 1}, under an attack."""

    rows: Rows
    signs: FloatArray
    attack: Adversary

    def fused_adjoint(
        self, w: FloatArray, slopes: Callable[[FloatArray, int, int], FloatArray]
    ) -> FloatArray:
        """Return the sum of ``p_i (y_i z_i - radius u)`` in one pass over the rows.

        Here ``u`` is the gradient of the dual norm N at the public `w`; `slopes` turns the
        margins ``<z_i, w> - y_i radius N(w)`` of the rows ``lo`` to ``hi - 1`` into ``p_i y_i``.
        """
        lowered = self.attack.radius * self.attack.dual_norm(w)
        mass = 0.0

        def under_attack(margins: FloatArray, lo: int, hi: int) -> FloatArray:
            nonlocal mass
            signs = self.signs[lo:hi]
            margins -= lowered * signs
            pulls = slopes(margins, lo, hi)
            mass += float(signs @ pulls)
            return pulls

        ascent = self.rows.fused_adjoint(w, under_attack)
        return ascent - (self.attack.radius * mass) * self.attack.gradient(w)


def scaled_rows(X: Any, data_norm: float, bias: float | None) -> Rows:
    """Return the rows ``[x / data_norm, bias]``, divided by the norm of the longest.

    Rows longer than the public `data_norm` are scaled down to it before the public constant is
    appended. The result has norm at most one as real numbers, but for roundings of a part in
    2^50. All rows have the same factor, so that a change of a given size means the same for each.
    """
    length = np.hypot(1.0, bias or 0.0)
    scale = clip_scales(X, data_norm) / (data_norm * length)
    return Rows(X, scale, None if bias is None else bias / length, row_bound=UP)
