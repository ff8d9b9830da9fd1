"""Data to try the estimators on: a generator with a known answer, and public benchmarks."""

from dp_halfspace.datasets._halfspace import make_halfspace
from dp_halfspace.datasets._loaders import Benchmark, load_benchmark

__all__ = ["Benchmark", "load_benchmark", "make_halfspace"]
