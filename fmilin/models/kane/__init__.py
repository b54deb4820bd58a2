"""Kane's equations and the linearization procedure of Peterson et al."""

from fmilin.codegen.graph_evaluator import Backend
from fmilin.models.kane.kane_equations import KaneEquations
from fmilin.models.kane.kane_functions import Numerics
from fmilin.models.kane.kane_linearization import Matrices, Partition
from fmilin.models.kane.kane_model import KaneModel

__all__ = ["Backend", "KaneEquations", "KaneModel", "Matrices", "Numerics", "Partition"]
