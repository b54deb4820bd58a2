"""Mechanisms with balls in motion: what stays constant along exact trajectories, and quaternions that stay unit."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import fmilin as fl
from fmilin.models.mechanism import Body, Joint, Mechanism, MechanismDescription
from fmilin.simulation import Method
from fmilin.systems import stewart_platform
from fmilin.testing import check_model

Floats = NDArray[np.float64]

MASS, ARM = 2.0, 0.5
INERTIA = (0.1, 0.12, 0.05)


def hanging_ball() -> Mechanism:
    """Return a body that hangs on a ball joint, turning fast about all its axes, with its energy as output."""
    e = np.array([0.9, 0.3, 0.3, 0.1]) / 1.0
    body = Body("bob", MASS, (0, 0, -ARM), INERTIA)
    ball = Joint("ball", "spherical", "ground", "bob", position=tuple(e), velocity=(1.0, 0.5, 3.0))
    return Mechanism(MechanismDescription("hanging_ball", [body], [ball])).with_interface(outputs=["energy"])


def rotation(e: Floats) -> Floats:
    """Return the rotation matrix of a unit quaternion, written out."""
    w, x, y, z = e
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def vertical_momentum(x: Floats) -> float:
    """Return the angular momentum about the vertical through the ball, by hand."""
    J = np.diag(INERTIA) + MASS * ARM**2 * np.diag([1.0, 1.0, 0.0])
    return float((rotation(x[:4]) @ J @ x[4:])[2])


def energy(x: Floats) -> float:
    J = np.diag(INERTIA) + MASS * ARM**2 * np.diag([1.0, 1.0, 0.0])
    return float(x[4:] @ J @ x[4:] / 2 - MASS * 9.81 * ARM * rotation(x[:4])[2, 2])


@pytest.mark.parametrize("stabilization", ["projection", "local", "none"])
def test_a_body_on_a_ball_keeps_energy_and_momentum(stabilization: str) -> None:
    run = fl.simulate(hanging_ball(), stop_time=3.0, step=0.25, stabilization=stabilization)
    x = np.asarray(run.states)
    assert np.abs(x[:, 4:] - x[0, 4:]).max() > 1.0  # it does move
    np.testing.assert_allclose(np.asarray(run.outputs)[:, 0], [energy(one) for one in x], rtol=1e-7)
    np.testing.assert_allclose([energy(one) for one in x], energy(x[0]), rtol=1e-7)
    np.testing.assert_allclose([vertical_momentum(one) for one in x], vertical_momentum(x[0]), rtol=0, atol=1e-8)
    np.testing.assert_allclose((x[:, :4] ** 2).sum(axis=1), 1.0, rtol=1e-7 if stabilization == "none" else 1e-12)


def test_the_platform_without_friction_keeps_its_energy_and_its_loops() -> None:
    model = stewart_platform()
    model = model.with_parameters({name: 0.0 for name in model.parameters if "damping" in name})
    model = model.with_interface(outputs=["energy", "kinetic_energy"])
    n_q, x = model.system.tree.n_q, model.start.states.copy()
    G = model.solution(x, model.start.inputs).state.G
    v = np.random.default_rng(0).normal(size=model.system.tree.n)
    x[n_q:] = v - np.linalg.pinv(G) @ (G @ v)
    start = model.start.with_states(x)
    run = fl.simulate(model, start, stop_time=0.4, step=0.1, method=Method("DOP853", 1e-7))
    total, kinetic = np.asarray(run.outputs).T
    assert np.ptp(kinetic) > 5.0  # energy goes to and fro
    np.testing.assert_allclose(total, total[0], atol=1e-4 * kinetic[0], rtol=0)
    residuals = [model.evaluate(0.0, one, start.inputs).residuals for one in np.asarray(run.states)]
    assert np.abs(residuals).max() < 1e-8


def test_a_body_on_a_ball_keeps_what_a_model_promises() -> None:
    assert {"products", "constraints", "derivatives", "batches"} <= set(check_model(hanging_ball()))


@pytest.mark.parametrize("e", [(1, 0, 0, 0), (0, 0, 0, 1), (0.6, 0, 0, 0.8)])
def test_a_hanging_body_swings_alike_in_all_coordinates_of_its_quaternion(e: tuple[float, ...]) -> None:
    """Turned about the vertical by any angle, half a turn included, it hangs in the same equilibrium."""
    model = hanging_ball()
    point = model.start.with_states(np.array([*e, 0, 0, 0]))
    weight = MASS * 9.81 * ARM
    swings = sorted(np.sqrt(weight / (J + MASS * ARM**2)) for J in INERTIA[:2])
    for linear in (fl.linearize(model, point), fl.linearize(model, point, coordinates="tangent")):
        found = sorted(s.imag for s in linear.eigenvalues() if s.imag > 1e-3)
        np.testing.assert_allclose(found, swings, rtol=1e-9)
