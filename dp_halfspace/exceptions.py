"""Exceptions and warnings of the package: an error text is an output, so none carries data."""


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

    For example because the noise is seeded. Decided from parameters and public sizes alone.
    """
