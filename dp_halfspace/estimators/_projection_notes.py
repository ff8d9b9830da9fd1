"""What is said of a random projection that was asked for: public numbers only."""

from __future__ import annotations

import math

from dp_halfspace.exceptions import warn_caller
from dp_halfspace.projection import PROJECTIONS, jl_dimension

# A projected score errs by about one over the root of the components: by half of the margin here.
_PER_SQUARE = 4.0


def warn_of_projection(
    kind: str | None,
    n_drawn: int | None,
    *,
    n_columns: int,
    n_samples: int,
    margin: float | None,
) -> None:
    """Warn where a projection by name is none, or leaves nothing of a known margin.

    `n_drawn` is the number of components, None where no map was drawn for rows of `n_columns`.
    """
    if kind not in PROJECTIONS:
        return
    if n_drawn is None:
        wanted = "" if margin is None else f" (jl_dimension: {jl_dimension(margin, n_samples)})"
        warn_caller(
            f"projection={kind!r} draws no map: it would have as many components as the {n_columns}"
            f" columns, or more{wanted}. State a smaller n_components, or use projection=None"
        )
    elif margin is not None and n_drawn < _PER_SQUARE / margin**2:
        warn_caller(
            f"n_components={n_drawn} is far below what a margin of {margin:g} needs: scores change "
            f"by more than half of it. Use {math.ceil(_PER_SQUARE / margin**2)} or more, or "
            "projection=None"
        )
