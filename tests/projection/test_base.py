"""What all maps share: linear, adjoint, sparse as dense, finite, one row at a time."""

import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dp_halfspace import AdaptiveMarginClassifier
from dp_halfspace.projection import draw_hadamard, draw_projection, draw_rademacher
from dp_halfspace.projection.linear import PROJECTIONS, HadamardMap, LinearMap, RademacherMap
from dp_halfspace.rows.blocks import clip_scales
from tests.projection.references import matrix_of

DRAWS = {"rademacher": draw_rademacher, "hadamard": draw_hadamard}
every_map = pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())


@pytest.mark.parametrize("kind", ["rademacher", "hadamard"])
def test_each_name_draws_its_map_where_it_shortens(kind):
    assert PROJECTIONS[kind] is DRAWS[kind]
    # The default estimator states the names: it loads no map to check a parameter.
    choices = AdaptiveMarginClassifier._parameter_constraints["projection"][0]
    assert choices.options == {"auto", *PROJECTIONS}
    drawn = draw_projection(kind, 12, 5, np.random.default_rng(0))
    assert isinstance(drawn, {"rademacher": RademacherMap, "hadamard": HadamardMap}[kind])
    assert draw_projection(kind, 12, 12, np.random.default_rng(0)) is None


@st.composite
def problems(draw):
    """A map, rows and coefficients of compatible, often awkward, shapes."""
    d = draw(st.integers(1, 70))
    kind = draw(st.sampled_from(list(DRAWS.values())))
    most = 1 << (d - 1).bit_length() if kind is draw_hadamard else 2 * d
    k = draw(st.integers(1, most))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n = draw(st.integers(1, 9))
    return kind(d, k, rng), rng.standard_normal((n, d)), rng.standard_normal((3, k))


@given(problems())
def test_apply_is_the_matrix_and_pull_back_its_transpose(problem):
    projection, X, W = problem
    matrix = matrix_of(projection)
    assert isinstance(projection, LinearMap)
    assert matrix.shape == (projection.n_components, projection.n_features_in)
    image = projection.apply(X)
    np.testing.assert_allclose(image, X @ matrix.T, atol=1e-12)
    np.testing.assert_allclose(projection.pull_back(W), W @ matrix, atol=1e-12)
    np.testing.assert_allclose(projection.pull_back(W[0]), W[0] @ matrix, atol=1e-12)
    np.testing.assert_allclose(image @ W.T, X @ projection.pull_back(W).T, atol=1e-11)


@given(problems())
def test_sparse_rows_give_what_dense_rows_give(problem):
    projection, X, _ = problem
    X = np.where(np.abs(X) > 1.0, X, 0.0)
    dense = projection.apply(X)
    for container in (sparse.csr_array, sparse.csr_matrix):
        np.testing.assert_allclose(projection.apply(container(X)), dense, atol=1e-13)


@every_map
def test_same_generator_state_same_map(draw):
    first, again, other = (draw(40, 16, np.random.default_rng(s)) for s in (7, 7, 8))
    np.testing.assert_array_equal(matrix_of(first), matrix_of(again))
    assert (matrix_of(first) != matrix_of(other)).any()
    copied = pickle.loads(pickle.dumps(first))
    X = np.random.default_rng(0).standard_normal((4, 40))
    np.testing.assert_array_equal(copied.apply(X), first.apply(X))
    rng = np.random.default_rng(7)
    draw(40, 16, rng)
    assert (matrix_of(draw(40, 16, rng)) != matrix_of(first)).any()


def influenced_rows(apply, X, i, row):
    """Numbers of the image rows that change when record i is replaced."""
    changed = X.copy()
    changed[i] = row
    with np.errstate(all="ignore"):
        return np.flatnonzero((apply(X) != apply(changed)).any(axis=1)).tolist()


@every_map
def test_replacing_a_record_changes_one_row(draw):
    projection = draw(21, 8, np.random.default_rng(5))
    X = np.random.default_rng(6).standard_normal((300, 21))
    for row in (np.zeros(21), np.full(21, 1e308), -5 * X[17]):
        assert influenced_rows(projection.apply, X, 17, row) == [17]


def worst_images(projection):
    """Images of finite rows that overflow: infinities of both signs meet."""
    d = projection.n_features_in
    X = 1.7e308 * np.where(np.random.default_rng(0).random((50, d)) < 0.5, 1.0, -1.0)
    return projection.apply(X), projection.apply(sparse.csr_array(X))


@every_map
def test_overflow_stays_an_ordinary_row(draw):
    projection = draw(64, 16, np.random.default_rng(9))
    for image in worst_images(projection):
        assert np.isfinite(image).all()
        scaled = image * clip_scales(image, 1.0)[:, None]
        assert (np.linalg.norm(scaled, axis=1) <= 1.0).all()


@every_map
def test_infinities_of_one_sign_become_finite(draw):
    """Without infinities of the other sign they add up to no NaN."""
    projection = draw(8, 4, np.random.default_rng(0))
    X = np.zeros((3, 8))
    X[1] = 1.7e308 * np.sign(matrix_of(projection)[0])
    image = projection.apply(X)
    assert np.isfinite(image).all()
    assert image[1, 0] > 0.0


@every_map
@pytest.mark.parametrize("kind", ["int8", "uint8", "int64", "float16", "float32"])
def test_rows_of_any_type_are_mapped_in_float64(draw, kind):
    """No sign overflows the type of the entries."""
    projection = draw(21, 8, np.random.default_rng(5))
    ends = np.finfo(kind) if kind.startswith("f") else np.iinfo(kind)
    X = np.where(np.eye(9, 21) > 0, ends.min, ends.max).astype(kind)
    np.testing.assert_array_equal(projection.apply(X), projection.apply(X.astype(np.float64)))


@every_map
@pytest.mark.parametrize("bad", [0, -1, 2.5, "3", None])
def test_sizes_are_positive_integers(draw, bad):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="n_features must be"):
        draw(bad, 1, rng)
    with pytest.raises(ValueError, match="n_components must be"):
        draw(3, bad, rng)


@every_map
def test_shapes_types_and_formats_are_checked(draw):
    projection = draw(4, 2, np.random.default_rng(0))
    for X in (np.ones((2, 5)), np.ones(4), sparse.csr_array(np.ones((2, 3)))):
        with pytest.raises(ValueError, match="X must have shape"):
            projection.apply(X)
    for X in (np.ones((2, 4), dtype=complex), np.full((2, 4), "a"), np.ones((2, 4), np.longdouble)):
        with pytest.raises(ValueError, match="real numbers of at most 64 bits"):
            projection.apply(X)
    rows = np.ones((2, 4))
    np.testing.assert_array_equal(projection.apply(sparse.csc_array(rows)), projection.apply(rows))


@pytest.mark.sampled(1)
@every_map
def test_a_sparse_table_is_not_densified(draw):
    projection = draw(30_000, 8, np.random.default_rng(0))
    X = sparse.random_array((600, 30_000), density=1e-3, format="csr", rng=1)
    tracemalloc.start()
    projection.apply(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * 600 * 30_000 * 8


@every_map
def test_planted_scaling_by_the_whole_table_is_seen(draw):
    projection = draw(21, 8, np.random.default_rng(5))
    X = np.random.default_rng(6).standard_normal((300, 21))

    def leaky(X):
        return projection.apply(X / np.abs(X).max())

    assert len(influenced_rows(leaky, X, 17, 100 * X[17])) == 300


@pytest.mark.parametrize("draw", [draw_hadamard, draw_rademacher])
def test_planted_overflow_is_seen(monkeypatch, draw):
    monkeypatch.setattr("dp_halfspace.projection.linear.replace_nonfinite", lambda Z: Z)
    images = worst_images(draw(64, 16, np.random.default_rng(9)))
    assert not all(np.isfinite(image).all() for image in images)
