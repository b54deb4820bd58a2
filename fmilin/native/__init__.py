"""Models written as equations: ODEs, DAEs, Lagrange, Kane, mechanisms with loops; formulations; reference systems.

Enters: equations as texts or symbols, descriptions of bodies and joints, .toml and .urdf files.
Leaves: models with exact derivatives, the three formulations' spectra (Gonzalez et al.), reference systems.
Does not know: FMUs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fmilin.native.dae.equations import DaeGraph
    from fmilin.native.dae.model import DaeModel
    from fmilin.native.declaration import Labels, SymbolicConstraint, der
    from fmilin.native.function import FunctionModel
    from fmilin.native.kane import KaneEquations, KaneModel
    from fmilin.native.lagrange import LagrangeModel
    from fmilin.native.null_space import MultiplierModel, NullSpaceModel
    from fmilin.native.ode import OdeModel
    from fmilin.native.symbolic import SymbolicModel

_HOMES = {
    "DaeGraph": "dae.equations",
    "DaeModel": "dae.model",
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
    "DaeGraph",
    "DaeModel",
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
        raise AttributeError(f"module 'fmilin.native' has no attribute '{name}'")
    return getattr(import_module(f"fmilin.native.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
