"""The shape of a mechanism in a configuration, as points in space, and on axes of a plane or of space in perspective.

A body is drawn as the line or polygon through everything that is attached to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.models.mechanism import Force, LineForce, MechanismDescription, PointSpring
from fmilin.models.mechanism.multibody_system import System
from fmilin.models.mechanism.part import Vector
from fmilin.models.mechanism.parts import Joint
from fmilin.models.mechanism.recursions import positions
from fmilin.report.figures import COLORS, INK, QUIET
from fmilin.report.mechanism_solids import create_box, create_wheel, create_zigzag, cut_spring

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
SLIDING = ("prismatic", "cylindrical")
POINT_QUANTITIES = ("position", "velocity", "acceleration", "accelerometer")


@dataclass(frozen=True)
class BodyShape:
    """One body, or what belongs to it."""

    body: str
    # (k, 3), in m, seen from the ground, in the order in which they are connected; closed when there are three or more
    points: Floats
    number: int = 0  # of the body: it decides the colour


@dataclass(frozen=True)
class Posture:
    """Everything that is drawn of a mechanism, in m, seen from the ground."""

    bodies: tuple[BodyShape, ...]
    solids: tuple[BodyShape, ...]  # boxes and wheels, as paths along their edges
    tubes: tuple[Floats, ...]  # each (2, 3), outer halves of what slides in each other
    rails: tuple[Floats, ...]  # each (2, 3), directions along which something slides on the ground
    # pins, grounded, closing: (k, 3), joints between bodies, joints at the ground, and where loops were closed
    pins: Floats
    grounded: Floats
    closing: Floats
    springs: tuple[Floats, ...]  # each (2, 3)
    centers: Floats  # (k, 3), centres of mass
    planes: tuple[tuple[Floats, Floats], ...] = ()  # point and unit normal of each plane on which wheels roll

    @property
    def all_points(self) -> Floats:
        """Every point, shape (k, 3)."""
        outlines = [shape.points for shape in (*self.bodies, *self.solids)]
        parts = [*outlines, *self.springs, self.pins, self.grounded, self.centers]
        return np.concatenate([part.reshape(-1, 3) for part in parts])


class Shapes:
    """Draws a mechanism in any configuration; ``size`` is its greatest extent at the start, in m."""

    def __init__(self, description: MechanismDescription) -> None:
        self.description = description
        self.system = System(description)
        self.attached = self._attachments()
        self.size = float(np.max(np.ptp(self.points(self.start), axis=0))) or 1.0

    @property
    def _lines(self) -> list[PointSpring | LineForce]:
        forces = [i for i in self.description.inputs if isinstance(i, LineForce)]
        return [*self.description.springs, *forces]

    @property
    def plane(self) -> Floats | None:
        """The normal of a plane mechanism, shape (3,): all axes are parallel and all slides across; else None."""
        X = positions(self.system.tree, self.start)
        tree = self.system.tree
        turns = np.einsum("kij,kj->ki", X[tree.L, :3, :3], tree.axes[:, :3])
        slides = np.einsum("kij,kj->ki", X[tree.L, :3, :3], tree.axes[:, 3:])
        spinning = turns[np.linalg.norm(turns, axis=1) > 0.5]
        if not len(spinning):
            return None
        n = spinning[0]
        parallel = np.linalg.norm(np.cross(spinning, n), axis=1).max(initial=0.0) < 1e-9
        flat = np.abs(slides @ n).max(initial=0.0) < 1e-9
        return n if parallel and flat else None

    @property
    def start(self) -> Floats:
        """Positions of the joints at the start, shape (n_q,)."""
        return np.array([q for joint in self.system.description.joints for q in joint.position])

    def posture(self, q: Floats) -> Posture:
        """Return everything that is drawn at positions q (n_q,)."""
        X = np.asarray(positions(self.system.tree, q))
        d = self.description
        joints = [j for j in d.joints if j.type != "fixed"]
        at = {j.name: self._at(X, j.parent, j.placement.position) for j in d.joints}
        grounded = [at[j.name] for j in joints if j.parent == d.ground and j.type not in ("prismatic", "free")]
        grounded += [self._at(X, body, point) for body, point in self._ends_of_loops() if body == d.ground]
        pins = [at[j.name] for j in joints if j.parent != d.ground and j.type not in SLIDING]
        closing = [self._at(X, loop.second, loop.second_placement.position) for loop in d.loops]
        lines = dict.fromkeys(((s.first, s.first_point), (s.second, s.second_point)) for s in self._lines)
        springs = [np.stack([self._at(X, *end) for end in ends]) for ends in lines]
        numbers = {body: k for k, body in enumerate(name for name, points in self.attached.items() if points)}
        solid_bodies = {body for body, _ in self.solids}
        bodies = tuple(
            BodyShape(body, self._body(X, body), number)
            for body, number in numbers.items()
            if len(self.attached[body]) > 1 or body not in solid_bodies
        )
        solids = tuple(
            BodyShape(body, np.stack([self._at(X, body, point) for point in path]), numbers.get(body, 0))
            for body, path in self.solids
        )
        drawn = (*bodies, *solids)
        fixed_size_points = _stack_points([*(point for shape in drawn for point in shape.points), *pins, *grounded])
        return Posture(
            bodies=bodies,
            solids=solids,
            tubes=tuple(self._tube(X, j) for j in joints if j.type in SLIDING and j.parent != d.ground),
            rails=tuple(self._rail(X, j) for j in joints if j.type == "prismatic" and j.parent == d.ground),
            pins=_stack_points(pins),
            grounded=_stack_points(grounded),
            closing=_stack_points(closing),
            springs=tuple(cut_spring(spring, fixed_size_points) for spring in springs),
            centers=_stack_points(self._at(X, b.name, b.center) for b in d.bodies if b.mass is not None),
            planes=tuple((np.array(p), np.array(n) / np.linalg.norm(n)) for p, n in self._planes),
        )

    @property
    def _planes(self) -> list[tuple[Vector, Vector]]:
        return list(dict.fromkeys((wheel.point, wheel.normal) for wheel in self.description.wheels))

    def points(self, q: Floats) -> Floats:
        """Return all points of all bodies in an order that does not depend on the configuration, shape (k, 3)."""
        X = np.asarray(positions(self.system.tree, q))
        all_points = [(body, point) for body, points in self.attached.items() for point in points]
        all_points += [(body, point) for body, path in self.solids for point in path]
        return _stack_points(self._at(X, body, point) for body, point in all_points)

    def _attachments(self) -> dict[str, list[tuple[float, float, float]]]:
        """Return the points of each body at which something is attached, in its frame."""
        d = self.description
        attached: dict[str, list[tuple[float, float, float]]] = {body.name: [] for body in d.bodies}
        points_of_bodies: list[tuple[str, tuple[float, float, float]]] = []
        for j in d.joints:
            points_of_bodies += [(j.parent, j.placement.position), (j.child, j.child_placement.position)]
        points_of_bodies += self._ends_of_loops()
        for s in self._lines:
            points_of_bodies += [(s.first, s.first_point), (s.second, s.second_point)]
        points_of_bodies += [(sensor.of, sensor.point) for sensor in d.sensors if sensor.quantity in POINT_QUANTITIES]
        points_of_bodies += [(force.body, force.point) for force in d.inputs if isinstance(force, Force)]
        points_of_bodies += [(marker.body, marker.point) for marker in d.markers]
        points_of_bodies += [(skate.frame or skate.body, skate.point) for skate in d.skates]
        for body, point in points_of_bodies:
            if body in attached and not any(np.allclose(point, p, atol=1e-9) for p in attached[body]):
                attached[body].append(point)
        self.stems = {
            j.child: j for j in d.joints if j.type in SLIDING and j.parent != d.ground and len(attached[j.child]) == 1
        }
        self.solids: list[tuple[str, Floats]] = [(wheel.body, create_wheel(wheel)) for wheel in d.wheels]
        has_shape = {wheel.body for wheel in d.wheels} | set(self.stems)
        has_shape |= {joint.parent for joint in self.stems.values()}
        for part in d.bodies:  # a single point shows no body: its centre of mass does, and a box of the same inertia
            points = attached[part.name]
            if len(points) > 1 or part.name in self.stems:
                continue
            if points and part.mass is not None and not np.allclose(part.center, points[0]):
                points.append(part.center)
            if part.name not in has_shape and (box := create_box(part)) is not None:
                self.solids.append((part.name, box))
        return attached

    def _ends_of_loops(self) -> list[tuple[str, tuple[float, float, float]]]:
        loops = self.description.loops
        ends = [((p.first, p.first_placement), (p.second, p.second_placement)) for p in loops]
        return [(body, placement.position) for both in ends for body, placement in both]

    def _body(self, X: Floats, body: str) -> Floats:
        """Return the outline of a body; of one that slides in another and carries nothing else, its inner half."""
        joint = self.stems.get(body)
        if joint is None:
            return outline(np.stack([self._at(X, body, p) for p in self.attached[body]]))
        foot, head = self._ends(X, joint)
        return np.stack((foot + 0.5 * (head - foot), head))

    def _ends(self, X: Floats, joint: Joint) -> tuple[Floats, Floats]:
        foot = self._at(X, joint.parent, joint.placement.position)
        return foot, self._at(X, joint.child, joint.child_placement.position)

    def _at(self, X: Floats, body: str, point: tuple[float, float, float] | Floats) -> Floats:
        link, offset = self.system.tree.frame_of[body]
        return np.asarray((X[link] @ offset @ np.array([*point, 1.0]))[:3])

    def _tube(self, X: Floats, joint: Joint) -> Floats:
        """Return the outer half of a telescope: from the frame on the parent over 55 percent of the way."""
        foot, head = self._ends(X, joint)
        return np.stack((foot, foot + 0.55 * (head - foot)))

    def _rail(self, X: Floats, joint: Joint) -> Floats:
        link, offset = self.system.tree.frame_of[joint.parent]
        frame = X[link] @ offset @ joint.placement.matrix
        here = self._at(X, joint.child, joint.child_placement.position)
        along = 0.3 * self.size * frame[:3, :3] @ np.array(joint.axis)
        return np.stack((here - along, here + along))


def outline(points: Floats) -> Floats:
    """Return points (k, 3) in the order around their hull, seen across the plane that lies nearest to them."""
    if len(points) < 3:
        return points
    middle = points.mean(axis=0)
    _, sizes, axes = np.linalg.svd(points - middle)
    flat = (points - middle) @ axes[:2].T
    if sizes[1] < 1e-6 * sizes[0]:  # on a line
        return points[np.argsort(flat[:, 0])[[0, -1]]]
    from scipy.spatial import ConvexHull

    return np.asarray(points[ConvexHull(flat).vertices])


def _stack_points(points: Iterable[Floats]) -> Floats:
    listed = list(points)
    return np.stack(listed) if listed else np.empty((0, 3))


ZOOM_FACTOR = 1.3  # of mechanisms in space, on paper that is not narrow


@dataclass(frozen=True)
class View:
    """How space is seen: two directions of a plane, or in perspective with one direction upwards."""

    across: Floats | None
    up: Floats

    def flat(self, points: Floats) -> Floats:
        """Return points on paper: (k, 2) in a plane, (k, 3) with the third upwards."""
        if self.across is not None:
            return np.asarray(points @ np.stack((self.across, self.up)).T)
        side = np.eye(3)[int(np.argmin(np.abs(self.up)))]
        side = side - (side @ self.up) * self.up
        side = side / np.linalg.norm(side)
        return np.asarray(points @ np.stack((side, np.cross(self.up, side), self.up)).T)


def choose_view(shapes: Shapes) -> View:
    """Return how a mechanism is seen: a plane one across its plane, against gravity upwards."""
    n, gravity = shapes.plane, np.array(shapes.description.gravity)
    down = gravity if n is None else gravity - (gravity @ n) * n
    if np.linalg.norm(down) < 1e-9:  # weightless, or seen from above
        down = np.array([0.0, 0.0, -1.0]) if n is None or abs(n[2]) < 0.5 else np.array([0.0, -1.0, 0.0])
    up = -down / np.linalg.norm(down)
    if n is None:
        return View(None, up)
    across = np.cross(up, n)
    return View(across if across.sum() > 0 else -across, up)


@dataclass(frozen=True)
class MechanismAxes:
    """Axes of matplotlib and what is drawn on them."""

    axes: Any
    view: View
    size: float  # extent of everything, in m

    @classmethod
    def on(
        cls, figure: Figure, cell: Any, view: View, everything: Floats, title: str, *, space_below: float = 0.0
    ) -> MechanismAxes:
        """Return empty axes that hold all points at one scale, with a quiet title; ``space_below`` is in sizes."""
        points = view.flat(everything)
        low, high = points.min(axis=0), points.max(axis=0)
        low[-1] -= space_below * float(np.max(high - low))
        size = float(np.max(high - low)) or 1.0
        middle, half = (low + high) / 2, np.maximum((high - low) / 2, 0.12 * size) + 0.07 * size
        if view.across is not None:
            axes: Any = figure.add_subplot(cell)
            axes.set_aspect("equal")
        else:
            axes = figure.add_subplot(cell, projection="3d", computed_zorder=False)
            area = cell.get_position(figure)
            wide = area.width * figure.get_figwidth() / (area.height * figure.get_figheight())
            axes.set_box_aspect(tuple(half), zoom=ZOOM_FACTOR * min(max(wide, 0.65), 1.0))
            axes.view_init(elev=16, azim=_azimuth(points))
        for name, low_end, high_end in zip("xyz", middle - half, middle + half, strict=False):
            getattr(axes, f"set_{name}lim")(low_end, high_end)
        axes.set_axis_off()
        axes.set_title(title, fontsize=10, color=QUIET, loc="left")
        return cls(axes, view, size)

    def draw(self, posture: Posture, *, faint: bool = False, dashed: bool = False) -> None:
        """Draw a configuration: fully, as a faint trace, or dashed."""
        style = _Style(alpha=0.16 if faint else 0.5 if dashed else 1.0, line="--" if dashed else "-", full=not dashed)
        for points in posture.rails:
            self._line(points, QUIET, 0.9, style, line=":")
        for points in posture.springs:
            self._line(create_zigzag(points, self._across(points), self.size), QUIET, 1.1, style)
        for shape in posture.solids:
            self._line(shape.points, COLORS[shape.number % len(COLORS)], 1.2, style)
        for shape in posture.bodies:
            self._body(shape.points, COLORS[shape.number % len(COLORS)], style)
        for points in posture.tubes:
            self._line(points, INK, 1.2 if dashed else 5.0, style)
            if not dashed:
                self._line(points, "white", 2.6, style)
        if not dashed:
            self._marks(posture, style)

    def _marks(self, posture: Posture, style: _Style) -> None:
        self._points(posture.pins, style, marker="o", markersize=5.5, markerfacecolor="white", markeredgecolor=INK)
        closing = {"markersize": 7, "markerfacecolor": "white", "markeredgecolor": COLORS[1], "markeredgewidth": 1.6}
        self._points(posture.closing, style, marker="o", **closing)
        self._points(posture.grounded, style, marker="s" if self.view.across is None else "^", markersize=8, color=INK)
        if style.alpha == 1.0:
            self._points(posture.centers, style, marker="P", markersize=4.5, color=QUIET)

    def _body(self, points: Floats, color: str, style: _Style) -> None:
        if len(points) == 1:
            self._points(points, style, marker="s", markersize=11, color=color)
            return
        if len(points) > 2:
            if style.full:
                self._face(points, color, style)
            points = np.concatenate((points, points[:1]))
        self._line(points, color, 2.6 if style.full else 1.5, style)

    def _face(self, points: Floats, color: str, style: _Style) -> None:
        flat = self.view.flat(points)
        if self.view.across is not None:
            self.axes.fill(*flat.T, color=color, alpha=0.16 * style.alpha, linewidth=0)
            return
        from mpl_toolkits.mplot3d.art3d import Poly3DCollection

        self.axes.add_collection3d(Poly3DCollection([flat], facecolors=color, alpha=0.16 * style.alpha))

    def _line(self, points: Floats, color: str, width: float, style: _Style, line: str = "") -> None:
        self.axes.plot(*self.view.flat(points).T, color=color, linewidth=width, linestyle=line or style.line,
                       alpha=style.alpha, solid_capstyle="round")  # fmt: skip

    def _points(self, points: Floats, style: _Style, **look: Any) -> None:
        if len(points):
            self.axes.plot(*self.view.flat(points).T, linestyle="none", alpha=style.alpha, **look)

    def _across(self, points: Floats) -> Floats:
        """Return the direction in which a spring zigzags."""
        along = points[1] - points[0]
        back = np.cross(self.view.across, self.view.up) if self.view.across is not None else np.array([0.3, -0.9, 0.3])
        side = np.cross(along, back)
        length = float(np.linalg.norm(side))
        return np.asarray(side / length) if length > 0 else np.zeros(3)


@dataclass(frozen=True)
class _Style:
    alpha: float
    line: str
    full: bool


def tallness(view: View, everything: Floats) -> float:
    """Return height over width of what is drawn."""
    extent = np.ptp(view.flat(everything), axis=0)
    wide = extent[0] if view.across is not None else float(np.max(extent[:2]))
    return float(extent[-1] / wide) if wide > 0 else 1.0


def _azimuth(points: Floats) -> float:
    """Return from where to look, in degrees: a little off the direction that shows the greatest width."""
    _, _, axes = np.linalg.svd(points[:, :2] - points[:, :2].mean(axis=0))
    return float((np.degrees(np.arctan2(axes[0, 1], axes[0, 0])) + 90) % 180 - 90 - 65)
