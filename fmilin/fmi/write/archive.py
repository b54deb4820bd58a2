"""The FMU as a file: a zip archive that depends on its content alone."""

from __future__ import annotations

import io
import os
import secrets
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path

from fmilin.errors import UsageError

__all__ = ["archive_bytes", "check_destination", "write_archive"]

FIRST_DAY = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip archive can hold: builds of the same model are the same bytes."""

SMALL = 1 << 20
"""Larger content is compressed in a hurry."""


def check_destination(path: Path) -> None:
    """Make sure before any work that an FMU can be written to ``path``.

    Raises
    ------
    UsageError
        When the suffix is wrong, or the place cannot be written.
    """
    if path.suffix.lower() != ".fmu":
        raise UsageError(f"An FMU's file name ends in .fmu, that of '{path}' does not. Rename it.")
    if path.is_dir():
        raise UsageError(f"'{path}' is a folder, so no FMU can be written there. Choose another name.")
    if not path.parent.is_dir():
        raise UsageError(f"The folder '{path.parent}' for '{path.name}' does not exist. Create it first.")
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"The folder '{path.parent}' for '{path.name}' cannot be written. Choose another one.")


def write_archive(path: Path, archive: bytes) -> None:
    """Write ``archive`` to ``path``; an old file there is replaced when the new one is complete.

    Raises
    ------
    UsageError
        When the file cannot be written.
    """
    partial = path.with_name(f".{path.name}-{secrets.token_hex(6)}")
    try:
        with partial.open("xb") as file:
            file.write(archive)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise UsageError(f"'{path}' cannot be written: {error.strerror or error}. Choose another place.") from None
    finally:
        partial.unlink(missing_ok=True)


def archive_bytes(content: Mapping[str, bytes], *, packed: Collection[str] = ()) -> bytes:
    """Return a zip archive with ``content``, in its order; what lies in ``binaries/`` may be executed.

    Parameters
    ----------
    content : mapping of str to bytes
        Name inside the archive, with forward slashes, to content.
    packed : collection of str
        Names whose content cannot be made smaller: it is stored as it is.
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
