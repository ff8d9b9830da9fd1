"""No bit of a row depends on another row: ``docs/proofs/certificate.md``, section 7.

One record is kept and *all* others are replaced by hostile ones. Whatever the library computes for
the record, up to its image under a released map, must stay the same to the last bit.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.engine.scales import ColumnScales, in_column_scales
from dp_halfspace.projection import draw_additive, draw_fourier, draw_projection, draw_tensor_sketch
from dp_halfspace.projection.linear import PROJECTIONS
from dp_halfspace.rows import rows as module
from dp_halfspace.rows.blocks import block_size, clip_scales
from dp_halfspace.rows.float32_rows import clipped_float32_rows
from dp_halfspace.rows.mapped_rows import (
    FormedRows,
    clipped_features,
    formed_block_rows,
    normalised_feature_rows,
)
from dp_halfspace.rows.rows import normalised_rows

TINY, LARGEST = 5e-324, 1.7e308


def strided(X):
    """The same numbers inside of a larger array, off the grid of aligned addresses."""
    around = np.full((len(X), X.shape[1] + 3), np.nan)
    around[:, 1:-2] = X
    return around[:, 1:-2]


def single(X):
    return np.clip(X, -3e38, 3e38).astype(np.float32)


FORMS = {
    "C": np.asarray,
    "F": np.asfortranarray,
    "strided": strided,
    "every second row": lambda X: np.repeat(X, 2, 0)[::2],
    "rows backwards": lambda X: X[::-1].copy()[::-1],
    "rows of F": lambda X: np.asfortranarray(np.repeat(X, 2, 0))[::2],
    "float32": single,
    "float32 of F": lambda X: np.asfortranarray(single(X)),
    "float32 strided": lambda X: np.pad(single(X), ((0, 0), (0, 1)))[:, :-1],
    "CSR": sparse.csr_array,
    "CSR float32": lambda X: sparse.csr_array(single(X)),
}
each_form = pytest.mark.parametrize("form", list(FORMS))
SLOW = [pytest.param(form, marks=pytest.mark.slow) for form in ("F", "float32", "CSR")]
some_forms = pytest.mark.parametrize("form", ["C", "strided", "CSR float32", *SLOW])


def hostile(X, seed):
    """Tables to put in the place of all other records."""
    rng = np.random.default_rng(seed)
    yield np.zeros_like(X)
    for size in (TINY, 1e-160, 1e150, LARGEST):
        yield np.full_like(X, size) * rng.choice([-1.0, 1.0], X.shape)
    yield rng.standard_normal(X.shape) * 10.0 ** rng.integers(-300, 300, X.shape)
    yield rng.choice([0.0, TINY, -1e150, LARGEST, 1.0], X.shape)
    yield np.where(np.arange(len(X))[:, None] == len(X) // 2, LARGEST, X)


def positions(n, step):
    """Numbers of rows at the ends of blocks and of vectors of numbers, and within."""
    places = {0, 3, step - 1, step, n // 3, n - 1}
    return sorted(i for i in places if 0 <= i < n)


def maps(size, seed=0):
    """Maps to as many columns, and to fewer, that stretch some directions much."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((size, size)))[0]
    yield (turn * np.geomspace(0.25, 200.0, size)) @ turn.T
    for rank in sorted({1, size - 1} - {0}):
        yield np.linspace(0.25, 150.0, rank)[:, None] * turn[:, :rank].T


def of_linear_rows(X, bias, linear_map=None):
    """Everything that the library computes for single records, stacked by record."""
    rows = normalised_rows(X, 3.0, bias, linear_map)
    found = [clip_scales(X, 3.0)[:, None], rows._scale[:, None], rows.dense(np.arange(X.shape[0]))]
    w = np.random.default_rng(1).standard_normal((rows.shape[1], 2))
    found += [rows.scores(w), rows.scores(w[:, 0])]
    if linear_map is not None:
        found.append(linear_map.apply(X))
    for transform in maps(rows.shape[1]):
        found.append(rows.clip_images(transform, 0.8, (0.6,))._scale[:, None])
        formed = FormedRows(rows, transform, 0.8, (0.6,))
        found.append(np.vstack([Z for _, _, Z in formed.blocks()]))
    return [part.reshape(X.shape[0], -1) for part in found]


def of_learnt_units(X):
    """The copy of a table in estimated column scales, in float32, and factors of its rows."""
    units = ColumnScales(np.full(X.shape[1], 0.1), np.geomspace(1e-3, 1e200, X.shape[1]))
    copy = in_column_scales(X, units, kind=np.float32)
    return [copy, *of_single_rows(copy)]


def of_single_rows(X):
    """What is computed for single rows of a table of float32: factors and constants."""
    rows = clipped_float32_rows(X, 3.0, 0.8, (0.6,))
    found = [rows.clip_images(transform, 0.8, (0.6,)) for transform in maps(rows.shape[1])]
    return [part for made in (rows, *found) for part in (made._scale[:, None], made._constants)]


def of_features(X, feature_map, memory):
    """The same for the features of a kernel, kept or made again."""
    features = clipped_features(X, 3.0, feature_map, memory=memory)
    rows = normalised_feature_rows(features, 0.5)
    return [np.asarray(features[0 : X.shape[0]]), rows._scale[:, None]]


def differing(computed, X, form, places, seed=0):
    """Records of which a bit changes when all the others are replaced."""
    with single_blas_thread(), np.errstate(all="ignore"):
        before = computed(FORMS[form](X))
        moved = set()
        for table in hostile(X, seed):
            for i in places:
                other = table.copy()
                other[i] = X[i]
                after = computed(FORMS[form](other))
                pairs = zip(before, after, strict=True)
                if any(a[i].tobytes() != b[i].tobytes() for a, b in pairs):
                    moved.add(i)
    return moved


@pytest.mark.sampled(5)
@each_form
@pytest.mark.parametrize(
    ("n", "d", "bias"), [(67, 1, 0.5), (131, 9, None), (131, 9, 0.5), (59, 130, 0.5)]
)
def test_no_bit_of_a_row_depends_on_the_others(form, n, d, bias):
    X = np.random.default_rng(d).standard_normal((n, d))
    step = min(48, formed_block_rows(n, d))
    assert not differing(lambda T: of_linear_rows(T, bias), X, form, positions(n, step))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("form", ["C", "F", "strided", "float32"])
@pytest.mark.parametrize(("n", "d"), [(67, 1), (131, 9), (700, 130)])
def test_nor_in_learnt_units(form, n, d):
    X = np.random.default_rng(d).standard_normal((n, d))
    X[::4, 0] = np.nan
    assert not differing(of_learnt_units, X, form, positions(n, 2**15 // d))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", [name for name in FORMS if name.startswith("float32")])
@pytest.mark.parametrize(("n", "d"), [(67, 1), (131, 3), (131, 8), (700, 130)])
@pytest.mark.parametrize("size", [1.0, 1e-30, 1e30])
def test_nor_in_a_table_of_float32(form, n, d, size):
    X = np.random.default_rng(d).standard_normal((n, d)) * size
    assert not differing(of_single_rows, X, form, positions(n, 2**15 // d))


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("projected", [False, True])
def test_nor_on_whether_entries_of_another_sparse_row_are_in_order(kind, projected):
    """If they are not, all rows are copied, in float64."""
    X = np.random.default_rng(4).standard_normal((67, 30)).astype(kind)
    rows = sparse.csr_array(X)
    other = rows.copy()
    other.indices[210:240] = other.indices[210:240][::-1].copy()
    other.indices[211] = other.indices[210]
    linear_map = draw_projection("hadamard", 30, 8, np.random.default_rng(0)) if projected else None
    before, after = (of_linear_rows(table, 0.5, linear_map) for table in (rows, other))
    for a, b in zip(before, after, strict=True):
        assert np.delete(a, 7, 0).tobytes() == np.delete(b, 7, 0).tobytes()


@pytest.mark.parametrize("form", [name for name in FORMS if "CSR" not in name])
@pytest.mark.parametrize("d", [1, 3, 8, 130])
def test_scores_are_products_of_one_layout_whatever_the_records_are(monkeypatch, form, d):
    X = np.random.default_rng(d).standard_normal((300, d))
    other, seen = X.copy(), []
    other[123] = 1e300
    monkeypatch.setattr(
        module,
        "multiply_rows",
        lambda b, w: seen.append((b.matrix.shape, b.matrix.strides)) or b.lo,
    )
    for table in (X, other):
        normalised_rows(FORMS[form](table), 3.0, 0.5, clips=True).scores(np.ones(d + 1))
    half = len(seen) // 2
    assert seen[:half] == seen[half:] != []


@pytest.mark.sampled(1)
@some_forms
def test_nor_with_several_blocks(form):
    n, d = 1200, 200
    step = block_size(n, d, is_sparse=False)
    assert step < n
    X = np.random.default_rng(0).standard_normal((n, d))
    places = [step - 1, n - 1]
    assert not differing(lambda T: of_linear_rows(T, 0.5), X, form, places)


@some_forms
@pytest.mark.parametrize("kind", list(PROJECTIONS))
def test_nor_behind_a_projection(form, kind):
    X = np.random.default_rng(3).standard_normal((101, 70))
    linear_map = draw_projection(kind, 70, 33, np.random.default_rng(0))
    assert not differing(lambda T: of_linear_rows(T, 0.5, linear_map), X, form, [0, 7, 64, 100])


@pytest.mark.sampled(6)
@some_forms
@pytest.mark.parametrize("kind", ["additive", "fourier", "sketch"])
@pytest.mark.parametrize("memory", [0, 10**9], ids=["made again", "kept"])
def test_nor_do_features(form, kind, memory):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 10))
    feature_map = {
        "additive": lambda: draw_additive(10, 4, 20, rng),
        "fourier": lambda: draw_fourier(10, np.full(30, 0.5), rng),
        "sketch": lambda: draw_tensor_sketch(10, 60, rng, degree=3, coef0=1.0, length_scale=1.0),
    }[kind]()
    assert not differing(lambda T: of_features(T, feature_map, memory), X, form, [5, 77, 149])


@pytest.mark.parametrize("d", [9, 64])
def test_nor_on_where_the_arrays_begin(d):
    """The allocator may put an array elsewhere because of other records."""
    X = np.random.default_rng(0).standard_normal((97, d))
    expected = of_linear_rows(X, 0.5)
    for offset in range(1, 9):
        room = np.empty(X.size + 8)
        moved = room[offset : offset + X.size].reshape(X.shape)
        moved[:] = X
        for a, b in zip(expected, of_linear_rows(moved, 0.5), strict=True):
            np.testing.assert_array_equal(a, b)
    for transform in maps(d):
        expected_image = X @ transform.T
        for offset in range(8):
            room, out = np.empty(transform.size + 8), np.empty(97 * len(transform) + 8)
            matrix = room[offset : offset + transform.size].reshape(transform.shape)
            matrix[:] = transform
            image = out[7 - offset : 7 - offset + 97 * len(transform)].reshape(97, -1)
            np.testing.assert_array_equal(np.matmul(X, matrix.T, out=image), expected_image)


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("planted", ["common factor", "last bit"])
def test_a_row_that_looks_at_the_others_is_seen(monkeypatch, planted):
    """Planted: a product whose order of operations is chosen by the largest number it is given."""
    honest = module.Rows.lengths

    def common(rows, transform=None):
        lengths = honest(rows, transform)
        return lengths / lengths.max() * lengths.max()

    def last_bit(rows, transform=None):
        lengths = honest(rows, transform)
        return np.nextafter(lengths, 0.0) if (rows._scale < 1e-100).any() else lengths

    monkeypatch.setattr(module.Rows, "lengths", common if planted == "common factor" else last_bit)
    X = np.random.default_rng(1).standard_normal((60, 9))
    assert differing(lambda T: of_linear_rows(T, 0.5), X, "C", range(60))
