"""Many points of an FMU are linearized as a stack, asked for one after the other: each as it is alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin import Evaluation
from fmilin.errors import ModelCrashError
from fmilin.fmi.write import build_fmu
from fmilin.models import OdeModel
from fmilin.systems import double_wishbone, four_bar, furuta_pendulum, slider_crank
from tests.fmi.read.recorded import Recorded
from tests.fmus.make import build
from tests.linearization.test_stack import alone, assert_same, in_stacks

VALUES = np.linspace(0.0, 0.05, 12)


def mathieu() -> OdeModel:
    return OdeModel("Mathieu", {"x": "v", "v": "-(a - 2*q*cos(2*time))*x + u"}, inputs=["u"],
                    parameters={"a": 0.5, "q": 0.1})  # fmt: skip


@pytest.mark.parametrize(
    ("make", "name", "settings"),
    [
        (four_bar, "phi", {"w": 0.5}),
        (slider_crank, "phi", {}),
        (furuta_pendulum, "arm.q", {}),
        (furuta_pendulum, "arm.q", {"pendulum.v": 0.3}),
        (double_wishbone, "body.q", {"lower.v": 0.3}),
    ],
)
def test_a_sweep_says_of_each_point_what_is_said_of_it_alone(
    make: Callable[[], fl.Model], name: str, settings: dict[str, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = build_fmu(make(), tmp_path / "model.fmu")
    with fl.load(path) as model, fl.load(path) as another:
        values = model.start.states[model.states.positions[name]] + VALUES
        stack = fl.sweep(model, {name: values}, settings=settings)
        assert in_stacks(stack) >= len(VALUES) - 2
        alone(monkeypatch)
        single = fl.sweep(another, {name: values}, settings=settings)
    assert in_stacks(single) == 0
    assert_same(stack, single)


def test_a_sweep_over_an_input_takes_few_messages_and_says_what_is_said_of_each_point_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = build_fmu(four_bar(), tmp_path / "model.fmu")
    torques = np.linspace(0.0, 1.0, 60)
    with fl.load(path) as model, fl.load(path) as another:
        fl.linearize(model)
        recorded = Recorded(monkeypatch)
        stack = fl.sweep(model, {"torque": torques})
        assert recorded.messages <= 40  # of which the first point takes most
        assert in_stacks(stack) >= len(torques) - 2
        alone(monkeypatch)
        single = fl.sweep(another, {"torque": torques})
    assert in_stacks(single) == 0
    assert_same(stack, single)


def test_a_rest_that_changes_with_time_is_looked_at_alone(tmp_path: Path) -> None:
    with fl.load(build_fmu(mathieu(), tmp_path / "model.fmu")) as model:
        family = fl.linearize_along(model, [fl.operating_point(model)] * 6)
    assert in_stacks(family) == 0
    assert all("periodic" in [w.kind for w in linear.warnings] for linear in family)


def test_memory_is_noticed_at_every_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the fourth point on an output drifts from call to call: before it nothing was to be seen of that."""
    counts = [0]

    def drift(evaluation: Evaluation, x: np.ndarray) -> Evaluation:
        """Add the drift of one point or of many."""
        rows = np.atleast_2d(x)
        numbers = counts[0] + 1 + np.arange(len(rows))
        counts[0] += len(rows)
        drifts = np.where(rows[:, 0] > 0.25, 1e-9 * numbers, 0.0)
        outputs = evaluation.outputs + (drifts[0] if x.ndim == 1 else drifts[:, None])
        return Evaluation(evaluation.derivatives, outputs, evaluation.residuals)

    def evaluate(self: fl.Model, t: float, x: np.ndarray, u: np.ndarray) -> Evaluation:
        return drift(original(self, t, x, u), x)

    def evaluate_points(self: fl.Model, t: np.ndarray, x: np.ndarray, u: np.ndarray) -> Evaluation:
        return drift(original_of_many(self, t, x, u), x)

    with fl.load(build_fmu(furuta_pendulum(), tmp_path / "model.fmu")) as model:
        points = [fl.operating_point(model, {"arm.q": q}) for q in 0.1 * np.arange(8)]
        original, original_of_many = type(model).evaluate, type(model).evaluate_points
        monkeypatch.setattr(type(model), "evaluate", evaluate)
        monkeypatch.setattr(type(model), "evaluate_points", evaluate_points)
        family = fl.linearize_along(model, points)
    remarks = [{w.kind for w in linear.warnings} for linear in family]
    assert ["memory" in kinds for kinds in remarks] == [False] * 3 + [True] * 5


def test_the_linear_model_of_an_fmu_imports_no_large_library(tmp_path: Path) -> None:
    path = build_fmu(four_bar(), tmp_path / "model.fmu")
    code = f"import fmilin, sys; fmilin.linearize(fmilin.load({str(path)!r})); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    large = {"scipy.optimize", "scipy.sparse", "scipy.special", "sympy", "casadi", "control", "matplotlib", "rich"}
    assert not large & set(done.stdout.split())


def test_points_beside_one_at_which_constraints_have_no_value_are_found(tmp_path: Path) -> None:
    """On the half circle y = sqrt(1 - x^2): at x = 1.2 there is no point, at x = 1 no slope."""
    half = OdeModel("half circle", {"x": "u", "y": "-x*u/y"}, inputs=["u"], outputs={"gap": "sqrt(1 - x^2) - y"},
                    start={"x": 0.6, "y": 0.8})  # fmt: skip
    path = build_fmu(half, tmp_path / "half.fmu")
    with fl.load(path, constraints=[fl.Constraint.from_text("gap", level="velocity")]) as model:
        for beyond in 1.2, 1.0:
            with pytest.raises(fl.ConstraintError, match=rf"Point 3 of 4 \(x = {beyond:g}\): The model cannot"):
                fl.operating_points(model, {"x": [0.6, 0.28, beyond, 0.8]})
            family = fl.sweep(model, {"x": [0.6, 0.28, beyond, 0.8]})
            assert [bool(reason) for reason in family.reasons] == [False, False, True, False]
            np.testing.assert_allclose(family.array("x0")[[0, 1, 3], 1], [0.8, 0.96, 0.6], rtol=1e-12)


def test_the_limit_is_that_of_each_call_of_a_message(tmp_path: Path) -> None:
    with fl.load(build("slow", tmp_path), limits=fl.Limits(seconds=0.4)) as model:
        times, states, inputs = np.zeros(40), np.ones((40, 2)), np.full((40, 1), 2.0)
        assert model.evaluate_points(times, states, inputs).derivatives.tolist() == [[1.0, 1.0]] * 40
        inputs[20] = 1000.0
        with pytest.raises(ModelCrashError, match=r"did not return from fmi2GetDerivatives within 0\.4 s"):
            model.evaluate_points(times, states, inputs)
