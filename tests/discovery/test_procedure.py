"""Constraints that nobody declared: found, nothing missed, nothing invented."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin import Constraint
from fmilin.models import FunctionModel, OdeModel
from fmilin.signals import FloatArray
from fmilin.systems import four_bar, rolling_disk
from tests.discovery import systems, tied
from tests.discovery.truth import CASES, LONGER_CASES, Case, violated
from tests.systems.torus import rolling_torus

MAX_VISITS = {
    "pendulum": 1000,
    "slider crank": 1000,
    "quaternion body": 1000,
    "four-bar": 3000,
    "chain of ten links": 6000,
    "noise of 1e-6": 6000,
}


@pytest.mark.parametrize("case", [*CASES, LONGER_CASES[-1]], ids=lambda case: case.name)
def test_all_is_found_and_nothing_else(case: Case) -> None:
    true, bare = case.models()
    found = fl.discover(bare)
    again = true.with_constraints(found.declared)
    lin = fl.linearize(true)
    ours = fl.linearize(again, independent=lin.states.names)
    assert found.order == len(lin.states)
    quiet = true if case.quiet is None else case.quiet()  # what holds at a point is no matter of noisy rates
    assert violated(quiet.with_constraints(found.declared), true.constraints.declared) == 0
    assert violated(quiet.with_constraints(true.constraints.declared), found.declared) == 0
    noise = {"noise of 1e-8": 1e-7, "noise of 1e-6": 1e-5}.get(case.name, 1e-8)
    np.testing.assert_allclose(ours.A, lin.A, rtol=0, atol=noise * max(1.0, float(np.abs(lin.A).max())))
    assert all(max(f.value, f.along_motion, f.along_inputs) < max(1e-6, noise) for f in found.findings)
    assert found.visits <= MAX_VISITS.get(case.name, 3000)


@pytest.mark.parametrize("model", [tied.gears(loaded=True), tied.gears(loaded=False), tied.pulley()])
def test_ties_that_may_be_momentum_are_listed_as_positions(model: fl.Model) -> None:
    """Without an input that breaks it, or states that act on each other, nothing tells gears from free bodies."""
    found = fl.discover(model)
    assert found.constraints == []
    ties = {k.expression: k.reason for k in found.kept_out if "gears" in k.reason}
    assert list(ties) == (["y1 + y2 - 3"] if model.inputs.names else ["th1 + th2"])


def test_what_is_withdrawn_is_said() -> None:
    lines: list[str] = []
    assert fl.discover(tied.rack(2.5, driven=False), progress=lines.append).constraints == ["th - 2.5*y"]
    assert lines == ["Found: th - 2.5*y = 0"]
    lines = []
    found = fl.discover(systems.chain(4), progress=lines.append)
    told = {line.split(" = 0")[0].removeprefix("Found: ") for line in lines if line.startswith("Found: ")}
    withdrawn = {line.split(" = 0")[0].removeprefix("Withdrawn: ") for line in lines if line.startswith("Withdrawn: ")}
    assert set(found.constraints) == told - withdrawn
    assert [line for line in lines if line.startswith("Searching ")]


def test_the_oracle_tells_a_wrong_length() -> None:
    true, _ = CASES[0].models()
    assert violated(true, [Constraint.from_text("x^2 + y^2 - 1.69")]) == 0
    assert violated(true, [Constraint.from_text("x^2 + y^2 - 1.6900001"), Constraint.from_text("x^2 + 2*y^2 - 3")]) == 2


@pytest.mark.parametrize("seed", range(50))
def test_nothing_is_invented(seed: int) -> None:
    found = fl.discover(systems.unconstrained(seed))
    assert found.constraints == []
    assert found.order == found.full_order


def test_expressions_are_readable() -> None:
    assert fl.discover(four_bar().with_constraints([])).constraints == [
        "x1 - cos(phi) - 1",
        "x0^2 + y0^2 - 1",
        "x1 - x0*x1 - y0*y1",
        "2*x1 - x1^2 - y1^2",
    ]
    chain = fl.discover(systems.chain(4)).constraints
    assert chain[0] == "x[1]^2 + y[1]^2 - 1"
    assert len(chain) == 4


def pendulum(parameters: dict[str, float]) -> fl.Model:
    """A pendulum of 1.3 m, with parameters that it does not use."""
    pull = "(vx^2 + vy^2 + x*F - 9.81*y)/(x^2 + y^2)"
    return OdeModel(
        "pendulum",
        {"x": "vx", "y": "vy", "vx": f"F - x*{pull}", "vy": f"-9.81 - y*{pull}"},
        inputs=["F"],
        parameters=parameters,
        start={"x": 0.5, "y": -1.2},
    )


def test_parameters_are_recognized_by_name_unless_two_of_them_fit() -> None:
    assert fl.discover(pendulum({"L": 1.3})).constraints == ["x^2 + y^2 - L^2"]
    assert fl.discover(pendulum({"L": 1.3, "width": 1.3})).constraints == ["x^2 + y^2 - 1.69"]
    assert fl.discover(pendulum({"mass": 1.0})).constraints == ["x^2 + y^2 - 1.69"]
    torus = fl.discover(rolling_torus().with_constraints([]))
    assert torus.constraints[0] == "q6 + cos(q2) + b"


@pytest.mark.parametrize(
    ("model", "reasons"),
    [
        (systems.free_masses(), {"momentum", "energy"}),
        (systems.kepler(), {"angular momentum"}),
        (systems.pushed_pendulum(), {"energy; broken by input torque"}),
        (systems.tumbling_body(), {"energy", "momentum"}),
    ],
)
def test_conserved_quantities_are_named_and_kept_out(model: fl.Model, reasons: set[str]) -> None:
    found = fl.discover(model)
    assert len(found.conserved) == len(found.kept_out)
    for reason in reasons:
        assert any(reason in k.reason for k in found.kept_out), found.kept_out


@pytest.mark.parametrize("speed", [0.3, 1.0, 2.5])
def test_a_rate_that_is_zero_everywhere_takes_no_state(speed: float) -> None:
    """The height of the disk follows its lean whatever the speeds are: rounding of its rate is no constraint."""
    assert fl.discover(rolling_disk(speed=speed).with_constraints([])).order == 8


def test_a_conserved_total_is_no_constraint() -> None:
    def rates(_t: float, x: FloatArray, _u: FloatArray) -> FloatArray:
        r = x[0] * x[1] - x[2]
        return np.array([-r, -r, r])

    found = fl.discover(FunctionModel("reaction", {"a": 1.0, "b": 2.0, "c": 0.0}, rates))
    assert found.constraints == []
    assert len(found.conserved) == 2


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (1.0, 3.0), (20.0, 20.0), (6.0, 2.0)])
def test_stabilized_constraints_with_decays_of_any_kind(alpha: float, beta: float) -> None:
    """Double, complex, fast and real eigenvalues; the length is that to which the motion decays, not the start's."""
    found = fl.discover(systems.stabilized_pendulum(alpha, beta))
    assert found.constraints == ["x^2 + y^2 - 1.69"]


def test_a_weak_damper_is_no_conservation() -> None:
    def rates(_t: float, z: FloatArray, _u: FloatArray) -> FloatArray:
        x, y, vx, vy = z
        pull = (vx * vx + vy * vy - 9.81 * y) / (x * x + y * y)
        return np.array([vx + 1e-5 * x, vy, -pull * x, -9.81 - pull * y])

    found = fl.discover(FunctionModel("leaking", {"x": 0.0, "y": -1.0, "vx": 0.0, "vy": 0.0}, rates))
    assert found.constraints == []


@pytest.mark.parametrize(("asked", "order"), [(1, 10), (34, 6)])  # nothing, constraints of speeds
def test_a_search_that_is_stopped_returns_what_it_has(asked: int, order: int) -> None:
    calls = iter(range(1, 1000))
    part = fl.discover(four_bar().with_constraints([]), stop=lambda: next(calls) >= asked)
    assert [remark.kind for remark in part.warnings] == ["interrupted"]
    assert part.order == order
    assert len(part.constraints) == 10 - order
