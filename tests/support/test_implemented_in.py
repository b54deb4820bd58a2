"""Declared methods say what their implementations in packages above take and return, and behave as written there."""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
import pydoc
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import pytest

import fmilin as fl
from fmilin.errors import UsageError
from fmilin.linear_model.model import Pictures
from fmilin.support.implemented_in import implemented_in
from fmilin.systems import cartesian_pendulum

PACKAGE = Path(fl.__file__).parent


class Declared(NamedTuple):
    """A function with the decorator, and the class that it is a method of."""

    owner: type | None
    function: Callable[..., Any]

    @property
    def implementation(self) -> Callable[..., Any]:
        module, _, name = vars(self.function)["implemented_in"].partition(":")
        implementation: Callable[..., Any] = getattr(import_module(module), name)
        return implementation

    @property
    def is_class_method(self) -> bool:
        return next(iter(inspect.signature(self.function).parameters)) == "cls"


def decorator_addresses(tree: ast.Module) -> list[str]:
    """Return the addresses in the decorators of a module, as its source has them."""
    decorators = [d for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) for d in node.decorator_list]
    calls = [d for d in decorators if isinstance(d, ast.Call) and ast.unparse(d.func) == "implemented_in"]
    return [ast.literal_eval(call.args[0]) for call in calls]


def package_trees(containing: str = "") -> Iterator[tuple[str, ast.Module]]:
    """Return the name and the syntax tree of every module that contains a text."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if containing not in text:
            continue
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield name, ast.parse(text)


ADDRESSES = {
    name: addresses
    for name, tree in package_trees(containing="@implemented_in")
    if (addresses := decorator_addresses(tree))
}


def plain_function(member: object) -> object:
    """Return the function of a class method or a property."""
    if isinstance(member, property):
        return member.fget
    return member.__func__ if isinstance(member, classmethod) else member


def list_declarations(module: ModuleType) -> Iterator[Declared]:
    """Return the declared functions of a module and of its classes."""
    for thing in vars(module).values():
        if getattr(thing, "__module__", None) != module.__name__:
            continue
        members = vars(thing).values() if inspect.isclass(thing) else [thing]
        for member in members:
            function = plain_function(member)
            if inspect.isfunction(function) and "implemented_in" in vars(function):
                yield Declared(thing if inspect.isclass(thing) else None, function)


DECLARED = {each.function.__qualname__: each for name in ADDRESSES for each in list_declarations(import_module(name))}


@cache
def types_for_checkers(module: ModuleType) -> dict[str, Any]:
    """Return the names that a module imports for type checkers only."""
    namespace = dict(vars(module))
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            exec(compile(ast.Module(node.body, []), module.__name__, "exec"), namespace)
    return namespace


def evaluate_types(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types in a function's signature, without aliases and names."""
    function = inspect.unwrap(function)
    return get_type_hints(function, types_for_checkers(sys.modules[function.__module__]))


def members_of(annotation: Any) -> tuple[Any, ...]:
    """Return the types in a union, or the type alone."""
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def subject_of(declared: Declared) -> Any:
    """Return the type of the first argument of an implementation."""
    assert declared.owner is not None
    if issubclass(declared.owner, Pictures):
        (base,) = [b for b in declared.owner.__dict__["__orig_bases__"] if get_origin(b) is Pictures]
        (drawn,) = get_args(base)
        return drawn if isinstance(drawn, type) else vars(sys.modules[declared.owner.__module__])[drawn.__forward_arg__]
    return declared.owner


def test_every_declaration_is_compared() -> None:
    assert sorted(a for addresses in ADDRESSES.values() for a in addresses) == sorted(
        vars(declared.function)["implemented_in"] for declared in DECLARED.values()
    )


@pytest.mark.parametrize("name", DECLARED)
def test_an_implementation_takes_and_returns_what_is_declared(name: str) -> None:
    declared = DECLARED[name]
    wanted = dict(inspect.signature(declared.function).parameters)
    available = dict(inspect.signature(declared.implementation).parameters)
    wanted_types, available_types = evaluate_types(declared.function), evaluate_types(declared.implementation)
    if declared.owner is not None:
        wanted.pop(next(iter(wanted)))
        if not declared.is_class_method:
            first = available.pop(next(iter(available)))
            accepted = members_of(available_types[first.name])
            assert any(issubclass(subject_of(declared), kind) for kind in accepted), accepted
    for parameter in wanted.values():
        other = available.pop(parameter.name)
        assert (other.kind, other.default) == (parameter.kind, parameter.default), parameter
        assert available_types[parameter.name] == wanted_types[parameter.name], parameter
    assert available_types["return"] == wanted_types["return"]
    for parameter in available.values():
        assert parameter.default is not parameter.empty, f"{parameter} is not declared, and has no default"


def test_a_body_of_dots_is_a_declaration() -> None:
    """mypy does not report empty bodies (pyproject.toml): this test does."""
    excused = ("implemented_in", "overload", "abstractmethod")
    for module, tree in package_trees():
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        protocols = [node for node in classes if any("Protocol" in ast.unparse(base) for base in node.bases)]
        of_protocols = {id(method) for protocol in protocols for method in protocol.body}
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef) or id(node) in of_protocols:
                continue
            if ast.unparse(node.body[-1]) == "...":
                decorators = " ".join(map(ast.unparse, node.decorator_list))
                assert any(word in decorators for word in excused), f"{module}: {node.name} has no body"


def test_the_module_of_a_result_is_enough_for_its_methods(tmp_path: Path) -> None:
    fl.linearize(cartesian_pendulum()).save(tmp_path / "lin.json")
    program = (
        "import sys\nfrom fmilin.linear_model.model import LinearModel\n"
        "before = 'fmilin.export.files' in sys.modules\n"
        f"lin = LinearModel.load({str(tmp_path / 'lin.json')!r}); print(before, lin.states.names)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False ('")


def test_help_and_signature_are_those_of_the_declaration() -> None:
    assert str(inspect.signature(fl.LinearModel.to_control)) == "(self) -> 'control.StateSpace'"
    text = pydoc.plain(pydoc.render_doc(fl.LinearModel))
    assert "load(path: 'str | Path') -> 'LinearModel'" in text
    assert "to_control(self) -> 'control.StateSpace'" in text
    assert "implemented_in" not in text


def test_wrong_calls_name_the_declared_method() -> None:
    linear = fl.linearize(cartesian_pendulum())
    with pytest.raises(TypeError, match=r"LinearModel\.save\(\) missing 1 required positional argument: 'path'"):
        linear.save()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"LinearModel\.verify\(\) got an unexpected keyword argument 'stop'"):
        linear.verify(cartesian_pendulum(), stop=None)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="'numbers' is of the type 'int', and should be of the type Sequence"):
        linear.plot.modes(3)  # type: ignore[arg-type]


def test_results_and_their_methods_are_pickled_and_copied() -> None:
    linear = fl.linearize(cartesian_pendulum())
    for other in (pickle.loads(pickle.dumps(linear)), copy.copy(linear), copy.deepcopy(linear)):
        assert other.is_equilibrium is linear.is_equilibrium is True
    assert pickle.loads(pickle.dumps(fl.LinearModel.to_control)) is fl.LinearModel.to_control
    assert pickle.loads(pickle.dumps(linear.to_control))().nstates == len(linear.states)


def test_functions_outside_classes_are_declared_in_the_same_way() -> None:
    @implemented_in("math:hypot")
    def length(x: float, y: float) -> float: ...

    assert length(3.0, 4.0) == 5.0


def test_pictures_say_which_there_are() -> None:
    linear = fl.linearize(cartesian_pendulum())
    pictures = ["animation", "bode", "eigenvalues", "errors", "margins", "modes", "nyquist", "participation"]
    pictures += ["reduction", "sensitivities", "sparsity", "step", "zeros"]
    assert repr(linear.plot) == "Pictures: " + ", ".join(f"{name}()" for name in pictures)
