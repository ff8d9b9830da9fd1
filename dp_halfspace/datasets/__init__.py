"""Data to try the estimators on, and tables that are larger than memory."""

from dp_halfspace.datasets._chunks import in_chunks, read_parquet
from dp_halfspace.datasets._halfspace import make_halfspace

__all__ = ["in_chunks", "make_halfspace", "read_parquet"]
