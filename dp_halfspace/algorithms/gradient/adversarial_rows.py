"""Rows that an adversary moves a little, as noisy gradient steps see them.

Every margin is lowered by the same function of the coefficients, which are public when a step
is computed. Proofs: ``docs/proofs/noisy_gradient.md``, "With an adversary".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.optim.design.clipping import clip_scales
from dp_halfspace.optim.design.rows import Rows
from dp_halfspace.optim.objectives.adversary import Adversary

__all__ = ["AdversarialRows", "scaled_rows"]

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class AdversarialRows:
    """Rows of two classes that an adversary moves.

    Attributes
    ----------
    rows : Rows of shape (n, D)
        Of norm at most one.
    signs : ndarray of shape (n,)
        Labels, in {-1, 1}.
    attack : Adversary
        In the units of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim.objectives.adversary import Adversary
    >>> from dp_halfspace.algorithms.gradient.adversarial_rows import AdversarialRows
    >>> from dp_halfspace.optim.design.rows import Rows
    >>> attack = Adversary(0.25, 2, n_features=1, smoothing=1e-9)
    >>> rows = AdversarialRows(Rows(np.array([[1.0], [1.0]])), np.array([1.0, -1.0]), attack)
    >>> margins = []
    >>> keep = lambda m, lo, hi: margins.append(m.round(6)) or m
    >>> rows.fused_adjoint(np.array([2.0]), keep).round(6)
    array([4.25])
    >>> margins
    [array([1.5, 2.5])]
    """

    rows: Rows
    signs: FloatArray
    attack: Adversary

    def fused_adjoint(
        self, w: FloatArray, slopes: Callable[[FloatArray, int, int], FloatArray]
    ) -> FloatArray:
        """Return the sum of ``p_i (y_i z_i - radius u)`` in one pass over the rows.

        Parameters
        ----------
        w : ndarray of shape (D,)
            Public; ``u`` is the gradient of the dual norm there.
        slopes : callable
            From the margins ``<z_i, w> - y_i radius N(w)`` of the rows ``lo`` to ``hi - 1`` to
            ``p_i y_i``.
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

    Parameters
    ----------
    X : ndarray, csr_array or csr_matrix of shape (n, d)
        Finite features.
    data_norm : float
        Public scale of a row. Longer rows are scaled down to it before the constant is appended.
    bias : float or None
        Public constant column, positive; None for none.

    Returns
    -------
    Rows
        Of norm at most one as real numbers, but for roundings of a part in 2^50. All rows have
        the same factor, so that a change of a given size means the same for each of them.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.algorithms.gradient.adversarial_rows import scaled_rows
    >>> scaled_rows(np.array([[6.0, 0.0], [1.5, 0.0]]), 3.0, 0.75).margins(np.ones(3)).round(12)
    array([1.4, 1. ])
    """
    length = np.hypot(1.0, bias or 0.0)
    scale = clip_scales(X, data_norm) / (data_norm * length)
    return Rows(X, scale, None if bias is None else bias / length, row_bound=1.0 + 2.0**-50)
