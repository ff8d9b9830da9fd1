"""Theorems as functions: what a budget and a number of records can give, by public quantities.

Bounds of the excess risk, of the error for a margin, and of the records that are needed; and
lower bounds that no private algorithm beats. Every function names its theorem.
"""

from typing import TYPE_CHECKING

from dp_halfspace._lazy import lazy_names

if TYPE_CHECKING:
    from dp_halfspace.theory.bounds import convex_excess_risk as convex_excess_risk
    from dp_halfspace.theory.bounds import optimal_regularization as optimal_regularization
    from dp_halfspace.theory.bounds import (
        strongly_convex_excess_risk as strongly_convex_excess_risk,
    )
    from dp_halfspace.theory.margin_bound import margin_risk_bound as margin_risk_bound
    from dp_halfspace.theory.population_bound import RiskBound as RiskBound
    from dp_halfspace.theory.population_bound import population_risk_bound as population_risk_bound
    from dp_halfspace.theory.robust_bounds import adversarial_risk_bound as adversarial_risk_bound
    from dp_halfspace.theory.robust_bounds import tilted_risk_bound as tilted_risk_bound
    from dp_halfspace.theory.sample_complexity import ErrorLowerBound as ErrorLowerBound
    from dp_halfspace.theory.sample_complexity import (
        margin_sample_complexity as margin_sample_complexity,
    )
    from dp_halfspace.theory.sample_complexity import (
        pure_error_lower_bound as pure_error_lower_bound,
    )
    from dp_halfspace.theory.sample_complexity import pure_lower_bound as pure_lower_bound
    from dp_halfspace.theory.sample_complexity import pure_risk_bound as pure_risk_bound

__getattr__ = lazy_names(__name__, __file__)
