"""OutputPerturbationClassifier: its regulariser, its scores, optimisers of one's own."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import newton_krylov

from dp_halfspace import OutputPerturbationClassifier
from tests.conftest import separated
from tests.support import exact as fit_exactly
from tests.support import together


def exact(X, y, **params):
    return fit_exactly(OutputPerturbationClassifier, X, y, **params)


def test_alpha_has_a_documented_floor(table):
    model = exact(*table, alpha=1e-50)
    assert model.alpha_ == pytest.approx(2e-8)
    model = exact(*table, alpha=1e-50, class_weight={0: 1e50})
    assert model.alpha_ == pytest.approx(2e42)


@pytest.fixture(scope="module")
def published():
    """What the code in the documentation defines; running it is part of the test."""
    page = Path(__file__).parents[2] / "docs/estimators/output_perturbation.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    names = {}
    exec(code, names)
    return names["stochastic_gradient"], names["katyusha"]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_published_methods_release_what_the_default_does(published, n_classes):
    X, y = separated(120, 3, n_classes)
    shares = []

    def watched(method):
        def run(F, start):
            point = method(F, start)
            shares.append(np.linalg.norm(F.gradient(point)) / np.linalg.norm(F.gradient(start)))
            return point

        return run

    for loss in ("logistic", "squared_hinge"):
        reference = together(exact(X, y, alpha=0.3, loss=loss))
        for method, near in zip(published, (0.3, 0.1), strict=True):
            model = exact(X, y, alpha=0.3, loss=loss, optimizer=watched(method))
            np.testing.assert_allclose(together(model), reference, atol=1e-7)
            # One multinomial problem, or one of each class against the rest.
            together_ = loss == "logistic" or n_classes == 2
            assert len(shares) == (1 if together_ else n_classes)
            assert max(shares) < near
            shares.clear()


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
