"""Column scales, estimated privately or from public ranges."""

from dp_halfspace.preprocessing.scalers import PrivateScaler as PrivateScaler
from dp_halfspace.preprocessing.scalers import PublicScaler as PublicScaler
from dp_halfspace.preprocessing.scalers import ReleasedScaler as ReleasedScaler
