"""Random linear maps and kernel feature maps of rows, from public randomness only."""

from typing import TYPE_CHECKING

from dp_halfspace._lazy import lazy_names

if TYPE_CHECKING:
    from dp_halfspace.projection.features import AdditiveMap as AdditiveMap
    from dp_halfspace.projection.features import FeatureMap as FeatureMap
    from dp_halfspace.projection.features import FourierMap as FourierMap
    from dp_halfspace.projection.features import ProjectedFeatures as ProjectedFeatures
    from dp_halfspace.projection.features import TensorSketchMap as TensorSketchMap
    from dp_halfspace.projection.features import draw_additive as draw_additive
    from dp_halfspace.projection.features import draw_fourier as draw_fourier
    from dp_halfspace.projection.features import draw_tensor_sketch as draw_tensor_sketch
    from dp_halfspace.projection.linear import PROJECTIONS as PROJECTIONS
    from dp_halfspace.projection.linear import HadamardMap as HadamardMap
    from dp_halfspace.projection.linear import LinearMap as LinearMap
    from dp_halfspace.projection.linear import RademacherMap as RademacherMap
    from dp_halfspace.projection.linear import draw_hadamard as draw_hadamard
    from dp_halfspace.projection.linear import draw_projection as draw_projection
    from dp_halfspace.projection.linear import draw_rademacher as draw_rademacher
    from dp_halfspace.projection.linear import jl_dimension as jl_dimension
    from dp_halfspace.projection.linear import jl_distortion as jl_distortion
    from dp_halfspace.projection.linear import jl_margin as jl_margin
    from dp_halfspace.projection.linear import walsh_hadamard as walsh_hadamard

_HOMES = {
    "dp_halfspace.projection.features": (
        "AdditiveMap",
        "FeatureMap",
        "FourierMap",
        "ProjectedFeatures",
        "TensorSketchMap",
        "draw_additive",
        "draw_fourier",
        "draw_tensor_sketch",
    ),
    "dp_halfspace.projection.linear": (
        "PROJECTIONS",
        "HadamardMap",
        "LinearMap",
        "RademacherMap",
        "draw_hadamard",
        "draw_projection",
        "draw_rademacher",
        "jl_dimension",
        "jl_distortion",
        "jl_margin",
        "walsh_hadamard",
    ),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
