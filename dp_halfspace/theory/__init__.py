"""Theorems as functions of public quantities: error bounds for a budget and a sample size.

Bounds on the excess risk, on the error for a given margin, and on the sample complexity, and lower
bounds that hold for every private algorithm. Every function cites its theorem.
"""

from dp_halfspace.theory.bounds import RiskBound as RiskBound
from dp_halfspace.theory.bounds import convex_excess_risk as convex_excess_risk
from dp_halfspace.theory.bounds import katyusha_iterations as katyusha_iterations
from dp_halfspace.theory.bounds import objective_risk_bound as objective_risk_bound
from dp_halfspace.theory.bounds import optimal_regularization as optimal_regularization
from dp_halfspace.theory.bounds import population_risk_bound as population_risk_bound
from dp_halfspace.theory.bounds import ranking_risk_bound as ranking_risk_bound
from dp_halfspace.theory.bounds import sgd_iterations as sgd_iterations
from dp_halfspace.theory.bounds import strongly_convex_excess_risk as strongly_convex_excess_risk
from dp_halfspace.theory.margin_bound import last_iterate_risk_bound as last_iterate_risk_bound
from dp_halfspace.theory.margin_bound import margin_risk_bound as margin_risk_bound
from dp_halfspace.theory.margin_bound import (
    random_stopping_risk_bound as random_stopping_risk_bound,
)
from dp_halfspace.theory.margin_guarantees import ErrorBound as ErrorBound
from dp_halfspace.theory.margin_guarantees import fourier_distortion as fourier_distortion
from dp_halfspace.theory.margin_guarantees import fourier_frequencies as fourier_frequencies
from dp_halfspace.theory.margin_guarantees import hinge_risk_bound as hinge_risk_bound
from dp_halfspace.theory.margin_guarantees import kernel_risk_bound as kernel_risk_bound
from dp_halfspace.theory.margin_guarantees import label_risk_bound as label_risk_bound
from dp_halfspace.theory.margin_guarantees import (
    margin_score_sensitivity as margin_score_sensitivity,
)
from dp_halfspace.theory.margin_guarantees import margin_selection_cost as margin_selection_cost
from dp_halfspace.theory.margin_guarantees import network_risk_bound as network_risk_bound
from dp_halfspace.theory.margin_guarantees import phased_risk_bound as phased_risk_bound
from dp_halfspace.theory.margin_guarantees import (
    selected_margin_risk_bound as selected_margin_risk_bound,
)
from dp_halfspace.theory.pure_bounds import ErrorLowerBound as ErrorLowerBound
from dp_halfspace.theory.pure_bounds import margin_sample_complexity as margin_sample_complexity
from dp_halfspace.theory.pure_bounds import pure_error_lower_bound as pure_error_lower_bound
from dp_halfspace.theory.pure_bounds import pure_lower_bound as pure_lower_bound
from dp_halfspace.theory.pure_bounds import pure_risk_bound as pure_risk_bound
from dp_halfspace.theory.robust_bounds import adversarial_risk_bound as adversarial_risk_bound
from dp_halfspace.theory.robust_bounds import tilted_risk_bound as tilted_risk_bound
