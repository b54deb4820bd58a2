"""Waits for pipes that can be read, on any system."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

if sys.platform == "win32":
    import _winapi
    import msvcrt

    PERIOD = 0.002  # seconds between checks of anonymous pipes, for which Windows offers no event

    def wait_for_readable(descriptors: Sequence[int], seconds: float) -> list[int]:
        """Return the pipes that have something to read or are closed at the other end; none if this takes too long."""
        deadline = time.monotonic() + seconds
        while True:
            readable = [descriptor for descriptor in descriptors if _is_readable(descriptor)]
            rest = deadline - time.monotonic()
            if readable or rest <= 0:
                return readable
            time.sleep(min(PERIOD, rest))

    def _is_readable(descriptor: int) -> bool:
        try:
            *_, available, _ = _winapi.PeekNamedPipe(msvcrt.get_osfhandle(descriptor))
        except OSError:  # the other end is closed
            return True
        return available > 0

else:
    import select

    def wait_for_readable(descriptors: Sequence[int], seconds: float) -> list[int]:
        """Return the pipes that have something to read or are closed at the other end; none if this takes too long."""
        return select.select(descriptors, [], [], seconds)[0]
