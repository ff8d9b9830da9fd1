"""Events are validated, frozen, hashable facts that survive a round trip."""

import dataclasses
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_halfspace.privacy.events import (
    Exponential,
    Gaussian,
    ObjectivePerturbation,
    Pure,
    Repeated,
    Selection,
    event_from_dict,
)
from tests.privacy.oracles import of_gaussian

numbers = st.floats(0, 1e3) | st.just(math.inf)
singles = st.one_of(
    st.builds(Gaussian, numbers),
    st.builds(Pure, numbers),
    st.builds(Exponential, numbers),
    st.builds(
        lambda j, rest, pairwise: ObjectivePerturbation(j, ((1, 0.0), *rest), pairwise),
        numbers,
        st.lists(st.tuples(st.integers(1, 10**6), numbers), max_size=4),
        st.booleans(),
    ),
    st.builds(
        lambda runs, j, mu, shares: of_gaussian(1.0 + runs, j, mu, (1.0, *shares)),
        numbers,
        numbers,
        numbers,
        st.lists(numbers, max_size=4),
    ),
    st.builds(
        lambda runs, j, terms, shares: Selection(
            1.0 + runs, j, ((1.0, 0.0, 0.1), *terms), (1.0, *shares)
        ),
        numbers,
        numbers,
        st.lists(st.tuples(numbers, numbers, numbers), max_size=4),
        st.lists(numbers, max_size=4),
    ),
)
events = singles | st.builds(Repeated, singles, st.integers(1, 10**9))


@given(events | st.builds(Repeated, events, st.integers(1, 5)))
def test_round_trip(event):
    for copy in (
        event_from_dict(event.to_dict()),
        event_from_dict(json.loads(json.dumps(event.to_dict(), allow_nan=False))),
        pickle.loads(pickle.dumps(event)),
    ):
        assert copy == event
        assert hash(copy) == hash(event)
        assert type(copy) is type(event)
    assert event.describe()
    assert "\n" not in event.describe()


@pytest.mark.parametrize("kind", [Gaussian, Pure, Exponential])
def test_numbers_become_plain_floats(kind):
    for value in (1, np.float32(1), np.float64(1), True):
        (field,) = dataclasses.fields(kind)
        stored = getattr(kind(value), field.name)
        assert type(stored) is float
        assert kind(value) == kind(1.0)
    assert math.copysign(1, getattr(kind(-0.0), field.name)) == 1


@pytest.mark.parametrize("event", [Gaussian(1.0), Repeated(Pure(1.0), 2)])
def test_events_are_frozen_and_slotted(event):
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(event, dataclasses.fields(event)[0].name, 0.0)
    assert not hasattr(event, "__dict__")


def test_mutable_vertices_are_copied():
    vertices = [[1, 0.0], [2, np.float64(0.3)]]
    event = ObjectivePerturbation(0.1, vertices)
    vertices[1][1] = 9.0
    assert event == ObjectivePerturbation(0.1, ((1, 0.0), (2, 0.3)))
    assert hash(event) == hash(ObjectivePerturbation(0.1, ((1, 0.0), (2, 0.3))))


def test_shares_are_copied_and_have_a_default():
    shares = [np.float64(0.5), 1]
    event = of_gaussian(3, np.float32(0.5), 1, shares)
    shares[0] = 9.0
    assert event == of_gaussian(3.0, 0.5, 1.0, (0.5, 1.0))
    assert all(type(x) is float for x in (event.mean_runs, *event.terms[0], *event.shares))
    assert of_gaussian(1.5, 0.2, 0.1) == of_gaussian(1.5, 0.2, 0.1, (1.0,))
    assert of_gaussian(4.0, 0.2, 0.1, (0.25, 0.0)).shares == (0.25, 0.0)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: of_gaussian(0.99, 0.1, 0.1), "mean_runs"),
        (lambda: of_gaussian(math.nan, 0.1, 0.1), "mean_runs"),
        (lambda: of_gaussian(2.0, -0.1, 0.1), "log_ratio"),
        (lambda: of_gaussian(2.0, 0.1, math.nan), "mu"),
        (lambda: of_gaussian(2.0, 0.1, 0.1, ()), "shares"),
        (lambda: of_gaussian(2.0, 0.1, 0.1, (0.2, 0.2)), "shares"),
        (lambda: of_gaussian(2.0, 0.1, 0.1, (1.0, -0.1)), "shares"),
        (lambda: of_gaussian(math.inf, 0.1, 0.1, (0.0,)), "shares"),
        (lambda: Selection(2.0, 0.1, ((1.0, 0.0, -0.1),)), "mu"),
        (lambda: Selection(2.0, 0.1, ((1.0, -0.1, 0.1),)), "shift"),
        (lambda: Selection(2.0, 0.1, ((0.9, 0.1, 0.1),)), "terms"),
        (lambda: Selection(2.0, 0.1, ()), "terms"),
        (lambda: Gaussian(-0.1), "mu"),
        (lambda: Gaussian(math.nan), "mu"),
        (lambda: Pure(-1), "epsilon"),
        (lambda: Pure(math.nan), "epsilon"),
        (lambda: Exponential(-1), "epsilon"),
        (lambda: Exponential(math.nan), "epsilon"),
        (lambda: ObjectivePerturbation(-0.1, ((1, 0.0),)), "log_ratio"),
        (lambda: ObjectivePerturbation(0.1, ((1, 0.2),)), "vertices"),
        (lambda: ObjectivePerturbation(0.1, ()), "vertices"),
        (lambda: ObjectivePerturbation(0.1, ((0, 0.0),)), "multiplicity"),
        (lambda: ObjectivePerturbation(0.1, ((1.5, 0.0),)), "multiplicity"),
        (lambda: ObjectivePerturbation(0.1, ((1, 0.0), (1, -1.0))), "mu"),
        (lambda: Repeated(Gaussian(1.0), 0), "count"),
        (lambda: Repeated(Gaussian(1.0), -2), "count"),
        (lambda: Repeated(Gaussian(1.0), 2.0), "count"),
        (lambda: Repeated(Gaussian(1.0), True), "count"),
    ],
)
def test_invalid_values_are_named(call, name):
    with pytest.raises(ValueError, match=rf"^{name} "):
        call()


def test_counts_may_be_numpy_integers():
    event = Repeated(Gaussian(1.0), np.int64(3))
    assert type(event.count) is int
    assert json.dumps(event.to_dict())


def test_only_events_are_repeated():
    with pytest.raises(TypeError, match="not a privacy event"):
        Repeated(0.3, 2)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"type": "Laplace", "scale": 1.0},
        {"type": ["Pure"], "epsilon": 1.0},
        {"type": "Pure"},
        {"type": "Pure", "epsilon": 1.0, "mu": 1.0},
        {"type": "Gaussian", "epsilon": 1.0},
        {"type": "Gaussian", "mu": "nan"},
        {"type": "Repeated", "event": {"type": "Gaussian"}, "count": 1},
        {"type": "Selection", "mean_runs": 2.0, "log_ratio": 0.1, "mu": 0.1},
    ],
)
def test_unknown_data_is_refused(data):
    with pytest.raises(ValueError):  # noqa: PT011
        event_from_dict(data)


def test_descriptions_carry_the_numbers():
    assert "0.25" in Gaussian(0.25).describe()
    assert "|log-ratio| <= 0.5" in Pure(0.5).describe()
    assert "range <= 0.5" in Exponential(0.5).describe()
    event = ObjectivePerturbation(0.1, ((1, 0.0), (3, 0.7)), pairwise=True)
    assert event.describe().startswith("pairwise objective perturbation")
    assert "3 x 0.7" in event.describe()
    assert "12.5 on average, of mu = 0.15" in of_gaussian(12.5, 0.3, 0.15).describe()
    assert "2 Gaussian losses" in Selection(2.0, 0.1, ((1, 0, 0), (1, 0, 1))).describe()
