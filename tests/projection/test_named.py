"""Maps by name: the right one, and none where it could only lose."""

from __future__ import annotations

import numpy as np
import pytest

from dp_halfspace.projection import (
    PROJECTIONS,
    HadamardMap,
    RademacherMap,
    draw_projection,
)


@pytest.mark.parametrize(
    ("kind", "made"),
    [("rademacher", RademacherMap), ("hadamard", HadamardMap)],
)
def test_each_name_draws_its_map(kind, made):
    drawn = draw_projection(kind, 12, 5, np.random.default_rng(0))
    assert isinstance(drawn, made)
    assert (drawn.n_features_in, drawn.n_components) == (12, 5)


@pytest.mark.parametrize("kind", PROJECTIONS)
@pytest.mark.parametrize("n_components", [12, 13, 500])
def test_no_map_that_does_not_shorten(kind, n_components):
    assert draw_projection(kind, 12, n_components, np.random.default_rng(0)) is None
