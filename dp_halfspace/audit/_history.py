"""One history of two neighbouring data sets: the first is fitted, the second gets its answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import root

from dp_halfspace.audit._mechanisms import LINEAR_TERMS, distance, utilities
from dp_halfspace.audit._state import attributes, class_attributes, fingerprint
from dp_halfspace.audit._streams import watched_streams
from dp_halfspace.audit.black_box import unpaid_clone
from dp_halfspace.privacy.discrete import DiscreteLaplaceNoise, RandomizedResponse
from dp_halfspace.privacy.mechanisms import (
    Answer,
    GaussianNoise,
    L2LaplaceNoise,
    NoNoise,
    answering,
)
from dp_halfspace.privacy.randomness import ByteSource, SeededBytes
from dp_halfspace.privacy.record import PrivacyRecord

__all__ = ["TWISTS", "History", "fitter"]

# What an adversary makes of a release: so many times the value, so many times the noise.
TWISTS = ((1.0, 1.0), (1.0, 1.0), (1.0, 30.0), (-30.0, 1.0), (0.0, 0.0))
_KEY_BYTES = 32
# More coefficients of perturbed objectives are not aligned: each costs a fit.
_MOST_COEFFICIENTS = 48
# Relative error of the linear terms that are solved for; 1e-11 was seen.
_SOLVED = 1e-8
_COUNT = "the number of releases depends on the data"


class _OtherPlanError(RuntimeError):
    """The neighbour does not ask what the first data set asked."""


class _AlignedError(RuntimeError):
    """The query that was waited for is there."""


@dataclass(slots=True)
class _Entry:
    """A release of the first data set: what was asked, drawn, and said."""

    mechanism: Any
    value: NDArray[Any]
    drawn: NDArray[np.float64]
    said: NDArray[np.float64]
    key: bytes


@dataclass(slots=True)
class _Outcome:
    """What is visible after a fit."""

    model: Any = None
    error: Exception | None = None
    warnings: tuple[str, ...] = ()
    streams: tuple[str, str] = ("", "")
    classes: dict[str, bytes] = field(default_factory=dict)

    def differences(self, other: _Outcome) -> list[str]:
        """Name what differs."""
        kinds = zip(("standard output", "standard error"), self.streams, other.streams, strict=True)
        names = [name for name, first, second in kinds if first != second]
        if self.error or other.error:
            is_same = fingerprint(self.error) == fingerprint(other.error)
            return names + ([] if is_same else ["exceptions"])
        names += ["warnings"] if self.warnings != other.warnings else []
        names += [
            f"class attribute {name}"
            for name in sorted(self.classes.keys() | other.classes.keys())
            if self.classes.get(name) != other.classes.get(name)
        ]
        first, second = (_held(found) for found in (self.model, other.model))
        return names + [
            name
            for name in sorted(first.keys() | second.keys())
            if first.get(name) != second.get(name)
        ]


def _held(model: Any) -> dict[str, bytes]:
    """Return a digest of each attribute of a fitted model, hidden ones too, or of a result."""
    found = attributes(model) if hasattr(model, "get_params") else {}
    return {name: fingerprint(item) for name, item in (found or {"the result": model}).items()}


def fitter(estimator: Any, seed: int) -> Callable[..., _Outcome]:
    """Return what fits a data set and catches all that is visible."""

    def fit(data: tuple[Any, Any, Any], answer: Answer) -> _Outcome:
        X, y, groups = data
        outcome, parts = _Outcome(), [estimator]
        with (
            warnings.catch_warnings(record=True) as caught,
            watched_streams() as streams,
            answering(answer),
        ):
            warnings.simplefilter("always")
            try:
                own = {} if groups is None else {"groups": groups}
                if not hasattr(estimator, "fit"):
                    outcome.model = estimator(X, y, **own)
                else:
                    model = unpaid_clone(estimator, seed)
                    jobs = [n for n in model.get_params() if n.rsplit("__")[-1] == "n_jobs"]
                    model.set_params(**dict.fromkeys(jobs, 1))
                    outcome.model = model.fit(X, y, **own)
                    parts += model.get_params().values()
            except _AlignedError:
                raise
            except Exception as error:  # noqa: BLE001
                outcome.error = error
        outcome.streams = streams.texts
        outcome.warnings = tuple(
            f"{w.category.__name__}: {w.message} ({w.filename}:{w.lineno})" for w in caught
        )
        outcome.classes = class_attributes(outcome.model, *parts)
        return outcome

    return fit


class History:
    """One run through both data sets."""

    def __init__(
        self,
        number: int,
        fit: Callable[..., _Outcome],
        twist: tuple[float, float],
        first: tuple[Any, Any, Any],
        second: tuple[Any, Any, Any],
    ) -> None:
        self.number, self.fit, self.twist = number, fit, twist
        self.first, self.second = first, second
        self.entries: list[_Entry] = []
        self.others: list[NDArray[Any]] = []
        self.unknown: set[int] = set()
        self.findings: list[str] = []
        self.record: PrivacyRecord | None = None

    def played(self) -> History:
        """Fit both; what is found is in the fields."""
        one = self.fit(self.first, self._answer)
        shifts = self._aligned()
        two = self.fit(self.second, self._repeated(shifts))
        if one.error is not None and not one.differences(two):
            raise one.error
        if isinstance(two.error, _OtherPlanError):
            self.findings.append(str(two.error))
        elif not two.error and len(self.others) != len(self.entries):
            self.findings.append(_COUNT)
        else:
            differ = one.differences(two)
            self.findings += [f"{name}: differs though all releases agree" for name in differ]
        self.record = getattr(one.model, "privacy_", None) or getattr(two.model, "privacy_", None)
        return self

    def _answer(
        self, value: NDArray[Any], mechanism: Any, source: ByteSource
    ) -> NDArray[np.float64]:
        """Release to the first data set; both read equally many bytes of the source."""
        key = source.read(_KEY_BYTES)
        own = SeededBytes(int.from_bytes(key, "little"), "replay")
        drawn = mechanism.perturb(value, own)
        said = _twisted(value, drawn, mechanism, self.twist, own)
        self.entries.append(_Entry(mechanism, np.array(value), drawn, said, key))
        return said.copy()

    def _repeated(self, shifts: dict[int, NDArray[np.float64]], last: int | None = None) -> Answer:
        """Give the answers of the first data set to the second one."""
        self.others = []

        def answer(value: NDArray[Any], mechanism: Any, source: ByteSource) -> NDArray[np.float64]:
            source.read(_KEY_BYTES)
            number = len(self.others)
            if number == len(self.entries):
                raise _OtherPlanError(_COUNT)
            entry = self.entries[number]
            if mechanism != entry.mechanism or np.shape(value) != entry.value.shape:
                raise _OtherPlanError(f"release {number}: mechanism or shape depend on the data")
            shift = shifts.get(number)
            self.others.append(np.array(value) if shift is None else value + shift)
            if number == last:
                raise _AlignedError
            return entry.said.copy() if shift is None else entry.said + shift

        return answer

    def _aligned(self) -> dict[int, NDArray[np.float64]]:
        """Find the linear terms of the second data set that give the minimisers of the first.

        That is one history of a perturbed objective: its linear term is never released, its
        minimiser is.
        """
        shifts: dict[int, NDArray[np.float64]] = {}
        kinds = groupby(
            range(len(self.entries)), lambda i: isinstance(self.entries[i].mechanism, LINEAR_TERMS)
        )
        for numbers in (list(group) for is_linear, group in kinds if is_linear):
            last, size = numbers[-1] + 1, len(numbers) * self.entries[numbers[0]].value.size
            if last == len(self.entries):
                continue
            if size > _MOST_COEFFICIENTS:
                self.unknown |= {*numbers, last}
                continue
            try:
                found = root(
                    lambda x, *around: np.ravel(self._gap(self._shifted(x, around[1]), *around)),
                    np.zeros(size),
                    args=(shifts, numbers),
                    options={"eps": 1e-8},
                )
            except _OtherPlanError:
                break
            shifts |= self._shifted(found.x, numbers)
        return shifts

    def _shifted(
        self, x: NDArray[np.float64], numbers: Sequence[int]
    ) -> dict[int, NDArray[np.float64]]:
        """Return the changes of linear terms, in their own units."""
        entry = self.entries[numbers[0]]
        parts = x.reshape(len(numbers), *entry.value.shape) * entry.mechanism.change
        return dict(zip(numbers, parts, strict=True))

    def _gap(
        self,
        tried: dict[int, NDArray[np.float64]],
        shifts: dict[int, NDArray[np.float64]],
        numbers: Sequence[int],
    ) -> NDArray[np.float64]:
        """Return how far the minimisers are apart, over the size of the first one."""
        last = numbers[-1] + 1
        try:
            outcome = self.fit(self.second, self._repeated({**shifts, **tried}, last))
        except _AlignedError:
            value = self.entries[last].value
            apart: NDArray[np.float64] = self.others[last] - value
            return apart / max(float(np.abs(value).max()), 1e-300)
        raise outcome.error or _OtherPlanError(_COUNT)

    def compared(self) -> list[tuple[str, float, float]]:
        """List mechanism, distance and sensitivity of the releases of which both are known.

        The distance of linear terms that were solved for is the least that the solver cannot
        tell from what it found.
        """
        found = []
        for i, (entry, other) in enumerate(zip(self.entries, self.others, strict=False)):
            if i in self.unknown:
                continue
            size, sensitivity = distance(entry.mechanism, entry.value, other)
            if isinstance(entry.mechanism, LINEAR_TERMS):
                size *= 1.0 - _SOLVED
            found.append((type(entry.mechanism).__name__, size, sensitivity))
        return found

    def moved(self) -> list[tuple[Any, bool]]:
        """Return all mechanisms, and whether their values differ: the others cost nothing here."""
        return [
            (
                entry.mechanism,
                isinstance(entry.mechanism, LINEAR_TERMS)
                or distance(entry.mechanism, entry.value, other)[0] > 0.0,
            )
            for entry, other in zip(self.entries, self.others, strict=False)
        ]


def _twisted(
    value: NDArray[Any],
    drawn: NDArray[np.float64],
    mechanism: Any,
    twist: tuple[float, float],
    source: ByteSource,
) -> NDArray[np.float64]:
    """Return what an adversary says in place of a release; linear terms have a bounded norm."""
    of_value, of_noise = twist
    if twist == (1.0, 1.0) or isinstance(mechanism, (*LINEAR_TERMS, NoNoise)):
        return drawn
    number = int.from_bytes(source.read(8), "little")
    match mechanism:
        case GaussianNoise() | L2LaplaceNoise() | DiscreteLaplaceNoise():
            return np.asarray(of_value * value + of_noise * (drawn - value))
        case RandomizedResponse():
            return (value + number) % mechanism.n_classes
    return np.array([number % len(utilities(mechanism, value))], dtype=np.float64)
