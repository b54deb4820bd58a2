"""The N-loop four-bar linkage against its equation of motion in phi alone."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from fmilin import NumericalError, UsageError
from fmilin.signals import FloatArray
from fmilin.systems import four_bar
from tests.systems.oracle import reduced, relative_error

K, L0, G = 25.0, np.sqrt(2.0), 9.81


def closed_form(N: int, c: float, phi: float, w: float, k: float = K) -> tuple[FloatArray, FloatArray]:
    """A and B of J phi'' = torque - g (3N + 1)/2 cos(phi) + N k (s - l0) sin(phi/2) - N c sin(phi/2)^2 w."""
    J, h, s = (4 * N + 1) / 3, phi / 2, 2 * np.cos(phi / 2)
    spring = k * (-(np.sin(h) ** 2) + (s - L0) * np.cos(h) / 2)
    by_phi = G * (3 * N + 1) / 2 * np.sin(phi) + N * spring - N * c * np.sin(phi) / 2 * w
    return np.array([[0.0, 1.0], [by_phi / J, -N * c * np.sin(h) ** 2 / J]]), np.array([[0.0], [1 / J]])


def posture(N: int, phi: float, w: float) -> FloatArray:
    """All states of the parallelogram at phi."""
    q = [e for i in range(N + 1) for e in (i + np.cos(phi), np.sin(phi))]
    v = [-w * np.sin(phi), w * np.cos(phi)] * (N + 1)
    return np.array([*q, phi, *v, w])


@pytest.mark.parametrize(
    ("options", "eigenvalue"),
    [
        ({}, 2.147676638502278j),
        ({"damping": 1.0}, -0.2423858093105051 + 2.13395502834838j),
        ({"loops": 2}, 1.817387914479055j),
        ({"branch": "hanging"}, 4.38998861046359j),
        ({"branch": "hanging", "damping": 1.0}, -0.15 + 1j * np.sqrt(4.38998861046359**2 - 0.15**2)),
    ],
)
def test_published_eigenvalues(options: dict[str, Any], eigenvalue: complex) -> None:
    A, *_ = reduced(four_bar(**options), ["phi", "w"])
    found = np.linalg.eigvals(A)
    np.testing.assert_allclose(found[np.argmax(found.imag)], eigenvalue, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("branch", ["upper", "hanging"])
@pytest.mark.parametrize("loops", [1, 2, 5])
def test_it_starts_at_an_equilibrium(loops: int, branch: Literal["upper", "hanging"]) -> None:
    model = four_bar(loops, branch=branch)
    at = model.evaluate(0.0, model.start.states, model.start.inputs)
    assert len(model.states) == 4 * loops + 6
    assert len(model.constraints) == 2 * (2 * loops + 2)
    np.testing.assert_allclose(at.derivatives, 0.0, atol=1e-13)
    np.testing.assert_allclose(at.residuals, 0.0, atol=1e-15)


def test_the_upper_equilibrium_of_one_loop() -> None:
    np.testing.assert_allclose(
        four_bar().evaluate(0, four_bar().start.states, np.zeros(1)).outputs[0], 2.234331019017586, rtol=3e-16
    )


@pytest.mark.parametrize("loops", [1, 2, 5])
@pytest.mark.parametrize(("phi", "w"), [(2.0, 0.0), (2.0, 0.7), (-1.2, -3.0), (1.1, 2.0)])
def test_slopes_at_any_posture_and_speed(loops: int, phi: float, w: float) -> None:
    model, states = four_bar(loops, damping=0.8), posture(loops, phi, w)
    at = model.evaluate(0.0, states, np.zeros(1))
    np.testing.assert_allclose(at.residuals, 0.0, atol=1e-14)
    A, B, C, D = reduced(model, ["phi", "w"], states)
    expected_A, expected_B = closed_form(loops, 0.8, phi, w)
    assert relative_error(A, expected_A) < 1e-12
    assert relative_error(B, expected_B) < 1e-13
    np.testing.assert_allclose(C, [[1, 0], [0, 1], [np.cos(phi), 0]], atol=1e-14)
    assert not D.any()


def test_outputs_that_are_states_are_known_to_be() -> None:
    model = four_bar()
    assert {i: model.states.names[copy.index] for i, copy in model.copies.items()} == {0: "phi", 1: "w"}
    assert model.independent == ("phi", "w")


@pytest.mark.parametrize("loops", [1, 3])
def test_at_the_singular_posture_the_accelerations_are_not_determined(loops: int) -> None:
    model = four_bar(loops, singular=True)
    assert model.start.states.tolist() == posture(loops, 0.0, 0.0).tolist()
    with pytest.raises(NumericalError, match=r"singular .* leaves .*lambda\[.* undetermined") as caught:
        model.evaluate(0.0, model.start.states, model.start.inputs)
    assert str(caught.value.variable).startswith("lambda[")


@pytest.mark.parametrize("loops", [1, 2])
def test_beside_the_singular_posture_the_parallelogram_swings(loops: int) -> None:
    """w^2 = 3 g (3N + 1)/(2 (4N + 1)), with gravity along +x: phi'' = -w^2 sin(phi)."""
    model = four_bar(loops, singular=True)
    square, phi = 3 * G * (3 * loops + 1) / (2 * (4 * loops + 1)), 1e-3
    at = model.evaluate(0.0, posture(loops, phi, 0.0), np.zeros(1))
    np.testing.assert_allclose(at.derivatives[-1], -square * np.sin(phi), rtol=1e-9)


@pytest.mark.parametrize("options", [{"loops": 0}, {"loops": 1.5}, {"branch": "lower"}])
def test_other_linkages_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="four-bar linkage"):
        four_bar(**options)
