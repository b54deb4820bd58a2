"""Pictures of a mechanism: how it stands at a point, and how it moves in the modes of a linear model; also as a GIF."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ConstraintError, UsageError
from fmilin.models.mechanism.loop_assembly import assemble
from fmilin.models.mechanism.mechanism_description import MechanismDescription
from fmilin.report.figures import new_figure, plain
from fmilin.report.mechanism_labels import add_legend, draw_axes_of_ground, draw_ground, name_bodies
from fmilin.report.mechanism_shapes import MechanismAxes, Posture, Shapes, View, choose_view, tallness
from fmilin.support.animation import Animation

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec

    from fmilin.linear_model.model import LinearModel
    from fmilin.linear_model.modes import Mode
    from fmilin.model.interface import Model

Floats = NDArray[np.float64]
MODE_SHAPE_SIZE = 0.12  # how far a mode shape moves the point that moves most, in sizes of the mechanism
LEGEND_HEIGHT = 0.45  # inches
AXES_SPACE = 0.18  # below a mechanism, for the axes of the ground
SMALL_STEP_SIZE = 1e-4  # A first step along a mode, to learn how far it goes


def mechanism_figure(
    description: MechanismDescription,
    linear: LinearModel | None = None,
    *,
    states: Mapping[str, float] | None = None,
    title: str = "",
    modes: int = 3,
    caption: str = "at its start",
) -> Figure:
    """Return a mechanism at the point of ``linear``, else in the configuration ``states``, with its slowest modes.

    The ``caption`` says which configuration ``states`` are; that of a linear model is known.
    """
    shapes = Shapes(description)
    values = linear.point.states if linear is not None else states or {}
    q = read_joint_positions(shapes, values, strict=linear is not None)
    mode_shapes = [] if linear is None else find_moving_modes(linear, shapes)[:modes]
    view = choose_view(shapes)
    standing = shapes.posture(q)
    swings = [_swing(shapes, q, motion.mode) for motion in mode_shapes]
    everything = np.concatenate([p.all_points for p in (standing, *(p for pair in swings for p in pair))])
    ratios = [1.3, *([1.0] * len(mode_shapes))]
    height = min(max(5.2 * (tallness(view, everything) + AXES_SPACE), 2.8), 5.6) + 1.1
    figure = new_figure(5.2 + 4.0 * len(mode_shapes), height)
    cells = _row(figure, title or description.name, ratios, LEGEND_HEIGHT)
    when = caption
    if linear is not None:
        when = "in equilibrium" if linear.is_equilibrium else "at the operating point"
    main = MechanismAxes.on(figure, cells[0], view, everything, when, space_below=AXES_SPACE)
    draw_ground(main, standing)
    main.draw(standing)
    draw_axes_of_ground(main, everything.mean(axis=0))
    name_bodies(main, standing, description)
    add_legend(figure, standing)
    for cell, motion, (forth, back) in zip(cells[1:], mode_shapes, swings, strict=True):
        panel = MechanismAxes.on(figure, cell, view, everything, describe_eigenvalue(motion))
        panel.draw(standing, faint=True)
        panel.draw(back, dashed=True)
        panel.draw(forth)
    return figure


def _row(figure: Figure, name: str, ratios: Sequence[float], bottom: float = 0.1) -> list[SubplotSpec]:
    """Write a name above, and return the places of panels side by side below it."""
    height = figure.get_figheight()
    figure.text(0.02, 1 - 0.25 / height, plain(name, 60), fontsize=13.5, fontweight="bold", va="center")
    edges = {"left": 0.02, "right": 0.99, "bottom": bottom / height, "top": 1 - 0.75 / height, "wspace": 0.05}
    grid = figure.add_gridspec(1, len(ratios), width_ratios=ratios, **edges)
    return [grid[i] for i in range(len(ratios))]


def describe_eigenvalue(motion: ModeShapes) -> str:
    """Return what eigenvalues a motion has, in words."""
    mode, real = motion.mode, motion.real
    if mode.is_oscillatory:
        damped = f", damping {mode.damping_ratio:.3g}" if abs(mode.damping_ratio) > 1e-9 else ""
        return f"{mode.frequency:.4g} rad/s{damped}"
    numbers = [f"{value:+.4g}" if abs(value) > 1e-9 else "0" for value in real]
    if len(real) == 2 and numbers[0][1:] == numbers[1][1:]:
        return f"eigenvalues ±{abs(real[0]):.4g} 1/s"
    return f"eigenvalue{'s' if len(numbers) > 1 else ''} {' and '.join(numbers)} 1/s"


def read_joint_positions(shapes: Shapes, values: Mapping[str, float], *, strict: bool) -> Floats:
    """Return the positions of the joints, by the names of the states."""
    q = shapes.start.copy()
    names = shapes.system.tree.state_names[0]
    if strict and not set(names) <= set(values):
        missing = next(n for n in names if n not in values)
        raise UsageError(
            f"The linear model is not that of the mechanism '{shapes.description.name}': it has no '{missing}'. "
            "Linearize the model that you draw."
        )
    for i, name in enumerate(names):
        q[i] = values.get(name, q[i])
    return q


@dataclass(frozen=True)
class ModeShapes:
    """A mode with the shape of the positions, and the real eigenvalues that share it: there and back."""

    mode: Mode
    real: tuple[float, ...]


def find_moving_modes(linear: LinearModel, shapes: Shapes) -> list[ModeShapes]:
    """Return the modes that move something, those with the same shape once."""
    motions: list[ModeShapes] = []
    positions = [linear.full_states.index_of(n) for n in shapes.system.tree.state_names[0]]
    for each in linear.modes():
        mode = replace(each, shape=each.shape[positions])
        a, eigenvalue = _real(mode.shape), mode.eigenvalue.real
        if not a.any():
            continue
        alike = (m for m in motions if m.real and _alike(a, _real(m.mode.shape)))
        same = None if mode.is_oscillatory else next(alike, None)
        if same is None:
            motions.append(ModeShapes(mode, () if mode.is_oscillatory else (eigenvalue,)))
        else:
            motions[motions.index(same)] = replace(same, real=(*same.real, eigenvalue))
    return motions


def _alike(a: Floats, b: Floats) -> bool:
    return bool(abs(a @ b) > (1 - 1e-6) * np.linalg.norm(a) * np.linalg.norm(b))


def _real(shape: NDArray[np.complex128]) -> Floats:
    """Return a shape turned so that its largest entry is real, and 1."""
    largest = shape[np.argmax(np.abs(shape))] if len(shape) else 0.0
    return np.asarray((shape / largest).real) if abs(largest) > 1e-12 else np.zeros(len(shape))


def _swing(shapes: Shapes, q: Floats, mode: Mode) -> tuple[Posture, Posture]:
    """Return the two ends of a swing: along the mode, then back onto the closed loops."""
    a = _real(mode.shape)
    step = swing_step(shapes, q, a)
    return close_loops(shapes, q + step * a), close_loops(shapes, q - step * a)


def swing_step(shapes: Shapes, q: Floats, a: Floats) -> float:
    """Return how far to go along positions ``a`` so that the point that moves most goes visibly far."""
    farthest = float(np.max(np.linalg.norm(shapes.points(q + SMALL_STEP_SIZE * a) - shapes.points(q), axis=1)))
    return MODE_SHAPE_SIZE * shapes.size * SMALL_STEP_SIZE / max(farthest, 1e-9 * shapes.size)


def close_loops(shapes: Shapes, q: Floats) -> Posture:
    """Return the nearest configuration to q with closed loops; that of q itself if there is none."""
    joints, rest = [], q
    for joint in shapes.system.description.joints:
        count = len(joint.position)
        if joint.name in {j.name for j in shapes.description.joints}:
            joints.append(replace(joint, position=tuple(rest[:count].tolist())))
        rest = rest[count:]
    try:
        assembled = assemble(replace(shapes.description, joints=joints), fixed_states=())
    except ConstraintError:
        return shapes.posture(q)
    return shapes.posture(Shapes(assembled.description).start)


FRAME_COUNT = 24
FRAME_TIME_MS = 60  # each frame is seen
MAX_MODES = 3
PICTURE_RESOLUTION_DPI = 80


@dataclass(frozen=True)
class MovingMechanism:
    """A mechanism that swings in the modes of its linear model with these numbers, the three slowest by default."""

    description: MechanismDescription
    linear: LinearModel
    numbers: Sequence[int] | None = None


def animate_modes(linear: LinearModel, model: Model, numbers: Sequence[int] | None = None) -> Animation:
    """Return a mechanism that moves in modes of its linear model, the three slowest by default."""
    description = getattr(model, "description", None)
    if not isinstance(description, MechanismDescription):
        raise UsageError(
            f"'{model.info.name}' is not a mechanism: it has no bodies and joints that could be drawn. "
            "lin.plot.modes() draws the shapes of its modes as bars."
        )
    return Animation(mechanism_motion(description, linear, numbers=numbers), f"modes of {description.name}")


def mechanism_motion(
    description: MechanismDescription, linear: LinearModel, *, numbers: Sequence[int] | None = None
) -> bytes:
    """Return a GIF that swings in modes of joints, the three slowest by default, undamped, every frame on the loops."""
    shapes = Shapes(description)
    q = read_joint_positions(shapes, linear.point.states, strict=True)
    motions = find_moving_modes(linear, shapes)
    if not motions:
        raise UsageError(f"No mode of '{description.name}' moves a joint: there is nothing to animate.")
    chosen = list(range(1, min(len(motions), MAX_MODES) + 1)) if numbers is None else list(numbers)
    if wrong := [n for n in chosen if not 1 <= n <= len(motions)]:
        raise UsageError(f"There is no mode {wrong[0]}: modes 1 to {len(motions)} move a joint, slowest first.")
    titles = [f"{n}: {describe_eigenvalue(motions[n - 1])}" for n in chosen]
    swings = [_swing_of_frames(shapes, q, motions[n - 1]) for n in chosen]
    view, standing = choose_view(shapes), shapes.posture(q)
    everything = np.concatenate([p.all_points for swing in swings for p in swing] + [standing.all_points])
    frames = [
        _frame(description.name, view, everything, standing, titles, [swing[k] for swing in swings])
        for k in range(FRAME_COUNT)
    ]
    from PIL import Image

    palette = frames[0].quantize(64, method=Image.Quantize.FASTOCTREE)
    quantized_frames = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    buffer = io.BytesIO()
    quantized_frames[0].save(
        buffer,
        format="GIF",
        save_all=True,
        append_images=quantized_frames[1:],
        duration=FRAME_TIME_MS,
        loop=0,
        optimize=True,
    )
    return buffer.getvalue()


def _swing_of_frames(shapes: Shapes, q: np.ndarray, motion: ModeShapes) -> list[Posture]:
    shape = motion.mode.shape
    shape = shape / shape[np.argmax(np.abs(shape))]
    angles = 2 * np.pi * np.arange(FRAME_COUNT) / FRAME_COUNT
    step = swing_step(shapes, q, shape.real)
    return [close_loops(shapes, q + step * (shape * np.exp(1j * angle)).real) for angle in angles]


def _frame(
    name: str, view: View, everything: np.ndarray, standing: Posture, titles: Sequence[str], postures: Sequence[Posture]
) -> Any:
    from PIL import Image

    height = min(max(4.4 * tallness(view, everything), 2.4), 4.8) + 0.75
    figure = new_figure(4.6 * len(postures) + 0.2, height, dpi=PICTURE_RESOLUTION_DPI)
    cells = _row(figure, name, [1.0] * len(postures))
    for cell, title, posture in zip(cells, titles, postures, strict=True):
        panel = MechanismAxes.on(figure, cell, view, everything, title)
        panel.draw(standing, faint=True)
        panel.draw(posture)
    figure.canvas.draw()
    return Image.fromarray(np.asarray(figure.canvas.buffer_rgba())[..., :3].copy())  # type: ignore[attr-defined]
