"""Systems of Exudyn that rows of the scoreboard compare: for Exudyn's own eigenvalues, and for fmilin's adapter."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["make_beam", "make_double_pendulum"]


def make_beam(*, hanging: bool) -> Any:
    """Return the beam on a hinge: hanging in gravity, or level on a spring."""
    import exudyn as exu
    from exudyn.utilities import CartesianSpringDamper, InertiaCuboid, MarkerBodyRigid, ObjectGround

    from benchmarks.scoreboard.rows.beam_on_spring import DENSITY, HEIGHT, LENGTH, STIFFNESS, WIDTH

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
    return mbs


def make_double_pendulum() -> Any:
    """Return two points on two rods."""
    import exudyn as exu
    from exudyn.itemInterface import MarkerBodyPosition, ObjectConnectorDistance, ObjectGround

    from benchmarks.scoreboard.rows.pendulum_double_slow import L, M, below, g, m

    mbs = exu.SystemContainer().AddSystem()
    gravity = [0, -g, 0]
    upper = mbs.CreateMassPoint(referencePosition=[0, -L, 0], physicsMass=M, gravity=gravity, create2D=True)
    lower = mbs.CreateMassPoint(referencePosition=[0, -L - below, 0], physicsMass=m, gravity=gravity, create2D=True)
    top, middle, end = (
        mbs.AddMarker(MarkerBodyPosition(bodyNumber=body)) for body in (mbs.AddObject(ObjectGround()), upper, lower)
    )
    mbs.AddObject(ObjectConnectorDistance(markerNumbers=[top, middle], distance=L))
    mbs.AddObject(ObjectConnectorDistance(markerNumbers=[middle, end], distance=below))
    mbs.Assemble()
    return mbs
