"""Names for authors of adapters: mechanisms made from the files of other engines."""

from fmilin.models.mechanism.changes import Stance, Standing
from fmilin.models.mechanism.mechanism_engine import MechanismEngine
from fmilin.models.mechanism.robot_file import find_additions
from fmilin.models.mechanism.toml_file import read_parts
from fmilin.models.mechanism.urdf_elements import read_urdf

__all__ = ["MechanismEngine", "Stance", "Standing", "find_additions", "read_parts", "read_urdf"]
