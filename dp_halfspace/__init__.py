"""Differentially private classifiers for scikit-learn, with a proof for the code as it runs.

Names are loaded when they are first used: the import alone loads neither numpy nor scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dp_halfspace import (
        audit,
        datasets,
        estimators,
        exceptions,
        inspection,
        metrics,
        model_selection,
        optim,
        preprocessing,
        privacy,
        projection,
    )
    from dp_halfspace.estimators.adaptive_margin import AdaptiveMarginClassifier
    from dp_halfspace.estimators.auc import PrivateAUCClassifier
    from dp_halfspace.estimators.kernel import PrivateKernelClassifier
    from dp_halfspace.estimators.label_private import LabelPrivateClassifier
    from dp_halfspace.estimators.objective_perturbation import ObjectivePerturbationClassifier
    from dp_halfspace.estimators.output_perturbation import OutputPerturbationClassifier
    from dp_halfspace.estimators.pure_halfspace import PureHalfspaceClassifier
    from dp_halfspace.estimators.pure_network import PureNetworkClassifier
    from dp_halfspace.estimators.table import PrivateTableClassifier
    from dp_halfspace.exceptions import BudgetError, CertificateError, PrivacyWarning
    from dp_halfspace.ledger.ledger import PrivacyLedger
    from dp_halfspace.model_selection.search import PrivateSearchCV

__version__ = "0.1.0"

__all__ = [
    "AdaptiveMarginClassifier",
    "BudgetError",
    "CertificateError",
    "LabelPrivateClassifier",
    "ObjectivePerturbationClassifier",
    "OutputPerturbationClassifier",
    "PrivacyLedger",
    "PrivacyWarning",
    "PrivateAUCClassifier",
    "PrivateKernelClassifier",
    "PrivateSearchCV",
    "PrivateTableClassifier",
    "PureHalfspaceClassifier",
    "PureNetworkClassifier",
    "audit",
    "datasets",
    "estimators",
    "exceptions",
    "inspection",
    "metrics",
    "model_selection",
    "optim",
    "preprocessing",
    "privacy",
    "projection",
]

_HOME = {
    "AdaptiveMarginClassifier": "dp_halfspace.estimators.adaptive_margin",
    "BudgetError": "dp_halfspace.exceptions",
    "CertificateError": "dp_halfspace.exceptions",
    "LabelPrivateClassifier": "dp_halfspace.estimators.label_private",
    "ObjectivePerturbationClassifier": "dp_halfspace.estimators.objective_perturbation",
    "OutputPerturbationClassifier": "dp_halfspace.estimators.output_perturbation",
    "PrivacyWarning": "dp_halfspace.exceptions",
    "PrivateSearchCV": "dp_halfspace.model_selection.search",
    "PrivacyLedger": "dp_halfspace.ledger.ledger",
    "PrivateAUCClassifier": "dp_halfspace.estimators.auc",
    "PrivateKernelClassifier": "dp_halfspace.estimators.kernel",
    "PrivateTableClassifier": "dp_halfspace.estimators.table",
    "PureHalfspaceClassifier": "dp_halfspace.estimators.pure_halfspace",
    "PureNetworkClassifier": "dp_halfspace.estimators.pure_network",
}


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in __all__:  # a subpackage
        value = import_module(f"dp_halfspace.{name}")
    else:
        raise AttributeError(f"module 'dp_halfspace' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names without loading them."""
    return sorted({*globals(), *__all__})
