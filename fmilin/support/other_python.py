"""Programs that run this Python: none imports files of the current folder before those of Python and its packages."""

import os
import sys

_EXTEND_PATH = "import os, sys; sys.path += sys.argv.pop(1).split(os.pathsep)"


def python_command(*arguments: str) -> list[str]:
    """Return the command of this Python with these arguments.

    ``-P`` keeps the current folder out of the import path: a file ``json.py`` next to a model would run otherwise.
    """
    return [sys.executable, "-P", *arguments]


def python_with_imports(code: str, *arguments: str) -> list[str]:
    """Return the command that runs a line of code in a Python that can import all that this one can.

    The folders on the import path of this Python stand behind the installation there: no file in them takes the place
    of a module of Python.
    """
    folders = os.pathsep.join(os.path.abspath(folder) for folder in sys.path)  # noqa: PTH100 - "" is the current one
    return python_command("-c", f"{_EXTEND_PATH}; {code}", folders, *arguments)
