"""Results compared with a second, independent computation of each of their numbers.

Takes: linear models, families, loops, margins, regulators, filters, orbits, periodic models, trimmed points.
Returns: `Audit`: for each quantity the stated number, that of a second method, and whether they agree.
Does not depend on: the command line.
"""

from fmilin.auditing.audit_procedure import audit
from fmilin.auditing.audit_result import Audit, AuditRow

__all__ = ["Audit", "AuditRow", "audit"]
