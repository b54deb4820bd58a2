"""Outputs of a mechanism and their derivatives, all sensors of a kind together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ModelError
from fmilin.models.mechanism.markers import FixedMarkers, MarkerColumns, MarkerMotion
from fmilin.models.mechanism.mechanism_elements import VECTORS, LineForce, Sensor
from fmilin.models.mechanism.multibody_system import Columns, ForwardDynamics, State, System
from fmilin.models.mechanism.quantities import (
    compute_quaternion,
    differentiate_quaternion,
    energy,
    energy_columns,
    state_or_rate,
)
from fmilin.models.mechanism.recursions import coordinate_columns, coordinate_rates
from fmilin.models.mechanism.tree import Array, Partials, clip_to_limits
from fmilin.models.native_engine import Quantity

ORIENTATION = "orientation of "
IN_BODY = ("accelerometer", "gyroscope", "velocimeter")
CONTACT_INDICES_AND_SIGNS = ((1, -1), (2, -1), (3, -1), (5, 1), (4, -1), (6, -1))
"""Constraints of a fixed loop with multipliers that are force and torque on its second body, and their signs."""


@dataclass(frozen=True)
class OutputColumns:
    """Derivatives with respect to q (directly), theta, v, vdot, lambda and u, each (..., ny, ...)."""

    q: Array
    theta: Array
    v: Array
    v_dot: Array
    multipliers: Array
    u: Array

    def scale(self, factors: Array) -> OutputColumns:
        """Return the same of outputs that are multiplied with factors (..., ny)."""
        return OutputColumns(*(getattr(self, f.name) * factors[..., None] for f in fields(self)))


def locate_multiplier(sensor: Sensor) -> tuple[int, int]:
    """Return the number of the constraint, from 1, of a ``reaction`` or ``contact`` as its multiplier, and the sign."""
    if sensor.quantity == "contact" and sensor.coordinate < len(CONTACT_INDICES_AND_SIGNS):
        return CONTACT_INDICES_AND_SIGNS[sensor.coordinate]
    return sensor.coordinate + 1, 1


@dataclass(frozen=True)
class _Arrays:
    """An array of quantities (..., k) at a solution, and its derivatives (..., k, .) by the names of OutputColumns."""

    values: Callable[[System, ForwardDynamics], Array]
    columns: Callable[[System, ForwardDynamics, Columns], Mapping[str, Array]]


def _lengths(system: System, state: State) -> tuple[Array, Array]:
    """Return the lengths of springs and of forces along lines, and what the rates are multiplied with, (..., ns)."""
    d, L_rate = system.stretch(state)
    return np.sqrt((d * d).sum(axis=-1)), L_rate


def _divide(numerator: Array, denominator: Array) -> Array:
    """Return the quotient, which is not a number where a length is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(numerator / denominator)


def _rates_of_lengths(system: System, solution: ForwardDynamics) -> Array:
    L, L_rate = _lengths(system, solution.state)
    return _divide(L_rate, L)


def _columns_of_rates(system: System, solution: ForwardDynamics, columns: Columns) -> Mapping[str, Array]:
    L, L_rate = (a[..., None] for a in _lengths(system, solution.state))
    G, rate_q = columns.stretch
    return {"theta": _divide(rate_q, L) - _divide(L_rate * G, L**3), "v": _divide(G, L)}


def _forces_on_joints(system: System, solution: ForwardDynamics) -> Array:
    """Return the forces of springs, dampers and all that drives joints, (..., n)."""
    state = solution.state
    forces = system.forces.joints(state.q, state.v, state.u)
    return forces if state.drives is None else forces + state.drives.joints


def _columns_of_forces(system: System, solution: ForwardDynamics, columns: Columns) -> Mapping[str, Array]:
    del solution
    joints = system.forces.joints
    by = {"theta": -np.diag(joints.k), "v": -np.diag(joints.d), "u": joints.B}
    if columns.drives is None:
        return by
    return {of: a + more for (of, a), more in zip(by.items(), columns.drives.joints, strict=True)}


def _drive(system: System, solution: ForwardDynamics) -> Array:
    del system
    drives = solution.state.drives
    return np.zeros_like(solution.state.v) if drives is None else drives.driven


def _of_paths(what: str, by: Callable[[Any], Mapping[str, Array]]) -> _Arrays:
    """Return lengths, rates or forces of tendons and actuators."""
    return _Arrays(lambda _, at: getattr(at.state.drives, what), lambda _, __, columns: by(columns.drives))


def _name_partials(by: Partials) -> Mapping[str, Array]:
    return {"theta": by.q, "v": by.v, "u": by.u}


def _energy(what: str) -> _Arrays:
    return _Arrays(
        lambda system, at: np.stack([energy(system, at.state, what)], axis=-1),
        lambda system, at, _: {
            of: a[..., None, :] for of, a in zip(("theta", "v"), energy_columns(system, at.state, what), strict=True)
        },
    )


def _orientation(body: str) -> _Arrays:
    """Return the quaternion of a body."""
    return _Arrays(
        lambda system, at: compute_quaternion(system.tree, at.state.q, body),
        lambda system, at, _: {"theta": differentiate_quaternion(system.tree, at.state, body)},
    )


ARRAYS: Mapping[str, _Arrays] = {
    "q_state": _Arrays(lambda _, at: at.state.q, lambda system, *_: {"q": np.eye(system.tree.n_q)}),
    "v_state": _Arrays(lambda _, at: at.state.v, lambda system, *_: {"v": np.eye(system.tree.n)}),
    "a_state": _Arrays(
        lambda system, at: at.state.u[..., len(system.description.inputs) :],
        lambda system, *_: {"u": np.eye(system.nu)[len(system.description.inputs) :]},
    ),
    "q_rate": _Arrays(
        lambda system, at: coordinate_rates(system.tree, at.state.q, at.state.v),
        lambda system, at, _: dict(zip("vq", coordinate_columns(system.tree, at.state.q, at.state.v), strict=True)),
    ),
    "v_rate": _Arrays(lambda _, at: at.v_dot, lambda system, *_: {"v_dot": np.eye(system.tree.n)}),
    "a_rate": _Arrays(
        lambda system, at: system.activation_rates(at.state.u),
        lambda system, at, _: {"u": system.activation_columns(at.state.u)},
    ),
    "input": _Arrays(lambda _, at: at.state.u, lambda system, *_: {"u": np.eye(system.nu)}),
    "gap": _Arrays(lambda system, at: system.gaps(at.state), lambda _, at, __: {"theta": at.state.G}),
    "slip": _Arrays(lambda system, at: system.rates(at.state), lambda _, at, by: {"theta": by.rate_q, "v": at.state.G}),
    "multiplier": _Arrays(
        lambda _, at: at.multipliers, lambda system, *_: {"multipliers": np.eye(len(system.loop_constraints))}
    ),
    "distance": _Arrays(
        lambda system, at: _lengths(system, at.state)[0],
        lambda system, at, by: {"theta": _divide(by.stretch[0], _lengths(system, at.state)[0][..., None])},
    ),
    "distance_rate": _Arrays(_rates_of_lengths, _columns_of_rates),
    "path distance": _of_paths("L", lambda by: {"theta": by.L_q}),
    "path distance_rate": _of_paths("L_rate", lambda by: {"theta": by.rate_q, "v": by.J}),
    "path actuator_force": _of_paths("F", lambda by: _name_partials(by.F)),
    "joint_force": _Arrays(_forces_on_joints, _columns_of_forces),
    "joint_drive": _Arrays(_drive, lambda _, __, by: {} if by.drives is None else _name_partials(by.drives.driven)),
    **{what: _energy(what) for what in ("kinetic_energy", "potential_energy", "energy")},
}
"""Quantities that are numbers of arrays."""


class Outputs:
    """Outputs of a system, in a given order; they extend its markers: call ``system.finish()`` afterwards."""

    def __init__(self, system: System, entries: Sequence[Quantity]) -> None:
        self.system = system
        self.count, self._names = len(entries), [entry.signal.name for entry in entries]
        self._entries: dict[str, tuple[list[int], list[int]]] = {}
        """Outputs that are numbers of one array of :data:`ARRAYS`, and which numbers."""
        self._dots: list[tuple[int, str, int, int]] = []
        """(output, kind of vector, its number, direction) of what is a component of a vector."""
        self._scale = np.array([getattr(entry.source, "factor", 1.0) for entry in entries])
        unlimited = (-np.inf, np.inf)
        self._limits = np.array([getattr(entry.source, "limits", ()) or unlimited for entry in entries]).reshape(-1, 2)
        for i, entry in enumerate(entries):
            if isinstance(entry.source, Sensor):
                self._add(i, entry.source)
            else:
                self._add_entry(i, *entry.source)

    def _add_entry(self, i: int, kind: str, number: int) -> None:
        """Add a number of an array, of a state or a rate by its number among all."""
        if kind in ("state", "rate"):
            tree = self.system.tree
            first = {"q": 0, "v": tree.n_q, "a": tree.n_q + tree.n}
            level = next(of for of in "avq" if number >= first[of])
            kind, number = f"{level}_{kind}", number - first[level]
        outputs, numbers = self._entries.setdefault(kind, ([], []))
        outputs.append(i)
        numbers.append(number)

    def _add(self, i: int, sensor: Sensor) -> None:
        d, quantity = self.system.description, sensor.quantity
        if quantity in VECTORS:
            self._add_vector(i, sensor)
        elif quantity == "orientation":
            self._add_entry(i, f"{ORIENTATION}{sensor.of}", sensor.coordinate)
        elif quantity in ("joint_force", "joint_drive"):
            self._add_entry(i, quantity, self.system.tree.speeds_of[sensor.of][sensor.coordinate])
        elif quantity.startswith("joint_"):
            self._add_of_joint(i, sensor)
        elif sensor.of in (paths := self.system.path_names):
            self._add_entry(i, f"path {quantity}", paths.index(sensor.of))
        elif quantity.startswith("distance"):
            names = [s.name for s in d.springs] + [f.name for f in d.inputs if isinstance(f, LineForce)]
            self._add_entry(i, quantity, names.index(sensor.of))
        elif quantity in ("reaction", "contact"):
            self._add_multiplier(i, sensor)
        else:
            self._add_entry(i, quantity, 0)

    def _add_vector(self, i: int, sensor: Sensor) -> None:
        kind, markers = VECTORS[sensor.quantity][0], self.system.collector
        axis = markers.direction(
            sensor.of if sensor.quantity in IN_BODY else self.system.description.ground, sensor.axis
        )
        number = self.system.tree.frame_of[sensor.of][0]
        if kind in "pvaf":
            number = markers.point(sensor.of, sensor.point)
        elif kind == "e":
            number = markers.direction(sensor.of, sensor.pointer)
        else:
            markers.links.add(number)
        self._dots.append((i, kind, number, axis))

    def _add_multiplier(self, i: int, sensor: Sensor) -> None:
        index, sign = locate_multiplier(sensor)
        keys = [(b.of, b.index) for b in self.system.loop_constraints]
        if (sensor.of, index) not in keys:
            raise ModelError(
                f"The sensor '{sensor.name}' measures a coordinate that does not exist: the {sensor.quantity} number "
                f"{sensor.coordinate} of '{sensor.of}', which has {sum((of == sensor.of for of, _ in keys))}, counted "
                "from 0."
            )
        self._scale[i] *= sign
        self._add_entry(i, "multiplier", keys.index((sensor.of, index)))

    def _add_of_joint(self, i: int, sensor: Sensor) -> None:
        """Add a position, speed or acceleration of a joint that is not a state or rate itself, but a multiple of it."""
        source = state_or_rate(sensor, self.system.tree)
        if source is None:
            raise ModelError(
                f"The sensor '{sensor.name}' needs a position of the ball in '{sensor.of}', which has no angles: use "
                "sensors of the body, or the quaternion's states."
            )
        self._add_entry(i, *source)

    @cached_property
    def _by_kind(self) -> list[tuple[_Arrays, list[int], list[int]]]:
        """The arrays, which outputs are in each, and where."""
        return [
            (_orientation(kind.removeprefix(ORIENTATION)) if kind.startswith(ORIENTATION) else ARRAYS[kind], *entry)
            for kind, entry in self._entries.items()
        ]

    @cached_property
    def _sensed(self) -> tuple[FixedMarkers, list[int], list[int]]:
        """Return the markers that sensors measure, and which points and directions of all they are."""
        points = sorted({number for _, kind, number, _ in self._dots if kind in "pvaf"})
        turning = {number for _, kind, number, _ in self._dots if kind == "e"}
        directions = sorted(turning | {axis for _, _, _, axis in self._dots})
        links = {number for _, kind, number, _ in self._dots if kind in ("w", "alpha")}
        return self.system.markers.some(points, directions, links), points, directions

    def values(self, solution: ForwardDynamics) -> Array:
        """Return the outputs, shape (..., ny)."""
        return clip_to_limits(self._evaluate_unlimited(solution), self._limits)[0]

    def remarks(self, solution: ForwardDynamics) -> tuple[str, ...]:
        """Return a sentence where sensors show the end of their range, at one solution."""
        _, inside = clip_to_limits(self._evaluate_unlimited(solution), self._limits)
        names = [name for name, at in zip(self._names, inside, strict=True) if not at]
        return (f"These sensors are saturated at the end of their range: {', '.join(names)}.",) if names else ()

    def _evaluate_unlimited(self, solution: ForwardDynamics) -> Array:
        parts = [arrays.values(self.system, solution)[..., numbers] for arrays, _, numbers in self._by_kind]
        if self._dots:
            a, b = self._vectors(solution)
            parts.append((a * b).sum(axis=-1))
        shape = solution.state.F.shape[:-1]
        if not parts:
            return np.zeros((*shape, 0))
        parts = [part if part.ndim > len(shape) else np.broadcast_to(part, (*shape, part.shape[-1])) for part in parts]
        joined: Array = np.concatenate(parts, axis=-1)[..., self._order]
        return joined if (self._scale == 1.0).all() else joined * self._scale

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        """Where each output stands when they are computed by their kinds, as :meth:`values` does."""
        return np.argsort([*(i for _, outputs, _ in self._by_kind for i in outputs), *(dot[0] for dot in self._dots)])

    def _vectors(self, solution: ForwardDynamics) -> tuple[Array, Array]:
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

    def columns(self, solution: ForwardDynamics, columns: Columns) -> OutputColumns:
        """Return the derivatives of the outputs, exact."""
        tree = self.system.tree
        sizes = (tree.n_q, tree.n, tree.n, tree.n, len(self.system.loop_constraints), self.system.nu)
        shape = (*solution.state.F.shape[:-1], self.count)
        out = OutputColumns(*(np.zeros((*shape, size)) for size in sizes))
        for arrays, outputs, numbers in self._by_kind:
            for of, array in arrays.columns(self.system, solution, columns).items():
                getattr(out, of)[..., outputs, :] = array[..., numbers, :]
        if self._dots:
            self._dot_columns(solution, columns, out)
        if np.isfinite(self._limits).any():
            return out.scale(self._scale * clip_to_limits(self._evaluate_unlimited(solution), self._limits)[1])
        return out if (self._scale == 1.0).all() else out.scale(self._scale)

    def _dot_columns(self, solution: ForwardDynamics, columns: Columns, out: OutputColumns) -> None:
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
