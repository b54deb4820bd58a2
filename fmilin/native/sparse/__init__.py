"""Lagrange's equations given as numbers instead of symbols: for systems too large to be written out."""

from fmilin.native.sparse.equations import NumericEquations, Pattern, Slopes
from fmilin.native.sparse.model import NumericModel

__all__ = ["NumericEquations", "NumericModel", "Pattern", "Slopes"]
