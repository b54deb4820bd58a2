"""Native models: ODEs, DAEs, Lagrange, Kane, mechanisms with loops.

Takes: equations as texts or symbols, descriptions of bodies and joints, .toml, .urdf and .sdf files.
Returns: models with exact derivatives.
Does not depend on: FMUs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
