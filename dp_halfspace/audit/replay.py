"""A replay: two neighbouring data sets are given the same answers, and every query is compared.

The first data set is fitted and its releases are kept. The second one is fitted with these
releases in place of its own. Then all that may differ are the values under the noise, by what was
charged for, and nothing of the models.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dp_halfspace.audit._history import TWISTS, History, fitter
from dp_halfspace.audit._mechanisms import delta_at, epsilon_of, noise_level, terms_of
from dp_halfspace.privacy.events import Gaussian, Selection
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, SeededBytes
from dp_halfspace.privacy.record import PrivacyRecord

__all__ = ["ReplayResult", "ReplayedRelease", "replay"]

# Right noise looks too small with this probability.
_FALSE_ALARM = 1e-6
# Relative; between two ways to add up the same.
_SLACK = 1e-6
# A purely private run, chosen among a random number of them, costs this much; Papernot and
# Steinke (2022), Corollary 3, with a geometric number.
_STOPPED_RUNS = 3.0
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
        The charge; NaN, as `recomposed` is, where every fit raised.
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
    estimator : estimator of this package, or function of `X` and `y` (and `groups`, if given)
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
    **Privacy.** The result is a function of the records without any noise: it is for whoever
    holds them. No ledger is charged and other threads draw their noise as ever. Nothing found is
    no proof; the proofs are in ``docs/proofs``. Compared are releases, warnings, exceptions, what
    the thread writes to ``sys.stdout`` and ``sys.stderr``, class attributes, and all that the
    model holds in ``__dict__`` and ``__slots__``, whatever ``__getstate__`` says. Not seen: what a
    type of C code holds and does not pickle, global variables, logs, files, descriptors, other
    threads and processes, draws that are no releases (how many runs a selection has), and running
    time. Source: this project, ``docs/audit.md``.

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
            twist = TWISTS[number % len(TWISTS)]
            order = pair[:: -1 if number % 2 else 1]
            histories.append(History(number, fitter(estimator, seed), twist, *order).played())
    return _result(histories)


def _result(histories: Sequence[History]) -> ReplayResult:
    """Draw conclusions."""
    findings = [text for history in histories for text in history.findings]
    releases = [
        ReplayedRelease(history.number, *compared)
        for history in histories
        for compared in history.compared()
    ]
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
    if record is None and not findings:
        raise ValueError("the estimator leaves no record: it has no attribute privacy_")
    if record is None:
        nothing = math.nan
        return ReplayResult(tuple(releases), nothing, nothing, nothing, level, tuple(findings))
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
