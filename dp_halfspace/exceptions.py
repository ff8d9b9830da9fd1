"""Exceptions and warnings of the package: an error text is an output, so none carries data."""

import sys
import warnings
from types import FrameType


class BudgetError(ValueError):
    """A request would spend more privacy budget than is left, or than exists.

    Raised before any noise is drawn, so nothing has been released when it is seen.
    """


class CertificateError(ValueError):
    """A tolerance that the guarantee needs is out of reach of floating-point numbers.

    Decided from public sizes, norms and parameters, before any data are read.
    """


class PrivacyWarning(UserWarning):
    """The guarantee is weaker than it looks, costs more than it should, or leaves nothing to learn.

    For example because the noise is seeded. Decided from parameters, public sizes and released
    numbers alone.
    """


def install_hint(extra: str) -> str:
    """Say how to install an optional part; the project is in no registry of packages."""
    return f'install the extra `{extra}` from the checkout: pip install ".[{extra}]"'


def _is_ours(frame: FrameType) -> bool:
    """Return whether code of this package runs; file names tell nothing in a frozen program."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] == __name__.partition(".")[0]


def warn_caller(message: str) -> None:
    """Issue a `PrivacyWarning` that points at the line of the user, who called the package."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and _is_ours(frame):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, PrivacyWarning, stacklevel=level)
