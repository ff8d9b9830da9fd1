"""Constants of the kernel classifier: public, within their ranges, monotone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dp_halfspace.optim.kernel_defaults import (
    kernel_engine_defaults,
    length_scales,
    n_kernel_components,
)


def test_number_of_features():
    sizes = [n_kernel_components(n, 0.1) for n in (1, 100, 1000, 3000, 10**4, 10**9)]
    assert sizes == sorted(sizes)
    assert sizes[0] == 64
    assert sizes[-1] == n_kernel_components(10, math.inf) == 600
    assert all(size % 2 == 0 for size in sizes)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "cauchy"])
def test_length_scales(kernel):
    factor = {"laplacian": 3.0, "cauchy": math.sqrt(2)}.get(kernel, 1.0)
    for n, n_classes, n_fine in (
        (1, 2, 50),
        (4000, 2, 50),
        (20_000, 2, 10),
        (10**7, 2, 0),
        (1, 10, 10),
    ):
        scales = length_scales(kernel, n, 9, n_classes, 100) / factor
        np.testing.assert_allclose(scales[: 100 - n_fine], 0.7)
        fine = scales[100 - n_fine :]
        assert len(fine) == n_fine
        assert ((fine > 0.04) & (fine < 0.35)).all()


def test_engine():
    for n_classes, clip in ((2, 0.5), (3, 1.0), (10, 1.0)):
        defaults = kernel_engine_defaults(n_classes)
        assert defaults.clip == clip
        assert defaults.metric_columns > 2000
