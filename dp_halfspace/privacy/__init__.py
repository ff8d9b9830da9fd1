"""Privacy: what was released (events), what it costs (accounting), how noise is drawn."""

from typing import TYPE_CHECKING

from dp_halfspace._lazy import lazy_names

if TYPE_CHECKING:
    from dp_halfspace.privacy._ledger_view import LedgerPlan
    from dp_halfspace.privacy.accounting import calibrate, delta, epsilon
    from dp_halfspace.privacy.events import (
        Event,
        Exponential,
        Gaussian,
        ObjectivePerturbation,
        Pure,
        Repeated,
        Selection,
        event_from_dict,
    )
    from dp_halfspace.privacy.gaussian import rounded_gaussian
    from dp_halfspace.privacy.laplace import l2_laplace
    from dp_halfspace.privacy.ledger import LedgerEntry, PrivacyLedger, open_ledger
    from dp_halfspace.privacy.mechanisms import (
        GaussianNoise,
        L2LaplaceNoise,
        Ledger,
        NoNoise,
        additive_noise,
        authorise,
    )
    from dp_halfspace.privacy.profiles import gdp_delta, gdp_epsilon, gdp_mu
    from dp_halfspace.privacy.randomness import ByteSource, noise_source, public_generator
    from dp_halfspace.privacy.record import PrivacyRecord
    from dp_halfspace.privacy.selection import exponential_mechanism
    from dp_halfspace.privacy.tuning import (
        RunLaw,
        calibrate_selection,
        geometric_law,
        mixed_selection_event,
        run_law,
        select_best,
        selection_event,
    )

__all__ = [
    "ByteSource",
    "Event",
    "Exponential",
    "Gaussian",
    "GaussianNoise",
    "L2LaplaceNoise",
    "Ledger",
    "LedgerEntry",
    "LedgerPlan",
    "NoNoise",
    "ObjectivePerturbation",
    "PrivacyLedger",
    "PrivacyRecord",
    "Pure",
    "Repeated",
    "RunLaw",
    "Selection",
    "additive_noise",
    "authorise",
    "calibrate",
    "calibrate_selection",
    "delta",
    "epsilon",
    "event_from_dict",
    "exponential_mechanism",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_mu",
    "geometric_law",
    "l2_laplace",
    "mixed_selection_event",
    "noise_source",
    "open_ledger",
    "public_generator",
    "rounded_gaussian",
    "run_law",
    "select_best",
    "selection_event",
]

__getattr__ = lazy_names(__name__, __file__)
