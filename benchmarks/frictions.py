"""Eighteen points at which a first user of a hospital table was stuck, each tried and measured.

``python -m benchmarks.frictions [--only 5 9] [--fits 8] [--rows 200000]``. Tables are those of
`benchmarks.hospital`; every line is printed as a row of a table of Markdown. What a version of the
package refuses is printed as its error, so that an earlier version, in front on the path, shows
what was there before. Needs no data.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.hospital import NUMBERS, RANGES, SCHEMA, hospital
from dp_halfspace import (
    AdaptiveMarginClassifier,
    OutputPerturbationClassifier,
    PrivacyLedger,
    PrivateTableClassifier,
)

_LABELS = np.array(["no", "yes"])
_NUMBERS = list(NUMBERS)
# The message of an earlier version, and of this one.
_WEAK = re.compile("promises little|weak guarantee")
_WARNS = re.compile("expect about|better than chance")


def caught(run: Callable[[], Any]) -> str:
    """Return the warnings of a call, or its error, in one text."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            run()
        except Exception as error:  # noqa: BLE001 (an error is an answer here)
            return f"{type(error).__name__}: {error}"
    return " ".join(str(each.message) for each in found)


def command(*arguments: str) -> str:
    """Run the command, and return all that it prints."""
    line = [sys.executable, "-m", "dp_halfspace", *arguments]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def table_model(epsilon: float, schema: Any = None, **more: Any) -> Any:
    """Return the model of a table of admissions."""
    given = {"schema": SCHEMA if schema is None else schema, "classes": [0, 1], **more}
    return PrivateTableClassifier(epsilon=epsilon, **given)


def area(model: Any, seed: int, *, changed: Callable[[Any], Any] = lambda table: table) -> float:
    """Return the area under the ROC curve on 20,000 other rows."""
    table, outcome = hospital(20_000, 10_000 + seed)
    return float(roc_auc_score(outcome, model.decision_function(changed(table))))


def quiet(run: Callable[[], Any]) -> Any:
    """Run without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run()


def mean(values: Any) -> str:
    """Write a mean and its standard error."""
    values = np.asarray(values, dtype=float)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():.3f} ± {error:.3f}"


def written(folder: Path, n: int, seed: int = 0) -> Path:
    """Write a table of admissions as CSV."""
    table, outcome = hospital(n, seed)
    path = folder / f"h{n}.csv"
    table.assign(outcome=_LABELS[outcome]).to_csv(path, index=False)
    return path


def fitted_by_command(path: Path, *more: str) -> str:
    """Fit by the command with a budget of one."""
    given = ("--target", "outcome", "--classes", "no,yes", "--epsilon", "1")
    return command("fit", str(path), *given, "--save", str(path.with_suffix(".joblib")), *more)


def coins(fits: int, folder: Path) -> str:
    """Point 1: models at chance level."""
    poor = said = 0
    for n, epsilon in ((300, 0.3), (300, 1.0), (300, 3.0), (2000, 0.3), (2000, 1.0)):
        for seed in range(fits):
            model = table_model(epsilon)
            text = caught(lambda m=model, n=n, s=seed: m.fit(*hospital(n, s)))
            if quiet(lambda m=model, s=seed: area(m, s)) < 0.6:
                poor, said = poor + 1, said + bool(_WARNS.search(text))
    return f"of {5 * fits} fits, {poor} have an area below .6, and {said} of these warn"


def identifiers(fits: int, folder: Path) -> str:
    """Point 2: the key of the patients becomes a feature."""
    text = fitted_by_command(written(folder, 2000))
    listed = sum(f"\n{name} " in text for name in hospital(10, 0)[0])
    used = {**SCHEMA, "patient_id": "number"}
    with_key, without = (
        [area(quiet(lambda s=s, c=c: table_model(3.0, c).fit(*hospital(2000, s))), s)
         for s in range(fits)]
        for c in (used, SCHEMA)
    )  # fmt: skip
    noted = (
        "there is a note about patient_id" if re.search("note: .*'patient_id'", text) else "no note"
    )
    return (
        f"the command lists {listed} of 16 columns; {noted}; area with it {mean(with_key)}, "
        f"without {mean(without)}"
    )


def limits(fits: int, folder: Path) -> str:
    """Point 3: one ``<0.3`` in a column of numbers."""
    both: dict[str, list[float]] = {"with": [], "without": []}
    for seed in range(fits):
        table, outcome = hospital(20_000, seed)
        odd = table.astype({"lactate": object})
        odd.loc[7, "lactate"] = "<0.3"
        for name, rows in (("with", odd), ("without", table)):
            model = quiet(lambda r=rows, y=outcome: table_model(1.0).fit(r, y))
            both[name].append(area(model, seed))
    path = folder / "odd.csv"
    odd.assign(outcome=_LABELS[outcome]).to_csv(path, index=False)
    found = re.search(r"\nlactate +(\w+)", fitted_by_command(path))
    kind = found.group(1) if found else "nothing"
    return (
        f"area {mean(both['with'])} with one such cell, {mean(both['without'])} without; the "
        f"command, without a schema, reads the column as {kind}"
    )


def wide_ranges(fits: int, folder: Path) -> str:
    """Point 4: stated ranges that are far too wide for skewed columns."""
    wide = {name: [0, 10 * high] for name, (_, high) in RANGES.items()}
    areas = {}
    for name, schema in (("ten times", {**SCHEMA, **wide}), ("learnt", SCHEMA)):
        areas[name] = [
            area(quiet(lambda s=s, c=schema: table_model(3.0, c).fit(*hospital(2000, s))), s)
            for s in range(fits)
        ]
    return (
        f"2,000 rows, epsilon 3: area {mean(areas['ten times'])} with ranges ten times too wide, "
        f"{mean(areas['learnt'])} with estimated scales"
    )


def sheets(fits: int, folder: Path) -> str:
    """Point 5: Excel sheets, and texts of several words."""
    table, outcome = hospital(300, 0)
    path = folder / "h.xlsx"
    table.assign(outcome=_LABELS[outcome]).to_excel(path, index=False)
    text = fitted_by_command(path)
    (folder / "no.xlsx").write_text("no sheet")
    refused = fitted_by_command(folder / "no.xlsx").strip().splitlines()[-1]
    words = caught(lambda: table_model(1.0, {**SCHEMA, "code": "words"}).fit(table, outcome))
    read = "fitted" if "Model:" in text else text.strip().splitlines()[-1]
    kind = words if "Error" in words else "a kind"
    return f"a sheet: {read}; what is none: *{refused[:90]}*; `words`: {kind}"


def weights(fits: int, folder: Path) -> str:
    """Point 6: weights of records, and parameters of other models."""
    table, outcome = hospital(2000, 0)
    rows = table[_NUMBERS].fillna(0.0).to_numpy()
    model = AdaptiveMarginClassifier(classes=[0, 1])
    weighted = caught(lambda: model.fit(rows, outcome, sample_weight=np.full(2000, 0.5)))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    plain = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-12, max_iter=10_000)

    def same() -> float:
        twin = OutputPerturbationClassifier(
            loss="logistic", alpha=1.0 / (2.0 * 2000), preconditioner=False, fit_intercept=False,
            epsilon=np.inf, classes=[0, 1], data_norm=1.01,
        )  # fmt: skip
        found = quiet(lambda: twin.fit(unit, outcome)).coef_
        return float(np.abs(found - plain.fit(unit, outcome).coef_).max())

    text = caught(same)
    apart = text if "Error" in text else f"{same():.0e}"
    return (
        f"`sample_weight`: {weighted if 'Error' in weighted else 'accepted'}; `C` "
        f"as `alpha`, without noise: largest difference of a coefficient {apart}"
    )


def units_of_coefficients(fits: int, folder: Path) -> str:
    """Point 7: coefficients are for scaled columns."""
    natural_coefficients = import_module("dp_halfspace.inspection").natural_coefficients
    table, outcome = hospital(20_000, 0)
    # Rows without gaps, and within four widths of the centres, which are not clipped.
    rows = table[_NUMBERS].dropna()
    model = AdaptiveMarginClassifier(classes=[0, 1]).fit(table[_NUMBERS], outcome)
    usual = (np.abs(rows - rows.median()) < 2.0 * rows.std()).all(axis=1)
    natural, inner = natural_coefficients(model), rows[usual].to_numpy()
    by_hand = inner @ natural.coefficients[0] + natural.intercepts[0]
    apart = np.abs(by_hand - model.decision_function(rows[usual])).max()
    factor = np.abs(model.coef_ / natural.coefficients).max()
    names = ", ".join(list(natural.importances)[:3])
    return (
        f"natural coefficients give the scores to {apart:.0e}; `coef_` is up to {factor:.0e} times "
        f"them; most important: {names}"
    )


def cards(fits: int, folder: Path) -> str:
    """Point 8: cards from Python, of the command and of a saved model."""
    model_card = import_module("dp_halfspace.inspection").model_card
    path = written(folder, 2000)
    fitted_by_command(path, "--card", str(folder / "a.html"))
    command("card", str(path.with_suffix(".joblib")), "--out", str(folder / "b.html"))
    table, outcome = hospital(2000, 0)
    start = time.perf_counter()
    page = model_card(quiet(lambda: table_model(1.0).fit(table, outcome)), folder / "c.html")
    took = time.perf_counter() - start
    pages = [(folder / f"{name}.html").exists() for name in "abc"]
    attack = "right in at most" in page
    return (
        f"{sum(pages)} of 3 ways make one ({took:.0f} s with the noise of the curves); attack view "
        f"{'on it' if attack else 'missing'}"
    )


def operating_points(fits: int, folder: Path) -> str:
    """Point 9: a threshold for a target recall, and scores by group."""
    package = import_module("dp_halfspace")
    private_score = import_module("dp_halfspace.metrics").private_score
    model = quiet(lambda: table_model(1.0).fit(*hospital(20_000, 0)))
    others, truth = hospital(20_000, 10_000)
    chance = model.predict_proba(others)[:, 1]
    met, excess = [], []
    for seed in range(1, 1 + 5 * fits):
        rates = []
        for epsilon in (1.0, np.inf):
            chosen = package.PrivateThresholdClassifier(
                model, target="recall", value=0.8, epsilon=epsilon
            )
            said = chance >= chosen.fit(*hospital(10_000, seed)).threshold_
            rates.append(said[truth == 0].mean())
            if epsilon == 1.0:
                met.append(said[truth == 1].mean() >= 0.8)
        excess.append(rates[0] - rates[1])
    found = private_score(
        model,
        others,
        truth,
        metric="recall",
        by=others["ward"],
        by_values=list("ABCDE"),
        epsilon=1.0,
    )
    width = np.mean(found.interval[1][:5] - found.interval[0][:5])
    return (
        f"recall .8 from 10,000 rows at epsilon 1: met on 20,000 others in {sum(met)} of "
        f"{len(met)} runs, false positive rate {mean(excess)} above that of epsilon=inf; recall by "
        f"ward with intervals {width:.2f} wide"
    )


def accounts(fits: int, folder: Path) -> str:
    """Point 10: purposes, and a ledger for each hospital."""
    table, outcome = hospital(4000, 0)
    rows, spent = table[_NUMBERS], []
    for site in (0, 1):
        ledger = PrivacyLedger(epsilon=3.0, delta=1e-6, dataset=f"hospital {site}")
        account = ledger.annotated(purpose="triage")
        model = AdaptiveMarginClassifier(delta=1e-8, classes=[0, 1], ledger=account)
        half = slice(2000 * site, 2000 * (site + 1))
        quiet(lambda m=model, h=half: m.fit(rows[h], outcome[h]))
        spent.append(ledger.spent())
    entry = ledger.entries()[-1]
    return (
        f"one hospital costs {spent[0]:.3f}, a second one {spent[1]:.3f} of its own ledger; an "
        f"entry says {entry.estimator}, {entry.purpose}"
    )


def steps_in_front(fits: int, folder: Path) -> str:
    """Point 11: scalers in front, and groups of a cross-validation."""
    table, outcome = hospital(2000, 0)
    rows = table[_NUMBERS].fillna(0.0)
    model = AdaptiveMarginClassifier(epsilon=3.0, classes=[0, 1])
    front = caught(lambda: make_pipeline(StandardScaler(), model).fit(rows, outcome))
    given = {"groups": table["patient_id"], "cv": GroupKFold(2)}
    split = caught(lambda: cross_val_score(model, rows, outcome, **given))
    return (
        f"a StandardScaler in front: {'a warning' if 'StandardScaler' in front else 'silence'}; "
        f"groups for the splitter alone: {'a warning' if 'splitter' in split else 'silence'}"
    )


def weak_budgets(fits: int, folder: Path) -> str:
    """Point 12: epsilon 100 and delta .1."""
    package = import_module("dp_halfspace")
    private_score = import_module("dp_halfspace.metrics").private_score
    table, outcome = hospital(2000, 0)
    rows = table[_NUMBERS]
    weak = {"epsilon": 100.0, "delta": 0.1}
    model = AdaptiveMarginClassifier(classes=[0, 1], **weak)
    tabular = quiet(lambda: table_model(3.0).fit(table, outcome))
    path = written(folder, 2000)
    calls: dict[str, Callable[[], Any]] = {
        "fit": lambda: model.fit(rows, outcome),
        "search": lambda: package.PrivateSearchCV(model, {"data_norm": [None]}, **weak).fit(
            rows, outcome
        ),
        "score": lambda: private_score(tabular, table, outcome, **weak),
        "threshold": lambda: package.PrivateThresholdClassifier(tabular, epsilon=100.0).fit(
            table, outcome
        ),
        "sets": lambda: package.PrivateConformalClassifier(tabular, epsilon=100.0).fit(
            table, outcome
        ),
    }
    silent = [name for name, run in calls.items() if not _WEAK.search(caught(run))]
    if not _WEAK.search(fitted_by_command(path, "--epsilon", "100")):
        silent.append("command fit")
    scored = ("--target", "outcome", "--epsilon", "100")
    if not _WEAK.search(command("evaluate", str(path.with_suffix(".joblib")), str(path), *scored)):
        silent.append("command evaluate")
    return (
        f"{7 - len(silent)} of 7 ways to spend it warn"
        + f"; silent: {', '.join(silent)}" * bool(silent)
    )


def verbose(fits: int, folder: Path) -> str:
    """Point 13: ``verbose``."""
    table, outcome = hospital(20_000, 0)
    out = io.StringIO()
    with redirect_stdout(out):
        AdaptiveMarginClassifier(classes=[0, 1], verbose=1).fit(table[_NUMBERS], outcome)
    return f"`verbose=1` prints {len(out.getvalue().splitlines())} lines"


def streaming(fits: int, folder: Path, rows: int = 200_000) -> str:
    """Point 14: a long Parquet file with 20 columns."""
    table, outcome = hospital(rows, 0)
    more = {f"x{j}": np.random.default_rng(j).normal(size=rows) for j in range(4)}
    path = folder / "long.parquet"
    table.assign(**more, outcome=_LABELS[outcome]).to_parquet(path, row_group_size=65_536)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    fitted_by_command(path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"{rows:,} rows: {spent:.0f} CPU seconds, {after.ru_maxrss / 1e6:.2f} GB at most"


def small_things(fits: int, folder: Path) -> str:
    """Point 15: categories, missing columns."""
    table, outcome = hospital(2000, 0)
    schema = {name: kind for name, kind in SCHEMA.items() if name != "ward"}
    ward = caught(lambda: table_model(3.0, schema).fit(table.astype({"ward": "category"}), outcome))
    model = quiet(lambda: table_model(3.0).fit(table, outcome))
    gone = caught(lambda: model.predict(table.drop(columns=["age", "ward"])))
    return (
        f"categories of a dtype: {'said' if 'texts or categories' in ward else 'silence'}; *{gone}*"
    )


def onnx(fits: int, folder: Path) -> str:
    """Point 16: export of a linear model."""
    to_onnx = import_module("dp_halfspace.inspection").to_onnx
    table, outcome = hospital(20_000, 0)
    model = AdaptiveMarginClassifier(classes=[0, 1]).fit(table[_NUMBERS], outcome)
    rows = hospital(20_000, 10_000)[0][_NUMBERS].astype(np.float32)
    graph = import_module("onnx.reference").ReferenceEvaluator(to_onnx(model))
    labels, scores = graph.run(None, {"X": rows.to_numpy()})
    own = model.decision_function(rows)
    apart = np.abs(scores - own).max() / np.abs(own).max()
    return (
        f"20,000 rows with gaps: {np.mean(labels == model.predict(rows)):.4f} of the labels are "
        f"the same, scores differ by {apart:.0e} of the largest"
    )


def sets(fits: int, folder: Path) -> str:
    """Point 17: sets of classes from 2,000 records at epsilon .3."""
    conformal = import_module("dp_halfspace").PrivateConformalClassifier
    model = quiet(lambda: table_model(3.0).fit(*hospital(20_000, 0)))
    others, truth = hospital(20_000, 10_000)
    place = np.arange(len(truth))
    found: dict[float, list[tuple[float, float]]] = {0.3: [], np.inf: []}
    for seed in range(1, 1 + 5 * fits):
        for epsilon, cells in found.items():
            sure = conformal(model, coverage=0.95, epsilon=epsilon)
            inside = quiet(lambda s=sure, k=seed: s.fit(*hospital(2000, k))).predict_set(others)
            cells.append((inside[place, truth].mean(), inside.sum(axis=1).mean()))
    (cover, size), (_, plain) = (np.transpose(found[epsilon]) for epsilon in (0.3, np.inf))
    return (
        f"coverage stated .95: {mean(cover)}; mean size {mean(size)}, without noise {mean(plain)}"
    )


def prior(fits: int, folder: Path) -> str:
    """Point 18: a public model as the start."""
    with_prior = import_module("benchmarks.hospital")._with_prior
    columns = import_module("benchmarks.hospital")._ranking
    areas = [
        [
            area(quiet(lambda s=s, m=make: m(0.3).fit(*hospital(300, s))), s)
            for s in range(fits)
        ]
        for make in (columns, with_prior)
    ]  # fmt: skip
    return (
        f"300 rows, epsilon .3, nine numbers: area {mean(areas[0])} without a public prior "
        f"(PrivateAUCClassifier), {mean(areas[1])} with one"
    )


POINTS: tuple[Callable[..., str], ...] = (
    coins, identifiers, limits, wide_ranges, sheets, weights, units_of_coefficients, cards,
    operating_points, accounts, steps_in_front, weak_budgets, verbose, streaming,
    small_things, onnx, sets, prior,
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Try the points that are asked for, and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=int, nargs="+", default=range(1, len(POINTS) + 1))
    parser.add_argument("--fits", type=int, default=8)
    parser.add_argument("--rows", type=int, default=200_000)
    options = parser.parse_args(argv)
    os.environ["PYTHONWARNINGS"] = "ignore::DeprecationWarning"
    for number in options.only:
        point = POINTS[number - 1]
        more = {"rows": options.rows} if point is streaming else {}
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = point(options.fits, Path(folder), **more)
            except Exception as error:  # noqa: BLE001 (what a version lacks is its answer)
                found = f"{type(error).__name__}: {str(error).splitlines()[0][:150]}"
        print(f"| {number} | {str(point.__doc__).partition(': ')[2]} | {found} |", flush=True)


if __name__ == "__main__":
    main()
