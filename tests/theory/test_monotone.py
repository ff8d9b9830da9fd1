"""More records or budget never raise a bound, more columns never lower it, and its parts add up."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_halfspace import theory

SLACK = 1 + 1e-7
positive = st.floats(1e-3, 1e3)
SIZE = {
    "n_samples": st.integers(1, 10**6),
    "n_features": st.integers(1, 500),
    "epsilon": st.floats(0.01, 20),
    "delta": st.sampled_from([0.0, 1e-9, 1e-4]),
}
CONVEX = {
    **SIZE,
    "lipschitz": positive,
    "smoothness": st.one_of(st.just(math.inf), positive),
    "linear_model": st.booleans(),
}
ROBUST = {
    **SIZE,
    "regularization": st.floats(1e-3, 1e2),
    "loss": st.sampled_from(["logistic", "hinge", "huber_hinge"]),
}
MARGIN = {**SIZE, "n_samples": st.integers(200, 10**6), "delta": st.just(1e-6)}
CASES = [
    ("convex_excess_risk", {**CONVEX, "radius": positive}),
    ("population_risk_bound", {**CONVEX, "radius": positive}),
    ("population_risk_bound", {**CONVEX, "strong_convexity": positive}),
    (
        "margin_risk_bound",
        {
            **MARGIN,
            "margin": st.floats(0.01, 1.0),
            "n_outliers": st.integers(0, 100),
            "n_steps": st.just(200),
            "population": st.booleans(),
        },
    ),
    ("tilted_risk_bound", {**ROBUST, "tilt": st.floats(0, 20), "data_norm": st.floats(0.1, 10)}),
    (
        "adversarial_risk_bound",
        {
            **ROBUST,
            "attack_radius": st.floats(1e-3, 2.0),
            "attack_norm": st.sampled_from([2, "inf"]),
            "population": st.booleans(),
        },
    ),
]
BETTER = {
    "n_samples": lambda n: 2 * n,
    "epsilon": lambda epsilon: 2 * epsilon,
    "linear_model": lambda _: True,
    "margin": lambda margin: min(1.0, 1.1 * margin),
    "n_steps": lambda n: 2 * n,
}
WORSE = {"n_features": lambda d: d + 1, "n_outliers": lambda n: n + 1}


def value_of(bound):
    if isinstance(bound, float):
        return bound
    assert bound.value == pytest.approx(bound.noise + bound.sampling + bound.bias + bound.gap)
    assert bound.published is None or bound.published >= bound.value / SLACK
    return bound.value


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "arguments"), CASES)
@given(data=st.data())
def test_bounds_are_monotone(name, arguments, data):
    drawn = {key: data.draw(strategy, label=key) for key, strategy in arguments.items()}

    def value(**changed):
        return value_of(getattr(theory, name)(**{**drawn, **changed}))

    base = value()
    assert 0 <= base < math.inf
    for key in drawn.keys() & BETTER.keys():
        assert value(**{key: BETTER[key](drawn[key])}) <= base * SLACK
    # What an attack or a tilt costs may fall with the columns: there the minimiser may be zero.
    for key in drawn.keys() & WORSE.keys() if "loss" not in drawn else ():
        assert value(**{key: WORSE[key](drawn[key])}) >= base / SLACK
