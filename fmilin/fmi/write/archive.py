"""The FMU as a file: identifier and token, the constraints inside, a zip archive that depends on its content alone."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from fmilin.fmi.write.variables import DeclaredConstraint
from fmilin.ground.errors import UsageError
from fmilin.ground.files import check_writable
from fmilin.ground.version import __version__
from fmilin.model.constraints.expressions import name_in_expression
from fmilin.model.point_files import toml_string

FIRST_DAY = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip archive can hold: builds of the same model are the same bytes."""

SMALL = 1 << 20  # larger content is compressed in a hurry


def check_destination(path: Path) -> None:
    """Make sure before any work that an FMU can be written to ``path``."""
    if path.suffix.lower() != ".fmu":
        raise UsageError(f"An FMU's file name ends in .fmu, that of '{path}' does not. Rename it.")
    check_writable(path)


def archive_bytes(content: Mapping[str, bytes], *, packed: Collection[str] = ()) -> bytes:
    """Return a zip archive of ``content``, ``packed`` names stored as they are, ``binaries/`` executable."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in content.items():
            entry = zipfile.ZipInfo(name, FIRST_DAY)
            entry.compress_type = zipfile.ZIP_STORED if name in packed else zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, whose permissions follow
            entry.external_attr = (0o100755 if name.startswith("binaries/") else 0o100644) << 16
            archive.writestr(entry, data, compresslevel=6 if len(data) < SMALL else 1)
    return buffer.getvalue()


def token_of(parts: Iterable[bytes]) -> str:
    """Return a GUID that is a fingerprint of the content.

    >>> token_of([b"A", b"B"]) == token_of([b"AB"])
    False
    """
    digest = hashlib.sha256(__version__.encode())
    for part in parts:
        digest.update(f"{len(part)}:".encode() + part)
    h = digest.hexdigest()
    return f"{{{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:32]}}}"


def identifier_like(name: str) -> str:
    """Return a C identifier that looks like ``name``.

    >>> identifier_like("2 masses")
    'model_2_masses'
    """
    text = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "model"
    return f"model_{text}" if text[0].isdigit() else text


CONSTRAINTS_PATH = "extra/org.fmilin/constraints.toml"


def constraints_toml(constraints: Sequence[DeclaredConstraint], independent: Sequence[str]) -> str:
    """Return the file's text, empty without anything to say; ``independent`` are the coordinates to keep."""
    blocks = [_block(c) for c in constraints]
    if independent:
        blocks.append(f"[coordinates]\nindependent = [{', '.join(map(toml_string, independent))}]\n")
    return "\n".join(blocks)


def _block(constraint: DeclaredConstraint) -> str:
    entries = {"variable": constraint.variable, "level": constraint.level}
    if constraint.name:
        entries["name"] = constraint.name
    if constraint.rate is not None:
        entries["rate"] = name_in_expression(constraint.rate)
    return "[[constraint]]\n" + "".join(f"{key} = {toml_string(value)}\n" for key, value in entries.items())
