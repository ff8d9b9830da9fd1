"""Try to break a claim: fits on two neighbouring data sets, seen from outside and from inside.

`audit` sees models alone and works with any library. `replay` looks at every release of this one.
Neither can prove privacy; each can only find that a claim is false. Both read private data: what
they return is for whoever holds the data.
"""

from dp_halfspace.audit.black_box import AuditResult, audit
from dp_halfspace.audit.replay import ReplayedRelease, ReplayResult, replay

__all__ = ["AuditResult", "ReplayResult", "ReplayedRelease", "audit", "replay"]
