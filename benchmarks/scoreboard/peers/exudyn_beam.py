"""Exudyn's ComputeODE2Eigenvalues for the beam on a hinge; with ``hanging``, in gravity without its spring."""

from __future__ import annotations

from contextlib import chdir
from tempfile import TemporaryDirectory

import exudyn as exu
import numpy as np
from exudyn.utilities import CartesianSpringDamper, InertiaCuboid, MarkerBodyRigid, ObjectGround

from benchmarks.scoreboard.peers.common import chosen_row, nearest_of, tell
from benchmarks.scoreboard.rows.beam_on_spring import DENSITY, HEIGHT, LENGTH, STIFFNESS, WIDTH

row = chosen_row()
hanging = row.__name__.endswith("hanging")
along = np.array([0, -1, 0] if hanging else [1, 0, 0])
sides = [HEIGHT, LENGTH, WIDTH] if hanging else [LENGTH, HEIGHT, WIDTH]
mbs = exu.SystemContainer().AddSystem()
ground = mbs.AddObject(ObjectGround())
beam = mbs.CreateRigidBody(
    inertia=InertiaCuboid(density=DENSITY, sideLengths=sides),
    referencePosition=0.5 * LENGTH * along,
    gravity=[0, -9.81 * hanging, 0],
)
mbs.CreateGenericJoint(itemNumbers=[ground, beam], position=[0, 0, 0], constrainedAxes=[1, 1, 1, 1, 1, 0])
if not hanging:
    anchor = mbs.AddMarker(MarkerBodyRigid(bodyNumber=ground, localPosition=LENGTH * along))
    end = mbs.AddMarker(MarkerBodyRigid(bodyNumber=beam, localPosition=0.5 * LENGTH * along))
    mbs.AddObject(CartesianSpringDamper(markerNumbers=[anchor, end], stiffness=[0, STIFFNESS, 0]))
mbs.Assemble()
with TemporaryDirectory() as folder, chdir(folder):  # Exudyn leaves a folder "solution" where it is
    squares, _ = mbs.ComputeODE2Eigenvalues()
rates = np.sqrt(np.asarray(squares, dtype=complex))
tell("exudyn", nearest_of(1j * rates if hanging else rates / (2 * np.pi), row.ROW.value), "Exudyn")
