"""Checks the programs that load FMUs in the wheels of a folder: .ci/host_programs.py FOLDER.

Each is of the kind that its wheel says, and where qemu or wine can run it here, it starts a program in its sandbox.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WINE = shutil.which("wine64") or "/usr/lib/wine/wine64"
USAGE = 64  # exit status of the program without arguments
PROGRAMS = {  # platform of the wheel: what `file` says, what runs it, a command for its sandbox, the status of that
    "manylinux2014_x86_64": ("ELF 64-bit LSB executable, x86-64", ["qemu-x86_64"], "/bin/true", 0),
    "manylinux2014_aarch64": (
        "ELF 64-bit LSB executable, ARM aarch64",
        ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"],
        "/bin/true",
        0,
    ),
    "win_amd64": ("PE32+ executable (console) x86-64", [WINE], "fmilin-host.exe", USAGE),
    "macosx_11_0_arm64": ("Mach-O 64-bit arm64 executable", [], "", 0),
    "macosx_11_0_x86_64": ("Mach-O 64-bit x86_64 executable", [], "", 0),
}


def unpack(wheel: Path, folder: Path) -> Path:
    """Return the program of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if "/host/fmilin-host" in name])
    name = "fmilin-host.exe" if "win_amd64" in wheel.name else "fmilin-host"
    (program,) = folder.rglob(name)
    program.chmod(0o755)
    return program


def run(program: Path, runner: list[str], command: str, status: int, prefix: str) -> str:
    """Return what the program reports about its sandbox."""
    if program.suffix != ".exe" and os.uname().machine in runner[0]:
        runner = []
    elif shutil.which(runner[0]) is None:
        return f"{Path(runner[0]).name} is not installed: not run"
    done = subprocess.run(
        [*runner, str(program), "--run", "--report", "2", "--", command],
        capture_output=True,
        text=True,
        check=False,
        cwd=program.parent,
        env={**os.environ, "WINEPREFIX": prefix, "WINEDEBUG": "-all"},
    )
    if done.returncode != status:
        sys.exit(f"{program.name} ends with {done.returncode} instead of {status}: {done.stderr}")
    active = [line.partition("=")[0] for line in done.stderr.splitlines() if "=active" in line]
    return f"runs a program with {', '.join(active)}"


def main(wheels: Path) -> None:
    """Check all of them."""
    for platform, (kind, runner, command, status) in PROGRAMS.items():
        (wheel,) = wheels.glob(f"fmilin-*{platform}.whl")
        with tempfile.TemporaryDirectory() as name:
            program = unpack(wheel, Path(name))
            text = subprocess.run(["file", "--brief", program], capture_output=True, text=True, check=True).stdout
            if kind not in text:
                sys.exit(f"'{wheel.name}' has a program of another kind: {text}")
            outcome = run(program, runner, command, status, f"{name}/wine") if runner else "nothing runs it here"
            print(f"{wheel.name}: {kind}, {program.stat().st_size} bytes; {outcome}.")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
