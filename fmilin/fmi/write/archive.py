"""The FMU as a file: a zip archive that depends on its content alone."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path

from fmilin.ground.atomic import check_writable
from fmilin.ground.errors import UsageError

__all__ = ["archive_bytes", "check_destination"]

FIRST_DAY = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip archive can hold: builds of the same model are the same bytes."""

SMALL = 1 << 20
"""Larger content is compressed in a hurry."""


def check_destination(path: Path) -> None:
    """Make sure before any work that an FMU can be written to ``path``."""
    if path.suffix.lower() != ".fmu":
        raise UsageError(f"An FMU's file name ends in .fmu, that of '{path}' does not. Rename it.")
    check_writable(path)


def archive_bytes(content: Mapping[str, bytes], *, packed: Collection[str] = ()) -> bytes:
    """Return a zip archive with ``content``, in its order; what lies in ``binaries/`` may be executed.

    ``content``: name inside the archive, with forward slashes, to content. ``packed``: names whose content cannot be
    made smaller: it is stored as it is.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in content.items():
            entry = zipfile.ZipInfo(name, FIRST_DAY)
            entry.compress_type = zipfile.ZIP_STORED if name in packed else zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, whose permissions follow
            entry.external_attr = (0o100755 if name.startswith("binaries/") else 0o100644) << 16
            archive.writestr(entry, data, compresslevel=6 if len(data) < SMALL else 1)
    return buffer.getvalue()
