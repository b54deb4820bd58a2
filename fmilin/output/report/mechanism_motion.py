"""Mode shapes as a moving mechanism: an animated GIF of one swing, for ever."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fmilin.ground.errors import UsageError
from fmilin.native.mechanism.description import MechanismDescription
from fmilin.output.report.figures import QUIET, new_figure, plain
from fmilin.output.report.mechanism_canvas import Canvas, View, tallness, view_of
from fmilin.output.report.mechanism_picture import Motion, closed, moving, named, positions_at, swing_step
from fmilin.output.report.mechanism_shapes import Posture, Shapes

if TYPE_CHECKING:
    from fmilin.linear_model.model import LinearModel

__all__ = ["mechanism_motion"]

FRAMES = 24
MILLISECONDS = 60
"""Each frame is seen."""
MOST_MODES = 3
DPI = 80


def mechanism_motion(
    description: MechanismDescription, linear: LinearModel, *, numbers: Sequence[int] | None = None
) -> bytes:
    """Return a GIF in which a mechanism swings in its modes, each at the same pace and without its damping.

    Every frame lies on the closed loops.

    ``linear``: its point and its modes. ``numbers``: which modes, counted from 1 among those that move a joint, slowest
    first; the three slowest by default.
    """
    shapes = Shapes(description)
    q = positions_at(shapes, linear.point.states, strict=True)
    motions = moving(linear, shapes)
    if not motions:
        raise UsageError(f"No mode of '{description.name}' moves a joint: there is nothing that could be animated.")
    chosen = list(range(1, min(len(motions), MOST_MODES) + 1)) if numbers is None else list(numbers)
    if wrong := [n for n in chosen if not 1 <= n <= len(motions)]:
        raise UsageError(f"There is no mode {wrong[0]}: modes 1 to {len(motions)} move a joint, slowest first.")
    titles = [f"{n}: {named(motions[n - 1])}" for n in chosen]
    swings = [_swing(shapes, q, motions[n - 1]) for n in chosen]
    view, standing = view_of(shapes), shapes.posture(q)
    everything = np.concatenate([p.all_points for swing in swings for p in swing] + [standing.all_points])
    frames = [
        _frame(description.name, view, everything, standing, titles, [swing[k] for swing in swings])
        for k in range(FRAMES)
    ]
    return _gif(frames)


def _swing(shapes: Shapes, q: np.ndarray, motion: Motion) -> list[Posture]:
    """Return the postures of one period."""
    shape = motion.mode.shape
    shape = shape / shape[np.argmax(np.abs(shape))]
    angles = 2 * np.pi * np.arange(FRAMES) / FRAMES
    step = swing_step(shapes, q, shape.real)
    return [closed(shapes, q + step * (shape * np.exp(1j * angle)).real) for angle in angles]


def _frame(
    name: str, view: View, everything: np.ndarray, standing: Posture, titles: Sequence[str], postures: Sequence[Posture]
) -> Any:
    from PIL import Image

    height = min(max(4.4 * tallness(view, everything), 2.4), 4.8) + 0.75
    figure = new_figure(4.6 * len(postures) + 0.2, height, dpi=DPI)
    figure.text(0.02, 1 - 0.25 / height, plain(name, 60), fontsize=13, fontweight="bold", va="center")
    grid = figure.add_gridspec(1, len(postures), left=0.02, right=0.99, bottom=0.02, top=1 - 0.75 / height, wspace=0.05)
    for k, (title, posture) in enumerate(zip(titles, postures, strict=True)):
        canvas = Canvas.on(figure, grid[k], view, everything)
        canvas.draw(standing, faint=True)
        canvas.draw(posture)
        canvas.axes.set_title(title, fontsize=10, color=QUIET, loc="left")
    figure.canvas.draw()
    return Image.fromarray(np.asarray(figure.canvas.buffer_rgba())[..., :3].copy())  # type: ignore[attr-defined]


def _gif(frames: Sequence[Any]) -> bytes:
    from PIL import Image

    palette = frames[0].quantize(64, method=Image.Quantize.FASTOCTREE)
    shown = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    buffer = io.BytesIO()
    shown[0].save(
        buffer, format="GIF", save_all=True, append_images=shown[1:], duration=MILLISECONDS, loop=0, optimize=True
    )
    return buffer.getvalue()
