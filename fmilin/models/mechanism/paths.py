"""Forces along lengths: tendons with springs, bushings, and actuators with laws of their own.

Every path has a length L, a rate L' and a tension T that does the work -T L', over rods d_k and degrees of freedom:

    L = sum c_k |d_k| + a' q,     L' = sum c_k W_k' (V_b - V_a) / |d_k| + b' v.

Rows of wrenches (not divided by a length) have a rate alone, those of bushings the value e' (p_b - p_a) or e_b' e_a.
The generalized force is that of rows with the sizes s_k = c_k F / |d_k|, and b F on degrees of freedom; F = -T pushes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.models.mechanism.fixed_rows import FixedRows, Key, RowCollector, RowMotion
from fmilin.models.mechanism.forces import SpringPath, spring_paths
from fmilin.models.mechanism.markers import MarkerMotion, Markers
from fmilin.models.mechanism.mechanism_description import MechanismDescription
from fmilin.models.mechanism.mechanism_elements import Actuator, Tendon
from fmilin.models.mechanism.tree import Array, Partials, Tree, clip_to_limits, root

LAW = ("gain", "bias")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PathMotion:
    """Lengths, rates and forces of all paths (p of them), and what they do."""

    L: Array  # of shape (..., p)
    L_rate: Array  # of shape (..., p)
    F: Array  # of shape (..., p)
    inverse: Array  # (..., k), 1 / |d| of the rows that are rods, 1 for others
    rod_rate: Array  # (..., k), W' (V_b - V_a) of the rows
    sizes: Array  # of shape (..., k)
    joints: Array  # (..., n), forces on degrees of freedom
    driven: Array  # (..., n), of these what actuators do
    inside: Array  # (..., n), 0 where the force of the actuators on a freedom is at its limit
    by_L: Array  # (..., p), derivatives of F
    by_rate: Array  # (..., p), derivatives of F
    by_u: Array  # (..., p), slope of each F by the control or activation that drives it


@dataclass(frozen=True)
class PathColumns:
    """Derivatives of lengths, rates and forces of all paths, and of what they do."""

    L_q: Array  # (..., p, n), dL/dtheta
    J: Array  # (..., p, n), dL'/dv
    rate_q: Array  # (..., p, n), dL'/dtheta
    F: Partials  # of the forces
    s: Partials  # of the sizes of the k rows
    joints: Partials  # of the forces on degrees of freedom
    driven: Partials  # of these what actuators do


class Paths:
    """Collects rows and factors: of tendons first, then of actuators, in their order."""

    def __init__(self, description: MechanismDescription, tree: Tree, markers: Markers, rows: RowCollector) -> None:
        self.tendons, self.tree = description.tendons, tree
        actuators = {i: a for i, a in enumerate(description.inputs) if isinstance(a, Actuator)}
        self.inputs, self.actuators = list(actuators), list(actuators.values())
        self.rows = [_along_points(t, markers, rows) for t in self.tendons]
        self.springs: list[SpringPath] = []
        self.bases: dict[Key, int] = {}  # points from which lines of bushings measure
        for bushing in description.bushings:
            springs, bases = spring_paths(bushing, markers, rows)
            self.springs += springs
            self.bases |= bases
        self.freedoms = [
            [(tree.speeds_of[j][0], f) for j, f in zip(t.joints, t.factors, strict=True)] for t in self.tendons
        ]
        self.rows += [spring.rows for spring in self.springs]
        self.freedoms += [[] for _ in self.springs]
        number = {t.name: i for i, t in enumerate(self.tendons)}
        for a in self.actuators:
            if a.tendon:
                gear, j = a.gear[0], number[a.tendon]
                self.rows.append([(row, gear * weight) for row, weight in self.rows[j]])
                self.freedoms.append([(freedom, gear * factor) for freedom, factor in self.freedoms[j]])
            elif a.joint:
                self.rows.append([])
                self.freedoms.append(list(zip(tree.speeds_of[a.joint], a.gear, strict=False)))
            else:
                self.rows.append(_wrench(a, description.ground, markers, rows))
                self.freedoms.append([])
        self.limits = np.tile([-np.inf, np.inf], (tree.n, 1))  # of the forces of all actuators on a freedom
        for joint in description.joints:
            if joint.drive_limits:
                self.limits[list(tree.speeds_of[joint.name])] = joint.drive_limits

    @property
    def state_names(self) -> tuple[str, ...]:
        """Of the activations."""
        return tuple(f"{a.name}.act" for a in self.actuators if a.dynamics != "none")


class RowValues:
    """The values e' (p_b - p_a) and e_b' e_a of the rows of bushings, k of all rows; zero for others."""

    def __init__(self, keys: list[Key], bases: Mapping[Key, int], rows: FixedRows) -> None:
        lines, hinges = [key in bases for key in keys], [kind == "hinges" for kind, _ in keys]
        self.is_line, self.is_hinge = np.array(lines, dtype=float), np.array(hinges, dtype=float)
        self.has_value = self.is_line + self.is_hinge
        line = np.array(
            [number if is_member else 0 for (_, number), is_member in zip(keys, lines, strict=True)], dtype=np.intp
        )
        hinge = np.array(
            [number if is_member else 0 for (_, number), is_member in zip(keys, hinges, strict=True)], dtype=np.intp
        )
        self.points, self.directions = rows.line_points[line], rows.line_directions[line]
        self.bases = np.array([bases.get(key, 0) for key in keys], dtype=np.intp)
        self.first, self.second = rows.hinge_first[hinge], rows.hinge_second[hinge]

    def __call__(self, now: MarkerMotion) -> Array:
        """Return the values, shape (..., k)."""
        apart = now.p[..., self.points, :] - now.p[..., self.bases, :]
        along = (now.e[..., self.directions, :] * apart).sum(axis=-1)
        cosines = (now.e[..., self.first, :] * now.e[..., self.second, :]).sum(axis=-1)
        return along * self.is_line + cosines * self.is_hinge


class FixedPaths:
    """Paths as constant arrays: p of them, m tendons and springs of bushings, then a actuators; k rows, n speeds."""

    def __init__(self, paths: Paths, rows: FixedRows, nu: int) -> None:
        tree, tendons, actuators = paths.tree, paths.tendons, paths.actuators
        passive: list[Tendon | SpringPath] = [*tendons, *paths.springs]
        self.first, self.nu = len(passive), nu + len(paths.state_names)  # m, and the number of all inputs
        keys = sorted({key for path in paths.rows for key, _ in path}, key=rows.position)
        self.rows = np.array([rows.position(key) for key in keys], dtype=np.intp)  # (k,), among all rows
        self.is_rod = np.array([kind == "rods" for kind, _ in keys], dtype=float)  # (k,)
        self.rods = np.where(self.is_rod > 0, self.rows - rows.sizes[0], 0)  # (k,), among rods
        self.values = RowValues(keys, paths.bases, rows) if paths.springs else None
        self.has_length = self.is_rod if self.values is None else self.is_rod + self.values.has_value  # (k,)
        self.weights, self.J = np.zeros((len(paths.rows), len(keys))), np.zeros((len(paths.rows), tree.n))
        for j, path in enumerate(paths.rows):
            for key, weight in path:
                self.weights[j, keys.index(key)] += weight
        for j, freedoms in enumerate(paths.freedoms):
            for freedom, factor in freedoms:
                self.J[j, freedom] += factor  # (p, n), of L' by v
        self.coordinate = tree.freedom_coordinates
        self.slopes = self.J * np.isin(np.arange(tree.n), tree.screw_speeds)  # (p, n), of L by displacements
        self.k, self.c = np.array([[t.stiffness, t.damping] for t in passive]).reshape(-1, 2).T  # (m,) each
        rests = [*(t.rest for t in tendons), *((0.0, 0.0) for _ in paths.springs)]
        self.rest = np.array(rests).reshape(-1, 2)  # (m, 2)
        self.gain, self.bias = (np.array([getattr(a, what) for a in actuators]).reshape(-1, 3) for what in LAW)
        # limits of controls (a, 2), of forces (a, 2), and of the forces of all actuators on a freedom (n, 2)
        self.control = _limits([a.control_limits for a in actuators])
        self.force, self.limits = _limits([a.force_limits for a in actuators]), paths.limits
        # (a,), the input of each actuator, and what drives it among (u, activations)
        self.inputs = np.array(paths.inputs, dtype=np.intp)
        self.dynamic = np.array([i for i, a in enumerate(actuators) if a.dynamics != "none"], dtype=np.intp)
        self.column = self.inputs.copy()
        self.column[self.dynamic] = nu + np.arange(len(self.dynamic))
        # (a,), a' = rise control - decay a
        rate = [1 / a.time_constant if a.dynamics == "filter" else 0.0 for a in actuators]
        self.decay, self.rise = np.array(rate), np.array([p or 1.0 for p in rate])

    @property
    def smooth(self) -> bool:
        """Whether no law has a kink."""
        free = [not np.isfinite(limits).any() for limits in (self.control, self.force, self.limits)]
        return all(free) and bool((self.rest[:, 0] == self.rest[:, 1]).all())

    def motion(
        self, q: Array, v: Array, u: Array, moving: tuple[MarkerMotion, RowMotion, Array], rows: FixedRows
    ) -> PathMotion:
        """Return what q (..., n_q), v (..., n), (u, activations) and the links' (points, wrenches, V) determine."""
        now, wrenches, V = moving
        inverse, length, rate = self._of_rows(now, wrenches, V, rows)
        L = q[..., self.coordinate] @ self.slopes.T + length @ self.weights.T
        L_rate = v @ self.J.T + (rate * inverse) @ self.weights.T
        F, by_L, by_rate, by_u = self._laws(L, L_rate, u)
        driven = F[..., self.first :] @ self.J[self.first :]
        driven, inside = clip_to_limits(driven, self.limits)
        joints = F[..., : self.first] @ self.J[: self.first] + driven
        sizes = (F @ self.weights) * inverse
        return PathMotion(L, L_rate, F, inverse, rate, sizes, joints, driven, inside, by_L, by_rate, by_u)

    def _of_rows(self, now: MarkerMotion, wrenches: RowMotion, V: Array, rows: FixedRows) -> tuple[Array, Array, Array]:
        """Return 1/|d| (1 for rows that are not rods), |d| (their value for these), W' (V_b - V_a), each (..., k)."""
        rate = (wrenches.W[..., self.rows, :] * rows.relative(V, self.rows)).sum(axis=-1)
        path_forces = np.zeros(len(self.rows)) if self.values is None else self.values(now)
        if not self.is_rod.any():
            return np.ones(len(self.rows)), path_forces, rate
        d = now.p[..., rows.rod_second[self.rods], :] - now.p[..., rows.rod_first[self.rods], :]
        length = root((d * d).sum(axis=-1) * self.is_rod + (1 - self.is_rod))
        return 1 / length, length * self.is_rod + path_forces, rate

    def _laws(self, L: Array, L_rate: Array, u: Array) -> tuple[Array, Array, Array, Array]:
        """Return F and its derivatives by L, L' and by what drives it, each (..., p)."""
        m = self.first
        slack, inside = clip_to_limits(L[..., :m], self.rest)
        spring = -self.k * (L[..., :m] - slack) - self.c * L_rate[..., :m]
        by_L, by_rate = -self.k * (1 - inside * (self.rest[:, 0] < self.rest[:, 1])), -self.c
        drive, open_ = self._drives(u)
        stretch, rate = L[..., m:], L_rate[..., m:]
        gain = self.gain[:, 0] + self.gain[:, 1] * stretch + self.gain[:, 2] * rate
        bias = self.bias[:, 0] + self.bias[:, 1] * stretch + self.bias[:, 2] * rate
        force, within = clip_to_limits(gain * drive + bias, self.force)
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
        control, inside = clip_to_limits(u[..., self.inputs], self.control)
        if not len(self.dynamic):
            return control, inside
        input_factors = np.ones(len(self.inputs))
        input_factors[self.dynamic] = 0.0
        return control * input_factors + u[..., self.column] * (1 - input_factors), inside * input_factors + (
            1 - input_factors
        )

    def activation_rates(self, u: Array) -> Array:
        """Return a' of the activations, shape (..., s)."""
        control, _ = clip_to_limits(u[..., self.inputs], self.control)
        rates = self.rise * control - self.decay * u[..., self.column]
        return rates[..., self.dynamic]

    def activation_columns(self, u: Array) -> Array:
        """Return their derivatives by (u, activations), shape (..., s, nu)."""
        _, inside = clip_to_limits(u[..., self.inputs], self.control)
        columns = np.zeros((*u.shape[:-1], len(self.dynamic), self.nu), dtype=u.dtype)
        for row, i in enumerate(self.dynamic):
            columns[..., row, self.inputs[i]] = self.rise[i] * inside[..., i]
            columns[..., row, self.column[i]] = -self.decay[i]
        return columns

    def energy(self, at: PathMotion) -> Array:
        """Return the energy in the springs of the tendons."""
        slack, _ = clip_to_limits(at.L[..., : self.first], self.rest)
        stretch = at.L[..., : self.first] - slack
        return (self.k * stretch * stretch).sum(axis=-1) / 2

    def stretch(self, at: PathMotion) -> Array:
        """Return the tensions of the springs of all paths, shape (..., p): zero for actuators."""
        slack, _ = clip_to_limits(at.L[..., : self.first], self.rest)
        springs = self.k * (at.L[..., : self.first] - slack)
        rest = np.zeros((*springs.shape[:-1], at.L.shape[-1] - self.first))
        return np.concatenate((springs, rest), axis=-1)

    def length_columns(self, at: PathMotion, G: Array) -> Array:
        """Return dL/dtheta (..., p, n); G of all rows, (..., R, n)."""
        rows: Array = (self.weights * self.has_length) @ (G[..., self.rows, :] * at.inverse[..., None])
        return rows + self.slopes

    def columns(self, at: PathMotion, G: Array, rate_q: Array) -> PathColumns:
        """Return the derivatives, from G and from that of the rates by theta, of all rows, each (..., R, n)."""
        all_gradients, G, rate_q, inverse = G, G[..., self.rows, :], rate_q[..., self.rows, :], at.inverse[..., None]
        unit = G * inverse
        bent = (self.is_rod * at.rod_rate * at.inverse**3)[..., None] * G
        J = self.weights @ unit + self.J
        L_q = self.length_columns(at, all_gradients)
        L_rate_q = self.weights @ (rate_q * inverse - bent)
        F_q = at.by_L[..., None] * L_q + at.by_rate[..., None] * L_rate_q
        F_v = at.by_rate[..., None] * J
        F_u = np.zeros((*at.F.shape, self.nu), dtype=at.F.dtype)
        for i, column in enumerate(self.column):
            F_u[..., self.first + i, column] = at.by_u[..., self.first + i]
        shrink = (self.is_rod * at.sizes * at.inverse**2)[..., None]
        F, m, inside = Partials(F_q, F_v, F_u), self.first, at.inside[..., None]
        s_q, s_v, s_u = ((self.weights.T @ f) * inverse for f in F)
        driven = Partials(*(inside * (self.J[m:].T @ f[..., m:, :]) for f in F))
        joints = Partials(
            *(self.J[:m].T @ f[..., :m, :] + driven_force for f, driven_force in zip(F, driven, strict=True))
        )
        return PathColumns(L_q, J, L_rate_q, F, Partials(s_q - shrink * G, s_v, s_u), joints, driven)


def _along_points(tendon: Tendon, markers: Markers, rows: RowCollector) -> list[tuple[Key, float]]:
    factors = []
    stretches = zip(tendon.bodies, tendon.points, tendon.bodies[1:], tendon.points[1:], strict=False)
    for (first, p, second, q), weight in zip(stretches, tendon.weights, strict=True):
        if weight and (first, p) != (second, q):
            points = markers.point(first, p), markers.point(second, q)
            factors.append((rows.rod((first, second), points), weight))
    return factors


def _wrench(actuator: Actuator, ground: str, markers: Markers, rows: RowCollector) -> list[tuple[Key, float]]:
    """Return lines and couples along the axes of the actuator's frame."""
    bodies, R = (ground, actuator.body), actuator.placement.R
    point = markers.point(actuator.body, actuator.placement.position)
    factors = []
    for i, factor in enumerate(actuator.gear):
        if factor:
            direction = markers.direction(actuator.body, tuple(R[:, i % 3].tolist()))
            row = rows.line(bodies, point, direction) if i < 3 else rows.couple(bodies, direction)
            factors.append((row, factor))
    return factors


def _limits(limits_of_paths: list[tuple[float, ...]]) -> Floats:
    return np.array([limits or (-np.inf, np.inf) for limits in limits_of_paths]).reshape(len(limits_of_paths), 2)
