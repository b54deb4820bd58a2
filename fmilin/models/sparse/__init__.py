"""Lagrange's equations given as numbers instead of symbols: for systems too large to be written out."""

from fmilin.models.sparse.numeric_equations import NumericEquations, Pattern, SparseDerivatives
from fmilin.models.sparse.numeric_model import NumericModel

__all__ = ["NumericEquations", "NumericModel", "Pattern", "SparseDerivatives"]
