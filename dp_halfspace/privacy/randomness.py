"""Where random bytes come from.

Two kinds of randomness never meet. *Noise* comes from a :class:`ByteSource`: the operating
system, or, for an integer seed, a deterministic stream whose noise anyone with the seed can
subtract. *Public objects* (random projections, permutations) come from an ordinary numpy
generator on a stream of its own, so publishing them says nothing about the noise.
"""

from __future__ import annotations

import hashlib
import math
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import ClassVar, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.exceptions import warn_caller

# Bytes of one call of SHAKE-256.
_CHUNK_BYTES = 4096


class ByteSource(Protocol):
    """A source of uniform random bytes; ``kind`` is ``"os"`` or ``"seeded"``."""

    @property
    def kind(self) -> str:
        """``"os"`` for operating-system randomness, ``"seeded"`` for a reproducible stream."""

    def read(self, n: int) -> bytes:
        """Return the next ``n`` bytes."""

    def branches(self) -> Callable[[int], ByteSource]:
        """Return sources of further bytes for the entries of one draw, by their number.

        A draw must read a public number of bytes of the source itself. Where a private value or a
        rounding decides how many it takes, it reads the others here: they shift no later noise.
        """


@dataclass(frozen=True, slots=True)
class OperatingSystemBytes:
    """Bytes of the operating system's generator, which has no state that could be copied."""

    kind: ClassVar[str] = "os"

    def read(self, n: int) -> bytes:
        """Return ``n`` fresh bytes of :func:`os.urandom`."""
        return os.urandom(n)

    def branches(self) -> Callable[[int], ByteSource]:
        """Return itself for every entry, since no byte is ever read twice."""
        return lambda _: self


OS_RANDOMNESS = OperatingSystemBytes()


def read_words(count: int, source: ByteSource) -> NDArray[np.uint64]:
    """Return ``count`` uniform 64-bit words."""
    return np.frombuffer(source.read(8 * count), dtype="<u8").astype(np.uint64, copy=False)


def _key(seed: int, purpose: str) -> bytes:
    """Return an injective encoding of (purpose, seed), the key of one stream."""
    label = purpose.encode()
    number = seed.to_bytes((seed.bit_length() + 7) // 8, "little")
    sizes = len(label).to_bytes(8, "little") + len(number).to_bytes(8, "little")
    return b"dp_halfspace/stream/1" + sizes + label + number


def _number(number: int) -> bytes:
    """Return the number of a block, or of a draw or an entry of a branch, in 16 bytes of a key.

    A key with another number of them is another one.
    """
    return number.to_bytes(16, "little")


class SeededBytes:
    """Deterministic stream of bytes: SHAKE-256 of (purpose, seed) in counter mode (FIPS 202).

    The same on every platform, however it is cut into reads. A branch is a stream of its own, which
    is named by the numbers of its draw and its entry, too. A stream cannot be pickled, copied or
    read in a forked child: two readers would draw the same noise, and the difference of two
    releases would be free of noise.
    """

    kind: ClassVar[str] = "seeded"
    __slots__ = ("_buffer", "_counter", "_draws", "_key", "_lock", "_name", "_place", "_process")

    def __init__(self, seed: int, purpose: str, *place: int) -> None:
        if seed < 0:
            raise ValueError(f"seed must be nonnegative, got {seed}")
        self._name, self._place = (seed, purpose), place
        self._key = _key(seed, purpose) + b"".join(_number(part) for part in place)
        self._counter = self._draws = 0
        self._buffer = b""
        self._lock = threading.Lock()
        self._process = os.getpid()

    def read(self, n: int) -> bytes:
        """Return the next ``n`` bytes of the stream."""
        self._check_process()
        # Without the lock, two threads could read the same bytes.
        with self._lock:
            chunks = [self._buffer]
            missing = n - len(self._buffer)
            while missing > 0:
                block = self._key + _number(self._counter)
                chunks.append(hashlib.shake_256(block).digest(_CHUNK_BYTES))
                self._counter += 1
                missing -= _CHUNK_BYTES
            stream = b"".join(chunks)
            self._buffer = stream[n:]
            return stream[:n]

    def branches(self) -> Callable[[int], ByteSource]:
        """Return streams of their own for the entries of the next draw."""
        self._check_process()
        with self._lock:
            draw = self._draws
            self._draws += 1
        return partial(SeededBytes, *self._name, *self._place, draw)

    def _check_process(self) -> None:
        """Refuse to be read in a process that inherited the stream."""
        if os.getpid() != self._process:
            raise RuntimeError(
                "a seeded noise stream was inherited by a forked process and would repeat "
                "its parent's noise; make a stream with a purpose of its own in each process"
            )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse: a copy of the stream would repeat its noise."""
        raise TypeError(
            "a seeded noise stream cannot be pickled or copied: two readers would draw the "
            "same noise; pass the seed and make a stream with a purpose of its own instead"
        )


def _check_seed(random_state: object) -> int:
    """Return ``random_state`` as an int or refuse everything that is not a plain seed."""
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        seed = int(random_state)
        if seed >= 0:
            return seed
    raise ValueError(
        "random_state must be None (operating-system randomness) or a nonnegative int, got "
        f"{random_state!r}; generator objects are refused because their state can be copied"
    )


def noise_kind(random_state: int | None, epsilon: float) -> str:
    """Return the kind of the noise of a fit: of the source that `noise_source` gives, or none."""
    if math.isinf(epsilon):
        return "none"
    return OS_RANDOMNESS.kind if random_state is None else "seeded"


def noise_source(random_state: int | None) -> ByteSource:
    """Return the source of the noise of one fit.

    Parameters
    ----------
    random_state : int or None
        None: operating-system randomness. A nonnegative int: the deterministic stream of
        that seed. Each call with the same int starts the same stream again, so call this
        once for each fit and draw all noise of the fit from the returned source.

    Returns
    -------
    ByteSource
        Its ``kind`` is ``"os"`` or ``"seeded"``.

    Warns
    -----
    PrivacyWarning
        For an int: the noise is reproducible.

    Notes
    -----
    Privacy: with an int there is no guarantee towards anyone who knows, or can guess, the
    seed; and two releases with the same seed carry the same noise, which cancels in their
    difference.

    Examples
    --------
    >>> from dp_halfspace.privacy.randomness import noise_source
    >>> noise_source(None).kind
    'os'
    """
    if random_state is None:
        return OS_RANDOMNESS
    source = SeededBytes(_check_seed(random_state), "noise")
    warn_caller(
        "random_state is an int, so the noise is reproducible: the privacy guarantee does not hold "
        "against anyone who knows the seed. Use random_state=None for a real release."
    )
    return source


def public_generator(random_state: int | None, purpose: str) -> np.random.Generator:
    """Return a numpy generator for an object that will be published.

    Parameters
    ----------
    random_state : int or None
        None: fresh entropy of the operating system. A nonnegative int: reproducible.
    purpose : str
        Name of the object, for example ``"projection"``. Different purposes, and the
        noise of the same seed, are on unrelated streams.

    Returns
    -------
    numpy.random.Generator
        PCG64. Never use it for noise: its outputs reveal its state.

    Examples
    --------
    >>> from dp_halfspace.privacy.randomness import public_generator
    >>> first = public_generator(0, "projection").random()
    >>> first == public_generator(0, "projection").random()
    True
    >>> first == public_generator(0, "permutation").random()
    False
    """
    if random_state is None:
        words = OS_RANDOMNESS.read(32)
    else:
        key = _key(_check_seed(random_state), f"public/{purpose}")
        words = hashlib.shake_256(key).digest(32)
    entropy = int.from_bytes(words, "little")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))
