"""Networks of tanh units, evaluated many at a time, and the number of records they misclassify.

A candidate is a vector of standard Gaussian numbers: weights into the units of each hidden layer,
weights out of the last layer, biases. The loss of a record rises from 0 to 1 along a short ramp
instead of a jump, so that a record cannot change the loss of another one by the rounding of a
matrix product. Proofs: ``docs/proofs/pure_network.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._memory import AT_ONCE, NUMBER_BYTES, rows_of_block
from dp_halfspace._rounding import FAR_UP, RAMP_WIDTH, TINY
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.data.record_weights import WeighedRows
from dp_halfspace.papers.staged_search import Losses, StagedSearch, run_search
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Event
from dp_halfspace.rows.blocks import FloatArray

# Standard deviation of the weights into a unit of the first layer. Inputs have norm at most one, so
# that smaller weights would make units nearly linear.
_GAIN = 5.5
# Standard deviation of the bias of such a unit; that of a later unit is one.
_BIAS_GAIN = 4.0
# Standard deviation of the weights into a unit of a later layer, whose inputs are in [-1, 1], times
# the root of the number of inputs.
_LATER_GAIN = 2.0
# Largest norm of the weights into a unit of the first layer, which bounds rounding errors. Gaussian
# weights hardly ever reach it.
_LONGEST = 2.0**7
# Largest sum of the absolute weights into a unit of a later layer, for the same reason.
_LARGEST_SUM = 2.0**4


@dataclass(frozen=True, slots=True)
class NetworkShape:
    """Public sizes of a network: inputs, units of each hidden layer, relative scale of the biases.

    >>> NetworkShape(2, (6,), 1.0).size, NetworkShape(2, (6,), None).size
    (25, 18)
    """

    n_inputs: int
    widths: tuple[int, ...]
    bias: float | None

    @property
    def _fan_in(self) -> tuple[int, ...]:
        """Number of inputs of each hidden layer."""
        return (self.n_inputs, *self.widths[:-1])

    @property
    def _sizes(self) -> list[int]:
        """Numbers of weights of each layer, and of its biases if there are any."""
        weights = [n * width for n, width in zip(self._fan_in, self.widths, strict=True)]
        return [*weights, self.widths[-1], *([] if self.bias is None else [*self.widths, 1])]

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(self._sizes)

    def layers(
        self, candidates: FloatArray
    ) -> tuple[list[tuple[FloatArray, FloatArray]], FloatArray, FloatArray]:
        """Split parameters of shape (m, size) into those of the layers of m networks.

        Return weights, of shape (m, n_inputs, n_neurons), and biases of each hidden layer; weights
        of the outputs; and biases of the scores.
        """
        m = len(candidates)
        parts = np.split(candidates, np.cumsum(self._sizes)[:-1], axis=1)
        hidden = []
        for number, (n_inputs, width) in enumerate(zip(self._fan_in, self.widths, strict=True)):
            drawn = parts[number].reshape(m, n_inputs, width)
            weights = _first_weights(drawn) if number == 0 else _later_weights(drawn)
            biases = np.zeros((m, width))
            if self.bias is not None:
                gain = _BIAS_GAIN if number == 0 else 1.0
                biases = parts[len(self.widths) + 1 + number] * (gain * self.bias)
                biases = np.clip(biases, -_LONGEST, _LONGEST)
            hidden.append((weights, biases))
        bias = np.zeros(m)
        if self.bias is not None:
            bias = candidates[:, -1] * (math.sqrt(self.widths[-1]) * self.bias)
        return hidden, parts[len(self.widths)], bias


def _first_weights(drawn: FloatArray) -> FloatArray:
    """Scale the weights of the inputs; a vector longer than `_LONGEST` is shortened."""
    weights = drawn * _GAIN
    lengths = np.sqrt(np.einsum("mih,mih->mh", weights, weights))
    weights *= (_LONGEST / np.maximum(lengths, _LONGEST))[:, None, :]
    return weights


def _later_weights(drawn: FloatArray) -> FloatArray:
    """Scale the weights between hidden layers; absolute values sum to at most `_LARGEST_SUM`."""
    weights = drawn * (_LATER_GAIN / math.sqrt(drawn.shape[1]))
    sums = np.abs(weights).sum(axis=1)
    weights *= (_LARGEST_SUM / np.maximum(sums, _LARGEST_SUM))[:, None, :]
    return weights


def network_losses(
    shape: NetworkShape, points: FloatArray, positive: NDArray[np.bool_], weights: FloatArray
) -> Losses:
    """Return a function from candidates of shape (m, size) to weighted numbers of errors.

    The rows of `points` have norm at most one, and the class `weights` are in [0, 1]. A record
    counts in part if its score is within 2^-17 of zero, relative to the largest score that the
    network can have.
    """
    n_samples = len(points)
    signed = np.where(positive, -weights[1], weights[0])
    # The loss of a positive record is one minus the loss of a negative record at the same score.
    base = float(weights[1]) * np.count_nonzero(positive)

    def losses(candidates: FloatArray) -> FloatArray:
        hidden, outputs, bias = shape.layers(candidates)
        m = len(candidates)
        (first, biases), *later = hidden
        flat = first.transpose(1, 0, 2).reshape(shape.n_inputs, -1)
        largest = np.abs(outputs).sum(axis=1) + np.abs(bias)
        steepness = 1.0 / np.maximum(largest * RAMP_WIDTH, TINY)
        total = np.full(m, base)
        rows = min(AT_ONCE, rows_of_block(NUMBER_BYTES * m * max(shape.widths)))
        for lo in range(0, n_samples, rows):
            active = (points[lo : lo + rows] @ flat).reshape(-1, m, shape.widths[0])
            active += biases
            np.tanh(active, out=active)
            for into, shifts in later:
                # This is one matrix product for each network.
                active = np.matmul(active.transpose(1, 0, 2), into).transpose(1, 0, 2)
                active += shifts
                np.tanh(active, out=active)
            scores = np.einsum("imh,mh->im", active, outputs) + bias
            scores *= steepness
            total += signed[lo : lo + rows] @ np.clip(scores + 0.5, 0.0, 1.0)
        return total

    return losses


def network_sensitivity(n_samples: int, shape: NetworkShape) -> float:
    """Bound the change of a loss when one record is replaced: 1, and an allowance for rounding.

    Proof: ``docs/proofs/pure_network.md``, section 1.
    """
    per_unit = (shape.n_inputs + 4) * _LONGEST * 2.0
    for width in shape.widths[:-1]:
        per_unit = _LARGEST_SUM * per_unit + (width + 4) * (_LARGEST_SUM + _LONGEST)
    per_score = per_unit + shape.widths[-1] + 32
    rounding = 2.0 * n_samples * per_score * 2.0**-53 / RAMP_WIDTH
    return FAR_UP + rounding + 2.0**-50 * n_samples * n_samples


def smallest_budget() -> float:
    """Return the product of records and epsilon below which no selection is useful.

    Below it, the loss that the exponential mechanism may add with a hundred networks, ``(2 /
    epsilon) ln 100`` records, is as large as that of guessing: ``docs/proofs/pure_network.md``,
    section 3.
    """
    return 4.0 * math.log(100.0)


@dataclass(frozen=True, slots=True)
class NetworkSearch:
    """A search among networks of one shape, drawn from a public seed."""

    shape: NetworkShape
    search: StagedSearch
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

    def run(self, door: Door) -> FloatArray:
        """Release the parameters of one network, of shape (1, size); see `Algorithm`."""

        def losses(data: WeighedRows) -> Losses:
            points = data.rows.dense(np.arange(data.rows.shape[0]))
            return network_losses(self.shape, points, data.classes == 1, np.asarray(data.weights))

        with single_blas_thread():
            found = run_search(self.search, self.shape.size, door.map(losses), seed=self.seed)
        return found[None, :]
