"""FMUs with binaries for 32 bits alone, on Linux for 64 bits: the numbers of their twins for 64, and errors."""

from __future__ import annotations

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

import fmilin as fl
from fmilin.codegen.compilers import zig_target
from fmilin.errors import ModelCrashError, ModelError
from fmilin.fmi.client.linux32 import LINUX32, can_run_32_bits
from fmilin.fmi.platforms import Machine
from fmilin.fmi.platforms import host as this_machine
from fmilin.fmi.read import library
from tests.c_code import HAS_ZIG, ZIG
from tests.fmi.read.test_wine import difference, linearize
from tests.fmi_host.probe import compile_probe, workplace
from tests.fmus import make
from tests.shared import shared

is_for_64_bits = pytest.mark.skipif(this_machine() != Machine("x86_64", "linux"), reason="is about Linux on x86-64")
needs_32_bits = pytest.mark.skipif(
    not (HAS_ZIG and can_run_32_bits()),
    reason="FMUs for 32 bits are made by ziglang and need a C library: apt install libc6-i386",
)


ATTEMPTS = (
    "fork",
    "vfork",
    "clone",
    "socket",
    "kill-client",
    "trace-client",
    "shmget",
    "semget",
    "msgget",
    "x32",
    "keys",
)


def build_for_32_bits(name: str, folder: Path) -> Path:
    """Build the FMU of a file of tests/fmus for 32 bits alone."""
    package = find_spec("fmpy")
    assert package is not None
    assert package.submodule_search_locations
    headers = Path(package.submodule_search_locations[0]) / "c-code"
    target = [*ZIG, "-target", zig_target("x86", "linux"), "-shared", "-fPIC", "-O1", "-w", "-s"]
    built = folder / f"{name}_32.so"
    command = [*target, f"-I{headers}", f"-I{make.HERE}", "-o", str(built), str(make.HERE / f"{name}.c"), "-lm"]
    subprocess.run(command, check=True)
    description = make.description_of(name)
    version = int(description.partition('fmiVersion="')[2][0])
    member = f"binaries/{LINUX32.folders(version)[0]}/{name}.so"
    (folder / "32").mkdir(exist_ok=True)
    return make.pack(folder / "32" / f"{name}.fmu", {"modelDescription.xml": description, member: built.read_bytes()})


@is_for_64_bits
@needs_32_bits
@pytest.mark.parametrize("name", ["arrays3", "bounces"])  # FMI 3.0 and 2.0
def test_an_fmu_for_32_bits_gives_what_its_twin_for_64_gives(name: str, tmp_path: Path) -> None:
    narrow, wide = linearize(build_for_32_bits(name, tmp_path)), linearize(make.build(name, tmp_path))
    assert difference(narrow, wide) == 0.0
    texts = {str(warning) for warning in narrow.warnings} - {str(warning) for warning in wide.warnings}
    assert texts == {"The FMU has binaries for 32 bits only: the one for linux32 runs in a host for 32 bits."}


@is_for_64_bits
@needs_32_bits
def test_an_fmu_for_32_bits_that_aborts_ends_in_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelCrashError, match=r"crashed \(SIGABRT: aborted\) in fmi2GetDerivatives"):
        linearize(build_for_32_bits("aborts", tmp_path))


def compile_probe_for_32_bits(path: Path) -> None:
    compile_probe((*ZIG, "-target", zig_target("x86", "linux"), "-D_FILE_OFFSET_BITS=64"), path)


@is_for_64_bits
@needs_32_bits
def test_code_for_32_bits_does_not_leave_the_sandbox() -> None:
    """All attempts of ``tests/fmi_host/test_sandbox.py`` pass for 32 bits, too: let CC compile for them."""
    probe = shared("sandbox_probe_32", compile_probe_for_32_bits)
    with workplace(None) as place:
        shutil.copy(probe, place.folder / "probe")
        attempts = {("change-mode", f"{place.home}/secret.txt"), ("read", f"{place.home}/secret.txt")}
        attempts |= {(attempt, "") for attempt in ATTEMPTS}
        answers = {attempt: place.attempt(*attempt) for attempt in attempts}
    if answers["fork", ""].report.is_active("system-calls"):
        assert [attempt for attempt, answer in answers.items() if not answer.was_refused] == []


@is_for_64_bits
def test_without_a_c_library_for_32_bits_the_error_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "can_run_32_bits", lambda: False)
    members = {"modelDescription.xml": make.description_of("crashes"), "binaries/linux32/crashes.so": ""}
    with pytest.raises(ModelError, match=r"only \(linux32\).*no C library for those.*apt install libc6-i386\)"):
        fl.load(make.pack(tmp_path / "m.fmu", members))
