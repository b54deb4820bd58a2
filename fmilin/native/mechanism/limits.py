"""Actuators of a mechanism at their limits: what is said of them, and limits that controls may cross at a point."""

from __future__ import annotations

from dataclasses import replace

from fmilin.native.limits import limit_remarks, side_of
from fmilin.native.mechanism.description import MechanismDescription
from fmilin.native.mechanism.drives import Actuator
from fmilin.native.mechanism.system import State, System

__all__ = ["at_limits", "opened"]

At = tuple[tuple[str, str], ...]
"""Actuators whose control stands at a limit, and which."""


def at_limits(system: System, state: State) -> tuple[At, tuple[str, ...]]:
    """Return which controls stand at a limit, and what a user should know of limits at a state."""
    d, drives = system.description, state.drives
    if drives is None:
        return (), ()
    at, told, beyond, pushed = [], [], [], []
    actuators = [(i, a) for i, a in enumerate(d.inputs) if isinstance(a, Actuator)]
    for k, (i, a) in enumerate(actuators):
        if a.control_limits:
            value = float(state.u[i])
            side = side_of(value, *a.control_limits)
            if side == "beyond":
                low, high = a.control_limits
                beyond.append(f"{a.name} ({value:.6g} is outside {low:.6g} .. {high:.6g})")
            elif side != "inside":
                at.append((a.name, side))
                told.append(f"{a.name} ({value:.6g})")
        force = float(drives.F[len(d.tendons) + k])
        if a.force_limits and side_of(force, *a.force_limits) != "inside":
            pushed.append(f"{a.name} (force {force:.6g})")
    for joint in d.joints:
        for speed in system.tree.speeds_of[joint.name] if joint.drive_limits else ():
            force = float(drives.driven[speed])
            if side_of(force, *joint.drive_limits) != "inside":
                pushed.append(f"the joint {joint.name} (force {force:.6g})")
    return tuple(at), limit_remarks(beyond, told, pushed)


def opened(description: MechanismDescription, at: At, remarks: tuple[str, ...]) -> MechanismDescription:
    """Return the description with limits that controls may cross where they stand at them, and remarks."""
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
