"""Units of columns: learnt privately, or from public ranges."""

from dp_halfspace.preprocessing.private_scaler import PrivateScaler
from dp_halfspace.preprocessing.public_scaler import PublicScaler
from dp_halfspace.preprocessing.released_scaler import ReleasedScaler

__all__ = ["PrivateScaler", "PublicScaler", "ReleasedScaler"]
