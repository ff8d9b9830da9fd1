"""Files that a user keeps: whole, or as they were; what fails in between leaves nothing behind."""

import contextlib
import os
import stat
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dp_halfspace import AdaptiveMarginClassifier
from dp_halfspace._cli import main
from dp_halfspace._files import write_whole
from dp_halfspace.inspection import model_card
from tests.conftest import separated

resource = pytest.importorskip("resource", reason="limits of files are those of Unix")
OLD = "what was there before"
# Bytes that a file may have while the disk is full; nothing that is written is shorter.
LEFT = 40


@contextlib.contextmanager
def full_disk():
    """Let no file grow beyond a few bytes, as on a disk without space."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LEFT, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A table and a model, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.uniform(0, 9, 300), "b": rng.choice(["x", "y"], 300)})
    table.assign(y=(table["a"] > 5).astype(int)).to_csv("t.csv", index=False)
    assert main(["fit", "t.csv", "--target", "y", "--epsilon", "9", "--save", "m.joblib"]) == 0
    return tmp_path


def test_a_full_disk_leaves_an_earlier_report(tmp_path):
    model = AdaptiveMarginClassifier(classes=[0, 1]).fit(*separated(100, 3))
    path, write = tmp_path / "report", partial(model_card, model)
    path.write_text(OLD)
    with full_disk(), pytest.raises(OSError, match="File too large"):
        write(path)
    assert path.read_text() == OLD
    assert os.listdir(tmp_path) == ["report"]
    assert write(path) == path.read_text(encoding="utf-8") != OLD
    assert os.listdir(tmp_path) == ["report"]


COMMANDS = {
    "model": ["fit", "t.csv", "--target", "y", "--epsilon", "9", "--save", "kept"],
    "card": ["card", "m.joblib", "--out", "kept"],
    "predictions": ["predict", "m.joblib", "t.csv", "--out", "kept"],
    "schema": ["schema", "t.csv", "--target", "y", "--out", "kept"],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_full_disk_leaves_what_an_earlier_command_has_written(folder, capsys, words):
    path = next(folder / word for word in words if word.startswith("kept"))
    path.write_text(OLD)
    before = sorted(os.listdir())
    with full_disk():
        assert main(words) == 2
    assert "cannot write kept" in capsys.readouterr().err
    assert path.read_text() == OLD
    assert sorted(os.listdir()) == before
    assert main(words) == 0
    assert path.read_bytes() != OLD.encode()
    assert sorted(os.listdir()) == before


def interrupted(path):
    path.write_text("half of")
    raise KeyboardInterrupt


def written(path, text):
    write_whole(path, lambda new: new.write_text(text))


def test_an_interrupt_leaves_the_file_and_nothing_else(tmp_path):
    path = tmp_path / "kept"
    path.write_text(OLD)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, interrupted)
    assert path.read_text() == OLD
    assert os.listdir(tmp_path) == ["kept"]


def test_a_lack_of_space_that_only_a_flush_shows_leaves_an_earlier_file(tmp_path, monkeypatch):
    path = tmp_path / "kept"
    path.write_text(OLD)
    monkeypatch.delattr(os, "fsync")
    with pytest.raises(AttributeError, match="fsync"):
        written(path, "new")
    assert path.read_text() == OLD


def test_a_file_keeps_its_permissions_and_a_link_stays_one(tmp_path):
    """A report that only its owner may read is not opened to others by a new one."""
    path, link, elsewhere = tmp_path / "kept", tmp_path / "link", tmp_path / "elsewhere"
    elsewhere.mkdir()
    path = elsewhere / "kept"
    link.symlink_to(path)
    mask = os.umask(0)
    os.umask(mask)
    written(link, "new")
    assert os.umask(mask) == mask
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    path.chmod(0o600)
    seen = []
    write_whole(link, lambda new: (seen.append(stat.S_IMODE(new.stat().st_mode)), new.touch()))
    assert seen == [0o600]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert link.is_symlink()
    assert os.listdir(elsewhere) == ["kept"]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    written(pipe, "through")
    reader.join(timeout=10)
    assert read == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_folder_that_is_not_there_is_the_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"kept'$"):
        written(tmp_path / "nowhere" / "kept", "text")
    assert not Path(tmp_path / "nowhere").exists()
