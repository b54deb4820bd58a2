"""Closing the loops of a mechanism from a rough guess, with a report when they cannot close.

Gauss-Newton with the pseudo-inverse on the open tree, dq = -D (G D)^+ g(q), damped while the gaps grow and with the
damping of Levenberg and Marquardt where that does not help: the nearest posture that closes the loops (Spencer
(thesis), eqs. 3.10 and 3.11, on positions alone). Balls turn by angles, so that quaternions stay of unit length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from fmilin.errors import ConstraintError, UnknownNameError
from fmilin.models.mechanism.description import MechanismDescription
from fmilin.models.mechanism.kinematics import coordinate_columns
from fmilin.models.mechanism.parts import Loop
from fmilin.models.mechanism.placement import Placement
from fmilin.models.mechanism.system import System

__all__ = ["Assembly", "Gap", "assemble"]

Floats = NDArray[np.float64]

CLOSED = 1e-9
"""Gaps below this, in sizes of the mechanism or rad, count as closed."""
REDUNDANT = 1e-10
"""Singular values of G below this, relative to the largest, belong to redundant constraints."""
ITERATIONS = 60
STARTS = 24
"""Further starts around the guess, where the first one leads nowhere."""


@dataclass(frozen=True)
class Gap:
    """How far one loop is open.

    Parameters
    ----------
    loop : str
        The loop, or the wheel that does not touch its plane.
    distance : float
        In m.
    angle : float
        In rad: between axes that should coincide.
    """

    loop: str
    distance: float
    angle: float

    def __str__(self) -> str:
        return " and ".join(
            [f"{self.distance:.4g} m"] * (self.distance > 0 or not self.angle)
            + [f"{self.angle:.4g} rad"] * (self.angle > 0)
        )


@dataclass(frozen=True)
class Assembly:
    """A mechanism with closed loops.

    Parameters
    ----------
    description : MechanismDescription
        With the positions and velocities that were found as start values.
    before, gaps : tuple of Gap
        At the first guess, and now.
    moved : float
        Largest change of a joint, in rad or in sizes of the mechanism.
    iterations : int
    """

    description: MechanismDescription
    before: tuple[Gap, ...]
    gaps: tuple[Gap, ...]
    moved: float
    iterations: int


def assemble(description: MechanismDescription, held: Sequence[str] | None = None) -> Assembly:
    """Close the loops of a mechanism, the positions of its joints being a first guess.

    Parameters
    ----------
    description : MechanismDescription
    held : sequence of str, optional
        States that keep their start values; the recommended independent ones when left out.

    Returns
    -------
    Assembly
        Nearest to the guess: angles count in rad, distances in sizes of the mechanism.

    Raises
    ------
    ConstraintError
        When a loop stays open; with each loop's gap in m (or rad) as ``residuals``.
    UnknownNameError
        When ``held`` names no state.

    Examples
    --------
    >>> from fmilin.models.mechanism import Body, Joint, Loop, Placement
    >>> rods = [Body(name, 1.0, (0.5, 0, 0), (0, 0.1, 0.1)) for name in ("left", "right")]
    >>> joints = [Joint("a", "revolute", "ground", "left", position=1.2),
    ...           Joint("b", "revolute", "left", "right", Placement((1, 0, 0)), position=-2.0)]
    >>> loop = Loop("pin", "point_on_line", "ground", "right", Placement((1, 0, 0)), Placement((1, 0, 0)))
    >>> triangle = assemble(MechanismDescription("triangle", rods, joints, [loop]))
    >>> [round(float(j.position[0]), 6) for j in triangle.description.joints]  # 60 and -120 degrees
    [1.047198, -2.094395]
    """
    return _Assembler(description, _held_names(description, held)).closed()


def _held_names(description: MechanismDescription, held: Sequence[str] | None) -> tuple[str, ...]:
    if held is None:
        return tuple(description.independent)
    known = [name for joint in description.joints for name in sum(joint.state_names, ())]
    for name in held:
        if name not in known:
            raise UnknownNameError.among(name, known, f"a state of the mechanism '{description.name}'")
    return tuple(held)


class _Assembler:
    """Positions q (n_q) of the tree, displacements theta (n), gaps g (m_q)."""

    def __init__(self, description: MechanismDescription, held: tuple[str, ...]) -> None:
        self.description, self.held = description, held
        self.system = system = System(description)
        tree = system.tree
        joints = system.description.joints
        self.q0 = np.array([q for j in joints for q in j.position])
        self.v0 = np.array([v for j in joints for v in j.velocity])
        self.size = _size(system.description)
        slides = np.linalg.norm(tree.axes[:, :3], axis=1) == 0
        self.scales = np.where(slides, self.size, 1.0)
        self.free_q, self.free_v = self._free(held)
        powers = {"lines": 1, "rods": 2, "hinges": 0}  # of a length: rods compare squares, hinges measure cosines
        self.units = np.array([self.size ** powers[bond.row[0]] for bond in system.bonds[: system.m_q]])
        self.iterations = 0

    def _free(self, held: tuple[str, ...]) -> tuple[Floats, Floats]:
        """Return which displacements and which speeds may change, 1 or 0."""
        tree = self.system.tree
        positions, speeds = tree.state_names
        free_q, free_v = np.ones(tree.n), np.ones(tree.n)
        for name in held:
            if name in speeds:
                free_v[speeds.index(name)] = 0.0
            elif name in positions:
                for joint, coordinates in tree.coordinates_of.items():
                    if positions.index(name) in coordinates:
                        self._hold(free_q, positions.index(name), coordinates, tree.speeds_of[joint])
        return free_q, free_v

    @staticmethod
    def _hold(free: Floats, at: int, coordinates: range, speeds: range) -> None:
        """Hold the freedom of a coordinate; one of a quaternion holds the whole ball."""
        i = coordinates.index(at)
        ball = len(coordinates) - len(speeds)
        free[[speeds[i]] if not ball or i < len(speeds) - 3 else list(speeds[-3:])] = 0.0

    # -- positions ---------------------------------------------------------------------------------

    def closed(self) -> Assembly:
        """Close the loops, then make the velocities fit."""
        q0 = self._normalized(self.q0)
        before = self._gaps(q0)
        q = self._nearest(q0)
        self._require_closed(q0, q)
        v = self._velocities(q)
        return Assembly(
            description=self._with_start(q, v),
            before=before,
            gaps=self._gaps(q),
            moved=float(np.max(np.abs(self._displacement(q0, q)), initial=0.0)),
            iterations=self.iterations,
        )

    def _nearest(self, q0: Floats) -> Floats:
        """Return the closed posture nearest to the guess, or else the one with the smallest gap."""
        first = self._descended(q0)
        if self._is_closed(first):
            return first
        random = np.random.default_rng(1801)
        found = [first]
        for k in range(STARTS):
            reach = (0.05, 0.3, 1.0, 3.0)[k % 4]
            kick = reach * random.uniform(-1, 1, len(self.free_q)) * self.scales * self.free_q
            found.append(self._descended(self._moved(q0, kick)))
        good = [q for q in found if self._is_closed(q)]
        if good:
            return min(good, key=lambda q: float(np.linalg.norm(self._displacement(q0, q))))
        return min(found, key=lambda q: float(np.linalg.norm(self._g(q))))

    def _descended(self, q: Floats) -> Floats:
        """Return where damped Gauss-Newton ends."""
        D = self.scales * self.free_q
        g, damping = self._g(q), 0.0
        for _ in range(ITERATIONS):
            self.iterations += 1
            GD = self._gradient(q) * D
            step = self._step(GD, g, damping)
            candidate = self._moved(q, D * step)
            value = self._g(candidate)
            if np.linalg.norm(value) < np.linalg.norm(g):
                q, g, damping = candidate, value, damping / 10 if damping > 1e-6 else 0.0
            elif np.linalg.norm(g) < 1e-3 * CLOSED or damping > 1e6:
                break
            else:
                damping = max(10 * damping, 1e-4)
        return q

    @staticmethod
    def _step(GD: Floats, g: Floats, damping: float) -> Floats:
        if not damping:
            return np.asarray(-linalg.pinv(GD, rtol=REDUNDANT) @ g)
        size = np.linalg.norm(GD) ** 2 or 1.0
        return np.asarray(-GD.T @ np.linalg.solve(GD @ GD.T + damping * size * np.eye(len(g)), g))

    def _moved(self, q: Floats, theta: Floats) -> Floats:
        """Return the coordinates after a displacement; large turns of a ball are taken as they come."""
        E, _ = coordinate_columns(self.system.tree, q, np.zeros(len(theta)))
        return self._normalized(q + E @ theta)

    def _normalized(self, q: Floats) -> Floats:
        balls = self.system.tree.ball_coordinates
        if len(balls):
            q = q.copy()
            q[balls] /= np.linalg.norm(q[balls], axis=1, keepdims=True)
        return q

    def _displacement(self, q0: Floats, q: Floats) -> Floats:
        """Return how far joints have moved, in rad or sizes of the mechanism, shape (n_q,)."""
        tree = self.system.tree
        scales = np.ones(tree.n_q)
        scales[tree.screw_coordinates] = self.scales[tree.screw_speeds]
        return (q - q0) / scales

    def _g(self, q: Floats) -> Floats:
        """Return the gaps, distances in sizes of the mechanism, shape (m_q,)."""
        return np.asarray(self._values(q) / self.units)

    def _values(self, q: Floats) -> Floats:
        p, e = self.system.markers.places(self._frames(q))
        return np.asarray(self.system.g(p, e))

    def _frames(self, q: Floats) -> Floats:
        from fmilin.models.mechanism.kinematics import positions

        return np.asarray(positions(self.system.tree, q))

    def _gradient(self, q: Floats) -> Floats:
        state = self._state(q, np.zeros(self.system.tree.n))
        return np.asarray(state.G[: self.system.m_q] / self.units[:, None])

    def _state(self, q: Floats, v: Floats):  # type: ignore[no-untyped-def]
        return self.system.state(q, v, np.zeros(len(self.description.inputs)))

    def _is_closed(self, q: Floats) -> bool:
        return bool(np.max(np.abs(self._g(q)), initial=0.0) <= CLOSED) and not self._turned_over(q)

    # -- reports -----------------------------------------------------------------------------------

    def _gaps(self, q: Floats) -> tuple[Gap, ...]:
        """Return the gap of each loop and wheel."""
        values = self._values(q)
        found: dict[str, tuple[float, float]] = {}
        rods = {loop.name: loop.length for loop in self.description.loops if loop.type == "rod"}
        for value, bond in zip(values, self.system.bonds, strict=False):
            name = bond.of.removesuffix(".end")
            distance, angle = found.get(name, (0.0, 0.0))
            if bond.row[0] == "hinges":
                angle = max(angle, abs(float(np.arcsin(np.clip(value, -1, 1)))))
            else:
                length = rods.get(name)
                apart = value if length is None else np.sqrt(max(2 * value + length**2, 0.0)) - length
                distance = float(np.hypot(distance, apart))
            found[name] = (distance, angle)
        over = self._turned_over(q)
        return tuple(Gap(name, d, np.pi if name in over else a) for name, (d, a) in found.items())

    def _turned_over(self, q: Floats) -> tuple[str, ...]:
        """Return the loops whose axes are opposite to each other: perpendicular to all that they should be."""
        X = self._frames(q)
        return tuple(
            loop.name.removesuffix(".end")
            for loop in self.system.description.loops
            if any(a @ b < 0 for a, b in self._axes(loop, X))
        )

    def _axes(self, loop: Loop, X: Floats) -> list[tuple[Floats, Floats]]:
        """Return pairs of directions that must not be opposite to each other."""
        kept = {"revolute": 1, "cylindrical": 1, "planar": 1, "prismatic": 2, "fixed": 2}.get(loop.type, 0)
        first, second = (
            self._rotation(X, body, placement)
            for body, placement in ((loop.first, loop.first_placement), (loop.second, loop.second_placement))
        )
        return [(first @ np.array(e), second @ np.array(e)) for e in (loop.axis, loop.second_axis)[:kept] if e]

    def _rotation(self, X: Floats, body: str, placement: Placement) -> Floats:
        link, offset = self.system.tree.place[body]
        return np.asarray(X[link, :3, :3] @ offset[:3, :3] @ placement.R)

    def _require_closed(self, q0: Floats, q: Floats) -> None:
        if self._is_closed(q):
            return
        gaps = self._gaps(q)
        open_ = [gap for gap in gaps if max(gap.distance / self.size, gap.angle) > CLOSED]
        first = {gap.loop: gap for gap in self._gaps(q0)}
        told = "; ".join(f"'{gap.loop}' stays open by {gap} (first guess: {first[gap.loop]})" for gap in open_[:4])
        holding = [name for name in self.held if name in self.system.tree.state_names[0]]
        verb = "keeps its value" if len(holding) == 1 else "keep their values"
        kept = f" while {', '.join(repr(n) for n in holding)} {verb}" if holding else ""
        best = ", ".join(self._told(q, holding))
        word = "loop" if len(open_) == 1 else "loops"
        raise ConstraintError(
            f"The {word} of the mechanism '{self.description.name}' cannot be closed{kept}: {told}. The best posture "
            f"that was found is {best}. Check lengths and placements, or give other first positions of the joints"
            + (", or hold others." if holding else "."),
            residuals={gap.loop: max(gap.distance, gap.angle) for gap in open_},
        )

    def _told(self, q: Floats, holding: Sequence[str]) -> list[str]:
        names = self.system.tree.state_names[0]
        told = [f"{name} = {value:.4g}" for name, value in zip(names, q, strict=True) if name not in holding]
        return [*told[:8], "..."] if len(told) > 8 else told

    # -- velocities --------------------------------------------------------------------------------

    def _velocities(self, q: Floats) -> Floats:
        """Return the speeds nearest to the given ones that keep the loops closed: v - D (G D)^+ G v."""
        v: Floats = self.v0
        if not len(self.system.bonds) or not v.any():
            return v
        G = np.asarray(self._state(q, v).G)
        D = self.scales * self.free_v
        rate = G @ v
        v = np.asarray(v - D * (linalg.pinv(G * D, rtol=REDUNDANT) @ rate))
        left = G @ v
        bad = np.abs(left) > 1e-9 * (np.abs(G) @ np.abs(self.v0) + 1e-300)
        if bad.any():
            names = dict.fromkeys(
                b.of.removesuffix(".end") for b, wrong in zip(self.system.bonds, bad, strict=True) if wrong
            )
            raise ConstraintError(
                f"No velocities of the mechanism '{self.description.name}' keep "
                + ", ".join(f"'{n}'" for n in names)
                + " closed while the held ones keep their values: hold fewer, or give velocities that fit each other."
            )
        return v

    def _with_start(self, q: Floats, v: Floats) -> MechanismDescription:
        """Return the description with new start values where they differ from the given ones."""
        tree = self.system.tree
        joints = []
        for joint in self.description.joints:
            q_j, v_j = q[list(tree.coordinates_of[joint.name])], v[list(tree.speeds_of[joint.name])]
            same = np.allclose(q_j, joint.position, rtol=1e-14, atol=1e-15 * self.size) and np.array_equal(
                v_j, joint.velocity
            )
            joints.append(joint if same else replace(joint, position=tuple(q_j.tolist()), velocity=tuple(v_j.tolist())))
        return replace(self.description, joints=joints)


def _size(description: MechanismDescription) -> float:
    """Return a length that is typical of the mechanism, in m."""
    placements = [p for j in description.joints for p in (j.placement, j.child_placement)]
    placements += [p for loop in description.loops for p in (loop.first_placement, loop.second_placement)]
    lengths = [float(np.linalg.norm(p.position)) for p in placements] + [loop.length for loop in description.loops]
    lengths += [wheel.radius + wheel.tube for wheel in description.wheels]
    return max(lengths, default=0.0) or 1.0
