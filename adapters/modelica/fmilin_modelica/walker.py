"""The front end's graph of expressions, walked once into CasADi.

A node is one of ``literal``, ``coordinate`` (a variable, its derivative, a parameter, time, ...), operators, arrays,
records, comprehensions, conditionals, Modelica's own functions and calls of the model's. Functions come in single
assignments, loops unrolled by their domains, and are evaluated statement by statement.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from fmilin.errors import ModelError
from fmilin_modelica.values import Value, array_of, binary, branch, builtin, is_symbolic, negated, quotient, shape_of

__all__ = ["Scope", "UnsupportedError", "Walker", "index_text"]

QUOTIENT_WIDTH = (
    # numbers that the front end gives to the inner nodes of a div, mod or rem outside of functions, in addition to its
    # own
    6
)


class UnsupportedError(ModelError):
    """A construct of the model that the walk does not know, in an expression of a file and line, "crane.mo:12"."""

    place: str = ""


@dataclass
class Scope:
    """The names in a function or a loop besides the model: arguments, values so far, indices of loops."""

    arguments: Sequence[Value] = ()
    values: dict[int, Value] = field(default_factory=dict)
    binders: Mapping[tuple[int, int], int] = field(default_factory=dict)
    memo: dict[int, Value] = field(default_factory=dict)  # of nodes: values are assigned once within a scope


def index_text(index: Iterable[int]) -> str:
    """Return "[1,2]" of a multi-index from zero; nothing for a scalar."""
    text = ",".join(str(k + 1) for k in index)
    return f"[{text}]" if text else ""


class Walker:
    """Evaluates nodes of one flattened model; :meth:`coordinate` is for who knows what variables are."""

    def __init__(self, flat: Mapping[str, Any]) -> None:
        self.flat = flat
        self._nodes: dict[int, tuple[str, Any]] = {}
        self._operands: dict[int, list[int]] = {}
        self._subscripts: dict[int, list[Any]] = {}
        self._memo: dict[int, Value] = {}
        self._calls: dict[Any, tuple[Sequence[Value], list[Value]]] = {}
        self._read()

    def _read(self) -> None:
        """Give each node its number, its operands and its subscripts."""
        graph = self.flat["expressions"]
        operands, subscripts, shift = iter(graph["operands"]), iter(graph["subscripts"]), 0
        for row, node in enumerate(graph["nodes"]):
            kind, content = next(iter(node.items()))
            number = row + shift
            self._nodes[number] = (kind, content)
            if isinstance(content, dict):
                if "operand_count" in content:
                    self._operands[number] = list(itertools.islice(operands, content["operand_count"]))
                if "subscript_count" in content:
                    self._subscripts[number] = list(itertools.islice(subscripts, content["subscript_count"]))
            if kind == "runtime_quotient_owner" and "function" not in content["kind"]:
                shift += QUOTIENT_WIDTH
        for number, places in self._operands.items():
            if any(not (place < number and place in self._nodes) for place in places):
                raise UnsupportedError("expressions that the front end numbers in an unknown way")

    # ------------------------------------------------------------------ what the model says

    def coordinate(self, kind: str, content: Any) -> Value:
        """Return the value of a variable, parameter, derivative, condition, ...; for the model to answer."""
        raise NotImplementedError

    def concrete(self, value: Value, what: str) -> Any:
        """Return a number where the construct needs one: an index, a size."""
        if is_symbolic(value):
            raise UnsupportedError(f"{what} that depends on the state")
        return value

    # ------------------------------------------------------------------ nodes

    def value(self, number: int, scope: Scope | None = None) -> Value:
        """Return the value of a node."""
        memo = self._memo if scope is None else scope.memo
        if number in memo:
            return memo[number]
        kind, content = self._nodes[number]
        method = getattr(self, f"_{kind}", None)
        if method is None:
            method = self._unknown
        try:
            memo[number] = method(number, content, scope)
        except UnsupportedError as error:
            error.place = error.place or self._find_place(number)
            raise
        return memo[number]

    def _unknown(self, number: int, content: Any, scope: Scope | None) -> Value:
        raise UnsupportedError(f"the construct '{self._nodes[number][0]}'")

    def _find_place(self, number: int) -> str:
        """Return "crane.mo:12" of a node."""
        places = self.flat["places_of_expressions"]
        row = list(self._nodes).index(number)
        return f"{places['names'][places['files'][row]]}:{places['lines'][row]}"

    def _all(self, number: int, scope: Scope | None) -> list[Value]:
        return [self.value(k, scope) for k in self._operands.get(number, ())]

    def _literal(self, number: int, content: Any, scope: Scope | None) -> Value:
        value = next(iter(content.values()))
        if isinstance(value, dict):  # an enumeration: its number
            value = value.get("ordinal", value.get("index", next(iter(value.values()))))
        return value

    def _coordinate(self, number: int, content: Any, scope: Scope | None) -> Value:
        kind, which = tagged(content)
        if kind == "function_parameter" and scope is not None:
            return scope.arguments[which["ordinal"]]
        if kind == "binder" and scope is not None:
            return scope.binders[which["domain"], which["ordinal"]]
        return self.coordinate(kind, which)

    def _unary(self, number: int, content: Any, scope: Scope | None) -> Value:
        value = self.value(content["operand"], scope)
        if content["operator"] == "plus":
            return value
        return negated(value, logical=content["operator"] == "not")

    def _binary(self, number: int, content: Any, scope: Scope | None) -> Value:
        return binary(content["operator"], self.value(content["lhs"], scope), self.value(content["rhs"], scope))

    def _runtime_quotient_owner(self, number: int, content: Any, scope: Scope | None) -> Value:
        return quotient(content["builtin"], self.value(content["lhs"], scope), self.value(content["rhs"], scope))

    def _builtin(self, number: int, content: Any, scope: Scope | None) -> Value:
        name = content["builtin"]
        arguments = self._all(number, scope)
        if name in ("zeros", "ones", "identity"):
            arguments = [self.concrete(value, f"a size in '{name}'") for value in arguments]
        elif name in ("fill", "linspace"):
            kept = 1 if name == "fill" else 2
            arguments[kept:] = [self.concrete(value, f"a size in '{name}'") for value in arguments[kept:]]
        try:
            return builtin(name, arguments)
        except KeyError:
            raise UnsupportedError(f"the function '{name}'") from None

    def _array(self, number: int, content: Any, scope: Scope | None) -> Value:
        items = self._all(number, scope)
        return array_of(items) if items else np.empty((0,), object)

    def _record(self, number: int, content: Any, scope: Scope | None) -> Value:
        return tuple(self._all(number, scope))

    def _field(self, number: int, content: Any, scope: Scope | None) -> Value:
        base = self.value(content["base"], scope)
        if isinstance(base, np.ndarray):  # of each record in an array
            return array_of([item[content["field"]] for item in base])
        return base[content["field"]]

    def _range(self, number: int, content: Any, scope: Scope | None) -> Value:
        first, last = (self.value(content[f"{end}_expression"], scope) for end in ("start", "stop"))
        step = content["explicit_step_expression"]
        by = 1 if step is None else self.value(step, scope)
        first, last, by = (self.concrete(value, "a range") for value in (first, last, by))
        return array_of([first + by * k for k in range(int(np.floor((last - first) / by + 1e-9)) + 1)])

    def _conditional(self, number: int, content: Any, scope: Scope | None) -> Value:
        """Return the branch that holds, or all of them under their conditions where these depend on the state."""
        return self._chosen(self._operands[number], scope)

    def _chosen(self, parts: Sequence[int], scope: Scope | None) -> Value:
        if len(parts) == 1:
            return self.value(parts[0], scope)
        condition = self.condition(self.value(parts[0], scope))
        if not is_symbolic(condition):
            return self.value(parts[1], scope) if condition else self._chosen(parts[2:], scope)
        return branch(condition, self.value(parts[1], scope), self._chosen(parts[2:], scope))

    def condition(self, value: Value) -> Value:
        """Return a condition, as a Boolean where it is known now."""
        return value

    def _index(self, number: int, content: Any, scope: Scope | None) -> Value:
        base = self.value(content["base"], scope)
        places = self._places(number, scope)
        for axis, index in enumerate(places):
            if is_symbolic(index):  # a choice among all entries
                rest = [base[(*places[:axis], k, *places[axis + 1 :])] for k in range(base.shape[axis])]
                chosen = rest[-1]
                for k in range(len(rest) - 2, -1, -1):
                    chosen = branch(index < k + 1.5, rest[k], chosen)
                return chosen
        selected = base[places]
        if isinstance(base, np.ndarray) and isinstance(selected, np.ndarray) and selected.ndim == 0:
            return selected[()]
        return selected

    def _places(self, number: int, scope: Scope | None) -> tuple[Any, ...]:
        """Return numpy's index for a node's subscripts; several vectors select rows and columns, as in Modelica."""
        places: list[Any] = []
        for subscript in self._subscripts[number]:
            kind = subscript["kind"]
            if kind == "whole":
                places.append(slice(None))
                continue
            value = self.value(next(iter(kind.values())), scope)
            if isinstance(value, np.ndarray):
                places.append([int(self.concrete(k, "an index")) - 1 for k in value])
            else:
                value = self.condition(value)
                places.append(value if is_symbolic(value) else int(value) - 1)
        vectors = [k for k, index in enumerate(places) if isinstance(index, list)]
        if len(vectors) > 1:
            grid = np.ix_(*(places[k] for k in vectors))
            for k, part in zip(vectors, grid, strict=True):
                places[k] = part
        return tuple(places)

    def _array_update(self, number: int, content: Any, scope: Scope | None) -> Value:
        base = np.array(self.value(content["base"], scope), object, copy=True)
        places = self._places(number, scope)
        if any(is_symbolic(index) for index in places):
            raise UnsupportedError("an assignment to an entry with an index that depends on the state")
        base[places] = self.value(content["value"], scope)
        return base

    def _comprehension(self, number: int, content: Any, scope: Scope | None) -> Value:
        domain = content["domain"]
        ranges = self.ranges(domain)
        values = [self.value(content["body"], inner) for inner in self._within(domain, ranges, scope)]
        shape = tuple(len(r) for r in ranges)
        inner_shape = shape_of(values[0]) if values else ()
        return array_of(values).reshape(shape + inner_shape)

    def ranges(self, domain: int) -> list[range]:
        """Return the indices of a domain."""
        binders = self.flat["domains"][domain]["domain"]["binders"]
        return [range(b["lower"], b["upper"] + (1 if b["step"] > 0 else -1), b["step"]) for b in binders]

    def _within(self, domain: int, ranges: Sequence[range], scope: Scope | None) -> Iterable[Scope]:
        outer = scope or Scope()
        for index in itertools.product(*ranges):
            own = {(domain, k): i for k, i in enumerate(index)}
            yield Scope(outer.arguments, outer.values, {**outer.binders, **own})

    # ------------------------------------------------------------------ functions

    def _call(self, number: int, content: Any, scope: Scope | None) -> Value:
        owner = content["owner"]  # of several outputs, the first call has the arguments
        return self.called(content["function"], self._all(owner, scope))[content["output"]]

    def called(self, function: int, arguments: Sequence[Value]) -> list[Value]:
        """Return all outputs of a function; the same arguments give the same nodes of the graph."""
        key = (function, *map(_identity, arguments))
        if key not in self._calls:  # arguments are kept, so that no other node can take their identity
            self._calls[key] = (arguments, self.evaluated(function, arguments))
        return self._calls[key][1]

    def evaluated(self, function: int, arguments: Sequence[Value]) -> list[Value]:
        """Return all outputs of a function, computed."""
        described = self.flat["functions"][function]
        if described["external"] is not None:
            raise UnsupportedError(f"the external function '{described['name']}'")
        inner = Scope(arguments)
        self._run(described["statements"], inner, described["name"])
        return [inner.values.get(k, 0.0) for k in range(len(described["outputs"]))]

    def _function_value(self, number: int, content: Any, scope: Scope | None) -> Value:
        assert scope is not None  # noqa: S101 - stands in functions only
        return scope.values[content["value"]]

    def _run(self, statements: Sequence[Any], scope: Scope, function: str) -> None:
        for statement in statements:
            kind, content = next(iter(statement.items()))
            if kind == "assignment":
                scope.values[content["target"]] = self.value(content["rhs"], scope)
            elif kind == "assignment_group":
                pairs = [(one["target"], self.value(one["rhs"], scope)) for one in content["assignments"]]
                scope.values.update(pairs)
            elif kind == "for":
                self._loop(content, scope, function)
            elif kind != "assertion":
                raise UnsupportedError(f"the statement '{kind}' in the function '{function}'")

    def _loop(self, content: Any, scope: Scope, function: str) -> None:
        for inner in self._within(content["domain"], self.ranges(content["domain"]), scope):
            self._run(content["statements"], inner, function)

    # ------------------------------------------------------------------ equations

    def equations(self, operations: Sequence[Any]) -> list[Value]:
        """Return the residuals of a list of equations, one scalar each."""
        return [residual for operation in operations for residual in self.equation(operation)]

    def equation(self, operation: Any) -> list[Value]:
        """Return the residuals of one equation, or of one over a domain."""
        kind, content = next(iter(operation.items()))
        if kind == "residual":
            return self._flattened(self.value(content["residual"]))
        if kind == "structured":
            return self._structured(content)
        raise UnsupportedError(f"an equation of the kind '{kind}'")

    def _structured(self, content: Any) -> list[Value]:
        """Return residuals of equations over a domain: its indices go into the body, or into the array that it is."""
        domain, view = content["domain"], content["scalar_view"]
        ranges = self.ranges(domain)
        if view == "RowMajorProjection":
            prefix = 0
        elif view == "BinderSubstitution":
            prefix = len(ranges)
        else:
            prefix = next(iter(view.values()))["binder_count"]
        if not prefix:
            return [r for body in content["bodies"] for r in self._flattened(self.value(body))]
        residuals = []
        for inner in self._within(domain, ranges[:prefix], None):
            for body in content["bodies"]:
                residuals += self._flattened(self.value(body, inner))
        return residuals

    @staticmethod
    def _flattened(value: Value) -> list[Value]:
        if isinstance(value, np.ndarray):
            return list(value.reshape(-1))
        return list(value) if isinstance(value, tuple) else [value]


def tagged(content: Any) -> tuple[str, Any]:
    """Return kind and content of what stands as "KIND" or as {KIND: content}."""
    return (content, None) if isinstance(content, str) else next(iter(content.items()))


def _identity(value: Value) -> Any:
    """Return what tells a value from others while both exist."""
    if isinstance(value, np.ndarray):
        return (value.shape, *map(_identity, value.reshape(-1)))
    if isinstance(value, tuple):
        return tuple(map(_identity, value))
    return ("node", value.__hash__()) if is_symbolic(value) else (type(value), value)


def symbol(name: str) -> Any:
    """Return a fresh scalar of the graph."""
    return ca.SX.sym(name)
