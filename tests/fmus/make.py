"""Compile the FMUs of this folder: a C file, or the header of its plant, holds its model description in a comment."""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from fmilin.codegen.compiler import library_suffix
from fmilin.fmi.platforms import fmi2_folders, fmi3_folders
from tests.shared import shared

HERE = Path(__file__).parent
_DESCRIPTION = re.compile(r"modelDescription\.xml\s*(<\?xml.*?</fmiModelDescription>)", re.DOTALL)


def description_of(name: str) -> str:
    """Return the model description in ``name.c``, else that in the header of its plant, with the name for MODEL.

    Attributes of the plant's description have the values that the file names: "Described as its plant, with a="1".".
    """
    source = (HERE / f"{name}.c").read_text()
    own = _DESCRIPTION.search(source)
    if own is not None:
        return own[1]
    (plant,) = re.findall(r'#include "(.*)"', source)
    shared = _DESCRIPTION.search((HERE / plant).read_text())
    assert shared is not None
    description = shared[1].replace("MODEL", name)
    for attribute, value in re.findall(r'as its plant, with (\w+)="(\w+)"', source):
        description, count = re.subn(rf'\b{attribute}="\w+"', f'{attribute}="{value}"', description)
        assert count == 1, (name, attribute)
    return description


def names_of(*, fmi1: bool) -> list[str]:
    """Return the names of the C files here whose FMUs are of FMI 1.0, or of those whose FMUs are not."""
    names = sorted(path.stem for path in HERE.glob("*.c"))
    return [name for name in names if ('fmiVersion="1.0"' in description_of(name)) == fmi1]


def compile_library(name: str) -> Path:
    """Compile ``name.c``, once in a run of the tests, and return the shared library."""
    return shared(f"{name}{library_suffix()}", lambda path: _compile(name, path))


def _compile(name: str, library: Path) -> None:
    package = find_spec("fmpy")
    assert package is not None
    assert package.submodule_search_locations
    headers = Path(package.submodule_search_locations[0]) / "c-code"
    command = ["cc", "-shared", "-fPIC", "-O1", "-w", f"-I{headers}", f"-I{HERE}", f"{HERE / name}.c", "-o", library]
    subprocess.run([*map(str, command), "-lm"], check=True)


def pack(target: Path, members: Mapping[str, bytes | str]) -> Path:
    """Write an FMU with these members."""
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target


def build(name: str, folder: Path, *, xml: str | None = None, extra: Mapping[str, bytes | str] | None = None) -> Path:
    """Build the FMU of ``name.c``, with another model description or further members if given."""
    xml = description_of(name) if xml is None else xml
    platform = (fmi3_folders() if 'fmiVersion="3' in xml else fmi2_folders())[0]
    library = compile_library(name)
    members: dict[str, bytes | str] = {
        "modelDescription.xml": xml,
        f"binaries/{platform}/{library.name}": library.read_bytes(),
    }
    members |= extra or {}
    return pack(folder / f"{name}.fmu", members)
