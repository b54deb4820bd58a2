from .declared import Constraint as Constraint
from .declared import Constraints as Constraints
