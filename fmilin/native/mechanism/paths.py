"""Forces along lengths: tendons with springs, and actuators with laws of their own.

Every tendon and every actuator has a path with a length L, a rate L' and a tension T that does the work -T L':

    L = sum c_k |d_k| + a' q,     L' = sum c_k W_k' (V_b - V_a) / |d_k| + b' v,

over rods d_k between points and over freedoms; rows of wrenches (not divided by a length) have a rate alone. The
generalized force is that of rows with the sizes s_k = c_k F / |d_k|, and b F on freedoms, where F = -T pushes: it
lengthens the path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.native.mechanism.description import MechanismDescription
from fmilin.native.mechanism.elements import Actuator, Tendon
from fmilin.native.mechanism.markers import MarkerMotion, Markers
from fmilin.native.mechanism.rows import FixedRows, RowMotion, Rows
from fmilin.native.mechanism.screws import Array, limited, root
from fmilin.native.mechanism.tree import Tree

__all__ = ["FixedPaths", "PathColumns", "PathMotion", "Paths", "collect_paths"]

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True)
class PathMotion:
    """Lengths, rates and forces of all paths (p of them), and what they do."""

    L: Array  # of shape (..., p)
    L_rate: Array  # of shape (..., p)
    F: Array  # of shape (..., p)
    inverse: Array  # (..., k), 1 / |d| of the rows that are rods, 1 for others
    rod_rate: Array  # (..., k), W' (V_b - V_a) of the rows
    sizes: Array  # of shape (..., k)
    joints: Array  # (..., n), forces on freedoms
    driven: Array  # (..., n), of these what actuators do
    inside: Array  # (..., n), 0 where the force of the actuators on a freedom is at its limit
    by_L: Array  # (..., p), slopes of F
    by_rate: Array  # (..., p), slopes of F
    by_u: Array  # (..., p), slope of each F by the control or activation that drives it


@dataclass(frozen=True)
class PathColumns:
    """Derivatives by theta (..., p, n), v (..., p, n) and u (..., p, nu)."""

    L_q: Array  # (..., p, n), dL/dtheta
    J: Array  # (..., p, n), dL'/dv
    rate_q: Array  # (..., p, n), dL'/dtheta
    F_q: Array
    F_v: Array
    F_u: Array
    # s_q, s_v, s_u: (..., k, n or nu), of the sizes of the rows
    s_q: Array
    s_v: Array
    s_u: Array
    joints_q: Array  # of shape (..., n, n or nu)
    joints_v: Array  # of shape (..., n, n or nu)
    joints_u: Array  # of shape (..., n, n or nu)
    # driven_q, driven_v, driven_u: of these what actuators do
    driven_q: Array
    driven_v: Array
    driven_u: Array


@dataclass
class Paths:
    """Collects rows and factors: of tendons first, then of actuators, in their order."""

    tendons: tuple[Tendon, ...]
    actuators: tuple[Actuator, ...]
    rows: list[list[tuple[tuple[str, int], float]]]
    freedoms: list[list[tuple[int, float]]]
    inputs: list[int]
    limits: Floats

    @property
    def state_names(self) -> tuple[str, ...]:
        """Of the activations."""
        return tuple(f"{a.name}.act" for a in self.actuators if a.dynamics != "none")

    def finished(self, rows: FixedRows, tree: Tree, nu: int) -> FixedPaths | None:
        """Return the paths as arrays; None without any."""
        count = len(self.rows)
        if not count:
            return None
        every = sorted({place for path in self.rows for place, _ in path}, key=rows.position)
        number = {place: i for i, place in enumerate(every)}
        weights, J = np.zeros((count, len(every))), np.zeros((count, tree.n))
        for j, path in enumerate(self.rows):
            for place, weight in path:
                weights[j, number[place]] += weight
        for j, freedoms in enumerate(self.freedoms):
            for freedom, factor in freedoms:
                J[j, freedom] += factor
        screws = np.zeros(tree.n)
        screws[tree.screw_speeds] = 1.0
        coordinate = np.zeros(tree.n, dtype=np.intp)
        coordinate[tree.screw_speeds] = tree.screw_coordinates
        first = len(self.tendons)
        states = np.cumsum([0, *(a.dynamics != "none" for a in self.actuators)])
        column = [
            i if a.dynamics == "none" else nu + int(s)
            for a, i, s in zip(self.actuators, self.inputs, states[:-1], strict=True)
        ]
        is_rod = np.array([place[0] == "rods" for place in every], dtype=float)
        k, c = np.array([[t.stiffness, t.damping] for t in self.tendons]).reshape(first, 2).T
        return FixedPaths(
            first=first,
            rows=np.array([rows.position(place) for place in every], dtype=np.intp),
            is_rod=is_rod,
            rods=np.array([rows.position(p) - rows.sizes[0] if p[0] == "rods" else 0 for p in every], dtype=np.intp),
            weights=weights,
            J=J,
            slopes=J * screws,
            coordinate=coordinate,
            k=k,
            c=c,
            rest=np.array([t.rest for t in self.tendons]).reshape(first, 2),
            gain=np.array([a.gain for a in self.actuators]).reshape(count - first, 3),
            bias=np.array([a.bias for a in self.actuators]).reshape(count - first, 3),
            force=_limits([a.force_limits for a in self.actuators]),
            column=np.array(column, dtype=np.intp),
            control=_limits([a.control_limits for a in self.actuators]),
            inputs=np.array(self.inputs, dtype=np.intp),
            dynamic=np.array([i for i, a in enumerate(self.actuators) if a.dynamics != "none"], dtype=np.intp),
            decay=np.array([1 / a.time_constant if a.dynamics == "filter" else 0.0 for a in self.actuators]),
            rise=np.array([1 / a.time_constant if a.dynamics == "filter" else 1.0 for a in self.actuators]),
            limits=self.limits,
            nu=nu + len(self.state_names),
        )


@dataclass(frozen=True)
class FixedPaths:
    """Paths as constant arrays: ``first`` tendons, then actuators."""

    first: int
    # rows, rods: (k,), among all rows, and among rods
    rows: Ints
    is_rod: Floats  # shape (k,)
    rods: Ints
    weights: Floats  # shape (p, k)
    # J, slopes: (p, n), of L' by v, and of L by displacements of freedoms
    J: Floats
    slopes: Floats
    coordinate: Ints
    k: Floats
    c: Floats
    rest: Floats
    gain: Floats
    bias: Floats
    force: Floats  # shape (a, 2)
    column: Ints
    # control, force, limits: limits of controls, of forces, and of the forces of all actuators on a freedom
    control: Floats  # shape (a, 2)
    # inputs, column: (a,), the input of each actuator, and what drives it among (u, activations)
    inputs: Ints
    dynamic: Ints  # the actuators with activations
    decay: Floats
    rise: Floats
    limits: Floats  # shape (n, 2)
    nu: int  # number of all inputs

    @property
    def smooth(self) -> bool:
        """Whether no law has a kink."""
        free = [not np.isfinite(limits).any() for limits in (self.control, self.force, self.limits)]
        return all(free) and bool((self.rest[:, 0] == self.rest[:, 1]).all())

    # -- values --------------------------------------------------------------------------------------

    def motion(
        self, q: Array, v: Array, u: Array, moving: tuple[MarkerMotion, RowMotion, Array], rows: FixedRows
    ) -> PathMotion:
        """Return what q (..., n_q), v (..., n) and (u, activations) determine; V are the links' velocities.

        ``moving``: points, wrenches and velocities of the links.
        """
        now, wrenches, V = moving
        inverse, length, rate = self._of_rows(now, wrenches, V, rows)
        L = q[..., self.coordinate] @ self.slopes.T + length @ self.weights.T
        L_rate = v @ self.J.T + (rate * inverse) @ self.weights.T
        F, by_L, by_rate, by_u = self._laws(L, L_rate, u)
        driven = F[..., self.first :] @ self.J[self.first :]
        driven, inside = limited(driven, self.limits)
        return PathMotion(
            L=L,
            L_rate=L_rate,
            F=F,
            inverse=inverse,
            rod_rate=rate,
            sizes=(F @ self.weights) * inverse,
            joints=F[..., : self.first] @ self.J[: self.first] + driven,
            driven=driven,
            inside=inside,
            by_L=by_L,
            by_rate=by_rate,
            by_u=by_u,
        )

    def _of_rows(self, now: MarkerMotion, wrenches: RowMotion, V: Array, rows: FixedRows) -> tuple[Array, Array, Array]:
        """Return 1/|d| (1 for rows that are no rods), |d| (0 for these) and W' (V_b - V_a), each (..., k)."""
        rate = (wrenches.W[..., self.rows, :] * rows.relative(V, self.rows)).sum(axis=-1)
        if not self.is_rod.any():
            return np.ones(len(self.rows)), np.zeros(len(self.rows)), rate
        d = now.p[..., rows.rod_second[self.rods], :] - now.p[..., rows.rod_first[self.rods], :]
        length = root((d * d).sum(axis=-1) * self.is_rod + (1 - self.is_rod))
        return 1 / length, length * self.is_rod, rate

    def _laws(self, L: Array, L_rate: Array, u: Array) -> tuple[Array, Array, Array, Array]:
        """Return F and its slopes by L, L' and by what drives it, each (..., p)."""
        m = self.first
        slack, inside = limited(L[..., :m], self.rest)
        spring = -self.k * (L[..., :m] - slack) - self.c * L_rate[..., :m]
        by_L, by_rate = -self.k * (1 - inside * (self.rest[:, 0] < self.rest[:, 1])), -self.c
        drive, open_ = self._drives(u)
        stretch, rate = L[..., m:], L_rate[..., m:]
        gain = self.gain[:, 0] + self.gain[:, 1] * stretch + self.gain[:, 2] * rate
        bias = self.bias[:, 0] + self.bias[:, 1] * stretch + self.bias[:, 2] * rate
        force, within = limited(gain * drive + bias, self.force)
        slopes = (
            within * (self.gain[:, 1] * drive + self.bias[:, 1]),
            within * (self.gain[:, 2] * drive + self.bias[:, 2]),
            within * gain * open_,
        )
        none = np.zeros(m)
        parts = ((spring, force), (by_L, slopes[0]), (by_rate, slopes[1]), (none, slopes[2]))
        shape = L.shape[:-1]
        F, F_L, F_rate, F_u = (
            np.concatenate([np.broadcast_to(part, (*shape, part.shape[-1])) for part in pair], axis=-1)
            for pair in parts
        )
        return F, F_L, F_rate, F_u

    def _drives(self, u: Array) -> tuple[Array, Array]:
        """Return control or activation of each actuator, (..., a), and 0 where a control is beyond its limits."""
        control, inside = limited(u[..., self.inputs], self.control)
        if not len(self.dynamic):
            return control, inside
        own = np.ones(len(self.inputs))
        own[self.dynamic] = 0.0
        return control * own + u[..., self.column] * (1 - own), inside * own + (1 - own)

    def activation_rates(self, u: Array) -> Array:
        """Return a' of the activations, shape (..., s)."""
        control, _ = limited(u[..., self.inputs], self.control)
        rates = self.rise * control - self.decay * u[..., self.column]
        found: Array = rates[..., self.dynamic]
        return found

    def activation_columns(self, u: Array) -> Array:
        """Return their slopes by (u, activations), shape (..., s, nu)."""
        _, inside = limited(u[..., self.inputs], self.control)
        columns = np.zeros((*u.shape[:-1], len(self.dynamic), self.nu), dtype=u.dtype)
        for row, i in enumerate(self.dynamic):
            columns[..., row, self.inputs[i]] = self.rise[i] * inside[..., i]
            columns[..., row, self.column[i]] = -self.decay[i]
        return columns

    def energy(self, at: PathMotion) -> Array:
        """Return the energy in the springs of the tendons."""
        slack, _ = limited(at.L[..., : self.first], self.rest)
        stretch = at.L[..., : self.first] - slack
        return (self.k * stretch * stretch).sum(axis=-1) / 2

    def stretch(self, at: PathMotion) -> Array:
        """Return the tensions of the springs of all paths, shape (..., p): zero for actuators."""
        slack, _ = limited(at.L[..., : self.first], self.rest)
        springs = self.k * (at.L[..., : self.first] - slack)
        rest = np.zeros((*springs.shape[:-1], at.L.shape[-1] - self.first))
        return np.concatenate((springs, rest), axis=-1)

    def length_columns(self, at: PathMotion, G: Array) -> Array:
        """Return dL/dtheta (..., p, n); G of all rows, (..., R, n)."""
        rods: Array = (self.weights * self.is_rod) @ (G[..., self.rows, :] * at.inverse[..., None])
        return rods + self.slopes

    # -- derivatives ---------------------------------------------------------------------------------

    def columns(self, at: PathMotion, G: Array, rate_q: Array) -> PathColumns:
        """Return the derivatives, from G and from that of the rates by theta, of all rows, each (..., R, n)."""
        every, G, rate_q, inverse = G, G[..., self.rows, :], rate_q[..., self.rows, :], at.inverse[..., None]
        unit = G * inverse
        bent = (self.is_rod * at.rod_rate * at.inverse**3)[..., None] * G
        J = self.weights @ unit + self.J
        L_q = self.length_columns(at, every)
        L_rate_q = self.weights @ (rate_q * inverse - bent)
        F_q = at.by_L[..., None] * L_q + at.by_rate[..., None] * L_rate_q
        F_v = at.by_rate[..., None] * J
        F_u = np.zeros((*at.F.shape, self.nu), dtype=at.F.dtype)
        for i, column in enumerate(self.column):
            F_u[..., self.first + i, column] = at.by_u[..., self.first + i]
        weights, m, inside = self.weights.T, self.first, at.inside[..., None]
        shrink = (self.is_rod * at.sizes * at.inverse**2)[..., None]
        driven = [inside * (self.J[m:].T @ f[..., m:, :]) for f in (F_q, F_v, F_u)]
        on_joints = [self.J[:m].T @ f[..., :m, :] + own for f, own in zip((F_q, F_v, F_u), driven, strict=True)]
        return PathColumns(
            L_q=L_q,
            J=J,
            rate_q=L_rate_q,
            F_q=F_q,
            F_v=F_v,
            F_u=F_u,
            s_q=(weights @ F_q) * inverse - shrink * G,
            s_v=(weights @ F_v) * inverse,
            s_u=(weights @ F_u) * inverse,
            joints_q=on_joints[0],
            joints_v=on_joints[1],
            joints_u=on_joints[2],
            driven_q=driven[0],
            driven_v=driven[1],
            driven_u=driven[2],
        )


def collect_paths(description: MechanismDescription, tree: Tree, markers: Markers, rows: Rows) -> Paths:
    """Add the rows of tendons and actuators."""
    tendons = description.tendons
    actuators = {i: a for i, a in enumerate(description.inputs) if isinstance(a, Actuator)}
    of_rows = [_along_points(t, markers, rows) for t in tendons]
    of_freedoms = [[(tree.speeds_of[j][0], f) for j, f in zip(t.joints, t.factors, strict=True)] for t in tendons]
    number = {t.name: i for i, t in enumerate(tendons)}
    for a in actuators.values():
        if a.tendon:
            gear, j = a.gear[0], number[a.tendon]
            of_rows.append([(row, gear * weight) for row, weight in of_rows[j]])
            of_freedoms.append([(freedom, gear * factor) for freedom, factor in of_freedoms[j]])
        elif a.joint:
            of_rows.append([])
            of_freedoms.append(list(zip(tree.speeds_of[a.joint], a.gear, strict=False)))
        else:
            of_rows.append(_wrench(a, description.ground, markers, rows))
            of_freedoms.append([])
    limits = np.tile([-np.inf, np.inf], (tree.n, 1))
    for joint in description.joints:
        if joint.drive_limits:
            limits[list(tree.speeds_of[joint.name])] = joint.drive_limits
    return Paths(tuple(tendons), tuple(actuators.values()), of_rows, of_freedoms, list(actuators), limits)


def _along_points(tendon: Tendon, markers: Markers, rows: Rows) -> list[tuple[tuple[str, int], float]]:
    found = []
    stretches = zip(tendon.bodies, tendon.points, tendon.bodies[1:], tendon.points[1:], strict=False)
    for (first, p, second, q), weight in zip(stretches, tendon.weights, strict=True):
        if weight and (first, p) != (second, q):
            points = markers.point(first, p), markers.point(second, q)
            found.append((rows.rod((first, second), points), weight))
    return found


def _wrench(actuator: Actuator, ground: str, markers: Markers, rows: Rows) -> list[tuple[tuple[str, int], float]]:
    """Return lines and couples along the axes of the actuator's frame."""
    bodies, R = (ground, actuator.body), actuator.placement.R
    point = markers.point(actuator.body, actuator.placement.position)
    found = []
    for i, factor in enumerate(actuator.gear):
        if factor:
            direction = markers.direction(actuator.body, tuple(R[:, i % 3].tolist()))
            row = rows.line(bodies, point, direction) if i < 3 else rows.couple(bodies, direction)
            found.append((row, factor))
    return found


def _limits(given: list[tuple[float, ...]]) -> Floats:
    return np.array([limits or (-np.inf, np.inf) for limits in given]).reshape(len(given), 2)
