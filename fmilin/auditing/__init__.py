"""Results compared with a second, independent computation of each of their numbers.

Enters: linear models, families, loops, margins, regulators, filters, orbits, periodic models, trimmed points.
Leaves: `Audit`: for each quantity what is stated, what the second way gives, and whether they agree.
Does not know: the command line.
"""

from fmilin.auditing.procedure import audit
from fmilin.auditing.result import Audit, AuditRow

__all__ = ["Audit", "AuditRow", "audit"]
