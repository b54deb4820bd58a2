"""Ends a host, or another program in its sandbox."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

HOST_DIES_WITH_PARENT = sys.platform in ("linux", "win32")
"""Whether the system ends the host with the started process; elsewhere that process ends it on a message."""

_TERMINATION_TIME = 5.0  # seconds in which it has done so


def end_started_process(process: subprocess.Popen[bytes]) -> None:
    """End a process that runs a host, in its sandbox, and with it the host."""
    if not HOST_DIES_WITH_PARENT and process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_TERMINATION_TIME)
    process.kill()
