"""What a command has booked in a ledger, said in the sentence with which it fails afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dp_halfspace._cli.arguments import Stopped, UserError
from dp_halfspace.ledger.ledger import PrivacyLedger
from dp_halfspace.privacy.record import PrivacyRecord, rounded_text


class Booking:
    """A ledger, if there is one, that knows what was asked of it since it was opened."""

    def __init__(self, ledger: PrivacyLedger | None, path: Path | None) -> None:
        self._ledger, self._path = ledger, path
        self._asked: list[PrivacyRecord] = []
        self._n_before = 0 if ledger is None else len(ledger.entries())

    def charge(self, record: PrivacyRecord) -> None:
        """Charge the ledger."""
        if self._ledger is not None:
            self._asked.append(record)
            self._ledger.charge(record)

    @contextmanager
    def stated(self, lost: str) -> Iterator[None]:
        """Let a failure say what stays booked, and that `lost`: what was not written."""
        try:
            yield
        except (UserError, Stopped) as error:
            raise type(error)(f"{error}{self._rest(lost)}") from error
        except MemoryError as error:
            raise UserError(f"there is not enough memory{self._rest(lost)}") from error
        except KeyboardInterrupt:
            raise Stopped(f"interrupted{self._rest(lost) or f': {lost}'}") from None

    def _rest(self, lost: str) -> str:
        """Return the end of a sentence; it is empty if nothing was booked."""
        booked = self._booked()
        if not booked:
            return ""
        sizes = " and ".join(
            f"epsilon {rounded_text(one.epsilon)}, delta {rounded_text(one.delta)}"
            for one in booked
        )
        return f"; {sizes} stay booked in the ledger {self._path}, and {lost}"

    def _booked(self) -> list[PrivacyRecord]:
        """List what was asked and is in the ledger: Ctrl-C may come after it was booked."""
        if self._ledger is None or not self._asked:
            return []
        try:
            entries = [entry.record for entry in self._ledger.entries()[self._n_before :]]
        except (OSError, ValueError):
            return self._asked
        return [record for record in self._asked if record in entries]


@contextmanager
def kept(what: str) -> Iterator[None]:
    """Let a failure say what is there all the same."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{error}; {what}") from error
    except KeyboardInterrupt:
        raise Stopped(f"interrupted; {what}") from None
