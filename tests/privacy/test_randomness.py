"""Byte sources: fresh, reproducible, separated, never copied."""

import copy
import importlib.util
import multiprocessing
import os
import pickle
import sys
import threading
import warnings
from functools import partial

import joblib
import numpy as np
import pytest
from scipy import stats

from dp_halfspace.exceptions import PrivacyWarning
from dp_halfspace.privacy import randomness
from dp_halfspace.privacy.randomness import (
    OS_RANDOMNESS,
    OperatingSystemBytes,
    SeededBytes,
    noise_source,
    public_generator,
)

GENERATORS = [np.random.RandomState(0), np.random.default_rng(0), np.random.SeedSequence(0)]
BAD_STATES = [True, False, -1, 1.0, "0", [0], *GENERATORS]
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")


def seeded_noise_source(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return noise_source(seed)


def read_in_child(source, queue):
    try:
        queue.put(source.read(16))
    except RuntimeError as error:
        queue.put(str(error))


def repeated_reads(source, n_workers=3):
    """Return whether forked children and their parent ever read the same bytes."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    make = partial(context.Process, target=read_in_child, args=(source, queue))
    workers = [make() for _ in range(n_workers)]
    for worker in workers:
        worker.start()
    drawn = [queue.get(timeout=30) for _ in workers]
    for worker in workers:
        worker.join()
    drawn.append(source.read(16))
    return len(set(drawn)) < len(drawn), drawn


class Buffered:
    """Planted bug: a generator whose state is copied by a fork."""

    kind = "os"

    def __init__(self):
        self.generator = np.random.default_rng()

    def read(self, n):
        return self.generator.bytes(n)


def test_operating_system_bytes_are_fresh_and_stateless():
    assert noise_source(None).kind == OS_RANDOMNESS.kind == "os"
    assert OS_RANDOMNESS.read(32) != OS_RANDOMNESS.read(32)
    assert OS_RANDOMNESS.read(0) == b""
    assert pickle.loads(pickle.dumps(OS_RANDOMNESS)) == OS_RANDOMNESS
    assert copy.deepcopy(OS_RANDOMNESS) == OperatingSystemBytes()


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_workers_never_repeat_bytes():
    assert not repeated_reads(OS_RANDOMNESS)[0]
    assert repeated_reads(Buffered())[0]  # the check sees a copied state


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_seeded_stream_refuses_to_be_read_in_a_fork():
    """And to be copied in any other way."""
    _, drawn = repeated_reads(SeededBytes(0, "noise"))
    assert all("forked" in answer for answer in drawn[:-1])
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy, joblib.hash):
        with pytest.raises((TypeError, pickle.PicklingError), match="cannot be pickled or copied"):
            duplicate(SeededBytes(0, "noise"))


def test_seeded_stream_does_not_depend_on_how_it_is_cut():
    whole = SeededBytes(7, "noise").read(20_000)
    cut = SeededBytes(7, "noise")
    assert whole == b"".join(cut.read(n) for n in (0, 1, 3, 4092, 5000, 10_904))
    # The same on every platform.
    assert SeededBytes(2026, "noise").read(8).hex() == "1768a70c8989e9c3"


def test_streams_are_separated_by_seed_and_purpose():
    labels = [(0, "noise"), (1, "noise"), (0, "noise2"), (256, "noise"), (0, ""), (2**200, "noise")]
    starts = {SeededBytes(seed, purpose).read(16) for seed, purpose in labels}
    assert len(starts) == len(labels)
    first, second = (SeededBytes(0, purpose).read(80_000) for purpose in ("a", "b"))
    bits = np.unpackbits(np.frombuffer(first, "u1") ^ np.frombuffer(second, "u1"))
    assert stats.binomtest(int(bits.sum()), bits.size).pvalue > 1e-6


def test_branches_are_apart_by_draw_and_entry():
    """And from the stream itself, from other streams, and from branches of branches."""
    roots = [SeededBytes(0, "noise"), SeededBytes(1, "noise"), SeededBytes(0, "a")]
    found = [root.read(16) for root in roots]
    for root in roots:
        for further in [root.branches() for _ in range(3)]:
            for entry in range(3):
                branch = further(entry)
                found.append(branch.read(16))
                found += [inner(k).read(16) for inner in [branch.branches()] for k in range(2)]
    assert len(set(found)) == len(found) == 3 + 27 * 3
    # Neither what was read before nor the order of entries plays a part.
    source = SeededBytes(0, "noise")
    source.read(5000)
    assert source.branches()(1).read(16) in found
    assert OS_RANDOMNESS.branches()(7) is OS_RANDOMNESS


def test_seeded_bytes_are_uniform():
    counts = np.bincount(np.frombuffer(SeededBytes(3, "noise").read(2**20), "u1"), minlength=256)
    assert stats.chisquare(counts).pvalue > 1e-6


@pytest.mark.parametrize("seed", [0, 5, np.int64(5), 2**80])
def test_noise_source_int_warns_that_the_guarantee_is_void(seed):
    with pytest.warns(
        PrivacyWarning, match="does not hold against anyone who knows the seed"
    ) as record:
        source = noise_source(seed)
    assert record[0].filename == __file__
    assert source.kind == "seeded"
    assert source.read(16) == seeded_noise_source(int(seed)).read(16)


@pytest.mark.parametrize("bad", BAD_STATES, ids=lambda bad: repr(bad).split(" at 0x")[0])
def test_everything_else_is_refused_as_random_state(bad):
    for function in (noise_source, lambda state: public_generator(state, "projection")):
        with pytest.raises(ValueError, match="random_state must be None"):
            function(bad)
    with pytest.raises(ValueError, match="seed must be nonnegative"):
        SeededBytes(-1, "noise")


def test_public_generator_is_reproducible_and_apart_from_the_noise():
    draw = public_generator(11, "projection").bytes(64)
    assert draw == public_generator(11, "projection").bytes(64)
    others = {
        public_generator(12, "projection").bytes(64),
        public_generator(11, "permutation").bytes(64),
        public_generator(None, "projection").bytes(64),
        public_generator(None, "projection").bytes(64),
        seeded_noise_source(11).read(64),
        SeededBytes(11, "projection").read(64),
        np.random.default_rng(11).bytes(64),
        draw,
    }
    assert len(others) == 8
    # The noise has a stream of its own, which no public object shares.
    assert seeded_noise_source(11).read(64) == SeededBytes(11, "noise").read(64)


def test_bytes_of_the_operating_system_are_its_own(monkeypatch):
    """In a module of its own: in these tests `read` is replaced, so that they repeat."""
    spec = importlib.util.spec_from_file_location("fresh_randomness", randomness.__file__)
    fresh = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fresh_randomness", fresh)
    spec.loader.exec_module(fresh)
    asked = []
    monkeypatch.setattr(os, "urandom", lambda n: asked.append(n) or bytes(range(1, n + 1)))
    assert fresh.OS_RANDOMNESS.read(3) == b"\x01\x02\x03"
    assert fresh.noise_source(None).read(1) == b"\x01"
    assert asked == [3, 1]


def test_a_read_waits_for_that_of_another_thread():
    """Two reads at once would return the same bytes."""
    source, found = SeededBytes(0, "noise"), []
    other = threading.Thread(target=lambda: found.append(source.read(8)))
    with source._lock:
        other.start()
        other.join(0.1)
        assert other.is_alive()
    other.join(60.0)
    assert len(found[0]) == 8
