"""Random linear maps to fewer dimensions, drawn from public randomness only."""

from dp_halfspace.projection.base import LinearMap
from dp_halfspace.projection.hadamard import HadamardMap, draw_hadamard, walsh_hadamard
from dp_halfspace.projection.jl import (
    RademacherMap,
    draw_rademacher,
    jl_dimension,
    jl_distortion,
    jl_margin,
    projection_pays,
)
from dp_halfspace.projection.named import PROJECTIONS, draw_projection
from dp_halfspace.projection.sparse_signs import SparseMap, draw_sparse

__all__ = [
    "PROJECTIONS",
    "HadamardMap",
    "LinearMap",
    "RademacherMap",
    "SparseMap",
    "draw_hadamard",
    "draw_projection",
    "draw_rademacher",
    "draw_sparse",
    "jl_dimension",
    "jl_distortion",
    "jl_margin",
    "projection_pays",
    "walsh_hadamard",
]
