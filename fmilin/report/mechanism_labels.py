"""Around the picture of a mechanism: names of bodies, axes of the ground with a scale, the ground, and a legend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.models.mechanism import MechanismDescription
from fmilin.report.figures import COLORS, INK, QUIET, plain
from fmilin.report.mechanism_shapes import MechanismAxes, Posture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
ARROW_SIZE = 0.16  # of the axes of the ground, at most, in sizes of the picture
ARROW_MARGIN_POINTS = 8.0  # from the corner to the axes
MIN_ARROW_PART = 0.3  # of an axis that is seen: a shorter one points at the reader
HATCH_SIZE = 0.035  # half width of the hatched line under a joint of the ground
FONT_SIZE = 8.0
CHARACTER_WIDTH, LINE_HEIGHT = 0.62, 1.5  # of a label, in font sizes
PIN_SIZE_POINTS = 9.0  # of marks that a label does not cover
MAX_LABELS = 30  # bodies that are named
LABEL_DISTANCES = (7.0, 14.0, 22.0, 32.0, 44.0, 60.0, 80.0)  # points, from a body to its name
LEADER_DISTANCE = 20.0  # points, from which on a line leads to the name
DIRECTION_ANGLES = np.radians([20, 160, -20, 200, 70, 110, -70, -110, 0, 180])  # from a body to its name
LEGEND_STYLES: dict[str, dict[str, Any]] = {
    "ground": {"marker": "^", "markersize": 7, "color": INK},
    "joint": {"marker": "o", "markersize": 5.5, "markerfacecolor": "white", "markeredgecolor": INK},
    "joint that closes a loop": {
        "marker": "o", "markersize": 6.5, "markerfacecolor": "white", "markeredgecolor": COLORS[1],
        "markeredgewidth": 1.6,
    },
    "centre of mass": {"marker": "P", "markersize": 4.5, "color": QUIET},
}  # fmt: skip


def find_scale(size: float) -> float:
    """Return the largest of 1, 2, 5, 10, ... that is at most ``size``."""
    power = 10.0 ** math.floor(math.log10(size))
    return max(digit * power for digit in (1, 2, 5) if digit * power <= size * (1 + 1e-9))


def draw_axes_of_ground(panel: MechanismAxes, middle: Floats) -> None:
    """Draw the axes x, y, z of the ground in the lower left corner, as long there as at the point ``middle``."""
    panel.axes.apply_aspect()
    figure = panel.axes.figure
    scale = figure.dpi / 72
    length = find_scale(ARROW_SIZE * panel.size)
    pixels = _find_pixels(panel, np.concatenate((middle[None], middle + length * np.eye(3))))
    arrows = (pixels[1:] - pixels[0]) / scale
    base = np.array([panel.axes.bbox.x0, panel.axes.bbox.y0]) / scale + ARROW_MARGIN_POINTS
    corner = base - np.minimum(arrows, 0).min(axis=0)
    longest = float(np.linalg.norm(arrows, axis=1).max())
    style = {"arrowstyle": "-|>", "color": INK, "linewidth": 1.0, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 8}
    for name, arrow in zip("xyz", arrows, strict=True):
        size = float(np.linalg.norm(arrow))
        if size < MIN_ARROW_PART * longest:
            continue
        panel.axes.annotate("", corner + arrow, corner, xycoords="figure points", textcoords="figure points",
                            arrowprops=style, annotation_clip=False)  # fmt: skip
        panel.axes.annotate(name, corner + arrow * (1 + 7 / size), xycoords="figure points", fontsize=8.5, color=INK,
                            ha="center", va="center", annotation_clip=False)  # fmt: skip
    panel.axes.annotate(f"axes of the ground, {length:g} m long", base, (0, -ARROW_MARGIN_POINTS),
                        xycoords="figure points", textcoords="offset points", fontsize=FONT_SIZE, color=QUIET,
                        va="top", annotation_clip=False)  # fmt: skip


def draw_ground(panel: MechanismAxes, posture: Posture) -> None:
    """Hatch below the joints of the ground of a plane mechanism, and draw the planes on which wheels roll."""
    size = panel.size
    if panel.view.across is not None:
        for point in panel.view.flat(posture.grounded):
            _hatch(panel, point + np.array([0.0, -0.022 * size]), HATCH_SIZE * size)
    for point, normal in posture.planes:
        _draw_plane(panel, posture, point, normal)


def _hatch(panel: MechanismAxes, middle: Floats, half: float) -> None:
    """Draw a hatched line: the material is below it."""
    x, y = middle
    count = max(5, round(half / (0.012 * panel.size)))
    starts = np.linspace(x - half, x + half, count)
    tick = 0.016 * panel.size
    across = np.column_stack((starts, starts - tick, np.full(count, np.nan))).ravel()
    down = np.column_stack((np.full(count, y), np.full(count, y - tick), np.full(count, np.nan))).ravel()
    panel.axes.plot([x - half, x + half], [y, y], color=INK, linewidth=1.1, zorder=1)
    panel.axes.plot(across, down, color=INK, linewidth=0.6, zorder=1)


def _draw_plane(panel: MechanismAxes, posture: Posture, point: Floats, normal: Floats) -> None:
    """Draw the plane on which a wheel rolls, as far as the mechanism reaches."""
    points = posture.all_points
    on_plane = points - np.outer((points - point) @ normal, normal)
    side = np.cross(normal, np.eye(3)[int(np.argmin(np.abs(normal)))])
    side = side / np.linalg.norm(side)
    axes = np.stack((side, np.cross(normal, side)))
    flat = on_plane @ axes.T
    low, high = flat.min(axis=0) - 0.1 * panel.size, flat.max(axis=0) + 0.1 * panel.size
    foot = (point @ normal) * normal
    corners = np.array([[low[0], low[1]], [high[0], low[1]], [high[0], high[1]], [low[0], high[1]]]) @ axes + foot
    if panel.view.across is not None:
        drawn = panel.view.flat(corners)
        leftmost, rightmost = drawn[:, 0].min(), drawn[:, 0].max()
        _hatch(panel, np.array([(leftmost + rightmost) / 2, drawn[:, 1].mean()]), (rightmost - leftmost) / 2)
        return
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    patch = Poly3DCollection([panel.view.flat(corners)], facecolors=QUIET, edgecolors=QUIET, alpha=0.15, zorder=0)
    panel.axes.add_collection3d(patch)


def add_legend(figure: Figure, posture: Posture) -> None:
    """Say below the picture what the marks mean that occur in it."""
    from matplotlib.lines import Line2D

    marks = dict(zip(LEGEND_STYLES, (posture.grounded, posture.pins, posture.closing, posture.centers), strict=True))
    handles = [
        Line2D([], [], linestyle="none", label=label, **LEGEND_STYLES[label]) for label, at in marks.items() if len(at)
    ]
    if handles:
        figure.legend(handles=handles, loc="lower right", ncols=len(handles), frameon=False, fontsize=FONT_SIZE,
                      borderaxespad=0.2, handletextpad=0.2, columnspacing=1.2)  # fmt: skip


def name_bodies(panel: MechanismAxes, posture: Posture, description: MechanismDescription) -> None:
    """Write the name of each body next to it, where it covers neither a joint nor another name."""
    panel.axes.apply_aspect()
    shapes = {shape.body: shape.points for shape in (*posture.solids, *posture.bodies)}
    names = [body.name for body in description.bodies if body.name in shapes]
    marks = np.concatenate((posture.pins, posture.closing, posture.grounded))
    scale = panel.axes.figure.dpi / 72
    pin = PIN_SIZE_POINTS * scale
    boxes = [(x - pin / 2, y - pin / 2, x + pin / 2, y + pin / 2) for x, y in _find_pixels(panel, marks)]
    frame = panel.axes.figure.bbox
    for name in names[:MAX_LABELS]:
        text = plain(name, 24)
        anchor = _find_pixels(panel, shapes[name].mean(axis=0)[None])[0]
        width, height = CHARACTER_WIDTH * FONT_SIZE * len(text) * scale, LINE_HEIGHT * FONT_SIZE * scale
        box, distance = _find_position(anchor, width, height, scale, boxes, (frame.x0, frame.y0, frame.x1, frame.y1))
        boxes.append(box)
        middle = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        _write(panel, text, anchor, middle, scale, has_leader=distance >= LEADER_DISTANCE)
    if len(names) > MAX_LABELS:
        note = f"{MAX_LABELS} of {len(names)} bodies named"
        panel.axes.annotate(note, (1.0, 1.0), xycoords="axes fraction", fontsize=FONT_SIZE, color=QUIET, ha="right")


def _find_pixels(panel: MechanismAxes, points: Floats) -> Floats:
    """Return where points of space (k, 3) are in the figure, shape (k, 2), in pixels."""
    flat = panel.view.flat(points)
    if not len(flat):
        return np.empty((0, 2))
    if panel.view.across is None:
        from mpl_toolkits.mplot3d.proj3d import proj_transform

        x, y, _ = proj_transform(*flat.T, panel.axes.get_proj())
        flat = np.column_stack((x, y))
    return np.asarray(panel.axes.transData.transform(flat))


Box = tuple[float, float, float, float]  # left, bottom, right, top, in pixels


def _find_position(
    anchor: Floats, width: float, height: float, scale: float, boxes: Sequence[Box], frame: Box
) -> tuple[Box, float]:
    """Return the nearest free place of a label, and its distance in points; the farthest one if there is none."""
    position = ((0.0, 0.0, width, height), 0.0)
    for distance in LABEL_DISTANCES:
        for across, up in zip(np.cos(DIRECTION_ANGLES).tolist(), np.sin(DIRECTION_ANGLES).tolist(), strict=True):
            x = anchor[0] + distance * scale * across + (width / 2) * math.copysign(abs(across) > 0.2, across)
            y = anchor[1] + distance * scale * up
            box = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
            is_inside = box[0] > frame[0] and box[1] > frame[1] and box[2] < frame[2] and box[3] < frame[3]
            position = (box, distance)
            if is_inside and not any(overlap(box, other) for other in boxes):
                return position
    return position


def overlap(one: Box, other: Box) -> bool:
    """Whether two rectangles have common points."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _write(
    panel: MechanismAxes, text: str, anchor: Floats, middle: tuple[float, float], scale: float, *, has_leader: bool
) -> None:
    from matplotlib.patheffects import withStroke

    at = panel.axes.transData.inverted().transform(anchor)
    offset = ((middle[0] - anchor[0]) / scale, (middle[1] - anchor[1]) / scale)
    leader = {"arrowstyle": "-", "color": QUIET, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0} if has_leader else None
    panel.axes.annotate(text, at, offset, textcoords="offset points", fontsize=FONT_SIZE, color=INK, ha="center",
                        va="center", zorder=20, arrowprops=leader, annotation_clip=False, label=f"name of {text}",
                        path_effects=[withStroke(linewidth=2.5, foreground="white")])  # fmt: skip
