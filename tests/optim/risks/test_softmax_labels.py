"""Bound of the distance of gradients of two classes, against random and adversarial pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, softmax

from dp_halfspace.optim.risks import softmax_labels
from dp_halfspace.optim.risks.softmax_labels import (
    _CASES,
    _SPLITS,
    _error,
    _exact,
    _grid,
    _multipliers,
    _record,
    _square,
    distance_of_classes,
)

SIZE = {"opposite": 2, "few few": 2, "few some": 5, "few most": 5, "few all": 5, "more more": 4}


@dataclass
class Pair:
    """Two records, of the classes 0 and 1, at common coefficients."""

    case: str
    square: float


def pair(K, reach, shift, point):
    """Squared distance of two weighted gradients, and the case it belongs to."""
    W = point[: 2 * K].reshape(K, 2)
    W = W - W.mean(axis=0)
    W = reach * W / max(1e-12, np.linalg.norm(W))
    angles, sizes = point[2 * K : 2 * K + 2], np.cos(point[2 * K + 2 :]) ** 2
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    e = np.eye(K)[:2]
    p = softmax(rows @ W.T - shift * e, axis=1)
    flat = [size * np.outer(g, x) for size, g, x in zip(sizes, p - e, rows, strict=True)]
    least, most = np.searchsorted(expit(np.array(_SPLITS)), np.sort(p[:, 2:].sum(axis=1)))
    kinds = "more more" if least else "few " + ("few", "some", "most", "all")[most]
    case = kinds if rows[0] @ rows[1] > 0.0 else "opposite"
    return Pair(case, float(np.sum((flat[0] - flat[1]) ** 2)))


@pytest.mark.parametrize(("K", "shift"), [(3, -1.0), (3, 2.0), (8, 0.0)])
def test_every_choice_of_multipliers_is_a_bound(K, shift):
    """Random multipliers, good ones too, against a search for the farthest pair of each case."""
    rng = np.random.default_rng(K)
    nearest = 0.0
    for reach in (0.5, 3.0, 7.0):
        grid = _grid(K, reach, shift, 0.1)
        farthest = dict.fromkeys(_CASES, 0.0)
        for _ in range(4):
            start = rng.standard_normal(2 * K + 4) * np.append(np.ones(2 * K + 2), [0.1, 0.1])
            found = minimize(
                lambda at, reach=reach: -pair(K, reach, shift, at).square,
                start,
                options={"maxiter": 30},
            )
            for at in (start, found.x, start + 0.5 * (found.x - start)):
                one = pair(K, reach, shift, at)
                farthest[one.case] = max(farthest[one.case], one.square)
        for case, square in farthest.items():
            for _ in range(10):
                at = np.array([-0.3, 0.5, 0.5, 0.0, -0.3])[: SIZE[case]] + rng.standard_normal(
                    SIZE[case]
                )
                bound = _exact(grid, reach, case, at)
                assert square <= bound or square == 0.0
                nearest = max(nearest, square / bound) if bound else nearest
    assert nearest > 0.75


@pytest.mark.parametrize("case", _CASES)
@pytest.mark.parametrize("K", [3, 9])
def test_the_sum_rises_little_between_the_points_of_the_grid(K, case):
    """A grid that is 16 times finer finds no more than the bound of a coarse one."""
    rng = np.random.default_rng(5)
    for reach, shift in ((1.0, 0.0), (4.0, 0.0), (4.0, 2.0)):
        coarse, fine = (_grid(K, reach, shift, step) for step in (0.4, 0.025))
        for _ in range(4):
            by = _multipliers(coarse, reach, rng.standard_normal(SIZE[case]), case)
            low, high = (_square(grid, reach, case, by) for grid in (coarse, fine))
            assert high <= max(0.0, low + _error(coarse, reach, by))


@pytest.mark.parametrize("K", [5, 12])
def test_one_larger_share_suffices(K):
    """Random shares of the rest have no larger sum than one share and equal others."""
    rng = np.random.default_rng(6)
    for case in ("few few", "few all", "opposite"):
        for _ in range(20):
            reach = 6.0
            grid = _grid(K, reach, 0.0, 0.05)
            by = _multipliers(grid, reach, rng.standard_normal(SIZE[case]), case)
            _, _, left = by.left()
            row = int(rng.integers(grid.logit.size))
            p = float(grid.probability[row, 0])
            r = rng.dirichlet(np.full(K - 2, rng.choice([0.3, 1.0, 5.0])), size=400) + 1e-9
            r /= r.sum(axis=1, keepdims=True)
            mean = -np.log(r).mean(axis=1)
            value = (1.0 + by.kept_rest) * p**2 * (np.sum(r**2, axis=1) - 1.0 / (K - 2))
            value += 4.0 * by.rest * p * -np.sum(r * np.log(r), axis=1)
            value -= 4.0 * (by.rest - by.both) * p * mean
            value -= 0.5 * left * np.sum((np.log(r) + mean[:, None]) ** 2, axis=1)
            gone = ("squares", "entropy", "mean", "ratio")
            equal = grid._replace(**{name: 0.0 * getattr(grid, name) for name in gone})
            alone = _record(grid, by, 1.0)[row] - _record(equal, by, 1.0)[row]
            assert value.max() <= alone.max() + 1e-3


def test_result_is_at_least_enough():
    assert distance_of_classes(4, 3.0, 0.0, 1.4) == pytest.approx(1.4)


@pytest.mark.parametrize(("K", "reach"), [(3, 10.0), (10, 15.0)])
def test_a_sum_too_small_is_seen(monkeypatch, K, reach):
    """Planted: a lighter difference of the two classes; two swapped classes are farther."""
    W = np.zeros((K, 2))
    W[:, 0] = -2.0 / K
    W[0], W[1] = [1.0 - 2.0 / K, 0.5], [1.0 - 2.0 / K, -0.5]
    start = np.concatenate([W.ravel(), [-0.4, 0.4]])

    def square(at):
        return pair(K, reach, 0.0, np.concatenate([at, [0.0, 0.0]])).square

    far = -minimize(lambda at: -square(at), start).fun
    assert 0.96 * (2.0 * distance_of_classes(K, reach, 0.0, 0.0)) ** 2 < far
    assert far <= (2.0 * distance_of_classes(K, reach, 0.0, 0.0)) ** 2
    honest = softmax_labels._record
    monkeypatch.setattr(softmax_labels, "_record", lambda g, by, w: honest(g, by, 0.96 * w))
    assert far > (2.0 * distance_of_classes(K, reach, 0.0, 0.0)) ** 2
