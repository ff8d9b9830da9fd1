"""What a ledger tells people: its state, a summary, and why it refuses.

Every text begins with what was asked for, at the delta that was asked for. What the same releases
cost together, at the delta of the total budget, is a second sentence: it is usually less, and it
decides what is accepted.
"""

from __future__ import annotations

from collections.abc import Sequence

from dp_halfspace.ledger.advice import largest_epsilon
from dp_halfspace.ledger.cap import Cap
from dp_halfspace.ledger.entries import Balance
from dp_halfspace.privacy.events import Event, Gaussian, Pure
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.record import NEIGHBOURS, PrivacyRecord, rounded_text


def describe_state(cap: Cap, balance: Balance) -> str:
    """Describe what was asked for, and what the same releases cost together."""
    count = balance.last
    if not count:
        return "no entry yet"
    ends = [f"{end(balance.deltas):.3g}" for end in (min, max)]
    at = f"delta {ends[0]}" if ends[0] == ends[1] else f"deltas from {ends[0]} to {ends[1]}"
    rule = "the rule of an adaptive ledger" if cap.adaptive else "exact composition"
    return (
        f"{count} {'entry' if count == 1 else 'entries'}, epsilon "
        f"{rounded_text(float(balance.asked))} of {cap.epsilon:g} asked for at {at}. By {rule}, "
        f"{describe_spent(cap, balance.events)} is spent, which decides what is accepted"
    )


def describe_refusal(cap: Cap, balance: Balance, record: PrivacyRecord) -> str:
    """Say what is asked for, what was before, and what both together would cost."""
    asked = f"epsilon {rounded_text(record.epsilon)} at delta {record.delta:.3g}"
    before = describe_state(cap, balance)
    spent = describe_spent(cap, [*balance.events, *record.events])
    text = f"The release asks for {asked}. Before it: {before}. With it, {spent} would be spent"
    if cap.delta == 0.0 < record.delta:
        text += ". A ledger with delta 0 accepts pure DP releases only, such as fits with delta=0"
    elif cap.adaptive and cap.delta > 0.0:
        rule = "accepts Gaussian and pure DP releases only, and counts both as Gaussian noise"
        text += f". An adaptive ledger {rule}"
    return text


def describe_spent(cap: Cap, events: Sequence[Event]) -> str:
    """Describe what releases cost together, at the delta of the total budget."""
    spent = rounded_text(cap.spent(events, cap.delta))
    return f"epsilon {spent} of {cap.epsilon:g} at delta {cap.delta:g}"


def summarise(cap: Cap, balance: Balance, *, dataset: str, adjacency: str) -> str:
    """Return a text with the state of a ledger, its guarantee, and what is left."""
    is_free = cap.adaptive or cap.delta == 0.0
    condition = "" if is_free else ", if their budgets did not depend on earlier results"
    kinds = {"one more pure DP release": 0.0}
    if cap.delta > 0.0:
        kinds[f"or one more Gaussian release at delta {cap.delta:g}"] = cap.delta
    left = [f"  - {kind}: epsilon {largest_single(cap, balance, kinds[kind]):g}" for kind in kinds]
    state = f"Ledger of {dataset!r}: {describe_state(cap, balance)}."
    promise = (
        "Promise: All releases from this data set that are charged here are together "
        f"({cap.epsilon:g}, {cap.delta:g})-differentially private{condition}; "
        f"{NEIGHBOURS[adjacency]}."
    )
    return "\n".join([state, promise, "Left:", *left])


def largest_single(cap: Cap, balance: Balance, delta: float) -> float:
    """Return epsilon of the largest Gaussian release, for delta = 0 pure one, that is accepted."""
    spent = balance.events

    def accepts(epsilon: float) -> bool:
        event = Gaussian(gdp_mu(epsilon, delta)) if delta > 0.0 else Pure(epsilon)
        return cap.holds([*spent, event])

    return largest_epsilon(accepts, cap.epsilon)
