"""Co-simulation FMUs with a fixed step inside: the plant behind it, which integrator it is, and the discrete model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import linalg

import fmilin as fl
from tests.cosimulation_table import Case, linearized, plant_at_start
from tests.fixed_step_table import CASES
from tests.linearization.identification.toys import transfer

NAMES = {
    "Euler": "explicit Euler", "semi-implicit": "semi-implicit Euler method (velocities first)",
    "Runge-Kutta": "Runge-Kutta method of order 4", "trapezoid": "trapezoidal rule", "Heun": "order 2",
}  # fmt: skip
TOLD = [case for case in CASES if not case.name.startswith("implicit") and ", lag, holds" not in case.name]
SAMPLE = [
    case for case in TOLD
    if any(part in case.name for part in ("pendulum", "motor", "communicates", "oscillator, refuses", "cart", "Heun"))
]  # fmt: skip


def assert_same_plant(linear: fl.LinearModel, case: Case) -> None:
    """The transfer function that the plant of the table has in closed form."""
    A, B, C, D = plant_at_start(case)
    assert linear.A.shape == A.shape
    fastest = float(np.max(np.abs(np.linalg.eigvals(A))))
    for s in fastest * np.array([0.3 + 0.1j, 0.3 + 1j, 0.3 + 3j]):
        G = transfer(A, B, C, D, s)
        np.testing.assert_allclose(
            transfer(linear.A, linear.B, linear.C, linear.D, s), G, atol=1e-6 * np.max(np.abs(G))
        )


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.name)
def test_the_plant_behind_a_fixed_step_is_found(case: Case, tmp_path: Path) -> None:
    linear = linearized(case, tmp_path)
    assert_same_plant(linear, case)
    said = " ".join(str(w) for w in linear.warnings if w.kind in ("integrator", "accuracy"))
    assert NAMES[case.family.split(",")[0]] in said


def test_the_discrete_model_is_at_hand(tmp_path: Path) -> None:
    """Euler's method in steps of 0.02 s: Phi = 1 + h A, Gamma = h B."""
    case = next(case for case in CASES if case.name == "Euler, pendulum, holds")
    linear = linearized(case, tmp_path)
    discrete = linear.discrete
    assert discrete is not None
    assert discrete.sample_time == case.solver[1]
    A, B, _, _ = plant_at_start(case)
    for z in (1.1, np.exp(0.3j)):
        expected = transfer(np.eye(2) + 0.02 * A, 0.02 * B, np.eye(2)[:1], np.zeros((1, 1)), z)
        found = transfer(discrete.A, discrete.B, discrete.C, discrete.D, z)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert linear.is_equilibrium


def test_an_integrator_that_nothing_tells_is_not_guessed(tmp_path: Path) -> None:
    """A lag between one input and one output answers every integrator's steps with a plant of its own."""
    case = next(case for case in CASES if case.name == "Runge-Kutta, lag, holds")
    linear = linearized(case, tmp_path)
    (remark,) = (w for w in linear.warnings if w.kind == "accuracy")
    assert "cannot be told" in str(remark)
    assert "the explicit Euler method" in str(remark)
    difference = 1 - (1 - np.exp(-0.03)) / 0.03  # of Euler's plant, (Phi - 1)/h, beside log(Phi)/h
    assert pytest.approx(difference, rel=0.05) == linear.accuracy.A
    np.testing.assert_allclose(linear.A, [[-3.0]], rtol=1e-8)
    assert linalg.expm(0.01 * linear.A)[0, 0] == pytest.approx(linear.discrete.A[0, 0])  # type: ignore[union-attr]
