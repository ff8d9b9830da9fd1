"""Exceptions and warnings of the package: an error text is an output, so none carries data."""

import sys
import warnings
from importlib import import_module
from typing import Any


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


class RepeatedFitWarning(PrivacyWarning):
    """Several fits may be to the same records, so that their budgets add up without a ledger.

    The class has a name of its own so that work on public or simulated data can ignore it, and no
    other warning, by one line: ``warnings.filterwarnings("ignore", category=RepeatedFitWarning)``.
    Decided from parameters, public sizes, names and label sets alone.
    """


def optional(module: str, extra: str, use: str) -> Any:
    """Import an optional module, or say how to install it: the project is in no registry."""
    name = module.partition(".")[0]
    try:
        import_module(name)
        return import_module(module)
    except ImportError as error:
        how = f'install the extra `{extra}` from the checkout: pip install ".[{extra}]"'
        raise ImportError(f"{use} needs {name}: {how}") from error


def warn_caller(
    message: str,
    category: type[PrivacyWarning] = PrivacyWarning,
    *,
    beyond: tuple[str, ...] = (),
) -> None:
    """Issue a warning that points at the line of the user, who called the package.

    The user may have called it by one of the packages `beyond`.
    """
    packages = (__name__.partition(".")[0], *beyond)
    frame, level = sys._getframe(), 1
    # File names tell nothing in a frozen program.
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in packages:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
