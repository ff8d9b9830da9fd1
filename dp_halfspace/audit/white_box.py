"""A white-box audit: two neighbouring data sets get the same answers to all of their queries.

The first data set is fitted and its releases are kept. The second one is fitted with these releases
instead of its own. The two fits may then differ in the exact values before noise, by at most the
sensitivity that was charged, and in nothing else: neither in their models nor in their printed
output.

What is checked for every mechanism is implemented in `mechanism_checks`, independently of the
accounting of `privacy`, so that mistakes there are detected.
"""

from __future__ import annotations

import io
import math
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import root

from dp_halfspace._params import checked_size
from dp_halfspace._repeated_fits import fits_not_counted
from dp_halfspace.audit._visible import attributes, digest_class_attributes, fingerprint
from dp_halfspace.audit.black_box import clone_without_ledgers
from dp_halfspace.audit.mechanism_checks import (
    LINEAR_TERMS,
    delta_at,
    distance,
    epsilon_of,
    lists_of,
    losses_of,
    noise_level,
    utilities,
)
from dp_halfspace.privacy.events import Gaussian, RandomStopping
from dp_halfspace.privacy.exponential import CountedChoice
from dp_halfspace.privacy.interception import Answer, intercept_releases
from dp_halfspace.privacy.mechanisms import (
    GaussianNoise,
    L2LaplaceNoise,
    NoNoise,
    SampledGaussianNoise,
)
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise, RandomizedResponse
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, ByteSource, SeededBytes
from dp_halfspace.privacy.record import PrivacyRecord

# Features, labels, and further keyword arguments, which None leaves out.
DataSet: TypeAlias = tuple[Any, Any, dict[str, Any]]


# An adversarial answer is a multiple of the exact value plus a multiple of the noise. In successive
# histories there are two real ones, one for each data set, then adversarial ones.
HONEST = (1.0, 1.0)
_DISTORTIONS = (HONEST, HONEST, (1.0, 30.0), (-30.0, 1.0), (0.0, 0.0))
# Probability with which noise of the correct scale is judged too small.
_FALSE_ALARM = 1e-6
# Accepted relative difference between two methods of composition.
_COMPOSITION_SLACK = 1e-6
# A pure DP run, chosen among a random number of them, costs this many times its epsilon:
# Papernot and Steinke (2022), Corollary 3, with a geometric number.
_COST_OF_STOPPED_RUNS = 3.0
# Random bytes that identify a draw, and that both data sets read for it.
_KEY_BYTES = 32
# Linear terms of more coefficients are not solved for, because each coefficient needs a fit.
_MOST_COEFFICIENTS = 48
# Largest relative difference of two minimisers that count as equal.
_SOLVED = 1e-6
# Most fits of the slower search for a linear term; 400 were observed.
_MOST_FITS = 500
# Relative error of the linear terms that are solved for; 1e-11 was observed.
_SOLVER_ERROR = 1e-8
_OTHER_COUNT = "the number of releases depends on the data"
# Warning filters belong to the whole process: only one replay at a time records warnings.
_REPLAY_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class ReplayedRelease:
    """One release on both data sets.

    Attributes
    ----------
    history : int
        Number of the history that it belongs to.
    mechanism : str
        Class of the mechanism.
    distance : float
        Distance of the exact values, in the norm of the mechanism. For a perturbed objective, the
        distance of the two linear terms with the same minimiser.
    sensitivity : float
        The sensitivity that was charged; infinity for a release without noise.
    """

    history: int
    mechanism: str
    distance: float
    sensitivity: float

    @property
    def ratio(self) -> float:
        """Distance divided by sensitivity; if it exceeds 1, the charge was too small."""
        return self.distance / self.sensitivity


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """Result of a replay.

    Attributes
    ----------
    releases : tuple of ReplayedRelease
        Releases of all histories.
    epsilon, delta : float
        The charged guarantee; NaN, like `recomposed`, if every fit raised.
    recomposed : float
        Epsilon at `delta` of the releases that differed, recomputed from the recorded scales; the
        largest over all histories. For a selection with a random number of runs, that of one run.
    noise_level : float
        Probability that correct noise is as small as the noise that was drawn.
    findings : tuple of str
        Observations that contradict the charge; empty if there are none.
    """

    releases: tuple[ReplayedRelease, ...]
    epsilon: float
    delta: float
    recomposed: float
    noise_level: float
    findings: tuple[str, ...]


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
    sample_weight: Any = None,
    sample_weight_neighbour: Any = None,
    random_state: int | None = None,
) -> ReplayResult:
    """Compare every release of two neighbouring data sets, given the same answers to both.

    Parameters
    ----------
    estimator : estimator of this package, or function of `X`, `y` and what else is given
        Clones of it are fitted, without its ledger, in this thread. A function (for example one
        that calls ``private_score``) must not charge a ledger or take a seed.
    X, y : array-like
        A data set, as ``fit`` takes it.
    X_neighbour, y_neighbour : array-like
        The neighbouring data set, chosen so that the replaced record has a large effect.
    n_histories : int, default=5
        Number of histories, at least 1. The first two have the answers of real fits, one to each
        data set. Further ones have adversarial answers: thirty times the noise, the negated value,
        all zeros, and random choices.
    groups, groups_neighbour : array-like or None, default=None
        The person to whom each row belongs; the neighbouring data set then replaces one person.
    sample_weight, sample_weight_neighbour : array-like or None, default=None
        Weights of the records; the weight of the replaced record may differ.
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
    **Privacy.** The result is a function of the records without any noise, so it is only for people
    who may see them. No ledger is charged, and the noise of other threads is not affected. An empty
    list of findings is not a proof; the proofs are in ``docs/proofs``. The replay compares
    releases, warnings, exceptions, output to ``sys.stdout`` and ``sys.stderr`` (which is not shown,
    and should have no other source meanwhile), class attributes, and everything in ``__dict__`` and
    ``__slots__`` of the model, independently of ``__getstate__``. It does not see state of
    extension types that is not pickled, global variables, logs, files, descriptors, other
    processes, draws that are not releases (the number of runs of a selection), and running time.
    Source: this project, ``docs/audit.md``.

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
    checked_size("n_histories", n_histories)
    source = OS_RANDOMNESS if random_state is None else SeededBytes(random_state, "replay")
    named = {"groups": groups, "sample_weight": sample_weight}
    others = {"groups": groups_neighbour, "sample_weight": sample_weight_neighbour}
    pair = (X, y, named), (X_neighbour, y_neighbour, others)
    histories = []
    with _REPLAY_LOCK:
        for number in range(n_histories):
            seed = int.from_bytes(source.read(4), "little")
            distortion = _DISTORTIONS[number % len(_DISTORTIONS)]
            first, second = pair[:: -1 if number % 2 else 1]
            history = History(number, make_fit(estimator, seed), distortion, first, second)
            history.run()
            histories.append(history)
    return _conclude(histories)


def _conclude(histories: Sequence[History]) -> ReplayResult:
    """Return the observations that contradict the charge."""
    findings = [text for history in histories for text in history.findings]
    releases = [
        ReplayedRelease(history.number, type(mechanism).__name__, size, sensitivity)
        for history in histories
        for mechanism, size, sensitivity in history.compare_releases()
        if not math.isnan(size)
    ]
    for release in releases:
        if release.ratio > 1.0:
            findings.append(
                f"{release.mechanism}: values {release.ratio:.4g} times the sensitivity apart"
            )
    entries = [entry for history in histories for entry in history.entries]
    if max(Counter(entry.key for entry in entries).values(), default=1) > 1:
        findings.append("the same random bytes are used twice")
    level = noise_level((entry.mechanism, entry.value, entry.drawn) for entry in entries)
    if level < _FALSE_ALARM:
        findings.append(
            f"noise is too small: correct noise would be this small with probability {level:.1e}"
        )
    record = next((h.record for h in histories if h.record is not None), None)
    if record is None and not findings:
        raise ValueError("the estimator leaves no record: it has no attribute privacy_")
    epsilon, delta, recomposed = math.nan, math.nan, math.nan
    if record is not None:
        epsilon, delta = record.epsilon, record.delta
        recomposed = max(_recompose(history.compare_releases(), record) for history in histories)
        if recomposed > epsilon * (1.0 + _COMPOSITION_SLACK):
            findings.append(
                f"releases cost epsilon={recomposed:.6g}, but the charge is {epsilon:.6g}"
            )
    return ReplayResult(tuple(releases), epsilon, delta, recomposed, level, tuple(findings))


def _recompose(compared: list[tuple[Any, float, float]], record: PrivacyRecord) -> float:
    """Compose the releases that differ; for a random number of runs, those of the costliest run.

    Equal exact values cost nothing, except for linear terms, which are not released.
    """
    mechanisms = [(each, isinstance(each, LINEAR_TERMS) or size != 0) for each, size, _ in compared]
    selections = [event for event in record.events if isinstance(event, RandomStopping)]
    is_stopped = dict(record.public).get("selection") == "random_stopping"
    if not selections and not is_stopped:
        return epsilon_of([mechanism for mechanism, differs in mechanisms if differs], record.delta)
    runs, before = _split_runs(mechanisms, record)
    if not selections:
        return max(_COST_OF_STOPPED_RUNS * epsilon_of(run, record.delta) for run in runs)
    charged = selections[0].mu
    for run in runs:
        mu, losses, _ = losses_of(run)
        for epsilon in np.linspace(0.0, 2.0, 9) * charged:
            if delta_at(mu, losses, epsilon) > delta_at(charged, {0.0: 1.0}, epsilon) + 1e-9:
                return math.inf
    return max(epsilon_of([*before, *run], record.delta) for run in runs)


def _split_runs(
    mechanisms: list[tuple[Any, bool]], record: PrivacyRecord
) -> tuple[list[list[Any]], list[Any]]:
    """Split releases into those before the runs and the runs, which end with their score."""
    singles = Counter(event for event in record.events if isinstance(event, Gaussian))
    runs: list[list[Any]] = [[]]
    before: list[Any] = []
    for mechanism, differs in mechanisms:
        is_before = singles[mechanism.event] > 0
        singles[mechanism.event] -= is_before
        if differs:
            (before if is_before else runs[-1]).append(mechanism)
        if mechanism == mechanisms[-1][0]:
            runs.append([])
    return runs, before


class _OtherPlanError(RuntimeError):
    """The second data set has other releases than the first one."""


class _AlignedError(RuntimeError):
    """Stops a fit at the required release."""


@dataclass(slots=True)
class _Entry:
    """A release of the first data set: its exact value, the honest draw, and the answer given."""

    mechanism: Any
    value: NDArray[Any]
    drawn: NDArray[np.float64]
    answer: NDArray[np.float64]
    key: bytes


@dataclass(slots=True)
class _Outcome:
    """The visible results of a fit."""

    model: Any = None
    error: Exception | None = None
    warnings: tuple[str, ...] = ()
    streams: tuple[bytes, ...] = (b"", b"")
    classes: dict[str, bytes] = field(default_factory=dict)

    def differences(self, other: _Outcome) -> list[str]:
        """Return the names of the differences."""
        texts = zip(("standard output", "standard error"), self.streams, other.streams, strict=True)
        names = [name for name, first, second in texts if first != second]
        if self.error or other.error:
            is_same = fingerprint(self.error) == fingerprint(other.error)
            return names + ([] if is_same else ["exceptions"])
        names += ["warnings"] if self.warnings != other.warnings else []
        names += [
            f"class attribute {name}" for name in _differing_keys(self.classes, other.classes)
        ]
        return names + _differing_keys(*(_digest_result(each.model) for each in (self, other)))


def _differing_keys(first: dict[str, bytes], second: dict[str, bytes]) -> list[str]:
    """Return the keys for which two dictionaries differ."""
    keys = sorted(first.keys() | second.keys())
    return [key for key in keys if first.get(key) != second.get(key)]


def _digest_result(model: Any) -> dict[str, bytes]:
    """Return a digest of each attribute of a fitted model, with hidden ones, or of a result."""
    found = attributes(model) if hasattr(model, "get_params") else {}
    return {name: fingerprint(item) for name, item in (found or {"the result": model}).items()}


@contextmanager
def watch_streams() -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Record instead of showing what is written to ``sys.stdout`` and ``sys.stderr``."""
    out, error = io.BytesIO(), io.BytesIO()
    texts = [io.TextIOWrapper(end, encoding="utf-8", write_through=True) for end in (out, error)]
    with redirect_stdout(texts[0]), redirect_stderr(texts[1]):
        yield out, error
    for text in texts:
        text.detach()  # a wrapper that is deleted closes what it wraps


def make_fit(estimator: Any, seed: int) -> Callable[[DataSet, Answer], _Outcome]:
    """Return a function that fits a data set with given answers and records the visible results."""

    def fit(data: DataSet, answer: Answer) -> _Outcome:
        X, y, given = data
        own = {name: value for name, value in given.items() if value is not None}
        outcome, parts = _Outcome(), [estimator]
        with (
            warnings.catch_warnings(record=True) as caught,
            watch_streams() as streams,
            fits_not_counted(),
            intercept_releases(answer),
        ):
            warnings.simplefilter("always")
            try:
                if not hasattr(estimator, "fit"):
                    outcome.model = estimator(X, y, **own)
                else:
                    model = clone_without_ledgers(estimator, seed)
                    jobs = [n for n in model.get_params() if n.rsplit("__")[-1] == "n_jobs"]
                    model.set_params(**dict.fromkeys(jobs, 1))
                    outcome.model = model.fit(X, y, **own)
                    parts += model.get_params().values()
            except _AlignedError:
                raise
            except Exception as error:  # noqa: BLE001
                outcome.error = error
        outcome.streams = tuple(stream.getvalue() for stream in streams)
        outcome.warnings = tuple(
            f"{w.category.__name__}: {w.message} ({w.filename}:{w.lineno})" for w in caught
        )
        outcome.classes = digest_class_attributes(outcome.model, *parts)
        return outcome

    return fit


@dataclass(slots=True)
class History:
    """One history of answers to both data sets; `run` fills in the results."""

    number: int
    fit: Callable[[DataSet, Answer], _Outcome]
    distortion: tuple[float, float]
    first: DataSet
    second: DataSet
    # Releases of the first data set, and exact values of the second one at the same places.
    entries: list[_Entry] = field(default_factory=list)
    others: list[NDArray[Any]] = field(default_factory=list)
    # Releases that cannot be compared: perturbed objectives of too many coefficients.
    unsolved: set[int] = field(default_factory=set)
    findings: list[str] = field(default_factory=list)
    record: PrivacyRecord | None = None

    def run(self) -> None:
        """Fit both data sets, the second one with the answers of the first."""
        one = self.fit(self.first, self._answer_first)
        shifts = self._solve_linear_terms()
        two = self.fit(self.second, self._answer_second(shifts))
        if one.error is not None and not one.differences(two):
            raise one.error
        if isinstance(two.error, _OtherPlanError):
            self.findings.append(str(two.error))
        elif not two.error and len(self.others) != len(self.entries):
            self.findings.append(_OTHER_COUNT)
        else:
            differ = one.differences(two)
            self.findings += [f"{name}: differs though all releases agree" for name in differ]
        self.record = getattr(one.model, "privacy_", None) or getattr(two.model, "privacy_", None)

    def _answer_first(
        self, value: NDArray[Any], mechanism: Any, source: ByteSource
    ) -> NDArray[np.float64]:
        """Answer the first data set; both data sets read equally many bytes of the source."""
        key = source.read(_KEY_BYTES)
        own = SeededBytes(int.from_bytes(key, "little"), "replay")
        drawn = mechanism.perturb(value, own)
        answer = _distort(value, drawn, mechanism, self.distortion, own)
        self.entries.append(_Entry(mechanism, np.array(value), drawn, answer, key))
        return answer.copy()

    def _answer_second(
        self, shifts: dict[int, NDArray[np.float64]], last: int | None = None
    ) -> Answer:
        """Return a function that answers the second data set like the first one, with given shifts.

        With `last`, the fit stops at the release with this number.
        """
        self.others = []

        def answer(value: NDArray[Any], mechanism: Any, source: ByteSource) -> NDArray[np.float64]:
            source.read(_KEY_BYTES)
            number = len(self.others)
            if number == len(self.entries):
                raise _OtherPlanError(_OTHER_COUNT)
            entry = self.entries[number]
            if mechanism != entry.mechanism or np.shape(value) != entry.value.shape:
                raise _OtherPlanError(f"release {number}: mechanism or shape depend on the data")
            shift = shifts.get(number)
            self.others.append(np.array(value) if shift is None else value + shift)
            if number == last:
                raise _AlignedError
            return entry.answer.copy() if shift is None else entry.answer + shift

        return answer

    def _solve_linear_terms(self) -> dict[int, NDArray[np.float64]]:
        """Find the linear terms of the second data set that give the minimisers of the first.

        They define one history of a perturbed objective, whose minimiser is released and whose
        linear term is not.
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
                self.unsolved |= {*numbers, last}
                continue
            try:
                found = _solve(partial(self._gap, solved=shifts, numbers=numbers), size)
            except _OtherPlanError:
                break
            shifts |= self._split_shifts(found, numbers)
        return shifts

    def _split_shifts(
        self, x: NDArray[np.float64], numbers: Sequence[int]
    ) -> dict[int, NDArray[np.float64]]:
        """Return the shift of each linear term; `x` has all shifts divided by their sensitivity."""
        entry = self.entries[numbers[0]]
        parts = x.reshape(len(numbers), *entry.value.shape) * entry.mechanism.change
        return dict(zip(numbers, parts, strict=True))

    def _gap(
        self, x: NDArray[np.float64], solved: dict[int, NDArray[np.float64]], numbers: Sequence[int]
    ) -> NDArray[np.float64]:
        """Return the differences of the two minimisers divided by the size of the first one."""
        last = numbers[-1] + 1
        shifts = {**solved, **self._split_shifts(x, numbers)}
        try:
            outcome = self.fit(self.second, self._answer_second(shifts, last))
        except _AlignedError:
            value = self.entries[last].value
            gap: NDArray[np.float64] = self.others[last] - value
            return np.ravel(gap) / max(float(np.abs(value).max()), 1e-300)
        raise outcome.error or _OtherPlanError(_OTHER_COUNT)

    def compare_releases(self) -> list[tuple[Any, float, float]]:
        """Return mechanism, distance and sensitivity of the releases of both data sets.

        For linear terms that were solved for, it is the smallest distance within the error of the
        solver; NaN if the values cannot be compared.
        """
        found = []
        for i, (entry, other) in enumerate(zip(self.entries, self.others, strict=False)):
            size, sensitivity = distance(entry.mechanism, entry.value, other)
            if isinstance(entry.mechanism, LINEAR_TERMS):
                size *= 1.0 - _SOLVER_ERROR
            found.append((entry.mechanism, math.nan if i in self.unsolved else size, sensitivity))
        return found


def _solve(
    gap: Callable[[NDArray[np.float64]], NDArray[np.float64]], size: int
) -> NDArray[np.float64]:
    """Find a zero of a gap.

    The minimiser of a hinge loss has kinks as a function of its linear term, at which Newton's
    method may stop far from the zero. The function is monotone, so steps along the gap itself
    converge, with more fits.
    """
    found = root(gap, np.zeros(size), options={"eps": 1e-8})
    if np.abs(found.fun).max() > _SOLVED:
        options = {"maxfev": _MOST_FITS, "fatol": 1e-12}
        with np.errstate(all="ignore"):
            found = root(gap, np.zeros(size), method="df-sane", options=options)
    return np.asarray(found.x)


def _distort(
    value: NDArray[Any],
    drawn: NDArray[np.float64],
    mechanism: Any,
    distortion: tuple[float, float],
    source: ByteSource,
) -> NDArray[np.float64]:
    """Return the answer of an adversary that replaces an honest draw.

    Linear terms remain honest, because their norm is bounded.
    """
    if distortion == HONEST or isinstance(mechanism, (*LINEAR_TERMS, NoNoise)):
        return drawn
    number, (of_value, of_noise) = int.from_bytes(source.read(8), "little"), distortion
    match mechanism:
        case GaussianNoise() | L2LaplaceNoise() | DiscreteLaplaceNoise():
            noise = drawn - value
            return np.asarray(of_value * value + of_noise * noise)
        case SampledGaussianNoise():
            row = value[number % len(value)]
            return np.asarray(of_value * row + of_noise * (drawn - row))
        case RandomizedResponse():
            return (value + number) % mechanism.n_classes
        case CountedChoice():
            chosen, count = number % len(value), value[int(drawn[0])]
            noise = of_noise * (drawn[1] - count)
            return np.array([chosen, of_value * value[chosen] + noise])
    rows = lists_of(mechanism, utilities(mechanism, value))
    return np.array([number % len(row) for row in rows], dtype=np.float64)
