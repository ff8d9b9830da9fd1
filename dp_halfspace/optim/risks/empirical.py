"""Which risk a loss means, by the number of classes."""

from __future__ import annotations

from dp_halfspace.optim.objectives.adversary import Adversary
from dp_halfspace.optim.objectives.losses import Loss
from dp_halfspace.optim.risks.margin import MarginRisk
from dp_halfspace.optim.risks.softmax import SoftmaxRisk

__all__ = ["empirical_risk"]


def empirical_risk(  # noqa: PLR0917 - the sizes of a problem, in the order of every risk
    loss: Loss,
    n_samples: int,
    n_columns: int,
    n_classes: int,
    row_norm: float,
    block_rows: int,
    *,
    max_weight: float = 1.0,
    min_weight: float = 0.0,
    tilt: float = 0.0,
    adversary: Adversary | None = None,
) -> MarginRisk | SoftmaxRisk:
    """Return the regularised risk of a loss.

    Parameters
    ----------
    loss : Loss
        Smooth margin loss. A logistic loss, shifted or not, with three classes or more and
        neither tilt nor adversary means the multinomial model; everything else sets each class
        apart from the rest.
    n_samples, n_columns, n_classes : int
        Sizes; the constant column counts.
    row_norm, block_rows, max_weight, min_weight, tilt, adversary
        As in :class:`~dp_halfspace.optim.risks.margin.MarginRisk`.

    Returns
    -------
    MarginRisk or SoftmaxRisk

    Raises
    ------
    ValueError
        If the adversary is so strong that there is nothing to learn, or a number does not fit.

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC, empirical_risk
    >>> type(empirical_risk(LOGISTIC, 1000, 10, 3, row_norm=1.0, block_rows=1000)).__name__
    'SoftmaxRisk'
    """
    if adversary is not None and adversary.radius >= row_norm:
        raise ValueError(
            "the radius of the adversary must be smaller than the bound on the norm of a row: "
            "otherwise every coefficient that is moved is 0, whatever the data"
        )
    is_logistic = loss.name in ("logistic", "shifted_logistic")
    if n_classes > 2 and is_logistic and not tilt and adversary is None:
        return SoftmaxRisk(
            n_samples, n_columns, n_classes, row_norm, block_rows, loss.shift, max_weight
        )
    return MarginRisk(
        loss, n_samples, n_columns, n_classes, row_norm, block_rows,
        max_weight, tilt, adversary, min_weight,
    )  # fmt: skip
