"""Rows in chunks: the same fit and errors wherever they are, one charge, noise at home."""

from __future__ import annotations

import os
import pickle
import signal

import numpy as np
import pytest

import dp_halfspace
from dp_halfspace import (
    AdaptiveMarginClassifier,
    OutputPerturbationClassifier,
    PrivateKernelClassifier,
)
from dp_halfspace._chunked import checked_chunks
from dp_halfspace._chunks import LocalChunks, compensated
from dp_halfspace.datasets import in_chunks, read_parquet
from dp_halfspace.exceptions import PrivacyWarning
from dp_halfspace.metrics import private_score
from dp_halfspace.optim.design import rows as design
from dp_halfspace.optim.design.blocks import PLAIN_BLOCKS
from dp_halfspace.optim.design.chunked_rows import chunked_rows
from dp_halfspace.optim.design.rows import Rows, unit_rows
from dp_halfspace.optim.solvers.certificate import gradient_error
from dp_halfspace.preprocessing import PrivateScaler
from dp_halfspace.privacy.events import Pure
from dp_halfspace.privacy.ledger import PrivacyLedger
from dp_halfspace.privacy.mechanisms import observing
from dp_halfspace.privacy.randomness import OperatingSystemBytes, SeededBytes
from tests.algorithms.support import permit_for

RNG = np.random.default_rng(20)
N = 3001
X = RNG.standard_normal((N, 5)) * [1, 10, 100, 1e-3, 1] + [0, 0, 5000, 0, 0]
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 3)
HOLES = np.where(RNG.random(X.shape) < 0.01, np.nan, X)
PUBLIC = {"classes": [0, 1, 2], "random_state": 0}
FEW = {"n_components": 60}
TAKE_CHUNKS = {"AdaptiveMarginClassifier", "PrivateKernelClassifier"}
MODELS_OF_ALL = [name for name in dp_halfspace.__all__ if name.endswith("Classifier")]
quiet = pytest.mark.filterwarnings("ignore::dp_halfspace.exceptions.PrivacyWarning")


def local(count):
    size = -(-N // count)
    return lambda a: in_chunks(a, size)


def of_dask(count):
    da, size = pytest.importorskip("dask.array"), -(-N // count)
    return lambda a: da.from_array(a, chunks=(size, 3) if a.ndim == 2 else size)


MODELS = {
    "units": (lambda: AdaptiveMarginClassifier(**PUBLIC), HOLES),
    "stated": (lambda: AdaptiveMarginClassifier(data_norm=6000, **PUBLIC), X),
    "margin": (lambda: AdaptiveMarginClassifier(0.1, data_norm=6000, **PUBLIC), X),
    "curves": (lambda: PrivateKernelClassifier(**PUBLIC), HOLES),
    "rbf": (lambda: PrivateKernelClassifier("rbf", **FEW, **PUBLIC), HOLES),
    "remade": (
        lambda: PrivateKernelClassifier("rbf", n_components=60, cache_size=0, **PUBLIC),
        HOLES,
    ),
    "scaler": (lambda: PrivateScaler(random_state=0), HOLES),
    "pure scaler": (lambda: PrivateScaler(delta=0, random_state=0), HOLES),
}


def image(model, rows):
    return getattr(model, "decision_function" if hasattr(model, "predict") else "transform")(rows)


@quiet
@pytest.mark.parametrize("name", MODELS)
def test_chunks_change_nothing_but_roundings(name):
    make, data = MODELS[name]
    whole = make().fit(data, Y)
    more = (local(1), local(7)) if name in {"units", "scaler"} else ()
    slow = name in {"margin", "remade"}
    for cut in (local(2), *more) if slow else (local(2), of_dask(7), *more):
        model, rows = make().fit(cut(data), cut(Y)), cut(data)
        np.testing.assert_allclose(image(model, rows), image(whole, data), rtol=0, atol=1e-9)
        assert model.privacy_ == whole.privacy_
    assert make().plan(rows, cut(Y)) == whole.privacy_


def test_scores_of_chunks_are_refused():
    labels = (Y > 0).astype(int)
    model = OutputPerturbationClassifier(classes=[0, 1]).fit(X, labels)
    with pytest.raises(ValueError, match="X is in chunks"):
        private_score(model, local(2)(X), local(2)(labels))


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


@quiet
def test_parquet_is_read_by_row_groups(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(HOLES, columns=list("abcde")).assign(y=Y)
    frame.to_parquet(tmp_path / "table.parquet", row_group_size=400)
    rows, labels = read_parquet(tmp_path, label="y")
    assert len(rows.parts) == 8
    model = AdaptiveMarginClassifier(**PUBLIC).fit(rows, labels)
    whole = AdaptiveMarginClassifier(**PUBLIC).fit(frame[list("abcde")], Y)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=0, atol=1e-9)
    assert model.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="no column 'z'"):
        read_parquet(tmp_path, label="z")


def broken(column, value):
    data = X.copy()
    data[2000, column] = value
    return data


LABELS = Y.astype(float)
LABELS[2500] = np.nan
ERRORS = {
    "hole": (broken(3, np.nan), Y, "NaN or infinity in column 3"),
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


def test_what_does_not_run_on_chunks_says_so():
    rows, labels = local(3)(X), local(3)(Y)
    refused = [
        AdaptiveMarginClassifier(solver="objective_perturbation", classes=[0, 1, 2]),
        AdaptiveMarginClassifier(delta=0, classes=[0, 1, 2]),
        AdaptiveMarginClassifier(projection="hadamard", n_components=2, classes=[0, 1, 2]),
        OutputPerturbationClassifier(data_norm=1.0, classes=[0, 1, 2]),
    ]
    for model in refused:
        with pytest.raises(ValueError, match="rows in chunks are not supported"):
            model.fit(rows, labels)
    two = in_chunks((Y > 0).astype(int), -(-N // 3))
    others = [m for m in MODELS_OF_ALL if m not in TAKE_CHUNKS]
    for name in others:
        with pytest.raises(ValueError, match="in chunks"):
            getattr(dp_halfspace, name)(classes=[0, 1]).fit(rows, two)
    model = AdaptiveMarginClassifier(classes=[0, 1, 2])
    for given, expected in (
        ((rows, local(4)(Y)), "same chunks"),
        ((rows, Y[1:]), "same chunks"),
        ((X, labels), "y is in chunks"),
        ((rows, labels, Y), "groups is not supported"),
    ):
        with pytest.raises(ValueError, match=expected):
            model.fit(*given)
    with pytest.raises(ValueError, match="state the public label set"):
        AdaptiveMarginClassifier().fit(rows, labels)
    ragged = LocalChunks.read_by([lambda: X, lambda: X[:, :2]], X[:2])
    with pytest.raises(ValueError, match="columns of the others"):
        model.fit(ragged, np.append(Y, Y))


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


@pytest.mark.parametrize("count", [1, 2, 7, 1000])
def test_sums_over_chunks_stay_within_the_allowance(count):
    """Cancelling terms of very different sizes, in chunks of three rows to all."""
    n = 3000
    data = RNG.standard_normal((n, 4)) * 10.0 ** RNG.uniform(-8, 8, (n, 1))
    signs = np.where(np.arange(n) % 2, 1.0, -1.0)
    whole = unit_rows(data, 1.0, 0.3)
    rows = chunked_rows(unit_rows, in_chunks(data, n // count), 1.0, 0.3)
    state = [np.concatenate(parts) for parts in zip(*rows._state.values(), strict=True)]
    np.testing.assert_array_equal(state[0], whole.state[0])
    np.testing.assert_array_equal(state[1], whole.state[1])
    p = in_chunks(signs, n // count)
    found = rows.adjoint(p)
    entries = np.column_stack([data.astype(np.longdouble) * state[0][:, None], state[1]])
    exact = (entries * signs[:, None]).sum(axis=0)
    sizes = {"n_samples": n, "n_columns": 5, "block_rows": rows.block_rows, "row_norm": 1.0}
    bound = gradient_error(
        **sizes, ridge=0.0, radius=1.0, slope=1.0, smoothness=0.0, evaluation=0.0
    )
    assert float(np.linalg.norm((found - exact).astype(float))) <= bound / 50
    np.testing.assert_allclose(found, whole.adjoint(signs), rtol=0, atol=bound / 50)


def test_kahan_keeps_what_plain_addition_loses():
    parts = [np.array([1.0]), *[np.array([2.0**-53])] * 10_000]
    exact = 1.0 + 10_000 * 2.0**-53
    assert abs(compensated(parts)[0] - exact) <= 2.0**-52
    plain = 0.0
    for part in parts:
        plain += part[0]
    assert abs(plain - exact) > 1e-13  # the planted bug: one rounding for each chunk


def test_more_chunks_than_blocks_need_no_larger_allowance():
    """Additions that a term meets: in its block, in its chunk, and two for Kahan's rule."""
    for n in (1, 10, 5000, 10**6, 10**7, 10**9):
        for count in (1, 2, 7, 1000, n):
            largest, block = -(-n // min(count, n)), min(n, 3932)
            in_chunk = -(-largest // block)
            in_chunk = in_chunk if in_chunk <= PLAIN_BLOCKS else 2
            met = (min(block, largest) - 1) + in_chunk + 2
            assert 3 + met <= block + min(-(-n // block), PLAIN_BLOCKS) + 5


def test_many_blocks_are_added_by_kahan(monkeypatch):
    """Without his rule every block loses what it adds, far beyond the allowance."""
    monkeypatch.setattr(design, "block_size", lambda *shape, is_sparse: 4)
    column = np.full((160_000, 1), 2.0**-57)
    column[0] = 1.0
    exact, ones = 1.0 + 159_999 * 2.0**-57, np.ones(160_000)
    met = (4 + PLAIN_BLOCKS + 5) * 2.0**-53
    assert abs(Rows(column).adjoint(ones)[0] - exact) <= 2.0**-52
    monkeypatch.setattr(design, "PLAIN_BLOCKS", 10**9)
    assert abs(Rows(column).adjoint(ones)[0] - exact) > 10 * met


@quiet
def test_nothing_that_could_release_travels(monkeypatch):
    """Everything that goes to a worker is pickled: it holds no permit, ledger or randomness."""
    cloudpickle, dask = pytest.importorskip("cloudpickle"), pytest.importorskip("dask")

    def refuse(self, protocol):
        raise AssertionError("randomness, or an account, on its way to a worker")

    ledger = PrivacyLedger(epsilon=5.0, delta=1e-3)
    for kind in (OperatingSystemBytes, SeededBytes, PrivacyLedger):
        monkeypatch.setattr(kind, "__reduce_ex__", refuse)
    sent = []

    def workers(graph, keys, **options):
        sent.append(len(cloudpickle.dumps(graph)))
        return dask.get(graph, keys, **options)

    cut = of_dask(3)
    with dask.config.set(scheduler=workers):
        model = AdaptiveMarginClassifier(classes=[0, 1, 2], ledger=ledger).fit(cut(X), cut(Y))
        model.predict(cut(X)).compute()
        AdaptiveMarginClassifier(**PUBLIC).fit(cut(X), cut(Y))
        assert len(sent) > 50
        assert len(ledger.entries()) == 1
        bad = checked_chunks(model, cut(X), reset=False)
        for planted in (ledger, SeededBytes(0, "noise"), OperatingSystemBytes(), model):
            with pytest.raises(AssertionError, match="on its way"):
                bad.total(np.multiply, planted)


def test_the_test_of_travelling_sees_a_permit():
    with pytest.raises(TypeError, match="right to release once"):
        pickle.dumps(permit_for(Pure(1.0)))


@pytest.mark.parametrize("at", [1, 2, 12, 30])
def test_a_read_that_fails_is_booked_once_at_most(at):
    """Before the charge nothing is booked; behind it the fit raises, and the charge stays."""
    reads = []

    def failing():
        reads.append(1)
        if len(reads) == at:
            raise OSError("disk")
        return X

    ledger = PrivacyLedger(epsilon=5.0, delta=1e-3)
    model = AdaptiveMarginClassifier(classes=[0, 1, 2], ledger=ledger)
    released = []
    with observing(released.append), pytest.raises(OSError, match="disk"):
        model.fit(LocalChunks.read_by([failing], X[:2]), Y)
    assert len(ledger.entries()) == (at > 1)
    assert len(released) < at
    assert not hasattr(model, "coef_")


@pytest.mark.slow
def test_a_killed_worker_is_replaced():
    """Lost sums are computed again before any noise meets them; every release is made once."""
    distributed, da = pytest.importorskip("distributed"), pytest.importorskip("dask.array")
    releases, whole = [], []
    want = AdaptiveMarginClassifier(**PUBLIC)
    with observing(whole.append), pytest.warns(PrivacyWarning):
        want.fit(X, Y)
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-3)
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())

        def kill_one(release):
            releases.append(release)
            if len(releases) == 10:
                os.kill(pids[0], signal.SIGKILL)

        rows, labels = da.from_array(X, chunks=(500, 5)), da.from_array(Y, chunks=500)
        with observing(kill_one), pytest.warns(PrivacyWarning):
            model = AdaptiveMarginClassifier(**PUBLIC).fit(rows, labels)
        again = AdaptiveMarginClassifier(classes=[0, 1, 2], ledger=ledger).fit(rows, labels)
    np.testing.assert_allclose(model.coef_, want.coef_, rtol=0, atol=1e-9)
    assert len(releases) == len(whole)
    assert len(ledger.entries()) == 1
    assert again.coef_.shape == want.coef_.shape
