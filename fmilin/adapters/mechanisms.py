"""Names for authors of adapters: mechanisms made from the files of other engines."""

from fmilin.models.mechanism.changes import Stance, Standing
from fmilin.models.mechanism.engine import MechanismEngine
from fmilin.models.mechanism.toml_file import read_parts
from fmilin.models.mechanism.urdf_elements import read_urdf
from fmilin.models.mechanism.urdf_file import additions_of

__all__ = ["MechanismEngine", "Stance", "Standing", "additions_of", "read_parts", "read_urdf"]
