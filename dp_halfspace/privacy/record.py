"""The record of a fit: the guarantee, the releases, and the assumptions."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import ROUND_CEILING, Context
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from dp_halfspace._params import require
from dp_halfspace._rounding import UP
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import (
    Event,
    Repeated,
    event_from_dict,
    number_to_json,
    plain_data,
    single_runs,
    to_dp_event,
)
from dp_halfspace.privacy.profiles import check_delta, check_nonnegative

# Value of the public fact "classes_source" if the user did not state the label set.
LABELS_SEEN = "taken from the labels seen"

# Adjacencies from the weakest to the strongest; the first two have no owners of rows.
NEIGHBOURS = {
    "replace-one-label": (
        "neighbouring data sets have the same features and differ in the label of one "
        "record; nothing is promised about the features"
    ),
    "replace-one": (
        "neighbouring data sets have the same number of rows and differ in one record, "
        "features and label together"
    ),
    "replace-one-person": (
        "neighbouring data sets have the same number of people (n_samples) and differ in one of "
        "them, with all rows; how many rows people have is protected"
    ),
}
ADJACENCIES = tuple(NEIGHBOURS)
_UNITS = dict(zip(NEIGHBOURS, ("the label of one record", "one record", "one person"), strict=True))
_NOISES = {
    "os": "drawn from the random source of the operating system",
    "seeded": (
        "drawn from a seed, so that the fit can be repeated; the guarantee does not "
        "hold against anyone who knows or guesses the seed"
    ),
    "none": "none was added; nothing is guaranteed",
}
# False positive rates at which the true positive rate of an attack is shown.
SHOWN_RATES = (0.001, 0.01, 0.1)
# Largest absolute epsilon in the search for the best bound on an attack.
_WIDEST_EPSILON = 50.0
_SHOWN_DELTAS = (1e-3, 1e-5, 1e-7, 1e-9)
# Accepted relative excess over the claimed delta, because another platform may round differently.
# The computed delta exceeds the exact one by a relative 2^-36, so an accepted claim is true.
_CLAIM_SLACK = 2.0**-38


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PrivacyRecord:
    """Guarantee of one fit, recomputable from its events.

    Parameters
    ----------
    epsilon : float
        Claimed epsilon, >= 0; infinity claims nothing.
    delta : float
        Claimed delta, in [0, 1).
    adjacency : {"replace-one", "replace-one-label", "replace-one-person"}, default="replace-one"
        Which data sets are neighbours.
    events : iterable of Event
        Everything that was released. Stored as a tuple.
    noise : {"os", "seeded", "none"}
        Where the noise came from; "none" requires an event without a guarantee.
    public : mapping or iterable of (str, value), default=()
        What was assumed to be public, and public numbers derived from it. Stored as a tuple of
        pairs of plain values; sequences and mappings inside become tuples, infinities and unknown
        objects become text.

    Raises
    ------
    ValueError
        If a field is invalid, or if the events do not prove the claim: a record cannot
        promise more than they do.
    TypeError
        If an item of `events` is not an event.

    Notes
    -----
    **Guarantee.**

    - Adjacency: `adjacency`.
    - Released: every field is public. Creating a record reads no data.
    - Sensitivity: that of the events, whose contracts are stated with each of them.
    - Proof: the claim is recomputed from the events, ``docs/proofs/accounting.md``.

    Examples
    --------
    >>> from dp_halfspace.privacy.events import Gaussian
    >>> from dp_halfspace.privacy.profiles import gdp_mu
    >>> from dp_halfspace.privacy.record import PrivacyRecord
    >>> event = Gaussian(gdp_mu(1.0, 1e-6))
    >>> record = PrivacyRecord(epsilon=1.0, delta=1e-6, events=[event], noise="os")
    >>> record
    PrivacyRecord(epsilon=1.0, delta=1e-06, adjacency='replace-one', 1 event, noise='os')
    >>> print(record)
    epsilon=1, delta=1e-06 for one record, by 1 release(s); noise drawn from the random source ...
    >>> round(record.epsilon_at(1e-9), 3)
    1.318
    >>> PrivacyRecord.from_dict(record.to_dict()) == record
    True
    """

    epsilon: float
    delta: float
    adjacency: str = "replace-one"
    events: tuple[Event, ...]
    noise: str
    public: Mapping[str, Any] | tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        public: dict[str, Any] = {}
        for name, value in self.public.items() if isinstance(self.public, Mapping) else self.public:
            if str(name) in public:
                raise ValueError("public must not name a fact twice")
            public[str(name)] = _freeze(value)
        checked = {
            "epsilon": check_nonnegative("epsilon", self.epsilon),
            "delta": check_delta(self.delta),
            "events": tuple(self.events),
            "public": tuple(public.items()),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        for name, choices in (("adjacency", NEIGHBOURS), ("noise", _NOISES)):
            given, known = getattr(self, name), sorted(choices)
            if given not in known:
                raise ValueError(f"{name} must be one of {known}, got {given!r}")
        proved = self.delta_at(self.epsilon)
        if proved > self.delta * (1.0 + _CLAIM_SLACK):
            raise ValueError(
                f"the events prove delta={proved!r} at epsilon={self.epsilon!r}, "
                f"not the claimed {self.delta!r}"
            )
        if self.noise == "none" and math.isfinite(self.epsilon_at(0.5)):
            raise ValueError("noise 'none' contradicts events that prove a guarantee")

    def __repr__(self) -> str:
        count = len(self.events)
        return (
            f"PrivacyRecord(epsilon={self.epsilon!r}, delta={self.delta!r}, "
            f"adjacency={self.adjacency!r}, {count} event{'' if count == 1 else 's'}, "
            f"noise={self.noise!r})"
        )

    def __str__(self) -> str:
        unit = _UNITS[self.adjacency]
        claim = f"epsilon={rounded_text(self.epsilon)}, delta={rounded_text(self.delta)}"
        return f"{claim} for {unit}, by {len(self.events)} release(s); noise {_NOISES[self.noise]}"

    def epsilon_at(self, delta: float) -> float:
        """Smallest epsilon that the events prove at another delta in [0, 1), rounded up."""
        return accounting.epsilon(self.events, delta)

    def delta_at(self, epsilon: float) -> float:
        """Smallest delta that the events prove at another epsilon >= 0, rounded up."""
        return accounting.delta(self.events, check_nonnegative("epsilon", epsilon))

    def attack_advantage(self) -> float:
        """Largest advantage of an attack, from the exact privacy profile of the events.

        Returns
        -------
        float
            In [0, 1], rounded up: true minus false positive rate of the best test between two data
            sets that differ in one unit of privacy, for an attacker who knows everything else. A
            test that guesses which of two equally likely candidates is in the data is correct with
            probability at most ``(1 + advantage) / 2``.

        Notes
        -----
        Privacy: a function of the public record. It is ``delta_at(0)``, the total variation.
        """
        return self.delta_at(0.0)

    def attack_tpr(self, fpr: float) -> float:
        """Largest true positive rate of an attack at a false positive rate, rounded up.

        Parameters
        ----------
        fpr : float
            False positive rate of the test, in [0, 1].

        Returns
        -------
        float
            In [0, 1]: no test between two data sets that differ in one unit of privacy has a larger
            true positive rate, even for an attacker who knows everything else.

        Raises
        ------
        ValueError
            If `fpr` is not in [0, 1].

        Notes
        -----
        Privacy: a function of the public record. With ``d(e)`` the exact delta at epsilon e, every
        test has ``TPR <= d(e) + exp(e) FPR`` and ``1 - FPR <= d(e) + exp(e) (1 - TPR)`` for all
        e >= 0: the smallest of these bounds. P. Kairouz, S. Oh and P. Viswanath (2015), "The
        composition theorem for differential privacy", Theorem 2.1.

        Examples
        --------
        >>> from dp_halfspace.privacy import Gaussian, PrivacyRecord
        >>> record = PrivacyRecord(epsilon=1.5, delta=0.01, events=[Gaussian(0.5)], noise="os")
        >>> round(record.attack_advantage(), 4), round(record.attack_tpr(0.01), 4)
        (0.1974, 0.0339)
        """
        fpr = float(fpr)
        require("in [0, 1]", fpr=fpr)

        def bound(signed: float) -> float:
            factor, delta = math.exp(abs(signed)), self.delta_at(abs(signed))
            if signed >= 0.0:
                return delta + factor * fpr
            return 1.0 - (1.0 - fpr - delta) / factor

        # Every bound is valid. They are convex in exp(signed), so that a search finds the smallest.
        ends = (-_WIDEST_EPSILON, _WIDEST_EPSILON)
        best = minimize_scalar(bound, bounds=ends, method="bounded", options={"xatol": 1e-3})
        found = [float(best.fun), bound(0.0)]
        found += [bound(s * self.epsilon) for s in (-1.0, 1.0) if self.epsilon < _WIDEST_EPSILON]
        return min(1.0, max(fpr, min(found) * UP))

    def summary(self) -> str:
        """Text for an auditor: the guarantee, its assumptions and its limits."""
        claim = f"({self.epsilon!r}, {self.delta!r})-differential privacy"
        if dict(self.public).get("classes_source") == LABELS_SEEN:
            claim += ", given the label set: it was taken from the data and is declared public"
        lines = [
            "Guarantee: "
            + (claim if math.isfinite(self.epsilon) else "none (epsilon is infinite)"),
            f"Adjacency: {self.adjacency}; {NEIGHBOURS[self.adjacency]}.",
            f"Noise: {_NOISES[self.noise]}.",
            "Released, composed adaptively:",
            *(
                f"  - {(Repeated(event, count) if count > 1 else event).describe()}"
                for event, count in Counter(self.events).items()
            ),
            "The same releases at other deltas (rounded up):",
        ]
        for delta in sorted({0.0, self.delta, *_SHOWN_DELTAS}, reverse=True):
            # A claim that was proved by its delta holds for larger ones, too.
            least = self.epsilon if delta >= self.delta else math.inf
            shown = rounded_text(min(least, self.epsilon_at(delta)))
            lines.append(f"  - delta {delta:<8.3g} epsilon {shown}")
        found = ", ".join(f"{rounded_text(self.attack_tpr(fpr))} at {fpr:g}" for fpr in SHOWN_RATES)
        lines += [
            "Largest gain of an attack that knows everything except "
            f"{_UNITS[self.adjacency]} (rounded up):",
            f"  - true minus false positive rate {rounded_text(self.attack_advantage())}",
            f"  - true positive rate {found} (false positive rate)",
        ]
        lines.append("Assumed public, in addition to all parameters:")
        lines += [f"  - {name} = {value!r}" for name, value in dict(self.public).items()]
        lines.append(
            "Out of scope: running time and other side channels, earlier pipeline "
            "steps that learnt from the records (inspection.check_pipeline lists "
            "them), and further fits on the same data, which compose with this one."
        )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold; infinities appear as the text "inf"."""
        values = {field.name: plain_data(getattr(self, field.name)) for field in fields(self)}
        return {**values, "public": dict(values["public"])}

    def to_dp_events(self) -> list[dict[str, Any]]:
        """Every release by the names of ``dp_accounting``, so that others can recompute the cost.

        Returns
        -------
        list of dict
            One ``SelfComposedDpEvent`` for each kind of release, with its ``count`` and its
            ``event``: a ``GaussianDpEvent`` with a ``noise_multiplier`` (standard deviation over
            sensitivity, rounded down), a ``NoOpDpEvent``, or an ``UnsupportedDpEvent`` with the
            contract of the release if ``dp_accounting`` has no counterpart.

        Notes
        -----
        Privacy: a function of the public record. Sensitivities are already those of its
        `adjacency`, and must not be doubled. ``dp_accounting`` uses them as they are for
        ``REPLACE_SPECIAL`` and ``ADD_OR_REMOVE_ONE``. For ``REPLACE_ONE`` its ``PLDAccountant``
        doubles them, so that its result is that of half the noise, and its ``RdpAccountant`` uses
        them as they are. The result of the latter is always above the exact epsilon.

        Examples
        --------
        >>> from dp_halfspace.privacy import Gaussian, PrivacyRecord
        >>> record = PrivacyRecord(
        ...     epsilon=1.5, delta=0.01, events=[Gaussian(0.125), Gaussian(0.125)], noise="os"
        ... )
        >>> record.to_dp_events()[0]["count"]
        2
        """
        counts = single_runs(self.events).items()
        return [
            {"type": "SelfComposedDpEvent", "event": to_dp_event(event), "count": count}
            for event, count in counts
        ]

    def to_json(self) -> str:
        """Write `to_dict` as standard JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PrivacyRecord:
        """Rebuild a record from the result of `to_dict`, proving its claim again.

        Raises ValueError if the events do not prove the claim or a field is missing or unknown.
        """
        expected = {field.name for field in fields(cls)}
        if set(data) != expected:
            raise ValueError(f"a record has the fields {sorted(expected)}, got {sorted(data)}")
        events = tuple(event_from_dict(event) for event in data["events"])
        return cls(**{**data, "events": events})


def unit_of(record: PrivacyRecord) -> str:
    """Return whom a record protects: each person, or each record of a table."""
    return "person" if record.adjacency == "replace-one-person" else "record"


def _freeze(value: Any) -> Any:
    """Return a public value as immutable plain data."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return number_to_json(float(value))
    if isinstance(value, Mapping):
        value = tuple(value.items())
    return tuple(map(_freeze, value)) if isinstance(value, list | tuple) else str(value)


def rounded_text(value: float, digits: int = 6) -> str:
    """Return a number as text with few significant digits, rounded up."""
    if float(f"{value:.{digits}g}") == value:
        return f"{value:.{digits}g}" if value < 1e4 else f"{value:g}"
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(value)
    return f"{float(rounded):g}"
