"""Minimisers made private, by noise on the objective or on the minimiser."""
