"""A beam that hangs from a hinge: Exudyn's own eigenvalues beside those of fmilin.

``python hanging_beam.py`` prints both; ``fmilin linearize hanging_beam.py:mbs`` linearizes the system.
"""

from __future__ import annotations

from contextlib import chdir
from tempfile import TemporaryDirectory

import exudyn as exu
import numpy as np
from exudyn.utilities import InertiaCuboid
from fmilin_exudyn import from_system

import fmilin as fl

LENGTH, SIDE, GRAVITY = 1.2, 0.1, 9.81

SC = exu.SystemContainer()
mbs = SC.AddSystem()
ground = mbs.CreateGround()
beam = mbs.CreateRigidBody(
    name="beam",
    inertia=InertiaCuboid(density=500.0, sideLengths=[SIDE, LENGTH, SIDE]),
    referencePosition=[0, -LENGTH / 2, 0],
    gravity=[0, -GRAVITY, 0],
)
mbs.CreateRevoluteJoint(itemNumbers=[ground, beam], position=[0, 0, 0], axis=[0, 0, 1])
mbs.Assemble()

if __name__ == "__main__":
    inertia = (LENGTH**2 + SIDE**2) / 12 + LENGTH**2 / 4
    print(f"closed form: {np.sqrt(GRAVITY * LENGTH / 2 / inertia):.9f} rad/s")
    with TemporaryDirectory() as folder, chdir(folder):  # Exudyn leaves a folder "solution" where it is
        squares, _ = mbs.ComputeODE2Eigenvalues()
    print(f"Exudyn:      {np.sqrt(np.abs(squares)).max():.9f} rad/s")
    linear = fl.linearize(from_system(mbs))
    print(f"fmilin:      {linear.eigenvalues().imag.max():.9f} rad/s, states {', '.join(linear.states.names)}")
