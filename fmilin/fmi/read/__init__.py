"""An FMU as a Model."""

from fmilin.fmi.read.archive import FmuFile, read_description
from fmilin.fmi.read.model import FmuModel, open_fmu

__all__ = ["FmuFile", "FmuModel", "open_fmu", "read_description"]
