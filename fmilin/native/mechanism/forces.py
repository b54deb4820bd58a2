"""Springs, dampers and inputs: the size s_r of the wrench along each row, forces on joints, and their derivatives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.native.mechanism.description import MechanismDescription
from fmilin.native.mechanism.elements import Actuator, Force, JointForce, LineForce, Torque
from fmilin.native.mechanism.markers import MarkerMotion, Markers
from fmilin.native.mechanism.rows import FixedRows, Rows
from fmilin.native.mechanism.screws import Array, root
from fmilin.native.mechanism.tree import Tree

__all__ = ["FixedForces", "ForceColumns", "Forces", "JointForces", "collect_forces"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class JointForces:
    """-k (q - q_0) - d v + B u on each freedom."""

    coordinate: NDArray[np.intp]  # (n,), position coordinate of each freedom; any for balls, which have no stiffness
    k: Floats  # shape (n,)
    rest: Floats  # shape (n,)
    d: Floats  # shape (n,)
    B: Floats  # shape (n, nu)

    def __call__(self, q: Array, v: Array, u: Array) -> Array:
        """Return the generalized forces, shape (..., n)."""
        return -self.k * (q[..., self.coordinate] - self.rest) - self.d * v + u @ self.B.T


@dataclass(frozen=True)
class Forces:
    """Which rows push: springs and forces along the line of two points, and inputs on other rows."""

    springs: list[tuple[str, int]]
    stiffness: list[float]
    lengths: list[float]
    damping: list[float]
    spring_inputs: dict[int, int]
    row_inputs: dict[tuple[str, int], int]
    constant: dict[tuple[str, int], float]
    joints: JointForces

    def finished(self, rows: FixedRows) -> FixedForces:
        """Return the forces as arrays."""
        nu = self.joints.B.shape[1]
        B_L = np.zeros((len(self.springs), nu))
        for spring, i in self.spring_inputs.items():
            B_L[spring, i] = 1.0
        B_r = np.zeros((len(rows), nu))
        for place, i in self.row_inputs.items():
            B_r[rows.position(place), i] = 1.0
        s_0 = np.zeros(len(rows))
        for place, size in self.constant.items():
            s_0[rows.position(place)] = size
        k, c, L_0 = np.array(self.stiffness), np.array(self.damping), np.array(self.lengths)
        return FixedForces(
            rows=np.array([rows.position(s) for s in self.springs], dtype=np.intp),
            k=k,
            L_0=L_0,
            c=c,
            B_L=B_L,
            B_r=B_r,
            linear=((L_0 == 0) & (c == 0) & ~B_L.any(axis=1)).astype(float),
            count=len(rows),
            joints=self.joints,
            s_0=s_0 if s_0.any() else None,
        )


@dataclass(frozen=True)
class ForceColumns:
    """s_r, shape (..., R), and its derivatives by theta, v, u: shapes (..., R, n), (..., R, n), (..., R, nu)."""

    s: Array
    q: Array
    v: Array
    u: Array

    def with_rows(self, rows: NDArray[np.intp], further: tuple[Array, Array, Array]) -> ForceColumns:
        """Return the same with what others add to some rows."""
        found = []
        for mine, more in zip((self.q, self.v, self.u), further, strict=True):
            shape = np.broadcast_shapes(mine.shape[:-2], more.shape[:-2])
            both = np.broadcast_to(mine, (*shape, *mine.shape[-2:])).astype(np.result_type(mine, more))
            both[..., rows, :] += more
            found.append(both)
        return ForceColumns(self.s, *found)


@dataclass(frozen=True)
class FixedForces:
    """Springs and inputs as constant arrays."""

    rows: NDArray[np.intp]  # (ns,), the rods that push
    k: Floats  # shape (ns,)
    L_0: Floats  # shape (ns,)
    c: Floats  # shape (ns,)
    B_L: Floats  # (ns, nu), which input pushes along a rod
    B_r: Floats  # (R, nu), which input is the size of another row
    linear: Floats  # (ns,), 1 where the force is -k times the vector between the points, which needs no direction
    count: int
    joints: JointForces
    s_0: Floats | None = None  # (R,), constant sizes

    def sizes(self, d: Array, L_rate: Array, u: Array) -> Array:
        """Return s_r of all rows, shape (..., R): wrenches s_r W_r on b and the opposite ones on a.

        Along a rod W has the length L of d = p_b - p_a, so that s = (-k (L - L_0) - c L' + u) / L.

        Shapes: d (..., ns, 3), u (..., nu). ``L_rate`` (..., ns): W' (V_b - V_a) of the rods, L L'.
        """
        s = u @ self.B_r.T
        s = s if self.s_0 is None else s + self.s_0
        if not len(self.rows):
            return s
        L = self._lengths(d)
        push = self.k * self.L_0 - self.c * L_rate / L + u @ self.B_L.T
        s = np.broadcast_to(s, (*push.shape[:-1], self.count)).astype(push.dtype)
        s[..., self.rows] = -self.k + push / L
        return s

    def columns(self, d: Array, L_rate: Array, u: Array, along: tuple[Array, Array]) -> ForceColumns:
        """Return s and its derivatives; ``along`` are G of the rods and the derivative of L L', both (..., ns, n)."""
        s = self.sizes(d, L_rate, u)
        G, rate_q = along
        n, nu = G.shape[-1], self.B_r.shape[1]
        q, v = np.zeros((*s.shape, n), dtype=s.dtype), np.zeros((*s.shape, n), dtype=s.dtype)
        s_u = np.broadcast_to(self.B_r, (*s.shape, nu)).astype(s.dtype)
        if len(self.rows):
            L = self._lengths(d)
            push = self.k * self.L_0 + u @ self.B_L.T
            by_L = ((-push + 2 * self.c * L_rate / L) / L**3 * (1 - self.linear))[..., None]  # ds/dL over L
            by_rate = (-self.c / L**2)[..., None]
            q[..., self.rows, :] = by_L * G + by_rate * rate_q
            v[..., self.rows, :] = by_rate * G
            s_u[..., self.rows, :] = self.B_L / L[..., None]
        return ForceColumns(s, q, v, s_u)

    def energy(self, d: Array) -> Array:
        """Return the energy in the springs between points."""
        stretch = np.sqrt((d * d).sum(axis=-1)) - self.L_0
        return (self.k * stretch * stretch).sum(axis=-1) / 2

    def lifted(self, rows: FixedRows, now: MarkerMotion) -> Array:
        """Return the work of the constant forces, which act along directions of the ground."""
        assert self.s_0 is not None  # noqa: S101 - whoever asks has looked
        lines = np.flatnonzero(self.s_0)
        p, e = now.p[..., rows.line_points[lines], :], now.e[..., rows.line_directions[lines], :]
        return (self.s_0[lines] * (p * e).sum(axis=-1)).sum(axis=-1)

    def _lengths(self, d: Array) -> Array:
        return root((d * d).sum(axis=-1) * (1 - self.linear) + self.linear)


def collect_forces(description: MechanismDescription, tree: Tree, markers: Markers, rows: Rows) -> Forces:
    """Add the rows of springs and inputs."""
    inputs = description.inputs
    activations = sum(isinstance(a, Actuator) and a.dynamics != "none" for a in inputs)
    springs = [_rod(s, markers, rows) for s in description.springs]
    k = [s.stiffness for s in description.springs]
    L_0 = [s.length for s in description.springs]
    c = [s.damping for s in description.springs]
    spring_inputs, row_inputs = {}, {}
    B = np.zeros((tree.n, len(inputs) + activations))
    for i, force in enumerate(inputs):
        if isinstance(force, JointForce):
            B[tree.speeds_of[force.joint][force.coordinate], i] = 1.0
        elif isinstance(force, LineForce):
            spring_inputs[len(springs)] = i
            springs.append(_rod(force, markers, rows))
            k, L_0, c = [*k, 0.0], [*L_0, 0.0], [*c, 0.0]
        elif not isinstance(force, Actuator):  # those have paths
            row_inputs[_row(force, description.ground, markers, rows)] = i
    g = np.array(description.gravity)
    size = float(np.linalg.norm(g))
    constant: dict[tuple[str, int], float] = {}
    for body in description.bodies if size else ():
        if body.gravity_compensation and body.mass:
            up = markers.direction(description.ground, tuple((-g / size).tolist()))
            row = rows.line((description.ground, body.name), markers.point(body.name, body.center), up)
            constant[row] = body.gravity_compensation * body.mass * size
    return Forces(springs, k, L_0, c, spring_inputs, row_inputs, constant, _joint_forces(description, tree, B))


def _rod(part: object, markers: Markers, rows: Rows) -> tuple[str, int]:
    first, second = part.first, part.second  # type: ignore[attr-defined]
    p = markers.point(first, part.first_point), markers.point(second, part.second_point)  # type: ignore[attr-defined]
    return rows.rod((first, second), p)


def _row(force: Force | Torque, ground: str, markers: Markers, rows: Rows) -> tuple[str, int]:
    direction = markers.direction(force.body if force.frame == "body" else ground, force.direction)
    if isinstance(force, Torque):
        return rows.couple((ground, force.body), direction)
    return rows.line((ground, force.body), markers.point(force.body, force.point), direction)


def _joint_forces(description: MechanismDescription, tree: Tree, B: Floats) -> JointForces:
    k, rest, d = (np.zeros(tree.n) for _ in range(3))
    coordinate = np.zeros(tree.n, dtype=np.intp)
    coordinate[tree.screw_speeds] = tree.screw_coordinates
    for joint in description.joints:
        speeds = list(tree.speeds_of[joint.name])
        k[speeds], rest[speeds], d[speeds] = joint.stiffness, joint.rest, joint.damping
    return JointForces(coordinate, k, rest, d, B)
