"""What a file on the command line holds: a linear model, a family of them, or neither, and so a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fmilin.ground.errors import ModelError, UsageError

if TYPE_CHECKING:
    from fmilin.cli.request import Request
    from fmilin.families.family import LinearFamily
    from fmilin.linear_model.model import LinearModel

__all__ = ["opened_result", "refuse_points"]

READABLE = (".mat", ".npz", ".json", ".nc")
WRITTEN_ONLY = {".m": "a program", ".mo": "a Modelica model", ".tex": "a text", ".txt": "a text", ".csv": "a table"}


def opened_result(source: str) -> LinearModel | LinearFamily | None:
    """Return the linear model or the family in a file; None where ``source`` names a model."""
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
        from fmilin.output.export.fmu_file import holds_linear_model

        if not holds_linear_model(path):
            return None
    elif suffix not in READABLE:
        return None
    if not path.exists():
        raise ModelError(f"There is no file '{source}'. Name a file that 'fmilin linearize' or 'fmilin sweep' wrote.")
    return _opened(path)


def _opened(path: Path) -> LinearModel | LinearFamily:
    from fmilin.output.export.family_files import is_family

    if is_family(path):
        from fmilin.families.family import LinearFamily

        return LinearFamily.load(path)
    from fmilin.linear_model.model import LinearModel

    return LinearModel.load(path)


def refuse_points(source: str, request: Request, against: str | None, *, channels: bool = False) -> None:
    """Refuse what says where to linearize a model: a linear model stands where it was made.

    ``against``: the nonlinear model beside the file: parameters and constraints are for it. ``channels``: whether
    inputs and outputs may be chosen all the same.
    """
    given = {
        "--set": request.settings and against is None,
        "--point": request.point,
        "--trim": request.trim,
        "--time": request.time is not None,
        "--independent": request.independent,
        "--project": request.project,
        "--constraint": (request.constraints is not None or request.constraints_file) and against is None,
        "--inputs": request.inputs is not None and not channels,
        "--outputs": request.outputs is not None and not channels,
    }
    if wrong := [option for option, value in given.items() if value]:
        raise UsageError(
            f"{wrong[0]} is for a model that is linearized, and '{source}' holds the result. Leave it out."
        )
