"""Events are validated, frozen, hashable facts that survive a round trip."""

import dataclasses
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_halfspace.privacy.events import (
    Either,
    Exponential,
    Gaussian,
    ObjectivePerturbation,
    Pure,
    Repeated,
    SampledGaussian,
    _merge_terms,
    event_from_dict,
    gaussian_terms,
    largest_loss,
)
from tests.privacy.oracles import of_gaussian

numbers = st.floats(0, 1e3) | st.just(math.inf)
short = st.lists(numbers, max_size=4)
vertices = st.lists(st.tuples(st.integers(1, 10**6), numbers), max_size=4)
singles = st.one_of(
    *(st.builds(kind, numbers) for kind in (Gaussian, Pure, Exponential)),
    st.builds(SampledGaussian, st.integers(1, 10**6), numbers),
    st.builds(Either, numbers, numbers),
    st.builds(
        lambda j, rest, pairwise: ObjectivePerturbation(j, ((1, 0.0), *rest), pairwise),
        *(numbers, vertices, st.booleans()),
    ),
    st.builds(
        lambda runs, j, mu, shares: of_gaussian(1.0 + runs, j, mu, (1.0, *shares)),
        *(numbers, numbers, numbers, short),
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
    (field,) = dataclasses.fields(kind)
    for value in (1, np.float32(1), np.float64(1)):
        assert type(getattr(kind(value), field.name)) is float
        assert kind(value) == kind(1.0)
    assert math.copysign(1, getattr(kind(-0.0), field.name)) == 1
    assert json.dumps(Repeated(kind(1.0), np.int64(3)).to_dict())


def test_lists_are_copied_and_shares_have_a_default():
    vertices, shares = [[1, 0.0], [2, np.float64(0.3)]], [np.float64(0.5), 1]
    objective = ObjectivePerturbation(0.1, vertices)
    selection = of_gaussian(3, np.float32(0.5), 1, shares)
    vertices[1][1] = shares[0] = 9.0
    assert objective == ObjectivePerturbation(0.1, ((1, 0.0), (2, 0.3)))
    assert selection == of_gaussian(3.0, 0.5, 1.0, (0.5, 1.0))
    assert type(selection.mean_runs) is float
    assert of_gaussian(1.5, 0.2, 0.1) == of_gaussian(1.5, 0.2, 0.1, (1.0,))


BAD = {
    "mean_runs": [(of_gaussian, bad, 0.1, 0.1) for bad in (0.99, math.nan)],
    "log_ratio": [(of_gaussian, 2.0, -0.1, 0.1), (ObjectivePerturbation, -0.1, ((1, 0.0),))],
    "mu": [
        (of_gaussian, 2.0, 0.1, math.nan),
        (of_gaussian, 2.0, 0.1, -0.1),
        (Gaussian, -0.1),
        (Gaussian, math.nan),
        (SampledGaussian, 10, -0.1),
        (Either, 0.1, -0.1),
        (ObjectivePerturbation, 0.1, ((1, 0.0), (1, -1.0))),
    ],
    "shares": [
        *((of_gaussian, 2.0, 0.1, 0.1, bad) for bad in ((), (0.2, 0.2), (1.0, -0.1))),
        (of_gaussian, math.inf, 0.1, 0.1, (0.0,)),
    ],
    "epsilon": [
        *((kind, bad) for kind in (Pure, Exponential) for bad in (-1, math.nan)),
        (Either, -0.1, 0.1),
    ],
    "vertices": [
        (ObjectivePerturbation, 0.1, bad) for bad in (((1, 0.2),), (), ((2, 0.1), (1, 0.2)))
    ],
    "multiplicity": [(ObjectivePerturbation, 0.1, ((bad, 0.0),)) for bad in (0, 1.5)],
    "n_records": [(SampledGaussian, bad, 0.1) for bad in (0, 1.5, True)],
    "count": [(Repeated, Gaussian(1.0), bad) for bad in (0, -2, 2.0, True)],
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_values_are_named(name):
    for kind, *arguments in BAD[name]:
        with pytest.raises(ValueError, match=rf"^{name} "):
            kind(*arguments)
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
        {"type": "RandomStopping", "mean_runs": 2.0, "log_ratio": 0.1, "mu": 0.1},
    ],
)
def test_unknown_data_is_refused(data):
    with pytest.raises(ValueError):  # noqa: PT011
        event_from_dict(data)


def test_descriptions_carry_the_numbers():
    assert "0.25" in Gaussian(0.25).describe()
    assert "|log-ratio| <= 0.5" in Pure(0.5).describe()
    assert "range <= 0.5" in Exponential(0.5).describe()
    assert "one secret record of 70" in SampledGaussian(70, 0.25).describe()
    event = ObjectivePerturbation(0.1, ((1, 0.0), (3, 0.7)), pairwise=True)
    assert event.describe().startswith("pairwise objective perturbation")
    assert "3 x 0.7" in event.describe()
    assert "12.5 on average, of mu = 0.15" in of_gaussian(12.5, 0.3, 0.15).describe()


def test_a_product_of_profiles_is_rounded_up():
    rng = np.random.default_rng(0)
    for _ in range(200):
        shift, mu, count = float(rng.uniform()), float(rng.uniform()), int(rng.integers(2, 12))
        event = ObjectivePerturbation(shift, ((1, 0.0), (1, mu)))
        terms = gaussian_terms(((event, count),))
        assert all(Fraction(found) >= count * Fraction(shift) for _, found, _ in terms)
        assert max(Fraction(found) ** 2 for *_, found in terms) >= count * Fraction(mu) ** 2
    rare = of_gaussian(1.0, 0.5, 0.1, (1e-200, 1.0))
    assert min(weight for weight, *_ in gaussian_terms(((rare, 2),))) > 0.0


def test_terms_that_are_added_up_have_the_largest_shift_and_mu():
    small, large = (1.0, 0.5, 0.1), (1.0, 0.5 * (1 + 1e-14), 0.1 * (1 + 1e-14))
    for terms in ((small, large), (large, small)):
        ((weight, shift, square),) = _merge_terms(terms)
        assert (weight, shift, square) == (2.0, *large[1:])


def test_the_largest_loss_of_a_choice_without_noise_is_that_of_its_worst_run():
    assert largest_loss(of_gaussian(2.0, 0.5, 0.0, (0.5, 0.5))) == 0.5
    assert largest_loss(of_gaussian(2.0, 0.5, 1e-9)) == math.inf
