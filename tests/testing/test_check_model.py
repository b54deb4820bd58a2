"""Our own models keep their promises, and a model that breaks one is found out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin import systems
from fmilin.constraints import Constraint
from fmilin.fmi.write import build_fmu
from fmilin.model import Evaluation, Model, ModelInfo
from fmilin.models.engine import Engine, EngineModel
from fmilin.signals import FloatArray, Signal, Signals
from fmilin.testing import ModelCheckError, check_model

ALWAYS = {"shapes", "arguments", "memory", "interface"}


@pytest.mark.parametrize("make", [systems.cartesian_pendulum, systems.four_bar, systems.rolling_disk, systems.skate])
def test_native_models(make: Callable[[], Model]) -> None:
    assert set(check_model(make())) >= {*ALWAYS, "constraints", "products", "derivatives"}


def test_fmus(tmp_path: Path) -> None:
    for version in ("2.0", "3.0"):
        path = build_fmu(systems.four_bar(), tmp_path / "four_bar.fmu", fmi_version=version)
        with fl.load(path) as model:
            assert set(check_model(model)) >= {*ALWAYS, "constraints", "products", "structure", "derivatives"}


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
            self.kept = getattr(self, "kept", np.zeros(4))
            self.kept[:] = found.derivatives
            return Evaluation(self.kept, found.outputs, found.residuals)
        if self.vice == "copy":
            return Evaluation(found.derivatives, found.outputs * (1 + 1e-15), found.residuals)
        return found

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Any:
        if self.vice == "name" and outputs and not self.states.has(outputs[0]):
            outputs = []
        return super().with_interface(inputs, outputs)


def test_an_engine_keeps_its_promises() -> None:
    done = check_model(EngineModel(Pendulum()))
    assert done == ["shapes", "arguments", "memory", "copies", "interface", "constraints", "products", "derivatives"]


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
        ("memory", r"evaluated elsewhere and back, its derivatives differ by .* it keeps memory"),
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
