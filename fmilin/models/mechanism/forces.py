"""Springs, dampers and inputs: the size s_r of the wrench along each row, forces on joints, and their derivatives.

Bushings are springs along the eigenvectors w_m of their matrices, K = sum k_m w_m w_m', each with the length w_m' l of
their deflections, l_i = a_i' (p_2 - p_1) and, for the axis times sin(angle), l_(3 + i) = (a_k' b_j - a_j' b_k)/2.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import NumericalError
from fmilin.models.mechanism.fixed_rows import FixedRows, Key, RowCollector
from fmilin.models.mechanism.markers import MarkerMotion, Markers
from fmilin.models.mechanism.mechanism_description import MechanismDescription
from fmilin.models.mechanism.mechanism_elements import (
    Actuator,
    Bushing,
    Force,
    JointForce,
    LineForce,
    PointSpring,
    Torque,
)
from fmilin.models.mechanism.tree import Array, Partials, Tree, root

Floats = NDArray[np.float64]


class JointForces:
    """-k (q - q_0) - d v + B u on each freedom."""

    def __init__(self, description: MechanismDescription, tree: Tree, B: Floats) -> None:
        self.coordinate, self.B = tree.freedom_coordinates, B  # B: (n, nu)
        # (n,) each: balls have no stiffness
        self.k, self.rest, self.d = (
            np.array([value for joint in description.joints for value in getattr(joint, what)])
            for what in ("stiffness", "rest", "damping")
        )

    def __call__(self, q: Array, v: Array, u: Array) -> Array:
        """Return the generalized forces, shape (..., n)."""
        return -self.k * (q[..., self.coordinate] - self.rest) - self.d * v + u @ self.B.T


class Forces:
    """Which rows push: springs and forces along the line of two points, inputs on other rows, and constant forces."""

    def __init__(self, description: MechanismDescription, tree: Tree, markers: Markers, rows: RowCollector) -> None:
        inputs, ground = description.inputs, description.ground
        activations = sum(isinstance(a, Actuator) and a.dynamics != "none" for a in inputs)
        self.rods = [_rod(s, markers, rows) for s in description.springs]
        # stiffness, length and damping along each rod
        self.laws = [(s.stiffness, s.length, s.damping) for s in description.springs]
        self.rod_names = [s.where for s in description.springs]
        self.rod_inputs: dict[int, int] = {}
        self.row_inputs: dict[Key, int] = {}
        B = np.zeros((tree.n, len(inputs) + activations))
        for i, force in enumerate(inputs):
            if isinstance(force, JointForce):
                B[tree.speeds_of[force.joint][force.coordinate], i] = 1.0
            elif isinstance(force, LineForce):
                self.rod_inputs[len(self.rods)] = i
                self.rods.append(_rod(force, markers, rows))
                self.laws.append((0.0, 0.0, 0.0))
                self.rod_names.append(force.where)
            elif isinstance(force, Force | Torque):  # actuators have paths, motions are forces by now
                self.row_inputs[_row(force, ground, markers, rows)] = i
        self.joints = JointForces(description, tree, B)
        g = np.array(description.gravity)
        weight = float(np.linalg.norm(g))  # of a unit of mass
        self.constant: dict[Key, float] = {}
        for body in description.bodies if weight else ():
            if body.gravity_compensation and body.mass:
                up = markers.direction(ground, tuple((-g / weight).tolist()))
                row = rows.line((ground, body.name), markers.point(body.name, body.center), up)
                self.constant[row] = body.gravity_compensation * body.mass * weight


class FixedForces:
    """Springs and inputs as constant arrays, of ns rods that push and of R rows."""

    def __init__(self, forces: Forces, rows: FixedRows) -> None:
        self.joints, self.count = forces.joints, len(rows)
        self.names = forces.rod_names
        nu = self.joints.B.shape[1]
        self.rows = np.array([rows.position(key) for key in forces.rods], dtype=np.intp)  # (ns,)
        self.k, self.L_0, self.c = np.array(forces.laws).reshape(-1, 3).T  # (ns,) each
        self.B_L = np.zeros((len(self.rows), nu))  # which input pushes along a rod
        for rod, i in forces.rod_inputs.items():
            self.B_L[rod, i] = 1.0
        self.B_r = np.zeros((len(rows), nu))  # which input is the size of another row
        for key, i in forces.row_inputs.items():
            self.B_r[rows.position(key), i] = 1.0
        # (ns,), 1 where the force is -k times the vector between the points, which needs no direction
        self.linear = ((self.L_0 == 0) & (self.c == 0) & ~self.B_L.any(axis=1)).astype(float)
        s_0 = np.zeros(len(rows))
        for key, size in forces.constant.items():
            s_0[rows.position(key)] = size
        self.s_0 = s_0 if s_0.any() else None  # (R,), constant sizes

    def sizes(self, d: Array, L_rate: Array, u: Array) -> Array:
        """Return s_r (..., R): wrenches s_r W_r on b and the opposite ones on a, for d (..., ns, 3) and u (..., nu).

        On a rod W has the length L of d = p_b - p_a, so that s = (-k (L - L_0) - c L' + u) / L; ``L_rate``
        (..., ns) is W' (V_b - V_a) = L L'.
        """
        s = u @ self.B_r.T
        s = s if self.s_0 is None else s + self.s_0
        if not len(self.rows):
            return s
        L = self._lengths(d)
        self._require_directions(L)
        with np.errstate(divide="ignore", invalid="ignore"):  # a point of a batch where ends coincide has no numbers
            push = self.k * self.L_0 - self.c * L_rate / L + u @ self.B_L.T
            s = np.broadcast_to(s, (*push.shape[:-1], self.count)).astype(push.dtype)
            s[..., self.rows] = -self.k + push / L
        return s

    def columns(self, d: Array, L_rate: Array, u: Array, along: tuple[Array, Array]) -> Partials:
        """Return the derivatives of s; ``along`` are G of the rods and the derivative of L L', both (..., ns, n)."""
        s = self.sizes(d, L_rate, u)
        G, rate_q = along
        n, nu = G.shape[-1], self.B_r.shape[1]
        q, v = np.zeros((*s.shape, n), dtype=s.dtype), np.zeros((*s.shape, n), dtype=s.dtype)
        s_u = np.broadcast_to(self.B_r, (*s.shape, nu)).astype(s.dtype)
        if len(self.rows):
            L = self._lengths(d)
            push = self.k * self.L_0 + u @ self.B_L.T
            with np.errstate(divide="ignore", invalid="ignore"):
                by_L = ((-push + 2 * self.c * L_rate / L) / L**3 * (1 - self.linear))[..., None]  # ds/dL over L
                by_rate = (-self.c / L**2)[..., None]
                q[..., self.rows, :] = by_L * G + by_rate * rate_q
                v[..., self.rows, :] = by_rate * G
                s_u[..., self.rows, :] = self.B_L / L[..., None]
        return Partials(q, v, s_u)

    def energy(self, d: Array) -> Array:
        """Return the energy in the springs between points."""
        stretch = np.sqrt((d * d).sum(axis=-1)) - self.L_0
        return (self.k * stretch * stretch).sum(axis=-1) / 2

    def constant_force_work(self, rows: FixedRows, now: MarkerMotion) -> Array:
        """Return the work of the constant forces, which act along directions of the ground."""
        assert self.s_0 is not None  # noqa: S101 - whoever asks has looked
        lines = np.flatnonzero(self.s_0)
        p, e = now.p[..., rows.line_points[lines], :], now.e[..., rows.line_directions[lines], :]
        return (self.s_0[lines] * (p * e).sum(axis=-1)).sum(axis=-1)

    def _lengths(self, d: Array) -> Array:
        return root((d * d).sum(axis=-1) * (1 - self.linear) + self.linear)

    def _require_directions(self, L: Array) -> None:
        """Raise NumericalError where the ends of a part coincide at a single point: its force has no direction there.

        Complex steps and symbols leave a point where this was asked of numbers.
        """
        if L.ndim == 1 and L.dtype == np.float64 and not L.all():
            name = self.names[int(np.argmin(L))]
            raise NumericalError(
                f"Both ends of {name} coincide, so its force has no direction. Choose another configuration, or other "
                "points on the bodies; a spring of length 0 without damping needs no direction."
            )


def _rod(part: PointSpring | LineForce, markers: Markers, rows: RowCollector) -> Key:
    first, second = part.first, part.second
    p = markers.point(first, part.first_point), markers.point(second, part.second_point)
    return rows.rod((first, second), p)


def _row(force: Force | Torque, ground: str, markers: Markers, rows: RowCollector) -> Key:
    direction = markers.direction(force.body if force.frame == "body" else ground, force.direction)
    if isinstance(force, Torque):
        return rows.couple((ground, force.body), direction)
    return rows.line((ground, force.body), markers.point(force.body, force.point), direction)


EIGENVALUE_ROUNDING_TOLERANCE = 1e-14  # of the largest eigenvalue


class SpringPath(NamedTuple):
    """A spring and a damper along a weighted sum of rows."""

    name: str
    rows: list[tuple[Key, float]]
    stiffness: float
    damping: float


def spring_paths(bushing: Bushing, markers: Markers, rows: RowCollector) -> tuple[list[SpringPath], dict[Key, int]]:
    """Return the springs along eigenvectors, and the points from which rows along lines measure."""
    bodies = (bushing.first, bushing.second)
    base, end = (
        markers.point(body, placement.position)
        for body, placement in zip(bodies, (bushing.first_placement, bushing.second_placement), strict=True)
    )
    a = [markers.direction(bushing.first, tuple(axis)) for axis in bushing.first_placement.R.T.tolist()]
    b = [markers.direction(bushing.second, tuple(axis)) for axis in bushing.second_placement.R.T.tolist()]
    deflections: list[list[tuple[Key, float]]] = [[(rows.line(bodies, end, e), 1.0)] for e in a]
    bases = {key: base for ((key, _),) in deflections}
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        deflections.append([(rows.hinge(bodies, (a[k], b[j])), 0.5), (rows.hinge(bodies, (a[j], b[k])), -0.5)])
    paths: list[SpringPath] = []
    for is_damper, matrix in enumerate((bushing.stiffness, bushing.damping)):
        for value, w in _modes(np.array(matrix)):
            along = [(key, weight * c) for c, part in zip(w, deflections, strict=True) if c for key, weight in part]
            laws = (0.0, value) if is_damper else (value, 0.0)
            paths.append(SpringPath(f"{bushing.name}[{len(paths) + 1}]", along, *laws))
    return paths, bases


def _modes(matrix: NDArray[np.float64]) -> Iterator[tuple[float, list[float]]]:
    """Return the eigenvalues that are not zero, and their eigenvectors; the axes where the matrix is diagonal."""
    diagonal = not (matrix - np.diag(np.diag(matrix))).any()
    values, vectors = (np.diag(matrix), np.eye(6)) if diagonal else np.linalg.eigh(matrix)
    for value, w in zip(values.tolist(), vectors.T.tolist(), strict=True):
        if abs(value) > EIGENVALUE_ROUNDING_TOLERANCE * np.abs(values).max():
            yield value, w
