"""Our own models keep their promises, and a model that breaks one is found out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy

import fmilin as fl
from fmilin import Constraint, Evaluation, Model, systems
from fmilin.adapters import Engine, EngineModel, ModelInfo
from fmilin.fmi.write import build_fmu
from fmilin.models import FunctionModel, LagrangeModel, MultiplierModel, NullSpaceModel, OdeModel
from fmilin.models.sparse.numeric_model import NumericModel
from fmilin.signals import FloatArray, Signal, Signals
from fmilin.testing import ModelCheckError, check_model
from tests.fmus.stepped.make import build as build_stepped

ALWAYS = {"shapes", "arguments", "memory", "interface", "batches"}


EXACT = {*ALWAYS, "products", "derivatives"}
NOT_MODELS = {"four_bar_form"}  # matrices of a formulation
FREE = {"furuta_pendulum"}  # no constraint


@pytest.mark.parametrize("name", sorted({*dir(systems)} - NOT_MODELS))
def test_every_system(name: str) -> None:
    make = getattr(systems, name)
    model: Model = make(elements=2) if name == "flexible_double_pendulum" else make()
    wanted = EXACT if name in FREE else {*EXACT, "constraints"}
    assert set(check_model(model)) >= wanted


@pytest.mark.parametrize("form", [NullSpaceModel, MultiplierModel])
def test_other_formulations_of_lagranges_equations(form: Callable[[LagrangeModel], Model]) -> None:
    assert set(check_model(form(systems.five_bar()))) >= {*EXACT, "constraints"}


def test_rates_as_expressions() -> None:
    x, v, force = sympy.symbols("x v force")
    rates, outputs = {x: v, v: force - sympy.sin(x) - v / 5}, {"energy": v**2 / 2 - sympy.cos(x)}
    model = OdeModel("oscillator", rates, inputs=[force], outputs=outputs, start={x: 0.3})
    assert set(check_model(model)) >= EXACT


@pytest.mark.parametrize("analytic", [True, False])
def test_python_functions(analytic: bool) -> None:
    def rates(t: float, s: Any, u: Any) -> Any:
        r, v, force = s[:2], s[2:], np.array([u[0], -9.81])
        return np.concatenate((v, force - (v @ v + force @ r) / (r @ r) * r))

    start = {"x": 0.6, "y": -0.8, "vx": 0.0, "vy": 0.0}
    model = FunctionModel("pendulum", start, rates, inputs=["F"], outputs={"height": lambda t, s, u: 1 + s[1]},
                          constraints=["x^2 + y^2 - 1"], analytic=analytic)  # fmt: skip
    done = set(check_model(model))
    assert done >= {*ALWAYS, "constraints"}
    assert ({"products", "derivatives"} <= done) == analytic


@pytest.mark.parametrize("make", [systems.four_bar, systems.rolling_disk])
@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_fmus(make: Callable[[], Model], version: str, tmp_path: Path) -> None:
    path = build_fmu(make(), tmp_path / "model.fmu", fmi_version=version)
    with fl.load(path) as model:
        assert set(check_model(model)) >= {*EXACT, "constraints", "structure"}


def test_a_co_simulation_fmu_whose_states_can_be_set_between_steps(tmp_path: Path) -> None:
    with fl.load(build_stepped("motor", tmp_path)) as model:
        assert set(check_model(model)) >= ALWAYS


def test_many_points_at_once_that_differ_from_one_are_found_out() -> None:
    class Wrong(NumericModel):
        def evaluate_points(self, t: FloatArray, x: FloatArray, u: FloatArray) -> Evaluation:
            found = super().evaluate_points(t, x, u)
            return Evaluation(found.derivatives[::-1], found.outputs, found.residuals)

    model = systems.flexible_double_pendulum(elements=1)
    model.__class__ = Wrong
    with pytest.raises(
        ModelCheckError,
        match=r"derivatives of evaluate_points\(\) and of evaluate\(\)",
    ):
        check_model(model)


class Pendulum(Engine):
    """A pendulum in Cartesian coordinates, with exact slopes by complex step, and a place for each vice."""

    info = ModelInfo("pendulum")
    states = Signals([Signal("x"), Signal("y", start=-1.0), Signal("vx"), Signal("vy")])
    inputs = Signals(["F"])
    quantities = Signals(["gap", "rate", "twice"])
    outputs = ("x", "twice", "F")
    constraints = (Constraint.from_text("gap", rate="rate"),)
    vice = ""

    def visit(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.values(x, u)

    def values(self, x: Any, u: Any) -> tuple[Any, Any]:
        r, v = x[:2], x[2:]
        force = np.array([u[0], -9.81])
        a = force - (v @ v + force @ r) / (r @ r) * r
        if self.vice == "drift":
            a = force
        return np.concatenate((v, a)), np.array([r @ r - 1, 2 * r @ v, 2 * x[0] + u[0]])

    def slopes(
        self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        columns = [self.values(x + 1e-30j * a, u + 1e-30j * b) for a, b in zip(dx.T, du.T, strict=True)]
        rates, quantities = (np.array([c[i].imag for c in columns]).T * 1e30 for i in (0, 1))
        if self.vice == "slope":
            rates[2] *= 1.01
        if self.vice == "nonlinear":
            rates[2] = np.abs(rates[2])
        return rates.reshape(4, -1), quantities.reshape(3, -1)


class Faulty(EngineModel):
    """What only a wrong Model can do."""

    vice = ""

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        found = super().evaluate(t, x, u)
        if self.vice == "shape":
            return Evaluation(found.derivatives[None], found.outputs, found.residuals)
        if self.vice == "argument":
            x += 0.1
        if self.vice == "memory":
            self.visits = getattr(self, "visits", 0) + 1
            return Evaluation(found.derivatives + 1e-15 * self.visits, found.outputs, found.residuals)
        if self.vice == "not a number":
            return Evaluation(found.derivatives * np.nan, found.outputs, found.residuals)
        if self.vice == "shared":
            self.buffer = getattr(self, "buffer", np.zeros(4))
            self.buffer[:] = found.derivatives
            return Evaluation(self.buffer, found.outputs, found.residuals)
        if self.vice == "copy":
            return Evaluation(found.derivatives, found.outputs * (1 + 1e-15), found.residuals)
        return found

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Any:
        if self.vice == "name" and outputs and not self.states.has(outputs[0]):
            outputs = []
        return super().with_interface(inputs, outputs)


def test_an_engine_keeps_its_promises() -> None:
    done = check_model(EngineModel(Pendulum()))
    assert done == [
        "shapes",
        "arguments",
        "memory",
        "copies",
        "interface",
        "batches",
        "constraints",
        "products",
        "derivatives",
    ]


@pytest.mark.parametrize(
    ("vice", "message"),
    [
        ("slope", r"products\(\) differs from differences of the derivatives, row 2"),
        ("nonlinear", r"products\(\) is not linear in the direction: derivatives"),
        ("drift", r"fails while its constraints are checked: .*do not? keep|does not keep"),
    ],
)
def test_vices_of_an_engine(vice: str, message: str) -> None:
    engine = Pendulum()
    engine.vice = vice
    with pytest.raises(ModelCheckError, match=message):
        check_model(EngineModel(engine))


@pytest.mark.parametrize(
    ("vice", "message"),
    [
        ("shape", r"returns derivatives of shape \(1, 4\), not \(4,\) doubles"),
        ("not a number", r"returns derivatives that are not finite"),
        ("argument", r"changes its argument x"),
        ("shared", r"changes at the next call: it must be a copy"),
        ("memory", r"evaluated elsewhere and again at the point, its derivatives differ by .* it has a memory"),
        ("copy", r"the output 'x' is .* and is said to be a state of"),
        ("name", r"with_interface\(\) takes a name that does not exist"),
    ],
)
def test_vices_of_a_model(vice: str, message: str) -> None:
    model = Faulty(Pendulum())
    model.vice = vice
    with pytest.raises(ModelCheckError, match=message):
        check_model(model)


def test_a_model_without_a_consistent_start_says_so() -> None:
    engine = Pendulum()
    engine.constraints = (Constraint.from_text("x^2 + 1"),)
    with pytest.raises(ModelCheckError, match=r"has no consistent start"):
        check_model(EngineModel(engine))
