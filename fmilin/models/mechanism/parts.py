"""The structure of a mechanism: bodies, joints and loops. All units are SI."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ModelError
from fmilin.models.mechanism.part import (
    ORIGIN,
    Inertia,
    Limits,
    Part,
    PerCoordinate,
    Placement,
    Vector,
    limits,
    numbers,
    perpendicular,
    symmetric,
    unit,
)

_Common = Literal["revolute", "prismatic", "helical", "cylindrical", "universal", "spherical", "planar", "fixed"]
JointType = Literal[_Common, "free"]
LoopType = Literal[_Common, "rod", "point_on_line", "point_on_plane"]

COORDINATES: dict[str, tuple[str, ...]] = {
    "revolute": ("q",),
    "prismatic": ("q",),
    "helical": ("q",),
    "cylindrical": ("angle", "stroke"),
    "universal": ("q1", "q2"),
    "spherical": ("e0", "e1", "e2", "e3"),
    "planar": ("x", "y", "angle"),
    "fixed": (),
    "free": ("x", "y", "z", "e0", "e1", "e2", "e3"),
}
"""Position coordinates of each type of joint; a state is called ``JOINT.q``."""

SPEEDS: dict[str, tuple[str, ...]] = {
    "revolute": ("v",),
    "prismatic": ("v",),
    "helical": ("v",),
    "cylindrical": ("w", "v"),
    "universal": ("v1", "v2"),
    "spherical": ("wx", "wy", "wz"),
    "planar": ("vx", "vy", "w"),
    "fixed": (),
    "free": ("vx", "vy", "vz", "wx", "wy", "wz"),
}
"""Velocity coordinates: rates of the positions, except wx, wy, wz, the angular velocity in axes of the child."""

TRIANGLE_INEQUALITY_TOLERANCE = (
    1e-9  # rounding allowed in the triangle inequality, relative to the largest moment of inertia
)


@dataclass(frozen=True)
class Body(Part, kind="body"):
    """A rigid body.

    >>> Body("rod", 1.0, center=(0.5, 0, 0), inertia=(0, 1 / 12, 1 / 12)).inertia[2]
    (0.0, 0.0, 0.08333333333333333)
    """

    # None: a massless frame, which something heavier must be attached to by a fixed joint or that carries on to another
    mass: Annotated[float | None, "In kg, positive; needed unless the body is massless."]
    center: Annotated[Vector, "Centre of mass, in the body's frame, in m."] = (0.0, 0.0, 0.0)
    inertia: Annotated[
        Inertia,
        "About the centre of mass, in axes parallel to the body's frame, in kg m2: [xx, yy, zz], "
        "[xx, yy, zz, xy, xz, yz] (elements of the matrix: products of inertia with a minus sign) or the matrix.",
    ] = (0.0, 0.0, 0.0)
    # as many URDF files have them, a mass of 0 with an inertia too; whoever says so has judged them
    any_inertia: Annotated[bool, "Whether moments that no body can have are accepted."] = False
    gravity_compensation: Annotated[float, "Fraction of the weight that is compensated."] = 0.0

    def __post_init__(self) -> None:
        if self.mass is not None and not (
            np.isfinite(self.mass) and (self.mass > 0 or (self.any_inertia and self.mass == 0))
        ):
            raise ModelError(
                f"The body '{self.name}' has a mass of {self.mass} kg: a mass must be positive. Write a frame without "
                "mass with mass=None."
            )
        super().__post_init__()
        J = symmetric(self.inertia, 3, f"The inertia of {self.where}")
        if self.mass is None and J.any():
            raise ModelError(f"The body '{self.name}' has an inertia but no mass: give it a mass.")
        moments = np.linalg.eigvalsh(J)
        negative = moments[0] < -TRIANGLE_INEQUALITY_TOLERANCE * abs(moments[2])
        if not self.any_inertia and (negative or beyond_triangle(moments) > TRIANGLE_INEQUALITY_TOLERANCE):
            raise ModelError(
                f"The body '{self.name}' cannot have this inertia: its principal moments are {moments[0]:.6g}, "
                f"{moments[1]:.6g} and {moments[2]:.6g} kg m2, and of three moments none may be negative or exceed the "
                "sum of the other two. For a thin flat body the one about its normal equals that sum."
            )
        self._set("inertia", tuple(tuple(row) for row in J.tolist()))

    @property
    def J(self) -> NDArray[np.float64]:
        """Inertia about the centre of mass, shape (3, 3)."""
        return np.array(self.inertia)


@dataclass(frozen=True)
class Joint(Part, kind="joint"):
    """Connects a body to its parent in the tree; the child's position follows from the joint's coordinates.

    Positions q and velocities v start at ``position`` and ``velocity``. With the joint's frame on the parent and that
    on the child equal to each other at q = 0, the child is

    - revolute: turned by q about the axis; prismatic: moved by q along it;
    - helical: turned by q about the axis and moved by ``pitch`` q along it;
    - cylindrical: turned by ``angle`` about the axis, and moved by ``stroke`` along it;
    - universal: turned by q1 about the axis, then by q2 about the ``second_axis`` that turned with it;
    - spherical: turned by the unit quaternion (e0, e1, e2, e3), its angular velocity (wx, wy, wz) in axes of the child;
    - planar: moved by x, y in the plane across the axis, then turned by ``angle`` about it; x is along the
      ``second_axis``;
    - free: moved by x, y, z along the axes of the parent's frame, then turned as by a spherical joint.
    """

    name: Annotated[str, "Name of the joint; its states are `NAME.q`, `NAME.v` and the like."]
    type: Annotated[JointType, "The motion that it allows."]
    parent: Annotated[str, "The body to which it is attached, or the ground."]
    child: Annotated[str, "The body that it carries."]
    placement: Annotated[Placement, "The joint's frame, in the parent's frame."] = ORIGIN
    child_placement: Annotated[Placement, "The joint's frame, in the child's frame."] = ORIGIN
    axis: Annotated[Vector, "In the joint's frame; any length but zero."] = (0.0, 0.0, 1.0)
    second_axis: Annotated[
        Vector | None, "Of a universal or planar joint, perpendicular to the axis; computed by default."
    ] = None
    pitch: Annotated[float, "Of a helical joint, in m/rad."] = 0.0
    # zero, and the quaternion 1, when left out
    position: Annotated[PerCoordinate, "First guess of the coordinates, in m or rad, for closing the loops."] = None
    velocity: Annotated[PerCoordinate, "Start values of the speeds, in m/s or rad/s."] = None
    stiffness: Annotated[PerCoordinate, "Of a spring on each coordinate but a quaternion, in N/m or N m/rad."] = 0.0
    rest: Annotated[PerCoordinate, "Position without force, in m or rad."] = 0.0
    damping: Annotated[PerCoordinate, "On each coordinate, in N s/m or N m s/rad."] = 0.0
    armature: Annotated[PerCoordinate, "Inertia of rotors on each coordinate, in kg m2 or kg."] = 0.0
    drive_limits: Annotated[Limits, "Limits of the total force of all actuators on each coordinate, in N or N m."] = ()
    names: Annotated[tuple[str, ...], "Names of the states, positions first, instead of `NAME.q`, `NAME.v`."] = ()
    stands: Annotated[
        bool | None, "Whether a speed of zero is kept like any other; of a single speed, where `velocity` is given."
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _set_second_axis(self)
        n_q, n_v = len(COORDINATES[self.type]), len(SPEEDS[self.type])
        if self.stands is None:
            self._set("stands", self.velocity is not None and n_v == 1)
        zero = [float(c == "e0") for c in COORDINATES[self.type]]
        coordinates = f" ({', '.join(COORDINATES[self.type])})" if n_q > 1 else ""
        self._set("position", _values(self.position, zero, f"The position{coordinates} of {self.where}"))
        for what in ("velocity", "stiffness", "rest", "damping", "armature"):
            self._set(what, _values(getattr(self, what), [0.0] * n_v, f"The {what} of {self.where}"))
        if min(self.armature, default=0.0) < 0:
            raise ModelError(f"The armature of {self.where} is an inertia and must not be negative.")
        self._set("drive_limits", limits(self.drive_limits, f"'drive_limits' of {self.where}"))
        if n_q != n_v and any(self.stiffness[-3:]):
            raise ModelError(f"The ball of {self.where} cannot have a stiffness: connect points by springs instead.")
        if n_q != n_v and not any(self.position[-4:]):
            raise ModelError(f"The quaternion of {self.where} is zero: it must have unit length, as (1, 0, 0, 0).")
        if self.names and len(self.names) != n_q + n_v:
            raise ModelError(
                f"'names' of {self.where} must be {n_q + n_v} names, one for each of "
                f"{', '.join((*COORDINATES[self.type], *SPEEDS[self.type]))}, not {len(self.names)}."
            )

    @property
    def state_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the position and of the velocity states."""
        n_q = len(COORDINATES[self.type])
        if self.names:
            return self.names[:n_q], self.names[n_q:]
        return (
            tuple(f"{self.name}.{c}" for c in COORDINATES[self.type]),
            tuple(f"{self.name}.{c}" for c in SPEEDS[self.type]),
        )


@dataclass(frozen=True)
class Loop(Part, kind="loop"):
    """Closes a kinematic loop: a joint that was cut (Spencer (thesis), A.2.1), or another constraint on two bodies.

    Their frames are held together but for the degrees of freedom of the joint of the same name. ``rod`` keeps the
    distance of the origins (massless, with a ball at each end); ``point_on_line`` and ``point_on_plane`` keep the
    second origin on the line along ``axis``, or the plane across it, through the first.
    """

    type: Annotated[LoopType, "The relative motion that it leaves free."]
    first: Annotated[str, "A body, or the ground."]
    second: Annotated[str, "A body, or the ground."]
    first_placement: Annotated[Placement, "The loop's frame on this body."] = ORIGIN
    second_placement: Annotated[Placement, "The loop's frame on this body."] = ORIGIN
    axis: Annotated[Vector, "In the loop's frame on the first body."] = (0.0, 0.0, 1.0)
    second_axis: Annotated[Vector | None, "Of a universal joint, fixed in the second body."] = None
    pitch: Annotated[float, "Of a helical joint, in m/rad."] = 0.0
    length: Annotated[float, "Of a `rod`, in m."] = 0.0
    turn: Annotated[float, "First guess of the angle of a helical loop, several turns included, in rad."] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _set_second_axis(self)
        if self.type == "rod" and not self.length > 0:
            raise ModelError(f"The length of {self.where} must be positive, not {self.length}: a rod keeps a distance.")


def beyond_triangle(moments: NDArray[np.floating[Any]]) -> float:
    """Return by which part the largest of three moments of inertia, in order, exceeds the sum of the others."""
    return float(1 - (moments[0] + moments[1]) / moments[2]) if moments[2] > 0 else 0.0


def _set_second_axis(part: Joint | Loop) -> None:
    """Find a second axis where there is none."""
    second_axis = part.second_axis
    second = unit(perpendicular(part.axis), "An axis") if second_axis is None else second_axis
    if abs(np.dot(part.axis, second)) > 1e-9:
        raise ModelError(f"The second axis of {part.where} must be perpendicular to its axis.")
    part._set("second_axis", second)


def _values(value: Any, default: list[float], what: str) -> tuple[float, ...]:
    """Return a number for each coordinate; the default for none, or where a single zero stands for all."""
    stands_for_all = value is None or (np.ndim(value) == 0 and value == 0)
    return tuple(default) if stands_for_all else numbers(value, len(default), what)
