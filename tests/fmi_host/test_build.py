"""The host program compiles without a warning for every system, is in the wheel, and is named with its compiler."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from fmilin.codegen.compilers import zig_target
from fmilin.errors import ModelError
from fmilin.fmi.client.host_programs import Operation, ValueType
from fmilin.fmi.host import build, recipe
from fmilin.fmi.host.build import describe_host, host_program
from tests.c_code import COMPILERS, HAS_ZIG, ZIG
from tests.fmi_host.hosted import HostedFmu, compile_types3
from tests.fmi_host.probe import WARNINGS

CHECKOUT = Path(__file__).parents[2]
HAS_CLANG = shutil.which("clang") is not None
CLANG = pytest.param(("clang",), marks=pytest.mark.skipif(not HAS_CLANG, reason="there is no clang"), id="other clang")
WINE = shutil.which("wine64") or shutil.which("/usr/lib/wine/wine64")
MUSL_LOADER = Path("/lib/ld-musl-x86_64.so.1")
SYSROOT = Path("/usr/aarch64-linux-gnu")
EXIT_USAGE = 64
needs_zig = pytest.mark.skipif(not HAS_ZIG, reason="ziglang is not installed")
needs_hatch = pytest.mark.skipif(find_spec("hatchling") is None, reason="hatchling is not installed")


def units() -> list[str]:
    return [str(path) for path in recipe.source_files() if path.suffix == ".c"]


# --- Warnings.


@pytest.mark.parametrize("compiler", [*COMPILERS, CLANG])
def test_the_host_compiles_without_a_warning(compiler: tuple[str, ...], tmp_path: Path) -> None:
    command = [*compiler, "-O2", *WARNINGS, *units(), "-o", str(tmp_path / "host"), *recipe.link_options("linux")]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stderr == ""


@needs_zig
@pytest.mark.parametrize(
    ("architecture", "system"),
    [("aarch64", "linux"), ("x86", "linux"), ("x86_64", "windows"), ("aarch64", "darwin"), ("x86_64", "darwin")],
)
def test_the_host_compiles_for_other_systems_without_a_warning(architecture: str, system: str, tmp_path: Path) -> None:
    target = ["-target", zig_target(architecture, system)]
    command = [*ZIG, *target, "-O2", *WARNINGS, "-D_FILE_OFFSET_BITS=64", "-o", str(tmp_path / "host.o"), "-c"]
    # zig joins objects into one for all systems but Windows, where to link a program takes a minute the first time
    groups = [[unit] for unit in units()] if system == "windows" else [units()]
    for group in groups:
        assert subprocess.run([*command, *group], check=True, capture_output=True, text=True).stderr == ""


# --- Other machines.


@needs_zig
@pytest.mark.skipif(shutil.which("qemu-aarch64") is None, reason="qemu-aarch64 is not installed: apt install qemu-user")
@pytest.mark.skipif(not SYSROOT.is_dir(), reason=f"'{SYSROOT}' is missing: apt install libc6-arm64-cross")
def test_a_host_for_arm_loads_a_library_for_arm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    target = [*ZIG, "-target", zig_target("aarch64", "linux")]
    program = tmp_path / "host-for-arm"
    subprocess.run(recipe.compilation(target, "linux", program), check=True)
    emulated = tmp_path / "emulated"
    emulated.write_text(f'#!/bin/sh\nexec qemu-aarch64 -L {SYSROOT} {program} "$@"\n')
    emulated.chmod(0o700)
    monkeypatch.setenv("FMILIN_HOST", str(emulated))
    check_small_integers(compile_types3((*target, "-O1"), "types3-arm.so"))


@needs_zig
@pytest.mark.skipif(not MUSL_LOADER.is_file(), reason=f"'{MUSL_LOADER}' is missing: apt install musl")
def test_a_host_for_musl_loads_a_library_for_musl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    target = [*ZIG, "-target", "x86_64-linux-musl", "-dynamic"]  # as hatch_build.py has it on Alpine
    program = tmp_path / "host-for-musl"
    subprocess.run(recipe.compilation(target, "linux", program), check=True)
    monkeypatch.setenv("FMILIN_HOST", str(program))
    check_small_integers(compile_types3((*target, "-O1"), "types3-musl.so"))


def check_small_integers(library: Path) -> None:
    """Set and get integers of 8 bits in a host."""
    with HostedFmu(library, 3) as fmu:
        assert fmu.problem == ""
        assert fmu.instantiate("types3") is None
        values = fmu.arena.copy(np.array([-128, 127, 1, 0]))
        references, answer = fmu.references([0, 1, 2, 3]), fmu.arena.copy(np.full(4, 99))
        assert fmu.do(Operation.SET_VALUES, references, values, kind=ValueType.INT8) is None
        assert fmu.do(Operation.GET_VALUES, references, answer, kind=ValueType.INT8) is None
        np.testing.assert_array_equal(answer, values)


@needs_zig
@pytest.mark.skipif(
    not (WINE and os.environ.get("FMILIN_TEST_WINE") == "1"),
    reason="Windows is tested where FMILIN_TEST_WINE=1 and Debian's wine64 is installed: zig first builds the C "
    "library of Windows (a minute of CPU), and wine takes 700 MB of packages and as much for its prefix",
)
def test_a_host_for_windows_loads_a_library_for_windows(tmp_path: Path) -> None:
    assert WINE is not None
    target = [*ZIG, "-target", zig_target("x86_64", "windows")]
    subprocess.run(recipe.compilation(target, "windows", tmp_path / "host.exe"), check=True)
    client = Path(__file__).with_name("windows_client.c")
    command = [*target, *WARNINGS, "-s", f"-I{recipe.FOLDER}", str(client), "-o", str(tmp_path / "client.exe")]
    subprocess.run(command, check=True)
    shutil.copy(compile_types3((*target, "-s"), "types3.dll"), tmp_path)
    answer = subprocess.run(
        [WINE, "client.exe", "host.exe", "Z:" + str(tmp_path / "types3.dll").replace("/", "\\")],
        check=True, capture_output=True, text=True, cwd=tmp_path, timeout=300,
        env={**os.environ, "WINEPREFIX": str(tmp_path / "wine"), "WINEDEBUG": "-all"},
    ).stdout  # fmt: skip
    assert "no-new-processes=active: job object\njob=active" in answer
    protocol = (recipe.FOLDER / "protocol.h").read_text()
    version = re.search(r"PROTOCOL_VERSION = (\d+)", protocol)
    assert version is not None
    statuses = "opened 0, instantiated 0, set 0, got 0, outside -1"
    assert answer.splitlines()[-1] == f"version {version[1]}, {statuses}, values -128 127 1 0"


# --- Which program is used.


def test_the_program_is_compiled_on_first_use_and_named_with_its_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FMILIN_HOST", raising=False)
    if host_program().parent == recipe.FOLDER:
        pytest.skip("fmilin was installed from a wheel, which has the program")
    assert str(host_program()) in describe_host()
    assert "when an FMU was first loaded" in describe_host()


def test_another_build_is_named_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = Path(shutil.copy(host_program(), tmp_path / "mine"))
    monkeypatch.setenv("FMILIN_HOST", str(program))
    assert host_program() == program
    assert describe_host() == f"'{program}', which the environment variable FMILIN_HOST names"


def test_the_program_of_a_wheel_is_preferred(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FMILIN_HOST", raising=False)
    program = Path(shutil.copy(host_program(), tmp_path / recipe.program_name("linux")))
    (tmp_path / recipe.BUILD_NOTE).write_text("cc 1.2.3 for linux_x86_64\n")
    monkeypatch.setattr(recipe, "FOLDER", tmp_path)
    assert host_program() == program
    assert describe_host() == f"'{program}', compiled by cc 1.2.3 for linux_x86_64 when fmilin was packaged"


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name in ("FMILIN_HOST", "CC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(recipe, "FOLDER", Path(shutil.copytree(recipe.FOLDER, tmp_path / "host")))
    (recipe.FOLDER / recipe.program_name("linux")).unlink(missing_ok=True)
    build._compile_program.cache_clear()
    yield
    build._compile_program.cache_clear()


@needs_zig
@pytest.mark.usefixtures("no_compiler")
def test_without_a_compiler_ziglang_compiles_the_program() -> None:
    assert "ziglang" in describe_host()
    assert subprocess.run([host_program()], check=False, capture_output=True).returncode == EXIT_USAGE


@pytest.mark.usefixtures("no_compiler")
def test_without_any_compiler_the_error_names_ziglang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "zig_command", lambda *_: None)
    with pytest.raises(ModelError, match=r"has to be compiled. No C compiler was found.*fmilin\[cross\]"):
        host_program()


# --- Wheels.


def hatch(call: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Call hatch's backend in a process of its own, as pip does."""
    variables = {name: value for name, value in os.environ.items() if name not in ("CC", "FMILIN_HOST_TARGET")}
    return subprocess.run(
        [sys.executable, "-c", f"import sys; from hatchling.build import *; print({call})"],
        capture_output=True,
        text=True,
        check=True,
        cwd=CHECKOUT,
        env={**variables, **environment},
    )


def wheel_with(folder: Path, **environment: str) -> Path:
    return folder / hatch(f"build_wheel({str(folder)!r})", **environment).stdout.split()[-1]


def packaged_host(wheel: Path, folder: Path) -> Path:
    """Return the program of a wheel, executable for its owner as pip makes it."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.startswith("fmilin/fmi/host/fmilin-host") and ".txt" not in n)
        assert archive.getinfo(name).external_attr >> 16 & stat.S_IXUSR
        program = Path(archive.extract(name, folder))
    program.chmod(0o700)
    return program


@needs_hatch
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_wheel_has_a_program_that_runs_here(tmp_path: Path) -> None:
    wheel = wheel_with(tmp_path)
    assert wheel.name.endswith(".whl")
    assert "-py3-none-" in wheel.name
    assert "any" not in wheel.name
    program = packaged_host(wheel, tmp_path)
    assert subprocess.run([program], check=False, capture_output=True).returncode == EXIT_USAGE


@needs_hatch
@needs_zig
def test_a_wheel_for_another_machine_has_its_program(tmp_path: Path) -> None:
    wheel = wheel_with(tmp_path, FMILIN_HOST_TARGET="aarch64-linux")
    assert wheel.name.endswith("-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.whl")
    header = packaged_host(wheel, tmp_path).read_bytes()[:20]
    assert header[:4] == b"\x7fELF"
    assert int.from_bytes(header[18:20], "little") == 183  # EM_AARCH64


@needs_hatch
def test_ziglang_is_required_for_a_build_only_where_no_compiler_works(tmp_path: Path) -> None:
    mere_name = tmp_path / "cc"  # such as a gcc without the headers of a C library
    mere_name.write_text("#!/bin/sh\nexit 1\n")
    mere_name.chmod(0o700)
    requirements = "get_requires_for_build_wheel()"
    assert "ziglang" in hatch(requirements, PATH=str(tmp_path)).stdout
    assert "ziglang" in hatch(requirements, FMILIN_HOST_TARGET="x86_64-linux").stdout
    if shutil.which("cc"):
        assert "ziglang" not in hatch(requirements).stdout


@needs_hatch
def test_a_source_distribution_needs_neither_compiler_nor_program(tmp_path: Path) -> None:
    assert "ziglang" not in hatch("get_requires_for_build_sdist()", PATH=str(tmp_path)).stdout
