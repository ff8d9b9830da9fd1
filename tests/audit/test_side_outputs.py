"""What can be seen beside the model, on neighbours that were given the same answers.

Every class of object: estimators, scalers, tables, scores and searches. What a replay compares
(attributes, warnings, exceptions) is in test_replay.py; here is the rest.
"""

import io
import logging
import os
import pickle
import sys
import tempfile
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

from dp_halfspace import OutputPerturbationClassifier, PrivateSearchCV
from dp_halfspace.audit.white_box import History, fit_and_record
from dp_halfspace.metrics import private_score
from dp_halfspace.preprocessing import PrivateScaler
from dp_halfspace.privacy import randomness
from tests.audit.paths import Table
from tests.instances import adjacency, instances, label, with_enough_records
from tests.metrics.problem import Known
from tests.support import first_of_each

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3)) / 2
Y = np.arange(60) % 2


def score(X, y):
    return private_score(Known(), X, y, metric="log_loss", epsilon=4.0, delta=1e-6)


SEARCH = PrivateSearchCV(
    OutputPerturbationClassifier(data_norm=1.0, classes=[0, 1]), {"alpha": [0.1, 1.0]},
    selection="exponential", epsilon=10.0,
)  # fmt: skip
OBJECTS = [
    *first_of_each(instances(through_origin=False, classes=[0, 1], epsilon=10.0), 1),
    PrivateScaler(epsilon=5.0),
    PrivateScaler(epsilon=5.0, delta=0.0),
    Table(epsilon=10.0, classes=[0, 1]),
    score,
    SEARCH,
]


def named(value):
    if isinstance(value, PrivateSearchCV) or not hasattr(value, "fit"):
        return type(value).__name__
    return label(value) if hasattr(value, "classes") else type(value).__name__


every_object = pytest.mark.parametrize("estimator", OBJECTS, ids=named)


@contextmanager
def descriptors():
    """Catch what is written to the standard streams by descriptor, by workers too."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [os.dup(1), os.dup(2)]
    with tempfile.TemporaryFile() as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
        caught = io.BytesIO()
        try:
            yield caught
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, copy in zip((1, 2), saved, strict=True):
                os.dup2(copy, number)
                os.close(copy)
            file.seek(0)
            caught.write(file.read())


class Reads:
    """The operating system's bytes, and how many were asked for at a time."""

    def __init__(self, patch):
        self.sizes = []
        honest = randomness.OperatingSystemBytes.read
        patch.setattr(
            randomness.OperatingSystemBytes, "read",
            lambda this, n: (self.sizes.append(n), honest(this, n))[1],
        )  # fmt: skip


def visible(outcome):
    """Text and bytes of what is left."""
    model = outcome.model
    return repr(model), str(model.privacy_), model.privacy_.summary(), pickle.dumps(model)


def neighbours(estimator):
    """Another record, to the ends of the floats; where only labels are protected, another label."""
    data = [X.copy(), Y.copy()]
    if not isinstance(estimator, type(score)) and hasattr(estimator, "epsilon"):
        data = with_enough_records(estimator, *data) if hasattr(estimator, "classes") else data
    others = data[0].copy(), data[1].copy()
    others[1][0] = 1 - others[1][0]
    if not hasattr(estimator, "fit") or adjacency(estimator) == "replace-one":
        others[0][0] = [1e300, -1e-310, 0.0]
    return data, others


@pytest.mark.sampled(3)
@every_object
def test_nothing_beside_the_model_differs(estimator, monkeypatch, caplog):
    """Under errstate raise: pickles, representations, logs, streams, bytes read, and no trace."""
    first, second = neighbours(estimator)
    reads, outcomes, sizes = Reads(monkeypatch), [], []
    fit = partial(fit_and_record, estimator, 7)

    def watched(data, answer):
        before = len(reads.sizes)
        outcomes.append(fit(data, answer))
        sizes.append(reads.sizes[before:])
        return outcomes[-1]

    history = History(watched, None, first, second)
    with np.errstate(all="raise"), descriptors() as streams, caplog.at_level(logging.DEBUG):
        history.run()
    assert not history.findings
    a, b = outcomes[0], outcomes[-1]
    assert a.error is None
    assert visible(a) == visible(b)
    assert sizes[0] == sizes[-1]
    assert streams.getvalue() == b""
    assert not caplog.records


@pytest.mark.slow
def test_workers_write_nothing_and_fits_draw_equally_many_bytes(monkeypatch):
    """Unseeded fits of additive noise, and a search in other processes."""
    search = clone(SEARCH).set_params(n_jobs=2)
    with descriptors() as streams:
        for data in neighbours(search):
            search.fit(*data)
    assert streams.getvalue() == b""
    counts = []
    for data in neighbours(SEARCH):
        reads = Reads(monkeypatch)
        model = OutputPerturbationClassifier(data_norm=1.0, classes=[0, 1])
        for _ in range(50):
            model.fit(*data)
        counts.append(reads.sizes)
    # The exact branch, one draw in 2^17 or so, asks for more.
    assert counts[0][:20] == counts[1][:20]


def test_a_log_of_the_rows_is_seen(monkeypatch, caplog):
    """Planted: a debugging line that somebody left."""
    honest = OutputPerturbationClassifier.fit

    def fit(self, X, y):
        logging.getLogger("dp").debug("norm %s", np.abs(X).max())
        return honest(self, X, y)

    monkeypatch.setattr(OutputPerturbationClassifier, "fit", fit)
    model = OutputPerturbationClassifier(data_norm=1.0, classes=[0, 1], epsilon=10.0)
    with pytest.raises(AssertionError):
        test_nothing_beside_the_model_differs(model, monkeypatch, caplog)
