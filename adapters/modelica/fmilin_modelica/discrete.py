"""Variables of a flattened model that change at events only: from others where they follow, else held at their start.

Every point is taken as a start: ``initial()`` is true. Friction elements that are stuck keep their modes.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from fmilin.errors import UnknownNameError
from fmilin_modelica.modes import (
    LOCKED,
    RELATIVE_VELOCITIES,
    HeldModeError,
    Mode,
    describe_modes,
    group_of,
    require_velocity,
    values_of_mode,
)
from fmilin_modelica.parameters import ParameterWalker
from fmilin_modelica.values import Value, binary, negated
from fmilin_modelica.variables import Variable
from fmilin_modelica.walker import tagged

__all__ = ["DiscreteWalker", "deep_recursion"]

DEEPEST = 20000  # nested expressions; Python's own limit is 1000


class DiscreteWalker(ParameterWalker):
    """A walk that knows the discrete variables.

    Parameters
    ----------
    flat : mapping
        What the front end gives.
    changed : mapping of str to float
        Parameters, or entries of them, with other values than the model's.
    modes : mapping of int to Mode
        Variables of state machines that are held, by their numbers.
    held_modes : mapping of str to str
        Modes that a user chooses, by the names of friction elements.
    """

    def __init__(
        self,
        flat: Mapping[str, Any],
        changed: Mapping[str, float] | None,
        modes: Mapping[int, Mode] | None,
        held_modes: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(flat, changed)
        self.modes = dict(modes or {})
        self.held_modes = dict(held_modes or {})
        self.mode_note = ""  # on friction elements, once the start is known
        self.unconstrained: frozenset[str] = frozenset()  # stuck elements without a velocity among the states
        self.held: dict[str, Any] = {}  # the values of variables that are constant between events, by name
        self._definitions = self._discrete_definitions()
        self._initial_targets = self._list_initial_targets()

    def start_number(self, value: Value) -> Any:
        """Return the number that an expression has at the start values; for the equations to answer."""
        raise NotImplementedError

    def _event_condition(self, number: int) -> Value:
        node = self.flat["conditions"][number]["node"]
        if node == "initial":
            return True
        kind, content = tagged(node)
        if kind == "always":
            return True
        if kind == "relation":
            return self.value(self.flat["relations"][content]["relation"]["expression"])
        if kind == "not":
            return negated(self._event_condition(content), logical=True)
        if kind == "discrete":
            return self.value(content)
        if kind in ("and", "or"):
            return binary(kind, self._event_condition(content["lhs"]), self._event_condition(content["rhs"]))
        return False  # clocks, and what rises: instants, and none of them is now

    def _fires(self, activation: Any) -> bool:
        """Whether an equation holds now: always, or at a start."""
        return activation == "always" or self._at_start(activation["when"]["trigger"])

    def _at_start(self, number: int) -> bool:
        node = self.flat["conditions"][number]["node"]
        if isinstance(node, str):
            return bool(node == "initial")
        kind, content = next(iter(node.items()))
        if kind in ("any_rise", "or", "any"):
            return self._at_start(content["lhs"]) or self._at_start(content["rhs"])
        return False

    def _discrete_definitions(self) -> dict[int, int]:
        """Return the node of each discrete variable that follows from others now."""
        nodes: dict[int, int] = {}
        for owner in self.flat["discrete_value_owners"]:
            for branch in reversed(owner["branches"]):
                if self._fires(branch["activation"]):
                    values = [one["value"] for one in branch["values"]]
                    nodes.update(zip(owner["targets"], values, strict=True))
        for equation in self.flat["discrete_real_equations"]:
            if self._fires(equation["activation"]):
                for target, other in self._list_discrete_sides(equation["residual"])[:1]:
                    nodes.setdefault(target, other)
        return nodes

    def _list_discrete_sides(self, residual: int) -> list[tuple[int, int]]:
        """Return the discrete variables that are a side of an equation, each with the node of the other side."""
        kind, content = self._nodes[residual]
        if kind != "binary" or content["operator"] != "subtract":
            return []
        pairs = [(self._nodes[content[one]], content[two]) for one, two in (("lhs", "rhs"), ("rhs", "lhs"))]
        return [
            (side["discrete_real"], other)
            for (node, side), other in pairs
            if node == "coordinate" and "discrete_real" in side
        ]

    def _list_initial_targets(self) -> set[int]:
        """Return the discrete variables that initial equations determine: ``y_min = u`` of a memory of extrema."""
        operations = self.flat["initialization_equation_operations"]
        residuals = [operation["residual"]["residual"] for operation in operations if "residual" in operation]
        sides = [side for residual in residuals for side in self._list_discrete_sides(residual)]
        return {target for target, _ in sides if not self.variables[target].shape}

    def _discrete(self, number: int, *, before: bool) -> Value:
        """Return what changes at events only: from the others where it follows from them, else held at its start."""
        node = self._definitions.get(number)
        if number in self.modes:
            mode = self.modes[number]
            if mode.slides and self.variables[number].name.endswith(".mode"):
                return self._direction(group_of(self.variables[number].name))
            return mode.before if before else mode.now
        if before or node is None or number in self._underway:
            return self._held_value(self.variables[number], before=before)
        if number not in self._assigned:
            self._underway.add(number)
            self._assigned[number] = self.value(node)
            self._underway.discard(number)
        return self._assigned[number]

    # ------------------------------------------------------------------ modes

    def modes_at(self, values_at: Callable[[Sequence[Any]], list[float]]) -> dict[int, Mode]:
        """Return the modes of friction elements that are stuck at a point, or were before, and note those of all."""
        machine = self._state_machines()
        with deep_recursion():
            values = values_at([self._flattened(self.value(self._definitions[k]))[0] for k in machine])
        by_name = {self.variables[k].name: value for k, value in zip(machine, values, strict=True)}
        self.mode_note = describe_modes(by_name, self.unconstrained, self.held_modes)
        fixed = {group_of(self.variables[k].name) for k in self.modes}
        fixed |= {
            group_of(name) for name, value in by_name.items() if value and name.endswith((f".{LOCKED}", ".stuck"))
        }
        sliding = self._sliding(by_name, values_at)
        found = {}
        for k, value in zip(machine, values, strict=True):
            if group_of(self.variables[k].name) in sliding:
                found[k] = Mode(now=0, before=0, slides=True)
            elif group_of(self.variables[k].name) in fixed:
                exact = bool(value) if self.variables[k].type["scalar"] == "boolean" else int(value)
                found[k] = Mode(exact, exact)
        return found | self._modes_of_users(values_at)

    def _sliding(
        self, by_name: Mapping[str, float], values_at: Callable[[Sequence[Any]], list[float]]
    ) -> frozenset[str]:
        """Return the elements that slide with a velocity, and know after the initialization in which direction.

        ``startForward`` is true at the start and false from then on: friction that falls with the speed begins then.
        """
        groups = {group_of(name) for name in by_name}
        begin = [g for g in groups if by_name.get(f"{g}.startForward") or by_name.get(f"{g}.startBackward")]
        pairs = [(g, self._velocity(g)) for g in begin if f"{g}.mode" in by_name]
        velocities = {g: velocity for g, velocity in pairs if velocity is not None}
        values = values_at(list(velocities.values()))
        return frozenset(g for g, value in zip(velocities, values, strict=True) if value)

    def _velocity(self, element: str) -> Value | None:
        """Return the relative velocity of a friction element; None where it declares none under a usual name."""
        names = [f"{element}.{name}" for name in RELATIVE_VELOCITIES]
        for variable in self.variables:
            if variable.name in names and variable.role in ("state", "algebraic", "output") and not variable.shape:
                return self.coordinate(variable.role, variable.number)
        return None

    def _direction(self, element: str) -> Value:
        """Return 1 where an element slides forward, else -1."""
        velocity: Any = self._velocity(element)
        return ca.if_else(velocity > 0, 1, -1)

    def _modes_of_users(self, values_at: Callable[[Sequence[Any]], list[float]]) -> dict[int, Mode]:
        """Return the modes that a user chooses; an error where the velocities of the start contradict them."""
        elements = [group_of(self.variables[k].name) for k in self._definitions if self._is_locked(k)]
        found = {}
        for element, mode in self.held_modes.items():
            if element not in elements:
                unknown = UnknownNameError.among(element, elements, "a friction element of the model")
                raise HeldModeError(str(unknown))
            numbers = {
                self.variables[k].name.rpartition(".")[2]: k
                for k in self._definitions
                if group_of(self.variables[k].name) == element
            }
            values = values_of_mode(element, mode, numbers)
            if self.modes.keys().isdisjoint(numbers[name] for name in values):
                self._require_velocity(element, mode, values_at)
            found.update({numbers[name]: value for name, value in values.items()})
        return found

    def _require_velocity(self, element: str, mode: str, values_at: Callable[[Sequence[Any]], list[float]]) -> None:
        velocity = self._velocity(element)
        if velocity is not None:
            require_velocity(element, mode, str(velocity), values_at([velocity])[0])

    def _state_machines(self) -> list[int]:
        """Return the scalar variables of components with a variable 'locked' that follow from what was before.

        So do those that are read as what was before: ``stuck`` of a one-way clutch follows from its velocity.
        """
        groups = {group_of(self.variables[k].name) for k in self._definitions if self._is_locked(k)}
        members = [
            k for k in self._definitions if group_of(self.variables[k].name) in groups and not self.variables[k].shape
        ]
        before = {k: self._targets(self._definitions[k], "pre_discrete_value") for k in members}
        read = set().union(*before.values())
        return [k for k in members if before[k] or k in read]

    def _is_locked(self, number: int) -> bool:
        return self.variables[number].name.endswith(f".{LOCKED}")

    def _targets(self, number: int, kind: str) -> set[int]:
        """Return the variables of a kind that an expression contains."""
        node, content = self._nodes[number]
        if node == "coordinate":
            which, target = tagged(content)
            return {target} if which == kind else set()
        parts = list(self._operands.get(number, ()))
        if isinstance(content, dict):
            parts += [content[key] for key in ("lhs", "rhs", "operand", "base", "body") if key in content]
        return set().union(*(self._targets(part, kind) for part in parts))

    def _held_value(self, variable: Variable, *, before: bool) -> Value:
        if variable.number in self._initial_targets:
            return self.determine_at_start(variable)
        start = self._initial_value(variable.number)
        value = self._shaped(variable, 0.0 if start is None else self.value(start))
        value = self._as_numbers(value)
        if not before or variable.type["scalar"] != "real":  # as the next event of a table
            for (_, name), item in zip(variable.entries(), self._flattened(value), strict=True):
                self.held[f"pre({name})" if before else name] = item
        return value

    def _initial_value(self, number: int) -> int | None:
        for initial in self.flat["initial_discrete_values"]:
            if initial["target"] == number:
                return int(initial["value"])
        attributes = self.variables[number].attributes
        return attributes["binding"] if attributes["start"] is None else attributes["start"]  # type: ignore[no-any-return]

    def _as_numbers(self, value: Value) -> Value:
        if isinstance(value, np.ndarray):
            out = np.empty(value.shape, object)
            for index in np.ndindex(value.shape):
                out[index] = self.start_number(value[index])
            return out
        return self.start_number(value)


@contextlib.contextmanager
def deep_recursion() -> Iterator[None]:
    """Let expressions be nested deeper than Python allows by itself."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, DEEPEST))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
