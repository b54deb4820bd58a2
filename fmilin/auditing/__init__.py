"""Results compared with a second, independent computation of each of their numbers.

Takes: results of all kinds.
Returns: `Audit`: each number by a second method, and whether both agree.
Does not depend on: the command line.
"""

from fmilin.auditing.audit_procedure import audit
from fmilin.auditing.audit_result import Audit, AuditRow

__all__ = ["Audit", "AuditRow", "audit"]
