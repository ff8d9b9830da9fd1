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
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, groupby
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import root

from dp_halfspace._arrays import FloatArray
from dp_halfspace._params import checked_size
from dp_halfspace._repeated_fits import fits_not_counted
from dp_halfspace.audit import mechanism_checks as checks
from dp_halfspace.audit._visible import attributes, digest_class_attributes, fingerprint
from dp_halfspace.audit.black_box import clone_without_ledgers
from dp_halfspace.data.validation import n_rows
from dp_halfspace.privacy.events import Gaussian, RandomStopping
from dp_halfspace.privacy.interception import Answer, intercept_releases
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, ByteSource, SeededBytes
from dp_halfspace.privacy.record import PrivacyRecord

# Features and labels.
DataSet: TypeAlias = tuple[Any, Any]


# An adversarial answer is a multiple of the exact value plus a multiple of the noise. In successive
# histories there are two real ones, one for each data set, then adversarial ones.
_DISTORTIONS = (None, None, (1.0, 30.0), (-30.0, 1.0), (0.0, 0.0))
# Probability with which noise of the correct scale is judged too small.
_FALSE_ALARM = 1e-6
# Relative difference of two totals, two minimisers or two linear terms that count as equal; linear
# terms are solved for, with an error of 1e-11.
_EQUAL = 1e-6
# A pure DP run, chosen among a random number of them, costs this many times its epsilon:
# Papernot and Steinke (2022), Corollary 3, with a geometric number.
_COST_OF_STOPPED_RUNS = 3.0
# Linear terms of more coefficients are not solved for, because each coefficient needs a fit.
_MOST_COEFFICIENTS = 48
_OTHER_COUNT = "the number of releases depends on the data"
# Warning filters belong to the whole process: only one replay at a time records warnings.
_REPLAY_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class ReplayedRelease:
    """One release on both data sets.

    Attributes
    ----------
    mechanism : object
        The mechanism, with its scale.
    distance : float
        Distance of the exact values, in the norm of the mechanism. For a perturbed objective, the
        distance of the two linear terms with the same minimiser.
    sensitivity : float
        The sensitivity that was charged; infinity for a release without noise.
    """

    mechanism: Any
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
    recomposed : float
        Epsilon, at the delta of the charge, of the releases that differed, recomputed from the
        recorded scales; the largest over all histories. For a selection with a random number of
        runs, that of one run. NaN if every fit raised.
    noise_level : float
        Probability that correct noise is as small as the noise that was drawn.
    findings : tuple of str
        Observations that contradict the charge; empty if there are none.
    """

    releases: tuple[ReplayedRelease, ...]
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
    random_state: int | None = None,
) -> ReplayResult:
    """Compare every release of two neighbouring data sets, given the same answers to both.

    Parameters
    ----------
    estimator : estimator of this package, or function of `X` and `y`
        Clones of it are fitted, without its ledger, in this thread. A function (for example one
        that calls ``private_score``, or ``fit`` with persons that it takes as a part of `X`) must
        not charge a ledger.
    X, y : array-like
        A data set, as ``fit`` takes it.
    X_neighbour, y_neighbour : array-like
        The neighbouring data set, chosen so that the replaced record has a large effect.
    n_histories : int, default=5
        Number of histories, at least 1. The first two have the answers of real fits, one to each
        data set. Further ones have adversarial answers: thirty times the noise, the negated value,
        all zeros, and random choices.
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
    seed = None if random_state is None else checked_size("random_state", random_state, least=0)
    # A function may take persons, who may have any numbers of rows.
    if hasattr(estimator, "fit") and n_rows(X) != n_rows(X_neighbour):
        raise ValueError(
            "X and X_neighbour must have the same number of rows, which is public: neighbours "
            "differ in one replaced record"
        )
    source = OS_RANDOMNESS if seed is None else SeededBytes(seed, "replay")
    pair, histories = ((X, y), (X_neighbour, y_neighbour)), []
    with _REPLAY_LOCK:
        for number, distortion in zip(range(n_histories), cycle(_DISTORTIONS), strict=False):
            fit = partial(fit_and_record, estimator, int.from_bytes(source.read(4), "little"))
            first, second = pair[:: -1 if number % 2 else 1]
            histories.append(History(fit, distortion, first, second))
            histories[-1].run()
    return _conclude(histories)


def _conclude(histories: Sequence[History]) -> ReplayResult:
    """Return the observations that contradict the charge."""
    findings = [text for history in histories for text in history.findings]
    compared = [history.compare_releases() for history in histories]
    releases = tuple(each for found in compared for each in found if not math.isnan(each.distance))
    findings += [
        f"{type(each.mechanism).__name__}: values {each.ratio:.4g} times the sensitivity apart"
        for each in releases
        if each.ratio > 1.0
    ]
    entries = [entry for history in histories for entry in history.entries]
    if max(Counter(entry.key for entry in entries).values(), default=1) > 1:
        findings.append("the same random bytes are used twice")
    level = checks.noise_level((entry.mechanism, entry.value, entry.drawn) for entry in entries)
    if level < _FALSE_ALARM:
        findings.append(
            f"noise is too small: correct noise would be this small with probability {level:.1e}"
        )
    record = next((h.record for h in histories if h.record is not None), None)
    if record is None and not findings:
        raise ValueError("the estimator leaves no record: it has no attribute privacy_")
    cost = math.nan
    if record is not None:
        cost = max(_recompose(found, record) for found in compared)
        if cost > record.epsilon * (1.0 + _EQUAL):
            findings.append(
                f"releases cost epsilon={cost:.6g}, but the charge is {record.epsilon:.6g}"
            )
    return ReplayResult(releases, cost, level, tuple(findings))


def _recompose(compared: list[ReplayedRelease], record: PrivacyRecord) -> float:
    """Compose the releases that differ; for a random number of runs, those of the costliest run.

    Equal exact values cost nothing, except for linear terms, which are not released.
    """
    mechanisms = [
        (each.mechanism, isinstance(each.mechanism, checks.LINEAR_TERMS) or each.distance != 0)
        for each in compared
    ]
    selections = [event for event in record.events if isinstance(event, RandomStopping)]
    is_stopped = dict(record.public).get("selection") == "random_stopping"
    if not selections and not is_stopped:
        differing = [mechanism for mechanism, differs in mechanisms if differs]
        return checks.epsilon_of(differing, record.delta)
    runs, before = _split_runs(mechanisms, record)
    if not selections:
        return max(_COST_OF_STOPPED_RUNS * checks.epsilon_of(run, record.delta) for run in runs)
    charged = selections[0].mu
    for run in runs:
        mu, losses, _ = checks.losses_of(run)
        for epsilon in np.linspace(0.0, 2.0, 9) * charged:
            allowed = checks.delta_at(charged, {0.0: 1.0}, epsilon) + 1e-9
            if checks.delta_at(mu, losses, epsilon) > allowed:
                return math.inf
    return max(checks.epsilon_of([*before, *run], record.delta) for run in runs)


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
    drawn: FloatArray
    answer: FloatArray
    key: bytes


@dataclass(slots=True)
class _Outcome:
    """What a fit leaves: a result or an exception, and a digest of everything that is visible."""

    model: Any
    error: Exception | None
    visible: dict[str, bytes]

    def differences(self, other: _Outcome) -> list[str]:
        """Return the names of the differences; after an exception there is no model to compare."""
        names = self.visible.keys() | other.visible.keys()
        if self.error or other.error:
            names &= {"output", "exceptions"}
        return sorted(name for name in names if self.visible.get(name) != other.visible.get(name))


def fit_and_record(estimator: Any, seed: int, data: DataSet, answer: Answer) -> _Outcome:
    """Fit a data set with given answers, and record what is visible."""
    result, raised, parts = None, None, [estimator]
    # What is written to either stream is recorded instead of shown.
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="utf-8", write_through=True)
    with (
        warnings.catch_warnings(record=True) as caught,
        redirect_stdout(stream),
        redirect_stderr(stream),
        fits_not_counted(),
        intercept_releases(answer),
    ):
        warnings.simplefilter("always")
        try:
            if not hasattr(estimator, "fit"):
                result = estimator(*data)
            else:
                model = clone_without_ledgers(estimator, seed)
                result = model.fit(*data)
                parts += model.get_params().values()
        except _AlignedError:
            raise
        except Exception as error:  # noqa: BLE001
            raised = error
    stream.detach()  # a wrapper that is deleted closes what it wraps
    said = [f"{w.category.__name__}: {w.message} ({w.filename}:{w.lineno})" for w in caught]
    # Every attribute of a fitted model, with hidden ones, or a result.
    held = attributes(result) if hasattr(result, "get_params") else {}
    visible = {
        "output": written.getvalue(),
        "exceptions": fingerprint(raised),
        "warnings": fingerprint(said),
        **digest_class_attributes(result, *parts),
        **{name: fingerprint(each) for name, each in (held or {"the result": result}).items()},
    }
    return _Outcome(result, raised, visible)


@dataclass(slots=True)
class History:
    """One history of answers to both data sets; `run` fills in the results."""

    fit: Callable[[DataSet, Answer], _Outcome]
    # None for real answers.
    distortion: tuple[float, float] | None
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

    def _answer_first(self, value: NDArray[Any], mechanism: Any, source: ByteSource) -> FloatArray:
        """Answer the first data set; both data sets read equally many bytes of the source."""
        # Bytes that identify the draw.
        key = source.read(32)
        own = SeededBytes(int.from_bytes(key, "little"), "replay")
        answer = drawn = np.asarray(mechanism.perturb(value, own))
        if self.distortion is not None:
            answer = checks.distort(value, drawn, mechanism, self.distortion, own)
        self.entries.append(_Entry(mechanism, np.array(value), drawn, answer, key))
        return answer.copy()

    def _answer_second(self, shifts: dict[int, FloatArray], last: int | None = None) -> Answer:
        """Return a function that answers the second data set like the first one, with given shifts.

        With `last`, the fit stops at the release with this number.
        """
        self.others = []

        def answer(value: NDArray[Any], mechanism: Any, source: ByteSource) -> FloatArray:
            number = len(self.others)
            if number == len(self.entries):
                raise _OtherPlanError(_OTHER_COUNT)
            entry = self.entries[number]
            source.read(len(entry.key))
            if mechanism != entry.mechanism or np.shape(value) != entry.value.shape:
                raise _OtherPlanError(f"release {number}: mechanism or shape depend on the data")
            shift = shifts.get(number)
            self.others.append(np.array(value) if shift is None else value + shift)
            if number == last:
                raise _AlignedError
            return entry.answer.copy() if shift is None else entry.answer + shift

        return answer

    def _solve_linear_terms(self) -> dict[int, FloatArray]:
        """Find the linear terms of the second data set that give the minimisers of the first.

        They define one history of a perturbed objective, whose minimiser is released and whose
        linear term is not.
        """
        shifts: dict[int, FloatArray] = {}
        are_linear = [isinstance(each.mechanism, checks.LINEAR_TERMS) for each in self.entries]
        kinds = groupby(range(len(self.entries)), are_linear.__getitem__)
        for numbers in (list(group) for is_linear, group in kinds if is_linear):
            last, size = numbers[-1] + 1, len(numbers) * self.entries[numbers[0]].value.size
            if last == len(self.entries):
                continue
            if size > _MOST_COEFFICIENTS:
                self.unsolved |= {*numbers, last}
                continue
            try:
                shifts = self._with_terms(numbers, shifts)
            except _OtherPlanError:
                break
        return shifts

    def _with_terms(
        self, numbers: Sequence[int], shifts: dict[int, FloatArray]
    ) -> dict[int, FloatArray]:
        """Add the shifts of linear terms, at which the minimisers behind them agree."""
        entry, last = self.entries[numbers[0]], numbers[-1] + 1
        shape = len(numbers), *entry.value.shape

        def shifted(x: FloatArray) -> dict[int, FloatArray]:
            parts = x.reshape(shape) * entry.mechanism.change
            return {**shifts, **dict(zip(numbers, parts, strict=True))}

        def gap(x: FloatArray) -> FloatArray:
            try:
                outcome = self.fit(self.second, self._answer_second(shifted(x), last))
            except _AlignedError:
                value = self.entries[last].value
                return np.ravel(self.others[last] - value) / max(float(np.abs(value).max()), 1e-300)
            raise outcome.error or _OtherPlanError(_OTHER_COUNT)

        size = math.prod(shape)
        found = root(gap, np.zeros(size), options={"eps": 1e-8})
        if np.abs(found.fun).max() > _EQUAL:
            # The minimiser of a hinge loss has kinks as a function of its linear term, at which
            # Newton's method may stop far from the zero. The function is monotone, so steps along
            # the gap itself converge, with more fits.
            with np.errstate(all="ignore"):
                found = root(gap, np.zeros(size), method="df-sane", options={"fatol": 1e-12})
        return shifted(np.asarray(found.x))

    def compare_releases(self) -> list[ReplayedRelease]:
        """Compare the releases of both data sets; the distance of those that cannot be is NaN.

        For linear terms it is the smallest one within the error of the solver.
        """
        found = []
        for i, (entry, other) in enumerate(zip(self.entries, self.others, strict=False)):
            size, sensitivity = checks.distance(entry.mechanism, entry.value, other)
            if isinstance(entry.mechanism, checks.LINEAR_TERMS):
                size *= 1.0 - _EQUAL
            size = math.nan if i in self.unsolved else size
            found.append(ReplayedRelease(entry.mechanism, size, sensitivity))
        return found
