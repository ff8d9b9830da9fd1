"""One contract of all objectives: derivatives, public constants, storage, subsamples, extremes."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace.optim.losses import LOGISTIC, SQUARED, SQUARED_HINGE
from dp_halfspace.optim.objectives import (
    NO_RIDGE,
    Adversary,
    ChunkedObjective,
    MarginObjective,
    SoftmaxObjective,
)
from dp_halfspace.papers.pair_objective import PairwiseObjective, balanced_normaliser
from dp_halfspace.rows.rows import Rows, clipped_rows
from tests.optim.cases import LOSSES, data_sets, loss_id
from tests.papers.pair_cases import PAIR_LOSSES

N, D, K = 60, 4, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
SIGNS = np.where(RNG.random(N) < 0.4, -1.0, 1.0)
TARGETS = RNG.integers(0, K - 1, N)  # the last class is absent
WEIGHTS = RNG.random(N) + 0.1
SCALE = RNG.random(N)
LINEAR = RNG.standard_normal(K * (D + 1))
ADVERSARIES = {
    "plain": None,
    "L2": Adversary(0.3, 2, D, 0.01),
    "inf": Adversary(0.1, "inf", D, 0.01),
    "kink": Adversary(0.3, 2, D, 1e-100),
}
FORMS = [np.asarray, np.asfortranarray, np.float32, sparse.csr_array]
# The same numbers in every storage: those that float32 can hold.
NARROW = X.astype(np.float32).astype(np.float64)


def margin(loss=LOGISTIC, tilt=0.0, adversary=None):
    def make(rows):
        linear, radius = LINEAR[: D + 1], 1.0 if tilt else None
        rest = {} if radius is None else {"radius": radius}
        return MarginObjective(rows, SIGNS, WEIGHTS, loss, 0.3, linear, tilt, adversary, **rest)

    return make


def softmax(rows):
    return SoftmaxObjective(rows, TARGETS, K, WEIGHTS, 0.3, LINEAR)


def pairs(loss):
    normaliser = balanced_normaliser(N)
    return lambda rows: PairwiseObjective(rows, SIGNS > 0, loss, 0.3, normaliser, LINEAR[: D + 1])


def objectives():
    """Every loss, tilt and adversary (which needs a monotone loss); classes; pairs."""
    for loss in LOSSES:
        for name, adversary in ADVERSARIES.items():
            for tilt in (0.0, 0.5, 50.0):
                if loss.monotone or adversary is None:
                    yield f"{loss_id(loss)}-{name}-{tilt}", margin(loss, tilt, adversary)
    yield "softmax", softmax
    for loss in PAIR_LOSSES:
        yield f"pairs-{loss_id(loss)}", pairs(loss)


EVERY = dict(objectives())
every = pytest.mark.parametrize("name", EVERY)


def point(J):
    return 0.7 * np.random.default_rng(1).standard_normal(J.size)


@pytest.mark.sampled(30)
@every
def test_derivatives_against_differences(name):
    J = EVERY[name](Rows(X, SCALE, 0.5))
    W = point(J)
    steps = 1e-5 * np.eye(J.size)
    # A step must not cross the kinks of the slope.
    if isinstance(J, MarginObjective) and J.loss.smoothness > 100:
        steps *= 1e-2
    values = [J.value_and_gradient(W + e)[0] - J.value_and_gradient(W - e)[0] for e in steps]
    numeric = np.array(values) / (2 * steps[0, 0])
    np.testing.assert_allclose(J.gradient(W), numeric, rtol=1e-6, atol=1e-6 * 1e-5 / steps[0, 0])
    np.testing.assert_array_equal(J.value_and_gradient(W)[1], J.gradient(W))
    hessian = J.hessian(W)
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-9, atol=1e-12)
    if not name.startswith("pairs"):  # whose slopes have kinks between any two steps
        numeric = [J.gradient(W + e) - J.gradient(W - e) for e in steps]
        numeric = np.array(numeric) / (2 * steps[0, 0])
        np.testing.assert_allclose(hessian, numeric, atol=1e-5 * np.abs(hessian).max())
    v = np.random.default_rng(2).standard_normal(J.size)
    np.testing.assert_allclose(J.hessian_product(W)(v), hessian @ v, rtol=1e-8, atol=1e-9)


@pytest.mark.sampled(60)
@every
def test_public_constants_bound_the_curvature_and_the_gap(name):
    if "kink" in name:  # is as steep as it is fine
        return
    J = EVERY[name](clipped_rows(X, 1.0, 0.5))
    W = point(J)
    zero = np.zeros(J.size)
    for w in (zero, W / np.linalg.norm(W)):
        eigenvalues = np.linalg.eigvalsh(J.hessian(w))
        assert eigenvalues[-1] <= J.gradient_lipschitz
        assert eigenvalues[0] >= J.ridge * (1 - 1e-9)
    points = 3 * np.random.default_rng(2).standard_normal((60, J.size))
    lowest = min(J.value_and_gradient(w)[0] for w in points * np.linspace(0, 1, 60)[:, None])
    assert J.value_and_gradient(zero)[0] - lowest <= J.initial_gap * (1 + 1e-12)


class Parts(list):
    """Rows in parts, which are read one after the other."""

    shape = N, D

    def total(self, function, classes, *arguments):
        return sum(function(*part, *arguments) for part in zip(self, classes, strict=True))


def test_chunks_add_up_to_the_objective_of_all_rows():
    def make(rows, index, ridge=NO_RIDGE, linear=None):
        return MarginObjective(rows, SIGNS[index], WEIGHTS[index], LOGISTIC, ridge, linear)

    linear, v, w = LINEAR[:D], RNG.standard_normal(D), RNG.standard_normal(D)
    index = [np.arange(0, 25), np.arange(25, N)]
    parts = Parts(Rows(X[part], row_bound=9.0) for part in index)
    found = ChunkedObjective(make, parts, index, D, 0.3, linear)
    whole = make(Rows(X, row_bound=9.0), slice(None), 0.3, linear)
    assert found.value_and_gradient(w)[0] == pytest.approx(whole.value_and_gradient(w)[0])
    np.testing.assert_allclose(found.value_and_gradient(w)[1], whole.gradient(w))
    np.testing.assert_allclose(found.gradient(w), whole.gradient(w))
    np.testing.assert_allclose(found.hessian(w), whole.hessian(w))
    np.testing.assert_allclose(found.hessian_product(w)(v), whole.hessian(w) @ v)
    assert found.initial_gap == pytest.approx(whole.initial_gap)
    assert found.gradient_lipschitz >= np.linalg.eigvalsh(whole.hessian(w))[-1]


@pytest.mark.sampled(60)
@pytest.mark.parametrize("form", FORMS[1:])
@every
def test_storage_makes_no_difference(name, form):
    first, second = (EVERY[name](Rows(f(NARROW), SCALE, 0.5)) for f in (np.asarray, form))
    W = point(first)
    np.testing.assert_allclose(first.gradient(W), second.gradient(W), rtol=1e-11, atol=1e-11)
    scale = np.abs(first.hessian(W)).max()
    np.testing.assert_allclose(first.hessian(W), second.hessian(W), atol=1e-9 * scale)


@pytest.mark.sampled(13)
@pytest.mark.parametrize("case", list(data_sets()), ids=lambda case: case[0])
@pytest.mark.parametrize("tilt", [0.0, 50.0, 1e4, 1e300])
def test_no_point_and_no_data_warn(case, tilt):
    _, features, signs = case
    d, rows, ones = features.shape[1], clipped_rows(features, 1.0), np.ones(len(signs))
    made = [
        MarginObjective(rows, signs, ones, loss, 0.1, None, tilt, adversary)
        for adversary in (None, Adversary(0.3, 2, d), Adversary(0.1, "inf", d, 1e-60))
        for loss in (LOGISTIC, SQUARED_HINGE)
    ]
    if not tilt:
        made.append(SoftmaxObjective(rows, (signs > 0).astype(int), 3, ones, 0.1))
        made += [PairwiseObjective(rows, signs > 0, loss, 0.1, 1.0) for loss in PAIR_LOSSES]
    for J in made:
        for size in (0.0, 1.0, 1e8, 1e200):
            w = size * np.linspace(-1, 1, J.size)
            value, gradient = J.value_and_gradient(w)
            J.hessian_product(w)(np.ones(J.size))
            if size <= 1e8 and isinstance(J, MarginObjective):
                J.hessian(w)
                assert np.isfinite([value, *gradient]).all()


@pytest.mark.parametrize(
    "J",
    [
        MarginObjective(Rows(FEATURES), np.ones(5000), np.ones(5000), loss, 0.3, np.ones(3), tilt)
        for FEATURES in [RNG.standard_normal((5000, 3))]
        for loss, tilt in ((SQUARED, 0.0), (LOGISTIC, 0.7))
    ]
    + [
        SoftmaxObjective(
            Rows(RNG.standard_normal((5000, 2))), RNG.integers(0, 3, 5000), 3, np.ones(5000), 0.3
        )
    ],
    ids=["plain", "tilted", "softmax"],
)
def test_subsample_is_unbiased_in_size_and_keeps_the_rest(J):
    part, tilted = J.subsample(512), getattr(J, "tilt", 0.0) > 0
    assert part.rows.shape == (512, J.rows.shape[1])
    assert part.weights.sum() == pytest.approx(512 if tilted else 5000)
    assert part.ridge == J.ridge
    assert part.linear is J.linear
    if isinstance(J, MarginObjective):
        assert part.mass == (5000 if tilted else None)
        assert part.subsample(100) is None or part.subsample(100).mass == part.mass
        w = np.array([0.5, -0.2, 0.1])
        for mine, other in zip(part.value_and_gradient(w), J.value_and_gradient(w), strict=True):
            assert np.linalg.norm(mine - other) < 0.4 * np.linalg.norm(other)
    assert J.subsample(4000) is None


PAIRS = {"rows": Rows(X), "positive": SIGNS > 0, "loss": LOGISTIC, "ridge": 1.0, "normaliser": 1.0}
BAD = [
    ("loss", LOSSES[-1]),
    *(("positive", bad) for bad in (SIGNS, np.array([True]))),
    *(("ridge", bad) for bad in (0.0, -1.0, math.nan, math.inf)),
    *(("normaliser", bad) for bad in (0.0, math.inf)),
    ("linear", np.zeros(3)),
]


@pytest.mark.parametrize(("name", "bad"), BAD)
def test_bad_arguments_of_pairs_are_named(name, bad):
    with pytest.raises(ValueError, match=f"{name}.* must"):
        PairwiseObjective(**{**PAIRS, name: bad})


def test_small_tilts_tend_to_the_sum():
    rows = Rows(X, SCALE, 0.5)
    plain = margin()(rows)
    W = point(plain)
    for tilt in (1e-8, 1e-12, 1e-300):
        value, gradient = replace(plain, tilt=tilt).value_and_gradient(W)
        assert value == pytest.approx(plain.value_and_gradient(W)[0], rel=1e-6)
        np.testing.assert_allclose(gradient, plain.gradient(W), rtol=1e-6)
    small = replace(plain, signs=SIGNS.astype(np.int8))
    np.testing.assert_array_equal(small.gradient(W), plain.gradient(W))
