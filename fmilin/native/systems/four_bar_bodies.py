"""The N-loop four-bar linkage once more, as bodies and joints: for scaling, and against the same linkage by hand."""

from __future__ import annotations

from math import cos, pi, sin, sqrt

from fmilin.ground.errors import UsageError
from fmilin.native.mechanism import Joint, JointForce, Mechanism, MechanismDescription, Placement, PointSpring, Sensor
from fmilin.native.systems.drawing import GROUND, PlaneFrame, pinned, pinned_loop, rod

__all__ = ["four_bar_mechanism"]

GRAVITY = 9.81
STIFFNESS = 25.0
NATURAL_LENGTH = sqrt(2.0)


def four_bar_mechanism(loops: int = 1, damping: float = 0.0, *, pins: str = "point_on_line") -> Mechanism:
    """Return the N-loop four-bar linkage of González et al. as a mechanism: 4N + 2 states, of which 2 are independent.

    The same linkage as :func:`fmilin.systems.four_bar`, at the same ("upper") equilibrium, with the angles of the
    joints instead of Cartesian coordinates: rods A_i B_i turn about the ground, ``phi`` is the angle of the last one,
    and each coupler turns about the end of the rod on its left and closes a loop with the next.

    The input is a ``torque`` on the last rod, in N m. The outputs are ``phi``, ``w`` and ``coupler.y``, the height of
    the middle of the last coupler in m.

    ``loops``: N, at least 1. ``damping``: of the dampers along the springs, in N s/m. ``pins``: how loops are closed:
    by two constraints each, or by five of which three are redundant.

    >>> four_bar_mechanism().states.names
    ('rod0.q', 'coupler1.q', 'phi', 'rod0.v', 'coupler1.v', 'w')
    """
    if loops < 1 or int(loops) != loops:
        raise UsageError(f"A four-bar linkage has 1 loop or more, not {loops}.")
    if pins not in ("point_on_line", "revolute"):
        raise UsageError(f"'{pins}' is no way to close a loop of this linkage; choose 'point_on_line' or 'revolute'.")
    n = int(loops)
    phi = _equilibrium(n)
    rods = [PlaneFrame((float(i), 0.0), phi) for i in range(n + 1)]
    ends = [(i + cos(phi), sin(phi)) for i in range(n + 1)]
    joints, closed, springs = [], [], []
    for i in range(n + 1):
        if i:
            coupler, left = (f"coupler{i}", PlaneFrame(ends[i - 1])), (f"rod{i - 1}", rods[i - 1])
            joints.append(pinned(f"coupler{i}", left, coupler))
            closed.append(pinned_loop(f"B{i}", ends[i], coupler, (f"rod{i}", rods[i]), pins))  # type: ignore[arg-type]
            springs.append(
                PointSpring(f"spring{i}", "ground", f"rod{i}", (i - 1.0, 0, 0), (1, 0, 0), STIFFNESS, NATURAL_LENGTH,
                            damping)
            )  # fmt: skip
        joints.append(_on_ground(i, rods[i], last=i == n))
    return Mechanism(
        MechanismDescription(
            "four_bar_mechanism" if n == 1 else f"four_bar_mechanism_{n}",
            [rod(joint.child, 1.0, 1.0) for joint in joints],
            joints,
            closed,
            springs=springs,
            inputs=[JointForce("torque", f"rod{n}")],
            sensors=[
                Sensor("phi", "joint_position", f"rod{n}"),
                Sensor("w", "joint_velocity", f"rod{n}"),
                Sensor("coupler.y", "position", f"coupler{n}", point=(0.5, 0, 0), axis=(0, 1, 0)),
            ],
            gravity=(0, -GRAVITY, 0),
            independent=("phi", "w"),
        )
    )


def _on_ground(i: int, frame: PlaneFrame, *, last: bool) -> Joint:
    names = ("phi", "w") if last else ()
    return Joint(f"rod{i}", "revolute", "ground", f"rod{i}", Placement(GROUND.local(frame.origin)),
                 position=frame.angle, names=names)  # fmt: skip


def _equilibrium(loops: int) -> float:
    """Return phi where -g (3N + 1)/2 cos(phi) + N k (s - l0) sin(phi/2) = 0, s = 2 cos(phi/2): the upper one."""
    from scipy.optimize import brentq

    def moment(phi: float) -> float:
        stretch = 2 * cos(phi / 2) - NATURAL_LENGTH
        return -GRAVITY * (3 * loops + 1) / 2 * cos(phi) + loops * STIFFNESS * stretch * sin(phi / 2)

    return float(brentq(moment, pi / 2 + 0.05, pi - 0.05, xtol=1e-15))
