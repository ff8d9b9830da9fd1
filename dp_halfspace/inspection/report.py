"""A text that says what a fitted private estimator spent and what it took as public."""

from __future__ import annotations

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

__all__ = ["privacy_report"]

# A reader who knows the seed can subtract the noise, and a ledger belongs to the curator.
_WITHHELD = frozenset({"ledger", "random_state"})


def privacy_report(estimator: BaseEstimator) -> str:
    """Describe the privacy of a fitted estimator in plain text.

    Parameters
    ----------
    estimator : estimator object
        A fitted estimator of this package.

    Returns
    -------
    str
        The name of the estimator, the summary of its ``privacy_`` record, and its
        parameters, one per line. Whether a seed or a ledger was given is said;
        which one is not.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the estimator has no ``privacy_`` record yet.

    Notes
    -----
    Privacy: every line is either a parameter, and so public, or part of the record
    of what was paid for. The report may be published with the model.

    Examples
    --------
    >>> from dp_halfspace import OutputPerturbationClassifier
    >>> from dp_halfspace.datasets import make_halfspace
    >>> from dp_halfspace.inspection import privacy_report
    >>> X, y = make_halfspace(500, 3)
    >>> model = OutputPerturbationClassifier(epsilon=2.0, classes=[-1, 1]).fit(X, y)
    >>> print(privacy_report(model).splitlines()[0])
    OutputPerturbationClassifier
    """
    check_is_fitted(estimator, "privacy_")
    lines = [type(estimator).__name__, estimator.privacy_.summary(), "Parameters (all public):"]
    for name, value in sorted(estimator.get_params(deep=False).items()):
        shown = "given, not shown" if name in _WITHHELD and value is not None else repr(value)
        lines.append(f"  {name}: {shown}")
    return "\n".join(lines)
