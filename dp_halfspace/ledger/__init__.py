"""The ledger: one total budget for every release about a data set."""

from dp_halfspace.ledger.entries import LedgerEntry as LedgerEntry
from dp_halfspace.ledger.ledger import PrivacyLedger as PrivacyLedger
from dp_halfspace.ledger.ledger import open_ledger as open_ledger
