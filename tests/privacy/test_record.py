"""A record proves its claim, cannot be changed and survives every round trip."""

import copy
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.accounting import epsilon
from dp_halfspace.privacy.events import (
    Either,
    Exponential,
    Gaussian,
    ObjectivePerturbation,
    Pure,
    Repeated,
)
from dp_halfspace.privacy.profiles import gdp_epsilon, gdp_mu
from dp_halfspace.privacy.record import PrivacyRecord

MU = gdp_mu(1.0, 1e-6)


def record(**changes):
    fields = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "events": (Gaussian(MU),),
        "noise": "os",
        "public": {"n_samples": 100, "classes": ["no", "yes"]},
    }
    return PrivacyRecord(**{**fields, **changes})


def no_guarantee(**changes):
    fields = {"epsilon": math.inf, "delta": 0.0, "events": (Pure(math.inf),), "noise": "none"}
    return record(**{**fields, **changes})


# --- the claim is proved ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 0.99},
        {"epsilon": 1.0 - 1e-9},
        {"delta": 0.99e-6},
        {"delta": 0.0},
        {"events": (Gaussian(MU), Pure(1e-3))},
        {"events": (Gaussian(MU * (1 + 1e-8)),)},
        {"events": (Repeated(Gaussian(MU), 2),)},
        {"events": (Gaussian(MU), Gaussian(MU))},
        {"events": (Gaussian(math.inf),)},
        {"events": (Pure(math.inf),), "delta": 0.5},
        {"epsilon": 0.7, "delta": 0.0, "events": (Pure(0.4), Pure(0.3 + 1e-15))},
    ],
)
def test_a_record_cannot_claim_more_than_its_events(changes):
    with pytest.raises(ValueError, match="the events prove delta="):
        record(**changes)


def test_a_constructor_that_forgets_the_proof_would_be_caught(monkeypatch):
    """Planted bug: an accountant that reports nothing lets any claim through."""
    monkeypatch.setattr(accounting, "delta", lambda events, epsilon: 0.0)
    assert record(epsilon=0.1).epsilon_at(1e-6) > 0.9


@given(st.floats(1e-3, 40), st.floats(1e-15, 0.4), st.integers(1, 1000))
def test_calibrated_events_are_accepted(budget, delta, count):
    """What gdp_mu grants, in one piece or split, always passes."""
    mu = gdp_mu(budget, delta)
    event = Repeated(Gaussian(mu / math.sqrt(count)), count)
    assert record(epsilon=budget, delta=delta, events=(event,)).epsilon == budget
    raised = gdp_epsilon(mu, delta)
    assert record(epsilon=raised, delta=delta, events=(Gaussian(mu),)).epsilon == raised


small = st.floats(0, 1)


@settings(max_examples=settings.default.max_examples * 2 // 3)
@given(
    st.lists(st.one_of(*(st.builds(k, small) for k in (Gaussian, Pure, Exponential))), max_size=4),
    st.floats(1e-12, 0.3),
)
def test_computed_claims_are_accepted(events, delta):
    """And weaker ones."""
    claim = epsilon(events, delta)
    accepted = record(epsilon=claim, delta=delta, events=events)
    assert accepted.delta_at(claim) <= delta
    assert accepted.epsilon_at(delta) == claim
    assert record(epsilon=claim, delta=accepted.delta_at(claim), events=events).epsilon == claim
    assert record(epsilon=claim + 1.0, delta=delta, events=events).epsilon_at(delta) == claim


# --- validation ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": -1.0}, "^epsilon "),
        ({"epsilon": math.nan}, "^epsilon "),
        ({"delta": 1.0}, "^delta "),
        ({"delta": math.nan}, "^delta "),
        ({"adjacency": "add-remove"}, "^adjacency "),
        ({"noise": "numpy"}, "^noise "),
        ({"noise": "none"}, "contradicts"),
        ({"noise": "none", "epsilon": math.inf}, "contradicts"),
        ({"noise": "none", "epsilon": math.inf, "events": ()}, "contradicts"),
        ({"public": [("n", 1), ("n", 2)]}, "twice"),
        ({"events": (0.5,)}, "not a privacy event"),
    ],
)
def test_invalid_fields_are_named(changes, message):
    with pytest.raises((ValueError, TypeError), match=message):
        record(**changes)
    with pytest.raises(ValueError, match=r"^epsilon "):
        record().delta_at(-1.0)


# --- immutability and round trips ---------------------------------------------------------------


def test_a_record_is_deeply_immutable():
    weights, events = {0: 1.0, 1: [2.0]}, [Gaussian(MU)]
    kept = record(events=events, public={"class_weight": weights, "a": np.arange(3)})
    before = kept.to_json()
    weights[1].append(3.0)
    weights[2] = 9.0
    events.append(Pure(5.0))
    kept.to_dict()["public"]["a"].append(7)
    assert kept.to_json() == before
    assert hash(kept) == hash(copy.deepcopy(kept))


PUBLIC = {
    "n": (np.int64(7), 7),
    "flag": (np.bool_(True), True),
    "none": (None, None),
    "scale": (np.float32(0.5), 0.5),
    "classes": (np.array(["a", "b"]), ["a", "b"]),
    "matrix": (np.eye(2), [[1.0, 0.0], [0.0, 1.0]]),
    "weights": ({"a": 1, "b": 2.5}, [["a", 1], ["b", 2.5]]),
    "limit": (math.inf, "inf"),
    "other": (1 + 2j, "(1+2j)"),
}
RICH = record(
    epsilon=9.0,
    adjacency="replace-one-label",
    noise="seeded",
    events=(
        Repeated(Gaussian(0.1), 40),
        Exponential(0.1),
        Pure(0.2),
        ObjectivePerturbation(0.1, ((1, 0.0), (2, 0.1), (1, 0.2)), pairwise=True),
    ),
    public={name: given for name, (given, _) in PUBLIC.items()},
)


def refuse(constant):
    raise AssertionError(constant)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("original", [record(), RICH, no_guarantee()])
def test_round_trips(original):
    for back in (
        PrivacyRecord.from_dict(original.to_dict()),
        PrivacyRecord.from_dict(json.loads(original.to_json(), parse_constant=refuse)),
        pickle.loads(pickle.dumps(original)),
        copy.copy(original),
    ):
        assert back == original
        assert hash(back) == hash(original)
    assert back.summary() == original.summary()
    assert original != record(delta=2e-6)
    assert json.dumps(RICH.to_dict()["public"]) == json.dumps(
        {k: v for k, (_, v) in PUBLIC.items()}
    )


@pytest.mark.parametrize("change", [{"extra": 1}, {"noise": None}, {"epsilon": 0.5}])
def test_tampered_data_are_refused(change):
    data = {**record().to_dict(), **change}
    with pytest.raises(ValueError):  # noqa: PT011
        PrivacyRecord.from_dict(data)
    del data["events"]
    with pytest.raises(ValueError, match="fields"):
        PrivacyRecord.from_dict(data)


# --- what people read ---------------------------------------------------------------------------


SAYS = [
    (
        record(),
        [
            "(1.0, 1e-06)-differential privacy",
            "replace-one;",
            "one record, features and label together",
            "operating system",
            f"{MU:.6g}",
            "n_samples = 100",
            "classes = ('no', 'yes')",
            "running time",
        ],
    ),
    (
        RICH,
        [
            "the guarantee does not hold against anyone who knows or guesses the seed",
            "differ in the label of one record",
        ],
    ),
    (
        no_guarantee(),
        ["Guarantee: none (epsilon is infinite)", "Noise: none was added; nothing is guaranteed."],
    ),
    (record(events=[Gaussian(MU / 20)] * 400), ["400 times: Gaussian"]),
]


@pytest.mark.parametrize(("written", "phrases"), SAYS)
def test_summary_says_what_an_auditor_needs(written, phrases):
    text = written.summary()
    assert [phrase for phrase in phrases if phrase not in text] == []
    assert ("does not hold" in text) == (written is RICH)
    assert len(text.splitlines()) < 30
    head = f"PrivacyRecord(epsilon={written.epsilon}, delta={written.delta}, adjacency="
    assert repr(written).startswith(head)


def test_profile_in_the_summary_is_rounded_up():
    shown, several = {}, record(epsilon=9.0, events=(Repeated(Gaussian(0.1), 40), Pure(0.2)))
    for line in several.summary().splitlines():
        if line.startswith("  - delta"):
            _, _, at, _, value = line.split()
            shown[float(at)] = float(value)
    assert list(shown) == [1e-3, 1e-5, 1e-6, 1e-7, 1e-9, 0.0]
    for at, value in shown.items():
        exact = several.epsilon_at(at)
        assert value == exact == math.inf or exact <= value <= exact * (1 + 2e-5)


def test_profile_in_the_summary_does_not_exceed_the_claim():
    """What a record computes of its claim may be larger by the tolerance of the computation."""
    mu = accounting.calibrate(
        lambda mu: (Pure(0.06), Either(0.94, mu)), 1.0, 1e-6, lower=0.1, upper=1.0
    )
    written = record(events=(Pure(0.06), Either(0.94, mu)))
    assert written.epsilon_at(1e-6) > written.epsilon
    lines = [line.split() for line in written.summary().splitlines() if "  - delta" in line]
    assert {float(at): float(value) for _, _, at, _, value in lines}[1e-6] == written.epsilon


# --- for others to recompute ----------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 99, 100, 101, 40_000, 10**9])
def test_every_run_of_a_release_is_counted(count):
    events = (Repeated(Gaussian(1e-6), count), Gaussian(1e-6), Repeated(Pure(1e-12), count))
    gaussian, pure = record(epsilon=1.0, events=events).to_dp_events()
    assert (gaussian["count"], pure["count"]) == (count + 1, count)
    assert gaussian["event"]["noise_multiplier"] == pytest.approx(1e6)


def test_dp_accounting_recomputes_the_cost():
    """As the docstring says of every relation: one accountant doubles for one of them."""
    dp_event = pytest.importorskip("dp_accounting").dp_event
    from dp_accounting import NeighboringRelation  # noqa: PLC0415
    from dp_accounting.pld import PLDAccountant  # noqa: PLC0415
    from dp_accounting.rdp import RdpAccountant  # noqa: PLC0415

    def built(plain):
        fields = {k: built(v) if isinstance(v, dict) else v for k, v in plain.items()}
        return getattr(dp_event, fields.pop("type"))(**fields)

    events = (Repeated(Gaussian(0.05), 20), Gaussian(0.1), Gaussian(0.0))
    claim = record(epsilon=2.0, events=events)
    twice = epsilon((Repeated(Gaussian(0.1), 20), Gaussian(0.2)), 1e-6)
    for relation in NeighboringRelation:
        is_doubled = relation is NeighboringRelation.REPLACE_ONE
        exact, bound = PLDAccountant(relation), RdpAccountant(neighboring_relation=relation)
        for event in claim.to_dp_events():
            exact.compose(built(event))
            bound.compose(built(event))
        expected = twice if is_doubled else claim.epsilon_at(1e-6)
        assert exact.get_epsilon(1e-6) == pytest.approx(expected, rel=1e-3), relation
        assert 1.0 < bound.get_epsilon(1e-6) / claim.epsilon_at(1e-6) < 1.2, relation


def test_what_others_cannot_compose_is_not_guessed():
    for event in (ObjectivePerturbation(0.1, ((1, 0.0), (2, 0.1))), Pure(0.2), Exponential(0.1)):
        (release,) = record(epsilon=1.0, events=(event,)).to_dp_events()
        assert release["event"] == {"type": "UnsupportedDpEvent", "event": event.to_dict()}


@given(st.floats(1e-9, 100.0))
def test_parameters_for_others_are_on_the_safe_side(value):
    (gaussian,) = record(epsilon=math.inf, events=(Gaussian(value),)).to_dp_events()
    assert Fraction(gaussian["event"]["noise_multiplier"]) * Fraction(value) <= 1
