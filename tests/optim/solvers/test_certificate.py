"""The rule of the certificate: when it applies, what it asks for, what it refuses."""

import math

import pytest

from dp_halfspace.exceptions import CertificateError
from dp_halfspace.optim.certificate import gradient_error, solver_tolerance

SIZES = {"n_samples": 1000, "n_columns": 10, "block_rows": 1000, "row_norm": 1.0, "ridge": 10.0}


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


NOTHING = {"slope": 0.0, "smoothness": 0.0, "evaluation": 0.0}


@pytest.mark.parametrize("name", ["n_samples", "n_columns"])
def test_sizes_are_refused_where_the_analysis_ends(name):
    """At 1e-3 of the inverse unit roundoff, whatever the numbers are multiplied by."""
    with pytest.raises(CertificateError, match="too large"):
        gradient_error(**{**SIZES, name: 10**13}, **NOTHING, radius=1.0)
    gradient_error(**{**SIZES, name: 10**12}, **NOTHING, radius=1.0)


def test_underflow_has_its_own_term():
    """Gradients of subnormal numbers have an error although every bound of the theorem is zero."""
    found = gradient_error(**{**SIZES, "ridge": 0.0}, **NOTHING, radius=0.0)
    assert 1000 * 10 * 2.0**-675 <= found <= 2.0**-480


def test_the_bound_has_the_unit_of_the_rows():
    terms = {"slope": 1.0, "smoothness": 0.25, "evaluation": 1.0}
    one = gradient_error(**SIZES, **terms, radius=4.0, linear=1.0)
    sizes = {**SIZES, "row_norm": 8.0, "ridge": 640.0}
    assert gradient_error(**sizes, **terms, radius=0.5, linear=8.0) == pytest.approx(8.0 * one)


def test_scales_are_refused_beyond_their_limits():
    for norm, radius in ((2.0**100, 2.0**100), (2.0**-100, 0.0)):
        gradient_error(**{**SIZES, "row_norm": norm}, **NOTHING, radius=radius)
    for norm, radius in (
        (2.0**-101, 1),
        (2.0**101, 1),
        (1, 2.0**101),
        (math.nan, 1),
        (1, math.nan),
    ):
        with pytest.raises(CertificateError, match="norms"):
            gradient_error(**{**SIZES, "row_norm": norm}, **NOTHING, radius=radius)


def test_blocks_that_are_added_plainly_count_each():
    sizes = {"n_samples": 100_000, "n_columns": 3, "block_rows": 10, "row_norm": 1.0}
    bounds = {"ridge": 0.1, "radius": 1.0, "slope": 1.0, "smoothness": 0.25, "evaluation": 1.0}
    plain, kahan = (gradient_error(**sizes, **bounds, compensated=c) for c in (False, True))
    assert plain > 2.0**-53 * 10_000 * 100_000
    assert kahan < 0.1 * plain
