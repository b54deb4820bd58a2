"""Exudyn's ComputeODE2Eigenvalues with constraints for the double pendulum of two points on two rods: ``... ROW``."""

from __future__ import annotations

from contextlib import chdir
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.scoreboard.exudyn_systems import make_double_pendulum
from benchmarks.scoreboard.peers.common import chosen_row, nearest_of, tell

mbs = make_double_pendulum()
with TemporaryDirectory() as folder, chdir(folder):  # Exudyn leaves a folder "solution" where it is
    squares, _ = mbs.ComputeODE2Eigenvalues()
tell("exudyn", nearest_of(1j * np.sqrt(np.asarray(squares, dtype=complex)), chosen_row().ROW.value), "Exudyn")
