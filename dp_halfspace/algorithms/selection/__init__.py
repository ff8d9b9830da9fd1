"""The exponential mechanism over candidates, and counts."""
