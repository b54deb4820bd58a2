"""The faster mode of the double pendulum."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.scoreboard.answers import fastest
from benchmarks.scoreboard.rows.pendulum_double_slow import MJCF, frequency
from benchmarks.scoreboard.rows.pendulum_double_slow import ROW as SLOW

__all__ = ["MJCF", "ROW"]

ROW = replace(
    SLOW,
    system="Double pendulum, fast mode",
    published=1j * frequency(1),
    answer=fastest,
    peers={peer: script.replace("slow", "fast") for peer, script in SLOW.peers.items()},
)
