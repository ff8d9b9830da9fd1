r"""Compare classifiers on a PUBLIC table by repeated stratified cross-validation.

    python -m benchmarks.cross_validation breast_cancer AdaptiveMarginClassifier LogisticRegression
    python -m benchmarks.cross_validation my.csv --target outcome --scoring roc_auc --repeats 4 \
        "AdaptiveMarginClassifier(epsilon=.3)" "StandardScaler + LogisticRegression(C=.1)"

A table is a CSV file or one of scikit-learn's (breast_cancer, digits, iris, wine). Classifiers are
those of dp_halfspace and of scikit-learn, with parameters as Python literals; "+" makes a pipeline.
`PrivateTableClassifier` gets the whole table, the others its numeric columns. The folds come from
one public seed, the same for all; the noise from the operating system.

The scores are exact, so they must not be published for private data. The last column says what a
release of all of them would cost if the table were private: the fits composed exactly, and in each
repetition one private score for each fold (folds are disjoint, so they cost as much as one), each
with ``--score-epsilon``. Folds would then have to be made by position, because stratified folds
depend on the labels. A classifier without a guarantee has no such number.

Intervals are for the mean over training sets of that size: Student's, with the variance of a score
times 1 / J + 1 / (K - 1) for J scores from K folds, because training sets overlap (Nadeau and
Bengio 2003). Those of a difference pair the scores of a fold. Seconds are those of the processor,
for a fit and its score. ``--picture`` draws the table.
"""

from __future__ import annotations

import argparse
import ast
import math
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student
from sklearn import datasets
from sklearn.base import clone, is_classifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.discovery import all_estimators

import dp_halfspace
import dp_halfspace.preprocessing
from benchmarks.pictures import save
from benchmarks.tables import markdown
from dp_halfspace import PrivateTableClassifier
from dp_halfspace.inspection import check_pipeline
from dp_halfspace.privacy import Pure, epsilon
from dp_halfspace.privacy.events import Event

FloatArray = NDArray[np.float64]

CONFIDENCE = 0.95
OWN = (dp_halfspace, dp_halfspace.preprocessing)
BUILT_IN = {
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
}


def estimator_of(text: str) -> Any:
    """Make an estimator of ``Name``, ``Name(parameter=literal)`` or a sum of them."""
    return _made(ast.parse(text.strip(), mode="eval").body, text)


def _made(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left = _made(node.left, text)
        steps = [step for _, step in left.steps] if isinstance(left, Pipeline) else [left]
        return make_pipeline(*steps, _made(node.right, text))
    call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
    name, keywords = call.func, call.keywords
    if not isinstance(name, ast.Name) or call.args or any(each.arg is None for each in keywords):
        raise ValueError(f"{text!r} is no name with parameters, such as LogisticRegression(C=.1)")
    known = dict(all_estimators())
    known |= {each: getattr(own, each) for own in OWN for each in dir(own) if each[0] != "_"}
    kind = known.get(name.id)
    if not isinstance(kind, type):
        raise ValueError(f"there is no estimator {name.id!r} in dp_halfspace or scikit-learn")
    return kind(**{str(each.arg): ast.literal_eval(each.value) for each in keywords})


def table_of(name: str, target: str | None) -> tuple[Any, NDArray[Any]]:
    """Read a data frame and its labels."""
    import pandas as pd  # noqa: PLC0415 (only this script needs it)

    if name in BUILT_IN:
        data = BUILT_IN[name](as_frame=True)
        return data.data, data.target.to_numpy()
    frame = pd.read_csv(name)
    if target not in frame:
        raise ValueError(f"--target must be a column of the table: {', '.join(frame)}")
    return frame.drop(columns=[target]), frame[target].to_numpy()


def prepared(estimator: Any, X: Any, y: NDArray[Any]) -> tuple[Any, Any]:
    """Declare the labels public, and give the estimator the rows that it can read."""
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    if not is_classifier(last):
        raise ValueError(f"{type(last).__name__} is no classifier")
    if "classes" in last.get_params() and last.classes is None:
        last.set_params(classes=np.unique(y).tolist())
    if isinstance(last, PrivateTableClassifier):
        return estimator, X
    return estimator, X.select_dtypes("number").to_numpy(dtype=float)


def evaluated(
    estimator: Any, X: Any, y: NDArray[Any], *, scoring: str, folds: int, repeats: int, seed: int
) -> dict[str, Any]:
    """Fit and score on every fold; keep what the fits released, None without a guarantee."""
    estimator, rows = prepared(estimator, X, y)
    scorer = get_scorer(scoring)
    splits = RepeatedStratifiedKFold(n_splits=folds, n_repeats=repeats, random_state=seed)
    scores: list[float] = []
    released: list[Event] | None = [] if not check_pipeline(estimator) else None
    started = time.process_time()
    for train, test in splits.split(np.zeros(len(y)), y):
        part = [rows.iloc[k] if hasattr(rows, "iloc") else rows[k] for k in (train, test)]
        model = clone(estimator).fit(part[0], y[train])
        scores.append(float(scorer(model, part[1], y[test])))
        last = model.steps[-1][1] if isinstance(model, Pipeline) else model
        record = getattr(last, "privacy_", None)
        released = None if record is None or released is None else [*released, *record.events]
    seconds = (time.process_time() - started) / len(scores)
    adjacency = getattr(record, "adjacency", "")
    return {"scores": scores, "released": released, "seconds": seconds, "adjacency": adjacency}


def interval(scores: Sequence[float] | FloatArray, folds: int) -> tuple[float, float]:
    """Mean of scores of a cross-validation, and half the width of its interval."""
    size = len(scores)
    spread = float(np.std(scores, ddof=1)) * math.sqrt(1.0 / size + 1.0 / (folds - 1))
    return float(np.mean(scores)), float(student.ppf((1.0 + CONFIDENCE) / 2.0, size - 1)) * spread


def release_cost(
    released: Sequence[Event] | None, n_samples: int, repeats: int, score_epsilon: float
) -> float:
    """Return the epsilon at delta = 1/n^2 of all fits and of private scores; infinite if none."""
    if released is None:
        return math.inf
    return epsilon([*released, *[Pure(score_epsilon)] * repeats], 1.0 / n_samples**2)


def rows_of(
    found: dict[str, dict[str, Any]], n_samples: int, given: argparse.Namespace
) -> list[list[str]]:
    """Lay out the table; differences are to the first classifier."""
    reference, lines = next(iter(found.values())), []
    for name, cell in found.items():
        mean, half = interval(cell["scores"], given.folds)
        gap, width = interval(np.subtract(cell["scores"], reference["scores"]), given.folds)
        cost = release_cost(cell["released"], n_samples, given.repeats, given.score_epsilon)
        price = "no guarantee" if math.isinf(cost) else f"{cost:.3g}"
        if cell["adjacency"] == "replace-one-label":
            price += " (labels only)"
        shown = "-" if cell is reference else f"{gap:+.3f} ± {width:.3f}"
        lines.append([name, f"{mean:.3f} ± {half:.3f}", shown, f"{cell['seconds']:.2g}", price])
    return lines


def draw(found: dict[str, dict[str, Any]], given: argparse.Namespace) -> None:
    """Plot means and intervals, one line for each classifier."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (only the pictures need it)

    figure = Figure(figsize=(7, 1.2 + 0.4 * len(found)), layout="constrained")
    axis = figure.subplots()
    for place, cell in enumerate(found.values()):
        mean, half = interval(cell["scores"], given.folds)
        axis.errorbar(mean, -place, xerr=half, marker="o", capsize=3, color=f"C{place}")
        axis.plot(cell["scores"], np.full(len(cell["scores"]), -place - 0.2), ".", color="0.7")
    axis.set_yticks(-np.arange(len(found)), list(found))
    axis.set(xlabel=f"{given.scoring}, {100 * CONFIDENCE:g} % intervals; each fold in grey")
    axis.grid(axis="x", alpha=0.3)
    save(figure, given.picture)


def main(argv: Sequence[str] | None = None) -> None:
    """Evaluate, print and draw."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("table", help="CSV file, or one of " + ", ".join(BUILT_IN))
    options.add_argument("classifiers", nargs="+", metavar="CLASSIFIER")
    options.add_argument("--target", help="column of the labels in a CSV file")
    options.add_argument("--scoring", default="accuracy", help="a scorer of scikit-learn")
    options.add_argument("--folds", type=int, default=5)
    options.add_argument("--repeats", type=int, default=2)
    options.add_argument("--seed", type=int, default=0, help="PUBLIC seed of the folds")
    options.add_argument("--score-epsilon", type=float, default=0.1)
    options.add_argument("--picture", type=Path)
    given = options.parse_args(argv)
    X, y = table_of(given.table, given.target)
    how = {key: getattr(given, key) for key in ("scoring", "folds", "repeats", "seed")}
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a single fit says of itself is not the subject
        for name in given.classifiers:
            found[name] = evaluated(estimator_of(name), X, y, **how)
    head = ["", given.scoring, "minus the first", "CPU seconds per fit", "epsilon of a release"]
    print(markdown(head, rows_of(found, len(y), given)))
    if given.picture:
        draw(found, given)


if __name__ == "__main__":
    main()
