"""Built-in data: scaled by published numbers, never by the values at hand."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from dp_halfspace._cli import problems
from dp_halfspace._cli.problems import builtin_problems


def test_three_problems_within_public_ranges():
    cancer, digits, halfspace = builtin_problems(0)
    assert cancer.X.shape == (569, 30)
    assert digits.X.shape == (1797, 64)
    assert halfspace.X.shape == (2_000, 20)
    assert cancer.data_norm == pytest.approx(np.sqrt(30) / 2)
    assert digits.data_norm == 4.0
    for problem in (cancer, digits, halfspace):
        assert np.abs(problem.X).max() <= 1.0
    assert len(digits.classes) == 10


def test_ranges_are_the_published_ones():
    rows = re.findall(
        r"^[a-z ]+\((?:mean|standard error|worst)\):\s+([\d.]+)\s+([\d.]+)$",
        load_breast_cancer().DESCR,
        flags=re.MULTILINE,
    )
    assert [(float(low), float(high)) for low, high in rows] == list(problems._CANCER_RANGES)


def test_seed_fixes_the_generated_data():
    a, b = (builtin_problems(1)[2].X for _ in range(2))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(builtin_problems(None)[2].X, a)


def test_scaling_does_not_look_at_the_values(monkeypatch):
    X, y = load_breast_cancer(return_X_y=True)
    changed = X.copy()
    changed[0] *= 1e6
    monkeypatch.setattr(problems, "load_breast_cancer", lambda **_: (changed, y))
    moved = problems._breast_cancer().X
    monkeypatch.setattr(problems, "load_breast_cancer", lambda **_: (X, y))
    np.testing.assert_array_equal(moved[1:], problems._breast_cancer().X[1:])
