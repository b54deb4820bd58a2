"""Commands that are killed at any moment: what is left of their files, their processes, their temporary folders."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from fmilin import LinearModel
from fmilin.fmi.write import build_fmu
from fmilin.systems import four_bar

__all__ = ["COMMANDS", "Damage", "Victims"]

COMMANDS: Mapping[str, Sequence[str]] = {
    "linearize": ("four_bar.fmu", "-o", "out.json", "-o", "out.npz"),
    "convert": ("plant.npz", "-o", "out.json", "-o", "out.fmu"),
    "simulate": ("four_bar.fmu", "--stop-time", "0.2", "-o", "out.csv"),
    "build": ("fmilin.systems:four_bar", "-o", "out.fmu"),
    "trim": ("four_bar.fmu", "-o", "out.json"),
}
OLD = b"a result of yesterday"
MARK = "FMILIN_VICTIM"
INTERRUPTED = """
import os, signal, sys

sys.argv[0], count, last, own = "fmilin", 0, int(sys.argv.pop(1)), os.getpid()

def hook(event, arguments):
    global count
    count += 1
    if count == last and os.getpid() == own:
        os.kill(own, signal.SIGINT)
    if event == "fmilin.end":
        os.write(2, b"%d" % count)

import fmilin.support.interrupts
sys.addaudithook(hook)
from fmilin.__main__ import run
import atexit
atexit.register(lambda: last or sys.audit("fmilin.end"))
run()
"""
"""The program, with an interrupt at one of the events that Python tells of: imports, files, processes, libraries."""
PATIENCE = 20.0
"""Seconds until processes that were told to end must have gone."""


@dataclass
class Damage:
    """What should not have happened."""

    files: list[str] = field(default_factory=list)
    processes: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.files or self.processes or self.leftovers)


class Victims:
    """A folder with models, in which commands run and are killed.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self._work, self._temporary, self._cache = (folder / name for name in ("work", "temporary", "cache"))
        for made in (self._work, self._temporary):
            made.mkdir()
        build_fmu(four_bar(), self._work / "four_bar.fmu")
        self._mark = os.urandom(8).hex()
        self.run("linearize", "four_bar.fmu", "-o", "plant.npz")
        self._kept = _names(self._work)

    def duration(self, command: str) -> float:
        """Run a command to its end and return how long it takes; every file of it is then complete."""
        self._prepare(command)
        begin = time.monotonic()
        self.run(command, *COMMANDS[command])
        took = time.monotonic() - begin
        assert all((self._work / name).read_bytes() != OLD for name in _outputs(command))
        assert not self._broken(command)
        return took

    def killed(self, command: str, after: float, number: signal.Signals) -> Damage:
        """Start a command, send it a signal after so many seconds, and return the damage."""
        self._prepare(command)
        process = self._start(command, *COMMANDS[command])
        time.sleep(after)
        process.send_signal(number)
        process.communicate(timeout=60)
        return Damage(self._broken(command), self._survivors())

    def events(self, command: str) -> int:
        """Return how many moments a command has at which it can be interrupted."""
        return int(self.interrupted(command, 0)[1].split()[-1])

    def interrupted(self, command: str, event: int) -> tuple[int, str]:
        """Interrupt a command at the event of this number; return its status, and what it says."""
        self._prepare(command)
        process = self._started([sys.executable, "-c", INTERRUPTED, str(event), command, *COMMANDS[command]])
        _, said = process.communicate(timeout=120)
        return process.returncode, said.decode()

    def leftovers(self) -> list[str]:
        """Return what is still there of the killed commands after one more has run."""
        self.run("convert", "plant.npz", "-o", "out.json")
        here = {name for name in _names(self._work) - self._kept if not name.startswith("out.")}
        return sorted(here | _names(self._temporary))

    def run(self, *arguments: str) -> None:
        """Run a command to its end."""
        process = self._start(*arguments)
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said.decode()

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return self._started([sys.executable, "-m", "fmilin", *arguments])

    def _started(self, command: list[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            cwd=self._work,
            env=os.environ | {"TMPDIR": str(self._temporary), "XDG_CACHE_HOME": str(self._cache), MARK: self._mark},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def _prepare(self, command: str) -> None:
        """Put the files of yesterday there, and let everything be compiled anew."""
        shutil.rmtree(self._cache, ignore_errors=True)
        for name in _outputs(command):
            (self._work / name).write_bytes(OLD)

    def _broken(self, command: str) -> list[str]:
        return [name for name in _outputs(command) if not _is_whole(self._work / name)]

    def _survivors(self) -> list[str]:
        """Return the processes of killed commands that do not go away."""
        until = time.monotonic() + PATIENCE
        while found := [p for p in psutil.process_iter() if self._is_marked(p)]:
            if time.monotonic() > until:
                return [str(process) for process in found]
            time.sleep(0.02)
        return []

    def _is_marked(self, process: psutil.Process) -> bool:
        try:
            return bool(process.environ().get(MARK) == self._mark)
        except psutil.Error:
            return False


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _outputs(command: str) -> list[str]:
    return [name for name in COMMANDS[command] if name.startswith("out.")]


def _is_whole(path: Path) -> bool:
    """Whether a file is that of yesterday, or a new one from its beginning to its end."""
    content = path.read_bytes()
    if content == OLD:
        return True
    match path.suffix:
        case ".json":
            return bool(json.loads(content))
        case ".npz":
            return len(LinearModel.load(path).A) > 0
        case ".fmu":
            with zipfile.ZipFile(path) as archive:
                return archive.testzip() is None and len(archive.namelist()) > 0
        case _:
            rows = content.decode().splitlines()
            return content.endswith(b"\n") and float(rows[-1].split(",")[0]) == 0.2
