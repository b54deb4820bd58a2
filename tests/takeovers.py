"""Attacks on fmilin itself, on the machine and on what an FMU may take, each in a command of its own."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
import termios
import time
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.attacks import hostile_fmu, stayers
from tests.fmus.make import build

__all__ = ["TAKEOVERS", "Attempt", "run_takeovers"]

TIMEOUT = 2.0  # seconds that a call of the FMU may take here
PATIENCE = 25.0  # seconds within which the command has ended, on a machine that is busy with other things
MARK = f"hostile{os.getpid()}"  # the name of the attacker's processes
ENDING_TIME = 10.0  # seconds in which all has ended when fmilin was killed
PLANT = [[0.0, 1.0], [-1.0, 0.0]]
MAX_PROCESSES = 10  # that a fork bomb may make
MAX_PROCESSES_ALLOWED = 310  # where processes are allowed
_LINE = re.compile(r"^(?:\S+ prints: )?attempt: (.*): (.*?)\r?$", re.MULTILINE)
_AMOUNT = re.compile(r"amount: (.*): (\d+ \w+)")


@dataclass(frozen=True)
class Attempt:
    """What an FMU tried, and what became of it."""

    name: str
    outcome: str
    got_through: bool


@dataclass
class Done:
    """A command that has ended."""

    status: int
    out: str
    err: str
    seconds: float
    most_marked: int = 0  # the largest number of its processes that carried the attacker's mark
    marked_seconds: float = 0.0  # how long there were any
    lingered: float = 0.0  # how long after the command there still were any

    @property
    def is_right(self) -> bool:
        """Whether the numbers are those of the plant."""
        try:
            return bool(json.loads(self.out)["A"] == PLANT)
        except (ValueError, KeyError, TypeError):
            return False

    def attempts(self) -> list[Attempt]:
        """Return what the FMU said itself, with the amounts that it took."""
        amounts = dict(_AMOUNT.findall(self.err))
        attempts: dict[str, Attempt] = {}
        for name, outcome in _LINE.findall(self.err):
            if name in attempts and attempts[name].got_through:
                continue
            amount = f"{amounts[name]}, then no more" if name in amounts else outcome
            attempts[name] = Attempt(name, "SUCCEEDED" if outcome == "SUCCEEDED" else amount, outcome == "SUCCEEDED")
        return list(attempts.values())


def _environment(mode: str, folder: Path) -> dict[str, str]:
    return os.environ | {"FMILIN_ATTACK": mode, "FMILIN_CANARY": str(folder / "canary"), "FMILIN_MARK": MARK}


def wait_for_stayers(most: float = ENDING_TIME) -> float:
    """Return after how many seconds none of the attacker's processes is left; they are ended after ``most``."""
    begin = time.monotonic()
    while left := stayers(MARK):
        if time.monotonic() > begin + most:
            for process in left:
                process.kill()
            return most
        time.sleep(0.02)
    return time.monotonic() - begin


def _command(folder: Path, *words: str) -> list[str]:
    fmu = hostile_fmu("takes_over", folder)
    allowed = [word for name in ("ATTACK", "CANARY", "MARK") for word in ("--allow-env", f"FMILIN_{name}")]
    program = [sys.executable, "-m", "fmilin"]
    return [*program, words[0], str(fmu), *words[1:], *allowed, "--timeout", f"{TIMEOUT:g}"]


def run_command(mode: str, folder: Path, *words: str, **variables: str) -> Done:
    """Run a command whose FMU attacks, and watch its processes."""
    command = _command(folder, *(words or ("linearize", "--json")))
    begin = time.monotonic()
    most, first, last = 0, 0.0, 0.0
    output, errors = folder / "output", folder / "errors"
    with output.open("wb") as out, errors.open("wb") as err:
        process = subprocess.Popen(
            command, cwd=folder, stdout=out, stderr=err, env=_environment(mode, folder) | variables
        )
        while process.poll() is None and time.monotonic() < begin + 3 * PATIENCE:
            count = len(stayers(MARK))
            if count:
                most, last = max(most, count), time.monotonic()
                first = first or last
            time.sleep(0.02)
        if process.poll() is None:
            process.kill()
        process.wait()
    seconds = time.monotonic() - begin
    return Done(
        process.returncode,
        output.read_text(errors="replace"),
        errors.read_text(errors="replace"),
        seconds,
        most,
        last - first,
        wait_for_stayers(),
    )


def _was_stopped(name: str, done: Done, statuses: tuple[int, ...] = (6,)) -> Attempt:
    """Judge an attack after which the command ends in time with one of the statuses, or with right numbers."""
    in_time = done.seconds < TIMEOUT + PATIENCE and done.lingered < ENDING_TIME
    is_well = done.status in statuses or (done.status == 0 and done.is_right)
    outcome = f"status {done.status}{', right numbers' if done.is_right else ''}"
    return Attempt(
        name,
        outcome if in_time and is_well else f"SUCCEEDED: {outcome}, {done.seconds:.0f} s",
        not (in_time and is_well),
    )


def _stopped(name: str, mode: str, statuses: tuple[int, ...] = (6,)) -> Callable[[Path], list[Attempt]]:
    def attack(folder: Path) -> list[Attempt]:
        return [_was_stopped(name, run_command(mode, folder), statuses)]

    return attack


def _told(mode: str, *options: str) -> Callable[[Path], list[Attempt]]:
    """Judge an attack by what the FMU says itself; the command has right numbers."""

    def attack(folder: Path) -> list[Attempt]:
        done = run_command(mode, folder, "linearize", "--json", *options)
        attempts = done.attempts()
        if not attempts:
            attempts = [Attempt(f"the attack '{mode}'", f"SUCCEEDED: nothing is said, {done.err[-300:]}", True)]
        return attempts

    return attack


def _bomb(stage: str, *options: str) -> Callable[[Path], list[Attempt]]:
    def attack(folder: Path) -> list[Attempt]:
        done = run_command(f"{stage}bomb", folder, "linearize", "--json", *options)
        limit = MAX_PROCESSES_ALLOWED if options else MAX_PROCESSES
        is_held = done.status == 6 and 0 < done.most_marked <= limit and done.lingered < ENDING_TIME
        where = " while it is loaded" if stage else ""
        how = f" where {options[0]} is given" if options else ""
        late = max(done.marked_seconds + done.lingered - TIMEOUT, 0.0)
        outcome = f"status {done.status}, {done.most_marked} processes at most, all ended {late:.1f} s after its time"
        return [Attempt(f"fork without end{where}{how}", outcome, not is_held)]

    return attack


def _beside(folder: Path) -> list[Attempt]:
    done = run_command("beside", folder, "linearize", "-o", "plant.mat", FMILIN_CANARY=str(folder))
    files = {path.name for path in folder.iterdir()} - {"takes_over.fmu", "output", "errors"}
    written = Attempt("leave files beside plant.mat", f"there are {', '.join(sorted(files))}", files != {"plant.mat"})
    return [*done.attempts(), written]


def _pickles(folder: Path) -> list[Attempt]:
    """Let the code of an FMU answer with pickles, in sweeps of one and two jobs, and in a single command."""
    attempts = []
    for words in (
        ("linearize", "--json"),
        ("sweep", "--vary", "x=0:1:4", "--jobs", "1", "--json"),
        ("sweep", "--vary", "x=0:1:4", "--jobs", "2", "--json"),
    ):
        done = run_command("later-pickle", folder, *words)
        name = f"run code outside through its answers ({' '.join(w for w in words if w != '--json')})"
        is_through = (folder / "canary").exists() or done.status == 1 or done.seconds > 3 * PATIENCE
        attempts.append(Attempt(name, f"status {done.status}, nothing was run", is_through))
    return attempts


def _others(folder: Path) -> list[Attempt]:
    """Let an FMU write into all that it has, beside another whose numbers are asked for."""
    program = """
import sys
import fmilin as fl
allowed = fl.Limits(environment=["FMILIN_ATTACK", "FMILIN_MARK"], seconds=float(sys.argv[3]))
with fl.load(sys.argv[1]) as good, fl.load(sys.argv[2], limits=allowed) as hostile:
    before = fl.linearize(good).A.tolist()
    try:
        fl.linearize(hostile)
    except fl.FmilinError as error:
        print(type(error).__name__)
    assert fl.linearize(good).A.tolist() == before
    print("right")
"""
    good, hostile = build("rubs", folder), hostile_fmu("takes_over", folder)
    attempts = []
    for mode in ("later-pages", "later-answer1", "later-hold"):
        done = subprocess.run(
            [sys.executable, "-c", program, str(good), str(hostile), str(TIMEOUT)],
            capture_output=True, text=True, check=False, env=_environment(mode, folder), timeout=4 * PATIENCE,
        )  # fmt: skip
        is_right = done.stdout.endswith("right\n")
        what = {"later-pages": "pages", "later-answer1": "answers", "later-hold": "pipes"}[mode]
        outcome = "they are right" if is_right else f"SUCCEEDED: {done.stderr[-200:]}"
        attempts.append(Attempt(f"change another FMU's numbers through its {what}", outcome, not is_right))
    return attempts


def _terminal(folder: Path) -> list[Attempt]:
    """Type into a terminal in which the command runs, and look whether it still echoes."""
    command = _command(folder, "linearize")
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execve(command[0], command, _environment("terminal", folder))
    echoes = termios.tcgetattr(terminal)[3] & termios.ECHO
    os.write(terminal, b"what a user types\n")
    content, seconds = b"", time.monotonic()
    while time.monotonic() < seconds + PATIENCE:
        try:
            part = os.read(terminal, 4096)
        except OSError:
            break
        if not part:
            break
        content += part
        settings = termios.tcgetattr(terminal)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    still = settings[3] & termios.ECHO and settings[3] & termios.ICANON
    os.close(terminal)
    text = content.decode(errors="replace")
    done = Done(status, "", text, 0.0)
    silent = Attempt(
        "leave the terminal without echo", "it echoes" if still else "SUCCEEDED", bool(echoes) and not still
    )
    return [*done.attempts(), silent]


def _killed_client(folder: Path) -> list[Attempt]:
    """Kill fmilin while the FMU holds the other ends of all pipes."""
    process = subprocess.Popen(
        _command(folder, "linearize", "--timeout", "100"), cwd=folder, env=_environment("hold", folder),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    begin = time.monotonic()
    while not stayers(MARK) and time.monotonic() < begin + PATIENCE:
        time.sleep(0.05)
    was_there = bool(stayers(MARK))
    process.send_signal(signal.SIGKILL)
    process.wait()
    lingered = wait_for_stayers()
    outcome = f"it ended {lingered:.1f} s later" if was_there else "it did not start"
    left = lingered >= ENDING_TIME
    return [Attempt("go on when fmilin is killed", "SUCCEEDED" if left else outcome, left or not was_there)]


def _escapes(folder: Path) -> list[Attempt]:
    """Let an FMU print and log escape sequences: OSC 52 writes to the clipboard, CSI 6n has the terminal type."""
    fmu = hostile_fmu("escapes", folder)
    attempts = []
    for words in (("linearize",), ("linearize", "--set", "u=1"), ("info", "--run")):
        command = [sys.executable, "-m", "fmilin", words[0], str(fmu), *words[1:]]
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=4 * PATIENCE)
        text = (done.stdout + done.stderr).decode()
        obeyed = [c for c in text if unicodedata.category(c) in ("Cc", "Cf") and c not in "\n\t"]
        is_shown = r"\x1b]52;c;" in text
        outcome = "it is shown as text" if is_shown and not obeyed else f"SUCCEEDED: {obeyed}"
        name = f"make the terminal obey what it says ({' '.join(words)})"
        attempts.append(Attempt(name, outcome, bool(obeyed) or not is_shown))
    return attempts


def _threads(folder: Path) -> list[Attempt]:
    attempts = []
    for mode, where in (("load-threads", "while it is loaded"), ("later-threads", "while it is asked")):
        done = run_command(mode, folder)
        attempts.append(_was_stopped(f"leave threads behind {where}", done))
    return attempts


def _core(folder: Path) -> list[Attempt]:
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (limits[1], limits[1]))
    try:
        done = run_command("core", folder)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, limits)
    files = [path.name for path in folder.iterdir() if path.name.startswith("core")]
    return [*done.attempts(), Attempt("leave a core file", f"{files}" if files else "there is none", bool(files))]


_ANSWERS = {
    "with wrong numbers of answers": "answer0",
    "of impossible sizes": "answer1",
    "that promise more than follows": "answer2",
    "about impossible instructions": "answer3",
    "with errors and lost messages": "answer4",
    "that are cut off": "answer5",
}


def _answers(folder: Path) -> list[Attempt]:
    attempts = []
    for what, mode in _ANSWERS.items():
        for stage, where in (("load-", "while it is loaded"), ("later-", "while it is asked")):
            done = run_command(stage + mode, folder)
            attempts.append(_was_stopped(f"make up answers {what} {where}", done, (3, 6)))
    return attempts


def _unloading(folder: Path) -> list[Attempt]:
    done = run_command("unload-hang", folder)
    return [_was_stopped("close everything and hang while it is unloaded", done, (0, 6))]


TAKEOVERS: dict[str, Callable[[Path], list[Attempt]]] = {
    "shared pages": _stopped("switch off its limits through shared pages", "pages"),
    "fork bomb": _bomb(""),
    "fork bomb at load": _bomb("load-"),
    "allowed fork bomb": _bomb("", "--allow-processes"),
    "threads": _threads,
    "pickles": _pickles,
    "others": _others,
    "terminal": _terminal,
    "escape sequences": _escapes,
    "beside": _beside,
    "answers": _answers,
    "slow answers": _stopped("answer byte by byte without end", "later-slow"),
    "drained answers": _stopped("read its answers away", "drain"),
    "endless output": _stopped("print without end", "print"),
    "stopped": _stopped("stop its own process", "stop"),
    "closed": _stopped("close all that it has open", "close"),
    "unloading": _unloading,
    "killed client": _killed_client,
    "core": _core,
    "memory": _told("memory", "--memory", "0.25", "--timeout", "60"),
    "page tables": _told("tables", "--memory", "0.25", "--timeout", "60"),
    "disk": _told("disk", "--timeout", "60"),
}
"""By name: an attack in a folder of its own, which returns what became of its attempts."""


def run_takeovers(folder: Path) -> list[Attempt]:
    """Run all of them, each in a folder of its own."""
    attempts = []
    for name, attack in TAKEOVERS.items():
        place = folder / name.replace(" ", "-")
        place.mkdir()
        attempts += attack(place)
    return attempts
