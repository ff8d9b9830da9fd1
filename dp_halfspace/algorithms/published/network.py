"""Networks of tanh units, many at once, and what they get wrong.

A candidate is one vector of standard Gaussian size: weights into the units of each hidden layer,
weights out of the last one, biases. The count of errors has a step that is not quite vertical, so
that a record cannot change the error of another one through the last bits of a matrix product.
Proofs: ``docs/proofs/pure_network.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import FAR_UP
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.algorithms.engine.plan import FloatArray
from dp_halfspace.algorithms.search.halfspace_search import SearchPlan, run_search
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.rows.rows import Rows

# Scale of the weights into a unit: inputs are at most one long, so units must be steep to bend
# inside the unit ball.
_GAIN = 5.5
# Scale of its bias.
_BIAS_GAIN = 4.0
# The same for units of a later layer, which read values of size one; the gain is for their root
# sum.
_LATER_GAIN = 2.0
_LATER_BIAS_GAIN = 1.0
# No weight vector of a unit is longer, which bounds rounding errors; Gaussian ones are not.
_LONGEST = 2.0**7
# Nor is the sum of the sizes of the weights into a unit of a later layer.
_LARGEST_SUM = 2.0**4
# Width of the step from right to wrong, relative to the largest score of a network.
_STEP = 2.0**-16
_SMALLEST = 1e-300
_ENTRIES = 2**19  # activations that are in memory at a time
# A choice among fewer networks than this is not worth its name.
_FEWEST_CANDIDATES = 100


@dataclass(frozen=True, slots=True)
class Layer:
    """One hidden layer of m networks: weights of shape (m, n_inputs, n_neurons) into its units."""

    weights: FloatArray
    biases: FloatArray


@dataclass(frozen=True, slots=True)
class Network:
    """The layers of m networks: the hidden ones, weights out of the last one, bias of the score."""

    hidden: tuple[Layer, ...]
    outputs: FloatArray
    bias: FloatArray


@dataclass(frozen=True, slots=True)
class NetworkShape:
    """Public sizes of a network: inputs, units of each hidden layer, relative size of the biases.

    >>> NetworkShape(2, (6,), 1.0).size, NetworkShape(2, (6,), None).size
    (25, 18)
    """

    n_inputs: int
    widths: tuple[int, ...]
    bias: float | None

    @property
    def _fan_in(self) -> tuple[int, ...]:
        """Inputs of each hidden layer."""
        return (self.n_inputs, *self.widths[:-1])

    @property
    def size(self) -> int:
        """Number of parameters."""
        n_weights = sum(n * width for n, width in zip(self._fan_in, self.widths, strict=True))
        n_biases = 0 if self.bias is None else sum(self.widths) + 1
        return n_weights + self.widths[-1] + n_biases

    def layers(self, candidates: FloatArray) -> Network:
        """Cut parameters of shape (m, size) into layers."""
        m, last = len(candidates), self.widths[-1]
        sizes = [n * width for n, width in zip(self._fan_in, self.widths, strict=True)]
        sizes += [last, *([] if self.bias is None else self.widths)]
        parts = np.split(candidates, np.cumsum(sizes), axis=1)
        hidden = []
        for number, (n_inputs, width) in enumerate(zip(self._fan_in, self.widths, strict=True)):
            drawn = parts[number].reshape(m, n_inputs, width)
            weights = _first_weights(drawn) if number == 0 else _later_weights(drawn)
            biases = np.zeros((m, width))
            if self.bias is not None:
                gain = _BIAS_GAIN if number == 0 else _LATER_BIAS_GAIN
                biases = parts[len(self.widths) + 1 + number] * (gain * self.bias)
                biases = np.clip(biases, -_LONGEST, _LONGEST)
            hidden.append(Layer(weights, biases))
        outputs = parts[len(self.widths)]
        if self.bias is None:
            return Network(tuple(hidden), outputs, np.zeros(m))
        bias = candidates[:, -1] * (math.sqrt(last) * self.bias)
        return Network(tuple(hidden), outputs, bias)


def _first_weights(drawn: FloatArray) -> FloatArray:
    """Scale weights out of the inputs; a vector that is too long is shortened."""
    weights = drawn * _GAIN
    lengths = np.sqrt(np.einsum("mih,mih->mh", weights, weights))
    weights *= (_LONGEST / np.maximum(lengths, _LONGEST))[:, None, :]
    return weights


def _later_weights(drawn: FloatArray) -> FloatArray:
    """Scale weights out of hidden units; their sizes sum to `_LARGEST_SUM` at most."""
    weights = drawn * (_LATER_GAIN / math.sqrt(drawn.shape[1]))
    sums = np.abs(weights).sum(axis=1)
    weights *= (_LARGEST_SUM / np.maximum(sums, _LARGEST_SUM))[:, None, :]
    return weights


def network_losses(
    shape: NetworkShape, points: FloatArray, positive: NDArray[np.bool_], weights: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """Return a function from candidates of shape (m, size) to weighted numbers of errors.

    The rows of `points` are of norm at most one, the class `weights` in [0, 1]. A record whose
    score is within 2^-17 of zero, relative to the largest that the network can give, counts in
    part.
    """
    n_samples = len(points)
    signed = np.where(positive, -weights[1], weights[0])
    # A positive record is wrong below zero: one minus what a negative one would add.
    base = float(weights[1]) * np.count_nonzero(positive)

    def losses(candidates: FloatArray) -> FloatArray:
        network = shape.layers(candidates)
        m = len(candidates)
        first, *later = network.hidden
        flat = first.weights.transpose(1, 0, 2).reshape(shape.n_inputs, -1)
        largest = np.abs(network.outputs).sum(axis=1) + np.abs(network.bias)
        steepness = 1.0 / np.maximum(largest * _STEP, _SMALLEST)
        total = np.full(m, base)
        rows = max(1, _ENTRIES // (m * max(shape.widths)))
        for lo in range(0, n_samples, rows):
            active = (points[lo : lo + rows] @ flat).reshape(-1, m, shape.widths[0])
            active += first.biases
            np.tanh(active, out=active)
            for layer in later:
                # One product for each network.
                active = np.matmul(active.transpose(1, 0, 2), layer.weights).transpose(1, 0, 2)
                active += layer.biases
                np.tanh(active, out=active)
            scores = np.einsum("imh,mh->im", active, network.outputs) + network.bias
            scores *= steepness
            total += signed[lo : lo + rows] @ np.clip(scores + 0.5, 0.0, 1.0)
        return total

    return losses


def network_sensitivity(n_samples: int, shape: NetworkShape) -> float:
    """Bound the change of any loss when one record is replaced: 1, and what rounding can add.

    ``docs/proofs/pure_network.md``, section 1.
    """
    per_unit = (shape.n_inputs + 4) * _LONGEST * 2.0
    for width in shape.widths[:-1]:
        per_unit = _LARGEST_SUM * per_unit + (width + 4) * (_LARGEST_SUM + _LONGEST)
    per_score = per_unit + shape.widths[-1] + 32
    rounding = 2.0 * n_samples * per_score * 2.0**-53 / _STEP
    return FAR_UP + rounding + 2.0**-50 * n_samples * n_samples


def smallest_budget() -> float:
    """Return the product of records and epsilon below which no choice can work.

    There the loss that the exponential mechanism may add, ``(2 / epsilon) ln 100`` records with a
    hundred networks, reaches what guessing loses: ``docs/proofs/pure_network.md``, section 3.
    """
    return 4.0 * math.log(_FEWEST_CANDIDATES)


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """A search among networks of one shape, drawn from a public seed."""

    shape: NetworkShape
    search: SearchPlan
    seed: int

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        return self.search.events

    @property
    def public(self) -> dict[str, Any]:
        """Public facts for the record."""
        return {
            "n_parameters": self.shape.size,
            "n_candidates": self.search.n_candidates,
            "n_stages": len(self.search.radii),
            "network_seed": self.seed,
        }

    def run(
        self, rows: Rows, classes: NDArray[np.intp], weights: FloatArray, permit: Permit
    ) -> FloatArray:
        """Release the parameters of one network, of shape (1, size); see `Plan`."""
        points = rows.dense(np.arange(rows.shape[0]))
        losses = network_losses(self.shape, points, classes == 1, weights)
        with single_blas_thread():
            found = run_search(self.search, self.shape.size, losses, permit, seed=self.seed)
        return found[None, :]
