"""The account that fits are charged to: a durable store, its pages and its cap."""
