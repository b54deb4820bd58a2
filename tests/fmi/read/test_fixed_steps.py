"""Co-simulation FMUs with a fixed step inside: the plant behind it, which integrator it is, and the discrete model."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import linalg

import fmilin as fl
from fmilin import Stepping
from tests.cosimulation_table import (
    DIVIDES,
    EULER,
    HOLDS,
    IMPLICIT,
    LAG,
    OSCILLATOR,
    REFUSES,
    RUNGE_KUTTA,
    Case,
    linearized,
    plant_at_start,
)
from tests.fixed_step_table import CASES
from tests.identification.toys import transfer

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
    case = Case("lag", LAG, (np.pi, 2.0), (RUNGE_KUTTA, 0.01, HOLDS), step=0.01)
    linear = linearized(case, tmp_path)
    (remark,) = (w for w in linear.warnings if w.kind == "accuracy")
    assert "cannot be determined" in str(remark)
    assert "the explicit Euler method" in str(remark)
    difference = 1 - (1 - np.exp(-0.01 * np.pi)) / (0.01 * np.pi)  # of Euler's plant, (Phi - 1)/h, beside log(Phi)/h
    assert pytest.approx(difference, rel=0.05) == linear.accuracy.A
    np.testing.assert_allclose(linear.A, [[-np.pi]], rtol=1e-8)
    assert linalg.expm(0.01 * linear.A)[0, 0] == pytest.approx(linear.discrete.A[0, 0])  # type: ignore[union-attr]


def test_coefficients_of_few_digits_tell_the_integrator(tmp_path: Path) -> None:
    """The lag has the coefficient 3 with the Runge-Kutta method, and 3.00000002 with a solver without error."""
    case = Case("lag", LAG, (3.0, 2.0), (RUNGE_KUTTA, 0.01, HOLDS), step=0.01)
    linear = linearized(case, tmp_path)
    np.testing.assert_allclose(linear.A, [[-3.0]], rtol=1e-13)
    (remark,) = (w for w in linear.warnings if w.kind == "integrator")
    assert "Runge-Kutta method of order 4" in str(remark)


@pytest.mark.parametrize("suffix", [".json", ".mat", ".npz", ".fmu"])
def test_files_hold_the_discrete_model(suffix: str, tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == "Euler, pendulum, holds")
    linear = linearized(case, tmp_path)
    linear.save(tmp_path / f"plant{suffix}")
    read = fl.LinearModel.load(tmp_path / f"plant{suffix}").discrete
    assert read is not None
    assert linear.discrete is not None
    assert read.sample_time == linear.discrete.sample_time
    for name in ("A", "B", "C", "D", "f0"):
        np.testing.assert_array_equal(getattr(read, name), getattr(linear.discrete, name))
    np.testing.assert_array_equal(read.errors.A, linear.discrete.errors.A)
    assert read.accuracy == linear.discrete.accuracy


FREQUENCY, DAMPING = 2.0 + np.sqrt(2) / 100, 0.3 + np.sqrt(3) / 100  # of many digits


def test_a_plant_that_two_integrators_explain_states_their_difference(tmp_path: Path) -> None:
    """Of a position alone, implicit Euler's steps are those of the semi-implicit method with another plant."""
    case = Case("implicit", OSCILLATOR, (FREQUENCY, DAMPING), (IMPLICIT, 0.01, REFUSES), step=0.01)
    linear = linearized(case, tmp_path)
    A, B, C, D = plant_at_start(case)
    s = FREQUENCY * (0.3 + 1j)
    true = transfer(A, B, C, D, s)
    error = float(np.max(np.abs(transfer(linear.A, linear.B, linear.C, linear.D, s) - true)) / np.max(np.abs(true)))
    assert 0.01 < error <= linear.accuracy.A
    (remark,) = (w for w in linear.warnings if w.kind == "accuracy")
    assert "do not distinguish it from the implicit Euler method" in str(remark)


def test_plants_of_two_integrators_that_differ_by_a_tenth_are_an_error(tmp_path: Path) -> None:
    case = Case("implicit", OSCILLATOR, (FREQUENCY, DAMPING), (IMPLICIT, 0.1, REFUSES), step=0.1)
    with pytest.raises(fl.NumericalError, match="belong to more than one plant") as caught:
        linearized(case, tmp_path)
    assert "integrator=" in str(caught.value)
    named = replace(case, stepping=Stepping(integrator="implicit-euler"))
    assert_same_plant(linearized(named, tmp_path), case)
    with pytest.raises(fl.UsageError, match="integrator= must be 'euler'"):
        Stepping(integrator="leapfrog")


def test_orders_of_updates_that_few_tools_have_are_named_with_their_eigenvalues(tmp_path: Path) -> None:
    """Positions first, Euler's steps are those of a plant that has h k less damping."""
    case = Case("Euler", OSCILLATOR, (FREQUENCY, DAMPING), (EULER, 0.05, REFUSES), step=0.05)
    linear = linearized(case, tmp_path)
    assert_same_plant(linear, case)
    (remark,) = (w for w in linear.warnings if w.kind == "accuracy")
    assert "Unusual orders of updates" in str(remark)
    growth = -(DAMPING - 0.05 * FREQUENCY**2) / 2
    assert f"(positions first) would have eigenvalue {growth:.4g} +-" in str(remark)


@pytest.mark.parametrize("lifted", [False, True])
def test_an_inaccurate_step_from_displaced_states_is_told(tmp_path: Path, *, lifted: bool) -> None:
    """Euler's method in steps of 0.01 s inside communication steps of 0.1 s: halves differ, and the user reads it."""
    stepping = Stepping(method="step", step=0.1, lifted=lifted)
    coarse = Case("coarse", OSCILLATOR, (3.0, 0.4, 2.0), (EULER, 0.01, DIVIDES), states=2, stepping=stepping)
    linear = linearized(coarse, tmp_path)
    worst = max(linear.accuracy.A, linear.accuracy.B)
    said = any(w.kind == "accuracy" for w in linear.warnings)
    assert said == (worst > 1e-3)
    if not lifted:
        assert worst > 1e-3


@pytest.mark.skipif(shutil.which("octave") is None, reason="Octave is not installed")
def test_a_function_file_holds_the_discrete_model(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == "Euler, pendulum, holds")
    linear = linearized(case, tmp_path)
    linear.save(tmp_path / "plant.m")
    program = "[~, ~, p] = plant(); d = p.discrete; printf('%.17g ', d.Ad', d.Bd, d.Cd, d.Dd, d.Ts);"
    command = ["octave", "--no-gui", "--norc", "--eval", f"pkg load control; {program}"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    discrete = linear.discrete
    assert discrete is not None
    expected = np.concatenate([M.ravel() for M in (discrete.A, discrete.B, discrete.C, discrete.D)])
    np.testing.assert_array_equal([float(number) for number in result.stdout.split()], [*expected, 0.02])
