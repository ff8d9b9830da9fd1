"""Differentially private classifiers for scikit-learn, with a proof for the code as it runs.

Names are loaded when they are first used: the import alone loads neither numpy nor scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dp_halfspace import audit as audit
    from dp_halfspace import datasets as datasets
    from dp_halfspace import estimators as estimators
    from dp_halfspace import exceptions as exceptions
    from dp_halfspace import inspection as inspection
    from dp_halfspace import metrics as metrics
    from dp_halfspace import model_selection as model_selection
    from dp_halfspace import optim as optim
    from dp_halfspace import preprocessing as preprocessing
    from dp_halfspace import privacy as privacy
    from dp_halfspace import projection as projection
    from dp_halfspace import theory as theory
    from dp_halfspace.estimators.adaptive_margin import (
        AdaptiveMarginClassifier as AdaptiveMarginClassifier,
    )
    from dp_halfspace.estimators.auc import PrivateAUCClassifier as PrivateAUCClassifier
    from dp_halfspace.estimators.kernel import PrivateKernelClassifier as PrivateKernelClassifier
    from dp_halfspace.estimators.label_private import (
        LabelPrivateClassifier as LabelPrivateClassifier,
    )
    from dp_halfspace.estimators.objective_perturbation import (
        ObjectivePerturbationClassifier as ObjectivePerturbationClassifier,
    )
    from dp_halfspace.estimators.output_perturbation import (
        OutputPerturbationClassifier as OutputPerturbationClassifier,
    )
    from dp_halfspace.estimators.pure_halfspace import (
        PureHalfspaceClassifier as PureHalfspaceClassifier,
    )
    from dp_halfspace.estimators.pure_network import PureNetworkClassifier as PureNetworkClassifier
    from dp_halfspace.estimators.table import PrivateTableClassifier as PrivateTableClassifier
    from dp_halfspace.exceptions import BudgetError as BudgetError
    from dp_halfspace.exceptions import CertificateError as CertificateError
    from dp_halfspace.exceptions import PrivacyWarning as PrivacyWarning
    from dp_halfspace.exceptions import RepeatedFitWarning as RepeatedFitWarning
    from dp_halfspace.ledger import PrivacyLedger as PrivacyLedger
    from dp_halfspace.model_selection import (
        PrivateConformalClassifier as PrivateConformalClassifier,
    )
    from dp_halfspace.model_selection import PrivateSearchCV as PrivateSearchCV
    from dp_halfspace.model_selection import (
        PrivateThresholdClassifier as PrivateThresholdClassifier,
    )

__version__ = "1.0.0"

_PARTS = (
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
    "theory",
)
_HOMES = {
    "AdaptiveMarginClassifier": "estimators.adaptive_margin",
    "BudgetError": "exceptions",
    "CertificateError": "exceptions",
    "LabelPrivateClassifier": "estimators.label_private",
    "ObjectivePerturbationClassifier": "estimators.objective_perturbation",
    "OutputPerturbationClassifier": "estimators.output_perturbation",
    "PrivacyLedger": "ledger",
    "PrivacyWarning": "exceptions",
    "PrivateAUCClassifier": "estimators.auc",
    "PrivateConformalClassifier": "model_selection",
    "PrivateKernelClassifier": "estimators.kernel",
    "PrivateSearchCV": "model_selection",
    "PrivateTableClassifier": "estimators.table",
    "PrivateThresholdClassifier": "model_selection",
    "PureHalfspaceClassifier": "estimators.pure_halfspace",
    "PureNetworkClassifier": "estimators.pure_network",
    "RepeatedFitWarning": "exceptions",
}
__all__ = [*_PARTS, *_HOMES]  # noqa: PLE0604 (they are strings)


def __getattr__(name: str) -> Any:
    """Import a part of the package, or a name from its home, when it is first asked for."""
    if name in _PARTS:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
