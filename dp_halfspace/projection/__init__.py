"""Random maps of rows, linear or to features of a kernel, from public randomness only."""

from typing import TYPE_CHECKING

from dp_halfspace._lazy import lazy_names

if TYPE_CHECKING:
    from dp_halfspace.projection.additive import AdditiveMap, draw_additive
    from dp_halfspace.projection.base import LinearMap
    from dp_halfspace.projection.composed import PROJECTIONS, ProjectedFeatures, draw_projection
    from dp_halfspace.projection.fourier import (
        KERNELS,
        FeatureMap,
        FourierMap,
        Spectrum,
        draw_fourier,
    )
    from dp_halfspace.projection.hadamard import HadamardMap, draw_hadamard, walsh_hadamard
    from dp_halfspace.projection.jl import (
        RademacherMap,
        draw_rademacher,
        jl_dimension,
        jl_distortion,
        jl_margin,
    )
    from dp_halfspace.projection.tensor_sketch import TensorSketchMap, draw_tensor_sketch

__all__ = [
    "KERNELS",
    "PROJECTIONS",
    "AdditiveMap",
    "FeatureMap",
    "FourierMap",
    "HadamardMap",
    "LinearMap",
    "ProjectedFeatures",
    "RademacherMap",
    "Spectrum",
    "TensorSketchMap",
    "draw_additive",
    "draw_fourier",
    "draw_hadamard",
    "draw_projection",
    "draw_rademacher",
    "draw_tensor_sketch",
    "jl_dimension",
    "jl_distortion",
    "jl_margin",
    "walsh_hadamard",
]

__getattr__ = lazy_names(__name__, __file__)
