"""Joints moved by inputs: a quarter car on a road, a shaker, a driven crank, against closed forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import ModelError
from fmilin.models.mechanism import (
    Actuator,
    Body,
    Joint,
    JointForce,
    Loop,
    Mechanism,
    MechanismDescription,
    Motion,
    MovedMechanism,
    Placement,
    PointSpring,
)

WHEEL, CAR, TYRE, SPRING, DAMPER = 45.0, 320.0, 2.2e5, 2.1e4, 1500.0
FREQUENCIES = 2j * np.pi * np.array([0.3, 1.0, 3.0, 11.0, 40.0])


def transfer(linear: fl.LinearModel, motion: str, s: complex) -> np.ndarray:
    """Return what the outputs do for a motion: inputs, its rate and its acceleration belong together."""
    n = len(linear.states)
    inputs = [linear.inputs.index_of(name) for name in (motion, f"{motion}.v", f"{motion}.a")]
    weights = np.array([1.0, s, s * s])
    G = linear.C @ np.linalg.solve(s * np.eye(n) - linear.A, linear.B[:, inputs]) + linear.D[:, inputs]
    return np.asarray(G @ weights)


def quarter_car() -> MechanismDescription:
    """The road has no mass; wheel and car slide above it from the ground."""
    up = (0.0, 0.0, 1.0)
    bodies = [Body("patch", None), Body("wheel", WHEEL), Body("car", CAR)]
    joints = [
        Joint("road", "prismatic", "ground", "patch", axis=up),
        Joint("hub", "prismatic", "patch", "wheel", axis=up, stiffness=TYRE),
        Joint("strut", "prismatic", "wheel", "car", axis=up, stiffness=SPRING, damping=DAMPER),
    ]
    return MechanismDescription("quarter car", bodies, joints, inputs=[Motion("z", "road")], gravity=(0, 0, 0))


def test_a_quarter_car_on_a_road() -> None:
    """(m_w s^2 + c s + k + k_t) w - (c s + k) b = k_t z, (m_b s^2 + c s + k) b = (c s + k) w."""
    model = MovedMechanism(quarter_car())
    linear = fl.linearize(model, outputs=["wheel.z", "car.z", "z.force"])
    assert linear.states.names == ("hub.q", "strut.q", "hub.v", "strut.v")
    assert linear.inputs.names == ("z", "z.v", "z.a")
    for s in FREQUENCIES:
        link = DAMPER * s + SPRING
        M = np.array([[WHEEL * s**2 + link + TYRE, -link], [-link, CAR * s**2 + link]])
        wheel, car = np.linalg.solve(M, [TYRE, 0.0])
        np.testing.assert_allclose(transfer(linear, "z", s), [wheel, car, TYRE * (1 - wheel)], rtol=1e-9)


def shaker(table: float | None) -> MechanismDescription:
    bodies = [Body("table", table), Body("mass", 2.0)]
    joints = [
        Joint("shaker", "prismatic", "ground", "table", axis=(1, 0, 0)),
        Joint("slide", "prismatic", "ground", "mass", axis=(1, 0, 0), position=1.0),
    ]
    spring = PointSpring("spring", "table", "mass", stiffness=800.0, length=1.0, damping=6.0)
    return MechanismDescription("shaker", bodies, joints, springs=[spring], inputs=[Motion("x", "shaker")])


@pytest.mark.parametrize("table", [None, 3.0])
def test_the_transmissibility_of_a_shaker_and_the_force_that_it_takes(table: float | None) -> None:
    """T = (c s + k)/(m s^2 + c s + k); the shaker pushes m_t s^2 + m s^2 T."""
    linear = fl.linearize(MovedMechanism(shaker(table)), outputs=["mass.x", "x.force"])
    for s in FREQUENCIES:
        T = (6 * s + 800) / (2 * s**2 + 6 * s + 800)
        expected = [T, (table or 0.0) * s**2 + 2 * s**2 * T]
        np.testing.assert_allclose(transfer(linear, "x", s), expected, rtol=1e-9)


def test_a_moving_point_by_exact_slopes_and_by_differences() -> None:
    """A pendulum on a cart that is driven: beside rest, where products of velocities count."""
    bodies = [Body("cart", 1.0), Body("rod", 1.0, (0, 0, -0.5), (0.1, 0.1, 0.01))]
    joints = [
        Joint("drive", "prismatic", "ground", "cart", axis=(1, 0, 0)),
        Joint("pin", "revolute", "cart", "rod", axis=(0, 1, 0), position=0.4, velocity=1.2),
    ]
    inputs: list[JointForce | Motion] = [
        JointForce("torque", "pin"),
        Motion("x", "drive", start=0.2, velocity=0.7, acceleration=-2.0),
    ]
    model = MovedMechanism(MechanismDescription("crane", bodies, joints, inputs=inputs))
    exact = fl.linearize(model, outputs=["rod.vx", "x.force", "drive.v", "pin.q", "x"])
    general = fl.linearize(model, outputs=["rod.vx", "x.force", "drive.v", "pin.q", "x"], derivatives="differences")
    for name in "ABCD":
        np.testing.assert_allclose(getattr(exact, name), getattr(general, name), rtol=0, atol=1e-6)
    # J q'' = -m g l sin(q) + m l x'' cos(q): a positive turn about y takes what hangs to -x
    q = 0.4
    rate = model.evaluate(0.0, model.start.states, model.start.inputs).derivatives[1]
    assert rate == pytest.approx((-9.81 * 0.5 * np.sin(q) + 0.5 * -2.0 * np.cos(q)) / 0.35, rel=1e-12)


def test_a_road_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "car.toml"
    path.write_text("""
gravity = [0, 0, 0]
[[body]]
name = "patch"
massless = true
[[body]]
name = "wheel"
mass = 45
[[joint]]
name = "road"
type = "prismatic"
parent = "ground"
child = "patch"
[[joint]]
name = "hub"
type = "prismatic"
parent = "patch"
child = "wheel"
stiffness = 220000
[[input]]
kind = "motion"
name = "z"
joint = "road"
start = 0.1
""")
    model = fl.load(path)
    assert dict(zip(model.inputs.names, model.start.inputs, strict=True)) == {"z": 0.1, "z.v": 0.0, "z.a": 0.0}
    assert np.abs(fl.linearize(model).eigenvalues()) == pytest.approx([np.sqrt(220000 / 45)] * 2, rel=1e-9)


def test_motions_that_cannot_be() -> None:
    d = quarter_car()
    with pytest.raises(ModelError, match="is a motion: make a MovedMechanism"):
        Mechanism(d)
    with pytest.raises(ModelError, match="the joint 'ball' must have one degree of freedom"):
        MechanismDescription("m", [Body("a", 1.0, inertia=(1, 1, 1))], [Joint("ball", "spherical", "ground", "a")],
                             inputs=[Motion("x", "ball")])  # fmt: skip


def driven_slider_crank(*motions: Motion) -> MovedMechanism:
    """A driven crank whose piston carries a weight of 0.3 kg on a spring of 30 N/m."""
    r, long, q = 0.1, 0.3, 0.7
    b = -np.arcsin(r * np.sin(q) / long) - q
    bodies = [
        Body("crank", 1.0),
        Body("rod", 0.5, inertia=(0.01, 0.01, 0.01)),
        Body("piston", 1.0),
        Body("weight", 0.3),
    ]
    joints = [
        Joint("pin", "revolute", "ground", "crank", position=q),
        Joint("big", "revolute", "crank", "rod", Placement((r, 0, 0)), position=b),
        Joint("bore", "prismatic", "ground", "piston", axis=(1, 0, 0), position=r * np.cos(q) + long * np.cos(q + b)),
        Joint("spring", "prismatic", "piston", "weight", axis=(1, 0, 0), stiffness=30.0),
    ]
    loops = [Loop("eye", "revolute", "rod", "piston", Placement((long, 0, 0)))]
    return MovedMechanism(MechanismDescription("m", bodies, joints, loops=loops, inputs=motions))


def test_a_motion_within_a_loop_moves_the_manifold() -> None:
    """The weight feels -x'' = -(x'(q) q'' + x''(q) q'^2) of the piston, x = r cos q + sqrt(l^2 - r^2 sin^2 q)."""
    r, long, q, w = 0.1, 0.3, 0.7, 3.0
    root = np.sqrt(long**2 - r**2 * np.sin(q) ** 2)
    first = -r * np.sin(q) - r**2 * np.sin(q) * np.cos(q) / root
    second = -r * np.cos(q) - r**2 * np.cos(2 * q) / root - r**4 * np.sin(2 * q) ** 2 / (4 * root**3)
    model = driven_slider_crank(Motion("phi", "pin", start=q, velocity=w))
    chosen = ["spring.q", "spring.v"]
    linear = fl.linearize(model, outputs=["bore.q", "bore.v", "phi.force"], independent=chosen)
    np.testing.assert_allclose(linear.A, [[0, 1], [-100, 0]], atol=1e-10)
    np.testing.assert_allclose(linear.B[1, 1:], [-2 * second * w, -first], atol=1e-9)
    np.testing.assert_allclose(linear.D[:2, :2], [[first, 0], [second * w, first]], atol=1e-9)
    general = fl.linearize(
        model, outputs=["phi.force"], derivatives="differences", independent=["spring.q", "spring.v"]
    )
    np.testing.assert_allclose(linear.D[2], general.D[0], atol=1e-6)
    states = linear.with_prescribed_states()
    assert states.inputs.names == ("phi.a",)
    assert states.states.names == ("spring.q", "spring.v", "phi", "phi.v")


def test_dependent_joints_follow_a_motion_that_is_set() -> None:
    r, long, q = 0.1, 0.3, 2.4
    model = driven_slider_crank(Motion("phi", "pin", start=0.7))
    point = fl.operating_point(model, {"phi": q})
    assert point["bore.q"] == pytest.approx(r * np.cos(q) + np.sqrt(long**2 - r**2 * np.sin(q) ** 2), rel=1e-12)


def test_motions_that_tie_each_other_are_refused() -> None:
    model = driven_slider_crank(Motion("phi", "pin", start=0.7))
    with pytest.raises(ModelError, match="'phi', 'x' are not possible at this point"):
        driven_slider_crank(Motion("phi", "pin", start=0.7), Motion("x", "bore", start=model.start.states[1]))


@pytest.mark.parametrize(
    ("start", "limits", "slope", "said"),
    [
        (
            1.0,
            {"control_limits": (-1, 1)},
            0.5,
            "are at a limit, and their columns are valid for inward changes",
        ),
        (2.0, {"control_limits": (-1, 1)}, 0.0, "outside their range and have no effect: push (2 is outside -1 .. 1)"),
        (3.0, {"force_limits": (-1, 1)}, 0.0, "saturated, so their controls have no effect: push (force 1)"),
    ],
)
def test_limits_of_actuators_are_seen_beside_a_motion(
    start: float, limits: dict[str, Any], slope: float, said: str
) -> None:
    """As without one: at a limit the inner side, beyond it nothing, and it is told."""
    description = MechanismDescription(
        "shaken",
        [Body("table", 1.0), Body("mass", 2.0)],
        [Joint("shaker", "prismatic", "ground", "table"), Joint("slide", "prismatic", "table", "mass", stiffness=8.0)],
        inputs=[Actuator("push", joint="slide", start=start, **limits), Motion("z", "shaker")],
        gravity=(0, 0, 0),
    )
    lin = fl.linearize(MovedMechanism(description))
    np.testing.assert_allclose(lin.B[:, 0], [0.0, slope], atol=1e-12)
    assert any(said in str(w) for w in lin.warnings)


def test_a_massless_trolley_above_a_point_mass() -> None:
    """The trolley moves mass at every swing but the one at rest: theta'' = -(g sin + z'' cos) / l, about +y."""
    bodies = [Body("trolley", None), Body("load", 2.0, (0, 0, -1.5))]
    joints = [
        Joint("x", "prismatic", "ground", "trolley", axis=(1, 0, 0)),
        Joint("swing", "revolute", "trolley", "load", axis=(0, 1, 0)),
    ]
    model = MovedMechanism(MechanismDescription("crane", bodies, joints, inputs=[Motion("z", "x")]))
    linear = fl.linearize(model, outputs=["z.force"])
    np.testing.assert_allclose(linear.A, [[0.0, 1.0], [-9.81 / 1.5, 0.0]], atol=1e-12)
    np.testing.assert_allclose(linear.B, [[0.0, 0.0, 0.0], [0.0, 0.0, 1 / 1.5]], atol=1e-12)
    np.testing.assert_allclose(linear.D[0, 2], 0.0, atol=1e-12)  # the load stays behind
