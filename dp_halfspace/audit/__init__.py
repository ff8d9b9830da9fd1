"""Audits that try to refute a privacy claim, by fits on two neighbouring data sets.

`audit` is a black-box audit: it compares fitted models only, and works with estimators of any
library. `replay` is a white-box audit, which compares every release of an estimator of this
package. An audit cannot prove privacy; it can only find that a claim is false. Both read private
data without noise, so their results are only for people who may see the data.
"""

from dp_halfspace.audit.black_box import AuditResult as AuditResult
from dp_halfspace.audit.black_box import audit as audit
from dp_halfspace.audit.white_box import ReplayedRelease as ReplayedRelease
from dp_halfspace.audit.white_box import ReplayResult as ReplayResult
from dp_halfspace.audit.white_box import replay as replay
