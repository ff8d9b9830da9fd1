"""Every public way to release something: what the audits and attacks run over."""

from functools import partial

import pandas as pd

from dp_halfspace import (
    AdaptiveMarginClassifier,
    ObjectivePerturbationClassifier,
    OutputPerturbationClassifier,
    PrivateSearchCV,
    PrivateTableClassifier,
    PureHalfspaceClassifier,
)
from dp_halfspace.metrics import private_score
from dp_halfspace.preprocessing import PrivateScaler
from tests.instances import WAYS, instances
from tests.metrics.problem import Known


def scored(metric, delta):
    """A score of held-out records, as something that reads records and releases."""
    return partial(private_score, Known(), metric=metric, delta=delta, epsilon=5.0)


def scored_by_group(X, y):
    """Recall on both sides of a border of the first column."""
    side = X[:, 0] > 0.0
    return private_score(
        Known(), X, y, metric="recall", by=side, by_values=[True], delta=1e-6, epsilon=5.0
    )


SEARCHES = {
    "one choice": PrivateSearchCV(
        OutputPerturbationClassifier(data_norm=1.0, classes=[0, 1]),
        {"alpha": [0.1, 1.0]}, selection="exponential", epsilon=10.0,
    ),
    "random stopping": PrivateSearchCV(
        AdaptiveMarginClassifier(data_norm=1.0, classes=[0, 1]),
        {"fit_intercept": [True, False]}, selection="random_stopping", epsilon=10.0,
    ),
    "pure": PrivateSearchCV(
        OutputPerturbationClassifier(data_norm=1.0, delta=0.0, classes=[0, 1]),
        {"alpha": [0.1, 1.0]}, selection="random_stopping", epsilon=10.0,
    ),
    "objectives": PrivateSearchCV(
        ObjectivePerturbationClassifier(data_norm=1.0, classes=[0, 1], preconditioner=False),
        {"alpha": [0.1, 1.0]}, selection="exponential", epsilon=10.0,
    ),
}  # fmt: skip
OTHERS = {
    "scaler": PrivateScaler(epsilon=10.0),
    "pure scaler": PrivateScaler(epsilon=10.0, delta=0.0),
    "by group": scored_by_group,
    "log_loss": scored("log_loss", 1e-6),
    **{f"search, {name}": search for name, search in SEARCHES.items()},
    **{
        f"{metric}, {delta}": scored(metric, delta)
        for metric in ("accuracy", "balanced_accuracy", "confusion_matrix", "roc_auc", "log_loss")
        for delta in (0.0, 1e-6)
    },
}
# Tables of few rows, each fitted by one choice.
SMALL = {
    "small": AdaptiveMarginClassifier(epsilon=0.5, classes=[0, 1]),
    "small, stated": AdaptiveMarginClassifier(epsilon=0.5, data_norm=1.0, classes=[0, 1]),
    "small, pure": PureHalfspaceClassifier(epsilon=0.5, classes=[0, 1]),
    "small, three classes": AdaptiveMarginClassifier(epsilon=0.5, classes=[0, 1, 2]),
}
BUDGET = {"epsilon": 20.0}
MODELS = [
    *instances(classes=[0, 1], **BUDGET),
    *(AdaptiveMarginClassifier(data_norm=1.0, classes=[0, 1], **BUDGET, **way) for way in WAYS),
]


class Table(PrivateTableClassifier):
    """Takes rows of numbers and makes a table of them, with missing values and strings."""

    def fit(self, X, y):
        frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
        frame["b"] = frame["b"].mask(frame["b"] > 0.5)
        return super().fit(frame, y)
