"""Co-simulation FMUs as members: identified, then connected; how exact they are is told of the whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import control
import numpy as np
import pytest

import fmilin as fl
from tests.composition.plants import oscillator, oscillator_fmu
from tests.fmus.stepped.make import Kind
from tests.fmus.stepped.make import build as build_stepped

REGULATOR = control.ss([[-3.0]], [[-1.0]], [[2.0]], [[-0.7]], inputs=["y"], outputs=["F"])
WIRES = [("plant.px", "reg.y"), ("reg.F", "plant.F")]


def test_a_co_simulation_fmu_in_a_loop() -> None:
    expected = np.sort_complex(fl.linearize(fl.connect({"plant": oscillator(), "reg": REGULATOR}, WIRES)).eigenvalues())
    with fl.load(oscillator_fmu(), interface="cs") as plant:
        lin = fl.linearize(fl.connect({"plant": plant, "reg": REGULATOR}, WIRES))
    np.testing.assert_allclose(np.sort_complex(lin.eigenvalues()), expected, atol=1e-6)


def test_hidden_states_are_identified_and_their_accuracy_travels(tmp_path: Path) -> None:
    """A motor that shows no states, under speed control: what the identification is unsure of, the loop is."""
    gain = control.ss([], [], [], [[-2.0]], inputs=["w"], outputs=["V"])
    wires = [("motor.speed", "gain.w"), ("gain.V", "motor.V")]
    with fl.load(build_stepped("motor", tmp_path, Kind(hidden=True))) as motor:
        part = fl.linearize(motor)
        system = fl.connect({"motor": motor, "gain": gain}, wires)
    whole = fl.linearize(system)
    speed, volts = part.outputs.positions["speed"], part.inputs.positions["V"]
    A = part.A - 2.0 * np.outer(part.B[:, volts], part.C[speed])
    np.testing.assert_allclose(whole.A, A, rtol=1e-12, atol=1e-12 * np.abs(A).max())
    E = part.errors
    bound = E.A + 2.0 * (
        np.outer(E.B[:, volts], np.abs(part.C[speed])) + np.outer(np.abs(part.B[:, volts]), E.C[speed])
    )
    assert (0.99 * bound <= whole.errors.A).all()
    assert 0.9 * part.accuracy.A * np.abs(part.A).max() / np.abs(A).max() <= whole.accuracy.A


def test_errors_go_through_a_loop() -> None:
    """Twice the slope on the way around makes twice the error; a closed loop magnifies it by (1 - k d)^-1 squared."""
    part = fl.linearize(oscillator(), outputs=["px"])
    unsure = replace(part, D=np.array([[0.5]]), errors=replace(part.errors, D=np.array([[1e-4]])))
    system = fl.connect({"m": unsure}, [("m.px", "m.F")])
    lin = fl.linearize(system)
    # F = px + ... : F = C x/(1 - d), dF/dd = C x/(1 - d)^2
    assert lin.errors.A[1, 0] == pytest.approx(1e-4 / 0.5**2, rel=1e-6)
