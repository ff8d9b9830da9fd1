"""Private scores on held-out records: count, charge, add noise, and compute intervals.

All counts of a metric are released at once, and every result is a function of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_halfspace._budget import BUDGET, opened_ledger, warn_of_weak_budget
from dp_halfspace._memory import NUMBER_BYTES, OutOfMemory, refuse_beyond_memory, shortages_dropped
from dp_halfspace._params import check_values, plain, resolved_delta
from dp_halfspace._suggestion import did_you_mean
from dp_halfspace.data.cells import category_of, spellings
from dp_halfspace.data.chunks import Chunks, sum_over_chunks
from dp_halfspace.data.frame import column_of
from dp_halfspace.data.validation import is_missing
from dp_halfspace.metrics import _intervals as intervals
from dp_halfspace.metrics import _tallies as tallies
from dp_halfspace.metrics._held_out import HeldOut, held_out, known_classes
from dp_halfspace.metrics._table import ALIASES, METRICS, Metric
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Event, Gaussian, plain_data
from dp_halfspace.privacy.mechanisms import (
    ExponentialChoice,
    GaussianNoise,
    NoNoise,
    authorise,
    noise_deviation,
)
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.randomness import noise_kind, noise_source
from dp_halfspace.privacy.record import PrivacyRecord

# Share of epsilon for one quartile of scores of unknown scale, times n epsilon. The error of its
# rank is then about 1 % of n, whatever n is.
_PLACE = 150.0
# If the share would exceed this, the quartiles are assumed to be -1 and 1.
_LARGEST_PLACE_SHARE = 0.25

UNINFORMATIVE = (
    "An interval that contains every possible value is uninformative: its noise is too large. Use "
    "more records or a larger epsilon."
)


@dataclass(frozen=True, eq=False)
class PrivateScore:
    """A private score, charged to a budget; made by :func:`private_score`.

    Attributes
    ----------
    metric : str
        Name of the metric.
    value : float, or ndarray of shape (n_groups,) or (n_classes, n_classes)
        The estimate. For a confusion matrix, noisy counts between 0 and n with true labels by rows.
    interval : tuple (low, high)
        95 % confidence interval for the score on fresh records, which covers sampling and noise;
        for ``"roc_auc"`` and ``"average_precision"`` that of scores rounded to the thresholds.
        For a confusion matrix two arrays, with a separate interval of every entry, for n fresh
        records; for groups, of every group, and [0, 1] for the group ``"other"`` if its noisy size
        is at most about two standard deviations, so that it may have no records.
    privacy_ : PrivacyRecord
        The guarantee of the release, for all metrics of one call together.
    classes : ndarray of shape (n_classes,)
        The public label set, sorted.
    majority : tuple (share, low, high), or None
        Share of the majority class with a 95 % interval, from the same noisy counts. It is the
        accuracy of a model that always predicts this class. None for ``"log_loss"``, which counts
        no classes, and for groups.
    groups : tuple or None
        The public values of `by`, followed by ``"other"``.
    confusion : ndarray of shape (n_groups, n_classes, n_classes), or None
        Noisy counts of the records of every group, with true labels by rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.metrics import private_score
    >>> class Rule:
    ...     classes_ = np.array([0, 1])
    ...     def predict(self, X):
    ...         return (X[:, 0] > 0).astype(int)
    >>> X = np.linspace(-1.0, 1.0, 2000)[:, None]
    >>> print(private_score(Rule(), X, X[:, 0] > 0.5, epsilon=float("inf")))
    accuracy: 0.750, 95 % interval 0.730 to 0.769; the majority class has 0.750 of the records (...)
    """

    metric: str
    value: Any
    interval: tuple[Any, Any]
    privacy_: PrivacyRecord
    classes: NDArray[Any] = field(repr=False)
    majority: tuple[float, float, float] | None = field(repr=False, default=None)
    groups: tuple[Any, ...] | None = None
    confusion: NDArray[np.float64] | None = field(repr=False, default=None)

    @property
    def is_uninformative(self) -> bool:
        """Whether some interval is the whole range of values, so that noise hides that number."""
        metric = METRICS[self.metric]
        n_samples = dict(self.privacy_.public)["n_samples"]
        most = metric.largest if math.isfinite(metric.largest) else n_samples
        low, high = (np.ravel(end) for end in self.interval)
        return bool(np.any((low <= 0.0) & (high >= most)))

    def rows(self) -> list[tuple[str, str, str]]:
        """Return name, value and interval of every number, as texts for a table."""
        of = f" of {self.classes[1]}" if METRICS[self.metric].has_positive else ""
        names, digits = [f"{self.metric}{of}"], 3
        if self.groups is not None:
            names = [f"{names[0]}, {name}" for name in self.groups]
        elif np.ndim(self.value):
            labels, digits = self.classes, 0
            names = [f"{true}, predicted {said}" for true in labels for said in labels]
        parts = (np.ravel(part).tolist() for part in (self.value, *self.interval))
        texts = ([f"{number:.{digits}f}" for number in part] for part in parts)
        found = zip(names, *texts, strict=True)
        return [(name, value, f"{low} to {high}") for name, value, low, high in found]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold, from which `from_dict` rebuilds the score."""
        values = {each.name: plain_data(getattr(self, each.name)) for each in fields(self)}
        return {**values, "privacy_": self.privacy_.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PrivateScore:
        """Rebuild a score from the result of `to_dict`, proving the claim of its record again.

        Raises ValueError if the claim does not follow from the events of the record, or if a field
        is missing, unknown or not of its kind.

        Examples
        --------
        >>> import json
        >>> import numpy as np
        >>> from dp_halfspace.metrics import PrivateScore, private_score
        >>> class Rule:
        ...     classes_ = np.array([0, 1])
        ...     def predict(self, X):
        ...         return (X[:, 0] > 0).astype(int)
        >>> X = np.linspace(-1.0, 1.0, 2000)[:, None]
        >>> score = private_score(Rule(), X, X[:, 0] > 0.5)
        >>> text = json.dumps(score.to_dict())
        >>> PrivateScore.from_dict(json.loads(text)).value == score.value
        True
        """
        expected = {each.name for each in fields(cls)}
        if set(data) != expected or data["metric"] not in METRICS:
            raise ValueError(f"a score has a known metric, and the fields {sorted(expected)}")
        low, high = map(_to_numbers, data["interval"])
        share, groups, confusion = data["majority"], data["groups"], data["confusion"]
        parts = {
            "value": _to_numbers(data["value"]),
            "interval": (low, high),
            "privacy_": PrivacyRecord.from_dict(data["privacy_"]),
            "classes": np.asarray(data["classes"]),
            "majority": share and tuple(map(float, share)),
            "groups": groups and tuple(groups),
            "confusion": confusion and _to_numbers(confusion),
        }
        found = cls(**{**data, **parts})
        if found.classes.ndim != 1 or len(found.classes) < 2 or not found.rows():
            raise ValueError("a score has a list of classes, and a number")
        return found

    def __str__(self) -> str:
        """Describe the score in a sentence, together with the share of the majority class."""
        said = [f"{name}: {value}, 95 % interval {ends}" for name, value, ends in self.rows()]
        if self.majority is not None:
            beside = "; the majority class has {:.3f} of the records ({:.3f} to {:.3f})"
            said[-1] += beside.format(*self.majority)
        if self.is_uninformative:
            said.append(UNINFORMATIVE)
        return "\n".join(said)


def _to_numbers(value: Any) -> Any:
    """Return a number, or an array of numbers."""
    numbers = np.asarray(value, dtype=np.float64)
    return numbers if numbers.ndim else float(numbers)


def private_score(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    metric: str | Sequence[str] = "accuracy",
    epsilon: float = 1.0,
    delta: float | str = "auto",
    groups: Any = None,
    by: Any = None,
    by_values: Sequence[Any] | None = None,
    random_state: int | None = None,
    ledger: Any = None,
) -> Any:
    """Release scores of a model on held-out records, within a privacy budget.

    Parameters
    ----------
    model : fitted classifier
        Model with ``classes_`` and ``predict``; for ``"roc_auc"`` and ``"average_precision"`` with
        ``predict_proba`` or ``decision_function``, for ``"log_loss"`` with ``predict_proba``. It
        may be a pipeline. ``classes_`` may be in any order. A predicted label that is not in
        ``classes_`` counts as a wrong prediction.
    X : array-like of shape (n_samples, n_features), or in chunks
        Records that the model was not fitted to, of any type that the model accepts. Chunks
        (``docs/scaling.md``) of dask or of :mod:`dp_halfspace.datasets` are read once per metric.
    y : array-like of shape (n_samples,), or in chunks
        Labels, from the public set ``model.classes_``; for rows in chunks, in the same chunks or as
        an array.
    metric : str or list of str, default="accuracy"
        ``"accuracy"``, ``"balanced_accuracy"`` (mean of the recalls), ``"confusion_matrix"``,
        ``"log_loss"`` (natural logarithms; the loss of a record is clipped at 5), ``"roc_auc"`` or
        ``"auc"`` (two classes; scores are rounded to multiples of 0.5 in log-odds or, if there are
        no probabilities, to steps of at least a third of the width of their distribution, by two
        quartiles, each of which takes an epsilon of ``150/n``; if that is more than 25 % of the
        budget, the quartiles are taken to be -1 and 1), and for two classes, the second
        of the sorted ones being positive, ``"recall"``, ``"precision"``, ``"f1"`` and
        ``"average_precision"``. The metrics of a list have equal shares of the budget, of mu^2 or,
        if `delta` is 0, of `epsilon`. Metrics that are functions of one table (the confusion
        matrix, recall, precision and F1; the area under the curve and the average precision) are
        released together and have one share.
    epsilon : float, default=1.0
        Budget of this call, in [1e-9, 1e6], or infinite for no noise and no guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 requests pure DP.
    groups : array-like of shape (n_samples,) or None, default=None
        The person to whom each record belongs; needs ``delta > 0``. The unit of privacy is then a
        person with all their records, each of which has weight one over their number, and n is the
        number of people.
    by : array-like of shape (n_samples,) or None, default=None
        The group (for example a ward, or a sex) of each record. The result is then the score of
        every group, from one confusion matrix for each group. A record is in one group, so the
        noise of a count does not grow with their number. For metrics that are functions of a
        confusion matrix: ``"accuracy"``, ``"balanced_accuracy"``, ``"recall"``, ``"precision"`` and
        ``"f1"``.
    by_values : sequence or None, default=None
        PUBLIC list of the values of `by`, needed with it. Records with other values form a further
        group, the last one, named ``"other"``. Values are compared by their canonical texts: 1, 1.0
        and ``"1"`` are equal, because the type in which a file stores a value may depend on its
        other rows.
    random_state : int or None, default=None
        None draws the noise from the operating system. An int repeats the noise on any machine, and
        raises `PrivacyWarning`: anyone who knows it can subtract the noise.
    ledger : object with a method ``charge(record)``, path or None, default=None
        Privacy ledger that is charged before any noise is drawn.

    Returns
    -------
    PrivateScore, or list of it
        ``value``, ``interval`` (95 %, sampling and noise) and ``privacy_``; for a list of metrics
        a list, with one record for all.

    Raises
    ------
    ValueError, BudgetError
        If arguments, data, budget or the shape of what the model returns are refused. Nothing was
        spent.

    Notes
    -----
    **Privacy.** (epsilon, delta)-differentially private in the held-out records, under replace-one
    adjacency, of a record or, with `groups`, of a person with any number of records. Public: their
    number, or that of people, ``model.classes_`` and every other argument. Private:
    everything else, class counts included. The model must be public or itself private, and must
    predict each record independently of the others, as all models of this package do. Its output,
    warnings and error messages are dropped, because they may be about a single record; that it
    failed is not covered. If the held-out records belong to the same data set as
    those of the fit, charge both to the same ledger. Source: this project,
    ``docs/proofs/metrics.md``; no paper.

    Examples
    --------
    >>> from dp_halfspace import AdaptiveMarginClassifier, PrivacyLedger
    >>> from dp_halfspace.datasets import make_halfspace
    >>> from dp_halfspace.metrics import private_score
    >>> X, y = make_halfspace(4000, 5, margin=0.2, random_state=0)
    >>> ledger = PrivacyLedger(epsilon=2.0, delta=1e-6)
    >>> model = AdaptiveMarginClassifier(epsilon=1.0, delta=1e-7, classes=[-1, 1], ledger=ledger)
    >>> model = model.fit(X[:2000], y[:2000])
    >>> score = private_score(model, X[2000:], y[2000:], delta=1e-7, ledger=ledger)
    >>> low, high = score.interval
    >>> 0.8 < low <= score.value <= high <= 1.0
    True
    """
    # Whether a number under- or overflows is private.
    with shortages_dropped(), np.errstate(all="ignore"):
        names = list(metric) if np.iterable(metric) and not isinstance(metric, str) else [metric]
        metrics: list[Any] = [ALIASES.get(str(name), name) for name in names]
        metric = metrics[0] if isinstance(metric, str) else metrics
        if not metrics:
            raise ValueError("metric is an empty list: name at least one metric")
        for name in metrics:
            if not isinstance(name, str) or name not in METRICS:
                meant = did_you_mean(str(name), METRICS) or f"; choose from {', '.join(METRICS)}"
                raise ValueError(f"{name!r} is not a metric{meant}")
        others: dict[str, Any] = {"random_state": random_state, "ledger": ledger}
        check_values(BUDGET, {"epsilon": epsilon, "delta": delta, **others}, "private_score")
        data = _check_held_out(model, X, y, metrics, groups)
        if by_values is not None:
            is_list = np.iterable(by_values) and not isinstance(by_values, str)
            by_values = [plain(value) for value in by_values] if is_list else []
        if by is not None or by_values is not None:
            group = _groups_of(by, by_values, data, metrics)
            # The group of all other values follows the public values.
            data = replace(data, n_groups=len(by_values or ()) + 1)
        if by is not None or _TABLE_OF_GROUPS in metrics:
            n_counts = data.n_groups * len(data.classes) ** 2
            table = f"a table of {n_counts} noisy counts, of all pairs of classes,"
            # With its noise, and with its intervals.
            n_bytes = 10 * NUMBER_BYTES * n_counts
            refuse_beyond_memory(n_bytes, table, "choose another metric, or fewer groups")
        epsilon, delta = float(epsilon), resolved_delta(delta, data.n)
        if groups is not None and delta == 0 and math.isfinite(epsilon):
            raise ValueError("groups needs delta > 0: the noise of pure DP is for whole records")
        tables = metrics if by is None else [_TABLE_OF_GROUPS]

        def plan(epsilon: float) -> tuple[list[_Job], PrivacyRecord]:
            """Fix every public number of a call with this epsilon."""
            jobs = _jobs(tables, model, n=data.n, epsilon=epsilon, delta=delta)
            sizes = {"n_samples": data.n, "n_classes": len(data.classes)}
            values = {} if by_values is None else {"by_values": [str(each) for each in by_values]}
            record = PrivacyRecord(
                epsilon=epsilon,
                delta=delta,
                adjacency="replace-one" if data.people is None else "replace-one-person",
                events=tuple(event for job in jobs for event in job.events),
                noise=noise_kind(random_state, epsilon),
                public={**sizes, "metric": metric, **values},
            )
            return jobs, record

        jobs, record = plan(epsilon)
        warn_of_weak_budget(record)
        _warn_of_cells(model, metrics)
        values = [data.outcomes(METRICS[job.names[0]].outcome, model) for job in jobs]
        if by is not None:
            # Each class of each group is counted like a class.
            data = replace(data, codes=group * len(data.classes) + data.codes)
        account = opened_ledger(ledger, "private_score", lambda epsilon: plan(epsilon)[1])
        permit = authorise(record, noise_source(random_state), account)
        releases: dict[str, intervals.Released] = {}
        for job, each in zip(jobs, values, strict=True):
            door = Door(replace(data, values=each), permit)
            releases |= dict.fromkeys(job.names, job.run(door, data.n))
        if by is not None:
            releases = dict.fromkeys(metrics, releases[_TABLE_OF_GROUPS])
        shown = None if by_values is None else (*by_values, _OTHER)
        scores = [_score(name, releases[name], record, data.classes, shown) for name in metrics]
        return scores[0] if isinstance(metric, str) else scores
    raise OutOfMemory(
        "there is not enough memory for this score: give fewer records, or chunks of them, as by "
        "dp_halfspace.datasets.in_chunks. What a ledger was charged remains charged"
    )


def _warn_of_cells(model: Any, metrics: Sequence[str]) -> None:
    """Warn where cells of scores tell no more than labels."""
    if of_scores := [name for name in metrics if METRICS[name].has_cells]:
        what = f"{' and '.join(of_scores)} will be about as if only the labels were known"
        tallies.warn_of_like_probabilities(model, what)


_TABLE_OF_GROUPS = "confusion_matrix"
# Name of the group of all records with a value outside the public list.
_OTHER = "other"


@dataclass(frozen=True, slots=True)
class _Job:
    """One table to release, defined by public numbers, and the metrics that are functions of it."""

    names: tuple[str, ...]
    borders: NDArray[np.float64] | None
    place: ExponentialChoice | NoNoise | None
    noise: GaussianNoise | DiscreteLaplaceNoise | NoNoise

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that is released."""
        return (*(() if self.place is None else 2 * (self.place.event,)), self.noise.event)

    def run(self, door: Door, n: int) -> intervals.Released:
        """Count the outcomes of `n` records and add the noise; return what was released.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one, of a record or of a person with all rows.
        - Released: one table of noisy sums, preceded by the quartiles of the scores if no cells are
          stated.
        - Sensitivity: that of the metric in `METRICS`, of the table.
        - Proof: ``docs/proofs/metrics.md``, sections 1 to 3.
        """
        metric, borders = METRICS[self.names[0]], self.borders
        if metric.has_cells and borders is None:
            borders = tallies.cells_between(self._quartiles(door))

        def ask(data: HeldOut) -> NDArray[np.float64]:
            cells = tallies.Cells(len(data.classes), borders, data.people, data.n_groups)
            return np.asarray(sum_over_chunks(metric.tally, data.values, data.codes, cells))

        counts = door.release(ask, self.noise)
        is_laplace = isinstance(self.noise, DiscreteLaplaceNoise)
        return intervals.Released(counts, n, noise_deviation(self.noise) ** 2, is_laplace)

    def _quartiles(self, door: Door) -> NDArray[np.float64]:
        """Release the quartiles of the scores.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one, of a record or of a person with all rows.
        - Released: two of the public places, each by the exponential mechanism.
        - Sensitivity: 1, of the number of records on either side of a place.
        - Proof: ``docs/proofs/metrics.md``, section 2.
        """
        if self.place is None:
            return np.array([-1.0, 1.0])
        distances = door.map(_distances)
        chosen = [distances.choose(itemgetter(k), self.place) for k in range(2)]
        return np.asarray(tallies.PLACES[chosen])


def _distances(data: HeldOut) -> Any:
    """Return the distances of all places from the two quartiles."""
    counts = sum_over_chunks(tallies.between_places, data.values, data.people)
    return tallies.places(counts, data.n)


def _score(
    name: str,
    released: intervals.Released,
    record: PrivacyRecord,
    classes: NDArray[Any],
    groups: tuple[Any, ...] | None,
) -> PrivateScore:
    """Estimate a metric, or that of every group, from the table that it is a function of."""
    metric = METRICS[name]
    if groups is None:
        largest = metric.largest if math.isfinite(metric.largest) else float(released.n)
        found = intervals.within_range(metric.estimate(released), largest)
        value, low, high = found.tolist() if found.ndim == 1 else found
        majority = metric.majority and tuple(metric.majority(released).tolist())
        return PrivateScore(name, value, (low, high), record, classes, majority)
    assert metric.in_group is not None, "checked before anything was charged"
    tables = released.counts.reshape(len(groups), len(classes), len(classes))
    released = replace(released, counts=tables)
    value, low, high = intervals.within_range(metric.in_group(released))
    # The group of values that are not listed is often empty, and then has no score.
    others = tables[-1]
    if others.sum() <= intervals.DEVIATIONS * math.sqrt(others.size * released.variance):
        low[-1], high[-1] = 0.0, 1.0
    return PrivateScore(name, value, (low, high), record, classes, None, groups, tables)


def _groups_of(
    by: Any, by_values: Sequence[Any] | None, data: HeldOut, metrics: Sequence[str]
) -> NDArray[np.intp]:
    """Return the number of the group of each record, in the order of the labels.

    Values that are not listed are in the last group. Values are compared by their canonical texts.
    A single text in a column of a file turns all numbers of the column into texts, and this must
    not change the groups of the other records.
    """
    if by is None or by_values is None:
        raise ValueError("by and by_values go together: groups of records, and their PUBLIC list")
    if isinstance(data.X, Chunks):
        raise ValueError("by is not supported for rows in chunks: give X as an array or a frame")
    for name in metrics:
        if METRICS[name].in_group is None:
            known = ", ".join(k for k, metric in METRICS.items() if metric.in_group is not None)
            raise ValueError(f"metric={name!r} cannot be released by group: choose among {known}")
    listed = [None if is_missing(value) else category_of(value) for value in by_values]
    categories = tuple(value for value in listed if value is not None)
    if not listed or len(categories) < len(listed):
        raise ValueError("by_values must be a list of at least one value, and of none missing")
    if len(set(categories)) < len(categories):
        raise ValueError("by_values must not list a value twice; 1 and '1' are one value")
    number, is_hidden = spellings(categories), data.people is not None
    column = column_of("by", by, len(data.codes), "the group of each record", hides_rows=is_hidden)
    codes = column.read(lambda cell: number.get(category_of(cell) or "", len(listed)), np.intp)
    return codes if data.order is None else codes[data.order]


def _jobs(
    metrics: Sequence[str], model: Any, *, n: int, epsilon: float, delta: float
) -> list[_Job]:
    """Divide a budget in equal parts of mu^2, less quartiles, or of epsilon (pure DP)."""
    tables: dict[Any, list[str]] = {}
    for name in metrics:
        # Metrics of the same counts of the same outcomes are decided by one release.
        tables.setdefault((METRICS[name].tally, METRICS[name].outcome), []).append(name)
    part = Budget.of(epsilon, 0.0).equal_parts(len(tables))
    # There is one table of scores at most.
    borders = tallies.HALF_LOG_ODDS if hasattr(model, "predict_proba") else None
    share = _PLACE / (n * part.epsilon)
    learns = borders is None and any(METRICS[name].has_cells for name in metrics)
    place: ExponentialChoice | NoNoise | None = None
    if learns and math.isinf(epsilon):
        place = NoNoise()
    elif learns and share <= _LARGEST_PLACE_SHARE:
        # A record moves the number of scores up to a candidate by at most one:
        # `docs/proofs/metrics.md`, section 2.
        place = ExponentialChoice(1.0, share * part.epsilon)
    mu = 0.0
    if delta > 0 and math.isfinite(epsilon):
        mu = gdp_mu(epsilon, delta)
        if place is not None:
            others = [place.event] * 2
            mu = accounting.calibrate(
                lambda mu: [*others, Gaussian(mu)], epsilon, delta, lower=0.0, upper=mu, rtol=1e-4
            )
        mu = Budget.gaussian(mu).equal_parts(len(tables)).mu
    jobs = []
    for names in tables.values():
        metric = METRICS[names[0]]
        own = (borders, place) if metric.has_cells else (None, None)
        left = part.split(2.0 * share)[1] if own[1] else part
        jobs.append(_Job(tuple(names), *own, _noise(metric, left.epsilon, mu)))
    return jobs


def _check_held_out(
    model: Any, X: Any, y: ArrayLike, metrics: Sequence[str], groups: Any
) -> HeldOut:
    """Check the methods that the metrics need, then the schema of the records."""
    n_classes = len(known_classes(model))
    for name in metrics:
        metric = METRICS[name]
        if not any(hasattr(model, method) for method in metric.methods):
            raise ValueError(f"metric={name!r} needs a model with {' or '.join(metric.methods)}")
        if metric.is_binary and n_classes != 2:
            raise ValueError(f"metric={name!r} needs two classes, and the model has {n_classes}")
    return held_out(model, X, y, groups)


def _noise(
    metric: Metric, epsilon: float, mu: float
) -> GaussianNoise | DiscreteLaplaceNoise | NoNoise:
    """Choose the noise by public numbers alone; without mu it is that of pure DP.

    Both sensitivities are those of ``docs/proofs/metrics.md``, Lemma 1.
    """
    absolute, euclidean = metric.sensitivity
    if math.isinf(epsilon):
        return NoNoise()
    return GaussianNoise(euclidean, mu) if mu else DiscreteLaplaceNoise(absolute, epsilon)
