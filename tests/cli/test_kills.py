"""Commands that are killed: old files whole, new ones complete, nothing left running or lying about.

``python -m benchmarks kills`` does the same at 200 random moments.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.kills import COMMANDS, Victims

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals are those of POSIX")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


def test_killed_commands_lose_nothing_and_leave_nothing(tmp_path: Path) -> None:
    victims = Victims(tmp_path)
    duration = victims.duration("build")  # the one with a compiler
    for i, (command, share) in enumerate(zip(COMMANDS, (0.3, 0.4, 0.5, 0.6, 0.4), strict=True)):
        damage = victims.killed(command, share * duration, SIGNALS[(i + 2) % 3])
        assert not damage, (command, share, damage)
    assert victims.leftovers() == []
