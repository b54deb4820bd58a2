"""Every number of every result, spoiled by 1 %: the audit finds it, or says in words that it is not checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin import design
from fmilin.lyapunov import lyapunov_exponents
from fmilin.models import DaeModel, OdeModel
from tests.auditing.spoiling import list_missed

CART = OdeModel(
    "cart",
    {"x": "v", "v": "(u - d*v - k*x)/m"},
    inputs=["u"],
    outputs={"y": "x"},
    parameters={"m": 1.0, "d": 0.4, "k": 2.0},
    start={"x": 0.3},
)
OSCILLATOR = OdeModel("van der Pol", {"x": "v", "v": "(1 - x^2)*v - x"}, start={"x": 2.0})
EQUATIONS = ["der(x) = v", "m*der(v) = F - k*x - d*v", "F = u - c*v"]
DAE = DaeModel("dae", EQUATIONS, inputs=["u"], outputs={"F": "F"}, parameters={"m": 2.0, "k": 3.0, "d": 0.1, "c": 0.2})


@pytest.fixture(scope="module")
def linear() -> fl.LinearModel:
    return fl.linearize(CART, fl.trim(CART))


@pytest.fixture(scope="module")
def family() -> fl.LinearFamily:
    pendulum = OdeModel("pendulum", {"x": "v", "v": "u - sin(x)"}, inputs=["u"], outputs={"y": "x"})
    return fl.sweep(pendulum, {"x": [0.1, 0.4, 0.7]})


def make_estimator() -> design.Estimator:
    return design.estimator(CART, process_noise={"u": 0.1}, measurement_noise={"y": 1e-2}, sample_time=0.1)


def make_placed(linear: fl.LinearModel) -> Any:
    del linear
    return design.place_modes(CART, {"d": (0.0, 5.0)}, design.ModeGoal(damping=0.5))


def make_identified(linear: fl.LinearModel) -> Any:
    w = np.array([0.3, 1.0, 3.0])
    return design.identified_parameters(CART, {"d": (0.1, 2.0)}, w, linear.to_control()(1j * w))


def make_study(linear: fl.LinearModel) -> Any:
    del linear
    return design.monte_carlo(
        lambda values, _: fl.simulate(CART, stop_time=0.2, inputs={"u": values["u"]}),
        {"u": (0.0, 1.0)},
        runs=2,
        measures={"end": lambda run: float(run["x"][-1])},
        signals=["x"],
    )


RESULTS: dict[str, Callable[[fl.LinearModel], Any]] = {
    "linear model": lambda linear: linear,
    "sampled model": lambda linear: design.kalman_filter(linear, 0.1, process={"u": 0.1}, measured={"y": 0.1}).sampled,
    "reduced model": lambda _: fl.linearize(
        OdeModel("two", {"x": "u - x", "z": "-3*z"}, inputs=["u"], outputs={"y": "x"})
    ),
    "uncertain model": lambda _: fl.uncertain(CART, None, {"m": (0.9, 1.1)}),
    "frequency response": lambda _: fl.frequency_response(CART, input="u", frequencies=[1.0], amplitude=0.1),
    "placed modes": make_placed,
    "identified parameters": make_identified,
    "Monte Carlo study": make_study,
    "filtered data": lambda _: design.filtered(make_estimator(), np.zeros((4, 1)), np.full((4, 1), 0.3)),
    "Lyapunov exponents": lambda _: lyapunov_exponents(OSCILLATOR, 1.0),
    "trajectory": lambda _: fl.simulate(CART, stop_time=0.5),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_a_result_by_itself(kind: str, linear: fl.LinearModel) -> None:
    assert list_missed(RESULTS[kind](linear)) == []


def test_a_linear_model_and_its_derivatives_with_their_model(linear: fl.LinearModel) -> None:
    """At an equilibrium that moves with the parameter, and at a point that stays."""
    heavy = OdeModel(
        "heavy", {"x": "v", "v": "u - g*cos(x) - k*x^3 - v"}, inputs=["u"], outputs={"y": "x*v + x"},
        parameters={"g": 1.0, "k": 2.0}, start={"x": 0.5},
    )  # fmt: skip
    assert list_missed(linear, model=CART) == []
    for point in (fl.trim(heavy), fl.operating_point(heavy, {"x": 1.0, "v": 0.2})):
        sensitive = fl.linearize(heavy, point, parameters=["k"])
        assert list_missed(sensitive, only=("derivatives",), model=heavy) == []


def test_a_descriptor_system_by_itself_and_in_its_linear_model() -> None:
    linear = fl.linearize(DAE, descriptor=True)
    assert linear.descriptor is not None
    assert list_missed(linear.descriptor) == []
    assert list_missed(linear, only=("descriptor",)) == []


def test_a_trimmed_point_and_its_report() -> None:
    assert list_missed(fl.trim(CART, fixed={"u": 0.4}), model=CART) == []


def test_a_trajectory_with_its_model() -> None:
    """Free, and under a regulator that holds its answer over a sample."""
    assert list_missed(fl.simulate(CART, stop_time=0.5), model=CART) == []
    law = design.FunctionRegulator(lambda t, read: -2.0 * read, ["x"], ["u"], 0.1)
    assert list_missed(fl.closed_loop(CART, law, stop_time=0.5, step=0.02), model=CART) == []


def test_a_schedule_and_its_estimator(family: fl.LinearFamily) -> None:
    """Every quantity that it looks up, at a point of the grid, and what its report says."""

    def place(linear: fl.LinearModel) -> np.ndarray:
        return np.asarray(control.place(linear.A, linear.B, [-1.0, -2.0]))

    def filtered(linear: fl.LinearModel) -> design.KalmanFilter:
        return design.kalman_filter(linear, 0.1, process={"u": 0.1}, measured={"y": 1e-2})

    for schedule in (design.schedule(family, place), design.schedule(family, place, estimator=filtered)):
        assert fl.audit(schedule).ok
        assert list_missed(schedule.report) == []
        for name, shape in schedule.parts.shapes.items():
            row = schedule.table.rows[1]
            k = schedule.parts.start(name) + int(np.argmax(np.abs(schedule.parts.of(row)[name])))
            right, row[k] = row[k], row[k] * 1.01 + (0.01 if abs(row[k]) < 1e-9 else 0.0)
            audit = fl.audit(schedule)
            assert f"{name}[" in "; ".join(row.quantity for row in audit.disagreeing), (name, shape)
            schedule.table.rows[1, k] = right
    object.__setattr__(schedule.report.verdicts[0], "decay", 1.01 * schedule.report.verdicts[0].decay)
    assert "decay" in fl.audit(schedule).disagreeing[0].quantity


def test_an_orbit_its_periodic_model_and_its_multipliers() -> None:
    orbit = fl.periodic_orbit(OSCILLATOR)
    periodic = fl.linearize_periodic(OSCILLATOR, orbit)
    assert list_missed(orbit, only=("period", "times", "points[32].time", "shift")) == []
    assert list_missed(periodic) == []
    assert list_missed(periodic.floquet()) == []


def test_a_tuned_regulator(linear: fl.LinearModel) -> None:
    goals = {"input": "u", "output": "y", "bandwidth": 1.0}
    tuned = design.tune(linear, "PI", {"kp": 1.0, "ki": 1.0}, **goals)  # type: ignore[arg-type]
    assert list_missed(tuned) == []


def test_regulators_say_that_their_gain_was_given(linear: fl.LinearModel) -> None:
    feedback = design.state_feedback(linear, np.array([[1.0, 2.0]]), 0.1)
    kalman = design.kalman_filter(linear, 0.1, process={"u": 0.1}, measured={"y": 1e-2})
    regulators = [
        feedback,
        design.KalmanRegulator(kalman, np.array([[1.0, 2.0]])),
        design.EstimatorRegulator(make_estimator(), feedback),
    ]
    for regulator in regulators:
        audit = fl.audit(regulator)
        assert audit.ok
        assert any(text.startswith("gain: given without") for text in audit.unchecked)
    free = design.FunctionRegulator(lambda t, read: read, ["x"], ["u"], 0.1)
    assert "values of the user's function" in fl.audit(free).unchecked[0]


def test_the_kinds_are_listed_where_there_is_no_audit() -> None:
    with pytest.raises(fl.UsageError, match="'dict'") as caught:
        fl.audit({})
    kinds = (
        "linear models, descriptor systems, uncertain models, families, margins, Kalman filters, estimators, filtered "
        "data, regulators, schedules, tuned and placed parameters, gains along motions, orbits, periodic models, "
        "charts, points, trajectories, frequency responses, Monte Carlo studies and Lyapunov exponents"
    )
    assert kinds in str(caught.value)


def test_margins_are_a_table_in_a_notebook() -> None:
    plant = control.ss(control.tf([2.0], [1.0, 1.0, 0.0]), inputs="u", outputs="y")
    law = control.ss([], [], [], [[1.0]], inputs="e", outputs="c")
    system = fl.connect({"p": plant, "k": law}, [("p.y", "k.e", -1.0), ("k.c", "p.u")])
    page = design.margins(fl.loop_transfer(system, "p.u"))._repr_html_()
    assert "Disk margin" in page
    assert "Phase" in page
