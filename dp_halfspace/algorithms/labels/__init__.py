"""Training that protects labels only."""
