"""Progress is a bar on a terminal and plain lines elsewhere; its numbers are public."""

import io

import numpy as np
import pytest

from dp_halfspace import AdaptiveMarginClassifier
from dp_halfspace._cli import progress as module
from dp_halfspace._cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def drive(stream):
    progress = Progress(4, stream)
    progress.start("first")
    for _ in range(3):
        progress.step()
    progress.start("second")
    progress.step()
    return stream.getvalue()


def test_plain_lines_now_and_then(monkeypatch):
    assert drive(io.StringIO()) == "0/4 fits done, now: first\n"
    monkeypatch.setattr(module, "_SECONDS", 0.0)
    assert drive(io.StringIO()).splitlines()[-1] == "3/4 fits done, now: second"


def frames_of_a_fit(X, y):
    stream = Terminal()
    progress = Progress(1, stream)
    progress.start("fit")
    with progress.fit() as watch:
        params = {"solver": "noisy_gd", "classes": [0, 1], "data_norm": 1}
        model = AdaptiveMarginClassifier(ledger=watch, **params).fit(X, y)
    progress.step()
    return stream.getvalue(), model


def test_steps_of_a_fit_are_those_of_its_record_whatever_the_data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 3))
    first, model = frames_of_a_fit(X, (X[:, 0] > 0).astype(int))
    assert first == frames_of_a_fit(np.zeros_like(X), np.zeros(300, dtype=int))[0]
    n_releases = sum(getattr(e, "count", 1) for e in model.privacy_.events)
    assert f"step {n_releases}/{n_releases}" in first


def test_the_ledger_of_the_user_is_charged_first():
    class Refusing:
        def charge(self, record):
            raise ValueError("no")

    stream = io.StringIO()
    progress = Progress(1, stream)
    with progress.fit(Refusing()) as watch, pytest.raises(ValueError, match="no"):
        watch.charge(None)
