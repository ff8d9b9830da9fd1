"""How good a model is on held-out records, released within a budget."""

from dp_halfspace.metrics.score import PrivateScore, private_score

__all__ = ["PrivateScore", "private_score"]
