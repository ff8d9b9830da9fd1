"""The rule of the certificate: when it applies, what it asks for, what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dp_halfspace.exceptions import CertificateError
from dp_halfspace.optim.solvers.certificate import (
    UNIT,
    gradient_error,
    solver_tolerance,
)

SIZES = {"n_samples": 1000, "n_columns": 10, "block_rows": 1000, "row_norm": 1.0, "ridge": 10.0}


def test_blocks_make_the_bound_smaller():
    sizes = {**SIZES, "n_samples": 10**6, "radius": 5.0, "slope": 1.0}
    rest = {"smoothness": 0.25, "evaluation": 12.0}
    one, many = (gradient_error(**{**sizes, "block_rows": rows}, **rest) for rows in (10**6, 4000))
    assert many < one / 100


@pytest.mark.parametrize("error", [1e-12, 1e-6])
def test_rule(error):
    rule = solver_tolerance(2.0, error, 1e-6, 6.2)
    assert rule.target == max(2e-7, 10 * error)
    assert rule.certified == rule.target + error + 1e-6
    assert (rule.float_error, rule.radius) == (error, 6.2)


def test_what_is_certified_may_double_the_noise_and_no_more():
    assert solver_tolerance(1.0, 0.0, 0.499, 3.0).certified < 0.5
    for change, error, linear_error in (
        (1.0, 0.0, 0.501),
        (1.0, 0.05, 0.0),
        *((bad, 0.0, 0.0) for bad in (0.0, -1.0, math.nan, math.inf)),
        (1.0, math.nan, 0.0),
        (1.0, 0.0, math.nan),
    ):
        with pytest.raises(CertificateError, match="influence"):
            solver_tolerance(change, error, linear_error, 3.0)


@pytest.mark.parametrize("sizes", [{"n_samples": 10**13}, {"n_columns": 10**13}])
def test_sizes_are_refused_where_the_analysis_ends(sizes):
    """At 1e-3 of the inverse unit roundoff, whatever the numbers are multiplied by."""
    zeros = {"slope": 0.0, "smoothness": 0.0, "evaluation": 0.0, "radius": 1.0}
    with pytest.raises(CertificateError, match="too large"):
        gradient_error(**{**SIZES, **sizes}, **zeros)
    gradient_error(**{**SIZES, **{name: size // 10 for name, size in sizes.items()}}, **zeros)


def test_underflow_has_its_own_term():
    """Gradients of subnormal numbers have an error although every bound of the theorem is zero."""
    nothing = {"slope": 0.0, "smoothness": 0.0, "evaluation": 0.0, "radius": 0.0}
    found = gradient_error(**{**SIZES, "ridge": 0.0}, **nothing)
    assert 1000 * 10 * 2.0**-675 <= found <= 2.0**-480


@pytest.mark.parametrize(
    ("row_norm", "radius"),
    [(2.0**-101, 1.0), (2.0**101, 1.0), (1.0, 2.0**101), (math.nan, 1.0), (1.0, math.nan)],
)
def test_scales_are_refused_beyond_their_limits(row_norm, radius):
    rest = {"slope": 0.0, "smoothness": 0.0, "evaluation": 0.0}
    for good in ((2.0**100, 2.0**100), (2.0**-100, 0.0)):
        gradient_error(**{**SIZES, "row_norm": good[0]}, radius=good[1], **rest)
    with pytest.raises(CertificateError, match="norms"):
        gradient_error(**{**SIZES, "row_norm": row_norm}, radius=radius, **rest)


def test_unit():
    assert np.finfo(np.float64).eps / 2 == UNIT
