"""Aircraft of JSBSim: rates against JSBSim's own motion, engines, names and files, and what cannot be had."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fmilin_jsbsim import JsbsimEngine
from fmilin_jsbsim.attitude import angle_rates, angles_of, quaternion_of, quaternion_rates, rotation
from fmilin_jsbsim.simulator import Simulator, aircraft_files, data_folder, with_ideal_actuators
from lxml import etree

import fmilin as fl

ROOT = data_folder()


def engine_of(name: str) -> JsbsimEngine:
    return JsbsimEngine(aircraft_files()[name])


def anywhere(engine: JsbsimEngine, speed: float, altitude: float) -> tuple[np.ndarray, np.ndarray]:
    """Return a turning, climbing state with a bank, and inputs."""
    x = engine.states.starts.copy()
    x[2], x[3:7] = altitude, quaternion_of(0.3, 0.1, 2.2)
    x[7:13] = [speed, 0.02 * speed, 0.05 * speed, 0.05, 0.03, -0.04]
    u = engine.inputs.starts.copy()
    u[:3] = [0.1, -0.05, 0.05]
    return x, u


# ---------------------------------------------------------------------- attitudes


def test_rotations_quaternions_and_angles_belong_together() -> None:
    e = quaternion_of(0.4, -0.3, 2.5)
    T = rotation(e)
    assert angles_of(T) == pytest.approx((0.4, -0.3, 2.5), abs=1e-14)
    np.testing.assert_allclose(T @ T.T, np.eye(3), atol=1e-15)
    down = T @ np.array([0.0, 0.0, 1.0])
    assert down == pytest.approx([np.sin(0.3), np.sin(0.4) * np.cos(0.3), np.cos(0.4) * np.cos(0.3)], abs=1e-15)


def test_quaternions_and_angles_turn_with_the_same_angular_velocity() -> None:
    w, h, start = np.array([0.3, -0.2, 0.5]), 1e-6, np.array([0.4, -0.3, 2.5])
    moved = start + h * angle_rates(start[0], start[1], w)
    e = quaternion_of(*start) + h * quaternion_rates(quaternion_of(*start), w)
    assert angles_of(rotation(e)) == pytest.approx(moved, abs=1e-11)


# ---------------------------------------------------------------------- rates


@pytest.mark.parametrize(("name", "speed", "altitude"), [("737", 600.0, 20000.0), ("c172p", 180.0, 4000.0)])
def test_rates_are_those_of_jsbsims_own_motion(name: str, speed: float, altitude: float) -> None:
    """JSBSim starts at the same state and flies by itself, by Euler's steps: extrapolated to steps of length zero."""
    engine = engine_of(name)
    x, u = anywhere(engine, speed, altitude)
    rates, seen = engine.visit(0.0, x, u)
    fdm = engine._jsbsim._fdm
    watched = ["position/lat-gc-rad", "position/long-gc-rad", "position/h-sl-ft", "attitude/phi-rad",
               "attitude/theta-rad", "attitude/psi-rad", *(f"velocities/{n}" for n in (
                   "u-fps", "v-fps", "w-fps", "p-rad_sec", "q-rad_sec", "r-rad_sec"))]  # fmt: skip
    for kind in ("rate/rotational", "rate/translational", "position/rotational", "position/translational"):
        fdm[f"simulation/integrator/{kind}"] = 1  # Euler

    def slopes(step: float) -> np.ndarray:
        engine.visit(0.0, x, u)
        before = engine._jsbsim.get(watched)
        engine._jsbsim.advance(step)
        return np.asarray((engine._jsbsim.get(watched) - before) / step)

    extrapolated = 2 * slopes(1e-4) - slopes(2e-4)
    angles = [seen[engine.quantities.index_of(f"der({n})")] for n in ("phi", "theta", "psi")]
    ours = np.concatenate((rates[:3], angles, rates[7:13]))
    np.testing.assert_allclose(extrapolated, ours, rtol=2e-5, atol=2e-6)


def test_a_state_has_the_same_rates_wherever_the_aircraft_was_before() -> None:
    engine = engine_of("c172p")
    x, u = anywhere(engine, 180.0, 4000.0)
    first = engine.visit(0.0, x, u)[0]
    elsewhere = x * 1.05
    elsewhere[3:7] = quaternion_of(-0.4, 0.2, 1.0)
    engine.visit(0.0, elsewhere, u + 0.1)
    again = engine.visit(0.0, x, u)[0]
    np.testing.assert_allclose(again, first, rtol=1e-9, atol=1e-8)


def test_speed_and_manifold_pressure_of_an_engine_go_where_they_should() -> None:
    """JSBSim itself says that the engine is there; the manifold's pressure has a lag of one second."""
    engine = engine_of("c172p")
    x, u = anywhere(engine, 180.0, 4000.0)
    x[13:] = [2300.0, 6e4]
    rates = engine.visit(0.0, x, u)[0]
    assert engine._jsbsim["propulsion/engine/propeller-rpm"] == pytest.approx(2300.0, rel=1e-9)
    assert engine._jsbsim["propulsion/engine/map-pa"] == pytest.approx(6e4, rel=1e-9)
    x[14] += 100.0
    slope = (engine.visit(0.0, x, u)[0][14] - rates[14]) / 100.0
    assert slope == pytest.approx(-1.0, rel=1e-6)  # 1/s
    x[13] = -5.0
    with pytest.raises(fl.NumericalError, match="has a speed and a manifold pressure above zero"):
        engine.visit(0.0, x, u)


# ---------------------------------------------------------------------- files and names


def test_an_aircraft_has_a_name_or_a_file() -> None:
    named, file = fl.load("jsbsim:A4"), fl.load(ROOT / "aircraft" / "A4" / "A4.xml")
    assert named.states.names == file.states.names
    assert {"flaps": 0.0, "gear": 0.0, "mixture": 1.0}.items() <= named.parameters.items()
    with pytest.raises(fl.UnknownNameError, match=r"'no-such-plane' is not an aircraft .* Known: 737"):
        fl.load("jsbsim:no-such-plane")


def test_flaps_are_a_parameter() -> None:
    model = fl.load("jsbsim:c172p", parameters={"flaps": 1.0})
    clean = fl.load("jsbsim:c172p")
    x, u = clean.start.states, clean.start.inputs
    lift = [m.with_interface(outputs=["nz"]).evaluate(0.0, x, u).outputs[0] for m in (clean, model)]
    assert lift[1] > lift[0] + 0.2
    with pytest.raises(fl.UnknownNameError, match=r"'flap' is not .*flaps"):
        fl.load("jsbsim:c172p", parameters={"flap": 1.0})


def test_actuators_are_ideal_and_nothing_is_opened_or_written() -> None:
    path = aircraft_files()["c172x"]
    assert "hysteresis_width" in path.read_text()
    with with_ideal_actuators(path) as (folder, lost):
        root = etree.parse(str(folder / "c172x" / "c172x.xml")).getroot()
        assert not [*root.iter("hysteresis_width"), *root.findall("output"), *root.findall("input")]
        assert list(root.iter("actuator"))
        assert {"hysteresis", "lags"} <= set(lost)
    assert "Actuators are ideal here, without hysteresis, lags" in " ".join(fl.load("jsbsim:c172x").notes)


def test_a_file_that_jsbsim_cannot_load(tmp_path: Path) -> None:
    path = tmp_path / "kite" / "kite.xml"
    path.parent.mkdir()
    path.write_text(
        '<?xml version="1.0"?><fdm_config name="kite" version="2.0" release="ALPHA"><metrics/></fdm_config>'
    )
    with pytest.raises(fl.ModelError, match="JSBSim cannot load"):
        Simulator(path)


def test_what_jsbsim_prints_goes_to_standard_error() -> None:
    """In a process of its own: JSBSim greets once."""
    script = "import fmilin as fl; print(len(fl.load('jsbsim:A4').states))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "13\n"
    assert "JSBSim Flight Dynamics Model" in done.stderr
