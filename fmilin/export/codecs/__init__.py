"""One file for each format: the codecs that write and read it. Each file of this folder is imported, in any order.

To add a format, add a file with a codec (:class:`fmilin.formats.Codec`). Its imports of numpy and of the packages of
fmilin stand inside methods, because the command line imports all these files before it parses its arguments.
"""

from importlib import import_module
from pathlib import Path

import fmilin.report  # noqa: F401 - registers pictures and pages


def import_codecs() -> None:
    """Import each file of this folder, which registers its codecs. Files that were imported stay as they are."""
    for folder in __path__:
        for file in sorted(Path(folder).glob("*.py")):
            if file.stem != "__init__":
                import_module(f"{__name__}.{file.stem}")


import_codecs()
