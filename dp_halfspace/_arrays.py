"""Types of arrays of numbers."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
# Half of the memory, for features and copies of rows.
SingleArray: TypeAlias = NDArray[np.float32]
