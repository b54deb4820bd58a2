"""Outputs of a mechanism and their derivatives, all sensors of a kind together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import ModelError
from fmilin.native.mechanism.elements import LineForce, Sensor
from fmilin.native.mechanism.energy import energy, energy_columns, quaternion_of, turned_columns
from fmilin.native.mechanism.markers import FixedMarkers, MarkerColumns, MarkerMotion
from fmilin.native.mechanism.paths import PathColumns, PathMotion
from fmilin.native.mechanism.recursions import coordinate_columns, coordinate_rates
from fmilin.native.mechanism.screws import Array
from fmilin.native.mechanism.system import Columns, Solution, State, System
from fmilin.native.native_engine import Quantity

__all__ = ["CONTACT", "OutputColumns", "Outputs", "constraint_of"]

VECTORS = {
    "position": "p",
    "velocity": "v",
    "acceleration": "a",
    "accelerometer": "f",
    "specific_force": "f",
    "velocimeter": "v",
    "direction": "e",
    "angular_velocity": "w",
    "gyroscope": "w",
    "angular_acceleration": "alpha",
}
IN_BODY = ("accelerometer", "gyroscope", "velocimeter")
CONTACT = ((1, -1), (2, -1), (3, -1), (5, 1), (4, -1), (6, -1))
"""Constraints of a fixed loop whose multipliers are force and torque on its second body, and their signs."""


@dataclass(frozen=True)
class OutputColumns:
    """Derivatives with respect to q (directly), theta, v, vdot, lambda and u, each (..., ny, ...)."""

    q: Array
    theta: Array
    v: Array
    v_dot: Array
    multipliers: Array
    u: Array

    def scaled(self, factors: Array) -> OutputColumns:
        """Return the same of outputs that are multiplied with factors (ny,)."""
        return OutputColumns(*(getattr(self, f.name) * factors[:, None] for f in fields(self)))


def constraint_of(sensor: Sensor) -> tuple[int, int]:
    """Return the number of the constraint, from 1, whose multiplier a ``reaction`` or ``contact`` is, and its sign."""
    if sensor.quantity == "contact" and sensor.coordinate < len(CONTACT):
        return CONTACT[sensor.coordinate]
    return sensor.coordinate + 1, 1


class Outputs:
    """Outputs of a system, in a given order.

    ``system``: its markers are extended; call ``system.finish()`` afterwards.
    """

    def __init__(self, system: System, entries: Sequence[Quantity]) -> None:
        self.system = system
        tree = system.tree
        self.count = len(entries)
        self._direct: list[tuple[int, str, int]] = []
        """(output, array, place) of what is one number of an array."""
        self._dots: list[tuple[int, str, int, int]] = []
        """(output, kind of vector, its number, direction) of what is a component of a vector."""
        self._lines: list[tuple[int, str, int]] = []
        self._paths: list[tuple[int, str, int]] = []
        """(output, quantity, path) of what is measured at tendons and actuators."""
        self._energies: list[tuple[int, str]] = []
        self._forces: list[tuple[int, int, str]] = []
        self._turned: list[tuple[int, str, int]] = []
        """(output, body, coordinate) of quaternions."""
        self._factors: list[tuple[int, float]] = []
        for i, entry in enumerate(entries):
            if isinstance(entry.source, Sensor):
                self._add(i, entry.source)
                continue
            kind, place = entry.source
            if kind in ("state", "rate"):
                level = "q" if place < tree.n_q else "v" if place < tree.n_q + tree.n else "a"
                kind, place = f"{level}_{kind}", place - {"q": 0, "v": tree.n_q, "a": tree.n_q + tree.n}[level]
            self._direct.append((i, kind, place))

    def _add(self, i: int, sensor: Sensor) -> None:
        d, tree, markers = self.system.description, self.system.tree, self.system.collector
        quantity = sensor.quantity
        if sensor.factor != 1.0:
            self._factors.append((i, sensor.factor))
        if quantity in VECTORS:
            kind = VECTORS[quantity]
            axis = markers.direction(sensor.of if quantity in IN_BODY else d.ground, sensor.axis)
            number = tree.place[sensor.of][0]
            if kind in "pvaf":
                number = markers.point(sensor.of, sensor.point)
            elif kind == "e":
                number = markers.direction(sensor.of, sensor.pointer)
            else:
                markers.links.add(number)
            self._dots.append((i, kind, number, axis))
        elif quantity == "orientation":
            self._turned.append((i, sensor.of, sensor.coordinate))
        elif quantity.startswith("joint_"):
            self._add_joint(i, sensor)
        elif sensor.of in (paths := self.system.path_names):
            self._paths.append((i, quantity, paths.index(sensor.of)))
        elif quantity.startswith("distance"):
            names = [s.name for s in d.springs] + [f.name for f in d.inputs if isinstance(f, LineForce)]
            self._lines.append((i, quantity, names.index(sensor.of)))
        elif quantity in ("reaction", "contact"):
            self._add_multiplier(i, sensor)
        else:
            self._energies.append((i, quantity))

    def _add_multiplier(self, i: int, sensor: Sensor) -> None:
        index, sign = constraint_of(sensor)
        keys = [(b.of, b.index) for b in self.system.loop_constraints]
        if (sensor.of, index) not in keys:
            raise ModelError(
                f"The sensor '{sensor.name}' asks for the {sensor.quantity} number {sensor.coordinate} of "
                f"'{sensor.of}', which has {sum(of == sensor.of for of, _ in keys)}, counted from 0."
            )
        kind = "multiplier" if sign > 0 else "opposite_multiplier"
        self._direct.append((i, kind, keys.index((sensor.of, index))))

    def _add_joint(self, i: int, sensor: Sensor) -> None:
        if sensor.quantity not in ("joint_force", "joint_drive"):  # a state or a rate
            self._add_of_joint(i, sensor)
            return
        self._forces.append((i, self.system.tree.speeds_of[sensor.of][sensor.coordinate], sensor.quantity))

    def _add_of_joint(self, i: int, sensor: Sensor) -> None:
        """Add a position, speed or acceleration of a joint that is no state or rate itself, but a multiple of it."""
        tree = self.system.tree
        speed = tree.speeds_of[sensor.of][sensor.coordinate]
        if sensor.quantity == "joint_position":
            if speed in tree.screw_speeds:
                place = int(tree.screw_coordinates[tree.screw_speeds.tolist().index(speed)])
                self._direct.append((i, "q_state", place))
                return
            raise ModelError(
                f"The sensor '{sensor.name}' asks for a position of the ball in '{sensor.of}', which has no angles:"
                " use sensors of the body, or the quaternion's states."
            )
        self._direct.append((i, "v_state" if sensor.quantity == "joint_velocity" else "v_rate", speed))

    @cached_property
    def _by_kind(self) -> dict[str, tuple[list[int], list[int]]]:
        """Rows and places of the outputs that are numbers of one array."""
        kinds = dict.fromkeys(kind for _, kind, _ in self._direct)
        chosen = {k: [(i, place) for i, what, place in self._direct if what == k] for k in kinds}
        return {k: ([i for i, _ in pairs], [place for _, place in pairs]) for k, pairs in chosen.items()}

    @cached_property
    def _sensed(self) -> tuple[FixedMarkers, list[int], list[int]]:
        """Return the markers that sensors look at, and which points and directions of all they are."""
        points = sorted({number for _, kind, number, _ in self._dots if kind in "pvaf"})
        turning = {number for _, kind, number, _ in self._dots if kind == "e"}
        directions = sorted(turning | {axis for _, _, _, axis in self._dots})
        links = {number for _, kind, number, _ in self._dots if kind in ("w", "alpha")}
        return self.system.markers.some(points, directions, links), points, directions

    # -- values ------------------------------------------------------------------------------------

    def values(self, solution: Solution) -> Array:
        """Return the outputs, shape (..., ny)."""
        state = solution.state
        parts = [self._array(kind, solution)[..., places] for kind, (_, places) in self._by_kind.items()]
        if self._dots:
            a, b = self._vectors(solution)
            parts.append((a * b).sum(axis=-1))
        if self._lines:
            parts.append(self._line_values(solution))
        if self._paths and state.drives is not None:
            parts.append(np.stack([self._of_path(state.drives, what)[..., j] for _, what, j in self._paths], axis=-1))
        if self._forces:
            parts.append(self._force_values(state))
        if self._turned:
            e = {body: quaternion_of(self.system.tree, state.q, body) for _, body, _ in self._turned}
            parts.append(np.stack([e[body][..., k] for _, body, k in self._turned], axis=-1))
        if self._energies:
            parts.append(np.stack([energy(self.system, state, what) for _, what in self._energies], axis=-1))
        shape = state.F.shape[:-1]
        if not parts:
            return np.zeros((*shape, 0))
        parts = [part if part.ndim > len(shape) else np.broadcast_to(part, (*shape, part.shape[-1])) for part in parts]
        joined: Array = np.concatenate(parts, axis=-1)[..., self._order]
        return joined * self._scale if self._factors else joined

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        """Where each output stands when they are computed by their kinds, as :meth:`values` does."""
        of_arrays = [rows for rows, _ in self._by_kind.values()]
        others = [
            [entry[0] for entry in entries]
            for entries in (self._dots, self._lines, self._paths, self._forces, self._turned, self._energies)
        ]
        return np.argsort([i for rows in (*of_arrays, *others) for i in rows])

    @cached_property
    def _scale(self) -> Array:
        scale = np.ones(self.count)
        for i, factor in self._factors:
            scale[i] = factor
        return scale

    def _force_values(self, state: State) -> Array:
        """Return the forces on joints: of springs, dampers and all that drives them, or of actuators alone."""
        nothing = np.zeros(state.v.shape[-1])
        every = self.system.forces.joints(state.q, state.v, state.u)
        joints, driven = (nothing, nothing) if state.drives is None else (state.drives.joints, state.drives.driven)
        shape = np.broadcast_shapes(every.shape, driven.shape)
        every, driven = np.broadcast_to(every + joints, shape), np.broadcast_to(driven, shape)
        chosen = [(every if what == "joint_force" else driven)[..., speed] for _, speed, what in self._forces]
        return np.stack(chosen, axis=-1)

    def _array(self, kind: str, solution: Solution) -> Array:
        state = solution.state
        if kind == "q_rate":
            return coordinate_rates(self.system.tree, state.q, state.v)
        if kind == "a_rate":
            return self.system.activation_rates(state.u)
        if kind == "gap":
            return self.system.gaps(state)
        if kind == "slip":
            return self.system.rates(state)
        return {
            "q_state": state.q,
            "v_state": state.v,
            "v_rate": solution.v_dot,
            "input": state.u,
            "a_state": state.u[..., len(self.system.description.inputs) :],
            "multiplier": solution.multipliers,
            "opposite_multiplier": -solution.multipliers,
        }[kind]

    def _vectors(self, solution: Solution) -> tuple[Array, Array]:
        """Return the vectors and the directions along which they are measured, each (..., k, 3)."""
        state = solution.state
        vectors = []
        falling = None  # accelerations of all points, seen from a ground that falls
        if any(kind in "af" for _, kind, _, _ in self._dots):
            falling = self.system.markers.accelerations(state.at, solution.A, state.now)
        for _, kind, number, _ in self._dots:
            if falling is not None and kind in "af":
                p_ddot = falling[..., number, :]
                vectors.append(p_ddot + self.system.gravity if kind == "a" else p_ddot)
            elif kind in "pv":
                vectors.append((state.now.p if kind == "p" else state.now.p_dot)[..., number, :])
            elif kind == "e":
                vectors.append(state.now.e[..., number, :])
            else:
                vectors.append((state.at.V if kind == "w" else solution.A)[..., number, :3])
        return np.stack(vectors, axis=-2), state.now.e[..., [dot[3] for dot in self._dots], :]

    @staticmethod
    def _of_path(drives: PathMotion, what: str) -> Array:
        return {"distance": drives.L, "distance_rate": drives.L_rate, "actuator_force": drives.F}[what]

    @staticmethod
    def _path_columns(drives: PathColumns, what: str) -> tuple[Array, Array, Array]:
        """Return the derivatives by theta, v and u of lengths, rates or forces of all paths."""
        zero = np.zeros_like(drives.F_q)
        if what == "actuator_force":
            return drives.F_q, drives.F_v, drives.F_u
        none = np.zeros_like(drives.F_u)
        return (drives.L_q, zero, none) if what == "distance" else (drives.rate_q, drives.J, none)

    def _line_values(self, solution: Solution) -> Array:
        d, L_rate = self.system.stretch(solution.state)
        L = np.sqrt((d * d).sum(axis=-1))
        values = [L[..., k] if what == "distance" else L_rate[..., k] / L[..., k] for _, what, k in self._lines]
        return np.stack(values, axis=-1)

    # -- derivatives -------------------------------------------------------------------------------

    def columns(self, solution: Solution, columns: Columns) -> OutputColumns:
        """Return the derivatives of the outputs, exact."""
        tree, system = self.system.tree, self.system
        n, m, nu = tree.n, len(system.loop_constraints), solution.state.u.shape[-1]
        shape = (*solution.state.F.shape[:-1], self.count)
        out = OutputColumns(*(np.zeros((*shape, k)) for k in (tree.n_q, n, n, n, m, nu)))
        self._direct_columns(solution, columns, out)
        if self._dots:
            self._dot_columns(solution, columns, out)
        if self._lines:
            self._line_columns(solution, columns, out)
        joints, drives = system.forces.joints, columns.drives
        if drives is not None:
            for i, what, j in self._paths:
                theta, v, by_u = self._path_columns(drives, what)
                out.theta[..., i, :], out.v[..., i, :], out.u[..., i, :] = (
                    theta[..., j, :],
                    v[..., j, :],
                    by_u[..., j, :],
                )
            for i, speed, what in self._forces:
                all_drives = drives.joints_q, drives.joints_v, drives.joints_u
                by = all_drives if what == "joint_force" else (drives.driven_q, drives.driven_v, drives.driven_u)
                out.theta[..., i, :], out.v[..., i, :], out.u[..., i, :] = (a[..., speed, :] for a in by)
        for i, body, k in self._turned:
            out.theta[..., i, :] = turned_columns(tree, solution.state, body)[..., k, :]
        for i, speed, what in self._forces:
            if what == "joint_drive":
                continue
            if joints.k[speed]:
                out.theta[..., i, speed] -= joints.k[speed]
            out.v[..., i, speed] -= joints.d[speed]
            out.u[..., i, :] += joints.B[speed]
        for i, what in self._energies:
            theta, v = energy_columns(system, solution.state, what)
            out.theta[..., i, :], out.v[..., i, :] = theta, v
        return out.scaled(self._scale) if self._factors else out

    def _direct_columns(self, solution: Solution, columns: Columns, out: OutputColumns) -> None:
        state = solution.state
        for kind, (rows, places) in self._by_kind.items():
            if kind == "q_rate":
                E, E_q = coordinate_columns(self.system.tree, state.q, state.v)
                out.v[..., rows, :], out.q[..., rows, :] = E[..., places, :], E_q[..., places, :]
            elif kind == "gap":
                out.theta[..., rows, :] = state.G[..., places, :]
            elif kind == "slip":
                out.theta[..., rows, :], out.v[..., rows, :] = columns.rate_q[..., places, :], state.G[..., places, :]
            elif kind == "a_state":
                out.u[..., rows, [len(self.system.description.inputs) + place for place in places]] = 1.0
            elif kind == "a_rate":
                out.u[..., rows, :] = self.system.activation_columns(state.u)[..., places, :]
            else:
                arrays = {"q_state": out.q, "v_state": out.v, "v_rate": out.v_dot, "input": out.u}
                target: Array = arrays.get(kind, out.multipliers)
                target[..., rows, places] = -1.0 if kind == "opposite_multiplier" else 1.0

    def _dot_columns(self, solution: Solution, columns: Columns, out: OutputColumns) -> None:
        vectors, directions = self._vectors(solution)
        markers, points, turning = self._sensed
        everything = solution.state.now
        now = MarkerMotion(
            p=everything.p[..., points, :],
            p_dot=everything.p_dot[..., points, :],
            e=everything.e[..., turning, :],
            e_dot=everything.e_dot[..., turning, :],
        )
        along = markers.columns(columns.motion, now)
        fast: tuple[Array, Array] = (None, None)
        if any(kind in "af" for _, kind, _, _ in self._dots):
            fast = markers.acceleration_columns(columns.motion, now, along)
        for k, (i, kind, number, axis) in enumerate(self._dots):
            turned = along.e[..., turning.index(axis), :, :]
            out.theta[..., i, :] = (turned @ vectors[..., k, :, None])[..., 0]
            for target, vector in self._vector_columns((kind, number), along, fast, out):
                target[..., i, :] += (vector @ directions[..., k, :, None])[..., 0]

    def _vector_columns(
        self, vector: tuple[str, int], along: MarkerColumns, fast: tuple[Array, Array], out: OutputColumns
    ) -> list[tuple[Array, Array]]:
        """Return where the columns of a vector go, and the columns, each (..., n, 3)."""
        kind, j = vector
        if kind in ("w", "alpha"):
            j = self._sensed[0].links.tolist().index(j)
            of = along.links
            if kind == "w":
                return [(out.theta, of.V_q[..., j, :, :3]), (out.v, of.V_v[..., j, :, :3])]
            A_q, A_v = of.A_q[..., j, :, :3], of.A_v[..., j, :, :3]
            return [(out.theta, A_q), (out.v, A_v), (out.v_dot, of.V_v[..., j, :, :3])]
        if kind == "e":
            return [(out.theta, along.e[..., self._sensed[2].index(j), :, :])]
        j = self._sensed[1].index(j)
        p = along.p[..., j, :, :]
        if kind == "p":
            return [(out.theta, p)]
        if kind == "v":
            return [(out.theta, along.p_dot[..., j, :, :]), (out.v, p)]
        return [(out.theta, fast[0][..., j, :, :]), (out.v, fast[1][..., j, :, :]), (out.v_dot, p)]

    def _line_columns(self, solution: Solution, columns: Columns, out: OutputColumns) -> None:
        state, system = solution.state, self.system
        d, L_rate = system.stretch(state)
        L = np.sqrt((d * d).sum(axis=-1))
        G, rate_q = columns.stretch
        for i, what, k in self._lines:
            g, length = G[..., k, :], L[..., k, None]
            if what == "distance":
                out.theta[..., i, :] = g / length
                continue
            out.theta[..., i, :] = rate_q[..., k, :] / length - L_rate[..., k, None] * g / length**3
            out.v[..., i, :] = g / length
