"""The walk of a first user over five public files, from a clean environment.

``python -m benchmarks.walk FOLDER [--python INTERPRETER] [--only NAME ...]``: FOLDER holds what
``pip download --no-deps scikit-survival lifelines ISLP palmerpenguins statsmodels`` has brought.
The files are written as an analyst would have them, with identifiers, units, missing values and
the notation of another country, into a folder of their own, in which the commands run with
INTERPRETER: that of a new environment in which only ``pip install ".[table,plot]"`` was called.
Prints every command with what it prints; ``benchmarks/walk.md`` has what was met.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

_PYTHON_WAY = """
import joblib, numpy as np, pandas as pd
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from dp_halfspace import PrivacyLedger, PrivateTableClassifier
rows = pd.read_csv("train.csv")
y = rows.pop("death")
schema = {"patient_id": "drop", "age": [50, 110], "sex": ["F", "M"], "year": [1995, 2003],
          "creatinine": {"kind": "number", "unit": "mg/dL"}, "kappa": "number",
          "lambda": "number", "flc_group": [1, 10], "mgus": "boolean"}
ledger = PrivacyLedger("python.db", epsilon=10.0, delta=1e-5)
model = PrivateTableClassifier(epsilon=1.0, classes=["alive", "dead"], schema=schema, ledger=ledger)
chain = make_pipeline(FunctionTransformer(lambda X: X), model)
print(cross_val_score(chain, rows, y, cv=3, scoring="roc_auc").round(3))
print(ledger)
chain.fit(rows, y)
joblib.dump(model.fit(rows, y).set_params(ledger=None), "python.joblib")
again = joblib.load("python.joblib")
print(again.predict_proba(rows.head(2)).round(3), again.privacy_)
from dp_halfspace.inspection import EffectsDisplay, model_card
print(EffectsDisplay.from_estimator(again).explained)
print(len(model_card(again)) > 1000)
"""
_FIT = "fit train.csv {read} --target {target} --classes {classes} --epsilon {epsilon}"
_STEPS = (
    "schema {file} --target {target}",
    "schema {file} {read} --target {target} --out schema.json",
    "plan --rows {rows} --columns {columns} --classes {k} --epsilon 0.3 1 3",
    "split {file} --train train.csv --test test.csv",
    f"{_FIT} {{more}} --dry-run",
    f"{_FIT} {{more}} --save model.joblib --card card.html --ledger ledger.db --cap 3 1e-5",
    "predict model.joblib test.csv {read} --out predictions.csv",
    "evaluate model.joblib test.csv {read} --target {target} --epsilon 1 --metric auc accuracy",
    "card model.joblib --out again.html --purpose Walk",
)
_FILES: dict[str, dict[str, str]] = {
    "chains": {"target": "death", "classes": "alive,dead", "more": "--drop patient_id"},
    "trial": {"target": "event", "classes": "0,1", "more": "--drop pidnum"},
    # What its schema hints at.
    "kredit": {
        "target": "Ausfall",
        "classes": "ja,nein",
        "more": "--drop Kundennummer",
        "read": "--decimal ,",
    },
    "penguins": {"target": "Species", "classes": "Adelie,Chinstrap,Gentoo", "more": ""},
    "visits": {"target": "visited", "classes": "no,yes", "more": "--drop person"},
}


def member(folder: Path, name: str) -> str:
    """Return a file inside one of the packages of a folder, as text."""
    for package in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(package) as archive:
            if name in archive.namelist():
                return archive.read(name).decode()
    raise SystemExit(f"no package in {folder} has {name}: see the docstring")


def chains(folder: Path) -> pd.DataFrame:
    """Deaths after a blood test: 7,874 patients, creatinine with its unit, missing values."""
    text = member(folder, "sksurv/datasets/data/flchain.arff")
    head, body = text.split("@data")
    names = [line.split()[1] for line in head.splitlines() if line.startswith("@attribute")]
    rows = pd.read_csv(io.StringIO(body.strip()), header=None, names=names, na_values="?")
    rows = rows.rename(columns={"sample.yr": "year", "flc.grp": "flc_group"})
    unit = [f"{value:g} mg/dL" if np.isfinite(value) else "" for value in rows["creatinine"]]
    rows["creatinine"] = unit
    rows.insert(0, "patient_id", [f"F{k:05d}" for k in range(len(rows))])
    return rows.drop(columns=["futime", "chapter"])


def trial(folder: Path) -> pd.DataFrame:
    """Events in a trial of HIV drugs: 2,139 patients; counts that are often missing."""
    rows = pd.read_csv(io.StringIO(member(folder, "lifelines/datasets/ACTG175.csv")), index_col=0)
    return rows.rename(columns={"cens": "event"}).drop(columns=["days", "offtrt"])


def kredit(folder: Path) -> pd.DataFrame:
    """Defaults of 10,000 cards, of which 3 % default, in the notation of Germany."""
    rows = pd.read_csv(io.StringIO(member(folder, "ISLP/data/Default.csv")))
    words = {"Yes": "ja", "No": "nein"}
    german = str.maketrans(",.", ".,")
    money = lambda values: [f"{value:,.2f} €".translate(german) for value in values]  # noqa: E731
    return pd.DataFrame(
        {
            "Kundennummer": np.arange(100_000, 100_000 + len(rows)),
            "Student": rows["student"].map(words),
            "Kontostand": money(rows["balance"]),
            "Einkommen": money(rows["income"]),
            "Ausfall": rows["default"].map(words),
        }
    )


def penguins(folder: Path) -> pd.DataFrame:
    """Species of 344 penguins: dates, comments, units in the names of the columns."""
    rows = pd.read_csv(io.StringIO(member(folder, "palmerpenguins/data/penguins-raw.csv")))
    rows["Species"] = rows["Species"].str.split().str[0]
    return rows


def visits(folder: Path) -> pd.DataFrame:
    """Whether one of 20,190 insured persons saw a doctor within a year."""
    rows = pd.read_csv(io.StringIO(member(folder, "statsmodels/datasets/randhie/randhie.csv")))
    visited = np.where(rows.pop("mdvis") > 0, "yes", "no")
    rows.insert(0, "person", np.arange(len(rows)) + 1)
    return rows.assign(visited=visited)


def run(python: str, arguments: list[str]) -> None:
    """Run a command and print what it prints."""
    done = subprocess.run([python, *arguments], capture_output=True, text=True, check=False)
    print(f"{done.stdout}{done.stderr}".rstrip())
    if done.returncode:
        print(f"(exit {done.returncode})")
    sys.stdout.flush()


def main() -> None:
    """Write each file, and walk."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", type=Path)
    options.add_argument("--python", default=sys.executable)
    options.add_argument("--only", nargs="+", choices=_FILES, default=list(_FILES))
    options.add_argument("--epsilon", default="1")
    given = options.parse_args()
    python = str(Path(given.python).absolute())
    readers = {f.__name__: f for f in (chains, trial, kredit, penguins, visits)}
    folder = given.folder.absolute()
    for name in given.only:
        rows = readers[name](folder)
        facts = {"read": "", **_FILES[name], "file": f"{name}.csv", "rows": str(len(rows))}
        facts |= {"columns": str(rows.shape[1] - 1), "epsilon": given.epsilon}
        facts["k"] = str(rows[facts["target"]].nunique())
        with tempfile.TemporaryDirectory() as place:
            separator = ";" if name == "kredit" else ","
            rows.to_csv(Path(place, facts["file"]), index=False, sep=separator)
            for step in _STEPS:
                line = " ".join(step.format(**facts).split())
                print(f"\n{name}$ dp-halfspace {line}")
                here = f"import os; os.chdir({place!r}); from dp_halfspace._cli import main; "
                run(python, ["-c", f"{here}raise SystemExit(main({line.split()!r}))"])
            if name == "chains":
                print(f"\n{name}$ python")
                run(python, ["-c", f"import os; os.chdir({place!r})\n{_PYTHON_WAY}"])


if __name__ == "__main__":
    main()
