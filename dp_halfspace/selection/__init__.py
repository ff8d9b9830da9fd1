"""The default training with few records: one private selection from a public list."""
