"""The build hook of hatch: compiles the program that loads FMUs (``fmilin/fmi/host``) into the wheel.

By the C compiler of this system, else by the PyPI package ziglang, which is then required for the build. The
environment variable FMILIN_HOST_TARGET (``x86_64-linux``, ``aarch64-linux``, ``x86_64-windows``, ``aarch64-darwin``,
``x86_64-darwin``) has ziglang compile for another machine; ``.ci/release`` uses it. An editable install has no program:
it is compiled when the first FMU is loaded.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ZIG = "ziglang>=0.13"
TARGET = "FMILIN_HOST_TARGET"
WHEEL_PLATFORMS = {
    "x86_64-linux": "manylinux_2_17_x86_64.manylinux2014_x86_64",
    "aarch64-linux": "manylinux_2_17_aarch64.manylinux2014_aarch64",
    "x86_64-windows": "win_amd64",
    "aarch64-darwin": "macosx_11_0_arm64",
    "x86_64-darwin": "macosx_11_0_x86_64",
}
"""Static programs of musl would run on every Linux, but cannot load a shared library, and an FMU is one. A program that
is linked with the symbols of glibc 2.17 runs wherever wheels of manylinux2014 do."""

_PROBE = "#include <dlfcn.h>\n#include <math.h>\n#include <stdio.h>\nint main(void) { return puts(__VERSION__) < 0; }\n"
_WINDOWS_PROBE = "#include <stdio.h>\n#include <windows.h>\nint main(void) { return puts(__VERSION__) < 0; }\n"


def read_module(path: Path) -> ModuleType:
    """Return a module of fmilin that needs no other: the package itself cannot be imported yet."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"'{path}' cannot be read as a Python module.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def native_system() -> str:
    """Return the name of this system as in ``WHEEL_PLATFORMS``."""
    return {"win32": "windows", "darwin": "darwin"}.get(sys.platform, "linux")


def native_architecture() -> str:
    """Return the architecture of this machine as in ``WHEEL_PLATFORMS``."""
    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


def can_compile(command: list[str]) -> bool:
    """Whether a compiler is there with the headers and the linker of a system; a mere ``gcc`` may lack both."""
    if shutil.which(command[0]) is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.c"
        source.write_text(_WINDOWS_PROBE if sys.platform == "win32" else _PROBE)
        answer = subprocess.run([*command, str(source), "-o", f"{source}.out"], capture_output=True, check=False)
    return answer.returncode == 0


class HostBuildHook(BuildHookInterface):
    """Adds the program, and a line about its compiler, to the wheel."""

    @cached_property
    def compilers(self) -> ModuleType:
        """The names of compilers."""
        return read_module(Path(self.root) / "fmilin" / "codegen" / "compilers.py")

    @cached_property
    def recipe(self) -> ModuleType:
        """How the program is compiled."""
        return read_module(Path(self.root) / "fmilin" / "fmi" / "host" / "recipe.py")

    @cached_property
    def system_compiler(self) -> list[str]:
        """The command of a C compiler that works; empty if there is none, or another machine is the target."""
        if os.environ.get(TARGET):
            return []
        named = shlex.split(os.environ.get("CC", ""))
        commands = [named] if named else [[name] for name in self.compilers.SYSTEM_COMPILERS]
        return next((command for command in commands if can_compile(command)), [])

    def dependencies(self) -> list[str]:
        """Return ziglang if there is no compiler."""
        return [] if self.system_compiler else [ZIG]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and give the wheel the tag of a platform."""
        if version == "editable":
            return
        target = os.environ.get(TARGET) or f"{native_architecture()}-{native_system()}"
        system = target.partition("-")[2]
        name = self.recipe.program_name(system)
        self.folder = tempfile.mkdtemp(prefix="fmilin-build-")
        program, note = Path(self.folder) / name, Path(self.folder) / self.recipe.BUILD_NOTE
        compiler, wheel_platform = self.choose_compiler(target)
        self.compile(self.recipe.compilation(compiler, system, program))
        note.write_text(f"{self.read_version(compiler)} for {wheel_platform.partition('.')[0]}\n")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{wheel_platform}"
        programs = [program, *self.compile_others(compiler, target)]
        build_data["force_include"] |= {str(path): f"fmilin/fmi/host/{path.name}" for path in (*programs, note)}
        self.app.display_info(f"The program that loads FMUs was compiled by {note.read_text().strip()}.")

    def compile_others(self, compiler: list[str], target: str) -> list[Path]:
        """Compile the programs for FMUs of Windows and of 32 bits, too, on Linux, where zig is the compiler."""
        if "ziglang" not in compiler or target != "x86_64-linux":
            return []
        programs = []
        machines = (("x86_64", "windows", "windows"), ("x86", "windows", "windows32"), ("x86", "linux", "linux32"))
        for architecture, system, name in machines:
            program = Path(self.folder) / self.recipe.program_name(name)
            command = [*compiler[:-1], self.compilers.zig_target(architecture, system)]
            self.compile(self.recipe.compilation(command, name, program))
            programs.append(program)
        return programs

    def choose_compiler(self, target: str) -> tuple[list[str], str]:
        """Return the command of a compiler for a target, and the platform of its wheel."""
        local = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        if self.system_compiler and native_system() == "darwin":
            return [*self.system_compiler, "-mmacosx-version-min=11.0"], WHEEL_PLATFORMS[target]
        if self.system_compiler:
            return self.system_compiler, local
        zig = [sys.executable, "-P", "-m", "ziglang", "cc", "-target"]
        is_native = not os.environ.get(TARGET)
        if is_native and "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or ""):  # Alpine and the like
            return [*zig, target.replace("linux", "linux-musl"), "-dynamic"], local
        if target not in WHEEL_PLATFORMS:
            raise RuntimeError(
                f"There is no C compiler here, and ziglang is not used for '{target}', only for "
                f"{', '.join(WHEEL_PLATFORMS)}. Install a C compiler."
            )
        return [*zig, self.compilers.zig_target(*target.split("-"))], WHEEL_PLATFORMS[target]

    def compile(self, command: list[str]) -> None:
        """Run the compiler."""
        answer = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if answer.returncode:
            raise RuntimeError(
                f"The program that loads FMUs cannot be compiled by {shlex.join(command)}:\n{answer.stderr}\n"
                "Let the environment variable CC name another C compiler. With HATCH_BUILD_NO_HOOKS=true fmilin is "
                "installed without the program, which is then compiled when the first FMU is loaded."
            )

    def read_version(self, compiler: list[str]) -> str:
        """Return the name and version of a compiler."""
        answer = subprocess.run([*compiler, "--version"], capture_output=True, text=True, errors="replace", check=False)
        first = answer.stdout.partition("\n")[0].strip() or compiler[0]
        return f"zig ({first})" if "ziglang" in compiler else first

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled: it is in the wheel."""
        if version != "editable":
            shutil.rmtree(self.folder, ignore_errors=True)
