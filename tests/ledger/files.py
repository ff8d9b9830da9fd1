"""Changes of a ledger behind its back."""

import sqlite3
from contextlib import closing

from dp_halfspace.ledger.store import Row, digest_of


def execute(path, statement):
    """Run a statement of SQL on the file of a ledger."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def insert(ledger, text):
    """Write an entry as another version may have written it."""
    balance = ledger._reading.balance
    row = Row(balance.last + 1, "2026-01-01T00:00:00", text, "")
    row = row._replace(digest=digest_of(balance.digest, row))
    with ledger._store.transaction(writes=True) as transaction:
        transaction.insert(row)
