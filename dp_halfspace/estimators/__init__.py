"""The classifiers, one a file; each is a name of the package itself, too."""

from typing import TYPE_CHECKING

from dp_halfspace._lazy import lazy_names

if TYPE_CHECKING:
    from dp_halfspace.estimators.adaptive_margin import AdaptiveMarginClassifier
    from dp_halfspace.estimators.auc import PrivateAUCClassifier
    from dp_halfspace.estimators.kernel import PrivateKernelClassifier
    from dp_halfspace.estimators.label_private import LabelPrivateClassifier
    from dp_halfspace.estimators.objective_perturbation import ObjectivePerturbationClassifier
    from dp_halfspace.estimators.output_perturbation import OutputPerturbationClassifier
    from dp_halfspace.estimators.pure_halfspace import PureHalfspaceClassifier
    from dp_halfspace.estimators.pure_network import PureNetworkClassifier
    from dp_halfspace.estimators.table import PrivateTableClassifier

__all__ = [
    "AdaptiveMarginClassifier",
    "LabelPrivateClassifier",
    "ObjectivePerturbationClassifier",
    "OutputPerturbationClassifier",
    "PrivateAUCClassifier",
    "PrivateKernelClassifier",
    "PrivateTableClassifier",
    "PureHalfspaceClassifier",
    "PureNetworkClassifier",
]

__getattr__ = lazy_names(__name__, __file__)
