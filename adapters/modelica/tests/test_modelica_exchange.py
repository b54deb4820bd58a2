"""Linear models that fmilin writes as Modelica are read back; plants in Modelica with controllers from elsewhere."""

from __future__ import annotations

from pathlib import Path

import control
import numpy as np
import pytest

pytest.importorskip("rumoca", reason="the Modelica compiler rumoca has no wheel for this platform")

import fmilin as fl
from fmilin.systems import four_bar, furuta_pendulum

FILE = Path(__file__).parent / "models" / "systems.mo"


# The library takes the front end 5 s.
@pytest.mark.parametrize(("plant", "library"), [(four_bar, True), (four_bar, False), (furuta_pendulum, False)])
def test_a_linear_model_is_read_back(plant, library, tmp_path, monkeypatch):
    if not library:
        monkeypatch.delenv("MODELICAPATH", raising=False)
    linear = fl.linearize(plant())
    linear.save(tmp_path / "plant.mo")
    back = fl.linearize(fl.load(str(tmp_path / "plant.mo")))
    for matrix in "ABCD":
        np.testing.assert_array_equal(getattr(back, matrix), getattr(linear, matrix))
    np.testing.assert_array_equal(back.f0, linear.f0)
    values = back.point.states
    np.testing.assert_array_equal(
        [values[name] for name in back.states.names], [linear.point.states[n] for n in linear.states.names]
    )
    assert [s.unit for s in back.states] == [s.unit for s in linear.states]
    assert [s.description.split(":")[0] for s in back.states] == list(linear.states.names)


def test_a_plant_in_modelica_with_a_controller_of_python_control():
    """The same loop, closed in Modelica, is the oracle."""
    whole = fl.linearize(fl.load(f"{FILE}:Systems.Motor"))
    k, Ti = 4.0, 0.5
    pi = control.ss([[0.0]], [[1.0, -1.0]], [[k / Ti]], [[k, -k]], inputs=["wanted", "w"], outputs=["u"])
    with fl.load(f"{FILE}:Systems.Plant") as plant:
        system = fl.connect(
            {"plant": plant, "pi": pi},
            [("pi.u", "plant.u"), ("plant.speed", "pi.w")],
            inputs={"reference": "pi.wanted", "load": "plant.load"},
        )
        linear = fl.linearize(system)
    poles = np.sort_complex(linear.eigenvalues())
    np.testing.assert_allclose(poles, np.sort_complex(whole.eigenvalues()), rtol=1e-9)
