"""A sweep gives the same whether its points are found one at a time or in batches, whatever the model is written as."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fmilin as fl
from fmilin.families import solver
from fmilin.models import FunctionModel, OdeModel
from fmilin.signals import FloatArray
from fmilin.systems import bicycle, cartesian_pendulum, five_bar, four_bar, rolling_disk, slider_crank

ROUNDING = 1e-12
CONVERGED = 1e-9
"""The step that may follow the last one of a trim, in sizes: a chord ends there, a batch is polished."""

QUANTITIES = ("A", "B", "C", "D", "T", "f0", "y0", "x0", "u0", "out0")


@dataclass(frozen=True)
class Case:
    """A sweep of one quantity, from a value on, to one of some others."""

    make: Callable[[], fl.Model]
    name: str
    begin: float
    end: float
    how: Mapping[str, Any] = field(default_factory=dict)
    tolerance: float = ROUNDING


ROLLING = {"trim": fl.TrimRequest(steady=["x", "y", "rear_wheel", "front_wheel", "rear_rate"])}
TORQUE = {"trim": fl.TrimRequest(free=["torque"])}
LEANING = {"q2": 0.3, "u1": 0.0, "q1": 0.0, "q3": 0.0, "q4": 0.0, "q5": 0.0}
SPINNING = {"trim": fl.TrimRequest(steady=["q1", "q3", "q4", "q5"], fixed=LEANING)}

CASES = {
    "Kane, steady motion": Case(bicycle, "rear_rate", -30.0, -6.0, ROLLING),
    "Kane, steady turn": Case(lambda: rolling_disk(2.0, lean=0.3), "u3", 0.4, 0.8, SPINNING, CONVERGED),
    "Lagrange, assembled": Case(five_bar, "q1", 2.2, 2.4),
    "Lagrange, held by its torque": Case(four_bar, "phi", 0.5, 1.5, TORQUE, CONVERGED),
    "mechanism, assembled": Case(slider_crank, "phi", 0.2, 0.9),
    "equations, assembled": Case(cartesian_pendulum, "x", 0.05, 0.6),
    "equations, pushed": Case(cartesian_pendulum, "F", 0.1, 3.0, {"trim": fl.TrimRequest()}, CONVERGED),
}


def count_batch_points(family: fl.LinearFamily) -> int:
    return int((family.array("visits")[..., 0] == 0).sum())


def assert_equal_families(one: fl.LinearFamily, other: fl.LinearFamily, tolerance: float) -> None:
    assert one.ok.all()
    assert other.ok.all()
    assert one.states.names == other.states.names
    assert [[str(w) for w in linear.warnings] for linear in one] == [
        [str(w) for w in linear.warnings] for linear in other
    ]
    for name in QUANTITIES:
        assert_close(one.array(name), other.array(name), tolerance)


def assert_close(values: FloatArray, expected: FloatArray, tolerance: float) -> None:
    size = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(values, expected, rtol=0.0, atol=tolerance * size)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@given(part=st.floats(0.2, 1.0), count=st.integers(7, 12))
@settings(max_examples=3, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_points_one_at_a_time_are_those_of_batches(case: Case, part: float, count: int) -> None:
    vary = {case.name: np.linspace(case.begin, case.begin + part * (case.end - case.begin), count)}
    batches = fl.sweep(case.make(), vary, **case.how)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(solver, "MIN_BATCH_POINTS", 10**9)
        single = fl.sweep(case.make(), vary, **case.how)
    assert count_batch_points(single) == 0
    assert count_batch_points(batches) >= count // 2
    assert_equal_families(batches, single, case.tolerance)


def spring(_t: float, s: FloatArray, u: FloatArray) -> FloatArray:
    x, v = s
    return np.array([v, u[0] - 2.0 * x - x**3 - v])


@pytest.mark.parametrize("trim", [None, fl.TrimRequest()], ids=["settings", "trimmed"])
def test_a_model_without_batches_has_the_points_of_one_with_them(trim: fl.TrimRequest | None) -> None:
    """The same spring as functions, which answer for one point at a time, and as equations."""
    equations = OdeModel("spring", {"x": "v", "v": "u - 2*x - x^3 - v"}, inputs=["u"])
    functions = FunctionModel("spring", {"x": 0.0, "v": 0.0}, spring, inputs=["u"], analytic=True)
    assert not functions.batches
    vary = {"u": np.linspace(0.1, 2.0, 12)}
    batches, single = (fl.sweep(model, vary, trim=trim) for model in (equations, functions))
    assert count_batch_points(batches) >= 9
    assert count_batch_points(single) == 0
    tolerance = ROUNDING if trim is None else CONVERGED
    for name in ("A", "B", "f0", "x0", "u0"):
        assert_close(batches.array(name), single.array(name), tolerance)
    if trim is not None:
        x = batches.x0[:, 0]
        np.testing.assert_allclose(2.0 * x + x**3, vary["u"], rtol=CONVERGED)


@pytest.mark.parametrize("part", [0.0, 0.5])
def test_the_first_point_of_a_batch_is_that_of_a_sweep_of_one(part: float) -> None:
    """Grids of a single point have no batches at all."""
    angles = 0.3 + part + np.linspace(0.0, 0.4, 8)
    family = fl.sweep(slider_crank(), {"phi": angles})
    assert count_batch_points(family) >= 6
    for angle, linear in zip(angles, family, strict=True):
        alone = fl.sweep(slider_crank(), {"phi": [angle]})
        assert count_batch_points(alone) == 0
        for name in ("A", "B", "C", "D", "f0"):
            assert_close(getattr(linear, name), getattr(alone[0], name), ROUNDING)
