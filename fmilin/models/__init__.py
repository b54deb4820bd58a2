"""Native descriptions of constrained systems, one file per form of the equations."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fmilin.models.declaration import Labels, SymbolicConstraint, der
    from fmilin.models.function import FunctionModel
    from fmilin.models.kane import KaneEquations, KaneModel
    from fmilin.models.lagrange import LagrangeModel
    from fmilin.models.null_space import MultiplierModel, NullSpaceModel
    from fmilin.models.ode import OdeModel
    from fmilin.models.symbolic import SymbolicModel

_HOMES = {
    "FunctionModel": "function",
    "KaneEquations": "kane",
    "KaneModel": "kane",
    "Labels": "declaration",
    "LagrangeModel": "lagrange",
    "MultiplierModel": "null_space",
    "NullSpaceModel": "null_space",
    "OdeModel": "ode",
    "SymbolicConstraint": "declaration",
    "SymbolicModel": "symbolic",
    "der": "declaration",
}

__all__ = [
    "FunctionModel",
    "KaneEquations",
    "KaneModel",
    "Labels",
    "LagrangeModel",
    "MultiplierModel",
    "NullSpaceModel",
    "OdeModel",
    "SymbolicConstraint",
    "SymbolicModel",
    "der",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: sympy takes a while."""
    if name not in _HOMES:
        raise AttributeError(f"module 'fmilin.models' has no attribute '{name}'")
    return getattr(import_module(f"fmilin.models.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
