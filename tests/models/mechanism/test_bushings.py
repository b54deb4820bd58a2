"""Six-axis bushings: the spectrum of a body on one by its mass and stiffness matrices, exact slopes anywhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import linalg

import fmilin as fl
from fmilin.errors import ModelError
from fmilin.models.mechanism import Body, Bushing, Joint, Mechanism, MechanismDescription, Placement, Sensor
from fmilin.signals import FloatArray

MASS, CENTER, INERTIA = 12.0, np.array([0.1, -0.05, 0.2]), np.diag([0.4, 0.5, 0.3])
POINT = np.array([0.05, 0.1, -0.1])
TURNED = Placement.from_rpy((0.3, 0.2, -0.1), (0.2, -0.4, 0.7))


def symmetric(seed: int, sizes: np.ndarray) -> np.ndarray:
    a = np.random.default_rng(seed).uniform(-1, 1, (6, 6))
    return np.asarray(np.sqrt(sizes)[:, None] * (a @ a.T + np.eye(6)) * np.sqrt(sizes))


K = symmetric(1, np.array([2e4, 3e4, 5e4, 400.0, 300.0, 500.0]))
C = symmetric(2, np.array([20.0, 30.0, 50.0, 0.4, 0.3, 0.5]))


def cross_matrix(v: FloatArray) -> FloatArray:
    """Return the matrix of ``v x``."""
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def mounted() -> Mechanism:
    """An engine on a bushing whose frame on the ground is turned; without weight it rests where both coincide."""
    on_engine = Placement(tuple(POINT))
    at = Placement(tuple(TURNED.p - TURNED.R @ POINT), TURNED.R)
    mount = Bushing("mount", "ground", "engine", TURNED, on_engine, K, C)
    e = np.sqrt([1 + np.trace(at.R), *(1 + 2 * np.diag(at.R) - np.trace(at.R))]) / 2
    e[1:] *= np.sign([at.R[2, 1] - at.R[1, 2], at.R[0, 2] - at.R[2, 0], at.R[1, 0] - at.R[0, 1]])
    return Mechanism(
        MechanismDescription(
            "engine",
            [Body("engine", MASS, tuple(CENTER), INERTIA)],
            [Joint("free", "free", "ground", "engine", position=(*at.p, *e))],
            bushings=[mount],
            gravity=(0, 0, 0),
        )
    )


def test_a_body_on_a_bushing_swings_as_its_matrices_say() -> None:
    """M xi'' + B' C B xi' + B' K B xi = 0 with twists xi = (v, w) of the body's frame in its own axes."""
    linear = fl.linearize(mounted())
    s = cross_matrix(CENTER)
    M = np.block([[MASS * np.eye(3), -MASS * s], [MASS * s, INERTIA - MASS * s @ s]])
    B = np.block([[np.eye(3), -cross_matrix(POINT)], [np.zeros((3, 3)), np.eye(3)]])
    A = np.block([[np.zeros((6, 6)), np.eye(6)], [-np.linalg.solve(M, B.T @ K @ B), -np.linalg.solve(M, B.T @ C @ B)]])
    expected, values = (np.sort_complex(linalg.eigvals(a)) for a in (A, linear.A))
    assert len(values) == 12
    np.testing.assert_allclose(values, expected, rtol=1e-9)


def chain() -> Mechanism:
    bodies = [Body("a", 2.0, (0.2, 0, 0.1), (0.1, 0.2, 0.15)), Body("b", 1.0, (0.1, 0.1, 0), (0.02, 0.03, 0.04))]
    joints = [
        Joint("ball", "spherical", "ground", "a", position=(0.9, 0.1, 0.3, -0.2)),
        Joint("pin", "revolute", "a", "b", Placement((0.4, 0, 0)), axis=(0, 1, 1), position=0.4),
    ]
    bushings = [
        Bushing("one", "ground", "b", Placement((0.3, 0.1, 0)), Placement((0.1, 0, 0.2)), K / 1e3, C / 1e2),
        Bushing("two", "a", "b", TURNED, stiffness=(30, 20, 10, 3, 2, 1), damping=(0, 0, 1, 0.1, 0, 0)),
    ]
    sensors = [Sensor("energy", "energy"), Sensor("pull", "joint_force", "pin")]
    return Mechanism(MechanismDescription("chain", bodies, joints, bushings=bushings, sensors=sensors))


def test_slopes_at_a_moving_point_are_those_of_differences() -> None:
    model = chain()
    point = fl.operating_point(model, {"pin.q": 0.9, "ball.wx": 0.7, "ball.wz": -1.1, "pin.v": 2.0}, project=True)
    exact = fl.linearize(model, point)
    general = fl.linearize(model, point, derivatives="differences")
    for name in ("A", "C"):
        size = np.abs(getattr(exact, name)).max()
        np.testing.assert_allclose(getattr(exact, name), getattr(general, name), rtol=0, atol=1e-7 * size)


def test_energy_decreases_by_the_dampers_alone() -> None:
    """d(energy)/dt = -l'' C l', at most zero: forces and potential belong to each other."""
    model = chain().with_interface(outputs=["energy"])
    point = fl.operating_point(model, {"ball.wx": 0.7, "ball.wz": -1.1, "pin.v": 2.0}, project=True)
    rates = model.evaluate(0.0, point.states, point.inputs).derivatives

    def energy(h: float) -> float:
        return float(model.evaluate(0.0, point.states + h * rates, point.inputs).outputs[0])

    lost = (energy(1e-5) - energy(-1e-5)) / 2e-5
    undamped = model.description
    springs = [Bushing(b.name, b.first, b.second, b.first_placement, b.second_placement, b.stiffness)
               for b in undamped.bushings]  # fmt: skip
    without = Mechanism(
        MechanismDescription("chain", undamped.bodies, undamped.joints, bushings=springs, sensors=undamped.sensors)
    ).with_interface(outputs=["energy"])
    rates = without.evaluate(0.0, point.states, point.inputs).derivatives
    kept = [float(without.evaluate(0.0, point.states + h * rates, point.inputs).outputs[0]) for h in (1e-5, -1e-5)]
    assert abs(kept[0] - kept[1]) / 2e-5 < 1e-6
    assert lost < -1e-3


def test_a_bushing_of_a_file(tmp_path: Path) -> None:
    """Six numbers are those of the axes: with a body of 4 kg, its frequencies are sqrt(k/m)."""
    path = tmp_path / "mount.toml"
    path.write_text("""
gravity = [0, 0, 0]
[[body]]
name = "block"
mass = 4
inertia = [0.1, 0.1, 0.1]
[[joint]]
name = "free"
type = "free"
parent = "ground"
child = "block"
[[bushing]]
name = "mount"
first = "ground"
second = "block"
stiffness = [400, 900, 1600, 10, 10, 10]
damping = [0, 0, 8, 0, 0, 0]
""")
    values = fl.linearize(fl.load(path)).eigenvalues()
    for expected in (10j, 15j, -1 + 1j * np.sqrt(399)):
        assert np.abs(values - expected).min() < 1e-9


@pytest.mark.parametrize(
    ("stiffness", "said"),
    [
        ((1, 2, 3), "must be 6 or 6 x 6 finite numbers"),
        ("stiff", "must be 6 or 6 x 6 finite numbers"),
        (np.triu(np.ones((6, 6))), "The stiffness of the bushing 'b' is not symmetric"),
    ],
)
def test_matrices_that_are_none(stiffness: object, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        Bushing("b", "ground", "a", stiffness=stiffness)


def test_a_bushing_of_one_body() -> None:
    with pytest.raises(ModelError, match="The bushing 'b' connects 'a' with itself"):
        MechanismDescription(
            "m", [Body("a", 1.0)], [Joint("j", "free", "ground", "a")], bushings=[Bushing("b", "a", "a")]
        )
