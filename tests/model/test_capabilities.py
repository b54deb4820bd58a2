"""What only some models can do: declared with the right signature, and asked for with isinstance."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.adapters import HasContacts, HasDiscreteStates, HasEvents, ModelInfo
from fmilin.constraints import Constraint, Constraints
from fmilin.model import capabilities
from fmilin.signals import FloatArray, Signal, Signals
from fmilin.systems import four_bar
from fmilin.testing import check_model
from tests.by_hand import FunctionModel, Parts

ROOT = Path(__file__).parents[2]
SOURCES = [*sorted((ROOT / "fmilin").rglob("*.py")), *sorted((ROOT / "adapters").glob("*/fmilin_*/**/*.py"))]


def classes_in(path: Path) -> list[ast.ClassDef]:
    return [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ClassDef)]


def methods_of(definition: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in definition.body if isinstance(node, ast.FunctionDef)}


def list_arguments(function: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]


PROTOCOLS = {c.name: methods_of(c) for c in classes_in(Path(capabilities.__file__)) if c.name.startswith("Has")}


def test_classes_that_declare_a_capability_take_its_arguments() -> None:
    seen = set()
    for path in SOURCES:
        mentions_some = any(name in path.read_text("utf-8") for name in PROTOCOLS)
        for definition in classes_in(path) if mentions_some else ():
            declared = {base.id for base in definition.bases if isinstance(base, ast.Name)} & PROTOCOLS.keys()
            methods = methods_of(definition)
            for capability in declared:
                seen.add(capability)
                for name, protocol in PROTOCOLS[capability].items():
                    assert name in methods, f"{definition.name} in {path} declares {capability} without {name}()"
                    assert list_arguments(methods[name]) == list_arguments(protocol), f"{definition.name}.{name}"
    assert seen == PROTOCOLS.keys()


class Bouncing(FunctionModel):
    """Declares nothing and has an event where x is 0.5."""

    def event_indicators(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        return np.array([x[0] - 0.5])


def test_a_class_that_defines_the_methods_of_a_capability_has_it_without_declaring_it() -> None:
    model = Bouncing(Parts(["x"], [0.5], lambda t, x, u: -x))
    assert isinstance(model, HasEvents)
    assert not isinstance(model, HasDiscreteStates)
    with pytest.raises(fl.NumericalError, match="event indicator 1 changes sign"):
        fl.linearize(model)


def test_models_have_the_capabilities_of_their_kind() -> None:
    native = four_bar()
    assert isinstance(native, HasContacts)
    assert not isinstance(native, HasEvents)
    connected = fl.connect({"mechanism": native})
    assert not isinstance(connected, HasEvents | HasContacts)


class Falling(fl.Model):
    """A body that falls: no more than every model defines."""

    def __init__(self, outputs: Sequence[str] = ("x",), constraints: Sequence[Constraint] = ()) -> None:
        self.info = ModelInfo("falling")
        self.states = Signals([Signal("x", "m"), Signal("v", "m/s", start=1.0)])
        self.inputs = Signals([Signal("thrust", "N")])
        rates = (Signal(f"der({name})") for name in self.states.names)
        every = {signal.name: signal for signal in (*self.states, *self.inputs, *rates)}
        for name in outputs:
            if name not in every:
                raise fl.UnknownNameError.among(name, every, "a variable of the model")
        self.outputs = Signals(Signal(name, every[name].unit) for name in outputs)
        self.constraints = Constraints(constraints, self.states, self.inputs)
        self.start = fl.OperatingPoint(0.0, self.states.starts, self.inputs.starts)

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> fl.Evaluation:
        rates = np.array([x[1], u[0] - 9.81])
        values = dict(zip(("x", "v", "thrust", "der(x)", "der(v)"), (*x, *u, *rates), strict=True))
        outputs = np.array([values[name] for name in self.outputs.names])
        return fl.Evaluation(rates, outputs, self.constraints.residuals(t, x, u, np.empty(0)))

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Falling:
        for name in inputs or ():
            self.inputs.index_of(name, "an input of the model")
        return Falling(self.outputs.names if outputs is None else outputs, self.constraints.declared)

    def with_constraints(self, constraints: Sequence[Constraint]) -> Falling:
        return Falling(self.outputs.names, constraints)


def test_a_model_that_defines_what_every_model_defines_is_linearized() -> None:
    assert not [name for name in PROTOCOLS if isinstance(Falling(), getattr(capabilities, name))]
    assert {"shapes", "arguments", "memory", "interface"} <= {*check_model(Falling())}
    lin = fl.linearize(Falling())
    np.testing.assert_allclose(lin.A, [[0.0, 1.0], [0.0, 0.0]], atol=1e-9)
    np.testing.assert_allclose(lin.B, [[0.0], [1.0]], atol=1e-9)


def test_the_interface_of_a_model_is_what_the_page_for_adapters_lists() -> None:
    page = (ROOT / "adapters" / "README.md").read_text("utf-8")
    table = page.partition("| `fmilin.Model` |")[2].partition("\n\n")[0]
    listed = re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines()[2:]))
    members = {*vars(fl.Model), *fl.Model.__annotations__}
    assert sorted(listed) == sorted(name for name in members if not name.startswith("_"))
