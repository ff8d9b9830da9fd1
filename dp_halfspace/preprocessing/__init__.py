"""Units of columns, learnt privately or from public ranges, and features of columns."""

from typing import TYPE_CHECKING

from dp_halfspace._lazy import lazy_names

if TYPE_CHECKING:
    from dp_halfspace.preprocessing.cosine_features import CosineFeatures
    from dp_halfspace.preprocessing.private_scaler import PrivateScaler
    from dp_halfspace.preprocessing.public_scaler import PublicScaler
    from dp_halfspace.preprocessing.released_scaler import ReleasedScaler

__all__ = ["CosineFeatures", "PrivateScaler", "PublicScaler", "ReleasedScaler"]

__getattr__ = lazy_names(__name__, __file__)
