"""Programs that are run to their end, as a compiler; nothing that they have started outlives them."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path


def run_program(
    command: Sequence[str], folder: Path, *, environment: Mapping[str, str] | None = None, seconds: float | None = None
) -> tuple[int, str]:
    """Run a program in a folder; return its exit status (negative: that of a signal) and what it printed.

    Raises
    ------
    OSError
        When it cannot be started.
    TimeoutError
        When it takes longer than ``seconds``.
    """
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(  # noqa: S603 - the user's program, no shell
            command,
            cwd=folder,
            env=None if environment is None else dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
        )
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        finally:
            if process.returncode is None:
                end_with_descendants(process)
        printed.seek(0)
        return status, printed.read().decode("utf-8", "replace")


def end_with_descendants(process: subprocess.Popen[bytes]) -> None:
    """End a process, and what it and its descendants have started, as far as that can be seen."""
    import psutil

    descendants: list[psutil.Process] = []
    with suppress(psutil.Error):
        descendants = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    for descendant in descendants:
        with suppress(psutil.Error):
            descendant.kill()
    process.wait()
