"""A toy loss, estimator, metric and constant, by the steps that docs/contributing.md lists."""

import shutil
import warnings
from pathlib import Path

import dp_halfspace
from dp_halfspace.estimators._outlook import Outlook
from tests.support import imported_anew

ROOT = Path(dp_halfspace.__file__).parent

# log(1 + exp(-t)) written once more: every constant is known.
LOSS = """EXP_TAIL = replace(LOGISTIC, name="exp_tail")
_FIXED = {loss.name: loss for loss in (EXP_TAIL, LOGISTIC, HINGE, SQUARED_HINGE, SQUARED)}
"""

ESTIMATOR = """
from dataclasses import dataclass

import numpy as np

from dp_halfspace.data.record_weights import weighed
from dp_halfspace.engine.plan import FitPlan, Fitted, PublicFacts
from dp_halfspace.papers.objective import PerturbedMinimiser
from dp_halfspace.papers.output import plan_output
from dp_halfspace.estimators.base import PrivateLinearClassifier
from dp_halfspace.optim import empirical_risk
from dp_halfspace.optim.losses import LOGISTIC
from dp_halfspace.rows.rows import clipped_rows


@dataclass(frozen=True)
class ToyFit(FitPlan):
    facts: PublicFacts
    output: PerturbedMinimiser

    @property
    def events(self):
        return self.output.events

    @property
    def public(self):
        return self.output.public

    def rows(self, data):
        rows = clipped_rows(data.X, self.facts.data_norm)
        return weighed(rows, np.array(self.facts.class_weights), data)

    def run(self, door):
        norm, released = self.facts.data_norm, self.output.run(door.map(self.rows))
        return Fitted(released, np.zeros(len(released)), norm)


class ToyClassifier(PrivateLinearClassifier):
    _parameter_constraints = {
        name: PrivateLinearClassifier._parameter_constraints[name]
        for name in ("epsilon", "data_norm", "classes", "random_state", "ledger")
    }
    delta, fit_intercept, intercept_scaling, class_weight = 0.0, False, 1.0, None

    def __init__(self, epsilon=1.0, *, data_norm=1.0, classes=None, random_state=None, ledger=None):
        self.epsilon = epsilon
        self.data_norm = data_norm
        self.classes = classes
        self.random_state = random_state
        self.ledger = ledger

    def _plan(self, facts, budget):
        n, d, norm = facts.n_privacy_units, facts.n_features, facts.data_norm
        risk = empirical_risk(LOGISTIC, n, d, facts.n_classes, norm * (1 + 2**-50), n)
        return ToyFit(facts, plan_output(risk, 0.1, budget.noise))
"""

DATA = """
from dp_halfspace import PrivacyLedger
from dp_halfspace.datasets import make_halfspace
X, y = make_halfspace(2000, 4, margin=0.2, random_state=0)
"""


def edit(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1, f"{path.name} has no place for it any more: {old!r}"
    path.write_text(text.replace(old, new))


def run(package, codes, monkeypatch):
    """Run the code of all additions with the changed package in place of the installed one."""
    monkeypatch.syspath_prepend(package.parent)
    with imported_anew("dp_halfspace"), warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(DATA + "".join(codes), {})


def add_loss(package):
    """Two places in the code."""
    losses = package / "optim" / "losses.py"
    fixed = next(line for line in losses.read_text().splitlines() if line.startswith("_FIXED = "))
    edit(losses, fixed + "\n", LOSS)
    estimator = package / "estimators" / "output_perturbation.py"
    edit(estimator, '_LOSSES = ("logistic", ', '_LOSSES = ("exp_tail", "logistic", ')
    return """
from dp_halfspace import OutputPerturbationClassifier as Classifier
params = {"alpha": 0.1, "epsilon": float("inf"), "classes": [-1, 1]}
toy, known = (Classifier(loss=loss, **params).fit(X, y) for loss in ("exp_tail", "logistic"))
assert abs(toy.coef_ - known.coef_).max() < 1e-6
record = Classifier(loss="exp_tail", classes=[-1, 1]).plan(X, y)
assert dict(record.public)["loss"] == "exp_tail" and record.epsilon == 1.0
print("a loss")
"""


def add_estimator(package):
    """Two places in the code."""
    (package / "estimators" / "toy.py").write_text(ESTIMATOR)
    home = "    from dp_halfspace.exceptions import BudgetError as BudgetError\n"
    edit(
        package / "__init__.py",
        home,
        "    from dp_halfspace.estimators.toy import ToyClassifier as ToyClassifier\n" + home,
    )
    home = '    "BudgetError": "exceptions",\n'
    edit(package / "__init__.py", home, '    "ToyClassifier": "estimators.toy",\n' + home)
    return """
from sklearn.base import clone
from dp_halfspace import ToyClassifier
ledger = PrivacyLedger(epsilon=1.0, delta=0.0)
model = ToyClassifier(epsilon=0.5, classes=[-1, 1], ledger=ledger)
assert model.plan(X, y).epsilon_at(0.0) == 0.5 and ledger.spent() == 0.0
assert clone(model).fit(X, y).score(X, y) > 0.6 and ledger.spent() == 0.5
print("an estimator")
"""


METRIC = """METRICS["error"] = replace(
    METRICS["accuracy"], tally=lambda values, codes, cells: tallies.count_right_beside_classes(
        values, 1 - codes, cells
    )
)
"""


def add_metric(package):
    """One place in the code."""
    table = package / "metrics" / "_table.py"
    text = table.read_text().replace("import dataclass\n", "import dataclass, replace\n")
    table.write_text(text + METRIC)
    return """
from dp_halfspace import AdaptiveMarginClassifier
from dp_halfspace._cli.arguments import parse_options
from dp_halfspace.metrics import private_score
model = AdaptiveMarginClassifier(classes=[-1, 1], data_norm=1.0).fit(X, y)
both = private_score(model, X, y, metric=["accuracy", "error"], epsilon=float("inf"))
assert abs(both[0].value + both[1].value - 1.0) < 1e-12
words = ["evaluate", "m", "t.csv", "--target", "y", "--epsilon", "1", "--metric", "error"]
assert parse_options(words).metric == ["error"]
print("a metric")
"""


def add_constant(package):
    """A name with its unit beside the function that uses it, and nothing else."""
    outlook = package / "estimators" / "_outlook.py"
    place = "@dataclass(frozen=True, slots=True)\nclass Outlook:"
    unit = "# Factor of the n epsilon at which half is reached.\n"
    edit(outlook, place, f"{unit}_TOY = 2.0\n\n\n{place}")
    edit(outlook, "return _HALF * ", "return _TOY * _HALF * ")
    known = Outlook(2000, 5, 1.0).n_samples_wanted
    return f"""
from dp_halfspace.estimators._outlook import Outlook
found = Outlook(2000, 5, 1.0)
assert abs(found.n_samples_wanted - 2 * {known}) <= 2
print("a constant")
"""


def test_every_addition_takes_the_places_that_are_listed(tmp_path, monkeypatch, capsys):
    package = tmp_path / "dp_halfspace"
    shutil.copytree(ROOT, package, ignore=shutil.ignore_patterns("__pycache__"))
    codes = [add(package) for add in (add_loss, add_estimator, add_metric, add_constant)]
    run(package, codes, monkeypatch)
    assert capsys.readouterr().out.splitlines() == [
        "a loss", "an estimator", "a metric", "a constant",
    ]  # fmt: skip
