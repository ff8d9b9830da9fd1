"""Sparse matrices of every format: read as CSR if they are valid, refused before compiled code."""

import copy

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace import (
    LabelPrivateClassifier,
    OutputPerturbationClassifier,
    PrivateSearchCV,
    PrivateThresholdClassifier,
)
from dp_halfspace.data.chunks import LocalChunks
from dp_halfspace.data.sparse_rows import checked_csr
from dp_halfspace.metrics import private_score
from dp_halfspace.projection import draw_rademacher
from dp_halfspace.rows.rows import Rows

FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
TYPES = {"array": sparse.csr_array, "matrix": sparse.csr_matrix}
RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 6)) * (RNG.random((40, 6)) < 0.6)
Y = (X[:, 0] > 0).astype(int)
# An index that no error may show.
SECRET = 7_654_321
REFUSED = r"X is a sparse matrix with invalid indices or entries: rebuild it$"
every_format = pytest.mark.parametrize("kind", FORMATS)
every_type = pytest.mark.parametrize("made", TYPES.values(), ids=TYPES)


def stored(kind, made=sparse.csr_array, rows=X):
    """Rows in one format, with indices that nothing else shares."""
    options = {"blocksize": (2, 3)} if kind == "bsr" else {}
    converted = getattr(made(rows), f"to{kind}")(**options)
    return copy.deepcopy(converted)


def with_place(matrix, row, column):
    """Move the first entry to another place, without a check."""
    if matrix.format == "coo":
        places = np.array([[row, *matrix.row[1:]], [column, *matrix.col[1:]]])
        if hasattr(matrix, "coords"):
            matrix.coords = tuple(places)
        else:
            matrix.row, matrix.col = places
    elif matrix.format == "lil":
        matrix.rows[0][0] = column
    elif matrix.format == "dok":
        dict.__setitem__(getattr(matrix, "_dict", matrix), (row, column), 1.0)
    else:
        matrix.indices[0] = row if matrix.format == "csc" else column
    return matrix


def invalid(kind, made):
    """Matrices of one format, none of which fits its shape."""
    far = {"column": (0, SECRET), "negative column": (0, -1), "one column too far": (0, 6)}
    far |= {"row": (SECRET, 0), "negative row": (-1, 0), "one row too far": (40, 0)}
    by_row, by_column = ("bsr", "csr", "lil"), ("csc",)
    for name, place in far.items() if kind != "dia" else ():
        if not (("row" in name and kind in by_row) or ("column" in name and kind in by_column)):
            yield name, with_place(stored(kind, made), *place)
    matrix = stored(kind, made)
    if kind in ("bsr", "csr", "csc"):
        matrix.indptr[1] = matrix.indptr[2] + 1
        yield "a list that ends before its start", matrix
        matrix = stored(kind, made)
        matrix.indptr[-1] = SECRET
        yield "a list behind the entries", matrix
        matrix = stored(kind, made)
        matrix.indptr[0] = 1
        yield "entries before the first list", matrix
        matrix = stored(kind, made)
        matrix.indptr = matrix.indptr[:-1]
        yield "fewer lists", matrix
        matrix = stored(kind, made)
        matrix.indices = matrix.indices[:-1]
        yield "fewer indices than entries", matrix
        matrix = stored(kind, made)
        matrix.indices = matrix.indices.astype(float)
        yield "indices of floats", matrix
    elif kind == "lil":
        matrix.data[3] = [*matrix.data[3], 1.0]
        yield "a list of entries that is longer", matrix
        matrix.data[4] = matrix.data[4][:-1]
        yield "a list of entries that has one of the next", matrix
        matrix = stored(kind, made)
        matrix.rows, matrix.data = matrix.rows[:-1], matrix.data[:-1]
        yield "fewer rows", matrix
        matrix = stored(kind, made)
        matrix.rows[3][0] = 0.5
        yield "an index that is no integer", matrix
        matrix = stored(kind, made)
        matrix.data[3][0] = f"secret {SECRET}"
        yield "an entry that is no number", matrix
    elif kind == "dia":
        matrix.offsets = matrix.offsets[:-1]
        yield "fewer offsets than diagonals", matrix
    if kind != "lil" and kind != "dok":
        matrix = stored(kind, made)
        matrix.data = matrix.data.astype(object)
        yield "objects", matrix


def refused(call):
    with pytest.raises(ValueError, match=REFUSED) as caught:
        call()
    error = caught.value
    assert str(SECRET) not in f"{error}{error.__cause__}{error.__context__}"


@pytest.mark.sampled(9)
@every_type
@every_format
def test_invalid_indices_are_refused_by_every_reader(kind, made):
    """Whatever reads rows: the process of the tests would end otherwise."""
    public = {"classes": [0, 1], "data_norm": 1.0}
    model = OutputPerturbationClassifier(**public).fit(X, Y)
    search = PrivateSearchCV(OutputPerturbationClassifier(**public), {"alpha": [0.1, 1.0]})
    threshold = PrivateThresholdClassifier(model, value=0.5)
    people = np.arange(len(Y)) // 2
    n_kinds = 0
    for _, matrix in invalid(kind, made):
        n_kinds += 1
        refused(lambda rows=matrix: OutputPerturbationClassifier(**public).fit(rows, Y))
        refused(lambda rows=matrix: model.predict(rows))
        refused(lambda rows=matrix: model.plan(rows, Y))
        refused(lambda rows=matrix: LabelPrivateClassifier(classes=[0, 1]).fit(rows, Y))
        refused(lambda rows=matrix: private_score(model, rows, Y, groups=people))
        refused(lambda rows=matrix: search.fit(rows, Y))
        refused(lambda rows=matrix: threshold.fit(rows, Y, groups=people))
        given = LocalChunks.read_by([lambda rows=matrix: rows], X[:2])
        refused(lambda chunks=given: model.predict(chunks))
        with pytest.raises(ValueError, match=r"convert sparse chunks to dense ones$"):
            OutputPerturbationClassifier(**public).fit(given, Y)
        with pytest.raises(ValueError, match=r"convert sparse chunks to dense ones$"):
            private_score(model, given, Y)
        if kind == "csr":
            refused(lambda rows=matrix: Rows(rows))
            refused(lambda rows=matrix: draw_rademacher(6, 3, RNG).apply(rows))
    assert n_kinds >= 2


@pytest.mark.sampled(7)
@every_type
@every_format
def test_a_valid_matrix_of_every_format_is_its_rows(kind, made):
    public = {"classes": [0, 1], "data_norm": 1.0}
    model = OutputPerturbationClassifier(**public).fit(stored(kind, made), Y)
    for dtype in (np.float64, np.float32, np.int8, bool):
        rows = X.astype(dtype)
        matrix = stored(kind, made, rows)
        before = matrix.toarray()
        np.testing.assert_array_equal(checked_csr(matrix).toarray(), rows)
        np.testing.assert_array_equal(matrix.toarray(), before)
        scores = model.decision_function(rows)
        np.testing.assert_allclose(model.decision_function(matrix), scores, rtol=1e-6)
        chunks = LocalChunks.read_by([lambda rows=matrix: rows], rows[:2])
        np.testing.assert_allclose(model.decision_function(chunks), scores, rtol=1e-6)
    for shape in ((0, 6), (3, 6), (6, 0)):
        assert checked_csr(made(shape).asformat(kind)).shape == shape


def test_the_entries_of_a_valid_csr_matrix_are_shared_without_the_space_behind_them():
    matrix = stored("csr")
    assert np.shares_memory(checked_csr(matrix).data, matrix.data)
    n_stored = matrix.nnz
    matrix.data = np.append(matrix.data, np.inf)
    matrix.indices = np.append(matrix.indices, -5).astype(matrix.indices.dtype)
    assert len(checked_csr(matrix).data) == n_stored < len(matrix.data)
    np.testing.assert_array_equal(checked_csr(matrix).toarray(), X)


def test_entries_stored_twice_are_added_and_diagonals_outside_are_left_out():
    twice = sparse.coo_array(([1.0, 2.0, 4.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    np.testing.assert_array_equal(checked_csr(twice).toarray(), [[0, 3], [4, 0]])
    long = sparse.dia_array((np.ones((3, 9)), [-5, 1, SECRET]), shape=(3, 4))
    np.testing.assert_array_equal(checked_csr(long).toarray(), long.toarray())
    swapped = sparse.csr_array(X)
    for name in ("indices", "indptr"):
        setattr(swapped, name, getattr(swapped, name).astype(">i4"))
    np.testing.assert_array_equal(checked_csr(swapped).toarray(), X)
    assert swapped.indices.dtype == ">i4"
