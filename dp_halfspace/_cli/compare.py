"""Fit every estimator of the suite, and two baselines, at several budgets."""

from __future__ import annotations

import inspect
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO, TypeAlias

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags

import dp_halfspace
from dp_halfspace._cli.problems import Problem
from dp_halfspace._cli.progress import Progress
from dp_halfspace._sklearn_compat import single_blas_thread

BASELINES: dict[str, Callable[[], BaseEstimator]] = {
    "majority class": lambda: DummyClassifier(strategy="most_frequent"),
    "LinearSVC, not private": lambda: make_pipeline(
        SimpleImputer(keep_empty_features=True),
        StandardScaler(with_mean=False),
        LinearSVC(random_state=0),
    ),
}

_PURE_NOTE = (
    "pure epsilon only, hence fitted with delta 0, a stronger promise than (epsilon, delta)."
)
_SEED_NOTE = (
    "--seed gives every classifier an int random_state: good for comparisons, never for a release."
)


# Name, budget if it has one, and estimator.
_Trial: TypeAlias = tuple[str, float | None, Any]


@dataclass(frozen=True, slots=True)
class Score:
    """What one fit gave; adjacency and budgets are None for baselines, which are not private."""

    dataset: str
    estimator: str
    adjacency: str | None
    epsilon: float | None
    accuracy: float
    auc: float
    seconds: float
    epsilon_spent: float | None
    delta_spent: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All scores, and what a reader must know about them."""

    scores: tuple[Score, ...]
    notes: tuple[str, ...]
    stopped: str = ""  # how many fits were done when the user interrupted


def private_estimators() -> dict[str, Any]:
    """Classifiers that the package exports and that need no argument, in order of name."""
    exported = {name: getattr(dp_halfspace, name) for name in sorted(dp_halfspace.__all__)}
    kinds = {
        name: value
        for name, value in exported.items()
        if inspect.isclass(value)
        and issubclass(value, ClassifierMixin)
        and issubclass(value, BaseEstimator)
    }
    # A meta-estimator has a parameter without a default.
    return {
        name: kind
        for name, kind in kinds.items()
        if all(p.default is not p.empty for p in inspect.signature(kind).parameters.values())
    }


def compare(problem: Problem, options: Any, stream: TextIO) -> Comparison:
    """Run every fit and show progress on a stream; a refused combination becomes a note."""
    scores: list[Score] = []
    kinds, left_out = _applicable(problem)
    notes = dict.fromkeys([*problem.notes, *left_out])
    refusals: dict[tuple[str, str], list[float | None]] = {}
    n_fits = options.repeats * (len(BASELINES) + len(kinds) * len(options.epsilons))
    progress, stopped = Progress(n_fits, stream), ""
    with warnings.catch_warnings(record=True) as caught, single_blas_thread():
        warnings.simplefilter("always")
        try:
            for repeat in range(options.repeats):
                split = _split(problem, options, repeat)
                for trial in _trials(problem, kinds, options, repeat):
                    progress.start(trial[0])
                    outcome = _run(problem, trial, split, progress)
                    if isinstance(outcome, Score):
                        scores.append(outcome)
                    else:
                        refusals.setdefault((trial[0], outcome), []).append(trial[1])
                    progress.step()
        except KeyboardInterrupt:
            progress.clear()
            stopped = f"{progress.done} of {n_fits} fits"
            if not scores:
                raise
    pure = sorted(name for name, kind in kinds.items() if _is_pure(kind))
    if pure and options.delta != 0:
        notes[f"{', '.join(pure)}: {_PURE_NOTE}"] = None
    if options.seed is not None:
        notes[_SEED_NOTE] = None
    notes.update(dict.fromkeys(_refusal(*key, budgets) for key, budgets in refusals.items()))
    for warning in caught:
        notes[f"{warning.category.__name__}: {' '.join(str(warning.message).split())}"] = None
    return Comparison(tuple(scores), tuple(notes), stopped)


def _is_pure(kind: Any) -> bool:
    """Tell whether a class offers pure epsilon only: its own delta is 0."""
    return bool(kind().get_params().get("delta") == 0)


def _refusal(name: str, reason: str, budgets: Iterable[float | None]) -> str:
    """Say once at which budgets an estimator refused."""
    values = ", ".join(f"{e:g}" for e in dict.fromkeys(budgets) if e is not None)
    return f"{name}{f' at epsilon {values}' if values else ''} refused: {reason}"


def _applicable(problem: Problem) -> tuple[dict[str, Any], list[str]]:
    """Choose the estimators that take a kind of data, and say why the others do not."""
    kinds, left_out = {}, []
    for name, kind in private_estimators().items():
        tags = get_tags(kind())
        if len(problem.classes) > 2 and not tags.classifier_tags.multi_class:
            left_out.append(f"{name} was left out, it is for two classes.")
        elif issparse(problem.X) and not tags.input_tags.sparse:
            left_out.append(f"{name} was left out, it takes no sparse rows.")
        else:
            kinds[name] = kind
    return kinds, left_out


def _seed(seed: int | None, *labels: object) -> int | None:
    """Derive a seed for one purpose, so that no two fits share their noise."""
    return None if seed is None else zlib.crc32(repr((seed, *labels)).encode())


def _split(problem: Problem, options: Any, repeat: int) -> list[Any]:
    """Hold out test rows of every class: numbers of training and of test rows."""
    split: list[Any] = train_test_split(
        np.arange(len(problem.y)),
        test_size=options.test_size,
        stratify=problem.y,
        random_state=_seed(options.seed, "split", repeat),
    )
    return split


def _trials(problem: Problem, kinds: dict[str, Any], options: Any, repeat: int) -> Iterator[_Trial]:
    """List what to fit on one split: baselines, then estimators by budget."""
    for name, make in BASELINES.items():
        yield name, None, make()
    for name, kind in kinds.items():
        known = kind().get_params()
        for epsilon in sorted(set(options.epsilons)):
            given = {
                "epsilon": epsilon,
                "delta": 0.0 if _is_pure(kind) else options.delta,
                "data_norm": problem.data_norm,
                "schema": problem.rules
                or dict.fromkeys(map(str, range(problem.X.shape[1])), "number"),
                "classes": problem.classes,
                "random_state": _seed(options.seed, name, epsilon, repeat),
            }
            yield name, epsilon, kind(**{key: given[key] for key in given.keys() & known})


def _run(problem: Problem, trial: _Trial, split: Sequence[Any], progress: Progress) -> Score | str:
    """Fit and score, or say why the estimator refused."""
    name, epsilon, estimator = trial
    params = estimator.get_params() if epsilon is not None else {}
    rows: Any = problem.X
    if problem.table is not None and "schema" in params:
        rows = problem.table.iloc  # as it is in the file
    (X, Z), (y, t) = ([of[part] for part in split] for of in (rows, problem.y))
    started = time.perf_counter()
    try:
        with progress.fit() as watch:
            if "ledger" in params:
                estimator.set_params(ledger=watch)
            fitted = estimator.fit(X, y)
    except ValueError as refusal:
        return " ".join(str(refusal).split())
    seconds = time.perf_counter() - started
    record = getattr(fitted, "privacy_", None)
    return Score(
        dataset=problem.name,
        estimator=name,
        adjacency=record and str(record.adjacency),
        epsilon=epsilon,
        accuracy=float(accuracy_score(t, fitted.predict(Z))),
        auc=_auc(fitted, Z, t),
        seconds=seconds,
        epsilon_spent=record and float(record.epsilon),
        delta_spent=record and float(record.delta),
    )


def _auc(fitted: Any, Z: Any, t: Any) -> float:
    """Area under the ROC curve; one class against the others, averaged, if there are many."""
    decide = getattr(fitted, "decision_function", None) or fitted.predict_proba
    scores = np.asarray(decide(Z))
    one = scores.ndim == 1
    columns = zip(
        fitted.classes_[1:] if one else fitted.classes_,
        scores[None] if one else scores.T,
        strict=True,
    )
    areas = [
        roc_auc_score(t == label, column)
        for label, column in columns
        if 0 < np.sum(t == label) < len(t)
    ]
    return float(np.mean(areas)) if areas else float("nan")
