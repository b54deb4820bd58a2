"""Andrews' squeezing mechanism: the other acceleration at its start."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.scoreboard.answers import derivative
from benchmarks.scoreboard.rows.squeezer import ROW as BETA

ROW = replace(
    BETA,
    system="Andrews' squeezing mechanism, theta",
    quantity="acceleration of theta at the start [rad/s2]",
    published="-10666.8329399655854029433719415",
    answer=derivative("theta.v"),
    peers={"MuJoCo": "mujoco_acceleration squeezer theta"},
)
