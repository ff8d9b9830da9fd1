"""Ledger entries: what was released, by which estimator, for which purpose, and about which part.

An entry is stored as one text that contains the record of the release and the annotation, so the
chain of digests covers both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any

from dp_halfspace.privacy.record import PrivacyRecord

# Field of the stored text in addition to those of the record.
_ABOUT = "about"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the data set that shares no record with any other part of the same ledger.

    Either a public fact determines to which part a record belongs (`fixed_by` names it), or the
    cells of the record do, and then every release about the part reads all `n_records` records of
    the data set.
    """

    name: str
    fixed_by: str | None = None
    n_records: int | None = None

    def __post_init__(self) -> None:
        check_text("name", self.name)
        if (self.fixed_by is None) == (self.n_records is None):
            raise ValueError(
                "state how records are assigned to parts, by exactly one of fixed_by (a public "
                "fact, such as the site) and n_records (the number of all records, if the cells of "
                "a record decide and every release about a part reads all of them)"
            )
        if self.fixed_by is not None:
            check_text("fixed_by", self.fixed_by)
        elif not isinstance(self.n_records, Integral) or self.n_records < 1:
            raise ValueError(f"n_records must be a positive integer, got {self.n_records!r}")

    @property
    def rule(self) -> str:
        """How records are divided into parts; the same for all parts of a ledger."""
        if self.fixed_by is not None:
            return f"the public fact {self.fixed_by!r}"
        return f"the cells of each of {self.n_records} records"

    @property
    def n_touched(self) -> int:
        """Number of parts that one replaced record can change: 1 if its part is a public fact."""
        return 2 if self.fixed_by is None else 1


@dataclass(frozen=True, slots=True)
class Annotation:
    """Statements about a release: public texts, and the part that it is about."""

    estimator: str | None = None
    purpose: str | None = None
    part: Part | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the stated facts as plain data."""
        return {name: fact for name, fact in asdict(self).items() if fact is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Annotation:
        """Rebuild an annotation; a field of a newer version is a ValueError."""
        unknown = set(data) - set(cls.__slots__)
        if unknown:
            raise ValueError(f"an entry states {sorted(unknown)}, which this version does not know")
        part = data.get("part")
        return cls(**{**data, "part": None if part is None else Part(**part)})


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One charge.

    Attributes
    ----------
    number : int
        Number of the entry, from 1 on.
    time : str
        Time of the charge in UTC, in ISO format.
    record : PrivacyRecord
        The record that was charged.
    estimator : str or None
        Class or function that made the release.
    purpose : str or None
        Text that was stated by the handle that was charged.
    part : str or None
        Part of the data set that the release is about; None is the whole data set.
    """

    number: int
    time: str
    record: PrivacyRecord
    estimator: str | None = None
    purpose: str | None = None
    part: str | None = None


def text_of(record: PrivacyRecord, about: Annotation) -> str:
    """Write a record and its annotation, as an entry stores them."""
    return json.dumps({**record.to_dict(), _ABOUT: about.to_dict()}, allow_nan=False)


def parse_text(text: str) -> tuple[PrivacyRecord, Annotation]:
    """Read a stored entry, and prove the claim of its record again."""
    data = json.loads(text)
    about = Annotation.from_dict(data.pop(_ABOUT, {}))
    return PrivacyRecord.from_dict(data), about


def check_text(name: str, value: object) -> None:
    """Raise unless a value is a non-empty text."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name} must be a text that is not empty, got {value!r}")
