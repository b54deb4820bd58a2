"""Values of the front end's expression trees, in which declarations are written, over the names of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fmilin_modelica.values import Value, array_of, binary, builtin, is_symbolic, negated
from fmilin_modelica.walker import UnsupportedError

__all__ = ["TreeEvaluator"]

_OPERATORS = {
    "Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide", "Exp": "power",
    "AddElem": "elementwise_add", "SubElem": "elementwise_subtract", "MulElem": "elementwise_multiply",
    "DivElem": "elementwise_divide", "ExpElem": "elementwise_power",
    "Eq": "equal", "Neq": "not_equal", "Lt": "less", "Le": "less_equal", "Gt": "greater", "Ge": "greater_equal",
    "And": "and", "Or": "or",
}  # fmt: skip


class TreeEvaluator:
    """Evaluates expression trees.

    Parameters
    ----------
    value_of : callable
        The value of a variable or parameter by its name.
    functions : mapping
        Functions by name, with ``inputs``, ``outputs``, ``locals`` and ``body``.
    """

    def __init__(self, value_of: Callable[[str], Value], functions: Mapping[str, Any]) -> None:
        self._value_of, self._functions = value_of, functions

    def evaluate(self, tree: Mapping[str, Any]) -> Value:
        """Return the value of a tree.

        Raises
        ------
        UnsupportedError
            When it contains something that is not known.
        """
        kind, content = next(iter(tree.items()))
        method = getattr(self, f"_{kind.lower()}", None)
        if method is None:
            raise UnsupportedError(f"the construct '{kind}'")
        value: Value = method(content)
        return value

    def _literal(self, content: Any) -> Value:
        return next(iter(content["value"].values()))

    def _varref(self, content: Any) -> Value:
        value = self._value_of(content["name"]["name"])
        for subscript in content["subscripts"]:
            index = subscript.get("Index", {}).get("value") if isinstance(subscript, dict) else None
            if not isinstance(index, int):
                raise UnsupportedError("a subscript that is not a number in a declaration equation")
            value = value[index - 1]
        return value

    def _unary(self, content: Any) -> Value:
        value = self.evaluate(content["rhs"])
        if content["op"] in ("Plus", "UPlus"):
            return value
        return negated(value, logical=content["op"] == "Not")

    def _binary(self, content: Any) -> Value:
        try:
            name = _OPERATORS[content["op"]]
        except KeyError:
            raise UnsupportedError(f"the operator '{content['op']}'") from None
        return binary(name, self.evaluate(content["lhs"]), self.evaluate(content["rhs"]))

    def _array(self, content: Any) -> Value:
        items = [self.evaluate(item) for item in content["elements"]]
        return array_of(items) if items else np.empty((0,), object)

    def _if(self, content: Any) -> Value:
        for condition, value in content["branches"]:
            chosen = self.evaluate(condition)
            if is_symbolic(chosen):
                raise UnsupportedError("a condition that depends on the state")
            if chosen:
                return self.evaluate(value)
        return self.evaluate(content["else_branch"])

    def _builtincall(self, content: Any) -> Value:
        name = "".join(f"_{c.lower()}" if c.isupper() else c for c in content["function"]).lstrip("_")
        arguments = [self.evaluate(argument) for argument in content["args"]]
        try:
            return builtin(name, arguments)
        except KeyError:
            raise UnsupportedError(f"the function '{name}'") from None

    def _functioncall(self, content: Any) -> Value:
        name = content["name"]["name"]
        function = self._functions.get(name)
        if function is None:
            raise UnsupportedError(f"the function '{name}'")
        return self._run(function, [self.evaluate(argument) for argument in content["args"]], name)

    def _run(self, function: Mapping[str, Any], arguments: Sequence[Value], name: str) -> Value:
        """Return the first output of a function that consists of assignments."""
        values: dict[str, Value] = {}

        def value_of(wanted: str) -> Value:
            if wanted not in values:
                raise UnsupportedError(f"'{wanted}' in the function '{name}'")
            return values[wanted]

        inner = TreeEvaluator(value_of, self._functions)
        for place, declared in enumerate(function["inputs"]):
            default = declared.get("default")
            if place < len(arguments):
                values[declared["name"]] = arguments[place]
            elif default is not None:
                values[declared["name"]] = inner.evaluate(default)
        for declared in [*function["locals"], *function["outputs"]]:
            if declared.get("default") is not None:
                values[declared["name"]] = inner.evaluate(declared["default"])
        for statement in function["body"]:
            kind, content = next(iter(statement.items()))
            parts = content["comp"]["parts"] if kind == "Assignment" else []
            if len(parts) != 1 or parts[0]["subs"]:
                raise UnsupportedError(f"a statement of the function '{name}'")
            values[parts[0]["ident"]] = inner.evaluate(content["value"])
        return value_of(function["outputs"][0]["name"])
