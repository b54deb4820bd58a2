"""Models of the Modelica Standard Library: A against closed forms, orders, what is refused and why."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rumoca", reason="the Modelica compiler rumoca has no wheel for this platform")

import fmilin as fl
from benchmarks.modelica_models import CASES

FOLDERS = [Path(p) for p in os.environ.get("MODELICAPATH", "").split(os.pathsep) if p]
pytestmark = pytest.mark.skipif(
    not any((folder / "Modelica" / "package.mo").is_file() for folder in FOLDERS),
    reason="MODELICAPATH names no folder with the Modelica Standard Library",
)

# The front end takes some seconds for each: one of each kind here, all of them in ``python -m benchmarks modelica``.
CHOSEN = [c for c in CASES if c.name.endswith(("CauerLowPassAnalog", "PID_Controller", "Elementary.DoublePendulum"))]


@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: case.name.rpartition(".")[2])
def test_a_linear_model_of_the_library(case):
    model = fl.load(case.source)
    point = fl.operating_point(model, case.at)
    linear = fl.linearize(model, point, independent=list(case.coordinates))
    np.testing.assert_allclose(linear.A, case.A, rtol=1e-9, atol=1e-9 * np.abs(case.A).max())


def test_a_loop_closes_near_the_start_values_of_its_joints():
    """The slider stays in front, at r cos(phi) + sqrt(L^2 - r^2 sin(phi)^2): bodies follow their joints."""
    model = fl.load(str(Path(__file__).parent / "models" / "library.mo"))
    start = dict(zip(model.states.names, model.start.states, strict=True))
    assert start["p.s"] == pytest.approx(0.3 * np.cos(0.5) + np.sqrt(0.49 - (0.3 * np.sin(0.5)) ** 2), rel=1e-9)
