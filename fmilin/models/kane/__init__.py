"""Kane's equations and the linearization procedure of Peterson et al."""

from fmilin.codegen.evaluator import Backend
from fmilin.models.kane.equations import KaneEquations
from fmilin.models.kane.functions import Numerics
from fmilin.models.kane.model import KaneModel
from fmilin.models.kane.procedure import Matrices, Partition

__all__ = ["Backend", "KaneEquations", "KaneModel", "Matrices", "Numerics", "Partition"]
