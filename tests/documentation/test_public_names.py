"""Every public name is documented: what it returns, its parameters with shapes and units, the errors that it raises."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fmilin
from fmilin import design, errors, export, models
from fmilin.adapters import HasDirectionalDerivatives
from fmilin.errors import FmilinError

API = (Path(__file__).parents[2] / "docs" / "reference" / "api.md").read_text(encoding="utf-8")

UNIT = re.compile(
    r"\b(seconds?|s|rad|1/s|units?|relative|sizes?|time|rate|factor|ratio|number|fraction|weight|amplitude|Hz|degrees?)\b",
    re.IGNORECASE,
)
"""Words of which one says what a number is measured in."""

RETURNS = re.compile(r"\b(return|yield|whether)", re.IGNORECASE)


def public() -> Iterator[tuple[str, Any]]:
    for prefix, module in (("", fmilin), ("design.", design), ("export.", export), ("models.", models)):
        for name in dir(module):
            thing = getattr(module, name)
            if not name.startswith("_") and not inspect.ismodule(thing):
                yield prefix + name, thing


def callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, thing in public():
        if inspect.isclass(thing):
            for key, member in vars(thing).items():
                function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
                if inspect.isfunction(function) and not key.startswith("_"):
                    yield f"{name}.{key}", function
                elif isinstance(member, property) and not key.startswith("_") and member.fget is not None:
                    yield f"{name}.{key}", member.fget
        elif callable(thing):
            yield name, thing


PUBLIC, CALLABLES = dict(public()), dict(callables())
CLASSES = {name: thing for name, thing in PUBLIC.items() if inspect.isclass(thing)}


def sections(doc: str) -> dict[str, str]:
    """Return the sections of a numpydoc docstring by heading; '' holds what stands before the first."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", doc, flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def entries(section: str) -> dict[str, str]:
    """Return what is said of each parameter, its type included, by name."""
    found: dict[str, str] = {}
    for block in re.split(r"^(?=\S)", section, flags=re.MULTILINE):
        head, _, rest = block.partition("\n")
        names, _, kind = head.partition(" :")
        for name in names.split(","):
            found[name.strip().lstrip("*")] = f"{kind} {textwrap.dedent(rest)}".strip()
    return found


def described(thing: Any) -> dict[str, str]:
    parts = sections(inspect.getdoc(thing) or "")
    return entries(parts.get("Parameters", "")) | entries(parts.get("Attributes", ""))


def raised(function: Callable[..., Any]) -> set[str]:
    """Return the errors of ours that the function itself raises, by name."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    calls = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)]
    names = {
        call.func.value.id
        for call in calls
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
    }
    names |= {call.func.id for call in calls if isinstance(call.func, ast.Name)}
    return {name for name in names if issubclass(getattr(errors, name, object), FmilinError)}


def complaints(name: str, annotation: str, said: str) -> Iterator[str]:
    if re.match(r"FloatArray|NDArray", annotation) and "shape" not in said:
        yield f"the array '{name}' has no shape"
    if re.fullmatch(r"float( \| None)?", annotation) and not UNIT.search(f"{said} {name}"):
        yield f"the number '{name}' has no unit"


def commented(lines: list[str], node: ast.stmt) -> str:
    """Return what the reference shows of a field: its comment ``#:``, behind it or in the lines above."""
    above = itertools.takewhile(lambda line: line.strip().startswith("#:"), reversed(lines[: node.lineno - 1]))
    return " ".join(re.findall(r"#: (.*)", "\n".join([*reversed([*above]), lines[(node.end_lineno or 0) - 1]])))


POINT = described(HasDirectionalDerivatives.products) | described(fmilin.Model.evaluate)


@pytest.mark.parametrize("name", CALLABLES)
def test_a_public_function_is_documented(name: str) -> None:
    function = CALLABLES[name]
    doc = inspect.getdoc(function) or ""
    parts, said, problems = sections(doc), described(function), []
    owner = PUBLIC.get(name.rpartition(".")[0])
    if inspect.isclass(owner) and issubclass(owner, fmilin.Model):  # a point is the same in all methods
        said = POINT | said
    if not doc:
        problems.append("there is no docstring")
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name not in ("self", "cls")]
    for parameter in parameters:
        text = said.get(parameter.name, "" if "Parameters" in parts else parts[""])  # a sentence may say it all
        if parameter.name not in said and not re.search(rf"\b{re.escape(parameter.name)}\b", text):
            problems.append(f"'{parameter.name}' is not described")
        else:
            problems += complaints(parameter.name, str(parameter.annotation), text)
    returns = str(inspect.signature(function).return_annotation)
    if returns not in ("None", "NoReturn") and not ({"Returns", "Yields"} & set(parts) or RETURNS.search(parts[""])):
        is_property = any(isinstance(vars(c).get(name.rpartition(".")[2]), property) for c in CLASSES.values())
        if not is_property:
            problems.append("what it returns is not said")
    if re.fullmatch(r"FloatArray|NDArray\[.*\]", returns) and "shape" not in doc:
        problems.append("the array that it returns has no shape")
    told = parts.get("Raises", "") + " ".join(
        re.findall(r"\bRaises\s[^.]*", parts[""])
    )  # a sentence serves where one is
    missing = {e for e in raised(function) if not re.search(rf"\b{e}\b", told)}
    problems += [f"{e} is not among what it raises" for e in sorted(missing)]
    assert not problems, f"{name}: {'; '.join(problems)}"


@pytest.mark.parametrize("name", CLASSES)
def test_a_public_class_is_documented(name: str) -> None:
    kind = CLASSES[name]
    assert inspect.getdoc(kind), f"{name} has no docstring"
    if not dataclasses.is_dataclass(kind):
        return
    source = textwrap.dedent(inspect.getsource(kind))
    lines, tree = source.splitlines(), ast.parse(source).body[0]
    assert isinstance(tree, ast.ClassDef)
    said, problems = described(kind), []
    for node, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)) or node.target.id.startswith(
            "_"
        ):
            continue
        text = said.get(node.target.id, "") + commented(lines, node)
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            text += str(following.value.value)
        if not text:
            problems.append(f"'{node.target.id}' is not described")
        problems += complaints(node.target.id, ast.unparse(node.annotation), text)
    assert not problems, f"{name}: {'; '.join(problems)}"


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_on_the_page(name: str) -> None:
    alone = name.rpartition(".")[2]
    full = name if "." not in name else alone if alone in dir(fmilin) else f"fmilin.{name}"
    assert re.search(rf"auto\w+:: {re.escape(full)}$", API, re.MULTILINE), f"{full} is not on docs/reference/api.md"
