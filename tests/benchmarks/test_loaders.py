"""Benchmark loaders: local folder, cache, download (over file://), and refusals."""

import bz2
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import issparse

from benchmarks import loaders
from benchmarks.loaders import load_benchmark

SVM_TRAIN = "-1 1:1 3:0.5\n+1 2:1\n-1 1:0.25\n"
SVM_TEST = "+1 1:1\n-1 2:0.5\n"
NAMES = ["satimage", "satimage6", "http", "ijcnn1", "adult", "reuters"]


@pytest.fixture(autouse=True)
def no_folder(monkeypatch):
    monkeypatch.delenv("DP_HALFSPACE_DATA", raising=False)


@pytest.fixture
def origin(tmp_path, monkeypatch):
    """Stand in for the web with a folder, and make "adult" a set of five rows."""
    folder = tmp_path / "origin"
    folder.mkdir()
    (folder / "a9a").write_text(SVM_TRAIN)
    (folder / "a9a.t").write_text(SVM_TEST)
    remote = tuple((folder / name).as_uri() for name in ("a9a", "a9a.t"))
    small = replace(loaders._SOURCES["adult"], remote=remote, shape=(3, 2, 3))
    monkeypatch.setitem(loaders._SOURCES, "adult", small)
    return folder


def check_small_adult(benchmark):
    assert issparse(benchmark.X_train)
    np.testing.assert_array_equal(
        benchmark.X_train.toarray(), [[1, 0, 0.5], [0, 1, 0], [0.25, 0, 0]]
    )
    np.testing.assert_array_equal(benchmark.X_test.toarray(), [[1, 0, 0], [0, 0.5, 0]])
    assert benchmark.y_train.tolist() == [-1, 1, -1]
    assert benchmark.y_test.tolist() == [1, -1]
    assert benchmark.classes == (-1, 1)
    assert benchmark.data_norm == pytest.approx(14**0.5)


def test_downloads_once_and_then_reads_the_cache(origin, tmp_path):
    home = tmp_path / "home"
    check_small_adult(load_benchmark("adult", data_home=home))
    assert sorted(p.name for p in (home / "dp_halfspace").iterdir()) == ["a9a", "a9a.t"]
    for path in origin.iterdir():
        path.unlink()
    check_small_adult(load_benchmark("adult", data_home=home))


def test_without_network_says_what_to_do_and_leaves_no_partial_file(origin, tmp_path):
    (origin / "a9a.t").unlink()
    home = tmp_path / "home"
    with pytest.raises(OSError, match=r"DP_HALFSPACE_DATA") as caught:
        load_benchmark("adult", data_home=home)
    assert "a9a.t" in str(caught.value)
    assert [p.name for p in (home / "dp_halfspace").iterdir()] == ["a9a"]


def test_local_folder_comes_first(origin, tmp_path, monkeypatch):
    folder = tmp_path / "local"
    folder.mkdir()
    monkeypatch.setenv("DP_HALFSPACE_DATA", str(folder))
    check_small_adult(load_benchmark("adult", data_home=tmp_path))  # an empty folder is no obstacle
    for path in origin.iterdir():
        path.unlink()
    (folder / "adult.train.svm.bz2").write_bytes(bz2.compress(SVM_TRAIN.encode()))
    (folder / "adult.test.svm.bz2").write_bytes(bz2.compress(SVM_TEST.encode()))
    check_small_adult(load_benchmark("adult", data_home=tmp_path / "other"))
    assert not (tmp_path / "other").exists()


def test_wrong_shape_is_an_error_that_names_the_folder(origin, tmp_path):
    (origin / "a9a").write_text(SVM_TRAIN * 2)
    with pytest.raises(ValueError, match=r"\(6, 2, 3\) instead of \(3, 2, 3\)"):
        load_benchmark("adult", data_home=tmp_path)


def test_satimage_text_and_archive_agree(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (12, 36), dtype=np.uint8)
    y = np.array([1, 2, 3, 4, 5, 7] * 2, dtype=np.int8)
    monkeypatch.setattr(loaders, "_SATIMAGE_TRAIN", 8)
    np.savetxt(tmp_path / "sat.trn", np.c_[X, y][:8], fmt="%d")
    np.savetxt(tmp_path / "sat.tst", np.c_[X, y][8:], fmt="%d")
    remote = tuple((tmp_path / name).as_uri() for name in ("sat.trn", "sat.tst"))
    for name in ("satimage", "satimage6"):
        small = replace(loaders._SOURCES[name], remote=remote, shape=(8, 4, 36))
        monkeypatch.setitem(loaders._SOURCES, name, small)
    text = load_benchmark("satimage6", data_home=tmp_path)
    two = load_benchmark("satimage", data_home=tmp_path)
    assert text.y_train.tolist() == [1, 2, 3, 4, 5, 7, 1, 2]
    assert text.y_test.tolist() == [3, 4, 5, 7]
    assert two.y_train.tolist() == [1, 1, 1, -1, -1, -1, 1, 1]
    assert two.classes == (-1, 1)
    np.savez(tmp_path / "satimage.npz", X=X, y=y)
    monkeypatch.setenv("DP_HALFSPACE_DATA", str(tmp_path))
    archive = load_benchmark("satimage6")
    np.testing.assert_array_equal(text.X_train, archive.X_train)
    np.testing.assert_array_equal(text.X_test, archive.X_test)
    np.testing.assert_array_equal(text.y_test, archive.y_test)
    assert archive.X_train.max() <= 1.0


def test_http_archive_and_fetcher_agree(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    logs = rng.uniform(-2.3, 16.2, (40, 3))
    attack = np.arange(40) % 4 == 0
    monkeypatch.setattr(loaders, "_HTTP", replace(loaders._HTTP, shape=(28, 12, 3)))

    def fetcher(**options):
        assert options["subset"] == "http"
        assert not options["percent10"]
        return logs.astype(object), np.where(attack, b"back.", b"normal.")

    monkeypatch.setattr(loaders, "fetch_kddcup99", fetcher)
    fetched = load_benchmark("http", data_home=tmp_path)
    np.savez(tmp_path / "http.npz", X=logs, y=attack.astype(np.int8))
    monkeypatch.setenv("DP_HALFSPACE_DATA", str(tmp_path))
    archive = load_benchmark("http")
    np.testing.assert_array_equal(fetched.X_train, archive.X_train)
    np.testing.assert_array_equal(fetched.y_test, archive.y_test)
    assert fetched.X_train.dtype == np.float64
    assert np.abs(fetched.X_train).max() <= 1.0
    assert fetched.y_test.sum() == 3


def test_http_without_network_says_what_to_do(tmp_path, monkeypatch):
    def fetcher(**_):
        raise OSError("no route")

    monkeypatch.setattr(loaders, "fetch_kddcup99", fetcher)
    with pytest.raises(OSError, match=r"DP_HALFSPACE_DATA"):
        load_benchmark("http", data_home=tmp_path)


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'adult', 'http'.*got 'mnist'"):
        load_benchmark("mnist")


REAL = os.environ.get("DP_HALFSPACE_DATA", "")


@pytest.mark.skipif(not Path(REAL, "adult.train.svm.bz2").is_file(), reason="no local data")
@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", NAMES)
def test_real_files(name, monkeypatch):
    monkeypatch.setenv("DP_HALFSPACE_DATA", REAL)
    benchmark = load_benchmark(name)
    assert issparse(benchmark.X_train) == (name in ("adult", "ijcnn1", "reuters"))
    squares = benchmark.X_train.power(2) if issparse(benchmark.X_train) else benchmark.X_train**2
    norms = np.sqrt(np.asarray(squares.sum(axis=1))).ravel()
    assert norms.max() <= benchmark.data_norm * (1 + 1e-12)
    assert set(np.unique(benchmark.y_train)) == set(benchmark.classes)
