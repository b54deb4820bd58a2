"""The equations of a flattened model in CasADi: symbols for its variables, residuals, start values, what is held.

Parameters that the front end left adjustable, and that are not zero, are symbols; what a condition, a size or an index
needs, and what is zero, is a number, and changing it means walking the graph again.
Variables that change only at events (``when``, ``pre``, clocks) are held at their start values; Boolean and Integer
ones that follow from the others at every instant are expressions. Every point is taken as a start: ``initial()`` is
true.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from fmilin_modelica.delays import SignalDelay, name_delay
from fmilin_modelica.discrete import DiscreteWalker, deep_recursion
from fmilin_modelica.entries import Entry
from fmilin_modelica.modes import Mode, constrain_stuck_rows, group_of
from fmilin_modelica.parameters import KINDS
from fmilin_modelica.trees import TreeEvaluator
from fmilin_modelica.values import Value, binary, is_symbolic
from fmilin_modelica.variables import Variable
from fmilin_modelica.walker import Scope, UnsupportedError, symbol, tagged

__all__ = ["HOMOTOPY_PARAMETER", "Equations"]

HOMOTOPY_PARAMETER = "homotopy parameter"
SHOWN = 6  # names in a message
_AFTER = {"less": False, "less_equal": False, "greater": True, "greater_equal": True}  # of "time OPERATOR start"


class Equations(DiscreteWalker):
    """A flattened model, walked.

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
    cuts_delays : bool
        Whether ``delay(x, T)`` is a symbol of its own; x by default, as at an equilibrium.
    blends_homotopy : bool
        Whether ``homotopy(a, b)`` is ``s*a + (1 - s)*b`` with a parameter s; a by default.
    """

    def __init__(
        self,
        flat: Mapping[str, Any],
        changed: Mapping[str, float] | None = None,
        modes: Mapping[int, Mode] | None = None,
        held_modes: Mapping[str, str] | None = None,
        *,
        cuts_delays: bool = False,
        blends_homotopy: bool = False,
    ) -> None:
        super().__init__(flat, changed, modes, held_modes)
        self._cuts_delays = cuts_delays
        self.homotopy_part = symbol(HOMOTOPY_PARAMETER) if blends_homotopy else None
        self.has_homotopy = False  # with a simplified argument that is another one
        self.delays: dict[int, SignalDelay] = {}
        self.time = symbol("time")
        self.unread: list[str] = []  # inputs with a default that is not a number at the start
        self._symbols: dict[int, Value] = {}
        self._derivatives: dict[int, Value] = {}
        with deep_recursion():
            for variable in self.variables:
                if variable.role in ("state", "algebraic", "output", "input"):
                    self._symbols[variable.number] = self._fresh(variable, "{}")
                    if variable.role == "state":
                        self._derivatives[variable.number] = self._fresh(variable, "der({})")
            self.residuals, self.names = self._placed(flat["continuous_equation_operations"], flat["places"])
            self.residuals = self._constrain_stuck_rows()
            self.initial_residuals, self.initial_names = self._placed(
                flat["initialization_equation_operations"], flat["initial_places"]
            )
            deciding = set(self.frozen)
            self.states = self._entries("state")
            self.algebraic = self._entries("algebraic", "output")
            self.inputs = self._entries("input")
            self.outputs = self._output_values()
            self.numbers = self._listed()
        self.deciding = frozenset(deciding)

    # ------------------------------------------------------------------ symbols

    def _fresh(self, variable: Variable, pattern: str) -> Value:
        if not variable.shape:
            return symbol(pattern.format(variable.name))
        out = np.empty(variable.shape, object)
        for index, name in variable.entries():
            out[index] = symbol(pattern.format(name))
        return out

    def derivative_symbols(self) -> list[Any]:
        """Return der(x) of each state, in the order of ``states``."""
        out: list[Any] = []
        for variable in self.variables:
            if variable.role == "state":
                out += self._flattened(self._derivatives[variable.number])
        return out

    def _entries(self, *roles: str) -> list[Entry]:
        out = []
        for variable in self.variables:
            if variable.role not in roles:
                continue
            symbols = self._flattened(self._symbols[variable.number])
            said = self.flat["declarations"].get(variable.name, {})
            starts = self._default(variable, len(symbols)) or self._numbers(variable, "start", len(symbols))
            nominals = self._numbers(variable, "nominal", len(symbols))
            fixed = variable.fixed(len(symbols))
            for k, (_, name) in enumerate(variable.entries()):
                start = 0.0 if starts is None else starts[k]
                nominal = None if nominals is None or not nominals[k] else abs(nominals[k])
                out.append(Entry(name, symbols[k], variable, start, bool(fixed[k]), said.get("rank"), nominal))
        return out

    def _default(self, variable: Variable, count: int) -> list[float] | None:
        """Return the numbers of an input's declaration equation, ``input Real u = 2``, or None."""
        tree = self.flat["declarations"].get(variable.name, {}).get("binding")
        if tree is None or variable.role != "input":
            return None
        evaluator = TreeEvaluator(self._number_at_start, self.flat["tree_functions"])
        try:
            values = self._flattened(evaluator.evaluate(tree))
            values = values * count if len(values) == 1 else values
            return [float(self.start_number(value)) for value in values]
        except UnsupportedError:  # a motion, or a function that nothing else calls
            self.unread.append(variable.name)
            return None

    def _number_at_start(self, name: str) -> Value:
        """Return the value that a name in a declaration has at the start."""
        if name == "time":
            return 0.0
        variable = next((v for v in self.variables if v.name == name), None)
        if variable is None:
            raise UnsupportedError(f"'{name}', which the equations do not contain")
        if variable.role in ("parameter", "constant"):
            return self._parameter(variable)
        if variable.role == "input" and variable.number not in self._underway:
            self._underway.add(variable.number)
            count = len(self._flattened(self._symbols[variable.number]))
            numbers = self._default(variable, count) or self._numbers(variable, "start", count) or [0.0] * count
            self._underway.discard(variable.number)
            return np.array(numbers, object).reshape(variable.shape) if variable.shape else numbers[0]
        raise UnsupportedError(f"'{name}', which moves")

    def _output_values(self) -> list[tuple[str, Variable, Any]]:
        """Return name, declaration and expression of each output of the whole model, in the order of the text."""
        outputs = []
        for variable in self.variables:
            said = self.flat["declarations"].get(variable.name, {})
            if not (variable.is_output or said.get("output")) or variable.type["scalar"] not in KINDS:
                continue
            if variable.role in ("parameter", "constant"):
                value = self._parameter(variable)
            elif variable.number in self._symbols:
                value = self._symbols[variable.number]
            else:
                value = self._discrete(variable.number, before=False)
            items = self._flattened(value)
            for (_, name), item in zip(variable.entries(), items, strict=True):
                outputs.append((name, variable, ca.SX(item if is_symbolic(item) else float(item))))
        return outputs

    def _numbers(self, variable: Variable, attribute: str, count: int) -> list[float] | None:
        """Return the numbers of an attribute, one for each entry; None when it is not declared."""
        node = variable.attributes[attribute]
        if node is None:
            return None
        values = self._flattened(self.value(node))
        if len(values) == 1:
            values = values * count
        return [float(self.number(value, freeze=True)) for value in values]

    def _listed(self) -> dict[str, float]:
        """Return the values of all parameters that are not symbols, by name: also of those that nothing needed."""
        self._listing, values = True, {}
        for variable in self.variables:
            if variable.role != "parameter" or variable.type["scalar"] not in KINDS:
                continue
            with contextlib.suppress(UnsupportedError):
                items = self._flattened(self._parameter(variable))
                for (_, name), item in zip(variable.entries(), items, strict=True):
                    if name not in self.parameters:
                        values[name] = float(self.number(item))
        return values

    def _placed(self, operations: Sequence[Any], places: Sequence[str]) -> tuple[list[Any], list[str]]:
        """Return the residuals of equations, and where each one stands in the text."""
        residuals: list[Any] = []
        names: list[str] = []
        for operation, origin in zip(operations, places, strict=True):
            try:
                rows = self.equation(operation)
            except UnsupportedError as error:
                place, _, words = origin.partition(": ")
                unsupported = UnsupportedError(f"{error} in '{words}'")
                unsupported.place = error.place or place
                raise unsupported from None
            residuals += [ca.SX(r) for r in rows]
            names += [origin if len(rows) == 1 else f"{origin} [{k + 1}]" for k in range(len(rows))]
        return residuals, names

    def notes(self) -> tuple[str, ...]:
        """Return what is held between events, and which defaults could not be read, in a sentence each."""
        notes = list(self.flat["notes"])
        if self.unread:
            named = ", ".join(f"'{name}'" for name in self.unread[:SHOWN])
            notes.append(
                f"The default of {named} is not a number at the start: the input keeps its start value. Set it if it "
                "should have another value."
            )
        modes = {f"pre({self.variables[number].name})" for number in self.modes}
        held = {n: value for n, value in self.held.items() if not isinstance(value, str) and n not in modes}
        if self.mode_note:
            notes.append(self.mode_note)
        if not held:
            return tuple(notes)
        shown = [f"{name} = {value:g}" for name, value in list(held.items())[:SHOWN]]
        more = f" and {len(held) - SHOWN} more" if len(held) > SHOWN else ""
        return (
            *notes,
            f"Variables that change at events only are held at their start values: {', '.join(shown)}{more}.",
        )

    def assertions(self) -> list[tuple[Value, str]]:
        """Return when each assertion of the model fails, and what it says then, as far as that can be read."""
        failed = []
        for action in self.flat["event_actions"]:
            kind, content = tagged(action["kind"])
            if kind == "assert":
                with contextlib.suppress(UnsupportedError):
                    failed.append((self._event_condition(action["guard"]), self._said(content["message"])))
        return failed

    def _said(self, number: int) -> str:
        kind, content = self._nodes[number]
        if kind == "literal" and "string" in content:
            return str(content["string"])
        return self._said(content["lhs"]) + self._said(content["rhs"]) if kind == "binary" else "..."

    # ------------------------------------------------------------------ numbers

    def start_number(self, value: Value) -> Any:
        """Return the number that an expression of parameters, time, states and inputs has at the start values."""
        if not is_symbolic(value):
            return value
        symbols = [s for s in ca.symvar(value) if s.__hash__() not in self._parameter_of]
        numbers = [self._start_of_symbol(s) for s in symbols]
        if symbols:
            value = ca.substitute(value, ca.vertcat(*symbols), ca.DM(numbers))
        return self.number(value, freeze=True)

    def _start_of_symbol(self, wanted: Any) -> float:
        if wanted.__hash__() == self.time.__hash__():
            return 0.0
        for variable in self.variables:
            if variable.role in ("state", "input") and variable.number in self._symbols:
                symbols = self._flattened(self._symbols[variable.number])
                for k, one in enumerate(symbols):
                    if one.__hash__() == wanted.__hash__():
                        starts = self._numbers(variable, "start", len(symbols))
                        return 0.0 if starts is None else starts[k]
        raise UnsupportedError(f"an initial value that depends on '{wanted}'")

    def _binary(self, number: int, content: Any, scope: Scope | None) -> Value:
        """Return ``a OPERATOR b``; what begins or ends exactly when the model starts has done so."""
        value = super()._binary(number, content, scope)
        if content["operator"] in _AFTER and is_symbolic(value):
            sides = self.value(content["lhs"], scope), self.value(content["rhs"], scope)
            for side, other in (sides, sides[::-1]):
                if side is self.time and not is_symbolic(other) and float(other) == 0.0:
                    return _AFTER[content["operator"]] is (side is sides[0])
        return value

    def _builtin(self, number: int, content: Any, scope: Scope | None) -> Value:
        if content["builtin"] != "homotopy":
            return super()._builtin(number, content, scope)
        actual, simplified = self._all(number, scope)
        self.has_homotopy = self.has_homotopy or actual is not simplified
        if self.homotopy_part is None:
            return actual
        rest = binary("subtract", actual, simplified)
        return binary("add", simplified, binary("multiply", self.homotopy_part, rest))

    # ------------------------------------------------------------------ coordinates

    def coordinate(self, kind: str, content: Any) -> Value:
        """Return the value of what the model declares."""
        if kind == "time":
            return self.time
        if kind in ("state", "algebraic", "input", "output"):
            return self._symbols[content]
        if kind == "derivative":
            return self._derivatives[content]
        if kind in ("parameter", "constant"):
            return self._parameter(self.variables[content])
        if kind in ("discrete_value", "discrete_real", "pre_discrete_value", "pre_discrete_real"):
            return self._discrete(content, before=kind.startswith("pre_"))
        if kind in ("pre_state", "pre_algebraic"):
            return self._symbols[content]
        if kind == "condition":
            return self._event_condition(content)
        if kind == "delay":
            return self._delay(content)
        if kind == "previous":
            raise UnsupportedError("'previous' of a clocked variable")
        raise UnsupportedError(f"'{kind}'")

    def cut_delays(self) -> Equations:
        """Return the same equations with the delayed signals as symbols of their own."""
        return Equations(self.flat, self.changed, self.modes, self.held_modes, cuts_delays=True)

    def blend_homotopy(self) -> Equations:
        """Return the same equations with both arguments of ``homotopy``."""
        return Equations(self.flat, self.changed, self.modes, self.held_modes, blends_homotopy=True)

    def list_cut_delays(self) -> list[SignalDelay]:
        """Return the delays of which the signals behind them are symbols of their own."""
        return list(self.delays.values()) if self._cuts_delays else []

    def _delay(self, number: int) -> Value:
        """Return the signal behind a delay, or the one before it where delays are not cut."""
        if number not in self.delays:
            details = self.flat["delays"][number]
            source = self.value(details["source"])
            _, kind = tagged(details["kind"])
            time = kind["delay_time"]
            time_value = self.value(time["expression"] if isinstance(time, dict) else time)
            if is_symbolic(time_value) and not self._of_parameters(time_value):
                raise UnsupportedError("'delay' with a time that changes")
            seconds = float(self.number(time_value, freeze=True))
            name = name_delay(source, number)
            taken = [delay.name for delay in self.delays.values()]
            name = name if name not in taken else f"{name} (delay {number + 1})"
            self.delays[number] = SignalDelay(name, source, symbol(f"delayed {name}"), seconds)
        delay = self.delays[number]
        return delay.delayed if self._cuts_delays else delay.source

    def _constrain_stuck_rows(self) -> list[Any]:
        """Return the residuals, with a constraint where a friction element is stuck."""
        locked = {k for k, mode in self.modes.items() if mode.now and self._is_locked(k)}
        if not locked:
            return self.residuals
        elements: dict[int, set[str]] = {}  # with rows that depend on whether they are locked
        row = 0
        for operation in self.flat["continuous_equation_operations"]:
            kind, content = next(iter(operation.items()))
            count = len(self.equation(operation))
            stuck = self._targets(content["residual"], "discrete_value") & locked if kind == "residual" else set()
            if stuck:
                elements[row] = {group_of(self.variables[k].name) for k in stuck}
            row += count
        derivatives = {}
        for variable in self.variables:
            if variable.role == "state":
                symbols = zip(
                    self._flattened(self._derivatives[variable.number]),
                    self._flattened(self._symbols[variable.number]),
                    strict=True,
                )
                derivatives.update({derivative.__hash__(): state for derivative, state in symbols})
        residuals, changed = constrain_stuck_rows(self.residuals, elements, derivatives, self._parameter_of.keys())
        constrained = set().union(*(elements[row] for row in changed))
        self.unconstrained = frozenset({group_of(self.variables[k].name) for k in locked} - constrained)
        return residuals

    def timing(self, table: int) -> tuple[float, float]:
        """Return the start time and the shift of a table over time."""
        by_name = {variable.name: variable for variable in self.variables}
        both = (by_name.get(f"{self.table_name(table)}.{part}") for part in ("startTime", "shiftTime"))
        begin, shift = (0.0 if v is None else self.number(self._parameter(v), freeze=True) for v in both)
        return float(begin), float(shift)

    def table_name(self, table: int) -> str:
        """Return the name of the block of a table, empty where it has none."""
        for variable in self.variables:
            if variable.name.endswith(".tableID") and self._parameter(variable) == table:
                return variable.name.removesuffix(".tableID")
        return ""
