"""Models as FMUs: symbolic ones and linear ones."""

from fmilin.fmi.write.linear_model_fmu import LinearFmu, linear_fmu
from fmilin.fmi.write.symbolic_fmu import build_fmu

__all__ = ["LinearFmu", "build_fmu", "linear_fmu"]
