"""What many tests share: quiet fits, a ledger, planted noise, the constant column."""

import re
import sys
import warnings
from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

from dp_halfspace import BudgetError, PrivacyWarning
from dp_halfspace.audit import replay
from tests.instances import ESTIMATORS, instances, label, made
from tests.releases import record_releases

every_estimator = pytest.mark.parametrize("estimator", instances(), ids=label)


@contextmanager
def imported_anew(*packages):
    """Import packages as in a new process, which remembers nothing, without starting one."""

    def taken():
        names = [name for name in sys.modules if name.partition(".")[0] in packages]
        return {name: sys.modules.pop(name) for name in names}

    held = taken()
    try:
        yield
    finally:
        taken()
        sys.modules.update(held)


# What a fit may leave in a model.
RELEASED = {
    *("alpha_", "classes_", "coef_", "certainty_", "coef_std_error_", "data_norm_", "feature_map_"),
    *("feature_names_in_", "fill_value_", "hidden_coef_", "hidden_intercept_", "intercept_"),
    *("intercept_std_error_", "margin_", "coef_axes_", "coef_axis_std_error_"),
    *("n_components_", "n_features_in_", "n_hidden_", "one_vs_rest_", "privacy_"),
    *("preconditioner_", "projection_", "row_clip_", "scaler_"),
}


def first_of_each(models, n):
    """The first models of every class as they are, all others among the slow tests."""
    seen = Counter()
    for model in models:
        seen[type(model)] += 1
        yield pytest.param(model, marks=[] if seen[type(model)] <= n else pytest.mark.slow)


# What does not touch the guarantee.
two_of_each = pytest.mark.parametrize(
    "estimator", list(first_of_each(instances(), 2)), ids=[label(e) for e in instances()]
)
one_of_each = pytest.mark.parametrize("estimator", [made(name) for name in ESTIMATORS], ids=label)


# The checks that reach the algorithm; all others see the class, and run on its first model alone.
# From the second model of a class on they are slow.
REACHING = re.compile(
    "train|classes|one_label|class_weight|proba|dtypes|pickle|cloneable|sparse_array|contiguous"
    "|memmap|n_features|invariance|1sample|1feature|dict_unchanged|idempotent|takes_y"
)


# Classes whose default fit weighs records, and checks that give weights of any size: those beyond
# [0, 1] are refused, zero is a weight like any other, and weights do not count as repetitions.
WEIGHING = frozenset(
    ("AdaptiveMarginClassifier", "PrivateKernelClassifier", "PrivateTableClassifier",
     "OutputPerturbationClassifier", "ObjectivePerturbationClassifier")
)  # fmt: skip
_OTHER_WEIGHTS = re.compile("weights_list|all_zero|not_overwritten|weight_equivalence")


def _applies(model, name):
    """Whether a check is of something that a class promises."""
    is_of_weights = "sample_weight" in name
    return not is_of_weights or (
        type(model).__name__ in WEIGHING and not _OTHER_WEIGHTS.search(name)
    )


def checks(models):
    """Every check of scikit-learn on the first model of every class, some on all models."""
    cases, seen = [], Counter()
    for model in models:
        earlier = seen[type(model)]
        marks = pytest.mark.slow if earlier else []
        for estimator, check in estimator_checks_generator(model):
            name = getattr(check, "func", check).__name__
            if not _applies(model, name):
                continue
            again = getattr(check, "keywords", None)  # the same with read-only or short floats
            if not earlier or (REACHING.search(name) and not again):
                case = pytest.param(estimator, check, id=f"{label(model)}-{name}", marks=marks)
                cases.append(case)
        seen[type(model)] += 1
    return cases


def fitted(estimator, X, y, **params):
    """Fit a clone; a seed is used on purpose in many tests, so its warning is not one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return clone(estimator).set_params(**params).fit(X, y)


def releases_of(estimator, X, y, **params):
    """Fit a clone, return what it released."""
    with record_releases() as releases:
        fitted(estimator, X, y, **params)
    return releases


def public(model):
    """Public numbers of a fit."""
    return dict(model.privacy_.public)


def largest_ratio(*replayed, n_histories=1, **how):
    """Return the largest move of a query over its sensitivity; a replay finds nothing else."""
    result = replay(*replayed, n_histories=n_histories, **how)
    assert [text for text in result.findings if "times the sensitivity" not in text] == []
    return max(release.ratio for release in result.releases)


class Book:
    """A ledger of somebody else's, in the memory of one process."""

    def __init__(self, *, refuse=False):
        self.records, self.refuse = [], refuse

    def charge(self, record):
        if self.refuse:
            raise BudgetError("nothing is left")
        self.records.append(record)

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError("a Book stays in its process")


def plant_noise(monkeypatch, kind, factor):
    """Planted: the noise of a mechanism times a factor."""
    honest = kind.perturb
    monkeypatch.setattr(
        kind,
        "perturb",
        lambda self, value, source: value + factor * (honest(self, value, source) - value),
    )


def augmented(X, constant=1.0):
    """Rows with their constant column."""
    return np.column_stack([X, np.full(len(X), constant)])


def together(model, constant=1.0):
    """Coefficients and intercept, one row a model, in the coordinates of augmented rows."""
    return np.column_stack([model.coef_, model.intercept_ / constant])


def exact(kind, X, y, **params):
    """Fit without noise."""
    return fitted(kind(epsilon=np.inf, data_norm=1.0, classes=np.unique(y)), X, y, **params)
