"""Rows in chunks: the same fit and errors wherever they are, one charge, noise at home."""

from __future__ import annotations

import importlib.util
import math
import os
import pickle
import signal
import warnings
from functools import partial
from itertools import pairwise
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline

import dp_halfspace
from dp_halfspace import (
    AdaptiveMarginClassifier,
    ObjectivePerturbationClassifier,
    OutputPerturbationClassifier,
    PrivateAUCClassifier,
    PrivateConformalClassifier,
    PrivateKernelClassifier,
    PrivateTableClassifier,
    PrivateThresholdClassifier,
)
from dp_halfspace._memory import OutOfMemory
from dp_halfspace.data import chunked_data
from dp_halfspace.data.chunked_data import (
    _check_unchanged,
    _checksum,
    _to_floats,
    check_chunks,
    checked_chunks,
)
from dp_halfspace.data.chunks import LocalChunks, _compute_parts
from dp_halfspace.data.encoding import CodedRows
from dp_halfspace.datasets import in_chunks, read_parquet
from dp_halfspace.exceptions import PrivacyWarning
from dp_halfspace.ledger.ledger import PrivacyLedger
from dp_halfspace.metrics import METRICS, private_score
from dp_halfspace.optim.certificate import gradient_error
from dp_halfspace.preprocessing import PrivateScaler
from dp_halfspace.privacy.events import Pure
from dp_halfspace.privacy.randomness import OperatingSystemBytes, SeededBytes
from dp_halfspace.rows.chunked_rows import rows_over
from dp_halfspace.rows.rows import normalised_rows
from tests.instances import ESTIMATORS
from tests.permits import permit_for
from tests.releases import observe_releases
from tests.support import Book

RNG = np.random.default_rng(20)
N = 3001
X = RNG.standard_normal((N, 5)) * [1, 10, 100, 1e-3, 1] + [0, 0, 5000, 0, 0]
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 3)
TWO = (Y > 0).astype(int)
WITH_MISSING = np.where(RNG.random(X.shape) < 0.01, np.nan, X)
PUBLIC = {"classes": [0, 1, 2], "random_state": 0}
FEW = {"n_components": 60}
TAKE_CHUNKS = {
    "PrivateAUCClassifier",
    "AdaptiveMarginClassifier",
    "PrivateKernelClassifier",
    "PrivateTableClassifier",
    "OutputPerturbationClassifier",
}
ALL_METRICS = ["log_loss", "roc_auc", "balanced_accuracy"]
MODELS_OF_ALL = [*ESTIMATORS, "PrivateTableClassifier"]
quiet = pytest.mark.filterwarnings("ignore::dp_halfspace.exceptions.PrivacyWarning")


@pytest.fixture(autouse=True)
def _no_threads():
    """Let dask compute where it is asked: no test is about its threads."""
    if importlib.util.find_spec("dask") is None:
        yield
        return
    with importlib.import_module("dask").config.set(scheduler="sync"):
        yield


def local(count):
    size = -(-N // count)
    return lambda a: in_chunks(a, size)


def of_dask(count):
    da, size = pytest.importorskip("dask.array"), -(-N // count)
    return lambda a: da.from_array(a, chunks=(size, 3) if a.ndim == 2 else size)


MODELS = {
    "units": (lambda: AdaptiveMarginClassifier(**PUBLIC), WITH_MISSING),
    "stated": (lambda: AdaptiveMarginClassifier(data_norm=6000, **PUBLIC), X),
    "margin": (lambda: AdaptiveMarginClassifier(margin=0.1, data_norm=6000, **PUBLIC), X),
    "curves": (lambda: PrivateKernelClassifier(**PUBLIC), WITH_MISSING),
    "rbf": (lambda: PrivateKernelClassifier(kernel="rbf", **FEW, **PUBLIC), WITH_MISSING),
    "remade": (
        lambda: PrivateKernelClassifier(kernel="rbf", n_components=60, cache_size=0, **PUBLIC),
        WITH_MISSING,
    ),
    "ranking": (lambda: PrivateAUCClassifier(classes=[0, 1], random_state=0), WITH_MISSING),
    "minimum": (lambda: OutputPerturbationClassifier(preconditioner=False, **PUBLIC), WITH_MISSING),
    "scaler": (lambda: PrivateScaler(random_state=0), WITH_MISSING),
    "pure scaler": (lambda: PrivateScaler(delta=0, random_state=0), WITH_MISSING),
}


MINIMISERS = {
    "two classes": ({"classes": [0, 1]}, TWO),
    "softmax": ({}, Y),
    "one against the rest": ({"loss": "huber_hinge"}, Y),
    "squared": ({"classes": [0, 1], "loss": "squared"}, TWO),
    "adversary": ({"classes": [0, 1], "adversary_radius": 100.0}, TWO),
}


@quiet
@pytest.mark.parametrize("name", MINIMISERS)
def test_minimisers_are_certified_in_chunks(name):
    """Nearer to each other than twice the distance that the budget covers, whatever the chunks."""
    options, labels = MINIMISERS[name]
    how = {**PUBLIC, "epsilon": math.inf, "data_norm": 6000, "preconditioner": False, **options}
    model = OutputPerturbationClassifier(**how).fit(X, labels)
    plan = model._fit_plan(model._validate(X, labels, None)).plan
    apart = 2.0 * plan.tolerance.certified / plan.risk.total(plan.ridge)
    want = np.c_[model.coef_, model.intercept_]
    cut = of_dask(2) if name == "softmax" else local(7)
    found = OutputPerturbationClassifier(**how).fit(cut(X), cut(labels))
    moved = np.linalg.norm(np.c_[found.coef_, found.intercept_] - want, axis=1).max()
    assert moved <= apart
    assert found.privacy_ == model.privacy_


@quiet
def test_the_default_minimiser_of_rows_in_chunks_has_no_preconditioner():
    """As published, on clipped rows; the record says which of the two it is."""
    rows, labels = local(3)(X), local(3)(Y)
    model = OutputPerturbationClassifier(**PUBLIC).fit(rows, labels)
    plain = OutputPerturbationClassifier(preconditioner=False, **PUBLIC).fit(rows, labels)
    assert model.preconditioner_ is None
    assert model.privacy_ == plain.privacy_
    np.testing.assert_array_equal(model.coef_, plain.coef_)


def cut_at(array, *ends):
    """Chunks that end at these rows; two equal ends are a chunk without rows."""
    parts = np.split(array, ends)
    return LocalChunks.read_by([partial(np.copy, part) for part in parts], array[:2])


@pytest.mark.sampled(5)
@quiet
@pytest.mark.parametrize("name", [*MODELS, "table"])
def test_a_chunk_without_rows_changes_nothing(name):
    """At the beginning, between others and at the end."""
    schema = {str(j): "number" for j in range(5)}
    made = {
        **MODELS,
        "table": (lambda: PrivateTableClassifier(schema=schema, **PUBLIC), WITH_MISSING),
    }[name]
    model, rows = made[0](), made[1]
    labels = Y if len(getattr(model, "classes", [])) == 3 else TWO
    found = []
    for ends in ((1000,), (0, 0, 1000, 1000, N)):
        fitted = model.fit(cut_at(rows, *ends), cut_at(labels, *ends))
        found.append(image(fitted, cut_at(rows, *ends)))
        assert len(found[-1]) == N
    np.testing.assert_allclose(*found, rtol=1e-9)


@quiet
def test_scores_thresholds_and_sets_take_chunks_without_rows():
    schema = {str(j): "number" for j in range(5)}
    model = PrivateTableClassifier(schema=schema, classes=[0, 1], epsilon=3).fit(WITH_MISSING, TWO)
    found = []
    for ends in ((1000,), (0, 0, 1000, 1000, N)):
        held = cut_at(WITH_MISSING, *ends), cut_at(TWO, *ends)
        scores = private_score(model, *held, metric=[*METRICS], epsilon=math.inf)
        threshold = PrivateThresholdClassifier(model, epsilon=math.inf).fit(*held)
        sets = PrivateConformalClassifier(model, epsilon=math.inf).fit(*held)
        numbers = [np.ravel(score.value) for score in scores]
        found.append([*numbers, [threshold.threshold_], [sets.threshold_]])
    for few, many in zip(*found, strict=True):
        np.testing.assert_allclose(few, many, rtol=1e-9)


def image(model, rows):
    return getattr(model, "decision_function" if hasattr(model, "predict") else "transform")(rows)


@pytest.mark.sampled(2)
@quiet
@pytest.mark.parametrize("name", MODELS)
def test_chunks_change_nothing_but_roundings(name):
    make, data = MODELS[name]
    labels = TWO if name == "ranking" else Y
    whole = make().fit(data, labels)
    more = (local(1), local(7)) if name in {"units", "scaler"} else ()
    # Features, and rows in estimated column scales, are summed in float32.
    in_single = {"units", "ranking", "curves", "rbf", "remade"}
    apart, slow = 1e-5 if name in in_single else 1e-9, name in {"margin", "remade"}
    for cut in (local(2), *more) if slow else (local(2), of_dask(7), *more):
        model, rows = make().fit(cut(data), cut(labels)), cut(data)
        np.testing.assert_allclose(image(model, rows), image(whole, data), rtol=0, atol=apart)
        assert model.privacy_ == whole.privacy_
    assert make().plan(rows, cut(labels)) == whole.privacy_


@pytest.mark.sampled(1)
@quiet
@pytest.mark.parametrize("delta", ["auto", 0.0])
def test_scores_are_those_of_the_whole_table(delta):
    model = make_pipeline(AdaptiveMarginClassifier(data_norm=6000, classes=[0, 1])).fit(X, TWO)
    probable = AdaptiveMarginClassifier(classes=[0, 1]).fit(X, TWO)
    table = dp_halfspace.PrivateTableClassifier(classes=[0, 1]).fit(X, TWO)
    for metrics, fitted in (
        (["accuracy", "confusion_matrix", "roc_auc"], model),
        (["roc_auc"], probable),
        (ALL_METRICS, table),
    ):
        how = {"metric": metrics, "random_state": 0, "epsilon": 4.0, "delta": delta}
        want = private_score(fitted, X, TWO, **how)
        for cut in (local(1), local(7), of_dask(2)):
            for found, one in zip(
                private_score(fitted, cut(X), cut(TWO), **how), want, strict=True
            ):
                np.testing.assert_array_equal(found.value, one.value)
                assert (found.privacy_, found.metric) == (one.privacy_, one.metric)
    with pytest.raises(ValueError, match="expecting 5 features"):
        private_score(model, local(2)(X[:, :3]), local(2)(TWO))
    with pytest.raises(ValueError, match="groups is not supported"):
        private_score(model, local(2)(X), local(2)(TWO), groups=TWO)


TABLES = {
    "auto": {"schema": {"b": [0, 10]}},
    "no counts": {"probability": False, "features": "linear"},
    "additive": {"features": "additive"},
}


def table_of(n):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(WITH_MISSING[:n], columns=list("abcde")).assign(
        kind=np.where(Y[:n] > 1, "x", "z"),
        day=np.datetime64("2020-01-01") + np.arange(n).astype("m8[D]"),
        flag=Y[:n] > 0,
        whole=np.arange(n) % 7,
    )


@pytest.mark.sampled(1)
@quiet
@pytest.mark.parametrize("name", TABLES)
def test_tables_in_chunks_are_encoded_where_they_are(name, tmp_path, monkeypatch):
    if name != "auto":
        monkeypatch.setattr("dp_halfspace.estimators.table.KEPT_FEATURES", 0)
    table, how = table_of(N), {**PUBLIC, **TABLES[name]}
    want = dp_halfspace.PrivateTableClassifier(**how).fit(table, Y)
    sizes = [0, 0, 1500, 1501, N] if name == "auto" else [0, 2000, N]
    parts = [table[lo:hi] for lo, hi in pairwise(sizes)]
    cuts = [(LocalChunks.read_by([part.copy for part in parts], table[:2]), Y)]
    if name == "auto":
        dd = pytest.importorskip("dask.dataframe")
        pytest.importorskip("pyarrow")
        both = dd.from_pandas(table.assign(y=Y), npartitions=3)
        cuts.append((both.drop(columns="y"), both["y"]))
        shuffled = table.assign(y=Y).set_axis(np.random.default_rng(0).permutation(N))
        shuffled.to_parquet(tmp_path / "table.parquet", row_group_size=800)
        cuts.append(read_parquet(tmp_path, label="y"))
        with pytest.raises(ValueError, match="no column 'z'"):
            read_parquet(tmp_path, label="z")
    for rows, labels in cuts:
        model = dp_halfspace.PrivateTableClassifier(**how).fit(rows, labels)
        assert model.privacy_ == want.privacy_
        assert model.encoding_ == want.encoding_
        found = model.decision_function(table[:200])
        # Sums of groups of rows are in float32, and chunks divide rows into other groups.
        np.testing.assert_allclose(found, want.decision_function(table[:200]), rtol=0, atol=1e-5)
        np.testing.assert_array_equal(
            np.asarray(model.predict(rows))[:200], want.predict(table[:200])
        )
    with pytest.raises(ValueError, match="rows in chunks are not supported"):
        dp_halfspace.PrivateTableClassifier(**{**how, "delta": 0.0}).fit(*cuts[0])


def test_a_table_of_categories_alone_is_read_in_chunks():
    X = np.random.default_rng(0).choice(["u", "v"], size=(3000, 2)).astype(object)
    y, schema = X[:, 0] == "u", {"0": ["u", "v"], "1": ["u", "v"]}
    model = dp_halfspace.PrivateTableClassifier(epsilon=3.0, schema=schema, classes=[False, True])
    assert model.fit(in_chunks(X, 1000), y).score(X, y) > 0.95


@quiet
def test_dask_predicts_lazily_and_keeps_names():
    da, pd = pytest.importorskip("dask.array"), pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X, columns=list("abcde")).assign(y=Y)
    table = dd.from_pandas(frame, npartitions=3)
    model = AdaptiveMarginClassifier(**PUBLIC).fit(table[list("abcde")], table["y"])
    assert model.feature_names_in_.tolist() == list("abcde")
    found = model.predict(table[list("abcde")])
    assert isinstance(found, da.Array)
    np.testing.assert_array_equal(found.compute(), model.predict(frame[list("abcde")]))
    mixed = frame.assign(kind=np.where(Y > 1, "x", "z"))
    whole = dp_halfspace.PrivateTableClassifier(**PUBLIC).fit(mixed.drop(columns="y"), Y)
    parts = dd.from_pandas(mixed.drop(columns="y"), npartitions=3)
    found, want = whole.predict_proba(parts), whole.predict_proba(mixed.drop(columns="y"))
    assert isinstance(found, da.Array)
    np.testing.assert_allclose(found.compute(), want, rtol=1e-12)
    nameless = AdaptiveMarginClassifier(**PUBLIC).fit(X, Y)
    assert nameless.predict(of_dask(3)(X)).chunks == ((1001, 1001, 999),)


def broken(column, value):
    data = X.copy()
    data[2000, column] = value
    return data


LABELS = Y.astype(float)
LABELS[2500] = np.nan
ERRORS = {
    "missing": (broken(3, np.nan), Y, "NaN or infinity in column 3"),
    "infinity": (broken(1, np.inf), Y, "NaN or infinity in column 1"),
    "complex": (X.astype(complex), Y, "Complex data not supported"),
    "dates": (np.full(X.shape, "2020-01-01", dtype="M8[D]"), Y, "dates or durations"),
    "label": (X, np.where(np.arange(N) == 2000, 7, Y), "not among the public labels"),
    "no label": (X, LABELS, "y contains NaN"),
    "none": (X[:0], Y[:0], "0 sample"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_arrays(name):
    data, labels, message = ERRORS[name]
    model = AdaptiveMarginClassifier(data_norm=1.0, classes=[0, 1, 2])
    texts = []
    for cut in (lambda a: a, lambda a: in_chunks(a, 400) if len(a) else whole_chunk(a), of_dask(7)):
        with pytest.raises(ValueError, match=message) as caught:
            model.fit(cut(data), cut(labels))
        texts.append(str(caught.value))
    if name != "none":  # there the number of columns is in the text
        assert len(set(texts)) == 1
    assert not hasattr(model, "classes_")


def whole_chunk(a):
    return LocalChunks.read_by([lambda: a], np.ones((2, *a.shape[1:])))


def test_a_data_frame_is_not_cut_into_chunks():
    for table in (pd.DataFrame(X), X.tolist(), sparse.csr_array(X), np.float64(3.0)):
        with pytest.raises(ValueError, match=r"array must be an ndarray .*read_parquet"):
            in_chunks(table)
    with pytest.raises(ValueError, match=r"give to_numpy\(\) of .* a column of labels"):
        in_chunks(pd.Series(["no", "yes"] * 10, dtype="string"), 5)
    for n_rows in (0, 1.5, "9", True):
        with pytest.raises(ValueError, match="n_rows must be a positive integer"):
            in_chunks(X, n_rows)


def test_what_does_not_run_on_chunks_says_so():
    rows, labels, two = local(3)(X), local(3)(Y), local(3)(TWO)
    refused = [
        AdaptiveMarginClassifier(solver="objective_perturbation", classes=[0, 1, 2]),
        AdaptiveMarginClassifier(delta=0, classes=[0, 1, 2]),
        AdaptiveMarginClassifier(
            projection="hadamard", n_components=2, data_norm=1.0, classes=[0, 1, 2]
        ),
        OutputPerturbationClassifier(tilt=1.0, data_norm=1.0, classes=[0, 1, 2]),
        OutputPerturbationClassifier(preconditioner=True, alpha=0.1, classes=[0, 1]),
        PrivateAUCClassifier(mechanism="output", data_norm=1.0, classes=[0, 1]),
        PrivateAUCClassifier(delta=0, classes=[0, 1]),
        ObjectivePerturbationClassifier(rows="clipped", classes=[0, 1]),
    ]
    for model in refused:
        with pytest.raises(ValueError, match="rows in chunks are not supported"):
            model.fit(rows, two if len(model.classes) == 2 else labels)
    others = [m for m in MODELS_OF_ALL if m not in TAKE_CHUNKS]
    for name in others:
        with pytest.raises(ValueError, match="in chunks"):
            getattr(dp_halfspace, name)(classes=[0, 1]).fit(rows, two)
    model = AdaptiveMarginClassifier(classes=[0, 1, 2])
    for given, expected in (
        ((rows, local(4)(Y)), "same number of chunks"),
        ((rows, Y[1:]), "same number of chunks"),
        ((rows, LocalChunks.of([Y[:7], Y[7:14], Y[14:]])), "same number of chunks"),
        ((rows, np.append(Y, Y[0])), "same number of chunks"),
        ((X, labels), "y is in chunks"),
    ):
        with pytest.raises(ValueError, match=expected):
            model.fit(*given)
    with pytest.raises(ValueError, match="groups is not supported"):
        model.fit(rows, labels, groups=Y)
    with pytest.raises(ValueError, match="state the public label set"):
        AdaptiveMarginClassifier().fit(rows, labels)
    with pytest.raises(ValueError, match="state the public label set"):
        AdaptiveMarginClassifier().fit(rows, np.array(Y, dtype=np.float64))
    for given in (rows, X):
        with pytest.warns(PrivacyWarning, match="takes the label set from y") as caught:
            seen = AdaptiveMarginClassifier().fit(given, Y)
        assert {warning.filename for warning in caught} == {__file__}
    seen = AdaptiveMarginClassifier().fit(rows, Y)
    assert seen.classes_.tolist() == np.unique(Y).tolist()
    assert "seen" in dict(seen.privacy_.public)["classes_source"]
    huge = X.astype(object)
    huge[0, 0] = 10**400
    for other in (X[:, :2], huge):
        odd = LocalChunks.read_by([lambda: X, other.copy], X[:2])
        with pytest.raises(ValueError, match="columns of the others"):
            model.fit(odd, np.append(Y, Y))


def test_rows_in_another_order_are_noticed():
    """The factor of a row stays with its place: on another row it would bound nothing."""
    reads = []

    def shuffled():
        reads.append(1)
        return X[np.random.default_rng(len(reads)).permutation(N)]

    rows, model = (
        LocalChunks.read_by([shuffled], X[:2]),
        AdaptiveMarginClassifier(classes=[0, 1, 2]),
    )
    with pytest.raises(RuntimeError, match="changed between two passes"):
        model.fit(rows, Y)


def edited(reads, rows, value=1e6):
    """A chunk of which one row has another value from its second reading on."""
    reads.append(1)
    if len(reads) == 1:
        return rows
    other = rows.astype(object if isinstance(value, str) else float)
    other[2000, 0] = value
    return other


def imputed(block, **_):
    """Planted: what is missing is drawn anew at every pass."""
    return np.where(np.isnan(block), np.random.default_rng().normal(size=block.shape), block)


CHANGING = {
    "margin": lambda: AdaptiveMarginClassifier(data_norm=6000, classes=[0, 1]),
    "units": lambda: AdaptiveMarginClassifier(classes=[0, 1]),
    "minimum": lambda: OutputPerturbationClassifier(
        data_norm=6000, classes=[0, 1], preconditioner=False
    ),
    "scaler": PrivateScaler,
}


@quiet
@pytest.mark.parametrize("name", CHANGING)
def test_one_row_that_changes_between_passes_is_noticed(name):
    """Its factor is that of another row: it would move a query by a hundred sensitivities."""
    da = pytest.importorskip("dask.array")
    reads = []
    local_rows = LocalChunks.read_by([lambda: edited(reads, X)], X[:2])
    missing = X.copy()
    missing[2000, 0] = np.nan
    lazy = da.from_array(missing, chunks=(N, 5)).map_blocks(imputed, dtype=float)
    for rows in (local_rows, lazy):
        with pytest.raises(RuntimeError, match="chunk 0: this chunk changed between two"):
            CHANGING[name]().fit(rows, TWO)


def test_a_score_notices_a_row_that_changes():
    reads, model = [], AdaptiveMarginClassifier(classes=[0, 1]).fit(X, TWO)
    rows = LocalChunks.read_by([lambda: edited(reads, X)], X[:2])
    with pytest.raises(RuntimeError, match="this chunk changed between two"):
        private_score(model, rows, TWO)


def test_type_shape_and_categories_are_in_the_checksum():
    zeros = np.zeros((2, 3)), np.zeros((3, 2)), np.zeros((2, 3), np.int64)
    assert len(set(map(_checksum, zeros))) == 3
    list_of = sparse.eye_array(2).tocsr()
    coded = [CodedRows(np.zeros((2, 0)), ((list_of, np.array(p)),)) for p in ([0, 1], [1, 0])]
    assert _checksum(coded[0]) != _checksum(coded[1])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "U3", "M8[D]", "f16", "O", "frame"])
def test_every_row_is_in_the_checksum(dtype):
    """Each single bit that tells two rows apart, and every swap of rows: a sample of them."""
    pd, rng = pytest.importorskip("pandas"), np.random.default_rng(3)
    numbers = rng.integers(100, 999, (3001, 5))
    rows = pd.DataFrame(numbers).astype({3: str, 4: "category"}) if dtype == "frame" else numbers
    rows = rows if dtype == "frame" else rows.astype("O" if dtype == "O" else dtype)
    mark = _checksum(rows)
    assert _checksum(rows.copy()) == mark
    for i in [0, 1, 2999, 3000, *rng.integers(0, 3001, 30)]:
        for j in range(5):
            other = numbers.copy()
            other[i, j] = (other[i, j] - 99) % 900 + 100
            one = pd.DataFrame(other).astype({3: str, 4: "category"})
            assert _checksum(one if dtype == "frame" else other.astype(rows.dtype)) != mark
    order = np.arange(3001)
    order[[7, 8]] = 8, 7
    assert _checksum(rows.iloc[order] if dtype == "frame" else rows[order]) != mark
    assert _checksum(rows[:0]) != mark


@pytest.mark.parametrize(
    ("make", "passes"), [(AdaptiveMarginClassifier, 39), (PrivateKernelClassifier, 5)]
)
def test_a_default_fit_makes_so_many_passes(make, passes):
    """``docs/scaling.md`` states the numbers; one of the columns is narrow."""
    reads = []
    rows = LocalChunks.read_by([lambda: reads.append(1) or X], X[:2])
    make(classes=[0, 1, 2], epsilon=3.0).fit(rows, local(1)(Y))
    assert len(reads) == passes


def test_labels_are_read_once_and_known_again():
    """Where a worker is lost they are read again; in another order they would be refused."""
    reads = []
    labels = LocalChunks.read_by([lambda: reads.append(1) or Y], None)
    data = check_chunks(AdaptiveMarginClassifier(), local(1)(X), labels, classes=[0, 1, 2])
    (codes,) = data.class_indices.values()
    assert len(reads) == 1
    swapped = codes.copy()
    i, j = 1, 1 + np.flatnonzero(codes[1:40] != codes[1])[0]
    swapped[[i, j]] = swapped[[j, i]]
    same, mark = data.class_indices.parts[0].function, data.class_indices.parts[0].arguments[1]()
    assert same(codes, mark) is codes
    with pytest.raises(RuntimeError, match="the same rows and labels in the same order"):
        same(swapped, mark)


@quiet
def test_no_row_is_in_what_a_worker_would_log():
    """It logs what a function was given that raised: none does but the one that opens the end."""
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    model = AdaptiveMarginClassifier(data_norm=6000, **PUBLIC).fit(X, Y)
    numbers = pd.DataFrame(X[:6])
    texts = dd.from_pandas(numbers, npartitions=2).map_partitions(
        lambda part: part.astype(object).replace(X[5, 0], "secret"), meta=numbers
    )
    ends = [(model.predict(of_dask(3)(broken(3, np.inf))), "chunk 1: .*in column 3")]
    ends += [(model.predict(texts), "chunk 1: .*column '0'")]
    for lazy, message in ends:
        with pytest.raises(ValueError, match=message) as caught:
            lazy.compute(scheduler="sync")
        error = caught.value
        while error is not None:  # of schedulers there may be a StopIteration behind it
            assert "secret" not in repr(error.args)
            error = error.__context__
        assert caught.traceback[-1].frame.code.name == "unwrap_result"
    rows = checked_chunks(model, of_dask(2)(X), reset=False)
    for error in (KeyError("secret"), ZeroDivisionError("secret")):
        with pytest.raises(RuntimeError, match=f"chunk 0: {type(error).__name__}") as caught:
            rows.total(raising, error)
        assert "secret" not in str(caught.value)


def raising(rows, error):
    raise error


class Quoting:
    """A model of somebody else that answers with texts of the records, but not for ones."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        return np.array([["0.5" if (X == 1).all() else "secret", "0.5"]] * len(X), dtype=object)

    def predict(self, X):
        if not (X == 1).all():
            raise ValueError("secret")
        return np.zeros(len(X), dtype=int)


def unreadable(reads, rows):
    """A reader that quotes an entry."""
    del reads
    return texts(rows[:, 0])[:, None] * rows


def texts(labels):
    """A reader of labels that quotes one of them."""
    return np.where(np.arange(len(labels)) == 7, "secret", labels.astype(str)).astype(float)


def said(call):
    """What is said of an error, and of all that stand behind it."""
    with pytest.raises((RuntimeError, ValueError)) as caught:
        call()
    error, found = caught.value, []
    while error is not None:
        found.append(repr(error.args))
        error = error.__context__
    return " ".join(found)


class Unsortable:
    """A label that quotes itself where it is sorted."""

    def __lt__(self, other):
        raise ValueError("secret")


def odd(labels):
    """Labels that cannot be sorted."""
    found = labels.astype(object)
    found[7] = Unsortable()
    return found


QUOTED = {
    "rows": lambda model, rows, labels: model.fit(rows(partial(edited, value="secret")), TWO),
    "reading": lambda model, rows, labels: model.fit(rows(unreadable), TWO),
    "labels": lambda model, rows, labels: model.fit(rows(None), labels),
    "odd labels": lambda model, rows, labels: model.fit(rows(None), odd(TWO)),
    "plan": lambda model, rows, labels: model.plan(rows(None), labels),
    "score of labels": lambda model, rows, labels: private_score(Quoting(), rows(None), labels),
    "score": lambda model, rows, labels: private_score(
        Quoting(), rows(None), TWO, metric="log_loss"
    ),
    "prediction": lambda model, rows, labels: private_score(Quoting(), rows(None), TWO),
}


@pytest.mark.parametrize("where", ["here", "dask"])
@pytest.mark.parametrize("name", QUOTED)
def test_of_foreign_errors_only_the_type_is_said(name, where):
    """Numpy quotes the entry that it cannot convert, and has no frame that would tell it apart."""
    model = AdaptiveMarginClassifier(data_norm=6000, classes=[0, 1])
    sample = np.ones((2, 5))
    if where == "dask":
        da, reads = pytest.importorskip("dask.array"), []
        whole = da.from_array(X, chunks=(N, 5))

        def rows(change):
            late = {"dtype": float, "meta": sample}
            return whole if change is None else whole.map_blocks(partial(change, reads), **late)

        labels = da.from_array(TWO, chunks=N).map_blocks(texts, dtype=float, meta=np.ones(2))
    else:
        reads = []

        def rows(change):
            reader = partial(change, reads, X) if change else lambda: X
            return LocalChunks.read_by([reader], sample)

        labels = LocalChunks.read_by([lambda: texts(TWO)], TWO[:2])
    found = said(lambda: QUOTED[name](model, rows, labels))
    # What cannot be sorted is no label, whatever it says.
    own = {"score": "must return real numbers", "odd labels": "y mixes types"}
    assert "secret" not in found
    assert own.get(name, "ValueError, whose message") in found
    assert "chunk 0: " in found or where == "dask" or name == "odd labels"


class Unwritable:
    """A cell that quotes itself where an array, or a text, is made of it."""

    def __array__(self, *args, **options):
        raise RuntimeError("secret")

    def __str__(self):
        raise RuntimeError("secret")


@pytest.mark.parametrize("where", ["labels here", "rows of dask"])
def test_what_is_raised_before_a_pass_is_not_said(where):
    """Dask converts the texts of a frame in this process where chunks are made of it."""
    model = AdaptiveMarginClassifier(data_norm=6000, classes=[0, 1])
    rows, labels = in_chunks(X, 400), TWO
    if where == "labels here":
        labels = [*TWO[:-1].tolist(), Unwritable()]
    else:
        dd = pytest.importorskip("dask.dataframe")
        cells = [*X[:-1, 0].tolist(), Unwritable()]
        rows = dd.from_pandas(pd.DataFrame({"a": pd.Series(cells, dtype=object)}), npartitions=1)
    assert "secret" not in said(lambda: model.fit(rows, labels))


def wary(rows):
    """A reader that warns of a cell, as readers of files do of one that is of another type."""
    if (rows == X[7, 0]).any():
        warnings.warn("secret", stacklevel=2)
    return rows


@pytest.mark.parametrize("where", ["here", "dask"])
def test_what_a_foreign_task_warns_of_is_dropped(where):
    model = AdaptiveMarginClassifier(data_norm=6000, classes=[0, 1])
    rows = LocalChunks.read_by([lambda: wary(X)], np.ones((2, 5)))
    if where == "dask":
        da = pytest.importorskip("dask.array")
        rows = da.from_array(X, chunks=(N, 5)).map_blocks(wary, dtype=float, meta=np.ones((2, 5)))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(rows, TWO)
        private_score(model, rows, TWO)
    assert "secret" not in [str(each.message) for each in seen]


def test_nullable_columns_beside_others_have_nan_where_an_entry_is_missing():
    frame = pd.DataFrame({"a": pd.array([1.0, None], "Float64"), "b": [1, 2]})
    np.testing.assert_array_equal(_to_floats(frame, np.float64), [[1.0, 1.0], [np.nan, 2.0]])


def test_what_this_library_raises_of_a_chunk_is_said():
    """By a statement of its own; a call of numpy from the same function is none."""
    rows = LocalChunks.read_by([lambda: X], X[:2])
    with pytest.raises(RuntimeError, match=r"^chunk 0: this chunk changed between"):
        list(rows.each(_check_unchanged, b"").values())
    with pytest.raises(
        RuntimeError,
        match=r"^chunk 0: ValueError, whose message is not shown because it may quote data$",
    ):
        list(LocalChunks.of([np.array(["secret"])]).each(_to_floats, float).values())

    def panic(chunk):
        raise BaseException("secret")  # noqa: TRY002 - libraries in Rust raise no Exception

    with pytest.raises(RuntimeError, match=r"^chunk 0: BaseException, whose message is not"):
        list(LocalChunks.of([X]).each(panic).values())
    with pytest.raises(KeyboardInterrupt):
        list(LocalChunks.of([X]).each(Mock(side_effect=KeyboardInterrupt)).values())
    other = {"__name__": "dp_halfspace_of_another"}
    exec("def fail(chunk): raise RuntimeError('secret')", other)
    with pytest.raises(RuntimeError, match="whose message is not shown"):
        list(LocalChunks.of([X]).each(other["fail"]).values())


def test_a_foreign_error_of_labels_is_no_message(monkeypatch):
    """What another library says of labels may quote one: only its type goes further."""
    monkeypatch.setattr(chunked_data, "class_indices", lambda y, classes: np.array(y, dtype=float))
    with pytest.raises(ValueError, match="secret"):
        chunked_data._label_indices(["secret"], np.array([0, 1]))


@pytest.mark.parametrize("count", [1, 2, 7, 1000])
def test_sums_over_chunks_stay_within_the_allowance(count):
    """Cancelling terms of very different sizes, in chunks of three rows to all."""
    n = 3000
    data = RNG.standard_normal((n, 4)) * 10.0 ** RNG.uniform(-8, 8, (n, 1))
    signs = np.where(np.arange(n) % 2, 1.0, -1.0)
    whole = normalised_rows(data, 1.0, 0.3)
    rows = rows_over(normalised_rows, in_chunks(data, n // count), 1.0, 0.3)
    state = [np.concatenate(parts) for parts in zip(*rows._state.values(), strict=True)]
    np.testing.assert_array_equal(state[0], whole.state[0])
    np.testing.assert_array_equal(state[1], whole.state[1])
    p = in_chunks(signs, n // count)
    found = rows.total("adjoint", p)
    entries = np.column_stack([data.astype(np.longdouble) * state[0][:, None], state[1]])
    exact = (entries * signs[:, None]).sum(axis=0)
    sizes = {"n_samples": n, "n_columns": 5, "block_rows": whole.block_rows, "row_norm": 1.0}
    bound = gradient_error(
        **sizes, ridge=0.0, radius=1.0, slope=1.0, smoothness=0.0, evaluation=0.0
    )
    assert float(np.linalg.norm((found - exact).astype(float))) <= bound / 50
    np.testing.assert_allclose(found, whole.adjoint(signs), rtol=0, atol=bound / 50)


EVERY = {
    "margin": AdaptiveMarginClassifier,
    "kernel": PrivateKernelClassifier,
    "table": dp_halfspace.PrivateTableClassifier,
    "minimum": partial(OutputPerturbationClassifier, preconditioner=False),
    "ranking": PrivateAUCClassifier,
}


@quiet
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", EVERY)
def test_nothing_that_could_release_travels(name, monkeypatch):
    """Everything that goes to a worker is pickled: it holds no permit, account or randomness.

    Whoever knows the seed can subtract the noise: a worker is given none, nor a copy of it.
    """
    cloudpickle, dask = pytest.importorskip("cloudpickle"), pytest.importorskip("dask")
    honest, graphs, models = BaseEstimator.__getstate__, [], []

    def refuse(self, protocol):
        raise AssertionError("randomness, or an account, on its way to a worker")

    def checked(self):
        models.append(type(self).__name__)
        assert [vars(self).get(name) for name in ("ledger", "random_state")] == [None, None]
        return honest(self)

    def workers(graph, keys, **options):
        with monkeypatch.context() as patch:
            patch.setattr(BaseEstimator, "__getstate__", checked)
            for kind in (OperatingSystemBytes, SeededBytes, PrivacyLedger):
                patch.setattr(kind, "__reduce_ex__", refuse)
            graphs.append(len(cloudpickle.dumps(graph)))
        return dask.get(graph, keys, **options)

    cut, book, ledger = of_dask(3), Book(), PrivacyLedger(epsilon=20.0, delta=1e-3)
    with dask.config.set(scheduler=workers):
        model = EVERY[name](classes=[0, 1], epsilon=9.0, ledger=ledger)
        model.fit(cut(X), cut(TWO))
        assert graphs
        # A fit sends functions of numbers.
        assert not models
        model.set_params(ledger=book, random_state=12345)
        model.predict(cut(X)).compute()
        private_score(model, cut(X), cut(TWO), ledger=ledger)
        private_score(make_pipeline(model), cut(X), cut(TWO))
        assert type(model).__name__ in models
        assert not book.records
        assert len(ledger.entries()) == 2
        assert (model.random_state, model.ledger) == (12345, book)
        if name != "margin":
            return
        clone(model).set_params(ledger=None).fit(cut(X), cut(TWO))
        bad = checked_chunks(model, cut(X), reset=False)
        for planted in (ledger, SeededBytes(0, "noise"), OperatingSystemBytes(), model):
            with pytest.raises(RuntimeError, match="AssertionError, whose message is not shown"):
                bad.total(np.multiply, planted)


def test_the_test_of_travelling_sees_a_permit():
    with pytest.raises(TypeError, match="right to release once"):
        pickle.dumps(permit_for(Pure(1.0)))


READS = [("margin", 1), ("margin", 2), ("margin", 25), ("minimum", 9), ("ranking", 12)]


@pytest.mark.parametrize(("name", "at"), [*READS, ("table", 5), ("score", 1), ("score", 2)])
def test_a_read_that_fails_is_booked_once_at_most(name, at, monkeypatch):
    """Before the charge nothing is booked; behind it the fit raises, and the charge stays."""
    monkeypatch.setattr("dp_halfspace.estimators.table.KEPT_FEATURES", 0)
    reads = []

    def failing():
        reads.append(1)
        if len(reads) == at:
            raise OSError("disk")
        return X

    failed = "^chunk 0: OSError, whose message is not shown because it may quote data$"
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-3)
    released, rows = [], LocalChunks.read_by([failing], X[:2])
    if name == "score":
        score = partial(private_score, AdaptiveMarginClassifier(classes=[0, 1]).fit(X, TWO))
        with observe_releases(released.append), pytest.raises(RuntimeError, match=failed):
            score(rows, TWO, ledger=ledger)
        assert not released
        assert not ledger.entries()
        return
    model = EVERY[name](classes=[0, 1], ledger=ledger)
    with observe_releases(released.append), pytest.raises(RuntimeError, match=failed):
        model.fit(rows, TWO)
    assert len(ledger.entries()) == (at > 1)
    assert len(released) < at
    assert not hasattr(model, "classes_")


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_a_killed_worker_is_replaced(name):
    """Lost sums are computed again before any noise meets them; every release is made once."""
    distributed, da = pytest.importorskip("distributed"), pytest.importorskip("dask.array")
    releases, whole, make = [], [], partial(EVERY[name], classes=[0, 1])
    want = make(random_state=0)
    with observe_releases(whole.append), pytest.warns(PrivacyWarning):
        want.fit(X, TWO)
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-3)
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())

        def kill_one(release):
            releases.append(release)
            if len(releases) == min(10, len(whole) - 1):
                os.kill(pids[0], signal.SIGKILL)

        rows, labels = da.from_array(X, chunks=(500, 5)), da.from_array(TWO, chunks=500)
        with observe_releases(kill_one), pytest.warns(PrivacyWarning):
            model = make(random_state=0).fit(rows, labels)
        again = make(ledger=ledger).fit(rows, labels)
        score = private_score(again, rows, labels, ledger=ledger)
    # Rows in estimated column scales are summed in float32.
    apart = 1e-5 if "precision" in dict(want.privacy_.public) else 1e-9
    scores = model.decision_function(X), want.decision_function(X)
    np.testing.assert_allclose(*scores, rtol=0, atol=apart)
    assert len(releases) == len(whole)
    assert len(ledger.entries()) == 2
    assert 0.0 <= score.value <= 1.0


def test_signs_and_halves_of_words_are_in_the_checksum():
    """What a sum of words times keys would lose: bits at the upper end, in pairs."""
    rows = np.ones((4000, 4), dtype=np.float32)
    marks = {_checksum(rows)}
    for places in ([0, 2], [1, 3], [0, 1], [1], [2]):
        for row in (0, 1, 500, 3999):
            other = rows.copy()
            other[row, places] *= -1.0
            marks.add(_checksum(other))
    assert len(marks) == 21
    marks = {_checksum(np.roll(np.repeat([1.0, 0.0], [at, 4000 - at]), at)) for at in range(1, 400)}
    assert len(marks) == 399


@pytest.mark.parametrize(
    ("error", "seen", "text"),
    [
        (MemoryError("a part"), OutOfMemory, "make chunks of fewer rows"),
        (BaseException("a part"), RuntimeError, "BaseException, whose message is not shown"),
        (KeyboardInterrupt(), KeyboardInterrupt, "^$"),
    ],
)
def test_a_scheduler_without_memory_says_so(error, seen, text):
    with pytest.raises(seen, match=text):
        _compute_parts(Mock(side_effect=error), ("a part",))
