"""Random linear maps and kernel feature maps of rows, from public randomness only."""

from typing import TYPE_CHECKING

from dp_halfspace._lazy import lazy_names

if TYPE_CHECKING:
    from dp_halfspace.projection.features import draw_additive as draw_additive
    from dp_halfspace.projection.features import draw_fourier as draw_fourier
    from dp_halfspace.projection.features import draw_tensor_sketch as draw_tensor_sketch
    from dp_halfspace.projection.linear import draw_hadamard as draw_hadamard
    from dp_halfspace.projection.linear import draw_projection as draw_projection
    from dp_halfspace.projection.linear import draw_rademacher as draw_rademacher
    from dp_halfspace.projection.linear import jl_dimension as jl_dimension
    from dp_halfspace.projection.linear import jl_distortion as jl_distortion
    from dp_halfspace.projection.linear import jl_margin as jl_margin

_HOMES = {
    "dp_halfspace.projection.features": ("draw_additive", "draw_fourier", "draw_tensor_sketch"),
    "dp_halfspace.projection.linear": (
        "draw_hadamard",
        "draw_projection",
        "draw_rademacher",
        "jl_dimension",
        "jl_distortion",
        "jl_margin",
    ),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
