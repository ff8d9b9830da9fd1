"""Data built from a known separator really have its margin."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dp_halfspace.datasets import make_halfspace


@given(
    st.integers(1, 200),
    st.integers(2, 30),
    st.floats(0, 1),
    st.floats(0, 1),
    st.integers(0, 2**32 - 1),
)
@example(n=200, d=3, margin=0.95, imbalance=0.5, seed=0)
def test_unit_rows_with_margin_on_the_right_side(n, d, margin, imbalance, seed):
    X, y, w = make_halfspace(
        n, d, margin=margin, imbalance=imbalance, random_state=seed, return_separator=True
    )
    assert X.shape == (n, d)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, atol=1e-12)
    assert np.linalg.norm(w) == pytest.approx(1.0)
    distances = y * (X @ w)
    assert distances.min() >= margin - 1e-12
    assert distances.max() <= min(margin + 0.1, 1.0) + 1e-12
    assert np.sum(y == 1) == round(imbalance * n)
    assert np.isin(y, [-1, 1]).all()


def test_flips_the_stated_fraction_of_labels():
    n, rate = 40_000, 0.1
    X, y, w = make_halfspace(n, 3, label_noise=rate, random_state=0, return_separator=True)
    flipped = np.mean(y != np.sign(X @ w))
    assert abs(flipped - rate) < 5 * np.sqrt(rate * (1 - rate) / n)


def test_seed_reproduces_and_none_does_not():
    a, b = (make_halfspace(50, 4, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(a[0], b[0])
    np.testing.assert_array_equal(a[1], b[1])
    assert not np.array_equal(make_halfspace(50, 4)[0], make_halfspace(50, 4)[0])
    generator = np.random.RandomState(3)
    np.testing.assert_array_equal(make_halfspace(50, 4, random_state=generator)[0], a[0])


@pytest.mark.parametrize(
    "change",
    [
        {"n_samples": 0},
        {"n_features": 1},
        {"margin": -0.1},
        {"margin": 1.1},
        {"margin": float("nan")},
        {"label_noise": 0.5},
        {"label_noise": -0.1},
        {"imbalance": 1.1},
    ],
)
def test_refuses_what_cannot_exist(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        make_halfspace(**change)
