"""Exactly uniform integers."""

import itertools

import numpy as np
import pytest
from scipy import stats

from dp_halfspace.privacy.discrete import uniform_below
from dp_halfspace.privacy.randomness import SeededBytes

FALSE_ALARM = 1e-6


def seeded(seed=0):
    return SeededBytes(seed, "test")


class Bytes:
    """Given bytes, then an error."""

    kind = "seeded"

    def __init__(self, content):
        self.content = content

    def read(self, n):
        if n > len(self.content):
            raise EOFError
        out, self.content = self.content[:n], self.content[n:]
        return out


@pytest.mark.parametrize("n", [1, 2, 3, 7, 100, 128, 200, 256])
def test_every_outcome_has_the_same_number_of_bytes(n):
    counts = dict.fromkeys(range(n), 0)
    for byte in range(256):
        try:
            counts[uniform_below(n, Bytes(bytes([byte])))] += 1
        except EOFError:  # rejected: a second byte is asked for
            continue
    assert len(set(counts.values())) == 1
    assert sum(counts.values()) > 128 or n == 1


def test_two_byte_outcomes_are_equally_likely():
    counts = np.zeros(1000, dtype=int)
    for pair in itertools.product(range(256), repeat=2):
        try:
            counts[uniform_below(1000, Bytes(bytes(pair)))] += 1
        except EOFError:
            continue
    assert np.all(counts == 64)


def test_large_ranges():
    n = 2**300 + 12345
    draws = [uniform_below(n, seeded(s)) for s in range(200)]
    assert all(0 <= draw < n for draw in draws)
    assert stats.kstest([draw / n for draw in draws], "uniform").pvalue > FALSE_ALARM
    assert uniform_below(10**400) != uniform_below(10**400)


@pytest.mark.parametrize("n", [0, -3])
def test_empty_range_is_refused(n):
    with pytest.raises(ValueError, match="n must be at least 1"):
        uniform_below(n)
