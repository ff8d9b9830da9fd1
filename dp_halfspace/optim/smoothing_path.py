"""A way to the minimiser under attack when the dual norm is almost not smoothed.

The kinks of a dual norm stop Newton steps from afar. The minimisers of wider smoothings lead
there: a coefficient at a kink shrinks in proportion to the smoothing, the others hardly move.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.optim.descent import newton, newton_cg, point_at
from dp_halfspace.optim.objectives import MAX_DENSE
from dp_halfspace.optim.robust_objective import RobustObjective

__all__ = ["smoothing_path"]

FloatArray: TypeAlias = NDArray[np.float64]

_WIDEST, _FACTOR = 1e-2, 0.1
# A coefficient this many smoothings from zero is not at the kink.
_AT_KINK = 3.0
_STEPS, _PASSES = 30, 300
_ROUGH = 1e-4


def smoothing_path(objective: RobustObjective) -> FloatArray:
    """Return a point near the minimiser, along the minimisers of wider smoothings.

    Parameters
    ----------
    objective : RobustObjective
        With an attack.

    Returns
    -------
    ndarray of shape (size,)
        Without a certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim.attack import Attack
    >>> from dp_halfspace.optim.losses import LOGISTIC
    >>> from dp_halfspace.optim.robust_objective import RobustObjective
    >>> from dp_halfspace.optim.rows import Rows
    >>> from dp_halfspace.optim.smoothing_path import smoothing_path
    >>> rows, attack = Rows(np.array([[1.0, 0.1]])), Attack(0.2, "inf", 2, smoothing=1e-12)
    >>> J = RobustObjective(rows, np.ones(1), np.ones(1), LOGISTIC, 0.1, attack=attack)
    >>> smoothing_path(J).round(3) + 0.0
    array([1.668, 0.   ])
    """
    w = np.zeros(objective.size)
    if objective.attack is None:
        return w
    last = objective.attack.smoothing
    smoothing = max(_WIDEST, last)
    start = point_at(objective, w)
    target = _ROUGH * start.norm
    while True:
        attack = objective.attack.smoothed(smoothing)
        wider = replace(objective, attack=attack)
        start = point_at(wider, w)
        if objective.size <= MAX_DENSE:
            w = newton(wider, start, target, _STEPS).w
        else:
            w = newton_cg(wider, start, target, _PASSES).w
        if smoothing <= last:
            return w
        narrower = max(smoothing * _FACTOR, last)
        w = w * np.where(attack.near_kink(w, _AT_KINK), narrower / smoothing, 1.0)
        smoothing = narrower
