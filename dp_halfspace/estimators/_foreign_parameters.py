"""Parameters of other classifiers that a private classifier does not have, and why."""

from __future__ import annotations

from inspect import signature

from dp_halfspace._params import refusing

NOISE_INSTEAD = (
    "how far a fit can go is decided by the noise: number and size of its steps follow from the "
    "numbers of records and columns and the budget. Give n_samples to keep the objective"
)
_ITERATIONS = "the number of steps is public and part of the plan: a fit never stops by the data"
_SOLVER = "there is one way to train for each budget, whose noise is proved"
_SEED = (
    "noise must be fresh: whoever knows the seed can subtract it. Set random_state by hand to "
    "reproduce a fit"
)
_SILENT = "progress would tell of the records"
_SPEED = "it changes no result"
_SPARSE = "every coefficient is noisy, so none is zero: the penalty is the squared norm"
WITHOUT_COUNTERPART = {
    "tol": _ITERATIONS, "max_iter": _ITERATIONS, "early_stopping": _ITERATIONS,
    "n_iter_no_change": _ITERATIONS, "validation_fraction": _ITERATIONS,
    "dual": _SOLVER, "solver": _SOLVER, "shrinking": _SOLVER, "learning_rate": _SOLVER,
    "eta0": _SOLVER, "power_t": _SOLVER, "average": _SOLVER, "shuffle": _SOLVER,
    "warm_start": _SOLVER,
    "penalty": _SPARSE, "l1_ratio": _SPARSE,
    "positive": "signs of coefficients are not constrained",
    "random_state": _SEED,
    "verbose": _SILENT,
    "n_jobs": _SPEED, "cache_size": _SPEED, "copy_X": _SPEED,
    "loss": "the default has the loss that suits the budget. Give n_samples to keep the objective",
    "multi_class": "three classes or more have one model of all of them",
    "decision_function_shape": "scores of three classes or more have one column for each",
    "break_ties": "noisy scores have no ties",
    "probability": "predict_proba is there anyway",
    "intercept_scaling": "the constant column has a size of its own, relative to the rows",
    "epsilon": "the width of an insensitive loss; here epsilon is the budget",
    "gamma": (
        "it is taken from the columns; the private default mixes several public length scales"
    ),
}  # fmt: skip
_OF_A_CLASS = {
    **WITHOUT_COUNTERPART,
    "C": NOISE_INSTEAD.partition(". ")[0]
    + ". OutputPerturbationClassifier(alpha=1 / (C * n_samples)) keeps its meaning",
    "loss": "the default has the loss that suits the budget. OutputPerturbationClassifier has one",
}

_PRIOR = (
    "prior is a parameter of AdaptiveMarginClassifier: a public linear model that it falls back to "
    "unless the records speak for another"
)


def explains_foreign_parameters(kind: type) -> type:
    """Let a class answer to parameters of scikit-learn's models that it lacks by a sentence."""
    own = signature(kind).parameters
    hint = "dp_halfspace.from_sklearn turns an estimator of scikit-learn into a private one"
    reasons = {name: f"{why}. {hint}" for name, why in _OF_A_CLASS.items()} | {"prior": _PRIOR}
    return refusing(**{name: why for name, why in reasons.items() if name not in own})(kind)
