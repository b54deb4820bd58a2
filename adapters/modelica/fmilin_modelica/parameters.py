"""Parameters of a flattened model: as symbols where they may change at once, as numbers where structure needs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from fmilin.errors import UnknownNameError, UsageError
from fmilin_modelica.entries import ParameterEntry
from fmilin_modelica.tables import TableWalker
from fmilin_modelica.values import Value, is_symbolic
from fmilin_modelica.variables import Variable, variables_of
from fmilin_modelica.walker import UnsupportedError, symbol

__all__ = ["KINDS", "ParameterWalker"]

KINDS: dict[str, Any] = {"real": float, "integer": int, "enumeration": int, "boolean": bool}
GOLDEN = 0.6180339887498949  # multiples of it, their integer parts left out, are far from each other


class ParameterWalker(TableWalker):
    """A walk that knows the parameters.

    Parameters
    ----------
    flat : mapping
        What the front end gives.
    changed : mapping of str to float
        Parameters, or entries of them, with other values than the model's.
    """

    def __init__(self, flat: Mapping[str, Any], changed: Mapping[str, float] | None = None) -> None:
        super().__init__(flat)
        self.variables = variables_of(flat)
        self.changed = dict(changed or {})
        self.parameters: dict[str, ParameterEntry] = {}
        self.free: list[str] = []  # parameters that the initial equations determine
        self.frozen: set[str] = set()  # parameters of which the traversal used the numbers
        self.missing: list[str] = []  # parameters without a value that something needs
        self._listing = False
        self._parameter_of: dict[int, ParameterEntry] = {}
        self._assigned: dict[int, Value] = {}
        self._underway: set[int] = set()

    def number(self, value: Value, *, freeze: bool = False) -> Any:
        """Return an expression of parameters as a number; these parameters are frozen where it decides on structure."""
        if not is_symbolic(value):
            return value
        symbols = ca.symvar(value)
        entries = [self._parameter_of.get(s.__hash__()) for s in symbols]
        if any(entry is None for entry in entries):
            raise UnsupportedError("a value that depends on the state, where a number is needed")
        entered = [entry for entry in entries if entry is not None]
        if freeze:
            self.frozen.update(entry.name for entry in entered)
        values = [entry.value for entry in entered]
        function = ca.Function("number", [ca.vertcat(ca.SX(0, 1), *symbols)], [value])
        return float(function(np.array(values, float)))

    def concrete(self, value: Value, what: str) -> Any:
        """Return a number where the construct needs one, from parameters too."""
        if is_symbolic(value) and not self._of_parameters(value):
            raise UnsupportedError(f"{what} that depends on the state")
        return self.number(value, freeze=True)

    def condition(self, value: Value) -> Value:
        """Return what parameters alone decide, a condition or an index, as a number."""
        return self.number(value, freeze=True) if is_symbolic(value) and self._of_parameters(value) else value

    def _of_parameters(self, value: Value) -> bool:
        return all(s.__hash__() in self._parameter_of for s in ca.symvar(value))

    @staticmethod
    def _shaped(variable: Variable, value: Value) -> Value:
        """Return a value in the variable's shape, a scalar in all entries."""
        if variable.shape and not isinstance(value, np.ndarray):
            out = np.empty(variable.shape, object)
            out[...] = value
            return out
        return value

    def _declared_parameters(self) -> dict[str, Variable]:
        return {name: v for v in self.variables if v.role == "parameter" for _, name in v.entries()}

    def typed(self, changed: Mapping[str, float]) -> dict[str, Any]:
        """Return new values of parameters as numbers of their types.

        Raises
        ------
        UnknownNameError
            When there is no such parameter.
        UsageError
            When it is a text, or a whole number is needed.
        """
        declared = self._declared_parameters()
        values = {}
        for name, value in changed.items():
            if name not in declared:
                raise UnknownNameError.among(name, declared, "a parameter of the model")
            scalar = declared[name].type["scalar"]
            if scalar not in KINDS:
                raise UsageError(f"The parameter '{name}' is a {scalar}: set it in the model's text.")
            if scalar != "real" and float(value) != int(value):
                raise UsageError(
                    f"The parameter '{name}' is of the type {scalar}, and cannot be {value}. Give a value of this type."
                )
            values[name] = KINDS[scalar](value)
        return values

    def needs_flattening(self, name: str) -> bool:
        """Whether the front end has used the value of a parameter."""
        return self._declared_parameters()[name].structural

    def _parameter(self, variable: Variable) -> Value:
        number = -1 - variable.number
        if number in self._assigned:
            return self._assigned[number]
        if number in self._underway:
            raise UsageError(
                f"The parameter '{variable.name}' depends on itself. Remove the cycle from the declarations."
            )
        self._underway.add(number)
        node = self._initial_parameter(variable)
        if self._lacks_value(variable, node):
            value = self._provisional_value(variable)
        else:
            value = self._shaped(variable, 0.0 if node is None else self.value(node))
        adjustable = variable.role == "parameter" and variable.is_real
        if isinstance(value, np.ndarray) and value.dtype == object and value.shape == variable.shape:
            entries = np.empty(value.shape, object)
            for index, name in variable.entries():
                entries[index] = self._parameter_entry(variable, name, value[index], adjustable=adjustable)
            value = entries
        elif not isinstance(value, (tuple, str)):
            value = self._parameter_entry(variable, variable.name, value, adjustable=adjustable)
        self._underway.discard(number)
        self._assigned[number] = value
        return value

    def _lacks_value(self, variable: Variable, node: int | None) -> bool:
        """Whether something needs a parameter for which nothing is written: no value, and no start value."""
        if self._listing or variable.role != "parameter" or variable.is_free or variable.type["scalar"] not in KINDS:
            return False
        is_filled_in = node is None or (
            variable.attributes["binding"] is None
            and node == variable.attributes["start"]
            and not any(initial["target"] == variable.number for initial in self.flat["initial_parameter_values"])
        )
        return is_filled_in and "rank" not in self.flat["declarations"].get(variable.name, {})

    def missing_in_order(self) -> tuple[str, ...]:
        """Return the parameters without a value that something needs, in the order of the text."""
        return tuple(name for name in self._declared_parameters() if name in self.missing)

    def _provisional_value(self, variable: Variable) -> Value:
        """Return a value for a parameter without one, until it is set: no two are alike, and no real one is 0."""
        names = [name for _, name in variable.entries() if name not in self.changed]
        self.missing += [name for name in names if name not in self.missing]
        number = 1.0 + (GOLDEN * len(self.missing)) % 1.0
        return self._shaped(variable, number if variable.is_real else KINDS[variable.type["scalar"]](0))

    def _initial_parameter(self, variable: Variable) -> int | None:
        for initial in self.flat["initial_parameter_values"]:
            if initial["target"] == variable.number:
                return int(initial["value"])
        attributes = variable.attributes
        return attributes["start"] if attributes["binding"] is None else attributes["binding"]  # type: ignore[no-any-return]

    def _parameter_entry(self, variable: Variable, name: str, value: Value, *, adjustable: bool) -> Value:
        if name in self.changed:
            given = self.changed[name]
            value = given if variable.is_real else type(value)(given) if isinstance(value, (bool, int)) else given
        if variable.is_free and adjustable and not self._listing:  # its start value may follow from other parameters
            value = self.number(value, freeze=True)
        if not adjustable or isinstance(value, (str, tuple)) or is_symbolic(value):
            return value
        if self._listing:
            return value
        if variable.is_free:
            self.free.append(name)
        elif variable.structural or float(value) == 0.0:  # what zero multiplies is left out
            return value
        entry = ParameterEntry(name, symbol(name), variable, float(value))
        self.parameters[name] = entry
        self._parameter_of[entry.symbol.__hash__()] = entry
        return entry.symbol

    def determine_at_start(self, variable: Variable) -> Value:
        """Return a symbol for a scalar that is constant from the start on, and that the initial equations determine."""
        if variable.name not in self.parameters:
            entry = ParameterEntry(variable.name, symbol(variable.name), variable, 0.0)
            self.free.append(variable.name)
            self.parameters[variable.name] = entry
            self._parameter_of[entry.symbol.__hash__()] = entry
        return self.parameters[variable.name].symbol
