"""Expressions of a user, and the constraints that they declare.

Takes: texts, constraints.toml.
Returns: `Constraint`, residuals with exact derivatives.
Does not depend on: models.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
