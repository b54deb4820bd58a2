"""Kane's equations and the linearization procedure of Peterson et al."""

from __future__ import annotations

from fmilin.codegen.native import Backend
from fmilin.models.kane.equations import KaneEquations
from fmilin.models.kane.functions import Numerics
from fmilin.models.kane.model import KaneModel
from fmilin.models.kane.partition import Partition
from fmilin.models.kane.procedure import Blocks, Matrices

__all__ = ["Backend", "Blocks", "KaneEquations", "KaneModel", "Matrices", "Numerics", "Partition"]
