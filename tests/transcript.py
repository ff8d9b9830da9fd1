"""Two data sets and one transcript: what a fit asks, given the same answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from dp_halfspace.algorithms.perturbation.linear_term import GaussianLinearTerm, LaplaceLinearTerm
from dp_halfspace.privacy import mechanisms
from dp_halfspace.privacy.discrete import DiscreteLaplaceNoise
from dp_halfspace.privacy.mechanisms import ExponentialChoice, GaussianNoise, L2LaplaceNoise


@dataclass
class Transcript:
    """The releases of a first fit, and what a second one would have released in their place."""

    mechanisms: list[Any] = field(default_factory=list)
    values: list[np.ndarray] = field(default_factory=list)
    released: list[np.ndarray] = field(default_factory=list)
    others: list[np.ndarray] = field(default_factory=list)

    def answer(self, value, mechanism, source):
        """Release as usual, and remember."""
        released = mechanism.perturb(value, source)
        self.mechanisms.append(mechanism)
        self.values.append(np.array(value))
        self.released.append(np.array(released))
        return released

    def repeat(self, value, mechanism, source):
        """Give the answer of the first fit, whatever the value is now."""
        del source
        number = len(self.others)
        assert mechanism == self.mechanisms[number], "a plan depends on the data"
        self.others.append(np.array(value))
        return self.released[number].copy()

    def ratios(self):
        """Change of each query in units of its claimed sensitivity.

        After the linear term of a perturbed objective the answers do not determine the next
        query: the noise on it hides the error of the solver alone, and has tests of its own.
        """
        for mechanism, value, other in zip(self.mechanisms, self.values, self.others, strict=True):
            if isinstance(mechanism, GaussianLinearTerm | LaplaceLinearTerm):
                return
            change = np.abs(value - other)
            if isinstance(mechanism, ExponentialChoice):
                yield float(change.max()) / mechanism.sensitivity
            elif isinstance(mechanism, DiscreteLaplaceNoise):
                yield float(change.sum()) / mechanism.sensitivity
            else:
                assert isinstance(mechanism, GaussianNoise | L2LaplaceNoise)
                yield float(np.linalg.norm(change)) / mechanism.sensitivity


def replayed(estimator, first, second):
    """Fit two data sets on one transcript; return it and both models."""
    transcript, models = Transcript(), []
    for data, answer in ((first, transcript.answer), (second, transcript.repeat)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(mechanisms, "_perturbed", answer)
            models.append(clone(estimator).fit(*data))
    assert len(transcript.others) == len(transcript.values)
    return transcript, models
