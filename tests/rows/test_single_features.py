"""Features made and read in float32: ``docs/proofs/certificate.md``, section 10."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dp_halfspace import PrivateKernelClassifier, PrivateTableClassifier
from dp_halfspace.algorithms.engine import defaults
from dp_halfspace.algorithms.engine import preconditioner as preconditioner_module
from dp_halfspace.algorithms.engine.defaults import halved_steps
from dp_halfspace.algorithms.engine.preconditioner import Preconditioner
from dp_halfspace.audit import replay
from dp_halfspace.data.chunks import LocalChunks
from dp_halfspace.estimators import kernel
from dp_halfspace.projection import draw_additive
from dp_halfspace.rows import single_rows as module
from dp_halfspace.rows.blocks import LONGEST
from dp_halfspace.rows.chunked_rows import ChunkedRows, chunked_rows
from dp_halfspace.rows.mapped_rows import clipped_features, normalised_feature_rows
from dp_halfspace.rows.single_rows import GRAM_GROUP, single_feature_rows

# Largest entries in estimated column scales, all of one sign, nothing, and what lies between.
D = 6
SINGLE = 2.0**-24


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    X = np.clip(2.0 * rng.standard_normal((n, D)), -4.0, 4.0)
    X[::7], X[1::7], X[2::7, 1:] = 4.0, 0.0, 0.0
    return X.astype(np.float32)


def map_of(n_fourier=60, seed=0):
    return draw_additive(D, 3, n_fourier, np.random.default_rng(seed))


def rows_of(X, bias=0.3, n_fourier=60):
    return module.single_feature_rows(X, D**0.5, map_of(n_fourier), bias)


def logical(rows):
    """The rows in extended precision: exact products of floats of 24 bits."""
    found = []
    for _, Z, scale, _ in rows._blocks():
        found.append(Z.astype(np.longdouble) * scale.astype(np.longdouble)[:, None])
    return np.concatenate(found)


def thin_map(size, rank, stretch=9.0):
    rng = np.random.default_rng(rank)
    directions = np.linalg.qr(rng.standard_normal((size, max(rank, 1))))[0][:, :rank]
    return Preconditioner(stretch, directions, np.geomspace(0.9, stretch, rank))


def images(rows, transform):
    """Images under the map that its floats define, in extended precision."""
    V = transform.directions.astype(np.longdouble)
    missing = (rows @ V) * (np.longdouble(transform.stretch) - transform.factors)
    return rows * np.longdouble(transform.stretch) - missing @ V.T


@pytest.mark.parametrize("bias", [None, 0.3])
@pytest.mark.parametrize("n_fourier", [0, 60])
def test_rows_are_those_of_float64_and_have_norm_one_at_most(bias, n_fourier):
    X = table(900)
    rows = rows_of(X, bias, n_fourier)
    Z = logical(rows)
    norms = np.sqrt((Z**2).sum(axis=1))
    assert norms.max() <= 1
    assert norms[np.abs(X).sum(axis=1) > 0].min() >= 1 - 2.0**-15
    features = clipped_features(X, D**0.5, map_of(n_fourier), memory=0, longest=LONGEST)
    other = normalised_feature_rows(features, bias)
    w = np.random.default_rng(1).standard_normal(rows.shape[1])
    found = rows.fused_adjoint(w, lambda m, lo, hi: np.tanh(m))
    expected = other.fused_adjoint(w, lambda m, lo, hi: np.tanh(m))
    np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max())
    moment = np.triu(other.gram())
    np.testing.assert_allclose(rows.gram(), moment, atol=3e-5 * np.trace(moment))


@pytest.mark.parametrize("rank", [0, 1, 20])
def test_images_have_norm_one_at_most(rank):
    rows = rows_of(table(900))
    transform = thin_map(rows.shape[1], rank)
    flat = rows.normalise_images(transform, row_bound=4.0, condition=transform.condition)
    norms = np.sqrt((images(logical(flat), transform) ** 2).sum(axis=1))
    assert norms.max() <= 1
    assert norms.min() >= 0.98


def test_a_map_gets_upper_bounds_on_the_squares_of_rows():
    """A map subtracts from these bounds, so sums that are rounded down would be too small."""
    handed = []

    class Recorder:
        @staticmethod
        def single_squares():
            def keep(rows, squares):
                handed.append((rows.copy(), squares.copy()))
                return squares

            return keep

    rows_of(table(900)).normalise_images(Recorder(), row_bound=4.0, condition=2.0)
    assert sum(len(rows) for rows, _ in handed) == 900
    for rows, squares in handed:
        assert (squares >= (rows.astype(np.longdouble) ** 2).sum(axis=1)).all()


def test_planted_allowance_of_float64_is_caught_in_lengths(monkeypatch):
    """Nearly all of the length of these rows is removed again: nothing but roundings is left."""
    rng = np.random.default_rng(0)
    size = 700
    direction = np.linalg.qr(rng.standard_normal((size, 1)))[0]
    transform = Preconditioner(100.0, direction, np.array([0.9]))
    rows = (direction[:, 0] * (1 + rng.random((400, 1)))).astype(np.float32)
    exact = (images(rows.astype(np.longdouble), transform) ** 2).sum(axis=1)
    squares = (rows.astype(np.float64) ** 2).sum(axis=1).astype(np.float32)
    squares = np.nextafter(squares, np.float32(np.inf))
    assert (transform.single_squares()(rows, squares) >= exact).all()
    monkeypatch.setattr(preconditioner_module, "SINGLE_EPS", 2.0**-53)
    assert (transform.single_squares()(rows, squares) < exact).any()


def group_error(rows):
    Z = logical(rows)
    difference = rows.gram() - np.triu(Z.T @ Z)
    full = np.triu(difference) + np.triu(difference, 1).T
    return float(np.linalg.norm(full.astype(float)))


def test_second_moment_of_a_group_is_within_its_allowance():
    allowed = 1.02 * SINGLE * (GRAM_GROUP + 8) * GRAM_GROUP
    error = group_error(rows_of(np.full((GRAM_GROUP, D), 0.7, dtype=np.float32)))
    assert error <= allowed
    # Planted: the allowance of float64.
    assert error > allowed * 2.0**-29


def test_many_blocks_of_features_are_added_by_the_rule_of_kahan(monkeypatch):
    """Blocks of features are what is counted: they are smaller than those of the columns."""
    kahan = []
    honest = module.add_part
    monkeypatch.setattr(module, "_FEATURE_ENTRIES", 1)
    monkeypatch.setattr(module, "PLAIN_BLOCKS", 3)
    monkeypatch.setattr(module, "add_part", lambda *a: kahan.append(a[2] is not None) or honest(*a))
    for n_rows in (700, 1100):
        rows = rows_of(table(n_rows))
        rows.gram()
        rows.fused_adjoint(np.zeros(rows.shape[1]), lambda m, lo, hi: m)
    assert kahan == [False] * 6 + [True] * 10


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_record_changes_one_group_only(n_outputs):
    """Sums over the other groups keep every bit, whatever takes the place of a record."""
    X, w = table(1200), np.random.default_rng(0).standard_normal((D, 1))
    size = rows_of(X).shape[1]
    w = np.random.default_rng(0).standard_normal((size, n_outputs) if n_outputs > 1 else size)
    seen = []
    for entry in (None, 4.0, 0.0, -4.0, 2.0**-140):
        other = X.copy()
        if entry is not None:
            other[300] = entry
        transform = thin_map(size, 5)
        rows = rows_of(other).normalise_images(transform, row_bound=4.0, condition=8.0)
        pulls, groups = [], []
        rows.fused_adjoint(w, lambda m, lo, hi, kept=pulls: kept.append(m.copy()) or m)
        for _, Z, _, _ in rows._blocks():
            whole = Z[: len(Z) - len(Z) % rows.group].reshape(-1, rows.group, size)
            groups += [group.sum(axis=0).tobytes() for group in whole]
        margins = np.concatenate(pulls)
        seen.append((np.delete(margins, 300, axis=0).tobytes(), groups))
    for margins, groups in seen[1:]:
        assert margins == seen[0][0]
        changed = [
            i for i, pair in enumerate(zip(groups, seen[0][1], strict=True)) if len(set(pair)) > 1
        ]
        assert changed == [300 // rows.group]


@pytest.mark.parametrize("n_kept", [0, 1, 2, 9])
def test_features_that_are_kept_are_those_that_are_made(n_kept, monkeypatch):
    """Bit for bit, at every pass, whatever was done with a block before."""
    monkeypatch.setattr(module, "_FEATURE_ENTRIES", 1)
    X, size = table(1100), rows_of(table(4)).shape[1]
    memory = n_kept * 4 * size * module.feature_block_size(len(X), size)
    made = rows_of(X)
    kept = module.single_feature_rows(X, D**0.5, map_of(), 0.3, memory=memory + 3)
    transform, w = thin_map(size, 5), np.random.default_rng(0).standard_normal(size)
    flat = [each.normalise_images(transform, row_bound=4.0, condition=8.0) for each in (made, kept)]
    for _ in range(2):
        np.testing.assert_array_equal(kept.gram(), made.gram())
        np.testing.assert_array_equal(kept.take_groups(2).gram(), made.take_groups(2).gram())
        sums = [each.fused_adjoint(w, lambda m, lo, hi: np.tanh(m)) for each in flat]
        np.testing.assert_array_equal(*sums)
    # A copy behind a map reads the same blocks; a sample has other rows.
    assert flat[1]._kept is kept._kept
    assert len(kept._kept) == min(n_kept, -(-len(X) // kept.block_rows))
    assert not kept.take_groups(2)._kept
    assert not made._kept


def test_how_many_features_are_kept_is_decided_by_public_sizes(monkeypatch):
    """Features of zeros, and of records of any size, are as many."""
    monkeypatch.setattr(module, "_FEATURE_ENTRIES", 1)
    found = []
    for X in (table(1100), 0 * table(1100), np.full((1100, D), -4.0, dtype=np.float32)):
        rows = module.single_feature_rows(X, D**0.5, map_of(), 0.3, memory=2**18)
        rows.gram()
        found.append(sorted(rows._kept))
    assert found[0] == found[1] == found[2]
    assert 0 < len(found[0]) < 5


def private(**more):
    # Nothing is kept, so features are made again at every pass.
    return PrivateKernelClassifier(classes=[0, 1], cache_size=0, **more)


def problem(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) * [1.0, 30.0, 1e-3]
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def neighbour(X, y, number):
    other, labels = X.copy(), y.copy()
    other[5] = (-X[5], 0 * X[5], 1e300 + 0 * X[5], X[5])[number]
    labels[5] = number % 2
    return other, labels


@pytest.mark.parametrize("size", [512, 100, 768])
def test_halves_add_up_to_the_whole_in_memory_and_in_chunks(size, monkeypatch):
    """Whatever the sizes of the chunks, each half has about half of the rows."""
    monkeypatch.setattr(module, "_FEATURE_ENTRIES", 1)
    X, w = table(2560), np.random.default_rng(0).standard_normal(rows_of(table(4)).shape[1])
    parts = [X[lo : lo + size] for lo in range(0, len(X), size)]
    chunks = replace(LocalChunks.of(parts), counts=tuple(map(len, parts)), n_columns=D)
    given = (D**0.5, map_of(), 0.3)
    found = []
    for rows in (rows_of(X), chunked_rows(module.single_feature_rows, chunks, *given)):
        labels = LocalChunks.of([np.zeros(len(part), int) for part in parts])
        codes = labels if isinstance(rows, ChunkedRows) else np.zeros(len(X), int)
        slopes = rows.apply_to_classes(counted_slopes, codes, np.ones(1))
        found.append([rows.fused_adjoint(w, slopes, part) for part in ((0, 1), (0, 2), (1, 2))])
    for whole, first, second in found:
        np.testing.assert_allclose(first + second, whole, atol=1e-4 * np.abs(whole).max())
        # The last entry is the sum of slopes of one times the constant column.
        assert 0.35 < first[-1] / whole[-1] < 0.65
    if size % rows_of(X).block_rows == 0:
        np.testing.assert_allclose(*(each[1] for each in found), rtol=1e-5, atol=1e-5)


def counted_slopes(class_indices, weights):
    return lambda margins, lo, hi: np.ones_like(margins)


def test_which_half_of_the_rows_a_step_reads_is_decided_by_their_numbers(monkeypatch):
    """The sums of the other half keep every bit, whatever takes the place of a record."""
    monkeypatch.setattr(module, "_FEATURE_ENTRIES", 1)
    X = table(1100)
    w = np.random.default_rng(0).standard_normal(rows_of(X).shape[1])
    sums = []
    for entry in (None, 4.0, 0.0, -4.0):
        other = X.copy()
        if entry is not None:
            other[300] = entry
        halves = [
            rows_of(other).fused_adjoint(w, lambda m, lo, hi: np.tanh(m), (first, 2))
            for first in (0, 1)
        ]
        sums.append([half.tobytes() for half in halves])
    assert len({first for first, _ in sums}) == 1
    assert len({second for _, second in sums}) == 4


def test_only_large_tables_with_little_noise_have_halved_steps():
    assert halved_steps(2**21, 0.13, 20) == 11
    assert halved_steps(2**19, 10.0, 20) == 11
    assert halved_steps(2**19 - 1, math.inf, 20) == 0
    assert halved_steps(2**21, 0.01, 20) == 0


def halve_small_tables(monkeypatch):
    monkeypatch.setattr(defaults, "_HALVED_ROWS", 2000)
    monkeypatch.setattr(defaults, "_HALVED_SIGNAL", 0.0)
    monkeypatch.setattr(module, "_FEATURE_ENTRIES", 1)


@pytest.mark.filterwarnings("ignore::dp_halfspace.exceptions.PrivacyWarning")
def test_halved_steps_find_the_same_model_where_there_is_little_noise(monkeypatch):
    X, y = problem(6000)
    scores, read = [], []
    honest = module.SingleFeatureRows.fused_adjoint

    def fused_adjoint(self, w, coefficients, part=(0, 1)):
        read.append(part)
        return honest(self, w, coefficients, part)

    monkeypatch.setattr(module.SingleFeatureRows, "fused_adjoint", fused_adjoint)
    for _ in range(2):
        model = private(epsilon=1e4, random_state=0).fit(X, y)
        scores.append(model.decision_function(X))
        halve_small_tables(monkeypatch)
    assert np.corrcoef(scores)[0, 1] > 0.99
    steps = len(read) // 2
    assert read[: steps + 1] == (steps + 1) * [(0, 1)]
    assert read[steps + 1 : steps + 4] == [(1, 2), (0, 2), (1, 2)]
    assert read[-(steps // 2) + 1 :] == (steps // 2 - 1) * [(0, 1)]


@pytest.mark.parametrize("number", range(4))
def test_a_replay_of_halved_steps_finds_nothing(number, monkeypatch):
    halve_small_tables(monkeypatch)
    X, y = problem(2600)
    model = private(epsilon=20.0)
    result = replay(model, X, y, *neighbour(X, y, number), n_histories=2, random_state=number)
    assert not result.findings
    ratios = [release.ratio for release in result.releases]
    # The record is in one half: the steps on the other one have the same value.
    assert sum(ratio == 0.0 for ratio in ratios) >= 2 * 9
    assert max(ratios) <= 1.0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("stride", [1, 3])
def test_a_replay_finds_nothing(stride, monkeypatch):
    if stride > 1:
        monkeypatch.setattr(preconditioner_module, "_FEWEST_ROWS", 800)
        monkeypatch.setattr(preconditioner_module, "_LEAST_NOISE", 1e9)
    X, y = problem(2600)
    assert dict(private(epsilon=20.0).plan(X, y).public)["precision"] == "float32"
    worst = 0.0
    for number in range(4):
        model = private(epsilon=20.0)
        given = (X, y, *neighbour(X, y, number))
        result = replay(model, *given, n_histories=2, random_state=number)
        assert not result.findings
        worst = max([worst, *(release.ratio for release in result.releases)])
    assert 0.8 < worst <= 1


def test_planted_rows_that_are_too_long_are_seen(monkeypatch):
    honest = module.factors_of
    monkeypatch.setattr(module, "factors_of", lambda bounds: 1.1 * honest(bounds))
    X, y = problem(2600)
    given = (X, y, *neighbour(X, y, 0))
    assert replay(private(epsilon=20.0), *given, n_histories=2, random_state=0).findings


def test_which_rows_a_moment_reads_is_decided_by_their_numbers():
    X = np.arange(4 * GRAM_GROUP + 10)[:, None]
    found = module.sample_groups(X, 3)[:, 0]
    expected = [*range(GRAM_GROUP), *range(3 * GRAM_GROUP, 4 * GRAM_GROUP)]
    assert found.tolist() == expected


def test_a_moment_of_chunks_reads_the_same_groups():
    X, size = table(4 * GRAM_GROUP), 2 * GRAM_GROUP
    parts = LocalChunks.of([X[:size], X[size:]])
    parts = replace(parts, counts=(size, size), n_columns=X.shape[1])
    how = (single_feature_rows, 2.0, map_of(), 0.3)
    chunked = chunked_rows(how[0], parts, *how[1:]).take_groups(2)
    expected = how[0](X, *how[1:]).take_groups(2)
    assert chunked.shape == expected.shape
    np.testing.assert_allclose(chunked.gram(), expected.gram(), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::dp_halfspace.exceptions.PrivacyWarning")
def test_a_fit_is_that_of_float64_and_says_its_precision(monkeypatch):
    X, y = problem(4000)
    model = private(epsilon=5.0, random_state=0).fit(X, y)
    assert dict(model.privacy_.public)["precision"] == "float32"
    monkeypatch.setattr(kernel, "makes_single", lambda *given: False)
    other = private(epsilon=5.0, random_state=0).fit(X, y)
    assert "precision" not in dict(other.privacy_.public)
    # The noise of float32 is a little larger, and its features are rounded.
    scores = [each.decision_function(X) for each in (model, other)]
    assert np.corrcoef(scores)[0, 1] > 0.999
    assert np.mean((scores[0] > 0) == (scores[1] > 0)) > 0.99


@pytest.mark.filterwarnings("ignore::dp_halfspace.exceptions.PrivacyWarning")
def test_a_table_in_chunks_is_that_in_memory(monkeypatch):
    """Of categories a chunk keeps a list and places in it."""
    import pandas  # noqa: PLC0415

    monkeypatch.setattr(kernel, "_MEGABYTE", 0)
    X, y = problem(4000)
    frame = pandas.DataFrame(X, columns=list("abc")).assign(
        city=np.random.default_rng(1).choice(["Oslo", "Rome", "Bonn"], 4000)
    )
    frame["stage"] = np.where(y, "II", "I")
    frame.loc[::9, "stage"] = None
    parts = [frame[lo : lo + 900] for lo in range(0, 4000, 900)]
    chunks = LocalChunks.read_by([lambda part=part: part for part in parts], frame[:2])
    schema = {"a": "number", "b": "number", "c": "number", "city": "text", "stage": ["I", "II"]}
    fits = [
        PrivateTableClassifier(
            epsilon=5.0, classes=[0, 1], schema=schema, random_state=0, probability=False
        ).fit(rows, y)
        for rows in (frame, chunks)
    ]
    assert [dict(model.privacy_.public)["precision"] for model in fits] == 2 * ["float32"]
    scores = [model.decision_function(frame) for model in fits]
    np.testing.assert_allclose(*scores, atol=1e-3 * np.abs(scores[0]).max())


@pytest.mark.filterwarnings("ignore::dp_halfspace.exceptions.PrivacyWarning")
def test_columns_in_stated_ranges_are_fitted_to_the_features_that_predictions_use(monkeypatch):
    import pandas  # noqa: PLC0415

    rng = np.random.default_rng(0)
    X = rng.beta(0.3, 3.0, (4000, 30))  # crowded near an end, where polynomials are no cosines
    y = (X[:, :15].sum(axis=1) > X[:, 15:].sum(axis=1)).astype(int)
    frame = pandas.DataFrame(X).rename(columns="x{}".format)
    schema = {name: [0.0, 1.0] for name in frame}
    scores, precisions = [], []
    for in_single in (True, False):
        if not in_single:
            monkeypatch.setattr(kernel, "makes_single", lambda *_: False)
        model = PrivateTableClassifier(epsilon=0.8, classes=[0, 1], schema=schema, random_state=0)
        model.fit(frame, y)
        assert model.model_.feature_map_.has_powers
        scores.append(model.decision_function(frame))
        precisions.append(dict(model.privacy_.public).get("precision"))
    assert precisions == ["float32", None]
    np.testing.assert_allclose(*scores, atol=0.02 * np.abs(scores[1]).max())


@pytest.mark.parametrize(("size", "rank"), [(300, 4), (1000, 64)])
def test_lengths_of_images_have_the_allowance_of_the_lemma(size, rank):
    """``preconditioner.md``, section 5: seen on rows that no direction touches."""
    directions, factors = np.eye(size)[:, :rank], np.full(rank, 0.4)
    bounded = Preconditioner(1.5, directions, factors).single_squares()
    rows = np.eye(size, dtype=np.float32)[rank : rank + 3]
    theta = 2.1 * (size + 2) * np.sqrt(rank) + 1.1 * rank + 8.0
    found = bounded(rows, np.ones(3, dtype=np.float32)).astype(float)
    assert (found >= 1.5**2 * (1.0 + (theta - 2.0) * SINGLE)).all()


def test_lengths_of_features_have_an_allowance_for_their_sums():
    """``certificate.md``, sections 9 and 10: a sum of squares is off by so many roundings."""
    rows = rows_of(table(5))
    size = rows.shape[1]
    squares = rows._squares(np.eye(4, size, dtype=np.float32)).astype(float)
    assert (squares >= (1.0 + (size + 10) * SINGLE) ** 2).all()
