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
    called : callable
        The value of a function by its name, for its arguments.
    """

    def __init__(self, value_of: Callable[[str], Value], called: Callable[[str, Sequence[Value]], Value]) -> None:
        self._value_of, self._called = value_of, called

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
        return self._called(content["name"]["name"], [self.evaluate(argument) for argument in content["args"]])
