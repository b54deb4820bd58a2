"""Models as FMUs: symbolic ones and linear ones."""

from fmilin.fmi.write.fmu import build_fmu
from fmilin.fmi.write.linear import LinearFmu, linear_fmu

__all__ = ["LinearFmu", "build_fmu", "linear_fmu"]
