"""The libraries inside FMUs: warning-free, clean under sanitizers, kept for later, and for other machines."""

from __future__ import annotations

import importlib.util
import os
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import fmpy
import pytest

from fmilin import LinearModel
from fmilin.errors import ModelError, UnknownNameError, UsageError
from fmilin.fmi.platforms import Machine, host, machines
from fmilin.fmi.write import LinearFmu, build_fmu, linear_fmu
from fmilin.fmi.write.binaries import compile_unit, get_standard, runtime_sources, universal
from tests.fmi.write import samples
from tests.fmi.write.linear_samples import drifting, sampled, written

DRIVER = Path(__file__).with_name("driver.c")
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")
HAS_ZIG = importlib.util.find_spec("ziglang") is not None
WINE = shutil.which("wine64") or shutil.which("/usr/lib/wine/wine64")
WANTS_WINE = os.environ.get("FMILIN_TEST_WINE") == "1"
needs_zig = pytest.mark.skipif(not HAS_ZIG, reason="ziglang is not installed: pip install fmilin[cross]")


def unpacked(path: Path) -> Path:
    folder = path.with_suffix("")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    return folder


def run_driver(command: Sequence[str], folder: Path, version: str, sizes: Sequence[int]) -> dict[str, list[float]]:
    """Run the driver on an unpacked FMU; return what it prints by its first words."""
    resources = (folder / "resources").as_uri() if version == "2.0" else f"{folder / 'resources'}/"
    token = fmpy.read_model_description(str(folder)).guid
    words = [*command, resources, token, *map(str, sizes)]
    environment = {**os.environ, "WINEDEBUG": "-all", "ASAN_OPTIONS": "detect_leaks=1"}
    answer = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    lines = [line.split() for line in answer.stdout.splitlines()]
    keys = ("outputs", "states", "product", "adjoint", "start", "rates", "alone", "messages")
    assert [line for line in lines if line[0] not in keys] == [], answer.stdout
    return {line[0]: [float(word) for word in line[1:]] for line in lines}


def sizes_of(linear: LinearModel) -> tuple[int, int, int, int]:
    computed = len(linear.outputs) + len(linear.full_states) - len(linear.states)
    return len(linear.states), len(linear.inputs), computed, int(linear.sample_time > 0)


def sanitized(folder: Path, version: str) -> list[str]:
    """Compile the sources inside an FMU, and the driver, with sanitizers; every warning is an error."""
    sources, major = folder / "sources", version[0]
    strict = ["cc", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *SANITIZED]
    library = [*strict, "-std=c99", "-O1", "-shared", "-fPIC", f"fmi{major}.c", "-o", "../tested.so", "-lm"]
    subprocess.run(library, cwd=sources, check=True)
    driver = ["cc", "-std=gnu99", *SANITIZED, f"-DVERSION={major}", f"-I{sources}", str(DRIVER)]
    subprocess.run([*driver, "-o", str(folder / "driver"), "-ldl"], check=True)
    return [str(folder / "driver"), str(folder / "tested.so")]


@pytest.mark.skipif(sys.platform != "linux", reason="the sanitizers are those of gcc and clang on Linux")
@pytest.mark.parametrize("sample_time", [0.0, 0.1])
def test_sanitizers_find_nothing_in_linear_models(tmp_path: Path, version: str, sample_time: float) -> None:
    linear = sampled(sample_time) if sample_time else drifting()
    folder = unpacked(written(linear, tmp_path, version))
    answers = run_driver(sanitized(folder, version), folder, version, sizes_of(linear))
    assert answers["start"] == list(linear.y0)
    assert answers["alone"] == [0, 0]
    expected = linear.D @ [1.0, 2.0] if not sample_time else 0.0 * linear.D[:, 0]  # not at a sample
    assert answers["product"][:3] == pytest.approx(expected, rel=1e-12)


@pytest.mark.skipif(sys.platform != "linux", reason="the sanitizers are those of gcc and clang on Linux")
def test_sanitizers_find_nothing_in_symbolic_models(tmp_path: Path, version: str) -> None:
    system = replace(samples.pendulum(), constraints=(), extra_names={})
    folder = unpacked(build_fmu(system, tmp_path / "model.fmu", fmi_version=version))
    answers = run_driver(sanitized(folder, version), folder, version, (4, 1, 3, 0))
    assert answers["start"] == [0.6, -0.8, 0.4, 0.3]
    assert answers["alone"] == [1, 1]


@pytest.mark.parametrize("kind", ["linear", "symbolic"])
def test_the_c_code_has_no_warnings(tmp_path: Path, version: str, kind: str) -> None:
    path = tmp_path / "model.fmu"
    if kind == "linear":
        path.write_bytes(linear_fmu(drifting(), LinearFmu(fmi_version=version)))
    else:
        build_fmu(samples.pendulum(), path, fmi_version=version)
    command = ["cc", "-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wvla", "-Werror", "-fPIC"]
    source = f"fmi{version[0]}.c"
    subprocess.run([*command, "-c", source, "-o", "../model.o"], cwd=unpacked(path) / "sources", check=True)


# ---------------------------------------------------------------------- kept


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr("fmilin.fmi.write.binaries.zig_command", lambda *_: None)


def test_a_library_that_was_made_once_serves_other_models_without_a_compiler(
    version: str, request: pytest.FixtureRequest
) -> None:
    first = linear_fmu(drifting(), LinearFmu(fmi_version=version))
    request.getfixturevalue("no_compiler")
    other = linear_fmu(drifting(3, 0, 1, 1), LinearFmu(name="other", fmi_version=version))
    assert find_library(first) == find_library(other)


def find_library(content: bytes) -> bytes:
    import io

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        (name,) = [n for n in archive.namelist() if n.startswith("binaries/")]
        return archive.read(name)


@pytest.mark.usefixtures("no_compiler")
def test_without_compiler_and_library_there_are_three_ways_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ModelError) as caught:
        linear_fmu(drifting(), LinearFmu())
    text = str(caught.value)
    assert "there is no C compiler here. Install one (Debian: apt install gcc libc6-dev), or pip install" in text
    assert "'fmilin[cross]', which includes one, or copy the file" in text
    assert str(tmp_path / "fmilin" / "libraries" / f"linear-fmi2-{host().fmi3_folder}-") in text
    with pytest.raises(ModelError, match=r"No C compiler was found.*pip install 'fmilin\[cross\]'"):
        compile_unit({"symbolic.c": b""}, "symbolic.c", host())
    with pytest.raises(ModelError, match=r"Binaries for x86_64-windows are compiled by zig, which is not installed"):
        linear_fmu(drifting(), LinearFmu(platforms=("win64",)))
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(ModelError, match=r"\(The environment variable CC names the C compiler 'no-such-compiler'"):
        linear_fmu(drifting(), LinearFmu())


def test_a_cache_that_cannot_be_written_is_no_reason_to_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fmilin").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert linear_fmu(drifting(), LinearFmu())[:2] == b"PK"


# ---------------------------------------------------------------------- other machines


def test_platforms_have_the_names_of_both_standards() -> None:
    assert machines(()) == (host(),)
    assert machines(["linux64", "x86_64-linux"]) == (Machine("x86_64", "linux"),)
    assert machines(["darwin64"]) == (Machine("x86_64", "darwin"), Machine("aarch64", "darwin"))
    assert Machine("x86", "windows").fmi2_folder == "win32"
    assert Machine("aarch64", "linux").fmi3_folder == "aarch64-linux"
    with pytest.raises(UnknownNameError, match=r"'win46' is not a platform of FMUs. Did you mean 'win64'"):
        machines(["win46"])


def test_two_machines_that_share_a_folder_of_fmi_2_are_refused() -> None:
    both = ("x86_64-linux", "aarch64-linux")
    with pytest.raises(UsageError, match=r"FMI 2.0 has one folder for x86_64-linux and aarch64-linux. Take FMI 3.0"):
        linear_fmu(drifting(), LinearFmu(platforms=both))


def test_a_universal_file_holds_its_parts_at_page_boundaries() -> None:
    parts = [struct.pack("<III", 0xFEEDFACF, cpu, 3) + bytes([cpu % 256]) * 50_000 for cpu in (0x01000007, 0x0100000C)]
    content = universal(parts)
    magic, count = struct.unpack_from(">II", content)
    assert (magic, count) == (0xCAFEBABE, 2)
    for i, part in enumerate(parts):
        cpu, variant, start, size, alignment = struct.unpack_from(">5I", content, 8 + 20 * i)
        assert (cpu, variant) == struct.unpack_from("<II", part, 4)
        assert start % (1 << alignment) == 0
        assert content[start : start + size] == part


@needs_zig
def test_binaries_for_apple_and_arm(tmp_path: Path) -> None:
    two = linear_fmu(drifting(), LinearFmu(platforms=("darwin64",)))
    content = find_library(two)
    assert struct.unpack_from(">II", content) == (0xCAFEBABE, 2)
    cpus = [struct.unpack_from(">I", content, 8 + 20 * i)[0] for i in range(2)]
    assert cpus == [0x01000007, 0x0100000C]  # CPU_TYPE_X86_64, CPU_TYPE_ARM64
    assert b"_fmi2DoStep" in content
    arm = find_library(linear_fmu(drifting(), LinearFmu(fmi_version="3.0", platforms=("aarch64-linux",))))
    assert arm[:5] == b"\x7fELF\x02"
    assert struct.unpack_from("<H", arm, 18) == (183,)  # EM_AARCH64
    assert b"fmi3DoStep" in arm


@needs_zig
@pytest.mark.skipif(host() != Machine("x86_64", "linux"), reason="the binary is run, which needs its machine")
def test_the_linux_binary_of_zig_computes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(drifting(), tmp_path, "2.0")
    own = fmpy.simulate_fmu(str(path), stop_time=1.0, fmi_type="CoSimulation")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("fmilin.fmi.write.binaries.find_compiler", _no_compiler)
    path.write_bytes(linear_fmu(drifting(), LinearFmu()))
    other = fmpy.simulate_fmu(str(path), stop_time=1.0, fmi_type="CoSimulation")
    assert other.tobytes() == own.tobytes()


def _no_compiler() -> tuple[str, ...]:
    raise ModelError("none")


@needs_zig
@pytest.mark.skipif(
    not (WINE and WANTS_WINE),
    reason="Windows is tested where FMILIN_TEST_WINE=1 and Debian's wine64 is installed: zig first builds the C "
    "library of Windows (up to 3 minutes of CPU), and wine takes 700 MB of packages and as much for its prefix",
)
def test_the_windows_binary_runs_under_wine_and_computes_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert WINE is not None
    monkeypatch.setenv("WINEPREFIX", str(tmp_path / "wine"))
    linear = drifting()
    path = tmp_path / "windows.fmu"
    path.write_bytes(linear_fmu(linear, LinearFmu(name="plant", platforms=("win64",))))
    folder = unpacked(path)
    library = (folder / "binaries/win64/plant.dll").read_bytes()
    start = struct.unpack_from("<I", library, 60)[0]
    assert (library[:2], library[start : start + 4]) == (b"MZ", b"PE\0\0")
    assert struct.unpack_from("<H", library, start + 4) == (0x8664,)  # IMAGE_FILE_MACHINE_AMD64
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-windows-gnu", "-O2", "-s", "-DVERSION=2"]
    subprocess.run([*compiler, f"-I{folder}/sources", str(DRIVER), "-o", str(folder / "driver.exe")], check=True)
    under_wine = run_driver([WINE, "driver.exe", r"binaries\win64\plant.dll"], folder, "2.0", sizes_of(linear))
    folder = unpacked(written(linear, tmp_path, "2.0"))
    here = run_driver(sanitized(folder, "2.0"), folder, "2.0", sizes_of(linear))
    assert under_wine == here


def test_a_symbolic_model_for_another_machine_needs_zig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fmilin.fmi.write.binaries.zig_command", lambda *_: None)
    with pytest.raises(ModelError, match=r"compiled by zig.*the FMU contains the C sources"):
        build_fmu(samples.decay(), tmp_path / "model.fmu", platforms=("win32", "linux64"))
    assert not list(tmp_path.iterdir())


def test_a_compiler_that_fails_says_why() -> None:
    sources = runtime_sources(get_standard("2.0"), "linear") | {"identity.h": b"#error no\n"}
    with pytest.raises(ModelError, match="failed with exit status"):
        compile_unit(sources, "fmi2.c", host())
