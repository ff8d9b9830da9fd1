"""Parameters are read from the command line as Python literals, or as strings."""

import numpy as np

from benchmarks import options


def test_parameters_are_literals_or_strings():
    texts = ["margin=.05", "preconditioner=False", "loss=hinge", "n_hidden=(6,3)", "kernel=a=b"]
    assert dict(map(options.parameter, texts)) == {
        "margin": 0.05,
        "preconditioner": False,
        "loss": "hinge",
        "n_hidden": (6, 3),
        "kernel": "a=b",
    }


def test_means_and_errors_are_printed(capsys):
    options.main(["OutputPerturbationClassifier", "alpha=0.1", "--fits", "2", "--sets", "digits"])
    assert capsys.readouterr().out.startswith("digits, epsilon 1: 0.")


def test_real_tables_have_original_units_and_cubes_their_labels(monkeypatch):
    rows = (np.ones((2, 1)), np.ones((1, 1)), np.array([0, 1]), np.array([1]))
    monkeypatch.setattr(options, "table", lambda name: rows)
    assert options.loaded("magic").data_norm is None
    named = {"segment": (*rows[:2], np.array(["b", "a"]), np.array(["a"]), None)}
    monkeypatch.setattr(options, "tables", lambda names: named)
    assert options.loaded("segment").classes == ("a", "b")
    points = options.loaded("product3")
    assert points.X_train.shape == (1000, 3)
    signs = (points.X_train[:, 0] * points.X_train[:, 1] > 0).astype(int)
    np.testing.assert_array_equal(points.y_train, signs)
    ring = options.loaded("ring")
    norms = np.linalg.norm(ring.X_test, axis=1)
    np.testing.assert_array_equal(ring.y_test, (norms > 0.45) & (norms < 0.85))
