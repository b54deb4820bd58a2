"""Programs that fmilin starts, such as a compiler: with what they start, they end when fmilin ends, even if killed."""

from __future__ import annotations

import errno
import os
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NoReturn

from fmilin.ground.sandbox.guard import Guard
from fmilin.ground.sandbox.isolation import can_isolate

_NOT_STARTED = 127


def run_program(
    command: Sequence[str], folder: Path, *, environment: Mapping[str, str] | None = None, seconds: float | None = None
) -> tuple[int, str]:
    """Run a program in a folder; return its exit status (negative: that of a signal) and what it printed."""
    variables = dict(os.environ if environment is None else environment)
    if not can_isolate():
        try:
            done = subprocess.run(  # noqa: S603 - the user's program, no shell
                command,
                cwd=folder,
                env=variables,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
                stdin=subprocess.DEVNULL,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        return done.returncode, done.stdout.decode("utf-8", "replace")
    program = shutil.which(command[0], path=variables.get("PATH"))
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    with tempfile.TemporaryFile() as printed:
        guard = Guard(lambda: _become(str(Path(program).absolute()), command, folder, variables, printed))
        try:
            select.select([guard], [], [], seconds)
        finally:
            ending = guard.stop()
        printed.seek(0)
        text = printed.read().decode("utf-8", "replace")
    if ending.status is None:
        raise TimeoutError
    status = os.waitstatus_to_exitcode(ending.status)
    if status == _NOT_STARTED and text.startswith("errno "):
        number = int(text.split()[1])
        raise OSError(number, os.strerror(number))
    return status, text


def _become(
    program: str, command: Sequence[str], folder: Path, environment: Mapping[str, str], printed: IO[bytes]
) -> NoReturn:
    """Replace this process by the program; its streams are closed to all else when it begins."""
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for stream in (1, 2):
            os.dup2(printed.fileno(), stream)
        os.chdir(folder)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
            signal.signal(number, signal.SIG_DFL)
        os.execve(program, list(command), environment)  # noqa: S606 - as above
    except OSError as error:
        os.write(printed.fileno(), f"errno {error.errno}".encode())
        os._exit(_NOT_STARTED)
