"""Public sizes: served at linear cost, or refused at once by one sentence, with nothing charged."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dp_halfspace import (
    LabelPrivateClassifier,
    PrivacyLedger,
    PrivateTableClassifier,
    _memory,
)
from dp_halfspace._memory import OutOfMemory, refuse_beyond_memory
from dp_halfspace.data import chunks, validation
from dp_halfspace.data.chunks import LocalChunks
from dp_halfspace.datasets import in_chunks
from dp_halfspace.engine.plan import PublicFacts
from dp_halfspace.metrics import private_score
from dp_halfspace.metrics._held_out import HeldOut
from tests.conftest import separated
from tests.instances import instances, label, with_enough_records

pytestmark = pytest.mark.filterwarnings("ignore:random_state")
sizes = pytest.importorskip("tests.sizes", reason="limits of memory are those of Unix")
# Seconds in which a size is refused.
AT_ONCE = 10.0
# What a sentence about a size says: that it is too large, and what to do.
SENTENCE = re.compile(
    r"ValueError: [^\n]*(needs more memory than there is: |at most )[^\n]*[a-z_)']"
)


def outcomes(names):
    """What becomes of sizes in a process with 2 GB of memory."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.sizes", *names],
        cwd=Path(__file__).parents[1],
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert [name for name, *_ in found] == list(names)
    return found


def test_sizes_are_served_in_little_memory_or_refused_at_once():
    """Long lists and many classes are served; all in one process, which takes long to begin."""
    for name, said, n_charged, seconds in outcomes([*sizes.REFUSED, *sizes.SERVED]):
        if name in sizes.SERVED:
            assert not said, f"{name}: {said}"
            assert n_charged == 1, name
        else:
            assert SENTENCE.fullmatch(said), f"{name}: {said!r}"
            assert not n_charged, name
            assert seconds < AT_ONCE, name


@pytest.mark.slow
@pytest.mark.parametrize("name", sizes.SLOW)
def test_large_public_sizes_are_served(name):
    ((_, said, _, _),) = outcomes([name])
    assert not said


TWO, LABELS = separated(60, 4)


# The first way of each estimator, which reads rows as the others do.
FIRST_WAYS = list({type(e): e for e in reversed(instances(classes=[0, 1]))}.values())


@pytest.mark.parametrize("estimator", FIRST_WAYS, ids=label)
def test_predictions_of_many_rows_are_those_of_few(estimator, monkeypatch):
    """Some rows at a time, as for many classes, or all of them at once."""
    X, y = with_enough_records(estimator, TWO, LABELS)
    model = estimator.fit(X, y)
    methods = [m for m in ("decision_function", "predict", "predict_proba") if hasattr(model, m)]
    at_once = [getattr(model, method)(X) for method in methods]
    monkeypatch.setattr(_memory, "KEPT_BYTES", 500)
    for method, expected in zip(methods, at_once, strict=True):
        found = getattr(model, method)(X)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_a_table_of_many_classes_is_calibrated_some_rows_at_a_time(monkeypatch):
    """Counts of scores are exact in any parts, so not a bit of the model changes."""
    X, y = separated(1000, 4, 3)
    rows = np.column_stack([X, np.where(y > 1, "a", "b")]).astype(object)
    schema = {**{str(j): [-1, 1] for j in range(4)}, "4": ["a", "b"]}
    model = PrivateTableClassifier(schema=schema, classes=[0, 1, 2], random_state=0)
    for weights in (None, np.linspace(0.1, 1.0, len(y))):
        at_once = model.fit(rows, y, sample_weight=weights).predict_proba(rows)
        with monkeypatch.context() as patch:
            patch.setattr(_memory, "KEPT_BYTES", 10_000)
            model.fit(rows, y, sample_weight=weights)
        np.testing.assert_array_equal(model.predict_proba(rows), at_once)


def test_nothing_is_written_to_memory_that_is_asked_for():
    refuse_beyond_memory(2**33, "a table", "use less")
    for n_bytes in (2.0**37, 2.0**63, 1e30, float("inf")):
        with pytest.raises(ValueError, match=r"^a table needs more memory than there is"):
            refuse_beyond_memory(n_bytes, "a table", "use less")


def test_scores_of_all_records_are_refused_unless_they_come_in_chunks():
    facts = PublicFacts(10**11, 4, 7, (1.0,) * 7)
    replace(facts, is_chunked=True).refuse_scores_of_all()
    with pytest.raises(ValueError, match="and all of these records needs more memory"):
        facts.refuse_scores_of_all()


def exhausted(*args, **kwargs):
    raise MemoryError("Unable to allocate 7654321 bytes for an array with shape (7654321,)")


def said_by(call):
    with pytest.raises(MemoryError, match=r"^there is not enough memory for") as caught:
        call()
    assert isinstance(caught.value, OutOfMemory)
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert "7654321" not in str(caught.value)
    return str(caught.value)


def test_a_shortage_of_memory_is_called_by_its_name(monkeypatch):
    """Not "y must be one-dimensional", and without the shape of an array."""
    ledger = PrivacyLedger(epsilon=9.0, delta=1e-3)
    model = PrivateTableClassifier(classes=[0, 1], schema={}, ledger=ledger)
    model = model.fit(TWO, LABELS)
    people = np.arange(len(LABELS))
    with monkeypatch.context() as patch:
        patch.setattr(validation.np, "unique", exhausted)
        said_by(lambda: LabelPrivateClassifier().fit(TWO, LABELS.tolist()))
    endless = type("Endless", (), {"__iter__": exhausted, "__len__": lambda _: len(LABELS)})
    said_by(lambda: model.fit(TWO, LABELS, groups=endless()))
    with monkeypatch.context() as patch:
        patch.setattr(validation.np, "asarray", exhausted)
        said_by(lambda: model.fit(TWO, LABELS.tolist()))
        said_by(lambda: model.predict(TWO))
        said_by(lambda: private_score(model, TWO, LABELS.tolist()))
        said_by(lambda: model.fit(TWO, LABELS, groups=people.tolist()))
        said_by(lambda: model.fit(TWO, LABELS, sample_weight=people / 100))
    spent = ledger.spent()
    with monkeypatch.context() as patch:
        patch.setattr(type(model), "_scores", exhausted)
        assert "fewer rows at a time" in said_by(lambda: model.predict(TWO))
        assert "for a prediction" in said_by(lambda: private_score(model, TWO, LABELS))
    with monkeypatch.context() as patch:
        patch.setattr(HeldOut, "outcomes", exhausted)
        assert "remains charged" in said_by(lambda: private_score(model, TWO, LABELS))
    assert ledger.spent() == spent


def test_a_shortage_of_memory_in_a_chunk_is_called_by_its_name():
    X = LocalChunks.read_by([lambda: TWO, exhausted], TWO[:2])
    model = PrivateTableClassifier(classes=[0, 1], schema={}).fit(in_chunks(TWO, 20), LABELS)
    with pytest.raises(OutOfMemory, match="chunks of fewer rows"):
        model.predict(X)
    pytest.importorskip("dask")
    with pytest.raises(OutOfMemory, match="chunks of fewer rows"):
        chunks._compute_parts(exhausted, ())
