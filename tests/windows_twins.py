"""FMUs of the tests with a library for Windows in place of the one for this system, for wine."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

import pytest

from fmilin.fmi.client.wine import WINDOWS, WINDOWS32, find_wine
from fmilin.fmi.host.build import MINGW, MINGW32
from fmilin.fmi.platforms import Machine
from tests.fmus import make
from tests.shared import shared

needs_wine = pytest.mark.skipif(
    find_wine() is None or shutil.which(MINGW) is None,
    reason="FMUs for Windows are made by MinGW-w64 and run by wine: apt install wine64 gcc-mingw-w64-x86-64-win32",
)
needs_wine_for_32_bits = pytest.mark.skipif(
    find_wine(WINDOWS32) is None or shutil.which(MINGW32) is None,
    reason="FMUs for Windows of 32 bits are made by MinGW-w64 and run by wine: dpkg --add-architecture i386; "
    "apt install wine32 gcc-mingw-w64-i686-win32",
)


def compile_for_windows(
    source: Path, flags: Sequence[str] = (), includes: Sequence[Path] = (), compiler: str = MINGW
) -> Path:
    """Compile a C file, once in a run of the tests, and return the library for Windows."""
    package = find_spec("fmpy")
    assert package is not None
    assert package.submodule_search_locations
    headers = Path(package.submodule_search_locations[0]) / "c-code"
    folders = [f"-I{folder}" for folder in (headers, make.HERE, source.parent, *includes)]

    def compile_to(path: Path) -> None:
        subprocess.run([compiler, "-shared", "-O1", "-w", *folders, "-o", path, source, *flags, "-static"], check=True)

    return shared(f"{source.stem}{len(flags)}-{compiler.partition('-')[0]}.dll", compile_to)


def build_for_windows(name: str, folder: Path, machine: Machine = WINDOWS) -> Path:
    """Build the FMU of a file of tests/fmus for Windows alone."""
    compiler = MINGW32 if machine == WINDOWS32 else MINGW
    library = compile_for_windows(make.HERE / f"{name}.c", compiler=compiler)
    return with_library(name, make.description_of(name), library, folder, machine)


def with_library(name: str, description: str, library: Path, folder: Path, machine: Machine = WINDOWS) -> Path:
    """Pack an FMU whose only binary is a library for Windows."""
    version = int(description.partition('fmiVersion="')[2][0])
    member = f"binaries/{machine.folders(version)[0]}/{name}.dll"
    target = folder / f"{name}_for_{machine.fmi2_folder}.fmu"
    return make.pack(target, {"modelDescription.xml": description, member: library.read_bytes()})


def keep_binaries(fmu: Path, kept: str, target: Path) -> Path:
    """Copy an FMU without its sources and without binaries for systems other than one, ``win64`` or the like."""
    with zipfile.ZipFile(fmu) as archive:
        members = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    paths = {name: PurePosixPath(name).parts for name in members}
    kept_names = [
        n for n, parts in paths.items() if parts[0] != "sources" and (parts[0] != "binaries" or parts[1] == kept)
    ]
    return make.pack(target, {name: members[name] for name in kept_names})
