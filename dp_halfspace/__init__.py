"""Differentially private classifiers for scikit-learn, with a proof for the code as it runs.

Names are loaded when they are first used: the import alone loads neither numpy nor scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dp_halfspace._lazy import lazy_names

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
    from dp_halfspace.ledger.ledger import PrivacyLedger as PrivacyLedger
    from dp_halfspace.model_selection.prefit import (
        PrivateConformalClassifier as PrivateConformalClassifier,
    )
    from dp_halfspace.model_selection.prefit import (
        PrivateThresholdClassifier as PrivateThresholdClassifier,
    )
    from dp_halfspace.model_selection.search import PrivateSearchCV as PrivateSearchCV

__version__ = "1.0.0"

_HOMES = {
    "dp_halfspace": (
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
    ),
    "dp_halfspace.estimators.adaptive_margin": ("AdaptiveMarginClassifier",),
    "dp_halfspace.estimators.auc": ("PrivateAUCClassifier",),
    "dp_halfspace.estimators.kernel": ("PrivateKernelClassifier",),
    "dp_halfspace.estimators.label_private": ("LabelPrivateClassifier",),
    "dp_halfspace.estimators.objective_perturbation": ("ObjectivePerturbationClassifier",),
    "dp_halfspace.estimators.output_perturbation": ("OutputPerturbationClassifier",),
    "dp_halfspace.estimators.pure_halfspace": ("PureHalfspaceClassifier",),
    "dp_halfspace.estimators.pure_network": ("PureNetworkClassifier",),
    "dp_halfspace.estimators.table": ("PrivateTableClassifier",),
    "dp_halfspace.exceptions": (
        "BudgetError",
        "CertificateError",
        "PrivacyWarning",
        "RepeatedFitWarning",
    ),
    "dp_halfspace.ledger.ledger": ("PrivacyLedger",),
    "dp_halfspace.model_selection.prefit": (
        "PrivateConformalClassifier",
        "PrivateThresholdClassifier",
    ),
    "dp_halfspace.model_selection.search": ("PrivateSearchCV",),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
