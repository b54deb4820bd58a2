"""A symbolic system as a Model, with exact directional derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fmilin.codegen.numeric import NumericSystem
from fmilin.codegen.system import SymbolicSystem
from fmilin.constraints.declared import Constraint, Constraints
from fmilin.constraints.expressions import Expression
from fmilin.errors import UnknownNameError, UsageError
from fmilin.model.interface import Copy, Evaluation, Model, ModelInfo, OperatingPoint, SecondOrderForm
from fmilin.models.interface import available_outputs, with_chosen_inputs, with_chosen_outputs
from fmilin.models.second_order import second_order_form
from fmilin.signals import FloatArray, Signals

__all__ = ["SymbolicModel"]


@dataclass(frozen=True, slots=True)
class _Choice:
    """What was changed after the system had been declared; None keeps what there is."""

    inputs: tuple[str, ...] | None = None
    outputs: tuple[str, ...] | None = None
    parameters: tuple[tuple[str, float], ...] = ()


class SymbolicModel(Model):
    """A Model made of a :class:`~fmilin.codegen.system.SymbolicSystem`.

    Parameters
    ----------
    system : SymbolicSystem

    Attributes
    ----------
    system : SymbolicSystem
        With the chosen inputs, outputs, constraints and parameter values: what is printed as code.
    parameters : mapping of str to float
        Values in use, held inputs included.
    """

    def __init__(self, system: SymbolicSystem) -> None:
        self._set_up(system, _Choice())

    def _set_up(self, declared: SymbolicSystem, choice: _Choice) -> None:
        self._declared, self._choice = declared, choice
        self.system = system = _chosen(declared, choice)
        self.info = ModelInfo(system.name)
        self.states, self.inputs, self.outputs = system.state_signals, system.input_signals, system.output_signals
        self.parameters: Mapping[str, float] = {str(s): value for s, value in system.parameters.items()}
        self._p = np.array(list(system.parameters.values()), dtype=np.float64)
        others = available_outputs(declared)
        self.constraints = Constraints(
            system.constraints,
            self.states,
            self.inputs,
            parameters=self.parameters,
            other=lambda name: name if name in others else None,
            known=others,
        )
        self.start = OperatingPoint(0.0, self.states.starts, self.inputs.starts, dict(choice.parameters))
        self.copies = _copies(system)
        self.independent = system.independent

    @cached_property
    def _numeric(self) -> NumericSystem:
        """The system whose outputs are followed by what the constraints observe."""
        others = available_outputs(self._declared)
        observed = tuple(others[name][1] for name in self.constraints.observed)
        return NumericSystem(replace(self.system, outputs=self.system.outputs + observed))

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return derivatives, outputs and residuals at a point.

        Raises
        ------
        NumericalError
            When the accelerations cannot be solved for: the mechanism is at a singular configuration.
        """
        derivatives, values = self._numeric.values(t, x, u, self._p)
        ny = len(self.outputs)
        return Evaluation(derivatives, values[:ny], self.constraints.residuals(t, x, u, values[ny:]))

    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation:
        """Return exact directional derivatives along the columns of (dx, du), residuals included.

        Raises
        ------
        NumericalError
            As in :meth:`evaluate`.
        """
        derivatives, slopes = self._numeric.products((t, x, u, self._p), dx, du)
        ny = len(self.outputs)
        g = self.constraints.partials(t, x, u, self._observed(t, x, u))
        residuals = g.states @ dx + g.inputs @ du + g.observed @ slopes[ny:]
        return Evaluation(derivatives, slopes[:ny], residuals)

    def symbolic_system(self) -> SymbolicSystem:
        """Return :attr:`system`."""
        return self.system

    def second_order_form(self, t: float, x: FloatArray, u: FloatArray) -> SecondOrderForm | None:
        """Return Lagrange's equations taken apart, also at a singular configuration; None for other forms."""
        return second_order_form(self._numeric, (t, x, u, self._p), len(self.outputs))

    def _observed(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return z, what the constraints see beside states and inputs."""
        if not self.constraints.observed:
            return np.empty(0)
        return self._numeric.values(t, x, u, self._p)[1][len(self.outputs) :]

    def with_interface(
        self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None
    ) -> SymbolicModel:
        """Return the same model with chosen inputs and outputs, in the given order; None keeps what there is.

        Inputs that are left out become parameters at their start values, and may be chosen again later.
        An output may be a declared output, a state, ``der(state)``, an input or another name that the
        system offers, such as ``lambda[1]``.

        Raises
        ------
        UnknownNameError
            With the nearest names.
        """
        choice = replace(
            self._choice,
            inputs=self._choice.inputs if inputs is None else tuple(inputs),
            outputs=self._choice.outputs if outputs is None else tuple(outputs),
        )
        return self._changed(self._declared, choice)

    def with_constraints(self, constraints: Sequence[Constraint]) -> SymbolicModel:
        """Return the same model with these constraints instead of its own.

        Raises
        ------
        ConstraintError
            When a constraint names a variable that the model does not have.
        """
        changed = replace(self._declared, constraints=tuple(constraints), independent=())  # was for the others
        return self._changed(changed, self._choice)

    def formula(self, name: str) -> Expression | None:
        """Return a known quantity as an expression over states, inputs, parameters and time.

        None when there is none: it is unknown, or needs accelerations or multipliers.
        """
        system = self._declared
        every = (system.time, *system.states, *system.inputs, *system.parameters)
        found = available_outputs(system).get(name)
        if found is None or found[1].free_symbols - set(every):
            return None
        return Expression.from_sympy(found[1], {s: str(s) for s in every})

    def with_parameters(self, values: Mapping[str, float]) -> SymbolicModel:
        """Return the same model with other parameter values. States and inputs keep their start values.

        Raises
        ------
        UnknownNameError
            With the nearest names, when there is no such parameter.
        UsageError
            When a value is no finite number.
        """
        names = [str(s) for s in self._declared.parameters]
        for name, value in values.items():
            if name not in names:
                raise UnknownNameError.among(name, names, f"a parameter of '{self.info.name}'")
            if not np.isfinite(value):
                raise UsageError(
                    f"The parameter '{name}' of '{self.info.name}' cannot be {value}: give a finite number."
                )
        parameters = dict(self._choice.parameters) | {name: float(value) for name, value in values.items()}
        model = self._changed(self._declared, replace(self._choice, parameters=tuple(parameters.items())))
        model.__dict__["_numeric"] = self._numeric  # the same functions: values are their arguments
        return model

    def _changed(self, declared: SymbolicSystem, choice: _Choice) -> SymbolicModel:
        model = SymbolicModel.__new__(SymbolicModel)
        model._set_up(declared, choice)
        return model


def _chosen(declared: SymbolicSystem, choice: _Choice) -> SymbolicSystem:
    """Return ``declared`` with the choice carried out."""
    changed = dict(choice.parameters)
    parameters = {s: changed.get(str(s), value) for s, value in declared.parameters.items()}
    signals = Signals(replace(s, start=changed.get(s.name, s.start)) for s in declared.parameter_signals)
    system = replace(declared, parameters=parameters, parameter_signals=signals)
    if choice.outputs is not None:
        system = with_chosen_outputs(system, choice.outputs)
    return system if choice.inputs is None else with_chosen_inputs(system, choice.inputs)


def _copies(system: SymbolicSystem) -> dict[int, Copy]:
    places = {s: Copy("state", i) for i, s in enumerate(system.states)}
    places |= {s: Copy("input", i) for i, s in enumerate(system.inputs)}
    return {i: places[c] for i, c in enumerate(system.outputs) if c in places}
