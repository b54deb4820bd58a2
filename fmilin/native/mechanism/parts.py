"""What a mechanism is made of: bodies, joints, loops, wheels, springs, forces, sensors. All units are SI.

Each object checks itself; what concerns several is checked by :class:`fmilin.models.mechanism.MechanismDescription`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import ModelError
from fmilin.native.mechanism.placement import ORIGIN, Placement, Vector, perpendicular, unit, vector

_Common = Literal["revolute", "prismatic", "helical", "cylindrical", "universal", "spherical", "planar", "fixed"]
JointType = Literal[_Common, "free"]
LoopType = Literal[_Common, "rod", "point_on_line", "point_on_plane"]
Quantity = Literal[
    "position",
    "velocity",
    "acceleration",
    "accelerometer",
    "specific_force",
    "velocimeter",
    "direction",
    "angular_velocity",
    "angular_acceleration",
    "gyroscope",
    "orientation",
    "joint_position",
    "joint_velocity",
    "joint_acceleration",
    "joint_force",
    "joint_drive",
    "distance",
    "distance_rate",
    "actuator_force",
    "reaction",
    "contact",
    "kinetic_energy",
    "potential_energy",
    "energy",
]

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

JOINT_TYPES = tuple(COORDINATES)
LOOP_TYPES = LoopType.__args__  # type: ignore[attr-defined]
QUANTITIES = Quantity.__args__  # type: ignore[attr-defined]
TRIANGLE = 1e-9  # rounding allowed in the triangle inequality, relative to the largest moment of inertia


@dataclass(frozen=True)
class Body:
    """A rigid body.

    >>> Body("rod", 1.0, center=(0.5, 0, 0), inertia=(0, 1 / 12, 1 / 12)).inertia[2]
    (0.0, 0.0, 0.08333333333333333)
    """

    name: str
    # in kg, positive. None: a massless frame, which something heavier must be attached to by a fixed joint or that
    # carries on to another body
    mass: float | None
    center: Vector = (0.0, 0.0, 0.0)  # the centre of mass, in the body's frame, in m
    # 3, 6 or 3 x 3 floats, about the centre of mass, in axes parallel to the body's frame, in kg m2: (xx, yy, zz), or
    # (xx, yy, zz, xy, xz, yz) as elements of the matrix (products of inertia with a minus sign), or the matrix
    inertia: Any = (0.0, 0.0, 0.0)
    # take moments of inertia that no distribution of mass has, and a mass of 0 with an inertia, as many URDF files have
    # them. Whoever says so has judged them
    any_inertia: bool = False
    gravity_compensation: float = 0.0  # what part of its weight something else carries: 1 for a body that floats

    def __post_init__(self) -> None:
        check_name(self, "body")
        where = f"The body '{self.name}'"
        if self.mass is not None and not (
            np.isfinite(self.mass) and (self.mass > 0 or (self.any_inertia and self.mass == 0))
        ):
            raise ModelError(
                f"{where} has a mass of {self.mass} kg: a mass must be positive. A frame without mass is written "
                "with mass=None."
            )
        object.__setattr__(self, "center", vector(self.center, f"The centre of mass of the body '{self.name}'"))
        J = _inertia(self.inertia, where)
        if self.mass is None and J.any():
            raise ModelError(f"{where} has an inertia but no mass: give it a mass.")
        moments = np.linalg.eigvalsh(J)
        negative = moments[0] < -TRIANGLE * abs(moments[2])
        if not self.any_inertia and (negative or beyond_triangle(moments) > TRIANGLE):
            raise ModelError(
                f"{where} cannot have this inertia: its principal moments are {moments[0]:.6g}, {moments[1]:.6g} and "
                f"{moments[2]:.6g} kg m2, and of three moments none may be negative or exceed the sum of the other two."
                " For a thin flat body the one about its normal equals that sum."
            )
        if not np.isfinite(self.gravity_compensation):
            raise ModelError(f"The gravity compensation of the body '{self.name}' must be a finite number.")
        object.__setattr__(self, "inertia", tuple(tuple(float(a) for a in row) for row in J))

    @property
    def J(self) -> NDArray[np.float64]:
        """Inertia about the centre of mass, shape (3, 3)."""
        return np.array(self.inertia)


@dataclass(frozen=True)
class Joint:
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

    name: str
    type: JointType
    # parent, child: names of bodies; the parent may be the ground
    parent: str
    child: str
    placement: Placement = ORIGIN  # the joint's frame, in the parent's frame
    child_placement: Placement = ORIGIN  # the joint's frame, in the child's frame
    axis: Vector = (0.0, 0.0, 1.0)  # in the joint's frame; any length but zero
    second_axis: Vector | None = None  # of a universal or planar joint, perpendicular to the axis; found when left out
    pitch: float = 0.0  # of a helical joint: m per rad
    # position, velocity: start values, one per coordinate; zero (and the quaternion 1) when left out
    position: Any = None
    velocity: Any = None
    # stiffness, rest, damping: force -stiffness (q - rest) - damping v on each coordinate, in N/m, N m/rad, ..; one
    # value per speed. A quaternion takes no stiffness
    stiffness: Any = 0.0
    rest: Any = 0.0
    damping: Any = 0.0
    # inertia that each coordinate feels beside that of what it moves, of a rotor behind a gear, in kg m2 or kg
    armature: Any = 0.0
    drive_limits: Any = ()  # 2 floats, where the force of all actuators together on each coordinate ends, in N or N m
    names: tuple[str, ...] = ()  # names of the states, positions first, instead of ``JOINT.q`` and ``JOINT.v``
    stands: bool | None = None  # whether a velocity of zero is held as any other; where it is given, if left out

    def __post_init__(self) -> None:
        where = check_name(self, "joint")
        check_type(self.type, JOINT_TYPES, where, "joint")
        check_axes(self, where)
        n_q, n_v = len(COORDINATES[self.type]), len(SPEEDS[self.type])
        if self.stands is None:
            object.__setattr__(self, "stands", self.velocity is not None and n_v == 1)
        zero = [float(c == "e0") for c in COORDINATES[self.type]]
        object.__setattr__(self, "position", _values(self.position, n_q, zero, f"position of {where}"))
        object.__setattr__(self, "velocity", _values(self.velocity, n_v, [0.0] * n_v, f"velocity of {where}"))
        for what in ("stiffness", "rest", "damping", "armature"):
            object.__setattr__(self, what, _values(getattr(self, what), n_v, [0.0] * n_v, f"{what} of {where}"))
        if min(self.armature, default=0.0) < 0:
            raise ModelError(f"The armature of {where} is negative: it is an inertia.")
        _check_limits(self, where)
        if n_q != n_v and any(self.stiffness[-3:]):
            raise ModelError(f"The ball of {where} takes no stiffness: connect points by springs instead.")
        if n_q != n_v and not any(self.position[-4:]):
            raise ModelError(f"The quaternion of {where} is zero: it must have unit length, as (1, 0, 0, 0) has.")
        if self.names and len(self.names) != n_q + n_v:
            raise ModelError(
                f"'names' of {where} must be {n_q + n_v} names, one for each of "
                f"{', '.join((*COORDINATES[self.type], *SPEEDS[self.type]))}, not {len(self.names)}."
            )
        object.__setattr__(self, "names", tuple(self.names))

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
class Loop:
    """Closes a kinematic loop: a joint that was cut (Spencer (thesis), A.2.1), or another constraint on two bodies.

    Their frames are held together but for the freedoms of the joint of the same name. ``rod`` keeps the distance of
    the origins (massless, with a ball at each end); ``point_on_line`` and ``point_on_plane`` keep the second origin
    on the line along ``axis``, or the plane across it, through the first.
    """

    name: str
    type: LoopType
    # first, second: names of bodies; one may be the ground
    first: str
    second: str
    # first_placement, second_placement: in the frames of the two bodies
    first_placement: Placement = ORIGIN
    second_placement: Placement = ORIGIN
    # axis, second_axis, pitch: as for :class:`Joint`, in the loop's frame on the first body; ``second_axis`` is fixed
    # in the second body
    axis: Vector = (0.0, 0.0, 1.0)
    second_axis: Vector | None = None
    pitch: float = 0.0
    length: float = 0.0  # of a rod, in m
    # start value of the angle of a helical loop, in rad: several turns of a screw are several positions
    turn: float = 0.0

    def __post_init__(self) -> None:
        where = check_name(self, "loop")
        check_type(self.type, LOOP_TYPES, where, "loop")
        check_axes(self, where)
        if self.type == "rod" and not (np.isfinite(self.length) and self.length > 0):
            raise ModelError(f"The length of {where} must be positive, not {self.length}: a rod keeps a distance.")


def beyond_triangle(moments: NDArray[np.floating[Any]]) -> float:
    """Return by which part the largest of three moments of inertia, in order, exceeds the sum of the others."""
    return float(1 - (moments[0] + moments[1]) / moments[2]) if moments[2] > 0 else 0.0


def check_name(part: Any, kind: str) -> str:
    """Refuse a name that cannot be quoted, and a typical size that is none; return what messages call the part."""
    name, nominal = part.name, getattr(part, "nominal", None)
    if not isinstance(name, str) or not name or "`" in name or name != name.strip():
        raise ModelError(f"{name!r} is no name for a {kind}: use letters, digits and underscores.")
    where = f"the {kind} '{name}'"
    if nominal is not None and not (np.isfinite(nominal) and nominal > 0):
        raise ModelError(f"The nominal value of {where} must be positive, and is {nominal}.")
    return where


def check_finite(part: Any, where: str, *names: str) -> None:
    """Refuse numbers of a part that are none."""
    for name in names:
        if not np.isfinite(getattr(part, name)):
            raise ModelError(f"'{name}' of {where} must be a finite number.")


def check_vectors(part: Any, where: str, *names: str, quoted: bool = False) -> None:
    """Make vectors of a part three floats each, directions of unit length."""
    for name in names:
        convert = unit if name in ("axis", "normal", "direction", "pointer") else vector
        what = f"'{name}' of {where}" if quoted else f"The {name} of {where}"
        object.__setattr__(part, name, convert(getattr(part, name), what))


def check_type(given: str, types: tuple[str, ...], where: str, what: str) -> None:
    """Refuse an unknown type."""
    if given not in types:
        raise ModelError(f"'{given}' of {where} is no type of {what}. Known: {', '.join(types)}.")


def check_axes(part: Joint | Loop, where: str) -> None:
    """Normalize the axes of a joint or loop; find a second one where there is none."""
    a = unit(part.axis, f"The axis of {where}")
    b = perpendicular(a) if part.second_axis is None else part.second_axis
    second = unit(b, f"The second axis of {where}")
    if abs(np.dot(a, second)) > 1e-9:
        raise ModelError(f"The second axis of {where} must be perpendicular to its axis.")
    object.__setattr__(part, "axis", a)
    object.__setattr__(part, "second_axis", second)
    if not np.isfinite(part.pitch):
        raise ModelError(f"The pitch of {where} must be a finite number, not {part.pitch}.")


def _check_limits(joint: Joint, where: str) -> None:
    limits = joint.drive_limits
    if len(limits):
        if len(limits) != 2 or np.isnan(limits).any() or not limits[0] <= limits[1]:
            raise ModelError(f"'drive_limits' of {where} must be two numbers, the lower one first, not {limits!r}.")
        object.__setattr__(joint, "drive_limits", (float(limits[0]), float(limits[1])))


def _values(given: Any, count: int, default: list[float], what: str) -> tuple[float, ...]:
    if given is None:
        return tuple(default)
    try:
        numbers = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        raise ModelError(f"The {what} must be {count} numbers, not {given!r}.") from None
    if np.ndim(given) == 0 and not numbers.any():
        return (0.0,) * count if "position" not in what else tuple(default)
    if numbers.shape != (count,) or not np.isfinite(numbers).all():
        raise ModelError(f"The {what} must be {count} finite numbers, not {given!r}.")
    return tuple(float(a) for a in numbers)


def _inertia(given: Any, where: str) -> NDArray[np.float64]:
    try:
        J = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        J = np.full(1, np.nan)
    if J.shape == (3,):
        J = np.diag(J)
    elif J.shape == (6,):
        J = np.array([[J[0], J[3], J[4]], [J[3], J[1], J[5]], [J[4], J[5], J[2]]])
    if J.shape != (3, 3) or not np.isfinite(J).all():
        raise ModelError(f"{where} needs an inertia of 3, 6 or 3 x 3 finite numbers, not {given!r}.")
    if not np.allclose(J, J.T, rtol=1e-9, atol=1e-12 * np.abs(J).max(initial=0.0)):
        raise ModelError(f"{where} has an inertia matrix that is not symmetric.")
    return np.asarray((J + J.T) / 2)
