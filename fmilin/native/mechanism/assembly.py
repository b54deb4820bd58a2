"""Closing the loops of a mechanism from a rough guess, with a report when they cannot close.

Gauss-Newton with the pseudo-inverse on the open tree, dq = -D (G D)^+ g(q), with the damping of Levenberg and Marquardt
where that does not help: the nearest posture that closes the loops (Spencer (thesis), eqs. 3.10 and 3.11, on positions
alone). Balls turn by angles, so that quaternions stay of unit length. Where it leads nowhere, it starts again around
the guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fmilin.ground.errors import ConstraintError, UnknownNameError
from fmilin.ground.tolerances import CLOSED
from fmilin.native.mechanism.closing import Closing, Floats, Gap
from fmilin.native.mechanism.description import MechanismDescription

__all__ = ["Assembly", "Gap", "assemble", "closed"]

STARTS = 24
"""Further starts around the guess, where the first one leads nowhere."""
REACHES = (0.05, 0.3, 1.0, 3.0)
"""How far around it, in rad or sizes of the mechanism."""


@dataclass(frozen=True)
class Assembly:
    """A mechanism with closed loops."""

    description: MechanismDescription  # with the positions and velocities that were found as start values
    # before, gaps: at the first guess, and now
    before: tuple[Gap, ...]
    gaps: tuple[Gap, ...]
    moved: float  # largest change of a joint, in rad or in sizes of the mechanism
    iterations: int


def assemble(description: MechanismDescription, held: Sequence[str] | None = None) -> Assembly:
    """Close the loops of a mechanism, the positions of its joints being a first guess.

    ``held``: states that keep their start values; the recommended independent ones when left out. What is returned is
    nearest to the guess: angles count in rad, distances in sizes of the mechanism.

    >>> from fmilin.models.mechanism import Body, Joint, Loop, Placement
    >>> rods = [Body(name, 1.0, (0.5, 0, 0), (0, 0.1, 0.1)) for name in ("left", "right")]
    >>> joints = [Joint("a", "revolute", "ground", "left", position=1.2),
    ...           Joint("b", "revolute", "left", "right", Placement((1, 0, 0)), position=-2.0)]
    >>> loop = Loop("pin", "point_on_line", "ground", "right", Placement((1, 0, 0)), Placement((1, 0, 0)))
    >>> triangle = assemble(MechanismDescription("triangle", rods, joints, [loop]))
    >>> [round(float(j.position[0]), 6) for j in triangle.description.joints]  # 60 and -120 degrees
    [1.047198, -2.094395]
    """
    closing = Closing(description, _held(description, held))
    q = _nearest(closing)
    _require_closed(closing, q)
    v = _speeds(closing, q)
    return Assembly(
        description=_started(closing, q, v),
        before=closing.gaps(closing.start),
        gaps=closing.gaps(q),
        moved=float(np.max(np.abs(closing.displacement(q)), initial=0.0)),
        iterations=closing.iterations,
    )


def closed(description: MechanismDescription) -> MechanismDescription:
    """Return the description itself where its loops are closed at the start, else :func:`assemble`'s."""
    if not (description.loops or description.couplings or description.wheels or description.skates):
        return description
    closing = Closing(description, ())
    q, v = closing.start, np.array([v for joint in closing.system.description.joints for v in joint.velocity])
    is_still = not v.any() or not closing.velocities(q, v)[2]
    return description if closing.is_closed(q) and is_still else assemble(description).description


def _held(description: MechanismDescription, held: Sequence[str] | None) -> tuple[str, ...]:
    if held is None:
        return tuple(description.independent)
    known = [name for joint in description.joints for name in sum(joint.state_names, ())]
    for name in held:
        if name not in known:
            raise UnknownNameError.among(name, known, f"a state of the mechanism '{description.name}'")
    return tuple(held)


def _nearest(closing: Closing) -> Floats:
    """Return the closed posture nearest to the guess, or else the one with the smallest gaps."""
    first = closing.descended(closing.start) if closing.system.m_q else closing.start
    if closing.is_closed(first):
        return first
    random = np.random.default_rng(1801)
    found = [first]
    for k in range(STARTS):
        kick = REACHES[k % len(REACHES)] * random.uniform(-1, 1, len(closing.scales))
        found.append(closing.descended(closing.moved(closing.start, kick * closing.scales * closing.free_q)))
    good = [q for q in found if closing.is_closed(q)]
    if good:
        return min(good, key=lambda q: float(np.linalg.norm(closing.displacement(q))))
    return min(found, key=lambda q: float(np.linalg.norm(closing.values(q)) + np.pi * len(closing.turned_over(q))))


def _require_closed(closing: Closing, q: Floats) -> None:
    if closing.is_closed(q):
        return
    sizes = {gap.loop: max(gap.distance / closing.size, gap.angle) for gap in closing.gaps(q)}
    worst = max(sizes.values())
    left = [gap for gap in closing.gaps(q) if sizes[gap.loop] > max(CLOSED, 1e-3 * worst)]
    first = {gap.loop: gap for gap in closing.gaps(closing.start)}
    told = "; ".join(f"'{gap.loop}' stays open by {gap} (first guess: {first[gap.loop]})" for gap in left[:4])
    names = closing.system.tree.state_names[0]
    holding = [name for name in closing.held if name in names]
    verb = "keeps its value" if len(holding) == 1 else "keep their values"
    kept = f" while {', '.join(repr(n) for n in holding)} {verb}" if holding else ""
    best = [f"{name} = {value:.4g}" for name, value in zip(names, q, strict=True) if name not in holding]
    raise ConstraintError(
        f"The {'loop' if len(left) == 1 else 'loops'} of the mechanism '{closing.description.name}' cannot be closed"
        f"{kept}: {told}. The best posture that was found is {', '.join(best[:8])}{', ...' * (len(best) > 8)}. Check "
        "lengths and placements, or give other first positions of the joints"
        + (", or hold others." if holding else "."),
        residuals={gap.loop: max(gap.distance, gap.angle) for gap in left},
    )


def _speeds(closing: Closing, q: Floats) -> Floats:
    v = np.array([v for joint in closing.system.description.joints for v in joint.velocity])
    if not closing.system.loop_constraints or not v.any():
        return v
    found, lost, _ = closing.velocities(q, v)
    if lost:
        raise ConstraintError(
            f"No velocities of the mechanism '{closing.description.name}' keep {', '.join(map(repr, lost))} closed "
            "while the held ones keep their values: hold fewer, or give velocities that fit each other."
        )
    return found


def _started(closing: Closing, q: Floats, v: Floats) -> MechanismDescription:
    """Return the description with new start values where they differ from the given ones."""
    tree, joints = closing.system.tree, []
    for joint in closing.description.joints:
        q_j, v_j = q[list(tree.coordinates_of[joint.name])], v[list(tree.speeds_of[joint.name])]
        stays = np.allclose(q_j, joint.position, rtol=1e-14, atol=1e-15 * closing.size)
        if stays and np.array_equal(v_j, joint.velocity):
            joints.append(joint)
        else:
            joints.append(replace(joint, position=tuple(q_j.tolist()), velocity=tuple(v_j.tolist())))
    loops = [
        replace(loop, turn=float(q[tree.coordinates_of[loop.name][0]])) if loop.type == "helical" else loop
        for loop in closing.description.loops
    ]
    return replace(closing.description, joints=joints, loops=loops)
