"""Kane's equations and the linearization procedure of Peterson et al."""

from fmilin.native.kane.equations import KaneEquations
from fmilin.native.kane.functions import Numerics
from fmilin.native.kane.model import KaneModel
from fmilin.native.kane.procedure import Matrices, Partition
from fmilin.numerics.codegen.evaluator import Backend

__all__ = ["Backend", "KaneEquations", "KaneModel", "Matrices", "Numerics", "Partition"]
