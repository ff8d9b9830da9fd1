"""Features between scales and rows: norms over neighbours, rows by themselves, chunks, people."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from dp_halfspace.data.chunks import LocalChunks
from dp_halfspace.data.people import People
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.features import Features, estimated_numbers, joint_features, scales_pay
from dp_halfspace.engine.linear import Known, Shape, first_rows
from dp_halfspace.engine.moment import Centring
from dp_halfspace.engine.plan import PublicFacts
from dp_halfspace.engine.scales import ColumnScales
from dp_halfspace.projection import draw_fourier
from dp_halfspace.projection.features import AdditiveMap, draw_tensor_sketch

RNG = np.random.default_rng(5)
# Cells that a neighbour may hold, in three columns of numbers and two of categories.
CELLS = [np.nan, 0.0, 1e-300, -3.0, 1e300, -1e308]
CODES = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]
KNOWN = ColumnScales(np.array([2.0, -1e4]), np.array([0.5, 1e4]))


def features(memory=2**20, joint=False, **how):
    """Features of three numbers, of which the last two have released scales, and two codes."""
    drawn = AdditiveMap(7, 3, n_plain=4, length=2.0)
    if joint:
        drawn = joint_features(drawn, (10**6, 5), 1.0, (113, 10**12), seed=1)
        assert drawn.fourier is not None
    stated = ColumnScales(np.zeros(3), np.ones(3))
    return Features(drawn, 2.0, stated, np.array([1, 2]), np.array([0, 2]), math.inf, memory, **how)


def adversarial(n):
    numbers = RNG.choice(CELLS, size=(n, 3))
    codes = np.array(CODES)[RNG.integers(3, size=n)]
    return np.hstack([numbers, codes])


def rows_of(X, made, people=None):
    """The first rows of a fit, written out: one-hot queries give their columns."""
    n = X.shape[0] if people is None else len(people)
    facts = PublicFacts(n, X.shape[1], 2, (1.0, 1.0))
    shape = Shape(facts, features=made, is_single=people is None)
    labels = np.arange(X.shape[0]) % 2
    data = TrainingData(X, labels, np.array([0, 1]), None, people)
    known = Known(scales=KNOWN)
    rows = first_rows(shape, known, data).X
    scale, constant = rows.state
    matrix = np.asarray(rows._matrix, dtype=np.float64)
    constant = np.broadcast_to(constant, (1, len(matrix))).T if np.ndim(constant) == 0 else constant
    last = np.asarray(constant, dtype=np.float64).reshape(len(matrix), -1)
    return np.hstack([matrix * np.asarray(scale, dtype=np.float64)[:, None], last])


def longest(joint, people=None):
    X = adversarial(400)
    owners = People(np.full(100, 4)) if people else None
    return np.linalg.norm(rows_of(X, features(joint=joint), owners), axis=1).max()


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("people", [False, True])
def test_no_neighbour_has_a_row_longer_than_one(joint, people):
    assert 0.9 < longest(joint, people) <= 1.0 + 1e-12


@pytest.mark.parametrize("people", [False, True])
def test_a_row_is_a_function_of_its_own_cells_to_the_last_bit(people):
    X = adversarial(400)
    other = adversarial(400)
    other[17] = X[17]
    counts = People(np.full(400, 1)) if people else None
    made = features(joint=True)
    first, second = rows_of(X, made, counts), rows_of(other, made, counts)
    assert_array_equal(first[17], second[17])
    assert not np.array_equal(first, second)


def test_the_rows_that_are_mapped_at_a_time_are_public(monkeypatch):
    """The rounding of a product may depend on the number of rows in it."""
    sizes, honest = [], AdditiveMap.apply

    def counted(self, rows):
        sizes[-1].append(len(rows))
        return honest(self, rows)

    monkeypatch.setattr(AdditiveMap, "apply", counted)
    made, n = features(joint=True), 2500
    for X in (adversarial(n), np.full((n, 5), np.nan), np.zeros((n, 5))):
        sizes.append([])
        made.write(X)
    assert sizes[0] == sizes[1] == sizes[2] == [1024, 1024, 452]


def test_a_row_of_a_person_stands_where_it_stands_whatever_rows_others_have(monkeypatch):
    """Features that are off by the place of a row stand for those that are rounded by it."""
    honest = Features.write
    monkeypatch.setattr(
        Features, "write", lambda self, rows: honest(self, rows) + np.arange(len(rows))[:, None]
    )
    counts, found = RNG.integers(1, 6, size=60), []
    X = adversarial(counts.sum())
    for size in (1, 50):
        rows, owners = np.vstack([adversarial(size), X]), People(np.append(size, counts))
        data = TrainingData(rows, np.zeros(len(rows), int), np.array([0, 1]), None, owners)
        found.append(features().of(data).X[size:])
    assert_array_equal(*found)


def test_a_missing_number_is_at_the_centre_of_its_column_and_has_an_indicator():
    row = np.array([[np.nan, 2.0, np.nan, 1.0, 0.0]])
    at_centre = np.array([[0.0, 2.0, -1e4, 1.0, 0.0]])
    made = features().with_released(KNOWN)
    assert_array_equal(made.columns(row), [[0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0]])
    missing, known = made.write(row)[0], made.write(at_centre)[0]
    is_indicator = np.isin(np.arange(made.n_columns), [3, 4])
    assert_array_equal(missing[~is_indicator], known[~is_indicator])
    assert_array_equal(missing[is_indicator], [0.5, 0.5])
    # The centre of a column has no number, and no sine of it; its cosine is that of the middle.
    assert_allclose(known[:3], 0.0)
    assert_allclose(known[7:], [*[-math.sqrt(2.0) / 4.0] * 3, *[0.0] * 3], atol=1e-7)


def test_released_scales_take_the_place_of_stated_ones():
    made, X = features(), adversarial(9)
    found = made.with_released(KNOWN).scales
    assert_array_equal(found.center, [0.0, 2.0, -1e4])
    assert_array_equal(found.scale, [1.0, 0.5, 1e4])
    # The plan keeps the stated ones, for another fit.
    assert_array_equal(made.with_released(None).scales.center, np.zeros(3))
    data = TrainingData(X, np.zeros(9, int), np.array([0, 1]), None)
    for columns in ([0, 1], [1, 2], [0, 2]):
        assert_array_equal(estimated_numbers(data, np.array(columns)).X, X[:, columns])


def test_features_that_do_not_fit_are_computed_again_in_chunks(monkeypatch):
    monkeypatch.setattr("dp_halfspace._memory.KEPT_BYTES", 2**16)
    X = np.hstack([RNG.normal(size=(5000, 3)), np.eye(2)[RNG.integers(2, size=5000)]])
    data = TrainingData(X, np.arange(5000) % 2, np.array([0, 1]), None)
    kept, again = features().of(data), features(memory=0).of(data)
    assert_array_equal(np.concatenate(list(again.X.values())), kept.X)
    assert_array_equal(np.concatenate(list(again.class_indices.values())), data.class_indices)
    assert again.X.shape == kept.X.shape
    assert len(again.X.counts) == 4
    monkeypatch.setattr(LocalChunks, "kept", None)
    in_chunks = replace(data, X=LocalChunks.of([X[:2000], X[2000:]]))
    in_chunks = replace(in_chunks, X=replace(in_chunks.X, counts=(2000, 3000), n_columns=5))
    assert features(memory=0).of(in_chunks).X.shape == kept.X.shape
    weighed = replace(data, weights=np.ones(5000))
    assert isinstance(features(memory=0).of(weighed).X, np.ndarray)


def test_other_maps_read_rows_of_norm_one():
    drawn = draw_fourier(3, np.ones(4), np.random.default_rng(0))
    none = np.arange(0)
    made = Features(drawn, 2.0, None, none, none, 1.0, 0)
    far = np.array([[30.0, 0.0, 40.0], [0.5, 0.5, 0.0]])
    expected = drawn.apply(np.array([[0.6, 0.0, 0.8], [0.25, 0.25, 0.0]]))
    assert_allclose(made.write(far), expected, atol=1e-6)
    # Rows beyond the range of float32, too.
    assert_allclose(made.write(far * 1e60)[0], expected[0], atol=1e-6)


def test_scores_of_long_rows_are_those_of_shortened_images():
    size = 3
    root = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 0.5]])
    mean, none = np.array([0.2, 0.0, -0.1]), np.zeros(size)
    centring = Centring(mean, 0.0, np.eye(size), np.ones(size), none, none, root, 1.5, 1.0)
    weights = RNG.normal(size=(2, size))
    rows = RNG.normal(size=(50, size)) * RNG.uniform(0.1, 4.0, size=(50, 1))
    # Features are scaled down to norm one first, as in the fit.
    norms = np.linalg.norm(rows, axis=1)
    assert (norms > 1.0).any()
    assert (norms < 1.0).any()
    images = (rows / np.maximum(norms, 1.0)[:, None] - mean) @ root
    lengths = np.linalg.norm(images, axis=1)
    assert (lengths > 1.8).any()
    assert (lengths < 1.8).any()
    factors = np.minimum(1.0, 1.8 / lengths)[:, None]
    expected = (images * factors) @ weights.T
    coefficients = weights @ root
    shortened = rows.copy()
    centring.feature_clip().shorten(shortened)
    assert_allclose((shortened - mean) @ coefficients.T, expected, atol=1e-12)
    lengths = np.linalg.norm((rows - mean) @ root, axis=1)
    shortened, factors = rows / 2.0, np.minimum(1.0, 2.25 / lengths)[:, None]
    centring.row_clip(0.5).shorten(shortened)
    assert_allclose(shortened, (mean + (rows - mean) * factors) / 2.0, atol=1e-12)


def test_many_records_pay_for_scales_and_joint_features():
    assert scales_pay(281, 4, 0.1)
    assert not scales_pay(279, 4, 0.1)
    drawn = AdditiveMap(2, 3)
    assert joint_features(drawn, (2617, 2), 1.0, (500, 10**9), 0).n_components == 6 + 154
    assert joint_features(drawn, (2616, 2), 1.0, (500, 10**9), 0) is drawn
    # One for every twelve of n mu over the root of the number of columns.
    assert joint_features(drawn, (5234, 2), 1.0, (500, 10**9), 0).n_components == 6 + 308
    assert joint_features(drawn, (9000, 2), math.inf, (500, 10**9), 0).n_components == 500
    assert joint_features(drawn, (3000, 2), 1.0, (56, 10**9), 0).n_components == 6 + 50
    assert joint_features(drawn, (3000, 2), 1.0, (500, 4 * 3000 * 36), 0).n_components == 6 + 30
    assert joint_features(AdditiveMap(1, 3), (9000, 1), 1.0, (500, 10**9), 0).fourier is None


def test_whitening_distinguishes_more_directions_with_many_joint_features():
    assert features().n_directions == 10
    made = features(joint=True)
    assert made.n_directions == made.n_joint / 5 > 10
    assert replace(made, feature_map=AdditiveMap(2, 3)).n_directions == 10


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_row_that_overflows_in_the_public_unit_remains_a_row(kind):
    """As NaN it would take the place of every sum, which shows the record with certainty."""
    drawn = draw_tensor_sketch(2, 8, np.random.default_rng(0), degree=2, coef0=1.0)
    with np.errstate(all="ignore"):  # as in a fit
        rows = Features(drawn, 1e-10, longest=1.0).write(kind([[1.7e308, -1.0]]))
    assert np.isfinite(rows).all()
    assert np.linalg.norm(rows) > 0.1
