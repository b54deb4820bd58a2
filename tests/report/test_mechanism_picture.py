"""What is drawn of a mechanism: points at the right places, modes that keep the loops closed.

A mechanism that moves in its modes.
"""

from __future__ import annotations

import io
from math import cos, pi, sin
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import fmilin as fl
from fmilin.errors import UsageError
from fmilin.models.mechanism import Body, Force, Joint, Mechanism, MechanismDescription, PointSpring, Wheel
from fmilin.report import mechanism_figure
from fmilin.report.figures import render_figure
from fmilin.report.mechanism_labels import find_scale
from fmilin.report.mechanism_picture import (
    FRAME_COUNT,
    MODE_SHAPE_SIZE,
    _swing,
    describe_eigenvalue,
    find_moving_modes,
    mechanism_motion,
)
from fmilin.report.mechanism_shapes import Shapes, choose_view, outline
from fmilin.report.mechanism_solids import create_box
from fmilin.systems import double_wishbone, furuta_pendulum, loader, slider_crank, stewart_platform
from tests.systems.linkages import four_bar_mechanism, parallel_robot


def size_of(png: bytes) -> tuple[int, int]:
    from matplotlib.image import imread

    height, width = imread(io.BytesIO(png)).shape[:2]
    return width, height


@pytest.mark.parametrize(("model", "plane"), [(loader(), True), (slider_crank(), True), (furuta_pendulum(), False),
                                              (double_wishbone(), False), (stewart_platform(), False)])  # fmt: skip
def test_plane_mechanisms_are_recognized(model: Mechanism, plane: bool) -> None:
    normal = Shapes(model.description).plane
    assert (normal is not None) == plane
    if normal is not None:
        np.testing.assert_allclose(np.abs(normal), [0, 0, 1], atol=1e-12)


def test_up_is_against_gravity_and_x_to_the_right() -> None:
    view = choose_view(Shapes(loader().description))
    np.testing.assert_allclose(view.flat(np.array([[2.0, 3.0, 9.0]])), [[2.0, 3.0]], atol=1e-12)
    np.testing.assert_allclose(
        choose_view(Shapes(furuta_pendulum().description)).flat(np.eye(3))[2], [0, 0, 1], atol=1e-12
    )


def test_the_four_bar_linkage_is_where_it_is() -> None:
    shapes = Shapes(four_bar_mechanism().description)
    phi = 1.1
    posture = shapes.posture(np.array([phi, -phi, phi]))
    ends = np.array([[cos(phi), sin(phi), 0], [1 + cos(phi), sin(phi), 0]])
    bodies = {shape.body: shape.points for shape in posture.bodies}
    np.testing.assert_allclose(bodies["coupler1"], ends, atol=1e-12)
    np.testing.assert_allclose(posture.grounded, [[0, 0, 0], [1, 0, 0]], atol=1e-12)
    np.testing.assert_allclose(posture.pins, ends[:1], atol=1e-12)
    np.testing.assert_allclose(posture.closing, ends[1:], atol=1e-12)
    np.testing.assert_allclose(posture.springs[0], [[0, 0, 0], ends[1]], atol=1e-12)
    np.testing.assert_allclose(posture.centers[0], ends[0] / 2, atol=1e-12)


def test_outlines_go_around() -> None:
    square = np.array([[0, 0, 1], [1, 1, 1], [1, 0, 1], [0.4, 0.5, 1], [0, 1, 1]], dtype=float)
    around = outline(square)
    assert len(around) == 4
    assert np.linalg.norm(np.roll(around, 1, axis=0) - around, axis=1).tolist() == [1.0] * 4
    line = outline(np.array([[0.5, 0, 0], [0, 0, 0], [2.0, 0, 0]]))
    assert sorted(line[:, 0].tolist()) == [0.0, 2.0]


@pytest.mark.parametrize("model", [loader(at_rest=True), stewart_platform()])
def test_mode_shapes_reach_as_far_as_they_should_with_closed_loops(model: Mechanism) -> None:
    shapes = Shapes(model.description)
    q = shapes.start
    motion = find_moving_modes(fl.linearize(model), shapes)[0]
    for end in _swing(shapes, q, motion.mode):
        assert end.closing.shape == (len(model.description.loops), 3)
        here = {s.body: s.points for s in shapes.posture(q).bodies}
        way = max(np.abs(s.points.mean(axis=0) - here[s.body].mean(axis=0)).max() for s in end.bodies)
        assert 0.3 * MODE_SHAPE_SIZE * shapes.size < way < 1.5 * MODE_SHAPE_SIZE * shapes.size


def test_both_ends_of_a_swing_differ_from_the_middle_for_every_mode() -> None:
    """The order of points around a body may change on the way: that must not count as motion."""
    model = stewart_platform()
    shapes = Shapes(model.description)
    middle = shapes.posture(shapes.start).closing
    for motion in find_moving_modes(fl.linearize(model), shapes):
        for end in _swing(shapes, shapes.start, motion.mode):
            assert np.linalg.norm(end.closing - middle, axis=1).max() > 0.3 * MODE_SHAPE_SIZE * shapes.size


def test_there_and_back_is_one_motion() -> None:
    model = parallel_robot()
    motions = find_moving_modes(fl.linearize(model), Shapes(model.description))
    assert [describe_eigenvalue(m) for m in motions] == ["eigenvalues ±1.626 1/s", "eigenvalues ±4.042 1/s"]
    (motion,) = find_moving_modes(fl.linearize(slider_crank()), Shapes(slider_crank().description))
    assert describe_eigenvalue(motion) == "7.393 rad/s"


def test_a_picture_has_one_panel_for_each_mode() -> None:
    model = slider_crank()
    linear = fl.linearize(model)
    alone = size_of(render_figure(mechanism_figure(model.description)))
    turned = size_of(
        render_figure(mechanism_figure(model.description, states={"phi": pi, "rod.q": -pi, "slider.q": 0.2}))
    )
    both = size_of(render_figure(mechanism_figure(model.description, linear, title="Slider and crank")))
    assert alone[0] == turned[0] < both[0]
    perspective = size_of(
        render_figure(mechanism_figure(furuta_pendulum().description, fl.linearize(furuta_pendulum()), modes=1))
    )
    assert perspective[0] == both[0]


def test_a_linear_model_of_something_else_is_refused() -> None:
    with pytest.raises(UsageError, match=r"is not that of the mechanism 'loader': it has no 'boom\.q'"):
        mechanism_figure(loader().description, fl.linearize(slider_crank()))


def test_a_gif_swings_there_and_back() -> None:
    model = four_bar_mechanism()
    linear = fl.linearize(model)
    image = Image.open(io.BytesIO(mechanism_motion(model.description, linear)))
    assert image.n_frames == FRAME_COUNT  # type: ignore[attr-defined]
    frames = []
    for k in range(FRAME_COUNT):
        image.seek(k)
        frames.append(np.asarray(image.convert("L"), float))
    apart = [float(np.abs(f - frames[0]).mean()) for f in frames]
    assert int(np.argmax(apart)) in range(
        FRAME_COUNT // 2 - 3, FRAME_COUNT // 2 + 4
    )  # half a period later it is farthest away
    assert apart[-1] < 0.8 * max(apart)
    assert (frames[0][:3] > 250).all()  # paper is white


def test_a_linear_model_is_animated_with_its_mechanism(tmp_path: Path) -> None:
    model = four_bar_mechanism()
    animation = fl.linearize(model).plot.animation(model)
    animation.save(tmp_path / "modes.gif")
    assert (
        (tmp_path / "modes.gif").read_bytes()
        == animation.content
        == mechanism_motion(model.description, fl.linearize(model))
    )
    assert animation._repr_html_().startswith('<img alt="modes of')
    with pytest.raises(fl.UsageError, match=r"must end in \.gif"):
        animation.save(tmp_path / "modes.png")
    equations = fl.systems.four_bar()
    with pytest.raises(fl.UsageError, match="is not a mechanism"):
        fl.linearize(equations).plot.animation(equations)


def test_modes_that_are_not_there_are_refused() -> None:
    model = four_bar_mechanism()
    linear = fl.linearize(model)
    with pytest.raises(fl.UsageError, match="There is no mode 5: modes 1 to 1 move a joint"):
        mechanism_motion(model.description, linear, numbers=[5])


def test_a_long_spring_does_not_crush_the_picture() -> None:
    """Of a spring to a far wall the beginning is drawn; one of the mechanism's own size is whole."""
    m = Mechanism(
        MechanismDescription(
            "cart",
            bodies=[Body("cart", 1.0, (0, 0, 0.2), (0.01,) * 3), Body("rod", 1.0, (0, 0, -0.5), (0.01,) * 3)],
            joints=[
                Joint("x", "prismatic", "ground", "cart", axis=(1, 0, 0)),
                Joint("q", "revolute", "cart", "rod", axis=(0, 1, 0)),
            ],
            springs=[
                PointSpring("far", "rod", "ground", (0, 0, -1), (400, 0, 0), 1.0),
                PointSpring("near", "rod", "ground", (0, 0, -1), (0.3, 0, -1), 1.0),
            ],
        )
    )
    shapes = Shapes(m.description)
    far, near = shapes.posture(shapes.start).springs
    assert np.linalg.norm(far[1] - far[0]) < 2.0
    np.testing.assert_allclose(far[0], (0.0, 0.0, -1.0))
    np.testing.assert_allclose(np.linalg.norm(near[1] - near[0]), 0.3)


@pytest.mark.parametrize("model", [furuta_pendulum(), stewart_platform()], ids=lambda m: m.info.name)
def test_mechanisms_in_space_fill_their_axes(model: Mechanism) -> None:
    axes = mechanism_figure(model.description).axes[0]
    (low, high), size = getattr(axes, "get_zlim")(), Shapes(model.description).size  # noqa: B009 - of axes in space
    assert high - low < 1.6 * size


def test_a_body_at_one_point_is_drawn_as_the_box_of_its_inertia() -> None:
    edges = np.array([0.4, 0.2, 0.1])
    moments = 3.0 / 12 * (edges @ edges - edges**2)
    path = create_box(Body("block", 3.0, (1.0, 0.0, 0.0), tuple(moments.tolist())))
    assert path is not None
    np.testing.assert_allclose(np.ptp(path, axis=0), edges)
    np.testing.assert_allclose((path.max(axis=0) + path.min(axis=0)) / 2, (1.0, 0.0, 0.0), atol=1e-12)
    lengths = np.linalg.norm(np.diff(path, axis=0), axis=1)
    assert set(lengths.round(9)) == {0.4, 0.2, 0.1}  # along edges alone
    drawn = {tuple(sorted((tuple(a), tuple(b)))) for a, b in zip(path.round(9), path[1:].round(9), strict=False)}
    assert len(drawn) == 12


def test_a_quadcopter_is_drawn_through_its_rotors() -> None:
    places = ((0.25, 0.0, 0.05), (0.0, 0.25, 0.05), (-0.25, 0.0, 0.05), (0.0, -0.25, 0.05))
    flying = MechanismDescription(
        "quadcopter",
        bodies=[Body("frame", 1.0, (0, 0, -0.05), (0.01, 0.01, 0.02))],
        joints=[Joint("flight", "free", "ground", "frame", position=(0, 0, 1, 1, 0, 0, 0))],
        inputs=[Force(f"thrust{k}", "frame", place, (0.0, 0.0, 1.0), "body") for k, place in enumerate(places)],
    )
    shapes = Shapes(flying)
    (frame,) = shapes.posture(shapes.start).bodies
    corners = {tuple(point) for point in frame.points.round(9).tolist()}
    assert {(x, y, 1 + z) for x, y, z in places} <= corners


def test_a_wheel_touches_the_plane_on_which_it_rolls() -> None:
    rolling = MechanismDescription(
        "disk",
        bodies=[Body("disk", 2.0, (0, 0, 0), (0.005, 0.01, 0.005))],
        joints=[Joint("free", "free", "ground", "disk", position=(0, 0, 0.12, 1, 0, 0, 0))],
        wheels=[Wheel("contact", "disk", radius=0.1, tube=0.02)],
    )
    shapes = Shapes(rolling)
    posture = shapes.posture(shapes.start)
    (rim,) = posture.solids
    assert rim.points[:, 2].min() == pytest.approx(0.0, abs=1e-12)
    ((point, normal),) = posture.planes
    assert float(point @ normal) == 0.0
    assert normal.tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("model", [loader(), stewart_platform()], ids=lambda m: m.info.name)
def test_bodies_and_axes_of_the_ground_have_names_that_do_not_overlap(model: Mechanism) -> None:
    from matplotlib.text import Annotation

    figure = mechanism_figure(model.description)
    figure.canvas.draw()
    texts = [text for text in figure.axes[0].texts if isinstance(text, Annotation)]
    names = {body.name for body in model.description.bodies}
    labels = [text for text in texts if text.get_text() in names]
    assert {text.get_text() for text in labels} == names
    boxes = [text.get_window_extent() for text in labels]
    assert not any(one.overlaps(other) for k, one in enumerate(boxes) for other in boxes[:k])
    assert any("axes of the ground" in text.get_text() and text.get_text().endswith("m long") for text in texts)
    is_plane = Shapes(model.description).plane is not None
    assert ({"x", "y"} if is_plane else {"x", "y", "z"}) <= {text.get_text() for text in texts}
    legend = {text.get_text() for text in figure.legends[0].get_texts()}
    assert {"ground", "joint that closes a loop", "centre of mass"} <= legend


@pytest.mark.parametrize(("size", "scale"), [(0.3, 0.2), (1.0, 1.0), (0.07, 0.05), (23.0, 20.0)])
def test_scales_are_round(size: float, scale: float) -> None:
    assert find_scale(size) == pytest.approx(scale)
