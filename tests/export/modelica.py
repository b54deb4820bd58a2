"""Read a Modelica model with pymoca and compute with its equations."""

from __future__ import annotations

from typing import Any

import numpy as np
from pymoca import ast, parser, tree

from fmilin.signals import FloatArray

__all__ = ["LIBRARY", "Flat", "flat"]

# The connectors of the Modelica Standard Library, as it declares them.
LIBRARY = """
package Modelica package Blocks package Interfaces
  connector RealInput = input Real;
  connector RealOutput = output Real;
end Interfaces; end Blocks; end Modelica;
"""


class Flat:
    """A flat model: its variables, and its equations as functions."""

    def __init__(self, model: Any, declared: Any) -> None:
        self.symbols = model.symbols
        self._declared = declared.symbols
        self.equations = model.equations
        symbols = model.symbols.items()
        self.parameters = {name: np.array(_value(s.value, {})) for name, s in symbols if "parameter" in s.prefixes}

    def named(self, prefix: str) -> list[str]:
        """Names of the variables declared with ``input`` or ``output``, or as such a connector."""
        connector = f"Modelica.Blocks.Interfaces.Real{prefix.capitalize()}"  # pymoca leaves these out of a flat model
        return [n for n, s in self._declared.items() if prefix in s.prefixes or str(s.type) == connector]

    def start(self, name: str) -> float:
        """The start value of a variable."""
        return float(_value(self.symbols[name].start, {}))

    def solved(self, known: dict[str, Any]) -> dict[str, Any]:
        """Evaluate every equation in order; ``der(x)`` and ``pre(x)`` are names of their own."""
        values = {**self.parameters, **known}
        for equation in self.equations:
            if isinstance(equation, ast.WhenEquation):
                for block in equation.blocks:
                    for inner in block:
                        _solve(inner, values)
            else:
                _solve(equation, values)
        return values


def flat(text: str, name: str) -> Flat:
    """Parse, which checks the syntax, and flatten, which finds every name."""
    root = parser.parse(LIBRARY)
    root.extend(parser.parse(text))
    return Flat(tree.flatten(root, ast.ComponentRef(name=name)).classes[name], parser.parse(text).classes[name])


def _solve(equation: Any, values: dict[str, Any]) -> None:
    right = np.atleast_1d(_value(equation.right, values))
    if (element := _element(equation.left)) is not None:
        vector = values.setdefault(equation.left.name, np.zeros(0))
        assert len(vector) == element  # one after the other
        values[equation.left.name] = np.append(vector, right)
    elif isinstance(equation.left, ast.Array):
        assert len(right) == len(equation.left.values)
        for target, value in zip(equation.left.values, right, strict=True):
            values[_name(target)] = value
    else:
        values[_name(equation.left)] = right


def _element(node: Any) -> int | None:
    """Which element a reference means, counted from 0; None: all of it."""
    indices = [i for group in getattr(node, "indices", None) or [] for i in group or [] if i is not None]
    return int(indices[0].value) - 1 if indices else None


def _name(node: Any) -> str:
    if isinstance(node, ast.Expression):
        return f"{_operator(node)}({_name(node.operands[0])})"
    return str(node.name)


def _operator(node: Any) -> str:
    return str(getattr(node.operator, "name", node.operator))


def _value(node: Any, values: dict[str, Any]) -> Any:
    match node:
        case ast.Primary():
            return node.value
        case ast.Array():
            return np.array([_value(v, values) for v in node.values], dtype=float)
        case ast.ComponentRef():
            element = _element(node)
            return values[node.name] if element is None else values[node.name][element]
    if _operator(node) in ("der", "pre"):
        return values[_name(node)]
    numbers: list[FloatArray] = [_value(o, values) for o in node.operands]
    match _operator(node), numbers:
        case "+", [a, b]:
            return a + b
        case "-", [a, b]:
            return a - b
        case "-", [a]:
            return -a
        case "*", [a, b]:
            return a @ b
        case "zeros", [n]:
            return np.zeros(int(n))
    raise AssertionError(_operator(node))
