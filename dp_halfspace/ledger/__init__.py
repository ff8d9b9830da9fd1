"""The privacy ledger that fits are charged to: a durable store, its reports and its cap."""
