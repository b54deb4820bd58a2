"""Rotors: two blades never become constant, three and four do in Coleman's coordinates."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.linalg import expm

import fmilin as fl
from fmilin.families.multiblade import build_transformation
from fmilin.models import OdeModel
from tests.periodic.rotors import SPEED, rotor
from tests.periodic.spectra import mismatch


@cache
def along(blades: int, *, sideways: bool = False) -> fl.PeriodicModel:
    model = rotor(blades, sideways=sideways)
    return fl.linearize_periodic(model, fl.periodic_orbit(model, turn="psi", fixed={"v_psi": SPEED}))


def test_two_blades_on_a_hub_that_moves_sideways_are_neutral_whatever_an_instant_says() -> None:
    """The exponents of math.md 17, by products of matrix exponentials of fmilin's own A; an instant shows growth."""
    periodic = along(2, sideways=True)
    floquet = periodic.floquet()
    assert np.sort(np.abs(floquet.exponents.imag)) == pytest.approx(
        np.repeat([0.0, 0.54372, 1.17702, 1.63496], 2), abs=1e-5
    )
    # Nothing holds the speed of the rotor: at another one it drifts away from the motion, along the same path.
    assert floquet.stable is False
    assert floquet.orbitally_stable is True
    assert "grow in proportion to time" in floquet.verdict
    assert max(np.linalg.eigvals(A).real.max() for A in periodic.A) > 0.6
    Phi, count = np.eye(8), 4 * len(periodic.A)
    from fmilin.periodic.fourier import Interpolant

    for A in Interpolant(periodic.A)((np.arange(count) + 0.5) / count):
        Phi = expm(A * periodic.period / count) @ Phi
    gap = mismatch(np.log(np.linalg.eigvals(Phi)) / periodic.period, floquet.exponents, periodic.period)
    assert gap < 1e-4  # of that product, which is of order 2


def test_two_blades_are_neither_transformed_nor_averaged() -> None:
    periodic = along(2, sideways=True)
    with pytest.raises(fl.UsageError, match="'lag' has 2 blades: multiblade coordinates need three or more"):
        periodic.multiblade({"lag": ["b1", "b2"]})
    with pytest.raises(fl.NumericalError, match=r"The mean over the period is not a valid model: .*A varies by 33"):
        periodic.averaged()


@pytest.mark.parametrize("blades", [3, 4])
def test_equal_blades_are_constant_in_multiblade_coordinates(blades: int) -> None:
    periodic = along(blades)
    fixed = periodic.multiblade({"lag": "b*"})
    assert periodic.variation > 0.3
    assert fixed.variation < 1e-13
    names = ["mean", "cos", "sin", "difference"][: blades if blades > 3 else 3]
    assert fixed.states.names[3 : 3 + blades] == tuple(f"lag.{name}" for name in names)
    assert fixed.states.names[-1] == f"der(lag.{names[-1]})"
    own = [k for k, exponent in enumerate(periodic.floquet().exponents) if abs(exponent) > 1e-6]
    exponents = periodic.floquet().exponents[own]
    eigenvalues = fixed.averaged().eigenvalues()
    seen = np.array([value for value in eigenvalues if abs(value) > 1e-6])
    assert mismatch(seen, exponents, periodic.period) < 1e-9
    assert mismatch(fixed.floquet().exponents[own], exponents, periodic.period) < 1e-11


def test_blades_that_are_numbered_backwards_are_transformed_as_well() -> None:
    assert along(3).multiblade({"lag": ["b1", "b3", "b2"]}, azimuth="psi").variation < 1e-13


def test_inputs_of_blades_at_the_point_are_those_of_the_ground() -> None:
    """Of pitch angles (1, 2, 6) the mean is 3; the chosen inputs keep their own values, in whatever order."""
    rates = {f"b{k}": f"-b{k} + u{k} + cos(2*pi*time)" for k in (1, 2, 3)}
    inputs = {"u1": 1.0, "u2": 2.0, "u3": 6.0}
    model = OdeModel(
        "blades", {**rates, "x": "-x + w + cos(2*pi*time)"}, inputs=["w", *inputs], start={"w": 9.0, **inputs}
    )
    orbit = fl.periodic_orbit(model, period=1.0)
    periodic = fl.linearize_periodic(model, orbit, inputs=["u1", "u2", "u3"])
    assert periodic.family()[5].point.inputs == inputs
    fixed = periodic.multiblade({"b": "b?", "u": "u?"}).family()
    seen = np.array([list(fixed[k].point.inputs.values()) for k in (0, 7)])
    psi, pitch = 2 * np.pi * np.arange(3) / 3, np.array([1.0, 2.0, 6.0])
    cos, sin = float(2 / 3 * pitch @ np.cos(psi)), float(2 / 3 * pitch @ np.sin(psi))
    np.testing.assert_allclose(seen[0], [3.0, cos, sin], atol=1e-12)
    np.testing.assert_allclose([seen[1, 0], np.hypot(*seen[1, 1:])], [3.0, np.hypot(cos, sin)], atol=1e-12)


def test_unknown_and_mixed_blades_are_refused() -> None:
    with pytest.raises(fl.UnknownNameError, match="'b9' is not a state, input or output"):
        along(3).multiblade({"lag": ["b1", "b2", "b9"]})
    with pytest.raises(fl.UsageError, match="occurs twice"):
        along(3).multiblade({"lag": ["b1", "b2", "b2"]})


def test_harmonics_of_the_state_space_have_the_exponents_in_their_middle() -> None:
    periodic = along(2, sideways=True)
    harmonic = periodic.harmonic(10)
    assert harmonic.states.names[:9] == (*(f"{name}.0" for name in periodic.states.names), "x.c1")
    values = harmonic.eigenvalues()
    for exponent in periodic.floquet().exponents:
        if abs(exponent) > 1e-6:
            assert np.abs(values - exponent).min() < 1e-9
    with pytest.raises(fl.UsageError, match="64 phases determine 15 harmonics, not 16"):
        periodic.harmonic(16)


def test_the_harmonic_transfer_matrix_says_what_a_harmonic_does_to_another() -> None:
    """x' = -x + (1 + cos t) u: an input cos t moves the mean by 1/2 and the second harmonic by 1/2 / |1 + 2i|."""
    model = fl.models.OdeModel("modulated", {"x": "-x + (1 + cos(time))*u"}, inputs=["u"], outputs={"x": "x"})
    orbit = fl.periodic_orbit(model, period=2 * np.pi)
    harmonic = fl.linearize_periodic(model, orbit, points=16).harmonic(3)
    gain = -harmonic.C @ np.linalg.solve(harmonic.A, harmonic.B)
    column = harmonic.inputs.positions["u.c1"]
    rows = harmonic.outputs.positions
    assert gain[rows["x.0"], column] == pytest.approx(0.5)
    assert np.hypot(gain[rows["x.c2"], column], gain[rows["x.s2"], column]) == pytest.approx(0.5 / abs(1 + 2j))
    assert np.hypot(gain[rows["x.c1"], column], gain[rows["x.s1"], column]) == pytest.approx(1 / abs(1 + 1j))


def test_multiblade_coordinates_of_any_number_of_blades_move_at_the_rate_that_is_said() -> None:
    signals = fl.Signals([f"b{k}" for k in range(6)])
    at = np.array([0.3, 0.3 + 1e-6])
    change = build_transformation(signals, {"b": signals.names}, at, 1.0)
    assert (change.L[1] - change.L[0]) / 1e-6 == pytest.approx(change.rate[0], abs=1e-5)
    assert np.linalg.cond(change.L[0]) < 1.5
