"""The constraints of a mechanism: which rows hold a loop, a wheel or a skate, and the values g(q).

A loop is cut (Spencer (thesis), A.2.1) and written without the coordinates of virtual links (A.3.3): points that
coincide along directions, and axes that stay perpendicular; the Jacobian is that of (A.12) up to a regular factor. A
helical loop keeps its virtual link, because several turns of the screw are several positions. A coupling of joints may
be not a straight line, q = Q(s), s the leader's coordinate:

    g = q - Q(s),   G v = v - Q' s',   Gdot v = -Q'' s'^2.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Literal

import numpy as np
from numpy.polynomial.polynomial import polyder, polyval
from numpy.typing import NDArray

from fmilin.models.mechanism.fixed_rows import FixedRows, RowCollector
from fmilin.models.mechanism.markers import Markers
from fmilin.models.mechanism.mechanism_description import MechanismDescription
from fmilin.models.mechanism.mechanism_elements import Coupling, Wheel
from fmilin.models.mechanism.part import ORIGIN, perpendicular
from fmilin.models.mechanism.parts import Body, Joint, Loop
from fmilin.models.mechanism.tree import Array, Tree

AXES: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "revolute": ("bca", (("a", "b"), ("a", "c"))),
    "prismatic": ("bc", (("a", "b"), ("a", "c"), ("b", "c"))),
    "cylindrical": ("bc", (("a", "b"), ("a", "c"))),
    "universal": ("bca", (("b", "a"),)),
    "spherical": ("bca", ()),
    "planar": ("a", (("a", "b"), ("a", "c"))),
    "fixed": ("bca", (("a", "b"), ("a", "c"), ("b", "c"))),
    "point_on_line": ("bc", ()),
    "point_on_plane": ("a", ()),
}
"""Directions of the first body along which the origins coincide, and pairs of axes, that of the second body first,
which stay perpendicular; a is the axis, b the second axis, c = a x b."""


@dataclass(frozen=True)
class LoopConstraint:
    """One scalar constraint."""

    of: str  # the loop, coupling, wheel or skate
    index: int  # which of its constraints, from 1
    row: tuple[str, int]  # the row, as :class:`RowCollector` named it
    level: Literal["position", "velocity"] = "position"
    base: int = 0  # of a line: the distance of this point along the direction is measured
    constant: float = 0.0  # subtracted from the value
    # of a coupling: joints and the factors of their coordinates; the leader last
    terms: tuple[tuple[str, float], ...] = ()
    powers: tuple[float, ...] = ()  # of a coupling: the factors of the leader's second and higher powers


def with_virtual_links(description: MechanismDescription) -> MechanismDescription:
    """Return the description with a virtual link (A.2.2) for each helical loop, which is then held fast at its end."""
    helical = [loop for loop in description.loops if loop.type == "helical"]
    if not helical:
        return description
    bodies, joints, fixed = [], [], {}
    for loop in helical:
        link = f"{loop.name}.virtual"
        bodies.append(Body(link, None))
        joints.append(
            Joint(loop.name, "helical", loop.first, link, loop.first_placement, axis=loop.axis, pitch=loop.pitch,
                  position=loop.turn)
        )  # fmt: skip
        fixed[loop.name] = replace(loop, name=f"{loop.name}.end", type="fixed", first=link, first_placement=ORIGIN)
    return replace(
        description,
        bodies=(*description.bodies, *bodies),
        joints=(*description.joints, *joints),
        loops=tuple(fixed.get(loop.name, loop) for loop in description.loops),
    )


def collect_loop_constraints(
    description: MechanismDescription, markers: Markers, rows: RowCollector
) -> list[LoopConstraint]:
    """Add the rows of all loops, wheels and skates; return the constraints, those on positions first."""
    constraints: list[LoopConstraint] = []
    for loop in description.loops:
        constraints += _loop(loop, markers, rows)
    for coupling in description.couplings:
        constraints.append(_coupling(coupling, description.ground, markers, rows))
    for wheel in description.wheels:
        constraints += _wheel(wheel, description.ground, markers, rows)
    for skate in description.skates:
        frame, ends = skate.frame or skate.body, (description.ground, skate.body)
        point = markers.point(frame, skate.point)
        row = rows.line(ends, point, markers.direction(frame, skate.direction))
        constraints.append(LoopConstraint(skate.name, 1, row, "velocity", point))
    return sorted(constraints, key=lambda c: c.level == "velocity")


def _loop(loop: Loop, markers: Markers, rows: RowCollector) -> list[LoopConstraint]:
    bodies = (loop.first, loop.second)
    first = markers.point(loop.first, loop.first_placement.position)
    second = markers.point(loop.second, loop.second_placement.position)
    if loop.type == "rod":
        return [LoopConstraint(loop.name, 1, rows.rod(bodies, (first, second)), constant=loop.length**2 / 2)]
    a, b = np.array(loop.axis), np.array(loop.second_axis)
    axes = {"a": a, "b": b, "c": np.cross(a, b)}
    on_first = {k: markers.direction(loop.first, tuple(loop.first_placement.R @ e)) for k, e in axes.items()}
    on_second = {k: markers.direction(loop.second, tuple(loop.second_placement.R @ e)) for k, e in axes.items()}
    along, across = AXES[loop.type]
    constraints = [
        LoopConstraint(loop.name, i, rows.line(bodies, second, on_first[k]), base=first)
        for i, k in enumerate(along, start=1)
    ]
    pairs = [rows.hinge(bodies, (on_first[on_1], on_second[on_2])) for on_2, on_1 in across]
    return constraints + [LoopConstraint(loop.name, i, row) for i, row in enumerate(pairs, start=len(along) + 1)]


def _coupling(coupling: Coupling, ground: str, markers: Markers, rows: RowCollector) -> LoopConstraint:
    terms: tuple[tuple[str, float], ...] = ((coupling.joint, 1.0),)
    terms += tuple((name, -ratio) for name, ratio in zip(coupling.leaders, coupling.ratios, strict=True))
    if coupling.leader:
        terms = (*terms, (coupling.leader, -coupling.ratio))
    freedoms = tuple((rows.tree.speeds_of[name][0], factor) for name, factor in terms)
    row = rows.coupling(ground, markers.direction(ground, (0.0, 0.0, 1.0)), freedoms)
    return LoopConstraint(coupling.name, 1, row, constant=coupling.offset, terms=terms, powers=tuple(coupling.powers))


def _wheel(wheel: Wheel, ground: str, markers: Markers, rows: RowCollector) -> list[LoopConstraint]:
    center = markers.point(wheel.body, wheel.center)
    axle = markers.direction(wheel.body, wheel.axis)
    n = np.array(wheel.normal)
    lowest = markers.contact(center, axle, wheel.normal, (wheel.radius, wheel.tube))
    t = np.array(perpendicular(wheel.normal))
    base = markers.point(ground, wheel.point)
    constraints = []
    for i, e in enumerate((n, t, np.cross(n, t)), start=1):
        row = rows.line((ground, wheel.body), lowest, markers.direction(ground, tuple(e.tolist())))
        constraints.append(LoopConstraint(wheel.name, i, row, "position" if i == 1 else "velocity", base))
    return constraints


class PositionValues:
    """g(q) of the constraints on positions among others, from their markers; of couplings from ``slopes`` q."""

    def __init__(self, constraints: Sequence[LoopConstraint], rows: FixedRows, tree: Tree) -> None:
        constraints = [c for c in constraints if c.level == "position"]
        self.rows = rows
        self.positions = p = np.array([rows.position(c.row) for c in constraints], dtype=np.intp)  # (m_q,), among rows
        self.bases = np.array([c.base for c in constraints], dtype=np.intp)
        self.constants = np.array([c.constant for c in constraints])
        coupled = [c for c in constraints if c.terms]
        self.slopes = np.zeros((len(coupled), tree.n_q))
        for i, coupling in enumerate(coupled):
            for joint, factor in coupling.terms:
                self.slopes[i, tree.coordinates_of[joint][0]] += factor
        lines, rods, couples, _ = np.cumsum(rows.sizes)
        self.kinds = np.flatnonzero(p < lines), np.flatnonzero((p >= lines) & (p < rods)), np.flatnonzero(p >= couples)
        couplings = np.flatnonzero((p >= rods) & (p < couples))
        self.order = np.argsort(np.concatenate((*self.kinds, couplings)))

    def __len__(self) -> int:
        return len(self.constants)

    def __call__(self, p: Array, e: Array, q: Array) -> Array:
        """Return g, shape (..., m_q), for points p, directions e and coordinates q."""
        rows, (lines, rods, hinges), values = self.rows, self.kinds, [np.zeros((*p.shape[:-2], 0))]
        if len(lines):
            i = self.positions[lines]
            apart = p[..., rows.line_points[i], :] - p[..., self.bases[lines], :]
            values.append((e[..., rows.line_directions[i], :] * apart).sum(axis=-1))
        if len(rods):
            i = self.positions[rods] - rows.sizes[0]
            d = p[..., rows.rod_second[i], :] - p[..., rows.rod_first[i], :]
            values.append((d * d).sum(axis=-1) / 2)
        if len(hinges):
            i = self.positions[hinges] - sum(rows.sizes[:3])
            values.append((e[..., rows.hinge_first[i], :] * e[..., rows.hinge_second[i], :]).sum(axis=-1))
        if len(self.slopes):
            values.append(q @ self.slopes.T)
        if len(values) <= 2:  # constraints of one sort, or none
            return values[-1] - self.constants
        return np.concatenate(values[1:], axis=-1)[..., self.order] - self.constants


class Curvatures:
    """Second and higher powers of leaders in Q, of the couplings that have some."""

    def __init__(self, constraints: Sequence[LoopConstraint], tree: Tree) -> None:
        bent = [(i, c) for i, c in enumerate(constraints) if any(c.powers)]
        leaders = [c.terms[-1][0] for _, c in bent]
        self.of = np.array([i for i, _ in bent], dtype=np.intp)  # (k,), the constraints
        self.coordinate = np.array([tree.coordinates_of[name][0] for name in leaders], dtype=np.intp)
        self.freedom = np.array([tree.speeds_of[name][0] for name in leaders], dtype=np.intp)
        # (n + 2, k), factors of 1, s, s^2, ...
        self.factors = np.array(list(zip_longest(*((0.0, 0.0, *c.powers) for _, c in bent), fillvalue=0.0)))

    def __len__(self) -> int:
        return len(self.of)

    def _term(self, q: Array, derivative: int) -> Array:
        """Return a derivative of -Q, shape (..., k)."""
        return -polyval(q[..., self.coordinate], polyder(self.factors, derivative), tensor=False)

    def gaps(self, gaps: Array, q: Array) -> Array:
        """Return gaps (..., m_q) with these terms."""
        return _add_entries(gaps, (self.of,), self._term(q, 0))

    def jacobian(self, G: Array, q: Array) -> Array:
        """Return G (..., m, n) with these terms."""
        return _add_entries(G, (self.of, self.freedom), self._term(q, 1))

    def slips(self, slips: Array, q: Array, v: Array) -> Array:
        """Return G v (..., m) with these terms."""
        return _add_entries(slips, (self.of,), self._term(q, 1) * v[..., self.freedom])

    def drift(self, c: Array, q: Array, v: Array) -> Array:
        """Return Gdot v (..., m) with these terms."""
        return _add_entries(c, (self.of,), self._term(q, 2) * v[..., self.freedom] ** 2)

    def rate_columns(self, rate_q: Array, q: Array, v: Array) -> Array:
        """Return d(G v)/dtheta (..., m, n) with these terms."""
        return _add_entries(rate_q, (self.of, self.freedom), self._term(q, 2) * v[..., self.freedom])

    def columns(self, c_q: Array, c_v: Array, at: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        """Return d(G vdot + Gdot v) by theta and v, each (..., m, n), at q, v and vdot."""
        q, v, v_dot = at
        speed = v[..., self.freedom]
        by_q = self._term(q, 2) * v_dot[..., self.freedom] + self._term(q, 3) * speed**2
        entries = (self.of, self.freedom)
        return _add_entries(c_q, entries, by_q), _add_entries(c_v, entries, 2 * self._term(q, 2) * speed)

    def loads(self, rho_q: Array, q: Array, multipliers: Array) -> Array:
        """Return d(G' lambda)/dtheta (..., n, n), lambda held, added to what there is."""
        return _add_entries(rho_q, (self.freedom, self.freedom), self._term(q, 2) * multipliers[..., self.of])


def _add_entries(a: Array, entries: tuple[NDArray[np.intp], ...], terms: Array) -> Array:
    """Return an array with terms (..., k) added to entries (k) of its last axes; several may go to one."""
    axes = len(entries)
    stack = np.broadcast_shapes(a.shape[: a.ndim - axes], terms.shape[:-1])
    sums = np.broadcast_to(a, (*stack, *a.shape[a.ndim - axes :])).astype(np.result_type(a, terms))
    for k, at in enumerate(zip(*entries, strict=True)):
        sums[(..., *at)] = sums[(..., *at)] + terms[..., k]
    return sums
