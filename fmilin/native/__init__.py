"""Models written as equations: ODEs, DAEs, Lagrange, Kane, mechanisms with loops; formulations; reference systems.

Enters: equations as texts or symbols, descriptions of bodies and joints, .toml and .urdf files.
Leaves: models with exact derivatives, the three formulations' spectra (Gonzalez et al.), reference systems.
Does not know: FMUs.
"""

from typing import TYPE_CHECKING

from fmilin.ground.import_paths import lazily

if TYPE_CHECKING:
    from fmilin.native.dae.equations import DaeGraph as DaeGraph
    from fmilin.native.dae.model import DaeModel as DaeModel
    from fmilin.native.declaration import Labels as Labels
    from fmilin.native.declaration import SymbolicConstraint as SymbolicConstraint
    from fmilin.native.declaration import der as der
    from fmilin.native.function import FunctionModel as FunctionModel
    from fmilin.native.kane import KaneEquations as KaneEquations
    from fmilin.native.kane import KaneModel as KaneModel
    from fmilin.native.lagrange import LagrangeModel as LagrangeModel
    from fmilin.native.null_space import MultiplierModel as MultiplierModel
    from fmilin.native.null_space import NullSpaceModel as NullSpaceModel
    from fmilin.native.ode import OdeModel as OdeModel
    from fmilin.native.symbolic import SymbolicModel as SymbolicModel

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "dae.equations": ("DaeGraph",),
        "dae.model": ("DaeModel",),
        "declaration": ("Labels", "SymbolicConstraint", "der"),
        "function": ("FunctionModel",),
        "kane": ("KaneEquations", "KaneModel"),
        "lagrange": ("LagrangeModel",),
        "null_space": ("MultiplierModel", "NullSpaceModel"),
        "ode": ("OdeModel",),
        "symbolic": ("SymbolicModel",),
    },
)
