"""What is compared. A method maps training data and a budget to fitted models.

``Method.models(X, y, *, epsilon, delta, data_norm, classes, draws)`` returns, for each setting
that it tries, `draws` models fitted with fresh noise. There are no seeds. A method with several
settings is judged by the one that scores best on the test set, which flatters it; ours have one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import product
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import dp_halfspace
from benchmarks.descent import FIXED, fit_dp_sgd
from benchmarks.diffprivlib_peer import (
    REGULARISERS,
    REQUIREMENTS,
    diffprivlib_models,
    missing_diffprivlib,
)
from benchmarks.loaders import Benchmark
from benchmarks.predictors import OnUnitRows, accuracy, area_under_curve, unit_rows
from benchmarks.problems import coefficients, prepared
from benchmarks.published_margin import STEP_CAP, fit_published_margin

Group = Literal["ours", "others", "baselines"]
Settings = Mapping[str, Mapping[str, Any]]


class Predictor(Protocol):
    """Anything fitted."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Label rows."""
        ...


@dataclass(frozen=True, slots=True)
class Method:
    """One line of the tables; `settings` and `version` decide whether a result is still its own."""

    title: str
    about: str
    group: Group
    models: Callable[..., Mapping[str, Sequence[Predictor]]]
    settings: Settings = field(default_factory=lambda: {"": {}})
    version: str = ""
    cheap: bool = True
    score: Callable[[Any, Benchmark], float] = accuracy
    missing: Callable[[Benchmark], str | None] = lambda _: None
    rows: Callable[[Benchmark], Benchmark] = lambda problem: problem

    @property
    def private(self) -> bool:
        """Whether the result depends on a budget."""
        return self.group != "baselines"


def _method(
    fit: Callable[..., Predictor],
    title: str,
    about: str,
    group: Group,
    settings: Settings | None = None,
    **options: Any,
) -> Method:
    """Describe a method from a function that fits one model."""
    settings = settings or {"": {}}

    def models(X: Any, y: NDArray[Any], *, draws: int, **public: Any) -> dict[str, list[Predictor]]:
        return {
            name: [fit(X, y, **{**public, **setting}) for _ in range(draws)]
            for name, setting in settings.items()
        }

    return Method(title, about, group, models, settings, **options)


@cache
def _refusal(name: str, n_classes: int, pure: bool) -> str | None:
    """Why a classifier of the package cannot be used: it is tried on rows without content."""
    kind = getattr(dp_halfspace, name, None)
    if kind is None:
        return f"dp_halfspace has no {name} yet"
    try:
        labels = list(range(n_classes))
        model = kind(classes=labels, **({"delta": 0.0} if pure else {}))
        model.fit(np.zeros((100, 2)), np.arange(100) % n_classes)
    except ValueError as error:
        return str(error)
    return None


def _ours(
    name: str, title: str, *, pure: bool = False, mechanism: str | None = None, **options: Any
) -> Method:
    """Describe a classifier of the package; it is looked up when it is used."""
    given = {} if mechanism is None else {"mechanism": mechanism}
    chosen = "default parameters" if mechanism is None else f'`mechanism="{mechanism}"`'

    def fit(X: Any, y: NDArray[Any], **public: Any) -> Predictor:
        estimator = getattr(dp_halfspace, name)(**public)
        return estimator.fit(X, y)  # type: ignore[no-any-return]

    return _method(
        fit,
        title + (", pure" if pure else ""),
        f"`{name}`, {chosen}" + (", `delta=0`: pure DP" if pure else ""),
        "ours",
        {"": {**given, **({"delta": 0.0} if pure else {})}},
        version=dp_halfspace.__version__,
        missing=lambda problem: _refusal(name, len(problem.classes), pure),
        **options,
    )


def _fit_exactly(
    X: Any, y: NDArray[Any], *, make: Callable[[], Any], scaled: bool = False, **_: Any
) -> Predictor:
    """Fit without privacy, to the columns as they are or divided by their deviations."""
    scaler = [StandardScaler(with_mean=not sparse.issparse(X))] if scaled else []
    return make_pipeline(*scaler, make()).fit(X, y)  # type: ignore[no-any-return]


def _baseline(title: str, make: Callable[[], Any], **options: Any) -> Method:
    """Describe a method without privacy; the better treatment of the columns is shown."""
    return _method(
        partial(_fit_exactly, make=make),
        title,
        "not private; the better of raw and standardised columns",
        "baselines",
        {"raw": {}, "standardised": {"scaled": True}},
        **options,
    )


def _for_two_classes(problem: Benchmark) -> str | None:
    return "for two classes only" if len(problem.classes) > 2 else None


_DENSE_LIMIT = 5e8


def _without_diffprivlib(problem: Benchmark) -> str | None:
    """Say why diffprivlib has no number: no environment, or a size that takes it hours."""
    if len(problem.y_train) * coefficients(problem) > _DENSE_LIMIT:
        return "one dense regression per class and no sparse rows: a cell would take hours"
    return missing_diffprivlib()


def _too_large_to_tune(problem: Benchmark) -> str | None:
    """Leave tuning out where one fit takes ten seconds."""
    size = problem.X_train.shape[1] * len(problem.classes)
    return (
        f"{len(_TUNING)} configurations of {size} coefficients are too slow" if size > 1e5 else None
    )


_TUNING = {
    f"T={steps} clip={clip:g} rate={rate:g}": {"steps": steps, "clip": clip, "rate": rate}
    for steps, clip, rate in product((30, 100), (0.3, 1.0), (0.5, 2.0, 8.0))
}

METHODS: dict[str, Method] = {
    "majority": _method(
        partial(_fit_exactly, make=partial(DummyClassifier, strategy="most_frequent")),
        "majority class",
        "the most frequent class of the training set",
        "baselines",
    ),
    "linear_svc": _baseline("LinearSVC", partial(LinearSVC, random_state=0)),
    "logistic": _baseline("LogisticRegression", partial(LogisticRegression, max_iter=1000)),
    "adaptive_margin": _ours("AdaptiveMarginClassifier", "AdaptiveMargin"),
    "adaptive_margin_pure": _ours("AdaptiveMarginClassifier", "AdaptiveMargin", pure=True),
    "objective_perturbation": _ours("ObjectivePerturbationClassifier", "ObjectivePerturbation"),
    "objective_perturbation_pure": _ours(
        "ObjectivePerturbationClassifier", "ObjectivePerturbation", pure=True
    ),
    "output_perturbation": _ours("OutputPerturbationClassifier", "OutputPerturbation"),
    "dp_sgd": _method(
        fit_dp_sgd,
        "DP-SGD",
        "clipped noisy gradient steps of a softmax model in one fixed configuration: full batch, "
        "T = {steps}, clip {clip:g}, rate {rate:g}, momentum {momentum:g}".format(**FIXED),
        "others",
        {"": FIXED},
    ),
    "dp_sgd_tuned": _method(
        fit_dp_sgd,
        "DP-SGD, tuned",
        f"the best of {len(_TUNING)} configurations of it in each cell",
        "others",
        {name: {**FIXED, **setting} for name, setting in _TUNING.items()},
        cheap=False,
        missing=_too_large_to_tune,
    ),
    "dp_sgd_prepared": _method(
        fit_dp_sgd,
        "DP-SGD, tuned, prepared rows",
        "the same with grey values mapped to [-1, 1], rows of norm one, a constant of .2",
        "others",
        {name: {**FIXED, **setting, "constant": 0.2} for name, setting in _TUNING.items()},
        cheap=False,
        missing=_too_large_to_tune,
        rows=prepared,
        version="prepared",
    ),
    "published_margin": _method(
        fit_published_margin,
        "Wang et al. 2025",
        f"Algorithm 3 of Wang, Zhu and Wang (2025) as published, T at most {STEP_CAP}",
        "others",
        {"": {"cap": STEP_CAP}},
        cheap=False,
        missing=_for_two_classes,
    ),
    "diffprivlib": Method(
        "diffprivlib",
        f"version 0.6.6, `LogisticRegression` (pure DP), the best of {len(REGULARISERS)} C",
        "others",
        diffprivlib_models,
        {f"C={C:g}": {"C": C} for C in REGULARISERS},
        version=", ".join(REQUIREMENTS),
        cheap=False,
        missing=_without_diffprivlib,
    ),
}
METHODS["diffprivlib_prepared"] = replace(
    METHODS["diffprivlib"],
    title="diffprivlib, prepared rows",
    about="the same after the public preprocessing above",
    rows=prepared,
    version="prepared, " + ", ".join(REQUIREMENTS),
)


def _diffprivlib_on_unit_rows(
    X: Any, y: NDArray[Any], *, data_norm: float, **public: Any
) -> dict[str, list[OnUnitRows]]:
    """Fit to rows of norm one, which waste none of the sensitivity."""
    del data_norm
    fitted = diffprivlib_models(unit_rows(X), y, data_norm=1.0, **public)
    return {name: [OnUnitRows(model) for model in models] for name, models in fitted.items()}


_RANKER = partial(_ours, "PrivateAUCClassifier", score=area_under_curve)
_MECHANISMS = ("objective", "output")

# Ranked by the area under the ROC curve.
RANKINGS: dict[str, Method] = {
    "logistic": _baseline(
        "LogisticRegression",
        partial(LogisticRegression, max_iter=1000),
        score=area_under_curve,
    ),
    "auc": _RANKER("PrivateAUC"),
    "auc_pure": _RANKER("PrivateAUC", pure=True),
    "diffprivlib": replace(METHODS["diffprivlib"], score=area_under_curve),
    "diffprivlib_unit": replace(
        METHODS["diffprivlib"],
        title="diffprivlib, normalised rows",
        models=_diffprivlib_on_unit_rows,
        score=area_under_curve,
    ),
    **{
        f"auc_{name}{'_pure' if pure else ''}": _RANKER(
            f"PrivateAUC, {name}", pure=pure, mechanism=name, cheap=False
        )
        for pure in (False, True)
        for name in _MECHANISMS
    },
}
