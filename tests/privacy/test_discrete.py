"""Exactly uniform integers."""

import contextlib
import itertools

import numpy as np
import pytest
from scipy import stats

from dp_halfspace.privacy.noise import uniform_below
from tests.privacy.oracles import FALSE_ALARM, seeded


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

    def branches(self):
        return lambda _: self


@pytest.mark.parametrize(
    ("n", "size"), [*((n, 1) for n in (1, 2, 3, 7, 100, 128, 200, 256)), (1000, 2)]
)
def test_every_outcome_has_the_same_number_of_bytes(n, size):
    counts = np.zeros(n, dtype=int)
    for content in itertools.product(range(256), repeat=size):
        with contextlib.suppress(EOFError):  # rejected: more bytes are asked for
            counts[uniform_below(n, Bytes(bytes(content)))] += 1
    assert len(set(counts)) == 1
    assert counts.sum() > 128 or n == 1
    for bad in (0, -3):
        with pytest.raises(ValueError, match="n must be at least 1"):
            uniform_below(bad)


def test_large_ranges():
    n = 2**300 + 12345
    draws = [uniform_below(n, seeded(s)) for s in range(200)]
    assert all(0 <= draw < n for draw in draws)
    assert stats.kstest([draw / n for draw in draws], "uniform").pvalue > FALSE_ALARM
    assert uniform_below(10**400) != uniform_below(10**400)
