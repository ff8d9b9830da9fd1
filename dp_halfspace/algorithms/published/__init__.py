"""Algorithms of the papers, kept for comparison with the default."""
