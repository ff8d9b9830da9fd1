"""Data to try the estimators on, and tables that are larger than memory."""

from dp_halfspace.datasets._chunks import in_chunks, read_parquet
from dp_halfspace.datasets._halfspace import make_halfspace
from dp_halfspace.datasets._loaders import Benchmark, load_benchmark

__all__ = ["Benchmark", "in_chunks", "load_benchmark", "make_halfspace", "read_parquet"]
