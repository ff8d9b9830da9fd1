"""A minimiser of the user's own: what it is shown, and how it is kept from showing anything.

It runs on private data and is not part of the proof. Its answer is only a starting point for the
certificate. Warnings, log lines, exceptions and prints of Python are dropped; what it writes to
other places is the user's own.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dp_halfspace.optim.objectives.function import Objective
from dp_halfspace.optim.objectives.margin import MarginObjective
from dp_halfspace.optim.objectives.softmax import SoftmaxObjective
from dp_halfspace.optim.solvers.newton import project
from dp_halfspace.rows.blocks import FloatArray


@dataclass(frozen=True, slots=True)
class FiniteSum:
    r"""What a callable `optimizer` may ask of the function that it minimises.

    The mean over records ``F(w) = mean(f_i(w))``, where every ``f_i`` is the weighted loss of one
    record plus ``strong_convexity / 2 ||w||^2`` (and, in objective perturbation, the random
    linear term). With three classes or more the coefficients of all classes are one vector.

    Parameters
    ----------
    objective : Objective
        The same function on the scale of the sum over records.
    radius : float
        Public bound on the norm of the minimiser.

    Notes
    -----
    Calling the object gives value and gradient together, as ``scipy.optimize.minimize`` takes
    them with ``jac=True``. All arrays that go in and out are copies.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim import LOGISTIC, MarginObjective, clipped_rows
    >>> from dp_halfspace.optim.solvers.black_box import FiniteSum
    >>> rows = clipped_rows(np.array([[1.0], [-0.5]]), bound=1.0)
    >>> F = FiniteSum(MarginObjective(rows, np.array([1, -1]), np.ones(2), LOGISTIC, 0.2), 9.0)
    >>> F.n_samples, F.size, F.strong_convexity
    (2, 1, 0.1)
    >>> w = np.array([0.3])
    >>> each = [F.gradient_of([i], w) for i in range(2)]
    >>> bool(np.allclose(np.mean(each, axis=0), F.gradient(w)))
    True
    """

    objective: Objective = field(repr=False)
    radius: float

    @property
    def n_samples(self) -> int:
        """Number of records."""
        return self.objective.n_records

    @property
    def size(self) -> int:
        """Number of coefficients, those of all classes together."""
        return self.objective.size

    @property
    def strong_convexity(self) -> float:
        """Modulus of strong convexity of every ``f_i``."""
        return self.objective.ridge / self.n_samples

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of the gradient of every ``f_i``, `strong_convexity` included."""
        return self.objective.gradient_lipschitz / self.n_samples

    def __call__(self, w: ArrayLike) -> tuple[float, FloatArray]:
        """Return ``F(w)`` and its gradient."""
        value, gradient = self.objective.value_and_gradient(self._point(w))
        return float(value) / self.n_samples, gradient / self.n_samples

    def value(self, w: ArrayLike) -> float:
        """Return ``F(w)``."""
        return self(w)[0]

    def gradient(self, w: ArrayLike) -> FloatArray:
        """Return the gradient of ``F``."""
        return self.objective.gradient(self._point(w)) / self.n_samples

    def gradient_of(self, indices: ArrayLike, w: ArrayLike) -> FloatArray:
        """Return the gradient of the mean of some ``f_i``.

        Parameters
        ----------
        indices : int or array-like of int of shape (m,)
            Numbers of the records, at least one; repeated ones count as often as they occur.
        w : array-like of shape (size,)

        Returns
        -------
        ndarray of shape (size,)
            For one uniformly drawn record, an unbiased estimate of the gradient of ``F``.

        Raises
        ------
        ValueError
            If the objective has a tilt: then it is no mean over records.
        """
        index = np.atleast_1d(np.asarray(indices, dtype=np.intp))
        objective = self.objective
        if not isinstance(objective, MarginObjective | SoftmaxObjective) or (
            isinstance(objective, MarginObjective) and objective.tilt
        ):
            raise ValueError("this objective is no mean over records: use its full gradient")
        part = objective.records(index, self.n_samples / index.size)
        return part.gradient(self._point(w)) / self.n_samples

    def _point(self, w: ArrayLike) -> FloatArray:
        """Copy a point that the caller may go on changing."""
        return np.array(w, dtype=np.float64).reshape(self.size)


def silent_answer(
    optimizer: Callable[[FiniteSum, FloatArray], Any], objective: Objective, radius: float
) -> FloatArray:
    """Run a callable in silence and return a fresh point of the ball; zero in place of no answer.

    `radius` is a public bound on the norm of the minimiser. Only `KeyboardInterrupt` passes: it
    is the user's own.
    """
    start = np.zeros(objective.size)
    try:
        with silenced(), np.errstate(all="ignore"):
            return _in_ball(optimizer(FiniteSum(objective, radius), start.copy()), start, radius)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - what is raised may depend on the data
        return start


def _in_ball(answer: Any, start: FloatArray, radius: float) -> FloatArray:
    """Copy an answer and bring it to the ball of the minimisers; the start if it is no vector."""
    w = np.asarray(answer)
    if w.dtype.kind not in "biuf" or w.shape != start.shape:
        return start
    w = np.array(w, dtype=np.float64)
    return project(w, radius) if np.isfinite(w).all() else start


# Warning filters and streams belong to the process, so one optimizer runs at a time.
_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def silenced() -> Iterator[None]:
    """Drop warnings, log lines and what is written to `sys.stdout` and `sys.stderr`.

    What other threads print in the meantime is dropped, too. Output past these two names, by
    compiled code or to a stream that the block kept or opened itself, is not.
    """
    with ExitStack() as stack:
        stack.enter_context(_ONE_AT_A_TIME)
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.callback(logging.disable, logging.root.manager.disable)
        logging.disable(sys.maxsize)
        nowhere = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
        stack.enter_context(redirect_stdout(nowhere))
        stack.enter_context(redirect_stderr(nowhere))
        yield
