"""Exceptions and warnings of the package.

None of them ever carries a value of the data: an error text is an output of
the computation and would have to be paid for like any other.
"""

__all__ = ["BudgetError", "CertificateError", "PrivacyWarning"]


class BudgetError(ValueError):
    """A request would spend more privacy budget than is left, or than exists.

    Raised before any noise is drawn, so nothing has been released when it is seen.
    """


class CertificateError(ValueError):
    """A tolerance that the guarantee needs is out of reach of floating-point numbers.

    Decided from public quantities alone (sizes, norms, parameters) before any data
    are read; it therefore says nothing about them.
    """


class PrivacyWarning(UserWarning):
    """The guarantee is weaker than it looks, or costs more than it should.

    For example because the noise is seeded, or because a tilt lets single records weigh so
    much that the noise drowns the model. Decided from parameters and public sizes alone.
    """
