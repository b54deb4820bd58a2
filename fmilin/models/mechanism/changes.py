"""A mechanism with changes: other parameters, limits of controls opened, feet held on the ground."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ConstraintError, ModelError, UsageError
from fmilin.models.contacts import Contact, Foot, contact_signals, unknown_foot_error
from fmilin.models.mechanism.independence import Independence
from fmilin.models.mechanism.mechanism_description import MechanismDescription
from fmilin.models.mechanism.mechanism_elements import Actuator, Sensor
from fmilin.models.mechanism.multibody_system import State, System
from fmilin.models.mechanism.outputs import locate_multiplier
from fmilin.models.mechanism.part import Placement, vector
from fmilin.models.mechanism.parts import Body, Joint, Loop
from fmilin.models.mechanism.recursions import velocities
from fmilin.models.native_engine import classify_side, limit_remarks

Floats = NDArray[np.float64]

FIELDS = {
    "bodies": ("mass", "center", "inertia"),
    "joints": ("stiffness", "rest", "damping", "placement", "child_placement"),
    "springs": ("stiffness", "length", "damping", "first_point", "second_point"),
    "loops": ("length", "first_placement", "second_placement"),
    "wheels": ("radius", "tube"),
}
GEOMETRIC = (".placement.", ".child_placement.")  # of joints; what loops and wheels have is so, too
AXES = ("x", "y", "z")
MOMENTS = {"xx": (0, 0), "yy": (1, 1), "zz": (2, 2), "xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}  # elements of the matrix
MASSIVE = (".mass", ".inertia.xx", ".inertia.yy", ".inertia.zz")  # without these nothing may be left that resists


def list_parameters(description: MechanismDescription) -> dict[str, float]:
    """Return values by name: ``BODY.mass``, ``BODY.inertia.xy``, ``JOINT.damping[1]``, ``JOINT.placement.x``, ..."""
    values = {f"gravity.{axis}": value for axis, value in zip(AXES, description.gravity, strict=True)}
    for group, fields in FIELDS.items():
        for part in getattr(description, group):
            for what in fields:
                values |= list_part_numbers(part, what)
    return values


ROTARY_JOINTS = ("revolute",)
LINEAR_JOINTS = ("prismatic",)
FIELD_UNITS = {
    "mass": "kg",
    "center": "m",
    "inertia": "kg.m2",
    "radius": "m",
    "tube": "m",
    "length": "m",
    **dict.fromkeys(("placement", "child_placement", "first_point", "second_point"), "m"),
    **dict.fromkeys(("first_placement", "second_placement"), "m"),
}
FORCE_UNITS = {  # of stiffness, rest and damping by what they act along
    "length": {"stiffness": "N/m", "rest": "m", "damping": "N.s/m"},
    "angle": {"stiffness": "N.m/rad", "rest": "rad", "damping": "N.m.s/rad"},
}


def list_parameter_units(description: MechanismDescription) -> dict[str, str]:
    """Return the units of :func:`list_parameters`, empty for joints that turn and slide."""
    units = {f"gravity.{axis}": "m/s2" for axis in AXES}
    for group, fields in FIELDS.items():
        for part in getattr(description, group):
            for what in fields:
                units |= dict.fromkeys(list_part_numbers(part, what), _find_unit(part, what))
    return units


def _find_unit(part: Any, what: str) -> str:
    if what in FIELD_UNITS:
        return FIELD_UNITS[what]
    if isinstance(part, Joint) and part.type in ROTARY_JOINTS:
        return FORCE_UNITS["angle"][what]
    is_linear = not isinstance(part, Joint) or part.type in LINEAR_JOINTS
    return FORCE_UNITS["length"][what] if is_linear else ""


def list_part_numbers(part: Any, what: str) -> dict[str, float]:
    """Return the numbers of a field of a part by name; none where it has no such number."""
    value, name = getattr(part, what), f"{part.name}.{what}"
    if isinstance(part, Body) and part.mass is None:
        return {}
    if value is None or (isinstance(part, Loop) and what == "length" and part.type != "rod"):
        return {}
    if what == "inertia":
        return {f"{name}.{moment}": value[i][j] for moment, (i, j) in MOMENTS.items()}
    if isinstance(value, int | float):
        return {name: float(value)}
    if isinstance(part, Joint) and not isinstance(value, Placement):
        return {name if len(value) == 1 else f"{name}[{i + 1}]": v for i, v in enumerate(value)}
    return {f"{name}.{axis}": v for axis, v in zip(AXES, getattr(value, "position", value), strict=True)}


def is_geometric(description: MechanismDescription, names: Iterable[str]) -> bool:
    """Whether constraints depend on a parameter: where joints and loops are, lengths of rods, radii of wheels."""
    bound = tuple(f"{part.name}." for part in (*description.loops, *description.wheels))
    return any(name.startswith(bound) or any(part in name for part in GEOMETRIC) for name in names)


def change_parameters(description: MechanismDescription, values: Mapping[str, float]) -> MechanismDescription:
    """Return the description with other values; names are those that it has, and are not checked again."""
    other = copy(description)
    gravity = (values.get(f"gravity.{axis}", g) for axis, g in zip(AXES, description.gravity, strict=True))
    object.__setattr__(other, "gravity", tuple(gravity))
    for group, fields in FIELDS.items():
        parts = [_change_part(part, fields, values) for part in getattr(description, group)]
        object.__setattr__(other, group, tuple(parts))
    joints = {joint.name: joint for joint in other.joints}
    object.__setattr__(other, "ordered_joints", tuple(joints[j.name] for j in description.ordered_joints))
    return other


def _change_part(part: Any, fields: tuple[str, ...], values: Mapping[str, float]) -> Any:
    if not any(name.startswith(f"{part.name}.") for name in values):
        return part
    changes: dict[str, Any] = {}
    for what in fields:
        if set(current_numbers := list_part_numbers(part, what)).intersection(values):
            old, numbers = (
                getattr(part, what),
                tuple(values.get(name, value) for name, value in current_numbers.items()),
            )
            changes[what] = numbers[0] if isinstance(old, int | float) else numbers
            if isinstance(old, Placement):
                x, y, z = numbers
                changes[what] = Placement((x, y, z), old.rotation)
    return replace(part, **changes) if changes else part


At = tuple[tuple[str, str], ...]  # actuators with a control at a limit, and which


def at_limits(system: System, state: State) -> tuple[At, tuple[str, ...]]:
    """Return which controls stand at a limit, and what a user should know of limits at a state."""
    d, drives = system.description, state.drives
    if drives is None:
        return (), ()
    at, standing, beyond, pushed = [], [], [], []
    actuators = [(i, a) for i, a in enumerate(d.inputs) if isinstance(a, Actuator)]
    for k, (i, a) in enumerate(actuators):
        if a.control_limits:
            value = float(state.u[i])
            side = classify_side(value, *a.control_limits)
            if side == "beyond":
                low, high = a.control_limits
                beyond.append(f"{a.name} ({value:.6g} is outside {low:.6g} .. {high:.6g})")
            elif side != "inside":
                at.append((a.name, side))
                standing.append(f"{a.name} ({value:.6g})")
        force = float(drives.F[len(drives.F) - len(actuators) + k])
        if a.force_limits and classify_side(force, *a.force_limits) != "inside":
            pushed.append(f"{a.name} (force {force:.6g})")
    for joint in d.joints:
        for speed in system.tree.speeds_of[joint.name] if joint.drive_limits else ():
            force = float(drives.driven[speed])
            if classify_side(force, *joint.drive_limits) != "inside":
                pushed.append(f"the joint {joint.name} (force {force:.6g})")
    return tuple(at), limit_remarks(beyond, standing, pushed)


def open_limits(description: MechanismDescription, at: At, remarks: tuple[str, ...]) -> MechanismDescription:
    """Return the description with limits that controls may cross where they stand at them, and diagnostics."""
    sides = dict(at)
    inputs = [
        replace(i, control_limits=_open(i.control_limits, sides[i.name]))
        if isinstance(i, Actuator) and i.name in sides
        else i
        for i in description.inputs
    ]
    return replace(description, inputs=inputs, remarks=(*description.remarks, *remarks))


def _open(limits: tuple[float, float], side: str) -> tuple[float, float]:
    inf = float("inf")
    return (-inf, limits[1]) if side == "lower" else (limits[0], inf)


STANDSTILL_SPEED_TOLERANCE = (
    1e-6  # speed of a foot at the point, in m/s or rad/s, relative to that of the fastest joint (or 1)
)


def name_foot_loop(foot: Foot) -> str:
    """Return the name of the loop that holds a foot."""
    return f"{foot.name}.contact"


@dataclass(frozen=True)
class Standing:
    """Where a foot touches the ground, of what is known of the ground from elsewhere."""

    body: str
    point: Floats  # (3,), in the body's frame
    contact: Contact


@dataclass(frozen=True)
class Stance:
    """The contact of feet with the ground."""

    feet: Mapping[str, Standing]  # by the names of the feet
    # what a user should know of the mechanism that stands there, instead of the diagnostics on it before
    remarks: tuple[str, ...]


def hold_feet(
    system: System, feet: Sequence[Foot], q: Floats, v: Floats, u: Floats, *, stance: Stance | None = None
) -> MechanismDescription:
    """Return the description with feet held where q (n_q,), v (n,) put them; these and u (nu,) become start values."""
    description, tree = system.description, system.tree
    at = velocities(tree, q, v)
    X, V = np.asarray(at.X), np.asarray(at.V)
    fastest = max(1.0, float(np.abs(v).max(initial=0.0)))
    loops, sensors, contacts = [], [], []
    for foot in feet:
        stands = _locate_foot(system, foot, None if stance is None else stance.feet[foot.name])
        link, offset = tree.frame_of[stands.body]
        frame, w = X[link] @ offset, V[link, :3]
        p = frame[:3, 3] + frame[:3, :3] @ stands.point
        speed = float(np.linalg.norm(np.concatenate((V[link, 3:] + np.cross(w, p), w if foot.flat else ()))))
        if speed > STANDSTILL_SPEED_TOLERANCE * fastest:
            raise ConstraintError(
                f"The foot '{foot.name}' cannot be held at this point: it moves there, at {speed:.3g} m/s. Choose a "
                "point at which it does not move."
            )
        loops.append(
            Loop(
                name_foot_loop(foot),
                "fixed" if foot.flat else "spherical",
                description.ground,
                stands.body,
                Placement(vector(p, "A foot")),
                Placement(vector(stands.point, "A foot"), frame[:3, :3].T),
            )
        )
        signals = contact_signals(foot)
        sensors += [Sensor(s.name, "contact", name_foot_loop(foot), coordinate=i) for i, s in enumerate(signals)]
        contacts.append(stands.contact)
    joints = [
        replace(
            joint,
            position=tuple(q[list(tree.coordinates_of[joint.name])].tolist()),
            velocity=tuple(v[list(tree.speeds_of[joint.name])].tolist()),
        )
        for joint in description.joints
    ]
    return replace(
        description,
        joints=joints,
        inputs=[replace(force, start=value) for force, value in zip(description.inputs, u.tolist(), strict=True)],
        loops=(*description.loops, *loops),
        sensors=(*description.sensors, *sensors),
        contacts=(*description.contacts, *contacts),
        remarks=stance.remarks if stance else (*description.remarks, _where([foot.name for foot in feet])),
    )


def without_undetermined(description: MechanismDescription, independence: Independence) -> MechanismDescription:
    """Return the description without the contact forces that rigid bodies do not determine."""
    forces = {s.name: (s.of, locate_multiplier(s)[0]) for s in description.sensors if s.quantity == "contact"}
    lost = [name for name, key in forces.items() if key in independence.undetermined]
    shared = [name for name in lost if forces[name] not in independence.vanishing]
    if not lost:
        return description
    remark = (
        f"The feet are held redundantly: rigid bodies do not determine the contact forces {', '.join(shared)}, which "
        "are neither outputs nor checked."
    )
    return replace(
        description,
        sensors=[sensor for sensor in description.sensors if sensor.name not in lost],
        remarks=(*description.remarks, *([remark] if shared else [])),
    )


def _where(names: Sequence[str]) -> str:
    one = len(names) == 1
    return (
        f"The {'foot' if one else 'feet'} {', '.join(names)} {'is' if one else 'are'} held where "
        f"{'it is' if one else 'they are'} at the start: this mechanism has no ground of its own."
    )


def _locate_foot(system: System, foot: Foot, stands: Standing | None) -> Standing:
    """Return where a foot is held: where it is known to stand, at its marker, or at the origin of its body."""
    description = system.description
    markers = {marker.name: marker for marker in description.markers}
    if stands is None and foot.at != "contact":
        raise UsageError(
            f"'{description.name}' has no shape of the foot '{foot.name}', to which ':{foot.at}' refers: hold a "
            "[[marker]] at that point."
        )
    if stands is None:
        g, marker = np.array(description.gravity), markers.get(foot.name)
        up = -g / np.linalg.norm(g) if g.any() else np.array([0.0, 0.0, 1.0])
        body, point = (foot.name, np.zeros(3)) if marker is None else (marker.body, np.array(marker.point))
        stands = Standing(body, point, Contact(foot, up, None if marker is None else marker.friction))
    if stands.body not in {b.name for b in description.bodies}:
        names = [*markers, *(b.name for b in description.bodies)]
        raise unknown_foot_error(foot.name, names, f"a body or marker of '{description.name}' that could be held")
    if any(loop.name == name_foot_loop(foot) for loop in description.loops):
        raise ModelError(f"The foot '{foot.name}' is held already. Name it once.")
    if system.tree.frame_of[stands.body][0] == 0:
        raise ModelError(
            f"The foot '{foot.name}' is fixed to the ground by its joints, so holding it has no effect. Leave it out."
        )
    return stands
