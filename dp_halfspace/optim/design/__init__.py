"""Matrices that are read in blocks: rows of known norm, clipped, mapped or made on the way."""
