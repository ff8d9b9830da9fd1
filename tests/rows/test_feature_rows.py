"""Features block by block: the same as all at once, of norm one, whatever is kept."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace.projection import draw_fourier
from dp_halfspace.projection.features import FourierMap
from dp_halfspace.rows.mapped_rows import FeatureRows, clipped_features, normalised_feature_rows
from dp_halfspace.rows.rows import Rows

N, D, K = 1000, 4, 300


def drawn(k=K):
    return draw_fourier(D, np.full(k // 2, 0.5), np.random.default_rng(0))


def table(seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, size=(N, D))


def formed(rows):
    """The logical rows, exactly as a pass sees them."""
    return rows.margins(np.eye(rows.shape[1]))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("memory", [0, 10**6, 10**9])
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, np.float32, sparse.csr_array])
def test_passes_agree_with_a_plain_matrix(memory, form):
    X, psi = table(), drawn()
    rows = normalised_feature_rows(clipped_features(form(X), 2.0, psi, memory=memory), 0.5)
    plain = np.column_stack([psi.apply(form(X) / 2.0), np.full(N, 0.5)])
    plain = Rows(plain / np.linalg.norm(plain, axis=1, keepdims=True))
    rng = np.random.default_rng(1)
    w, p = rng.standard_normal((K + 1, 2)), rng.standard_normal((N, 2))
    index = np.array([3, 999, 5])
    for got, expected in [
        (rows.margins(w), plain.margins(w)),
        (rows.adjoint(p), plain.adjoint(p)),
        (rows.fused_adjoint(w, lambda m, lo, hi: m), plain.fused_adjoint(w, lambda m, lo, hi: m)),
        (rows.gram(np.ones(N)), plain.gram(np.ones(N))),
        (rows.dense(index), plain.dense(index)),
    ]:  # fmt: skip
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("memory", [0, 10**9])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rows_beyond_the_public_norm_are_read_as_rows_of_that_norm(form, memory):
    X = table() * 100.0
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    found = clipped_features(form(X), 2.0, drawn(), memory=memory, longest=0.5)
    np.testing.assert_allclose(found[0:N], drawn().apply(0.5 * unit), atol=1e-5)


def longest_when_read_again(dense):
    """Norms of single rows, of features that come out longer when they are made again."""
    psi = drawn()
    rows = normalised_feature_rows(clipped_features(table(), 2.0, psi, memory=0), 0.5)
    longer = FourierMap(psi.frequencies)
    rows._matrix = replace(rows._matrix, feature_map=Longer(longer))
    out = dense(rows, np.arange(0, N, 7))
    exact = [sum(Fraction(v) ** 2 for v in row) for row in out[:3].tolist()]
    return max(float(max(exact)), float(np.linalg.norm(out, axis=1).max()))


class Longer:
    """A map whose rows are one unit in the last place too long."""

    def __init__(self, feature_map):
        self.feature_map, self.n_components = feature_map, feature_map.n_components

    def apply(self, X):
        return np.nextafter(self.feature_map.apply(X) * np.float32(1 + 1e-6), np.float32(9))


def test_single_rows_are_no_longer_than_the_bound():
    """Planted: the factor of an earlier pass, for features that were made again."""
    assert 0.999 < longest_when_read_again(FeatureRows.dense) <= 1.0
    assert longest_when_read_again(Rows.dense) > 1.0


@pytest.mark.parametrize("bias", [None, 0.5])
def test_norms_are_one_and_never_more(bias):
    X = table()
    X[0], X[1], X[2] = 0.0, 1e300, 5e-324
    lengths = np.linalg.norm(
        formed(normalised_feature_rows(clipped_features(X, 1.0, drawn(), memory=0), bias)).astype(
            np.longdouble
        ),
        axis=1,
    )
    assert lengths.max() <= 1
    assert lengths.min() > 1 - 1e-12


class TooLong:
    """Planted: a map that leaves the unit ball."""

    n_features_in, n_components = D, 2

    def apply(self, X):
        return np.full((X.shape[0], 2), 40.0, dtype=np.float32)


def test_norms_do_not_rest_on_the_map():
    features = clipped_features(table(), 1.0, TooLong(), memory=0)
    assert np.linalg.norm(formed(normalised_feature_rows(features, 0.5)), axis=1).max() <= 1
    assert np.linalg.norm(formed(FeatureRows(features)), axis=1).min() > 50


def moved_rows(memory=0):
    """Rows that change when one record is replaced."""
    X, other = table(), table()
    other[7] = -1e6
    tables = [clipped_features(t, 2.0, drawn(), memory=memory) for t in (X, other)]
    a, b = (formed(normalised_feature_rows(features, 0.5)) for features in tables)
    return np.flatnonzero((a != b).any(axis=1)).tolist()


def test_other_records_do_not_move_a_row():
    """To the last bit."""
    assert moved_rows() == moved_rows(10**9) == [7]


def test_kept_features_are_those_that_would_be_made():
    """As many as fit, which depends on shapes only."""
    psi = drawn()
    for memory in (0, 4 * K * 10, 4 * K * 700, 4 * K * N, 10**9):
        features = clipped_features(table(), 2.0, psi, memory=memory)
        assert features.kept.nbytes <= memory
        other = clipped_features(-table(3), 2.0, psi, memory=memory)
        assert features.kept.shape == other.kept.shape
    assert len(features.kept) == N
    bare = replace(features, kept=features.kept[:0])
    step = FeatureRows(features).block_rows
    for lo in range(0, N, step):
        rows = slice(lo, min(lo + step, N))
        np.testing.assert_array_equal(features[rows], bare[rows])


@pytest.mark.parametrize("kind", ["bool", "int8", "float16", "float32"])
def test_rows_of_any_type_are_scaled_in_float64(kind):
    X = (8.0 * table()[:20]).astype(kind)
    features, wide = (
        clipped_features(A, 2.0, drawn(), memory=0)[0:20] for A in (X, X.astype(np.float64))
    )
    np.testing.assert_array_equal(features, wide)
