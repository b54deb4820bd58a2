"""A mechanism that was built in Python as the text of a TOML file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields, replace
from typing import Any

import numpy as np

from fmilin.models.mechanism import Body, Joint, Loop, MechanismDescription, Placement
from fmilin.models.mechanism.mechanism_description import INPUTS, PARTS
from fmilin.models.mechanism.part import ORIGIN

__all__ = ["toml_text"]


def toml_text(description: MechanismDescription) -> str:
    """Return a mechanism as TOML: what :meth:`Mechanism.from_toml` reads.

    Values that equal their default are left out.

    >>> from fmilin.models.mechanism import Body, Joint, MechanismDescription
    >>> rod = Body("rod", 1.0, center=(0.5, 0, 0))
    >>> print(toml_text(MechanismDescription("swing", [rod], [Joint("pin", "revolute", "ground", "rod")])))
    name = "swing"
    <BLANKLINE>
    [[body]]
    name = "rod"
    mass = 1.0
    center = [0.5, 0.0, 0.0]
    <BLANKLINE>
    [[joint]]
    name = "pin"
    type = "revolute"
    parent = "ground"
    child = "rod"
    <BLANKLINE>
    """
    d = description
    blank = MechanismDescription("blank", (), ())
    head = [f"name = {_value(d.name)}"]
    head += [
        f"{key} = {_value(getattr(d, key))}"
        for key in ("gravity", "ground", "independent")
        if getattr(d, key) != getattr(blank, key)
    ]
    kinds = {kind: name for name, kind in INPUTS.items()}
    blocks = [head]
    for parts, kind in PARTS.items():
        blocks += [[f"[[{kind.kind}]]", *_entries(part)] for part in getattr(d, parts)]
    blocks += [["[[input]]", f"kind = {_value(kinds[type(part)])}", *_entries(part)] for part in d.inputs]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _entries(part: Any) -> Iterable[str]:
    plain = _with_defaults(part)
    for f in fields(part):
        value = getattr(part, f.name)
        if isinstance(part, Body) and f.name == "mass":
            yield "massless = true" if value is None else f"mass = {_value(value)}"
        elif isinstance(part, Body) and f.name == "inertia":
            if part.J.any():
                yield f"inertia = {_value(_short(part))}"
        elif f.name not in plain or value != plain[f.name]:
            yield f"{f.name} = {_value(value)}"


def _short(body: Body) -> Any:
    """Return the inertia as three numbers where they say all."""
    J = body.J
    return tuple(J.diagonal().tolist()) if (np.diag(J.diagonal()) == J).all() else body.inertia


def _with_defaults(part: Any) -> dict[str, Any]:
    """Return what the optional fields of such a part are when they are left out."""
    optional: dict[str, Any] = {}
    if isinstance(part, Joint):
        optional = dict.fromkeys(("position", "velocity", "second_axis", "stands")) | dict.fromkeys(
            ("stiffness", "rest", "damping", "armature"), 0.0
        )
    elif isinstance(part, Loop):
        optional = {"second_axis": None}
    again = replace(part, **optional)
    given = {f.name: f.default for f in fields(part)} | {name: getattr(again, name) for name in optional}
    return {name: value for name, value in given.items() if value is not MISSING}


def _value(value: Any) -> str:
    if isinstance(value, Placement):
        turned = value.rotation != ORIGIN.rotation
        rotation = f", rotation = {_value(value.rotation)}" if turned else ""
        return f"{{position = {_value(value.position)}{rotation}}}"
    if isinstance(value, str):
        return '"' + "".join(_character(c) for c in value) + '"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    return repr(value) if isinstance(value, int) else repr(float(value))


def _character(c: str) -> str:
    if c in '"\\':
        return "\\" + c
    return c if c.isprintable() else f"\\U{ord(c):08x}"
