"""Co-simulation of symbolic models: steps against scipy, constraints kept, failures that change nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import fmpy
import numpy as np
import pytest
import sympy
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import solve_ivp

from fmilin.fmi.write import build_fmu
from fmilin.signals import Signal, Signals
from fmilin.systems import four_bar
from tests.fmi.write import samples
from tests.fmi.write.running import FMICallException, Running


def test_steps_follow_the_equations_with_inputs_that_go_on(tmp_path: Path) -> None:
    """x'' = -4 x + u cos(t), u = 0.5 + 2 (t - 1) from t = 1 on."""
    path = build_fmu(samples.oscillator(), tmp_path / "model.fmu")
    with Running(path, co_simulation=True).start_stepping(1.0) as fmu:
        fmu.fmu.setRealInputDerivatives([fmu.reference["u"]], [1], [2.0])
        for k in range(20):
            fmu.step(1.0 + 0.1 * k, 0.1)
        actual = fmu.get("x", "v", "u", "energy")
        slope = fmu.slopes("energy")
    motion = solve_ivp(
        lambda t, s: [s[1], -4 * s[0] + (0.5 + 2 * (t - 1)) * np.cos(t)], (1.0, 3.0), [1.0, 0.0], rtol=1e-12, atol=1e-13
    )
    x, v = motion.y[:, -1]
    u = 4.5
    assert_allclose(actual, [x, v, u, 2 * x**2 + v**2 / 2], rtol=1e-7)
    assert_allclose(slope, [4 * x * v + v * (-4 * x + u * np.cos(3.0))], rtol=1e-6)


def test_one_long_step_is_as_good_as_many(tmp_path: Path, version: str) -> None:
    path = build_fmu(samples.decay(), tmp_path / "model.fmu", fmi_version=version)
    for steps in (1, 10, 1000):
        with Running(path, co_simulation=True).start_stepping() as fmu:
            for k in range(steps):
                fmu.step(2.0 * k / steps, 2.0 / steps)
            assert fmu.get("x") == [pytest.approx(np.exp(-2.0), rel=1e-7)]


def test_the_tolerance_of_the_importer_counts(tmp_path: Path, version: str) -> None:
    path = build_fmu(samples.decay(), tmp_path / "model.fmu", fmi_version=version)
    errors = []
    for tolerance in (1e-3, 1e-6, 1e-12):
        with Running(path, co_simulation=True) as fmu:
            if fmu.is_fmi2:
                fmu.fmu.setupExperiment(tolerance=tolerance)
                fmu.fmu.enterInitializationMode()
            else:
                fmu.fmu.enterInitializationMode(tolerance=tolerance)
            fmu.fmu.exitInitializationMode()
            fmu.step(0.0, 2.0)
            errors.append(abs(fmu.get("x")[0] - np.exp(-2.0)))
    assert errors[0] > 10 * errors[1] > 100 * errors[2]
    assert errors[2] < 1e-12


def test_a_mechanism_stays_on_its_constraints(tmp_path: Path, version: str) -> None:
    path = build_fmu(four_bar(), tmp_path / "model.fmu", fmi_version=version)
    push = np.array([(0.0, 0.5), (5.0, 0.5)], dtype=[("time", float), ("torque", float)])
    result = fmpy.simulate_fmu(
        str(path), stop_time=5.0, output_interval=0.05, fmi_type="CoSimulation", input=push,
        output=["phi", "residual[1]", "residual[4]"],
    )  # fmt: skip
    other = fmpy.simulate_fmu(
        str(path), stop_time=5.0, output_interval=0.05, fmi_type="ModelExchange", input=push, output=["phi"],
        relative_tolerance=1e-11,
    )  # fmt: skip
    assert_allclose(result["phi"], other["phi"], rtol=0, atol=1e-6)
    assert np.ptp(result["phi"]) > 0.1
    assert max(np.abs(result["residual[1]"]).max(), np.abs(result["residual[4]"]).max()) < 1e-8


def test_a_saved_state_repeats_bit_by_bit(tmp_path: Path, version: str) -> None:
    with Running(build_fmu(samples.oscillator(), tmp_path / "m.fmu", fmi_version=version), co_simulation=True) as fmu:
        fmu.start_stepping()
        fmu.step(0.0, 0.3)
        saved = fmu.fmu.getFMUState()
        fmu.step(0.3, 0.4)
        first = fmu.get("x", "v", "time")
        fmu.fmu.setFMUState(saved)
        fmu.step(0.3, 0.4)
        assert_array_equal(fmu.get("x", "v", "time"), first)
        fmu.fmu.freeFMUState(saved)


def test_an_equation_without_solution_ahead_discards_the_step(tmp_path: Path, version: str) -> None:
    """x' = 1 / (1 - x) / 2 reaches x = 1 at t = 1 with an infinite slope."""
    x, w = sympy.symbols("x w")
    system = replace(
        samples.decay(), derivatives=(w,), unknowns=(w,), matrix={(0, 0): 2 * (1 - x)},
        right_hand_side=(sympy.Integer(1),),
        states=(x,), state_signals=Signals([Signal("x")]),
    )  # fmt: skip
    path = build_fmu(system, tmp_path / "model.fmu", fmi_version=version)
    with Running(path, co_simulation=True).start_stepping() as fmu:
        fmu.step(0.0, 0.75)
        before = fmu.get("x", "time")
        assert before == [pytest.approx(0.5, rel=1e-6), 0.75]
        with pytest.raises(FMICallException) as caught:
            fmu.step(0.75, 1.0)
        assert caught.value.status == 2
        assert "steps of the integrator have become too small" in fmu.messages[-1] or "singular" in fmu.messages[-1]
        assert fmu.get("x", "time") == before
        if fmu.is_fmi2:
            assert fmu.fmu.getRealStatus(2) == 0.75  # fmi2LastSuccessfulTime
            assert fmu.fmu.getBooleanStatus(3) == 0  # fmi2Terminated


def test_without_states_steps_only_move_time(tmp_path: Path, version: str) -> None:
    with Running(build_fmu(samples.gain(), tmp_path / "m.fmu", fmi_version=version), co_simulation=True) as fmu:
        fmu.start_stepping()
        fmu.step(0.0, 1.5)
        assert fmu.get("y", "time") == [6.0, 1.5]
