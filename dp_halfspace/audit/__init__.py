"""Try to break a claim: fits on two neighbouring data sets, seen from outside and from inside.

`audit` sees models alone and works with any library. `replay` looks at every release of this one.
Neither can prove privacy; each can only find that a claim is false. Both read private data: what
they return is for whoever holds the data.
"""

from typing import TYPE_CHECKING

from dp_halfspace._lazy import lazy_names

if TYPE_CHECKING:
    from dp_halfspace.audit.black_box import AuditResult as AuditResult
    from dp_halfspace.audit.black_box import audit as audit
    from dp_halfspace.audit.white_box import ReplayedRelease as ReplayedRelease
    from dp_halfspace.audit.white_box import ReplayResult as ReplayResult
    from dp_halfspace.audit.white_box import replay as replay

__getattr__, __dir__ = lazy_names(__name__, __file__)
