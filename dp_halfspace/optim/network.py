"""Networks with one hidden layer, many at once, and what they get wrong.

A candidate is one vector of standard Gaussian size: weights into the hidden units, weights out
of them, one output bias. The count of errors has a step that is not quite vertical, so that a
record cannot change the error of another one through the last bits of a matrix product. Proofs:
``docs/proofs/pure_network.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Network",
    "NetworkShape",
    "network_losses",
    "network_sensitivity",
    "smallest_budget",
]

FloatArray: TypeAlias = NDArray[np.float64]

# Inputs are at most one long: units must be steep to bend inside the unit ball.
_GAIN, _BIAS_GAIN = 5.5, 4.0
# No weight vector of a unit is longer, which bounds rounding errors; Gaussian ones are not.
_LONGEST = 2.0**7
# Width of the step from right to wrong, relative to the largest score of a network.
_STEP = 2.0**-16
_SMALLEST = 1e-300
_ENTRIES = 2**19  # activations that are in memory at a time
# A choice among fewer networks than this is not worth its name.
_FEWEST_CANDIDATES = 100


@dataclass(frozen=True, slots=True)
class Network:
    """The layers of one or of several networks.

    Attributes
    ----------
    weights : ndarray of shape (..., n_inputs, n_hidden)
        Into the hidden units.
    biases : ndarray of shape (..., n_hidden)
        Of the hidden units.
    outputs : ndarray of shape (..., n_hidden)
        Out of them.
    bias : ndarray of shape (...,)
        Of the score.
    """

    weights: FloatArray
    biases: FloatArray
    outputs: FloatArray
    bias: FloatArray


@dataclass(frozen=True, slots=True)
class NetworkShape:
    """Public sizes of a network.

    Attributes
    ----------
    n_inputs, n_hidden : int
    bias : float or None
        Relative size of the biases; None for none.

    Examples
    --------
    >>> from dp_halfspace.optim.network import NetworkShape
    >>> NetworkShape(2, 6, 1.0).size, NetworkShape(2, 6, None).size
    (25, 18)
    """

    n_inputs: int
    n_hidden: int
    bias: float | None

    @property
    def size(self) -> int:
        """Number of parameters."""
        n_biases = 0 if self.bias is None else self.n_hidden + 1
        return (self.n_inputs + 1) * self.n_hidden + n_biases

    def layers(self, candidates: FloatArray) -> Network:
        """Cut parameters into layers.

        Parameters
        ----------
        candidates : ndarray of shape (m, size)

        Returns
        -------
        Network
            Of m networks.
        """
        m, n_weights = len(candidates), self.n_inputs * self.n_hidden
        weights = candidates[:, :n_weights].reshape(m, self.n_inputs, self.n_hidden) * _GAIN
        lengths = np.sqrt(np.einsum("mih,mih->mh", weights, weights))
        weights *= (_LONGEST / np.maximum(lengths, _LONGEST))[:, None, :]
        outputs = candidates[:, n_weights : n_weights + self.n_hidden]
        if self.bias is None:
            return Network(weights, np.zeros((m, self.n_hidden)), outputs, np.zeros(m))
        biases = candidates[:, n_weights + self.n_hidden : -1] * (_BIAS_GAIN * self.bias)
        biases = np.clip(biases, -_LONGEST, _LONGEST)
        bias = candidates[:, -1] * (math.sqrt(self.n_hidden) * self.bias)
        return Network(weights, biases, outputs, bias)


def network_losses(
    shape: NetworkShape, points: FloatArray, positive: NDArray[np.bool_], weights: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """Return a function that counts the errors of networks.

    Parameters
    ----------
    shape : NetworkShape
    points : ndarray of shape (n, n_inputs)
        Rows of norm at most one.
    positive : ndarray of shape (n,), bool
        Records of the second class.
    weights : ndarray of shape (2,)
        Public weights of the classes, in [0, 1].

    Returns
    -------
    callable
        Maps candidates of shape (m, size) to weighted numbers of errors of shape (m,). A
        record whose score is within 2^-17 of zero, relative to the largest score that the
        network can give, counts in part.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.optim.network import NetworkShape, network_losses
    >>> points, positive = np.array([[-1.0], [0.5], [1.0]]), np.array([False, True, False])
    >>> losses = network_losses(NetworkShape(1, 1, None), points, positive, np.ones(2))
    >>> losses(np.array([[1.0, 1.0], [1.0, -1.0]]))
    array([1., 2.])
    """
    n_samples = len(points)
    signed = np.where(positive, -weights[1], weights[0])
    # A positive record is wrong below zero: one minus what a negative one would add.
    base = float(weights[1]) * np.count_nonzero(positive)

    def losses(candidates: FloatArray) -> FloatArray:
        network = shape.layers(candidates)
        m = len(candidates)
        flat = network.weights.transpose(1, 0, 2).reshape(shape.n_inputs, -1)
        largest = np.abs(network.outputs).sum(axis=1) + np.abs(network.bias)
        steepness = 1.0 / np.maximum(largest * _STEP, _SMALLEST)
        total = np.full(m, base)
        rows = max(1, _ENTRIES // flat.shape[1])
        for lo in range(0, n_samples, rows):
            active = (points[lo : lo + rows] @ flat).reshape(-1, m, shape.n_hidden)
            active += network.biases
            np.tanh(active, out=active)
            scores = np.einsum("imh,mh->im", active, network.outputs) + network.bias
            scores *= steepness
            total += signed[lo : lo + rows] @ np.clip(scores + 0.5, 0.0, 1.0)
        return total

    return losses


def network_sensitivity(n_samples: int, shape: NetworkShape) -> float:
    """Bound the change of any loss when one record is replaced.

    Parameters
    ----------
    n_samples : int
    shape : NetworkShape

    Returns
    -------
    float
        1 plus what rounding errors of the other records can add.

    References
    ----------
    ``docs/proofs/pure_network.md``, section 1.

    Examples
    --------
    >>> from dp_halfspace.optim.network import NetworkShape, network_sensitivity
    >>> 1.0 < network_sensitivity(1000, NetworkShape(2, 6, 1.0)) < 1.001
    True
    """
    per_score = (shape.n_inputs + 4) * _LONGEST * 2.0 + shape.n_hidden + 32
    rounding = 2.0 * n_samples * per_score * 2.0**-53 / _STEP
    return 1.0 + 2.0**-30 + rounding + 2.0**-50 * n_samples * n_samples


def smallest_budget() -> float:
    """Return the product of records and epsilon below which no choice can work.

    Returns
    -------
    float
        Where the loss that the exponential mechanism may add, ``(2 / epsilon) ln 100`` records
        with a hundred networks, reaches half of the records: what guessing loses.

    References
    ----------
    ``docs/proofs/pure_network.md``, section 3.
    """
    return 4.0 * math.log(_FEWEST_CANDIDATES)
