"""FMUs with binaries for Windows alone, on Linux: the numbers of their twins for Linux, errors, and the sandbox."""

from __future__ import annotations

import socket
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import FmilinError, ModelCrashError, ModelError
from fmilin.fmi.client import wine
from fmilin.fmi.host import build as host_build
from fmilin.fmi.read import library
from fmilin.fmi.write import build_fmu
from tests.command_line import main
from tests.fmus import make
from tests.fmus.stepped import make as stepped_make
from tests.windows_twins import (
    build_for_windows,
    compile_for_windows,
    keep_binaries,
    needs_wine,
    needs_wine_for_32_bits,
    with_library,
)

TOLERANCE = 1e-12
NOTE = "The FMU has binaries for Windows only: the one for win64 runs through wine."
REFERENCE_STYLE = ("pendulum", "spring1", "singles3", "arrays3", "gearbox", "projects", "bounces", "rubs", "only_once")
ENDINGS = {
    "crashes": r"crashed \(0xC0000005: access violation\) in fmi2GetDerivatives",
    "overflows_the_stack": r"crashed \(0xC00000FD: stack overflow\) in fmi2GetDerivatives",
    "aborts": r"ended the whole process by itself \(exit status 3\).*the table drag.txt is missing",
    "half_a_library": r"undefined symbol: fmi2Instantiate",
}
SPY = r"""
#include <winsock2.h>
#include <stdio.h>
static double count_reached(void) {
  double reached = 0;
  FILE *file = fopen("Z:FILE", "r");
  reached += file != NULL;
  file = fopen("Z:\\etc\\passwd", "r");
  reached += file != NULL;
  WSADATA data;
  struct sockaddr_in address = {AF_INET, htons(PORT)};
  address.sin_addr.s_addr = htonl(0x7F000001);
  WSAStartup(0x202, &data);
  SOCKET connection = socket(AF_INET, SOCK_STREAM, 0);
  reached += connect(connection, (struct sockaddr *)&address, sizeof address) == 0;
  long long result; /* openat, of Linux itself */
  __asm__ volatile("mov %1, %%rsi\n mov $257, %%eax\n mov $-100, %%rdi\n xor %%edx, %%edx\n syscall" : "=&a"(result)
                   : "r"("FILE") : "rdi", "rsi", "rdx", "rcx", "r11", "memory");
  reached += result >= 0;
  file = fopen("C:\\temp\\own.txt", "w");
  return reached + (file != NULL ? 100 : 0); /* its own temporary folder is there */
}
#define OUTPUT 3 * r[0] + 2 * r[4] + count_reached()
#include "spring.h"
"""
GREEDY = """
#include <stdlib.h>
#include <string.h>
#define ON_GET_DERIVATIVES for (int k = 0; k < 256; k++) memset(malloc(1 << 24), 1, 1 << 24);
#include "spring.h"
"""


def difference(one: fl.LinearModel, other: fl.LinearModel) -> float:
    pairs = [(getattr(one, name), getattr(other, name)) for name in "ABCD"]
    return max(float(np.max(np.abs(a - b), initial=0.0)) for a, b in pairs)


def linearize(fmu: Path, **options: object) -> fl.LinearModel:
    with fl.load(fmu, **options) as model:  # type: ignore[arg-type]
        return fl.linearize(model)


@needs_wine
@pytest.mark.parametrize("name", REFERENCE_STYLE)
def test_an_fmu_for_windows_gives_what_its_twin_for_linux_gives(name: str, tmp_path: Path) -> None:
    through_wine = linearize(build_for_windows(name, tmp_path))
    assert any(NOTE in str(warning) for warning in through_wine.warnings)
    assert difference(through_wine, linearize(make.build(name, tmp_path))) <= TOLERANCE


@needs_wine
@pytest.mark.parametrize("name", ["MassSpringSystem", "Mass_Damper", "add"])
def test_fmus_of_openmodelica_for_windows_give_what_those_for_linux_give(name: str) -> None:
    folder = Path(pytest.importorskip("gemseo_fmu.problems").__path__[0]) / "fmu_files"
    pair = [linearize(folder / system / f"{name}.fmu") for system in ("win32", "linux")]  # both are for 64 bits
    assert difference(*pair) <= TOLERANCE


@needs_wine
def test_communication_steps_of_an_fmu_for_windows_are_those_of_linux(tmp_path: Path) -> None:
    kind = stepped_make.Kind()
    twin = stepped_make.build("motor", tmp_path, kind)
    motor = compile_for_windows(Path(stepped_make.__file__).with_name("motor.c"))
    xml = stepped_make.description("motor", stepped_make.PLANTS["motor"], kind)
    fmu = with_library("motor", xml, motor, tmp_path)
    responses = []
    for path in (twin, fmu):
        with fl.load(path) as model:
            responses.append(fl.linearize(model))
    assert difference(*responses) <= TOLERANCE


@needs_wine
def test_an_exported_fmu_is_linearized_and_swept_by_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build_fmu(fl.systems.four_bar(), tmp_path / "both.fmu", platforms=("linux64", "win64"))
    fmu = keep_binaries(tmp_path / "both.fmu", "win64", tmp_path / "supplier ü.fmu")
    assert main(["linearize", str(fmu), "-o", str(tmp_path / "lin.mat")]) == 0
    printed = capsys.readouterr()
    assert "the one for win64 runs" in " ".join((printed.out + printed.err).split())
    assert difference(fl.LinearModel.load(tmp_path / "lin.mat"), linearize(tmp_path / "both.fmu")) <= TOLERANCE
    family = fl.sweep(fmu, {"m": [1.0, 2.0]}, settings={}, jobs=2)
    expected = fl.sweep(tmp_path / "both.fmu", {"m": [1.0, 2.0]}, settings={})
    assert np.max(np.abs(family.A - expected.A)) <= TOLERANCE


@needs_wine
@pytest.mark.parametrize("name", ENDINGS)
def test_an_fmu_for_windows_that_breaks_ends_in_an_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(FmilinError, match=ENDINGS[name]):
        linearize(build_for_windows(name, tmp_path))


@needs_wine
def test_an_fmu_for_windows_that_hangs_or_takes_memory_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(ModelCrashError, match=r"did not return from fmi2\w+ within 2 s and was stopped"):
        linearize(build_for_windows("hangs", tmp_path), limits=fl.Limits(seconds=2.0))
    source = tmp_path / "takes_four_gibibytes.c"
    source.write_text(GREEDY)
    description = make.description_of("crashes").replace("crashes", source.stem)
    fmu = with_library(source.stem, description, compile_for_windows(source), tmp_path)
    with pytest.raises(ModelCrashError, match=r"It used nearly all of its memory limit of 0\.25 GiB"):
        linearize(fmu, limits=fl.Limits(memory=2**28))


@needs_wine
def test_code_for_windows_reaches_neither_files_nor_the_network(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        source = tmp_path / "spies.c"
        source.write_text(SPY.replace('FILE"', f'{secret}"').replace("PORT", str(port)))
        spy_library = compile_for_windows(source, ("-lws2_32",))
        description = make.description_of("crashes").replace("crashes", "spies")
        fmu = with_library("spies", description, spy_library, tmp_path)
        (inside,) = linearize(fmu).g0
        (unrestricted,) = linearize(fmu, limits=fl.Limits(unrestricted=True)).g0
    assert inside == pytest.approx(3.0 + 100.0)
    assert unrestricted == pytest.approx(3.0 + 100.0 + 4.0)  # the attempts succeed where they are allowed


@pytest.mark.parametrize("system", ["win64", "win32"])
def test_without_wine_the_error_names_the_package(system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (wine, library):
        monkeypatch.setattr(module, "find_wine", lambda _: None)
    members = {"modelDescription.xml": make.description_of("crashes"), f"binaries/{system}/crashes.dll": ""}
    package = f"apt install {system.replace('win', 'wine')}"
    with pytest.raises(ModelError, match=rf"only \({system}\).*wine is not installed.*{package}\)"):
        fl.load(make.pack(tmp_path / "m.fmu", members))


@needs_wine
def test_outside_of_the_sandbox_an_fmu_for_windows_runs_in_one_process_after_another(tmp_path: Path) -> None:
    fmu = build_for_windows("only_once", tmp_path)
    unrestricted = linearize(fmu, limits=fl.Limits(unrestricted=True))
    assert difference(unrestricted, linearize(make.build("only_once", tmp_path))) <= TOLERANCE


@needs_wine_for_32_bits
@pytest.mark.parametrize("name", ["arrays3", "bounces"])  # FMI 3.0 and 2.0
def test_an_fmu_for_windows_of_32_bits_gives_what_its_twin_gives_outside_of_the_sandbox(
    name: str, tmp_path: Path
) -> None:
    narrow = linearize(build_for_windows(name, tmp_path, wine.WINDOWS32), limits=fl.Limits(unrestricted=True))
    assert any("the one for win32 runs through wine" in str(warning) for warning in narrow.warnings)
    assert difference(narrow, linearize(make.build(name, tmp_path))) <= TOLERANCE


@needs_wine_for_32_bits
@pytest.mark.parametrize("name", ["crashes", "overflows_the_stack", "aborts"])
def test_an_fmu_for_windows_of_32_bits_that_breaks_ends_in_an_error(name: str, tmp_path: Path) -> None:
    fmu = build_for_windows(name, tmp_path, wine.WINDOWS32)
    with pytest.raises(FmilinError, match=ENDINGS[name]):
        linearize(fmu, limits=fl.Limits(unrestricted=True))


def test_an_fmu_for_windows_of_32_bits_is_rejected_in_the_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = wine.Wine(Path("/usr/lib/wine/wine"), tmp_path, wine.WINDOWS32)
    for module in (wine, library):
        monkeypatch.setattr(module, "find_wine", lambda _: installed)
    members = {"modelDescription.xml": make.description_of("crashes"), "binaries/win32/crashes.dll": ""}
    with pytest.raises(ModelError, match=r"of 32 bits only \(win32\).*outside of the sandbox alone"):
        fl.load(make.pack(tmp_path / "m.fmu", members))


@needs_wine
def test_without_a_root_of_its_own_wine_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "host"
    program.write_text(f"#!/bin/sh\nexit {wine.SANDBOX_MISSING_STATUS}\n")
    program.chmod(0o700)
    host_build.windows_host_program()
    monkeypatch.setenv("FMILIN_HOST", str(program))
    with pytest.raises(ModelError, match=r"could read all your files.*Limits\(unrestricted=True\)"):
        linearize(build_for_windows("crashes", tmp_path))
