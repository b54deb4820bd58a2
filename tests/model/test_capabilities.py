"""What only some models can do: declared with the right signature, and asked for with isinstance."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.adapters import HasContacts, HasDiscreteStates, HasEvents
from fmilin.model import capabilities
from fmilin.signals import FloatArray
from fmilin.systems import four_bar
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
