"""Margins of loops, against published numbers and python-control."""

from __future__ import annotations

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin.connected.system import ConnectedModel
from fmilin.ground.errors import UsageError


def loop(plant: control.StateSpace, gain: float = 1.0, dt: float = 0.0) -> ConnectedModel:
    plant = control.ss(plant, inputs="u", outputs="y")
    law = control.ss([], [], [], [[gain]], dt, inputs="u", outputs="y")
    return fl.connect({"plant": plant, "law": law}, [("plant.y", "law.u", -1.0), ("law.y", "plant.u")])


def third_order() -> control.StateSpace:
    return control.tf2ss(control.tf([25.0], [1.0, 10.0, 10.0, 10.0]))


def test_the_example_of_seiler_packard_and_gahinet() -> None:
    """An introduction to disk margins (2020): alpha 0.46, gains 0.63 to 1.59 and 26 degrees; classical 3.6 and 29.1."""
    margins = fl.design.margins(fl.loop_transfer(loop(third_order()), "plant.u"))
    assert margins.stable
    assert margins.gain == (0.0, pytest.approx(3.6, abs=1e-9))
    assert margins.phase == pytest.approx(29.1, abs=0.05)
    assert margins.disk == pytest.approx(0.46, abs=0.005)
    assert margins.disk_gain == (pytest.approx(0.63, abs=0.005), pytest.approx(1.59, abs=0.01))
    assert margins.disk_phase == pytest.approx(26, abs=0.5)
    assert margins.delay == pytest.approx(np.deg2rad(margins.phase) / margins.phase_frequency, rel=1e-12)
    grid = np.linspace(1.9, 2.0, 20001)
    assert margins.disk == pytest.approx(control.disk_margins(control.tf(third_order()), grid)[0], rel=1e-7)


def test_a_sampled_loop_as_python_control_has_it() -> None:
    sampled = control.c2d(control.ss(third_order()), 0.1)
    margins = fl.design.margins(fl.loop_transfer(loop(third_order(), dt=0.1), "plant.u"))
    with pytest.warns(UserWarning, match="Falling back"):
        gain, phase, at, crossing = control.margin(sampled)
    assert margins.gain[1] == pytest.approx(gain, rel=1e-3)
    assert margins.phase == pytest.approx(phase, abs=0.05)
    assert (margins.gain_frequency, margins.phase_frequency) == (pytest.approx(at, rel=1e-3), pytest.approx(crossing))


def test_a_loop_that_needs_its_gain() -> None:
    """1/(s - 1) with gain 4: stable from a quarter of it on."""
    plant = control.tf2ss(control.tf([1.0], [1.0, -1.0]))
    margins = fl.design.margins(fl.loop_transfer(loop(plant, 4.0), "plant.u"))
    assert margins.gain == (pytest.approx(0.25), np.inf)
    assert not fl.design.margins(fl.loop_transfer(loop(plant, 0.5), "plant.u")).stable
    assert "unstable: it has no margins" in str(fl.design.margins(fl.loop_transfer(loop(plant, 0.5), "plant.u")))


def test_several_wires_have_a_disk_margin_against_all_at_once() -> None:
    system = loop(third_order())
    single, both = (fl.design.margins(fl.loop_transfer(system, w)) for w in ("plant.u", ["plant.u", "law.u"]))
    assert both.disk < single.disk
    assert np.isnan(both.phase)
    assert "phase nan" not in str(both)


def test_what_is_no_loop() -> None:
    with pytest.raises(UsageError, match="margins are those of a loop"):
        fl.design.margins(fl.opened(loop(third_order()), "plant.u"))
