"""OutputPerturbationClassifier: its regulariser, its scores, optimisers of one's own."""

import warnings

import numpy as np
import pytest
from scipy.optimize import newton_krylov

from dp_halfspace import OutputPerturbationClassifier
from tests.support import exact as fit_exactly
from tests.support import together


def exact(X, y, **params):
    return fit_exactly(OutputPerturbationClassifier, X, y, **params)


def test_alpha_has_a_documented_floor(table):
    model = exact(*table, alpha=1e-50)
    assert model.alpha_ == pytest.approx(2e-8)
    model = exact(*table, alpha=1e-50, class_weight={0: 1e50})
    assert model.alpha_ == pytest.approx(2e42)


def test_neighbours_look_alike_whatever_a_callable_does(table, capfd):
    """It raises on one of them, warns on the other and prints on both."""
    X, y = table
    moved = X.copy()
    moved[0] = -1e6 * X[0]

    def leaky(F, start):
        print(F.gradient(start))
        if F.gradient(start)[0] < threshold:
            raise ZeroDivisionError
        warnings.warn(str(F.value(start)), UserWarning, stacklevel=1)
        return newton_krylov(F.gradient, start, maxiter=1)

    slopes = []
    for rows in (X, moved):
        exact(rows, y, optimizer=lambda F, w: slopes.append(F.gradient(w)[0]) or w)
    threshold = np.mean(slopes)
    assert slopes[0] != slopes[1]
    for rows in (X, moved):
        model = exact(rows, y, optimizer=leaky)
        np.testing.assert_allclose(together(model), together(exact(rows, y)), atol=1e-6)
    assert capfd.readouterr() == ("", "")
