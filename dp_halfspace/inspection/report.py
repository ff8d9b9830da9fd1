"""A text about what a fitted private estimator spent and what it took as public."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

# A reader who knows the seed can subtract the noise, and a ledger belongs to the curator.
_WITHHELD = frozenset({"ledger", "random_state"})
# Of what a search is given, not used: the search has a budget of its own.
_UNUSED = frozenset({"epsilon", "delta", *_WITHHELD})


def privacy_report(estimator: BaseEstimator) -> str:
    """Describe the privacy of a fitted estimator in plain text.

    Parameters
    ----------
    estimator : estimator object
        A fitted estimator of this package; or a pipeline that ends in one, or a search of
        scikit-learn that has found one.

    Returns
    -------
    str
        The name of the estimator, the summary of its ``privacy_`` record, and its
        parameters, one per line. The report tells whether a seed or a ledger was given, and
        not which one. For a pipeline or a search, also what the record does not cover.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the estimator is not fitted yet.
    ValueError
        If it is fitted and has no ``privacy_`` record: it is not private.

    Notes
    -----
    Privacy: every line is either a parameter, and so public, or part of the record
    of what was released within the budget. The report may be published with the model.

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
    inner, uncovered = private_part(estimator)
    lines = [type(inner).__name__, inner.privacy_.summary(), *uncovered, "Parameters (all public):"]
    for name, value in sorted(inner.get_params(deep=False).items()):
        hidden = name in _WITHHELD and value is not None
        lines.append(f"  {name}: {'given, not shown' if hidden else _shown(value)}")
    return "\n".join(lines)


def _shown(value: Any) -> str:
    """Write a parameter; of an estimator what a search uses of it."""
    if not hasattr(value, "get_params"):
        return repr(value)
    params = {
        name: _shown(part)
        for name, part in value.get_params().items()
        if name.rsplit("__", 1)[-1] not in _UNUSED and not hasattr(part, "get_params")
    }
    params.pop("steps", None)
    return f"{type(value).__name__}({', '.join(f'{k}={v}' for k, v in params.items())})"


def private_part(estimator: Any) -> tuple[Any, list[str]]:
    """Find the estimator that has a record, and list what around it the record leaves out."""
    if hasattr(estimator, "privacy_"):
        return estimator, []
    if isinstance(estimator, Pipeline) and estimator.steps:
        inner, uncovered = private_part(estimator.steps[-1][1])
        steps = [type(step).__name__ for _, step in estimator.steps[:-1] if hasattr(step, "fit")]
        if steps:
            uncovered.append(
                f"Not covered: {', '.join(steps)}. What these steps learnt from private rows, if "
                "anything, has no protection."
            )
        return inner, uncovered
    if hasattr(estimator, "best_estimator_"):
        inner, uncovered = private_part(estimator.best_estimator_)
        uncovered.append(
            f"Not covered: the choice by {type(estimator).__name__}, its scores, and its other "
            "fits, each of which spent a budget of its own."
        )
        return inner, uncovered
    check_is_fitted(estimator)
    raise ValueError(
        f"{type(estimator).__name__} has no record of what it spent: privacy_report needs an "
        "estimator of this package, or a pipeline or a search around one"
    )
