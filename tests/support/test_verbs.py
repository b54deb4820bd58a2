"""Verbs that results declare and folders above do: every one has somebody who does it, with what the result says."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NamedTuple, get_origin

import pytest

import fmilin as fl
from fmilin.support.verbs import _performers, done_by
from fmilin.systems import cartesian_pendulum

PACKAGE = Path(fl.__file__).parent


class Declared(NamedTuple):
    """A call ``perform("verb", ...)`` in the body of what people call."""

    verb: str
    call: ast.Call
    declaration: ast.FunctionDef

    @property
    def returns(self) -> str:
        """What the declaration says, without the type's own parameters."""
        return ast.unparse(self.declaration.returns) if self.declaration.returns else ""


def declared() -> list[Declared]:
    verbs = []
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "perform(" not in text:
            continue
        for function in (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)):
            calls = (n for n in ast.walk(function) if isinstance(n, ast.Call) and ast.unparse(n.func) == "perform")
            verbs += [Declared(ast.literal_eval(c.args[0]), c, function) for c in calls]
    return verbs


VERBS = {each.verb: each for each in declared()}


def test_every_verb_is_done_by_somebody_and_nothing_is_done_twice() -> None:
    assert len(declared()) == len(VERBS)
    assert set(VERBS) == set(_performers)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_who_does_a_verb_takes_and_returns_what_the_result_declares(verb: str) -> None:
    call, performer = VERBS[verb].call, done_by(verb)
    signature, annotations = inspect.signature(performer), written(performer)
    options = {k.arg: k.value for k in call.keywords if k.arg is not None}
    bound = signature.bind(*call.args[1:], **options)
    arguments = VERBS[verb].declaration.args
    types = {p.arg: ast.unparse(p.annotation) for p in (*arguments.args, *arguments.kwonlyargs) if p.annotation}
    assert annotations["return"] == VERBS[verb].returns
    for name, argument in bound.arguments.items():
        if isinstance(argument, ast.Name) and argument.id in types:
            assert argument.id == name or argument.id not in signature.parameters
            wanted = re.sub(r"\bLinear\b", "LinearModel", types[argument.id])
            assert spelled_out(annotations.get(name, ""), performer) in (
                wanted,
                wanted.removesuffix(" | None"),
            )


def written(function: Callable[..., Any]) -> dict[str, str]:
    """Return the annotations of a function as its source has them."""
    declaration = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(declaration, ast.FunctionDef)
    arguments = declaration.args
    named = {p.arg: p.annotation for p in (*arguments.args, *arguments.kwonlyargs)} | {"return": declaration.returns}
    return {name: ast.unparse(annotation) for name, annotation in named.items() if annotation}


def spelled_out(annotation: str, function: Callable[..., Any]) -> str:
    """Return an annotation without the short names of its module."""
    alias = getattr(sys.modules[function.__module__], annotation, None)
    if isinstance(alias, UnionType) or get_origin(alias) is Literal:
        return str(alias).replace("collections.abc.", "").replace("typing.", "")
    return annotation


def test_who_imports_the_module_of_a_result_alone_has_its_verbs(tmp_path: Path) -> None:
    fl.linearize(cartesian_pendulum()).save(tmp_path / "lin.json")
    program = (
        "import sys\nfrom fmilin.linear_model.model import LinearModel\n"
        "before = 'fmilin.export.files' in sys.modules\n"
        f"lin = LinearModel.load({str(tmp_path / 'lin.json')!r}); print(before, lin.states.names)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False ('")


@pytest.mark.parametrize("name", ["LinearModel", "LinearFamily", "Verification"])
def test_help_says_what_a_verb_does_and_takes(name: str) -> None:
    for verb in (v.split(".")[1] for v in VERBS if v.startswith(name + ".")):
        static = inspect.getattr_static(getattr(fl, name), verb)
        function: Any = static.fget if isinstance(static, property) else getattr(getattr(fl, name), verb)
        assert inspect.getdoc(function)
        assert "perform" not in str(inspect.signature(function))


def test_pictures_say_which_there_are() -> None:
    linear = fl.linearize(cartesian_pendulum())
    pictures = ["bode", "eigenvalues", "errors", "modes", "nyquist", "participation", "reduction"]
    pictures += ["sensitivities", "sparsity", "step"]
    assert repr(linear.plot) == "Pictures: " + ", ".join(f"{name}()" for name in pictures)
    assert import_module("fmilin.families.family").FamilyPlots(None).campbell.__doc__
