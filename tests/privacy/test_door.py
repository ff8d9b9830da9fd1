"""Private data stand behind a door: only questions read them, and plans hold none of them."""

import ast
import inspect
import pickle
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import dp_halfspace
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.randomness import SeededBytes
from tests.instances import adjacency, instances, label, with_enough_records
from tests.permits import door_of, permit_for
from tests.releases import record_releases

ROOT = Path(dp_halfspace.__file__).parent
# What may ask a permit itself: a random term that stays behind the door, and a search whose runs
# are fits of their own.
WITHOUT_DOOR = {"papers/objective.py", "model_selection/search.py"}


def test_a_door_is_neither_copied_nor_opened_from_outside():
    door = door_of([1, 2, 3])
    assert [name for name in dir(door) if "data" in name] == ["_Door__data"]
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(door)


def test_a_mapped_door_has_the_same_permit_and_the_first_keeps_its_data():
    permit = permit_for()
    door = Door(2.0, permit)
    assert door.map(lambda data: 3.0 * data).permit is permit
    seen = []
    door.map(lambda data: 3.0 * data).map(seen.append)
    door.map(seen.append)
    assert seen == [6.0, 2.0]


def callers(source):
    """Methods of a permit that are called in a file, and private names of a door."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            owner = getattr(node.value, "attr", getattr(node.value, "id", ""))
            if owner == "permit" and node.attr in {"release", "choose"}:
                yield f"permit.{node.attr}"
            if node.attr.startswith("_Door__"):
                yield node.attr


def test_a_release_passes_the_door():
    found = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if list(callers(path.read_text()))
    }
    assert found == WITHOUT_DOOR | {"privacy/door.py"}
    assert list(callers("self.permit.release(1)")) == ["permit.release"]


ASKING = (
    "engine",
    "papers",
    "selection",
    "estimators",
    "preprocessing",
    "metrics",
    "model_selection",
)


def kept(source):
    """Statements by which a question could keep what it read in a variable outside of it."""
    return [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Nonlocal | ast.Global)]


def test_no_question_keeps_what_it_read():
    for folder in ASKING:
        assert not [p.name for p in (ROOT / folder).glob("*.py") if kept(p.read_text())], folder
    assert kept("def f():\n    x = 0\n    def ask(rows):\n        nonlocal x\n        x = rows")


def planned(model, X, y):
    """The plan of a fit, and the training data that it was made for."""
    data = model._training_data(*with_enough_records(model, X, y))
    return model._fit_plan(data), data


@pytest.fixture(scope="module")
def plans():
    """For every variant: two plans for other records, and the records of the second."""
    rng = np.random.default_rng(0)
    first, second = (rng.normal(size=(60, 3)) / 4.0 for _ in range(2))
    labels = [np.where(rng.random(60) < share, 1, -1) for share in (0.2, 0.6)]
    found = {}
    for model in instances(classes=[-1, 1], random_state=0):
        # The features are public where the labels alone are private.
        X = second if adjacency(model) == "replace-one-label" else first
        plan, _ = planned(model, X, labels[0])
        found[label(model)] = plan, *planned(model, second, labels[1])
    return found


def test_a_plan_is_run_with_a_door_and_nothing_else(plans):
    kinds = {type(plan) for plan, *_ in plans.values()}
    assert len(kinds) > 8
    for kind in kinds:
        assert [*inspect.signature(kind.run).parameters] == ["self", "door"], kind


def values_of(plan, data):
    """Exact values of the releases of a run with known noise."""
    source = SeededBytes(0, "noise")
    with record_releases() as releases:
        plan.run(door_of(data, *plan.events, source=source))
    return [release.value for release in releases]


def test_a_plan_holds_no_private_rows(plans):
    """Run on other records than it was made for, it answers as the plan that was made for them."""
    for name, (plan, other, data) in plans.items():
        found, expected = values_of(plan, data), values_of(other, data)
        assert len(found) == len(expected) > 0, name
        assert all(map(np.array_equal, found, expected)), name


def test_a_plan_with_private_rows_is_seen(plans):
    """Planted: rows of the plan in the place of those behind the door."""
    plan, other, data = plans["AdaptiveMarginClassifier-data_norm=None-solver=noisy_gd"]

    @dataclass
    class Holding:
        X: np.ndarray
        events: tuple = other.events

        def run(self, door):
            return other.run(door.map(lambda data: replace(data, X=self.X)))

    own, alien = (values_of(Holding(X), data) for X in (data.X, data.X[::-1]))
    assert not all(map(np.array_equal, own, alien))
    assert all(map(np.array_equal, own, values_of(plan, data)))
