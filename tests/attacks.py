"""An FMU that tries what foreign code must not be able to do, its targets, and what became of each attempt."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import psutil

from fmilin import sandbox_report
from fmilin.codegen.compiler import library_suffix
from fmilin.fmi.platforms import fmi2_folders, fmi3_folders
from tests.fmus.make import HERE, compile_library, description_of, pack
from tests.shared import shared

__all__ = ["Attacks", "hostile_fmu", "sandbox_holds", "stayers"]

_LINE = re.compile(r"^(?:\S+ prints: )?attempt: (.*): (.*)$", re.MULTILINE)
_DESCRIPTION = re.compile(r"modelDescription\.xml\s*(<\?xml.*?</fmiModelDescription>)", re.DOTALL)
_STAYER = "fmilin-stayer"
_COMMAND = """
import os, sys
os.environ["FMILIN_ATTACKS"] = f"{os.getpid()} {sys.argv[1]}"
from tests.command_line import main
sys.exit(main(sys.argv[2:]))
"""


def sandbox_holds() -> bool:
    """Return whether this system offers all protections; without it nothing is tried."""
    return not sandbox_report().missing


def hostile_fmu(name: str, folder: Path) -> Path:
    """Write the FMU of a C file in tests/fmus/hostile, which no test loads by itself."""
    library = shared(f"{name}{library_suffix()}", lambda path: _compile(name, path))
    own = _DESCRIPTION.search((HERE / "hostile" / f"{name}.c").read_text())
    description = own[1] if own else description_of("crashes").replace("crashes", name)
    platform = (fmi3_folders() if 'fmiVersion="3' in description else fmi2_folders())[0]
    return pack(
        folder / f"{name}.fmu",
        {
            "modelDescription.xml": description,
            f"binaries/{platform}/{name}{library_suffix()}": library.read_bytes(),
        },
    )


def _compile(name: str, library: Path) -> None:
    package = find_spec("fmpy")
    assert package is not None
    assert package.submodule_search_locations
    headers = Path(package.submodule_search_locations[0]) / "c-code"
    source = HERE / "hostile" / f"{name}.c"
    command = ["cc", "-shared", "-fPIC", "-O1", "-w", f"-I{headers}", f"-I{HERE}", source, "-o", library, "-lm"]
    subprocess.run([*map(str, command)], check=True)


def stayers(name: str = _STAYER) -> list[psutil.Process]:
    """Return the processes that an attacking FMU has marked and left behind."""
    return [
        process
        for process in psutil.process_iter(["name", "status"])
        if process.info["name"] == name and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


@dataclass
class Attacks:
    """One command with the attacking FMU, in a folder of its own."""

    folder: Path
    outcomes: dict[str, str] = field(default_factory=dict)  # what became of each attempt
    status: int = 0
    said: str = ""

    def run(self, *options: str, at_load: bool = False) -> Attacks:
        """Run ``fmilin linearize`` with the FMU, which tries all when it is instantiated, or while it is loaded."""
        if at_load:
            options = (*options, "--allow-env", "FMILIN_ATTACKS_AT_LOAD")
        home, other, path = (self.folder / name for name in ("home", "other", "socket"))
        secret = secrets.token_hex(16)
        for folder in (home, other):
            folder.mkdir(exist_ok=True)
        (home / "secret.txt").write_text(secret)
        if not (home / "shortcut").is_symlink():
            (home / "shortcut").symlink_to("secret.txt")
        shutil.copy(compile_library("pendulum"), home / "library.so")
        (other / "result").write_text("a result")
        with ExitStack() as opened:
            tcp, udp, named, abstract = (
                opened.enter_context(socket.socket(family, kind))
                for family, kind in (
                    (socket.AF_INET, socket.SOCK_STREAM),
                    (socket.AF_INET, socket.SOCK_DGRAM),
                    (socket.AF_UNIX, socket.SOCK_STREAM),
                    (socket.AF_UNIX, socket.SOCK_STREAM),
                )
            )
            name = f"fmilin{os.getpid()}"
            for one, address in (
                (tcp, ("127.0.0.1", 0)),
                (udp, ("127.0.0.1", 0)),
                (named, str(path)),
                (abstract, f"\0{name}"),
            ):
                one.bind(address)
            for one in (tcp, named, abstract):
                one.listen()
            masked = "".join(chr(ord(c) ^ 1) for c in secret)
            targets = f"{tcp.getsockname()[1]} {udp.getsockname()[1]} {home} {other} {path} {name} {masked}"
            fmu = hostile_fmu("attacks", self.folder)
            command = [sys.executable, "-c", _COMMAND, targets, "linearize", str(fmu), "--json"]
            done = subprocess.run(
                [*command, "--allow-env", "FMILIN_ATTACKS", *options],
                capture_output=True, text=True, cwd=self.folder, timeout=120, check=False,
                env=os.environ
                | {"FMILIN_SECRET": secret, "HOME": str(home)}
                | ({"FMILIN_ATTACKS_AT_LOAD": "1"} if at_load else {}),
            )  # fmt: skip
        self.status, self.said = done.returncode, done.stderr
        self.outcomes = dict(_LINE.findall(done.stderr))
        left = stayers()
        self.outcomes["leave a process behind"] = "SUCCEEDED" if left else "it was ended"
        for process in left:
            process.kill()
        return self

    @property
    def succeeded(self) -> list[str]:
        """What the FMU managed to do."""
        return [attempt for attempt, outcome in self.outcomes.items() if outcome == "SUCCEEDED"]
