"""The constraints that travel inside an FMU, in the format that users write."""

from __future__ import annotations

import json
from collections.abc import Sequence

from fmilin.fmi.write.variables import DeclaredConstraint
from fmilin.model.constraints.expressions import name_in_expression

__all__ = ["CONSTRAINTS_PATH", "constraints_toml"]

CONSTRAINTS_PATH = "extra/org.fmilin/constraints.toml"


def constraints_toml(constraints: Sequence[DeclaredConstraint], independent: Sequence[str]) -> str:
    """Return the file's text; empty when there is nothing to say.

    ``independent``: the states that the model's author recommends to keep.
    """
    blocks = [_block(c) for c in constraints]
    if independent:
        blocks.append(f"[coordinates]\nindependent = [{', '.join(_string(name) for name in independent)}]\n")
    return "\n".join(blocks)


def _block(constraint: DeclaredConstraint) -> str:
    entries = {"variable": constraint.variable, "level": constraint.level}
    if constraint.name:
        entries["name"] = constraint.name
    if constraint.rate is not None:
        entries["rate"] = name_in_expression(constraint.rate)
    return "[[constraint]]\n" + "".join(f"{key} = {_string(value)}\n" for key, value in entries.items())


def _string(text: str) -> str:
    """Return a TOML basic string: JSON's, but DEL is escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
