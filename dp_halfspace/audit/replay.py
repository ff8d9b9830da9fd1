"""A replay: two neighbouring data sets are given the same answers, and every query is compared.

The first data set is fitted and its releases are kept. The second one is fitted with these
releases in place of its own. Then all that may differ are the values under the noise, by what was
charged for, and nothing of the models.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from joblib import hash as content
from numpy.typing import NDArray
from scipy.optimize import root

from dp_halfspace.audit._mechanisms import (
    LINEAR_TERMS,
    delta_at,
    distance,
    epsilon_of,
    noise_level,
    terms_of,
    utilities,
)
from dp_halfspace.audit.black_box import unpaid_clone
from dp_halfspace.privacy.discrete import DiscreteLaplaceNoise, RandomizedResponse
from dp_halfspace.privacy.events import Gaussian, Selection
from dp_halfspace.privacy.mechanisms import (
    Answer,
    GaussianNoise,
    L2LaplaceNoise,
    NoNoise,
    answering,
)
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, ByteSource, SeededBytes
from dp_halfspace.privacy.record import PrivacyRecord

__all__ = ["ReplayResult", "ReplayedRelease", "replay"]

# What an adversary makes of a release: so many times the value, so many times the noise.
_TWISTS = ((1.0, 1.0), (1.0, 1.0), (1.0, 30.0), (-30.0, 1.0), (0.0, 0.0))
_KEY_BYTES = 32
# Right noise looks too small with this probability.
_FALSE_ALARM = 1e-6
# Relative; between two ways to add up the same.
_SLACK = 1e-6
# A purely private run, chosen among a random number of them, costs this much; Papernot and
# Steinke (2022), Corollary 3, with a geometric number.
_STOPPED_RUNS = 3.0
# More coefficients of perturbed objectives are not aligned: each costs a fit.
_MOST_COEFFICIENTS = 48
_COUNT = "the number of releases depends on the data"
# Warnings are settings of the whole process: one replay at a time looks at them.
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class ReplayedRelease:
    """One release on both data sets.

    Attributes
    ----------
    history : int
        Number of the history that it belongs to.
    mechanism : str
        Class of what drew the noise or made the choice.
    distance : float
        Of the values under the noise, in the norm of the mechanism. Of the linear term of a
        perturbed objective: of the two terms with the same minimiser.
    sensitivity : float
        What was charged for; infinity for a release without noise.
    """

    history: int
    mechanism: str
    distance: float
    sensitivity: float

    @property
    def ratio(self) -> float:
        """Distance over sensitivity; above 1 the charge was too small."""
        return self.distance / self.sensitivity


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What a replay saw.

    Attributes
    ----------
    releases : tuple of ReplayedRelease
        Of all histories.
    epsilon, delta : float
        The charge.
    recomposed : float
        Epsilon at `delta` of the releases that differed, composed anew from the recorded scales;
        the largest of all histories. Of a random number of runs: of one run.
    noise_level : float
        Probability that right noise looks as small as the noise that was drawn.
    findings : tuple of str
        What contradicts the charge; empty if nothing does.
    """

    releases: tuple[ReplayedRelease, ...]
    epsilon: float
    delta: float
    recomposed: float
    noise_level: float
    findings: tuple[str, ...]


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

    def differences(self, other: _Outcome) -> list[str]:
        """Name what differs."""
        if self.error or other.error:
            return ["exceptions"] if repr(self.error) != repr(other.error) else []
        names = ["warnings"] if self.warnings != other.warnings else []
        first, second = (
            getattr(found, "__dict__", {"the result": found}) for found in (self.model, other.model)
        )
        return names + [
            name
            for name in sorted(first.keys() | second.keys())
            if content(first.get(name)) != content(second.get(name))
        ]


def replay(
    estimator: Any,
    X: Any,
    y: Any,
    X_neighbour: Any,
    y_neighbour: Any,
    *,
    n_histories: int = 5,
    groups: Any = None,
    groups_neighbour: Any = None,
    random_state: int | None = None,
) -> ReplayResult:
    """Compare every release of two neighbouring data sets, given the same answers to both.

    Parameters
    ----------
    estimator : estimator of this package, or function of `X` and `y`
        Clones of it are fitted, without its ledger, in this thread. A function (one that calls
        ``private_score``, say) must charge no ledger and take no seed.
    X, y : array-like
        A data set, as ``fit`` takes it.
    X_neighbour, y_neighbour : array-like
        Its neighbour: made to hurt, if anything is to be found.
    n_histories : int, default=5
        At least 1. Two are real, answered as in a fit, one of each data set; then answers are an
        adversary's: thirty times the noise, the opposite of the truth, nothing but zeros, and
        choices at random.
    groups, groups_neighbour : array-like or None, default=None
        Who the rows belong to; then the neighbour has another person.
    random_state : int or None, default=None
        None draws noise from the operating system. An int repeats the replay.

    Returns
    -------
    ReplayResult
        With ``releases`` and ``findings``.

    Raises
    ------
    ValueError
        By ``fit``, or if an argument is refused.

    Notes
    -----
    **Privacy.** The result is a function of the records that nobody paid for: it is for whoever
    holds them. No ledger is charged and other threads draw their noise as ever. Nothing found is
    no proof; the proofs are in ``docs/proofs``. Not seen: draws that are no releases (how many
    runs a selection has), which have tests of their own, and running time. Source: this project,
    ``docs/audit.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace import AdaptiveMarginClassifier
    >>> from dp_halfspace.audit import replay
    >>> from dp_halfspace.datasets import make_halfspace
    >>> X, y = make_halfspace(50, 3, margin=0.2, random_state=0)
    >>> other = y.copy()
    >>> other[0] = -y[0]
    >>> model = AdaptiveMarginClassifier(epsilon=2.0, data_norm=1.0, classes=[-1, 1])
    >>> result = replay(model, X, y, X, other, n_histories=2)
    >>> result.findings, max(release.ratio for release in result.releases) <= 1.0
    ((), True)
    """
    if isinstance(n_histories, bool) or not isinstance(n_histories, int) or n_histories < 1:
        raise ValueError(f"n_histories must be an int of at least 1, got {n_histories!r}")
    source = OS_RANDOMNESS if random_state is None else SeededBytes(random_state, "replay")
    pair = (X, y, groups), (X_neighbour, y_neighbour, groups_neighbour)
    histories = []
    with _LOCK:
        for number in range(n_histories):
            seed = int.from_bytes(source.read(4), "little")
            twist = _TWISTS[number % len(_TWISTS)]
            order = pair[:: -1 if number % 2 else 1]
            histories.append(_History(number, _fitter(estimator, seed), twist, *order).played())
    return _result(histories)


def _fitter(estimator: Any, seed: int) -> Callable[..., _Outcome]:
    """Return what fits a data set and catches all that is visible."""

    def fit(data: tuple[Any, Any, Any], answer: Answer) -> _Outcome:
        X, y, groups = data
        outcome = _Outcome()
        with warnings.catch_warnings(record=True) as caught, answering(answer):
            warnings.simplefilter("always")
            try:
                if not hasattr(estimator, "fit"):
                    outcome.model = estimator(X, y)
                else:
                    model = unpaid_clone(estimator, seed)
                    jobs = [n for n in model.get_params() if n.rsplit("__")[-1] == "n_jobs"]
                    model.set_params(**dict.fromkeys(jobs, 1))
                    own = {} if groups is None else {"groups": groups}
                    outcome.model = model.fit(X, y, **own)
            except _AlignedError:
                raise
            except Exception as error:  # noqa: BLE001
                outcome.error = error
        outcome.warnings = tuple(f"{w.category.__name__}: {w.message}" for w in caught)
        return outcome

    return fit


class _History:
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

    def played(self) -> _History:
        """Fit both; what is found is in the fields."""
        one = self.fit(self.first, self._answer)
        shifts = self._aligned()
        two = self.fit(self.second, self._repeated(shifts))
        if one.error is not None and repr(one.error) == repr(two.error):
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

    def releases(self) -> list[ReplayedRelease]:
        """List what was compared."""
        pairs = enumerate(zip(self.entries, self.others, strict=False))
        return [
            ReplayedRelease(
                self.number,
                type(entry.mechanism).__name__,
                *distance(entry.mechanism, entry.value, other),
            )
            for i, (entry, other) in pairs
            if i not in self.unknown
        ]

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


def _result(histories: Sequence[_History]) -> ReplayResult:
    """Draw conclusions."""
    findings = [text for history in histories for text in history.findings]
    releases = [release for history in histories for release in history.releases()]
    for release in releases:
        if release.ratio > 1.0:
            findings.append(
                f"{release.mechanism}: values {release.ratio:.4g} times the sensitivity apart"
            )
    entries = [entry for history in histories for entry in history.entries]
    if max(Counter(entry.key for entry in entries).values(), default=1) > 1:
        findings.append("the same random bytes are used twice")
    level = noise_level((e.mechanism, e.value, e.drawn) for e in entries)
    if level < _FALSE_ALARM:
        findings.append(f"noise is too small: right noise looks like this with chance {level:.1e}")
    record = next((h.record for h in histories if h.record is not None), None)
    if record is None:
        raise ValueError("the estimator leaves no record: it has no attribute privacy_")
    costs = [_recomposed(history.moved(), record) for history in histories]
    recomposed = max(costs)
    if recomposed > record.epsilon * (1.0 + _SLACK):
        findings.append(f"releases cost epsilon={recomposed:.6g}, charged is {record.epsilon:.6g}")
    return ReplayResult(
        tuple(releases), record.epsilon, record.delta, recomposed, level, tuple(findings)
    )


def _recomposed(moved: list[tuple[Any, bool]], record: PrivacyRecord) -> float:
    """Compose releases anew; of a random number of runs the dearest one."""
    selections = [event for event in record.events if isinstance(event, Selection)]
    is_stopped = dict(record.public).get("selection") == "random_stopping"
    if not selections and not is_stopped:
        return epsilon_of([mechanism for mechanism, differs in moved if differs], record.delta)
    runs, before = _runs(moved, record)
    if not selections:
        return max(_STOPPED_RUNS * epsilon_of(run, record.delta) for run in runs)
    charged = list(selections[0].terms)
    for run in runs:
        terms, losses, _ = terms_of(run)
        for epsilon in np.linspace(0.0, 2.0, 9) * max(mu for _, _, mu in charged):
            if delta_at(terms, losses, epsilon) > delta_at(charged, {0.0: 1.0}, epsilon) + 1e-9:
                return math.inf
    return max(epsilon_of([*before, *run], record.delta) for run in runs)


def _runs(
    moved: list[tuple[Any, bool]], record: PrivacyRecord
) -> tuple[list[list[Any]], list[Any]]:
    """Split releases into runs, each of which ends with its score, and what was before them."""
    singles = Counter(event for event in record.events if isinstance(event, Gaussian))
    runs: list[list[Any]] = [[]]
    before: list[Any] = []
    for mechanism, differs in moved:
        is_before = singles[mechanism.event] > 0
        singles[mechanism.event] -= is_before
        if differs:
            (before if is_before else runs[-1]).append(mechanism)
        if mechanism == moved[-1][0]:
            runs.append([])
    return runs, before
