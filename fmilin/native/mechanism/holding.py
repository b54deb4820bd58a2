"""Feet of a mechanism: bodies and markers that stay where they are, by loops from the ground."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import ConstraintError, ModelError, UsageError
from fmilin.native.contacts import Contact, Foot, contact_signals, unknown_foot
from fmilin.native.mechanism.description import MechanismDescription
from fmilin.native.mechanism.elements import Sensor
from fmilin.native.mechanism.independence import Independence
from fmilin.native.mechanism.outputs import constraint_of
from fmilin.native.mechanism.parts import Loop
from fmilin.native.mechanism.placement import Placement, vector
from fmilin.native.mechanism.recursions import velocities
from fmilin.native.mechanism.system import System

Floats = NDArray[np.float64]

AT_REST = 1e-6  # speed of a foot at the point, in m/s or rad/s, beside that of the fastest joint (or 1)


@dataclass(frozen=True)
class _Held:
    """A point of a body in the world."""

    body: str
    point: Floats  # (3,), in the body's frame
    p: Floats  # shape (3,)
    R: Floats  # shape (3, 3)
    v: Floats  # shape (3,)
    w: Floats  # shape (3,)
    friction: float | None


def loop_of(foot: Foot) -> str:
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
    """What is known of the ground under feet."""

    feet: Mapping[str, Standing]  # by the names of the feet
    # what a user should know of the mechanism that stands there, instead of the remarks on it before
    remarks: tuple[str, ...]


def held(
    system: System, feet: Sequence[Foot], q: Floats, v: Floats, u: Floats, *, stance: Stance | None = None
) -> MechanismDescription:
    """Return the description with feet held where q (n_q,), v (n,) put them; these and u (nu,) become start values."""
    description, tree = system.description, system.tree
    at = velocities(tree, q, v)
    fastest = max(1.0, float(np.abs(v).max(initial=0.0)))
    g = np.array(description.gravity)
    up = -g / np.linalg.norm(g) if g.any() else np.array([0.0, 0.0, 1.0])
    loops, sensors, contacts = [], [], []
    for foot in feet:
        stands = None if stance is None else stance.feet[foot.name]
        at_foot = _held_at(system, foot, stands, np.asarray(at.X), np.asarray(at.V))
        speed = float(np.linalg.norm(np.concatenate((at_foot.v, at_foot.w if foot.flat else ()))))
        if speed > AT_REST * fastest:
            raise ConstraintError(
                f"The foot '{foot.name}' cannot be held at this point: it moves there, at {speed:.3g} m/s. Give a "
                "point where it rests."
            )
        loops.append(
            Loop(
                loop_of(foot),
                "fixed" if foot.flat else "spherical",
                description.ground,
                at_foot.body,
                Placement(vector(at_foot.p, "A foot")),
                Placement(vector(at_foot.point, "A foot"), at_foot.R.T),
            )
        )
        signals = contact_signals(foot)
        sensors += [Sensor(s.name, "contact", loop_of(foot), coordinate=i) for i, s in enumerate(signals)]
        contacts.append(Contact(foot, up, at_foot.friction) if stands is None else stands.contact)
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
    forces = {s.name: (s.of, constraint_of(s)[0]) for s in description.sensors if s.quantity == "contact"}
    lost = [name for name, key in forces.items() if key in independence.undetermined]
    shared = [name for name in lost if forces[name] not in independence.vanishing]
    if not lost:
        return description
    remark = (
        f"More is held than can move: rigid bodies do not determine the contact forces {', '.join(shared)}, which are "
        "no outputs and are not checked."
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
        f"{'it is' if one else 'they are'} at the start: this mechanism has no ground of its own to stand on."
    )


def _held_at(system: System, foot: Foot, stands: Standing | None, X: Floats, V: Floats) -> _Held:
    description, tree = system.description, system.tree
    markers = {marker.name: marker for marker in description.markers}
    marker = markers.get(foot.name)
    if stands is None and foot.at != "contact":
        raise UsageError(
            f"'{description.name}' knows no shape of the foot '{foot.name}', which ':{foot.at}' is a point of: hold a "
            "[[marker]] at that point."
        )
    body = stands.body if stands is not None else foot.name if marker is None else marker.body
    if body not in {b.name for b in description.bodies}:
        names = [*markers, *(b.name for b in description.bodies)]
        raise unknown_foot(foot.name, names, f"a body or marker of '{description.name}' that could be held")
    if any(loop.name == loop_of(foot) for loop in description.loops):
        raise ModelError(f"The foot '{foot.name}' is held already.")
    link, offset = tree.frame_of[body]
    if link == 0:
        raise ModelError(f"The foot '{foot.name}' is fixed to the ground by its joints: nothing needs to hold it.")
    point = stands.point if stands is not None else np.zeros(3) if marker is None else np.array(marker.point)
    frame = X[link] @ offset
    p = frame[:3, 3] + frame[:3, :3] @ point
    w = V[link, :3]
    return _Held(
        body, point, p, frame[:3, :3], V[link, 3:] + np.cross(w, p), w, None if marker is None else marker.friction
    )
