"""Bodies that turn by quaternions: coordinates that do not turn with them, against closed forms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import fmilin as fl
from fmilin.cli.options import names
from fmilin.models import OdeModel
from fmilin.models.mechanism import Body, Joint, Mechanism, MechanismDescription, Wheel
from fmilin.systems.disk import steady_yaw_rates

MASS, LENGTH, G = 0.5, 0.08, 9.81
AXIAL, ACROSS = 5e-4, 3e-4 + MASS * LENGTH**2  # about the pivot
STATES = ["ball.e1", "ball.e2", "ball.e3", "ball.wx", "ball.wy", "ball.wz"]


def quaternion(R: Rotation) -> tuple[float, ...]:
    return tuple(np.roll(R.as_quat(), 1).tolist())


def top(w: Sequence[float], turned: Rotation | None = None) -> Mechanism:
    """Lagrange's top on its tip."""
    rotor = Body("rotor", MASS, center=(0, 0, LENGTH), inertia=(3e-4, 3e-4, AXIAL))
    e = None if turned is None else quaternion(turned)
    joint = Joint("ball", "spherical", "ground", "rotor", velocity=tuple(w), position=e)
    return Mechanism(MechanismDescription("top", [rotor], [joint]))


def satellite(inertia: Sequence[float], w: Sequence[float]) -> Mechanism:
    """A body on its way, turned somehow."""
    joint = Joint(
        "f",
        "free",
        "ground",
        "body",
        position=(1, 2, 3, *quaternion(Rotation.from_rotvec([0.3, -1.0, 0.5]))),
        velocity=(1, 0, 2, *w),
    )
    body = Body("body", 10.0, inertia=tuple(inertia))
    return Mechanism(MechanismDescription("satellite", [body], [joint], gravity=(0, 0, 0)))


def disk(heading: float, lean: float, yaw: float, spin: float, radius: float = 0.1) -> Mechanism:
    """A homogeneous disk whose axle is the body's y, rolling."""
    R = Rotation.from_euler("ZX", [heading, lean])
    axle, up = R.apply([0, 1, 0]), np.array([0.0, 0.0, 1.0])
    w = yaw * up + spin * axle
    centre = radius * (up - (up @ axle) * axle) / np.linalg.norm(up - (up @ axle) * axle)
    joint = Joint(
        "f",
        "free",
        "ground",
        "disk",
        position=(0, 0, centre[2], *quaternion(R)),
        velocity=(*np.cross(w, centre), *R.inv().apply(w)),
    )
    body = Body("disk", 2.0, inertia=(0.005, 0.01, 0.005))
    wheel = Wheel("w", "disk", radius=radius, axis=(0, 1, 0))
    return Mechanism(MechanismDescription("disk", [body], [joint], wheels=[wheel]))


def in_steady_coordinates(model: fl.Model) -> np.ndarray:
    """Return the eigenvalues, once the motion is called steady in coordinates that were found."""
    linear = fl.linearize(model)
    kinds = {w.kind for w in linear.warnings}
    assert "steady" in kinds
    assert not kinds & {"periodic", "off-equilibrium"}
    assert linear.method.coordinates == "turning"
    return linear.eigenvalues()


def assert_contains(eigenvalues: np.ndarray, expected: complex) -> None:
    for value in (expected, np.conj(expected)):
        assert np.abs(eigenvalues - value).min() < 1e-6 * abs(expected)


def fastest(eigenvalues: np.ndarray) -> float:
    return float(np.abs(eigenvalues).max())


def sleeping(spin: float) -> np.ndarray:
    """Lagrange's sleeping top, of whose axis x + i y: ACROSS z'' - i AXIAL spin z' - m g l z = 0."""
    s = np.roots([ACROSS, -1j * AXIAL * spin, -MASS * G * LENGTH])
    return np.concatenate((s, s.conj()))


@pytest.mark.parametrize("spin", [120.0, -147.0, 149.5, 200.0, 400.0])
@pytest.mark.parametrize("turned", [None, Rotation.from_euler("Z", 2.0)])
def test_a_sleeping_top(spin: float, turned: Rotation | None) -> None:
    eigenvalues = in_steady_coordinates(top((0, 0, spin), turned))
    for s in sleeping(spin):
        assert_contains(eigenvalues, s)
    stable = spin**2 > 4 * MASS * G * LENGTH * ACROSS / AXIAL**2
    assert (eigenvalues.real.max() < 1e-5) == stable


def test_a_sleeping_top_that_leans_on_its_file(tmp_path: Path) -> None:
    """The case that showed +-62.8 i and +-100.06 i, the rates at which its body turned."""
    path = tmp_path / "sleep.toml"
    path.write_text(
        'name="sleep"\n[[body]]\nname="rotor"\nmass=0.5\ncenter=[0,0,0.08]\ninertia=[3e-4,3e-4,5e-4]\n'
        '[[joint]]\nname="ball"\ntype="spherical"\nparent="ground"\nchild="rotor"\nvelocity=[0,0,120]\n'
    )
    assert_contains(in_steady_coordinates(fl.load(path)), sleeping(120.0)[0])


@pytest.mark.parametrize("tilt", [0.3, 0.6, 1.4, 2.0])
def test_a_top_that_precesses(tilt: float) -> None:
    """Of its tilt: omega^2 = (W sin)^2 + (p/ACROSS - 2 W cos)^2 with the axial momentum p."""
    W = 3.0
    axial_rate = (ACROSS * W**2 * np.cos(tilt) + MASS * G * LENGTH) / (AXIAL * W)
    R = Rotation.from_euler("ZXZ", [0.4, tilt, 0.9])
    w = W * R.inv().apply([0, 0, 1]) + (axial_rate - W * np.cos(tilt)) * np.array([0, 0, 1])
    eigenvalues = in_steady_coordinates(top(w, R))
    frequency = np.hypot(W * np.sin(tilt), AXIAL * axial_rate / ACROSS - 2 * W * np.cos(tilt))
    assert_contains(eigenvalues, 1j * frequency)
    assert (np.sort(np.abs(eigenvalues))[:4] < 1e-3 * frequency).all()


def test_a_pendulum_that_goes_round_without_turning_on_its_rod() -> None:
    """The same formula: the body keeps its rates, and its rod is no axis of the motion."""
    tilt = np.pi - 0.5
    W = np.sqrt(MASS * G * LENGTH / ((AXIAL - ACROSS) * np.cos(tilt)))
    R = Rotation.from_euler("ZX", [0.4, tilt])
    linear = fl.linearize(top(W * R.inv().apply([0, 0, 1]), R))
    assert {w.kind for w in linear.warnings} == {"steady"}
    momentum = AXIAL * W * np.cos(tilt)
    assert_contains(linear.eigenvalues(), 1j * np.hypot(W * np.sin(tilt), momentum / ACROSS - 2 * W * np.cos(tilt)))


def test_satellites() -> None:
    assert fastest(in_steady_coordinates(satellite((2, 2, 3), (0, 0, 3)))) == pytest.approx(3 / 2 * 3)
    nutating = in_steady_coordinates(satellite((2, 2, 3), (0.5, 0, 3)))
    assert fastest(nutating) == pytest.approx(np.hypot(2 * 0.5, 3 * 3) / 2)
    # Euler: about the largest principal axis it oscillates, about the middle one it tumbles.
    assert_contains(in_steady_coordinates(satellite((2, 3, 4), (0, 0, 3))), 1j * np.sqrt(2 * 1 / (2 * 3)) * 3)
    assert_contains(in_steady_coordinates(satellite((2, 3, 4), (0, 3, 0))), np.sqrt(1 * 1 / (2 * 4)) * 3)


def test_a_body_that_tumbles_is_called_periodic() -> None:
    assert "periodic" in {w.kind for w in fl.linearize(satellite((2, 3, 4), (1, 0, 3))).warnings}


@pytest.mark.parametrize("heading", [0.0, 0.7])
def test_a_wheel_that_rolls_straight_on(heading: float) -> None:
    """12/5 spin^2 - 4/5 g/r, of the rolling disk upright."""
    eigenvalues = in_steady_coordinates(disk(heading, 0.0, 0.0, 25.0))
    assert fastest(eigenvalues) == pytest.approx(np.sqrt(12 / 5 * 25**2 - 4 / 5 * G / 0.1))


@pytest.mark.parametrize("fast", [0, 1])
@pytest.mark.parametrize("lean", [0.3, -0.2])
def test_a_wheel_in_a_steady_turn(lean: float, fast: int) -> None:
    """The rolling disk's closed form, see :func:`fmilin.systems.rolling_disk`."""
    yaw, spin = steady_yaw_rates(2.5, lean, radius=0.1, gravity=G)[fast], -25.0
    square = 4 / 5 * G / 0.1 * np.cos(lean) - yaw**2 - 14 / 5 * np.sin(lean) * yaw * spin - 12 / 5 * spin**2
    eigenvalues = in_steady_coordinates(disk(0.3, lean, -yaw, -spin))
    assert_contains(eigenvalues, 1j * np.sqrt(-square))


def test_a_quaternion_of_equations_whose_real_part_stands_last() -> None:
    equations = {
        "x": "(q*a - z*b + y*c)/2",
        "y": "(z*a + q*b - x*c)/2",
        "z": "(-y*a + x*b + q*c)/2",
        "q": "(-x*a - y*b - z*c)/2",
        "a": "-b*c/2",
        "b": "a*c/2",
        "c": "0",
    }
    unit = [fl.Constraint.from_text("x^2 + y^2 + z^2 + q^2 - 1", level="velocity")]
    model = OdeModel("satellite", equations, start={"x": 0.6, "q": 0.8, "c": 2.0}, constraints=unit)
    assert fastest(in_steady_coordinates(model)) == pytest.approx(3 / 2 * 2)


def test_a_sweep_over_the_spin_keeps_the_coordinates() -> None:
    spins = np.linspace(100.0, 300.0, 9)
    family = fl.sweep(top((0, 0, 100)), {"ball.wz": spins})
    for spin, linear in zip(spins, family, strict=True):
        assert linear.states.names == family[0].states.names
        for s in sleeping(spin):
            assert_contains(linear.eigenvalues(), s)


def test_a_stack_leaves_points_that_turn_to_the_search() -> None:
    """The first point is at rest, and its coordinates stay: the others are told what to name."""
    family = fl.sweep(top((0, 0, 0)), {"ball.wz": np.linspace(0.0, 200.0, 40)})
    for linear in list(family)[1:]:
        assert any(
            "The motion is steady, but not in these coordinates: in ball.axis_x = " in w.message
            for w in linear.warnings
        )


def test_what_the_remark_names_can_be_named() -> None:
    model = top((0, 0, 120))
    linear = fl.linearize(model, independent=STATES)
    (remark,) = (w.message for w in linear.warnings if "The motion is steady, but not" in w.message)
    named = remark.partition("coordinates: in ")[2].partition(" A stays the same")[0]
    again = fl.linearize(model, independent=names(named, "--independent"))
    assert {w.kind for w in again.warnings} == {"steady"}
    assert_contains(again.eigenvalues(), sleeping(120.0)[0])
