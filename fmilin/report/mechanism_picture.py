"""Pictures of a mechanism: how it stands at a point, and how it moves in the modes of a linear model."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ConstraintError, UsageError
from fmilin.models.mechanism.assembly import assemble
from fmilin.models.mechanism.description import MechanismDescription
from fmilin.report.mechanism_shapes import Posture, Shapes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fmilin.linear_model import LinearModel
    from fmilin.modes import Mode

__all__ = ["mechanism_picture"]

Floats = NDArray[np.float64]

QUIET, INK = "#5f6368", "#202124"
COLORS = ("#0b5394", "#c0392b", "#2e8b57", "#b8860b", "#7b4ea3", "#137a7f", "#a04000", "#52606d")
REACH = 0.12
"""How far a mode shape moves the point that moves most, in sizes of the mechanism."""
SMALL = 1e-4
"""A first step along a mode, to learn how far it goes."""


def mechanism_picture(
    description: MechanismDescription,
    linear: LinearModel | None = None,
    *,
    states: Mapping[str, float] | None = None,
    title: str = "",
    modes: int = 3,
) -> bytes:
    """Return a PNG picture of a mechanism, and of its mode shapes beside it.

    A plane mechanism is drawn in its plane, any other in perspective.

    Parameters
    ----------
    description : MechanismDescription
    linear : LinearModel, optional
        Its point and its modes are drawn; a pair of complex eigenvalues is one mode.
    states : mapping of str to float, optional
        The posture, without ``linear``; the start by default.
    title : str
        The name of the mechanism when empty.
    modes : int
        How many mode shapes, the slowest first.

    Raises
    ------
    UsageError
        When the linear model is of another mechanism.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shapes = Shapes(description)
    values = linear.point.states if linear is not None else states or {}
    q = _positions(shapes, values, strict=linear is not None)
    shown = [] if linear is None else _moving(linear, shapes)[:modes]
    figure = Figure(figsize=(5.4 + 3.9 * len(shown), 5.0))
    FigureCanvasAgg(figure)
    figure.suptitle(title or description.name, fontsize=14, fontweight="bold", x=0.02, ha="left")
    view = _view(shapes, description)
    standing = shapes.posture(q)
    swings = [_swing(shapes, q, mode) for mode in shown]
    everything = np.concatenate([p.all_points for p in (standing, *(p for pair in swings for p in pair))])
    ratios = [1.35, *([1.0] * len(shown))]
    grid = figure.add_gridspec(1, len(ratios), width_ratios=ratios, left=0.03, right=0.98, bottom=0.04, top=0.84,
                               wspace=0.06)  # fmt: skip
    first = _Canvas.on(figure, grid[0], view, everything)
    first.draw(standing)
    first.axes.set_title(_when(linear), fontsize=10, color=QUIET, loc="left")
    for i, (mode, (forth, back)) in enumerate(zip(shown, swings, strict=True), start=1):
        canvas = _Canvas.on(figure, grid[i], view, everything)
        canvas.draw(standing, faint=True)
        canvas.draw(back, dashed=True)
        canvas.draw(forth)
        canvas.axes.set_title(_named(mode), fontsize=10, color=QUIET, loc="left")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120, metadata={"Software": ""})
    return buffer.getvalue()


def _when(linear: LinearModel | None) -> str:
    if linear is None:
        return "at its start"
    resting = not np.any(np.abs(linear.f0) > 1e-9)
    return "in equilibrium" if resting else "at the operating point"


def _named(mode: Mode) -> str:
    if mode.is_oscillatory:
        damped = f", damping {mode.damping_ratio:.3g}" if abs(mode.damping_ratio) > 1e-9 else ""
        return f"{mode.frequency:.4g} rad/s{damped}"
    return f"eigenvalue {mode.eigenvalue.real:+.4g} 1/s"


# ---------------------------------------------------------------------- postures


def _positions(shapes: Shapes, values: Mapping[str, float], *, strict: bool) -> Floats:
    """Return the positions of the joints, by the names of the states."""
    q = shapes.start.copy()
    names = shapes.system.tree.state_names[0]
    if strict and not set(names) <= set(values):
        missing = next(n for n in names if n not in values)
        raise UsageError(
            f"The linear model is not of the mechanism '{shapes.description.name}': it knows no '{missing}'. Linearize "
            "the model that you draw."
        )
    for i, name in enumerate(names):
        q[i] = values.get(name, q[i])
    return q


def _moving(linear: LinearModel, shapes: Shapes) -> list[Mode]:
    """Return the modes that move something; of two with the same shape (there and back) the first."""
    found: list[Mode] = []
    for mode in linear.modes():
        a = _direction(shapes, mode, linear.full_states.names)
        if not a.any():
            continue
        others = [_direction(shapes, m, linear.full_states.names) for m in found]
        if not any(abs(a @ b) > (1 - 1e-6) * np.linalg.norm(a) * np.linalg.norm(b) for b in others):
            found.append(replace(mode, shape=_in_order(shapes, mode, linear.full_states.names)))
    return found


def _in_order(shapes: Shapes, mode: Mode, names: Sequence[str]) -> NDArray[np.complex128]:
    positions = {name: i for i, name in enumerate(names)}
    return np.array([mode.shape[positions[n]] for n in shapes.system.tree.state_names[0]])


def _direction(shapes: Shapes, mode: Mode, names: Sequence[str]) -> Floats:
    """Return the positions' part of a mode, turned so that its largest entry is real, shape (n_q,)."""
    return _real(_in_order(shapes, mode, names))


def _real(shape: NDArray[np.complex128]) -> Floats:
    largest = shape[np.argmax(np.abs(shape))] if len(shape) else 0.0
    return np.asarray((shape / largest).real) if abs(largest) > 1e-12 else np.zeros(len(shape))


def _swing(shapes: Shapes, q: Floats, mode: Mode) -> tuple[Posture, Posture]:
    """Return the two ends of a swing: along the mode, then back onto the closed loops."""
    a = _real(mode.shape)
    here, near = shapes.posture(q).all_points, shapes.posture(q + SMALL * a).all_points
    size = float(np.max(np.ptp(here, axis=0)))
    step = REACH * size * SMALL / max(float(np.max(np.linalg.norm(near - here, axis=1))), 1e-9 * size)
    return _closed(shapes, q + step * a), _closed(shapes, q - step * a)


def _closed(shapes: Shapes, q: Floats) -> Posture:
    """Return the posture nearest to q whose loops are closed; that of q itself when there is none."""
    joints, rest = [], q
    for joint in shapes.system.description.joints:
        count = len(joint.position)
        if joint.name in {j.name for j in shapes.description.joints}:
            joints.append(replace(joint, position=tuple(rest[:count].tolist())))
        rest = rest[count:]
    try:
        found = assemble(replace(shapes.description, joints=joints), held=())
    except ConstraintError:
        return shapes.posture(q)
    return shapes.posture(Shapes(found.description).start)


# ---------------------------------------------------------------------- drawing


@dataclass(frozen=True)
class _View:
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


def _view(shapes: Shapes, description: MechanismDescription) -> _View:
    n, gravity = shapes.plane, np.array(description.gravity)
    down = gravity if n is None else gravity - (gravity @ n) * n
    if np.linalg.norm(down) < 1e-9:  # weightless, or seen from above
        down = np.array([0.0, 0.0, -1.0]) if n is None or abs(n[2]) < 0.5 else np.array([0.0, -1.0, 0.0])
    up = -down / np.linalg.norm(down)
    if n is None:
        return _View(None, up)
    across = np.cross(up, n)
    return _View(across if across.sum() > 0 else -across, up)


@dataclass(frozen=True)
class _Canvas:
    axes: Any
    view: _View
    size: float

    @classmethod
    def on(cls, figure: Figure, cell: Any, view: _View, everything: Floats) -> _Canvas:
        """Return empty axes that hold all points at one scale."""
        points = view.flat(everything)
        low, high = points.min(axis=0), points.max(axis=0)
        size = float(np.max(high - low)) or 1.0
        middle, half = (low + high) / 2, np.maximum((high - low) / 2, 0.12 * size) + 0.07 * size
        if view.across is not None:
            axes = figure.add_subplot(cell)
            axes.set_xlim(middle[0] - half[0], middle[0] + half[0])
            axes.set_ylim(middle[1] - half[1], middle[1] + half[1])
            axes.set_aspect("equal")
            axes.set_axis_off()
            return cls(axes, view, size)
        axes = figure.add_subplot(cell, projection="3d", computed_zorder=False)
        for i, name in enumerate("xyz"):
            getattr(axes, f"set_{name}lim")(middle[i] - half[i], middle[i] + half[i])
        axes.set_box_aspect(half, zoom=1.35)
        axes.view_init(elev=16, azim=_azimuth(points))
        axes.set_axis_off()
        return cls(axes, view, size)

    def draw(self, posture: Posture, *, faint: bool = False, dashed: bool = False) -> None:
        """Draw a posture: fully, as a faint trace, or dashed."""
        style = _Style(alpha=0.16 if faint else 0.5 if dashed else 1.0, line="--" if dashed else "-", full=not dashed)
        for points in posture.rails:
            self._line(points, QUIET, 0.9, style, line=":")
        for points in posture.springs:
            self._line(_zigzag(points, self._across(points), self.size), QUIET, 1.1, style)
        for i, shape in enumerate(posture.bodies):
            self._body(shape.points, COLORS[i % len(COLORS)], style)
        for points in posture.tubes:
            self._line(points, INK, 5.0, style)
            self._line(points, "white", 2.6, style, line="-")
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


def _azimuth(points: Floats) -> float:
    """Return from where to look, in degrees: a little beside the direction that shows the greatest width."""
    level = points[:, :2] - points[:, :2].mean(axis=0)
    _, _, axes = np.linalg.svd(level)
    angle = np.degrees(np.arctan2(axes[0, 1], axes[0, 0]))
    return float((angle + 90) % 180 - 90 - 65)


def _zigzag(points: Floats, side: Floats, size: float) -> Floats:
    """Return the corners of a spring between two points."""
    t = np.array([0.0, 0.18, *np.linspace(0.22, 0.78, 13), 0.82, 1.0])
    swing = np.array([0.0, 0.0, *(0.018 * size * (-1.0) ** np.arange(13)), 0.0, 0.0])
    return np.asarray(points[0] + t[:, None] * (points[1] - points[0]) + swing[:, None] * side)
