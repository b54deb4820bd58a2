"""Holding forces over a workspace: every posture of a machine, against virtual work."""

from __future__ import annotations

from pathlib import Path

import mpmath
import numpy as np

import fmilin as fl
from fmilin.signals import FloatArray
from fmilin.systems import loader
from tests.systems.loader_geometry import LoaderGeometry
from tests.systems.reduced import Reduced
from tests.trimming.machines import boom_and_cylinder, boom_force

EXCAVATOR = Path(__file__).with_name("excavator.toml")
MASSES = {"boom": 1500.0, "stick": 1200.0, "barrel": 90.0, "rod": 60.0}


def turned(angle: float, x: float, y: float) -> FloatArray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c * x - s * y, s * x + c * y])


def lengths_and_energy(boom: float, stick: float) -> tuple[FloatArray, float]:
    """Return both cylinders' lengths and the potential energy, by hand: a plane linkage of points."""
    end = turned(boom, 5.7, 0.0)
    pins = np.array([0.5, -0.6]), turned(boom, 2.6, 1.1)
    eyes = turned(boom, 2.5, 0.7), end + turned(boom + stick, -0.7, 0.3)
    energy = MASSES["boom"] * turned(boom, 2.7, 0.5)[1] + MASSES["stick"] * (end + turned(boom + stick, 1.6, 0.1))[1]
    lengths = []
    for pin, eye in zip(pins, eyes, strict=True):
        length = float(np.linalg.norm(eye - pin))
        along = (eye - pin) / length
        energy += MASSES["barrel"] * (pin + 0.7 * along)[1] + MASSES["rod"] * (pin + (length - 0.6) * along)[1]
        lengths.append(length)
    return np.array(lengths), 9.81 * energy


def holding_forces(boom: float, stick: float) -> FloatArray:
    """Return the forces with F1 dL1 + F2 dL2 = dV for every virtual displacement of both pins."""
    h, J, slopes = 1e-5, np.zeros((2, 2)), np.zeros(2)
    for i, step in enumerate(np.eye(2) * h):
        (L1, V1), (L0, V0) = (
            lengths_and_energy(boom + step[0], stick + step[1]),
            lengths_and_energy(boom - step[0], stick - step[1]),
        )
        J[i], slopes[i] = (L1 - L0) / (2 * h), (V1 - V0) / (2 * h)
    return np.asarray(np.linalg.solve(J, slopes), dtype=np.float64)


def test_every_posture_of_an_excavator_is_held() -> None:
    booms, sticks = np.linspace(0.2, 0.8, 4), np.linspace(-2.0, -1.2, 12)
    family = fl.sweep(
        EXCAVATOR,
        {"boom_pin.q": booms, "stick_pin.q": sticks},
        trim=fl.TrimRequest(free=["boom_force", "stick_force"]),
        outputs=["tip_x"],
    )
    assert family.ok.all(), family.reasons
    assert int((family.array("visits")[..., 0] == 0).sum()) > 30  # in batches
    expected = np.array([[holding_forces(b, s) for s in sticks] for b in booms])
    np.testing.assert_allclose(family.u0, expected, rtol=1e-6, atol=1e-2)
    tip = [[(turned(b, 5.7, 0.0) + turned(b + s, 2.9, 0.0))[0] for s in sticks] for b in booms]
    np.testing.assert_allclose(family.array("out0")[..., 0], np.array(tip), rtol=1e-9)


def test_a_cylinder_holds_a_boom_at_every_angle() -> None:
    angles = np.linspace(-0.3, 1.2, 60)
    for stiffness in (0.0, 1e4):
        family = fl.sweep(boom_and_cylinder(stiffness), {"pin.q": angles}, trim=fl.TrimRequest(free=["force"]))
        assert family.ok.all(), family.reasons
        expected = [boom_force(angle, stiffness) for angle in angles]
        np.testing.assert_allclose(family.u0[:, 0], expected, rtol=1e-9, atol=1e-5)


def test_every_posture_of_a_loader_is_held() -> None:
    """With the lengths of both cylinders as coordinates the forces are the slopes of the weight's energy."""
    machine = loader()
    start = dict(zip(machine.states.names, machine.start.states.tolist(), strict=True))
    lifts, tilts = start["lift.q"] + np.linspace(-0.08, 0.2, 6), start["tilt.q"] + np.linspace(-0.1, 0.1, 12)
    family = fl.sweep(
        machine, {"lift.q": lifts, "tilt.q": tilts}, trim=fl.TrimRequest(free=["lift_force", "tilt_force"])
    )
    assert family.ok.all(), family.reasons
    assert int((family.array("visits")[..., 0] == 0).sum()) > 50  # in batches
    plane = Reduced(LoaderGeometry(machine.description).by_strokes)
    expected = np.array([[strokes_forces(plane, lift, tilt) for tilt in tilts] for lift in lifts])
    np.testing.assert_allclose(family.u0, expected, rtol=1e-7, atol=1e-3)


def strokes_forces(plane: Reduced, lift: float, tilt: float) -> list[float]:
    """Return dV/dL of both cylinders."""
    with mpmath.workdps(30):
        slopes = [mpmath.diff(lambda a, b: plane.potential((a, b)), (lift, tilt), n) for n in ((1, 0), (0, 1))]
        return [float(slope) for slope in slopes]
