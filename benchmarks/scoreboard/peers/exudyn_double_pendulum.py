"""Exudyn's ComputeODE2Eigenvalues with constraints for the double pendulum of two points on two rods: ``... ROW``."""

from __future__ import annotations

from contextlib import chdir
from tempfile import TemporaryDirectory

import exudyn as exu
import numpy as np
from exudyn.itemInterface import MarkerBodyPosition, ObjectConnectorDistance, ObjectGround

from benchmarks.scoreboard.peers.common import chosen_row, nearest_of, tell
from benchmarks.scoreboard.rows.pendulum_double_slow import L, M, below, g, m

mbs = exu.SystemContainer().AddSystem()
upper = mbs.CreateMassPoint(referencePosition=[0, -L, 0], physicsMass=M, gravity=[0, -g, 0], create2D=True)
lower = mbs.CreateMassPoint(referencePosition=[0, -L - below, 0], physicsMass=m, gravity=[0, -g, 0], create2D=True)
top, middle, end = (
    mbs.AddMarker(MarkerBodyPosition(bodyNumber=body)) for body in (mbs.AddObject(ObjectGround()), upper, lower)
)
mbs.AddObject(ObjectConnectorDistance(markerNumbers=[top, middle], distance=L))
mbs.AddObject(ObjectConnectorDistance(markerNumbers=[middle, end], distance=below))
mbs.Assemble()
with TemporaryDirectory() as folder, chdir(folder):  # Exudyn leaves a folder "solution" where it is
    squares, _ = mbs.ComputeODE2Eigenvalues()
tell("exudyn", nearest_of(1j * np.sqrt(np.asarray(squares, dtype=complex)), chosen_row().ROW.value), "Exudyn")
