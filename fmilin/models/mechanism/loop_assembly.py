"""Closing the loops of a mechanism from a rough guess, with a report when they cannot close.

Gauss-Newton with the pseudo-inverse on the open tree, dq = -D (G D)^+ g(q) (Spencer (thesis), eqs. 3.10 and 3.11, on
positions alone), damped as by Levenberg and Marquardt where that does not help; where it leads nowhere, again around
the guess. Velocities that were given are held, and the others follow: wheels roll straight on where they can.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from fmilin.errors import ConstraintError, UnknownNameError, join_first
from fmilin.models.mechanism.independence import normalize_quaternions
from fmilin.models.mechanism.mechanism_description import MechanismDescription
from fmilin.models.mechanism.multibody_system import System
from fmilin.models.mechanism.part import Placement
from fmilin.models.mechanism.parts import Loop
from fmilin.models.mechanism.recursions import coordinate_columns, positions
from fmilin.models.mechanism.start_values import Motions, list_moved_starts, own_name, velocities
from fmilin.support.deprecation import rename_keywords
from fmilin.tolerances import LOOP_CLOSURE_TOLERANCE, PSEUDOINVERSE_TOLERANCE

Floats = NDArray[np.float64]

ITERATIONS = 60


@dataclass(frozen=True)
class Gap:
    """How far one loop is open."""

    loop: str  # the loop, or the wheel that does not touch its plane
    distance: float  # in m
    angle: float  # in rad: between axes that should coincide

    def __str__(self) -> str:
        parts = [f"{self.distance:.4g} m"] if self.distance or not self.angle else []
        return " and ".join([*parts, f"{self.angle:.4g} rad"] if self.angle else parts)


class Closing:
    """Positions q (n_q) of the open tree, displacements theta (n), gaps g (m_q), and what closes the gaps."""

    def __init__(self, description: MechanismDescription, fixed_joints: tuple[str, ...]) -> None:
        self.description = description
        self.fixed_joints = fixed_joints
        self.system = system = System(description)
        self.size = _size(system.description)  # in m: the unit of distances and of displacements of slides
        slides = np.linalg.norm(system.tree.axes[:, :3], axis=1) == 0
        self.scales = np.where(slides, self.size, 1.0)
        self.free_q, self.free_v = self._free(fixed_joints)  # (n,), 1 for what may change, 0 for what is held
        powers = {"lines": 1, "rods": 2, "hinges": 0}  # of a length: rods compare squares, hinges measure cosines
        self.units = np.array(
            [
                self._scale(loop.terms) if loop.terms else self.size ** powers[loop.row[0]]
                for loop in system.loop_constraints[: system.m_q]
            ]
        )
        self.iterations = 0

    @cached_property
    def start(self) -> Floats:
        """The first guess, quaternions of unit length, shape (n_q,)."""
        q = np.array([q for joint in self.system.description.joints for q in joint.position])
        return normalize_quaternions(self.system, q)

    @cached_property
    def given_velocities(self) -> Floats:
        """The velocities of the description, shape (n,)."""
        return np.array([v for joint in self.system.description.joints for v in joint.velocity])

    @cached_property
    def stated(self) -> NDArray[np.bool_]:
        """Which velocities were given, shape (n,)."""
        given_speeds = self.description.given_speeds
        return np.array([name in given_speeds for name in self.system.tree.state_names[1]], dtype=bool)

    def _scale(self, terms: tuple[tuple[str, float], ...]) -> float:
        """Return the unit of a coupling: that of the joint that follows."""
        return float(self.scales[self.system.tree.speeds_of[terms[0][0]][0]])

    def _free(self, fixed_joints: tuple[str, ...]) -> tuple[Floats, Floats]:
        tree = self.system.tree
        names, speeds = tree.state_names
        free_q, free_v = np.ones(tree.n), np.ones(tree.n)
        free_v[[speeds.index(name) for name in fixed_joints if name in speeds]] = 0.0
        for at in [names.index(name) for name in fixed_joints if name in names]:
            joint = next(j for j, coordinates in tree.coordinates_of.items() if at in coordinates)
            coordinates, joint_speeds = tree.coordinates_of[joint], tree.speeds_of[joint]
            i = coordinates.index(at)
            in_ball = len(coordinates) > len(joint_speeds) and i >= len(coordinates) - 4
            free_q[list(joint_speeds[-3:]) if in_ball else [joint_speeds[i]]] = (
                0.0  # one of a quaternion holds the whole ball
            )
        return free_q, free_v

    def values(self, q: Floats) -> Floats:
        """Return g(q), distances in sizes of the mechanism, shape (m_q,)."""
        return np.asarray(self._raw(q) / self.units)

    def is_closed(self, q: Floats) -> bool:
        """Whether all loops are closed, the right way round."""
        return bool(
            np.max(np.abs(self.values(q)), initial=0.0) <= LOOP_CLOSURE_TOLERANCE
        ) and not self.find_reversed_loops(q)

    def gaps(self, q: Floats) -> tuple[Gap, ...]:
        """Return the gap of each loop and wheel."""
        sizes: dict[str, tuple[float, float]] = {}
        rods = {loop.name: loop.length for loop in self.description.loops if loop.type == "rod"}
        for value, loop in zip(self._raw(q), self.system.loop_constraints, strict=False):
            name = own_name(loop.of)
            distance, angle = sizes.get(name, (0.0, 0.0))
            if loop.terms and self._scale(loop.terms) == 1.0:
                angle = abs(float(value))
            elif loop.row[0] == "hinges":
                angle = max(angle, abs(float(np.arcsin(np.clip(value, -1, 1)))))
            else:
                length = rods.get(name)
                apart = value if length is None else np.sqrt(max(2 * value + length**2, 0.0)) - length
                distance = float(np.hypot(distance, apart))
            sizes[name] = (distance, angle)
        over = self.find_reversed_loops(q)
        return tuple(Gap(name, d, float(np.pi) if name in over else a) for name, (d, a) in sizes.items())

    def find_reversed_loops(self, q: Floats) -> tuple[str, ...]:
        """Return the loops with axes opposite to each other: perpendicular to all that they should be."""
        X = np.asarray(positions(self.system.tree, q))
        loops = self.system.description.loops
        return tuple(own_name(loop.name) for loop in loops if any(a @ b < 0 for a, b in self._axes(loop, X)))

    def _raw(self, q: Floats) -> Floats:
        p, e = self.system.markers.positions(np.asarray(positions(self.system.tree, q)))
        return np.asarray(self.system.g(p, e, q))

    def _axes(self, loop: Loop, X: Floats) -> list[tuple[Floats, Floats]]:
        """Return pairs of directions that must not be opposite to each other."""
        count = {"revolute": 1, "cylindrical": 1, "planar": 1, "prismatic": 2, "fixed": 2}.get(loop.type, 0)
        first = self._rotation(X, loop.first, loop.first_placement)
        second = self._rotation(X, loop.second, loop.second_placement)
        return [(first @ np.array(e), second @ np.array(e)) for e in (loop.axis, loop.second_axis)[:count] if e]

    def _rotation(self, X: Floats, body: str, placement: Placement) -> Floats:
        link, offset = self.system.tree.frame_of[body]
        return np.asarray(X[link, :3, :3] @ offset[:3, :3] @ placement.R)

    def jacobian(self, q: Floats) -> Floats:
        """Return G of all constraints, those on positions first, shape (m, n)."""
        no_input = np.zeros(self.system.nu)
        return np.asarray(self.system.state(q, np.zeros(self.system.tree.n), no_input).G)

    def minimize_gaps(self, q: Floats) -> Floats:
        """Return where damped Gauss-Newton ends: dq = -D (G D)^+ g, D the sizes of what may move.

        Where loops cannot be closed it ends at the least gaps, in rad and in sizes of the mechanism, and these are
        reported: :func:`fmilin.numerics.newton.find_zeros` measures rows in their own lengths, and would make others
        least. Quaternions have unit length, so that a step is a displacement of the joints and no sum of coordinates.
        """
        D = self.scales * self.free_q
        g, damping = self.values(q), 0.0
        for _ in range(ITERATIONS):
            self.iterations += 1
            GD = self.jacobian(q)[: self.system.m_q] / self.units[:, None] * D
            candidate = self.displace(q, D * _step(GD, g, damping))
            value = self.values(candidate)
            if np.linalg.norm(value) < np.linalg.norm(g):
                q, g, damping = candidate, value, damping / 10 if damping > 1e-6 else 0.0
            elif np.linalg.norm(g) < 1e-3 * LOOP_CLOSURE_TOLERANCE or damping > 1e6:
                break
            else:
                damping = max(10 * damping, 1e-4)
        return q

    def displace(self, q: Floats, theta: Floats) -> Floats:
        """Return the positions after a displacement theta (n,); quaternions keep their length."""
        E, _ = coordinate_columns(self.system.tree, q, np.zeros(len(theta)))
        return normalize_quaternions(self.system, q + E @ theta)

    def displacement(self, q: Floats) -> Floats:
        """Return how far the joints are from the first guess, in rad or sizes of the mechanism, shape (n_q,)."""
        tree = self.system.tree
        scales = np.ones(tree.n_q)
        scales[tree.screw_coordinates] = self.scales[tree.screw_speeds]
        return (q - self.start) / scales

    def velocities(self, q: Floats) -> tuple[Floats, tuple[str, ...]]:
        """Return velocities that keep the loops closed, the given ones held, and the loops that open even so."""
        motions = Motions(self.system, self.scales, self.jacobian(q), self.given_velocities, self.stated)
        return velocities(motions, self.free_v)


def _step(GD: Floats, g: Floats, damping: float) -> Floats:
    """Return the step of Gauss and Newton, or with a damping that of Levenberg and Marquardt."""
    if not damping:
        return np.asarray(-linalg.pinv(GD, rtol=PSEUDOINVERSE_TOLERANCE) @ g)
    size = float(np.linalg.norm(GD)) ** 2 or 1.0
    return np.asarray(-GD.T @ np.linalg.solve(GD @ GD.T + damping * size * np.eye(len(g)), g))


def _size(description: MechanismDescription) -> float:
    placements = [p for j in description.joints for p in (j.placement, j.child_placement)]
    placements += [p for loop in description.loops for p in (loop.first_placement, loop.second_placement)]
    lengths = [float(np.linalg.norm(p.position)) for p in placements] + [loop.length for loop in description.loops]
    lengths += [wheel.radius + wheel.tube for wheel in description.wheels]
    return max(lengths, default=0.0) or 1.0


RANDOM_START_COUNT = 24  # further starts around the guess, where the first one leads nowhere
START_DISTANCES = (0.05, 0.3, 1.0, 3.0)  # how far around it, in rad or sizes of the mechanism


@dataclass(frozen=True)
class Assembly:
    """A mechanism with closed loops."""

    description: MechanismDescription  # with the positions and velocities that were found as start values
    # before, gaps: at the first guess, and now
    before: tuple[Gap, ...]
    gaps: tuple[Gap, ...]
    moved: float  # largest change of a joint, in rad or in sizes of the mechanism
    iterations: int


@rename_keywords(held="fixed_states")
def assemble(description: MechanismDescription, fixed_states: Sequence[str] | None = None) -> Assembly:
    """Close the loops of a mechanism, nearest to its joints' positions: angles count in rad, distances in its sizes.

    The ``fixed_states``, by default the recommended independent ones, keep their start values.

    >>> from fmilin.models.mechanism import Body, Joint, Loop, Placement
    >>> rods = [Body(name, 1.0, (0.5, 0, 0), (0, 0.1, 0.1)) for name in ("left", "right")]
    >>> joints = [Joint("a", "revolute", "ground", "left", position=1.2),
    ...           Joint("b", "revolute", "left", "right", Placement((1, 0, 0)), position=-2.0)]
    >>> loop = Loop("pin", "point_on_line", "ground", "right", Placement((1, 0, 0)), Placement((1, 0, 0)))
    >>> triangle = assemble(MechanismDescription("triangle", rods, joints, [loop]))
    >>> [round(float(j.position[0]), 6) for j in triangle.description.joints]  # 60 and -120 degrees
    [1.047198, -2.094395]
    """
    closing = Closing(description, _resolve_fixed_joints(description, fixed_states))
    q = _nearest(closing)
    _require_closed(closing, q)
    v = _speeds(closing, q)
    return Assembly(
        description=_replace_starts(closing, q, v),
        before=closing.gaps(closing.start),
        gaps=closing.gaps(q),
        moved=float(np.max(np.abs(closing.displacement(q)), initial=0.0)),
        iterations=closing.iterations,
    )


def close_loops(description: MechanismDescription) -> MechanismDescription:
    """Return the description itself where its loops are closed at the start, else :func:`assemble`'s."""
    if not (description.loops or description.couplings or description.wheels or description.skates):
        return description
    closing = Closing(description, ())
    q, v = closing.start, closing.given_velocities
    fits = not v.any() or closing.velocities(q)[0] is v
    return description if closing.is_closed(q) and fits else assemble(description).description


def _resolve_fixed_joints(description: MechanismDescription, fixed_states: Sequence[str] | None) -> tuple[str, ...]:
    if fixed_states is None:
        return tuple(description.independent)
    states = [name for joint in description.joints for name in sum(joint.state_names, ())]
    for name in fixed_states:
        if name not in states:
            raise UnknownNameError.among(name, states, f"a state of the mechanism '{description.name}'")
    return tuple(fixed_states)


def _nearest(closing: Closing) -> Floats:
    """Return the closed configuration nearest to the guess, or else the one with the smallest gaps."""
    first = closing.minimize_gaps(closing.start) if closing.system.m_q else closing.start
    if closing.is_closed(first):
        return first
    random = np.random.default_rng(1801)
    candidates = [first]
    for k in range(RANDOM_START_COUNT):
        displacement = START_DISTANCES[k % len(START_DISTANCES)] * random.uniform(-1, 1, len(closing.scales))
        candidates.append(
            closing.minimize_gaps(closing.displace(closing.start, displacement * closing.scales * closing.free_q))
        )
    good = [q for q in candidates if closing.is_closed(q)]
    if good:
        return min(good, key=lambda q: float(np.linalg.norm(closing.displacement(q))))
    return min(
        candidates, key=lambda q: float(np.linalg.norm(closing.values(q)) + np.pi * len(closing.find_reversed_loops(q)))
    )


def _require_closed(closing: Closing, q: Floats) -> None:
    if closing.is_closed(q):
        return
    sizes = {gap.loop: max(gap.distance / closing.size, gap.angle) for gap in closing.gaps(q)}
    worst = max(sizes.values())
    open_gaps = [gap for gap in closing.gaps(q) if sizes[gap.loop] > max(LOOP_CLOSURE_TOLERANCE, 1e-3 * worst)]
    first = {gap.loop: gap for gap in closing.gaps(closing.start)}
    gaps = join_first(
        (f"'{gap.loop}' has a gap of {gap} (first guess: {first[gap.loop]})" for gap in open_gaps), 4, "; "
    )
    names = closing.system.tree.state_names[0]
    holding = [name for name in closing.fixed_joints if name in names]
    verb = "keeps its value" if len(holding) == 1 else "keep their values"
    condition = f" while {', '.join(repr(n) for n in holding)} {verb}" if holding else ""
    best = [f"{name} = {value:.4g}" for name, value in zip(names, q, strict=True) if name not in holding]
    raise ConstraintError(
        f"The {'loop' if len(open_gaps) == 1 else 'loops'} of the mechanism '{closing.description.name}' cannot be "
        f"closed{condition}: {gaps}. The best configuration found is {join_first(best, 8)}. Check lengths and "
        "placements, or give other initial guesses of the joints" + (", or hold others." if holding else "."),
        residuals={gap.loop: max(gap.distance, gap.angle) for gap in open_gaps},
    )


def _speeds(closing: Closing, q: Floats) -> Floats:
    v = closing.given_velocities
    if not closing.system.loop_constraints or not v.any():
        return v
    nearest, lost = closing.velocities(q)
    if lost:
        raise ConstraintError(
            f"No velocities of the mechanism '{closing.description.name}' keep {', '.join(map(repr, lost))} closed "
            "with the fixed velocities: fix fewer, or give consistent velocities."
        )
    return nearest


def _replace_starts(closing: Closing, q: Floats, v: Floats) -> MechanismDescription:
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
    given_velocities = closing.given_velocities
    fastest = np.max(np.abs(given_velocities) / closing.scales, initial=0.0) or 1.0
    changes = closing.displacement(q), (v - given_velocities) / closing.scales / fastest
    moved = list_moved_starts(closing.system, (closing.start, given_velocities), (q, v), changes, closing.stated)
    followed = {n: float(x) for n, x, by in zip(tree.state_names[1], v, closing.stated, strict=True) if x and not by}
    return replace(closing.description, joints=joints, loops=loops, moved=moved, followed=followed)
