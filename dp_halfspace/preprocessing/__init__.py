"""Column scales, estimated privately or from public ranges."""

from typing import TYPE_CHECKING

from dp_halfspace._lazy import lazy_names

if TYPE_CHECKING:
    from dp_halfspace.preprocessing.scalers import PrivateScaler as PrivateScaler
    from dp_halfspace.preprocessing.scalers import PublicScaler as PublicScaler
    from dp_halfspace.preprocessing.scalers import ReleasedScaler as ReleasedScaler

_HOMES = {
    "dp_halfspace.preprocessing.scalers": ("PrivateScaler", "PublicScaler", "ReleasedScaler"),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
