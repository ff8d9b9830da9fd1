"""Conversion of an estimator of scikit-learn to the private one that replaces it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

from numpy.typing import ArrayLike

from dp_halfspace._params import NOISE_INSTEAD, WITHOUT_COUNTERPART, checked_size

# Earlier steps that read the records when they are fitted, and how the estimator replaces them.
_OWN_STEPS = {
    "StandardScaler": "centres and widths of the columns are estimated within the budget",
    "RobustScaler": "centres and widths of the columns are estimated within the budget",
    "MinMaxScaler": "scales of the columns are estimated within the budget",
    "MaxAbsScaler": "scales of the columns are estimated within the budget",
    "Normalizer": "rows are brought to one length anyway",
    "SimpleImputer": "a missing entry (NaN) is the centre of its column",
}
_SGD_LOSSES = {"hinge": "hinge", "squared_hinge": "squared_hinge", "log_loss": "logistic"}


@dataclass(frozen=True, slots=True)
class KeptParameter:
    """A parameter of scikit-learn: its original value, its new value, and the reason."""

    name: str
    value: Any
    becomes: str
    reason: str

    @property
    def is_dropped(self) -> bool:
        """Whether the parameter was dropped."""
        return not self.becomes


@dataclass(frozen=True, slots=True)
class ConversionReport:
    """The conversion of every parameter of an estimator of scikit-learn.

    Attributes
    ----------
    source, result : str
        Names of the classes.
    parameters : tuple of KeptParameter
        In the order of the names; steps of a pipeline come first.
    changed : tuple of KeptParameter
        Those that were dropped although they had been set.
    """

    source: str
    result: str
    parameters: tuple[KeptParameter, ...]
    changed: tuple[KeptParameter, ...]

    def __str__(self) -> str:
        lines = [f"{self.source} becomes {self.result}"]
        for kept in self.parameters:
            now = f"becomes {kept.becomes}" if kept.becomes else "is dropped"
            why = f": {kept.reason}" if kept.reason else ""
            lines.append(f"  {kept.name}={kept.value!r} {now}{why}")
        return "\n".join(lines)


def from_sklearn(
    estimator: Any,
    *,
    epsilon: float = 1.0,
    delta: float | str = "auto",
    classes: ArrayLike | None = None,
    data_norm: float | None = None,
    n_samples: int | None = None,
    ledger: Any = None,
    return_report: bool = False,
) -> Any:
    """Return the private estimator that replaces one of scikit-learn.

    Parameters
    ----------
    estimator : LinearSVC, SVC, LogisticRegression, SGDClassifier, RidgeClassifier or Pipeline
        Its parameters are read; nothing that was fitted is. A pipeline may have scalers and a
        `SimpleImputer` in front, which the private estimator does itself, within the budget.
    epsilon : float, default=1.0
        Budget of one fit.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 requests pure DP.
    classes : array-like of labels or None, default=None
        PUBLIC label set. None declares the labels in `y` to be public, with a warning at the fit.
    data_norm : float or None, default=None
        PUBLIC scale of a row; None is for columns in their original units.
    n_samples : int or None, default=None
        PUBLIC number of records. Given, the objective of a linear model is kept, with its
        `C` or `alpha`, by `OutputPerturbationClassifier`: the same minimiser plus noise. None
        takes the estimator that is most accurate at the budget.
    ledger : object with a method ``charge(record)``, path or None, default=None
        Charged by every fit.
    return_report : bool, default=False
        Whether to return what became of every parameter, too. Without it a `UserWarning` names
        those that were set and are dropped.

    Returns
    -------
    estimator : AdaptiveMarginClassifier, OutputPerturbationClassifier or PrivateKernelClassifier
        Not fitted.
    report : ConversionReport
        Only if `return_report` is true.

    Raises
    ------
    ValueError
        If there is no private estimator for it.

    Notes
    -----
    **Privacy.** A function of parameters: nothing is read, drawn or charged.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from dp_halfspace import from_sklearn
    >>> usual = make_pipeline(StandardScaler(), LogisticRegression(C=0.5))
    >>> model, report = from_sklearn(usual, epsilon=1.0, classes=[0, 1], return_report=True)
    >>> model
    AdaptiveMarginClassifier(classes=[0, 1])
    >>> print(report)
    Pipeline becomes AdaptiveMarginClassifier
      standardscaler=StandardScaler() becomes data_norm=None: centres and widths of the columns ...
      C=0.5 is dropped: the noise limits the fit: ...
    >>> from_sklearn(LogisticRegression(C=0.5), classes=[0, 1], data_norm=1.0, n_samples=4000)
    OutputPerturbationClassifier(alpha=0.0005, ...)
    """
    if n_samples is not None:
        checked_size("n_samples", n_samples)
    steps, model = _without_steps(estimator, data_norm)
    kind = type(model).__name__
    if kind not in _MAKERS or not type(model).__module__.startswith("sklearn."):
        known = ", ".join(_MAKERS)
        inside = ". Convert its estimator, and search with PrivateSearchCV"
        raise ValueError(
            f"there is no private estimator for {kind}: from_sklearn knows {known}"
            + inside * kind.endswith("SearchCV")
        )
    given = model.get_params(deep=False)
    usual = type(model)().get_params(deep=False)
    made, kept = _MAKERS[kind](given, n_samples)
    common = {
        "epsilon": epsilon, "delta": delta, "classes": classes, "data_norm": data_norm,
        "ledger": ledger,
    }  # fmt: skip
    own, weight = _keep_shared_parameters(given)
    kept = {**kept, **own}
    private = made(common | weight | {"fit_intercept": given.get("fit_intercept", True)})
    found = [*steps]
    for name, value in sorted(given.items()):
        becomes, reason = kept.get(
            name, ("", WITHOUT_COUNTERPART.get(name, "it has no counterpart"))
        )
        found.append(KeptParameter(name, value, becomes, reason))
    changed = tuple(
        each
        for each in found
        if each.is_dropped and each.name in given and not _is_same(each.value, usual[each.name])
    )
    result = type(private).__name__
    report = ConversionReport(type(estimator).__name__, result, tuple(found), changed)
    if return_report:
        return private, report
    if changed:
        text = "; ".join(f"{each.name}={each.value!r}: {each.reason}" for each in changed)
        warnings.warn(f"{result} drops {text}", UserWarning, stacklevel=2)
    return private


def _without_steps(estimator: Any, data_norm: float | None) -> tuple[list[KeptParameter], Any]:
    """Return the last step of a pipeline, and the conversion of the earlier steps."""
    if not hasattr(estimator, "steps"):
        return [], estimator
    *front, (_, model) = estimator.steps
    steps = []
    for name, step in front:
        kind = type(step).__name__
        if step is None or step == "passthrough":
            continue
        if kind not in _OWN_STEPS:
            raise ValueError(
                f"step {name!r} ({kind}) has no counterpart: convert only the last step, and keep "
                "this step if inspection.check_pipeline reports nothing about it, or use "
                "PrivateTableClassifier for columns of strings"
            )
        if data_norm is not None:
            reason = "rows are scaled down to data_norm; leave it out to estimate the column scales"
            steps.append(KeptParameter(name, step, f"data_norm={data_norm!r}", reason))
        else:
            steps.append(KeptParameter(name, step, "data_norm=None", _OWN_STEPS[kind]))
    return steps, model


def _keep_shared_parameters(
    given: dict[str, Any],
) -> tuple[dict[str, tuple[str, str]], dict[str, Any]]:
    """Return the conversion of the parameters that all models have, and the class weights."""
    kept = {}
    if "fit_intercept" in given:
        kept["fit_intercept"] = (f"fit_intercept={given['fit_intercept']!r}", "")
    weight = given.get("class_weight")
    if weight is None or isinstance(weight, dict):
        kept["class_weight"] = (f"class_weight={weight!r}", "public weights" if weight else "")
        return kept, {"class_weight": weight}
    reason = "noisy class counts are part of the fit and of its budget"
    kept["class_weight"] = ("class_weight='balanced'", reason)
    return kept, {"class_weight": "balanced"}


_Made = tuple[Callable[[dict[str, Any]], Any], dict[str, tuple[str, str]]]


def _linear(parameter: str, loss: str | None, alpha: float | None) -> _Made:
    """Return a linear model: the default, or the same objective for a public alpha."""
    from dp_halfspace.estimators.adaptive_margin import AdaptiveMarginClassifier  # noqa: PLC0415

    if alpha is None or loss is None:
        reason = NOISE_INSTEAD
        if loss is None:
            reason = "its loss is not one of OutputPerturbationClassifier: the default is trained"
        return lambda common: AdaptiveMarginClassifier(**common), {parameter: ("", reason)}
    from dp_halfspace.estimators.output_perturbation import (  # noqa: PLC0415
        OutputPerturbationClassifier,
    )

    def made(common: dict[str, Any]) -> Any:
        own: dict[str, Any] = {"loss": loss, "alpha": alpha, "preconditioner": False}
        return OutputPerturbationClassifier(**own, **common)

    kept = {
        parameter: (f"alpha={alpha:g}", "the weight of the squared norm relative to the mean loss"),
        "loss": (f"loss={loss!r}", ""),
    }
    return made, kept


def _over(n_samples: int | None, weight: float) -> float | None:
    """Return a weight divided by the public number of records."""
    return None if n_samples is None else weight / n_samples


def _from_c(given: dict[str, Any], n_samples: int | None) -> _Made:
    return _linear("C", given.get("loss", "logistic"), _over(n_samples, 1.0 / given["C"]))


def _from_sgd(given: dict[str, Any], n_samples: int | None) -> _Made:
    loss = _SGD_LOSSES.get(given["loss"])
    alpha = None if n_samples is None else float(given["alpha"])
    return _linear("alpha", loss, alpha)


def _from_ridge(given: dict[str, Any], n_samples: int | None) -> _Made:
    alpha = given["alpha"] if isinstance(given["alpha"], Real) else None
    weight = None if alpha is None else _over(n_samples, 2.0 * float(alpha))
    return _linear("alpha", "squared", weight)


def _from_svc(given: dict[str, Any], n_samples: int | None) -> _Made:
    kernel, gamma = given["kernel"], given["gamma"]
    if kernel == "linear":
        made, kept = _linear("C", "hinge", _over(n_samples, 1.0 / given["C"]))
        no_use = dict.fromkeys(("gamma", "degree", "coef0"), ("", "of other kernels"))
        return made, {**kept, **no_use, "kernel": ("a linear model", "")}
    if kernel not in ("rbf", "poly"):
        raise ValueError(
            f"there is no private estimator for kernel={kernel!r}: PrivateKernelClassifier has "
            'finite feature maps of "rbf", "laplacian", "matern", "polynomial" and of columns'
        )
    from dp_halfspace.estimators.kernel import PrivateKernelClassifier  # noqa: PLC0415

    own: dict[str, Any] = {"kernel": "auto"}
    kept = {"C": ("", NOISE_INSTEAD.partition(". ")[0])}
    if kernel == "poly":
        own = {"kernel": "polynomial", "degree": given["degree"], "coef0": float(given["coef0"])}
        kept |= {name: (f"{name}={own[name]!r}", "") for name in ("degree", "coef0")}
    else:
        kept |= dict.fromkeys(("degree", "coef0"), ("", "of the polynomial kernel"))
    if isinstance(gamma, Real):
        # exp(-gamma |x - z|^2), and (gamma <x, z> + coef0)^degree.
        scale = math.sqrt((0.5 if kernel == "rbf" else 1.0) / float(gamma))
        own = {**own, "kernel": "rbf" if kernel == "rbf" else "polynomial", "length_scale": scale}
        kept["gamma"] = (f"length_scale={scale:g}", "the same kernel by random features")
    reason = "columns, and random features of all" if own["kernel"] == "auto" else ""
    kept["kernel"] = (f"kernel={own['kernel']!r}", reason)
    return lambda common: PrivateKernelClassifier(**own, **common), kept


_MAKERS: dict[str, Callable[[dict[str, Any], int | None], _Made]] = {
    "LinearSVC": _from_c,
    "SVC": _from_svc,
    "LogisticRegression": _from_c,
    "SGDClassifier": _from_sgd,
    "RidgeClassifier": _from_ridge,
}


def _is_same(value: Any, usual: Any) -> bool:
    """Return whether a parameter has its default value."""
    return type(value) is type(usual) and bool(value == usual)
