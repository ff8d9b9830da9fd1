"""Random linear maps and kernel feature maps of rows, from public randomness only."""

from dp_halfspace.projection.features import draw_additive as draw_additive
from dp_halfspace.projection.features import draw_fourier as draw_fourier
from dp_halfspace.projection.features import draw_tensor_sketch as draw_tensor_sketch
from dp_halfspace.projection.linear import draw_hadamard as draw_hadamard
from dp_halfspace.projection.linear import draw_projection as draw_projection
from dp_halfspace.projection.linear import draw_rademacher as draw_rademacher
from dp_halfspace.projection.linear import jl_dimension as jl_dimension
from dp_halfspace.projection.linear import jl_distortion as jl_distortion
from dp_halfspace.projection.linear import jl_margin as jl_margin
