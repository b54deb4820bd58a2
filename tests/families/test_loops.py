"""Families of loops that are cut at a wire, and their margins."""

from __future__ import annotations

from pathlib import Path

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin.composition.system import ConnectedModel
from fmilin.errors import UnknownNameError, UsageError
from fmilin.models import OdeModel
from fmilin.systems import four_bar

GAINS = [1.0, 4.0, 60.0]


def loop() -> ConnectedModel:
    """A spring and a mass, k/(s + 5) around it."""
    equations = {"x": "v", "v": "(u - c*x - d*v)/m"}
    plant = OdeModel("plant", equations, inputs=["u"], parameters={"m": 1.0, "c": 1.0, "d": 0.3}, outputs={"y": "x"})
    law = OdeModel("law", {"z": "-5*z + e"}, inputs=["e"], parameters={"k": 2.0}, outputs={"u": "k*z"})
    return fl.connect({"plant": plant, "law": law}, [("plant.y", "law.e", -1.0), ("law.u", "plant.u")])


@pytest.fixture(scope="module")
def family() -> fl.LinearFamily:
    return fl.sweep(loop(), {"plant.m": [1.0, 2.0], "law.k": GAINS}, loop_at="plant.u")


def test_margins_are_those_of_routh(family: fl.LinearFamily) -> None:
    """(m s^2 + 0.3 s + 1)(s + 5) + k: stable up to k = (0.3 + 5 m)(1.5 + 1)/m - 5 by Routh's scheme."""
    every = family.margins()
    assert every.shape == (2, 3)
    for (i, j), margins in np.ndenumerate(every):
        m, k = [1.0, 2.0][i], GAINS[j]
        most = (0.3 + 5 * m) * 2.5 / m - 5
        assert margins.stable == (k < most)
        if margins.stable:
            assert margins.gain[1] == pytest.approx(most / k, rel=1e-6)


def test_each_is_the_loop_of_that_point(family: fl.LinearFamily) -> None:
    alone = fl.loop_transfer(loop().with_parameters({"plant.m": 2.0, "law.k": 4.0}), "plant.u")
    np.testing.assert_allclose(family[1, 1].to_control()(2.0j), alone.to_control()(2.0j), rtol=1e-12)


def test_a_table_and_a_picture(family: fl.LinearFamily, tmp_path: Path) -> None:
    family.save(tmp_path / "loops.npz")
    text = repr(fl.LinearFamily.load(tmp_path / "loops.npz"))
    assert "Disk margin" in text
    assert text.count("unstable") == 2
    gain, phase = family.plot.margins().axes
    drawn = np.asarray(gain.lines[0].get_ydata(), dtype=float)
    np.testing.assert_allclose(drawn, [8.25, 8.25 / 4, np.nan], rtol=1e-6)
    assert phase.get_xlabel() == "law.k"
    assert "2 of 6 points: the loop is unstable" in gain.get_title(loc="left")
    assert phase.get_xlim()[1] > GAINS[-1]  # where the loop is unstable and nothing is drawn


def test_wires_are_looked_for_before_the_first_point() -> None:
    with pytest.raises(UnknownNameError, match=r"'plant\.x' is not a wire"):
        fl.sweep(loop(), {"law.k": GAINS}, loop_at="plant.x")
    with pytest.raises(UsageError, match="has no wires"):
        fl.sweep(four_bar(), {"phi": [1.0]}, loop_at=["torque"])


def test_a_family_of_continuous_approximations_of_sampled_loops() -> None:
    plant = OdeModel("plant", {"x": "-c*x + u"}, inputs=["u"], parameters={"c": 1.0}, outputs={"y": "x"})
    law = control.ss([[0.6]], [[1.0]], [[0.2]], [[0.15]], 0.05, inputs="e", outputs="u")
    system = fl.connect({"plant": plant, "law": law}, [("plant.y", "law.e", -1.0), ("law.u", "plant.u")])
    family = fl.sweep(system, {"plant.c": [1.0, 2.0]}, loop_at="plant.u", continuous=True)
    alone = fl.loop_transfer(system.with_parameters({"plant.c": 2.0}), "plant.u", continuous=True)
    assert (family[1].sample_time, len(family[1].states)) == (0.0, 3)
    np.testing.assert_allclose(family[1].A, alone.A, rtol=1e-12)
    with pytest.raises(UsageError, match=r"a loop. Name a wire with loop_at="):
        fl.sweep(system, {"plant.c": [1.0]}, continuous=True)
