"""Axes that mechanisms are drawn on: a plane, or space in perspective, and how bodies and joints look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.output.report.figures import COLORS, INK, QUIET
from fmilin.output.report.mechanism_shapes import Posture, Shapes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
ZOOM = 1.3  # of mechanisms in space, on paper that is not narrow


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


def view_of(shapes: Shapes) -> View:
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
    def on(cls, figure: Figure, cell: Any, view: View, everything: Floats, title: str) -> MechanismAxes:
        """Return empty axes that hold all points at one scale, with a quiet title."""
        points = view.flat(everything)
        low, high = points.min(axis=0), points.max(axis=0)
        size = float(np.max(high - low)) or 1.0
        middle, half = (low + high) / 2, np.maximum((high - low) / 2, 0.12 * size) + 0.07 * size
        if view.across is not None:
            axes: Any = figure.add_subplot(cell)
            axes.set_aspect("equal")
        else:
            axes = figure.add_subplot(cell, projection="3d", computed_zorder=False)
            area = cell.get_position(figure)
            wide = area.width * figure.get_figwidth() / (area.height * figure.get_figheight())
            axes.set_box_aspect(tuple(half), zoom=ZOOM * min(max(wide, 0.65), 1.0))
            axes.view_init(elev=16, azim=_azimuth(points))
        for name, low_end, high_end in zip("xyz", middle - half, middle + half, strict=False):
            getattr(axes, f"set_{name}lim")(low_end, high_end)
        axes.set_axis_off()
        axes.set_title(title, fontsize=10, color=QUIET, loc="left")
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
    """Return from where to look, in degrees: a little beside the direction that shows the greatest width."""
    _, _, axes = np.linalg.svd(points[:, :2] - points[:, :2].mean(axis=0))
    return float((np.degrees(np.arctan2(axes[0, 1], axes[0, 0])) + 90) % 180 - 90 - 65)


def _zigzag(points: Floats, side: Floats, size: float) -> Floats:
    """Return the corners of a spring between two points."""
    t = np.array([0.0, 0.18, *np.linspace(0.22, 0.78, 13), 0.82, 1.0])
    swing = np.array([0.0, 0.0, *(0.018 * size * (-1.0) ** np.arange(13)), 0.0, 0.0])
    return np.asarray(points[0] + t[:, None] * (points[1] - points[0]) + swing[:, None] * side)
