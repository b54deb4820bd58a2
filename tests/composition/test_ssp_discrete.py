"""Discrete-time numbers between the members of an SSP are held, as they are for an FMU alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from tests.composition.ssp_files import component, connection, connector, ssp, system
from tests.fmus.stepped.make import Kind, build


@pytest.mark.parametrize("outermost", [False, True], ids=["all free inputs", "connectors of the system"])
def test_a_discrete_output_of_a_member_is_held(tmp_path: Path, *, outermost: bool) -> None:
    """A sampled controller feeds the voltage of a motor, whose own slopes are those of the motor alone."""
    kind = Kind(interface="ModelExchange")
    files = {
        "resources/c.fmu": build("controller", tmp_path / "c", kind),
        "resources/m.fmu": build("motor", tmp_path / "m", kind),
    }
    members = [
        component("C", "resources/c.fmu", [connector("y", "output")]),
        component(
            "M", "resources/m.fmu", [connector(n, "input") for n in ("V", "load")] + [connector("speed", "output")]
        ),
    ]
    own, wires = [], [connection("C.y", "M.V")]
    if outermost:
        own = [connector("load", "input"), connector("speed", "output"), connector("command", "output")]
        wires += [connection("load", "M.load"), connection("M.speed", "speed"), connection("C.y", "command")]
    with fl.load(files["resources/m.fmu"]) as alone:
        expected = fl.linearize(alone)
    path = ssp(tmp_path / "system.ssp", system("root", members, wires, own), files)
    with fl.load(path) as model:
        linear = fl.linearize(model)
    np.testing.assert_allclose(linear.A, expected.A, atol=1e-9)
    assert linear.inputs.names == (("load",) if outermost else ("M.load",))
    assert "M.V" in " ".join(map(str, linear.warnings))
    if outermost:
        assert linear.outputs.names == ("speed",)
