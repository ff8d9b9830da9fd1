"""Bring tables to a form that the classifiers can use, without a look at the data."""

from dp_halfspace.preprocessing._cosines import CosineFeatures

__all__ = ["CosineFeatures"]
