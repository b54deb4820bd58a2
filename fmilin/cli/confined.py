"""Files of one folder only, for the commands that programs run by ``fmilin mcp``.

:func:`require_confined` checks a path that a request names. :func:`confine_files` also rejects files outside to which a
file of the folder refers, as a mechanism to a URDF file. It is not a sandbox: code in Python could remove it.
"""

import errno
import os
import sys
from pathlib import Path

from fmilin.codegen.compiler import cache_folder
from fmilin.errors import UsageError
from fmilin.support.files import temporary_place

SYSTEM_FOLDERS = ("/usr", "/lib", "/lib64", "/proc", "/sys", "/dev", "/System", "/Library")  # libraries and fonts

LIBRARY_VARIABLES = (
    "MODELICAPATH",
    "SDF_PATH",
    "GZ_SIM_RESOURCE_PATH",
    "IGN_GAZEBO_RESOURCE_PATH",
    "GAZEBO_MODEL_PATH",
)
"""Variables of the environment with folders of libraries and models."""


def require_confined(folder: Path, text: str) -> None:
    """Raise UsageError if a path leads out of ``folder``, also by ``..`` or a link; a relative one begins there."""
    if not _is_confined(folder / text, [str(folder)]):
        raise UsageError(
            f"'{text}' is outside '{folder}', the folder of this server, or a link that leads out of it. Name a file "
            "in that folder by its path from there, or start the server with another folder."
        )


def confine_files(folder: Path) -> None:
    """Let this process open files of ``folder`` and of the installed software only, from now on; it has no end."""
    libraries = [path for name in LIBRARY_VARIABLES for path in os.environ.get(name, "").split(os.pathsep)]
    installed = [sys.prefix, sys.base_prefix, *sys.path, *SYSTEM_FOLDERS, os.environ.get("SYSTEMROOT", ""), *libraries]
    caches = [cache_folder().parent, cache_folder().parents[1] / "matplotlib", temporary_place()]
    roots = [str(folder), *(os.path.realpath(path) for path in (*installed, *map(str, caches)) if path)]

    def check(event: str, arguments: tuple[object, ...]) -> None:
        if event != "open" or not isinstance(arguments[0], str | bytes | os.PathLike):
            return
        path = Path(os.fsdecode(arguments[0]))
        if not _is_confined(path, roots):
            raise PermissionError(errno.EACCES, f"it is outside '{folder}', the folder of this server", str(path))

    sys.addaudithook(check)


def _is_confined(path: Path, folders: list[str]) -> bool:
    try:
        target = os.path.normcase(os.path.realpath(path))
    except (OSError, ValueError):  # a circle of links, or a character that no path has
        return False
    return any(
        target == root or target.startswith(root.rstrip(os.sep) + os.sep) for root in map(os.path.normcase, folders)
    )
