"""Nonholonomic mechanisms: the bicycle of Meijaard et al. built of bodies, and a rolling torus."""

from __future__ import annotations

from math import cos, pi, sin

import numpy as np
import pytest
from scipy import linalg

import fmilin as fl
from fmilin.errors import NumericalError
from fmilin.models.mechanism import Body, Joint, Mechanism, MechanismDescription, Placement, Skate, Wheel
from tests.models.mechanism.builders import Floats


def bicycle(speed: float) -> Mechanism:
    """Return the benchmark bicycle, upright and straight; z up, x ahead, the frames of all bodies parallel."""
    tilt, rear, front = pi / 10, 0.3, 0.35
    bodies = [
        Body("heading", None),
        Body("height", None),
        Body("lean", None),
        Body("frame", 85.0, (0.3, 0, 0.6), [[9.2, 0, -2.4], [0, 11.0, 0], [-2.4, 0, 2.8]]),
        Body("fork", 4.0, (-0.2, 0, 0.7), [[0.05892, 0, 0.00756], [0, 0.06, 0], [0.00756, 0, 0.00708]]),
        Body("rear", 2.0, inertia=(0.0603, 0.12, 0.0603)),
        Body("front", 3.0, inertia=(0.1405, 0.28, 0.1405)),
    ]
    joints = [
        Joint("over", "planar", "ground", "heading", velocity=(speed, 0, 0)),
        Joint("up", "prismatic", "heading", "height", position=rear),
        Joint("roll", "revolute", "height", "lean", axis=(1, 0, 0)),
        Joint("pitch", "revolute", "lean", "frame", axis=(0, 1, 0)),
        Joint("steer", "revolute", "frame", "fork", Placement((1.1, 0, -rear)), axis=(-sin(tilt), 0, cos(tilt))),
        Joint("rear_hub", "revolute", "frame", "rear", axis=(0, 1, 0), velocity=speed / rear),
        Joint(
            "front_hub",
            "revolute",
            "fork",
            "front",
            Placement((-0.08, 0, front)),
            axis=(0, 1, 0),
            velocity=speed / front,
        ),
    ]
    wheels = [Wheel("rear_tyre", "rear", radius=rear), Wheel("front_tyre", "front", radius=front)]
    return Mechanism(MechanismDescription("bicycle", bodies, joints, wheels=wheels))


def benchmark(v: float) -> Floats:
    """Return the eigenvalues of M q'' + v C1 q' + (g K0 + v^2 K2) q = 0."""
    M = np.array([[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]])
    C = v * np.array([[0, 33.86641391492494], [-0.85035641456978, 1.68540397397560]])
    K = 9.81 * np.array([[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]])
    K = K + v**2 * np.array([[0, 76.59734589573222], [0, 2.65431523794604]])
    A = np.block([[np.zeros((2, 2)), np.eye(2)], [-linalg.solve(M, K), -linalg.solve(M, C)]])
    return np.asarray(np.linalg.eigvals(A))


@pytest.mark.parametrize("speed", [0.5, 4.6, 8.0])
def test_the_benchmark_bicycle(speed: float) -> None:
    mechanism = bicycle(speed)
    names = ("over.x", "over.y", "over.angle", "roll.q", "steer.q", "rear_hub.q", "front_hub.q")
    lin = fl.linearize(mechanism, independent=[*names, "roll.v", "steer.v", "rear_hub.v"])
    values = lin.eigenvalues()
    true = values[np.argsort(np.abs(values))[-4:]]
    for expected in benchmark(speed):
        assert np.abs(true - expected).min() < 1e-8 * abs(expected)
    rest = np.sort(np.abs(values))[:-4]
    assert rest.max() < 1e-4  # six zeros, defective


def test_the_general_linearizer_sees_the_same_bicycle() -> None:
    mechanism = bicycle(4.6)
    lin = fl.linearize(mechanism)
    own = fl.linearize(mechanism, independent=lin.states.names)
    assert np.abs(lin.A - own.A).max() < 1e-9 * np.abs(own.A).max()


def torus(speed: float, radius: float, tube: float) -> Mechanism:
    """Return a rolling wheel with a round tyre, 1 kg, of known inertia."""
    bodies = [Body("heading", None), Body("height", None), Body("wheel", 1.0, inertia=(0.3, 0.5, 0.3))]
    joints = [
        Joint("over", "planar", "ground", "heading", velocity=(speed, 0, 0)),
        Joint("up", "prismatic", "heading", "height", position=radius + tube),
        Joint(
            "hub",
            "universal",
            "height",
            "wheel",
            axis=(1, 0, 0),
            second_axis=(0, 1, 0),
            velocity=(0, speed / (radius + tube)),
        ),
    ]
    rim = Wheel("rim", "wheel", radius=radius, tube=tube)
    return Mechanism(MechanismDescription("torus", bodies, joints, wheels=[rim]))


def test_a_rolling_torus_falls_as_the_closed_form_says() -> None:
    """lambda^2 = (m g a - (J + m r^2) J v^2 / (I r^2)) / (I + m r^2), as for Kane's equations of it."""
    v, a, b, axial, diametral = 1.1, 0.8, 0.25, 0.5, 0.3
    r = a + b
    values = fl.linearize(torus(v, a, b)).eigenvalues()
    largest = values[np.argmax(np.abs(values))]
    expected = (9.81 * a - (axial + r**2) * axial * v**2 / (diametral * r**2)) / (diametral + r**2)
    assert (largest**2).real == pytest.approx(expected, rel=1e-6)


def test_a_wheel_that_lies_flat_is_refused() -> None:
    upset = Placement.from_axis(axis=(1, 0, 0), angle=pi / 2)
    joint = Joint("over", "planar", "ground", "wheel", Placement((0, 0, 1)).then(upset))
    d = MechanismDescription(
        "flat", [Body("wheel", 1.0, inertia=(1, 1, 1))], [joint], wheels=[Wheel("rim", "wheel", radius=1)]
    )
    with pytest.raises(
        NumericalError, match=r"'rim' of the mechanism 'flat' has no value.*a flat wheel has no lowest point"
    ):
        Mechanism(d)


def test_a_skate_slides_ahead_alone() -> None:
    blade = Body("blade", 2.0, inertia=(1, 1, 1))
    joint = Joint("over", "planar", "ground", "blade", position=(0, 0, 0.3), velocity=(3 * cos(0.3), 3 * sin(0.3), 0.7))
    mechanism = Mechanism(MechanismDescription("skate", [blade], [joint], skates=[Skate("edge", "blade")]))
    rates = mechanism.evaluate(0.0, mechanism.start.states, mechanism.start.inputs).derivatives
    # It turns at a constant rate: the velocity of 3 m/s turns with it, a = 3 * 0.7 across.
    assert rates[3:] == pytest.approx([-2.1 * sin(0.3), 2.1 * cos(0.3), 0.0], abs=1e-14)
