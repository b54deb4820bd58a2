"""Correct linear models of constrained dynamic systems."""

import fmilin.support.interrupts  # noqa: F401 - first of all: Ctrl-C may come while the rest is imported

# isort: split
import lazy_loader

# The names and where they are defined stand in __init__.pyi, which editors and type checkers read, too.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
