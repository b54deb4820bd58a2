"""What a file on the command line holds: a linear model, a family of them, or neither, and so a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fmilin.errors import ModelError, UsageError

if TYPE_CHECKING:
    from fmilin.families.family import LinearFamily
    from fmilin.linear_model.model import LinearModel

__all__ = ["opened_result"]

READABLE = (".mat", ".npz", ".json", ".nc")
WRITTEN_ONLY = {".m": "a program", ".mo": "a Modelica model", ".tex": "a text", ".txt": "a text", ".csv": "a table"}


def opened_result(source: str) -> LinearModel | LinearFamily | None:
    """Return the linear model or the family in a file; None where ``source`` names a model.

    Raises
    ------
    UsageError
        When fmilin writes files with this suffix, and reads none.
    ModelError
        When the file is missing, damaged or something else.
    """
    path = Path(source)
    suffix = path.suffix.lower()
    if ":" in source and not path.exists():
        return None
    if suffix in WRITTEN_ONLY:
        raise UsageError(
            f"Cannot read '{source}': a {suffix} file is {WRITTEN_ONLY[suffix]}. Save the linear model as .mat, .npz "
            "or .json, a family as .nc, .mat, .npz or .json."
        )
    if suffix == ".fmu":
        from fmilin.export.fmu_file import holds_linear_model

        if not holds_linear_model(path):
            return None
    elif suffix not in READABLE:
        return None
    if not path.exists():
        raise ModelError(f"There is no file '{source}'. Name a file that 'fmilin linearize' or 'fmilin sweep' wrote.")
    return _opened(path)


def _opened(path: Path) -> LinearModel | LinearFamily:
    from fmilin.export.family_files import is_family

    if is_family(path):
        from fmilin.families.family import LinearFamily

        return LinearFamily.load(path)
    from fmilin.linear_model.model import LinearModel

    return LinearModel.load(path)
