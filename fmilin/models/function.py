"""A model written as Python functions of arrays, with exact derivatives by complex step where its code is analytic.

For a function that is computed by analytic operations alone, and is real for real arguments,

    F(x + i h d) = F(x) + i h F'(x) d + O(h^2)

gives the directional derivative without cancellation, to the last bit for h = 1e-30 (Squire and Trapp, 1998).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.constraints.declared import Constraint, Constraints
from fmilin.errors import ModelError, UnknownNameError, UsageError
from fmilin.model.interface import Copy, Evaluation, Model, ModelInfo, OperatingPoint
from fmilin.signals import FloatArray, Signal, Signals

__all__ = ["FunctionModel"]

Array = NDArray[Any]
Function = Callable[[float, Array, Array], Any]
"""(t, x, u) -> values; x (N,) and u (nu,) are real, or complex for a complex step."""

STEP = 1e-30

_FAULTS = (ArithmeticError, TypeError, ValueError, IndexError, KeyError, AttributeError, NameError)


@dataclass(frozen=True)
class _Parts:
    name: str
    states: Signals
    rates: Function
    inputs: Signals
    outputs: Mapping[str, Callable[[float, Array, Array], Any]]
    constraints: tuple[Constraint, ...]
    parameters: Mapping[str, float]
    analytic: bool


class FunctionModel(Model):
    """``x' = rates(t, x, u)`` and outputs as Python functions, with constraints as expressions.

    Parameters
    ----------
    name : str
    states : mapping of str to float, or Signals
        Names and start values.
    rates : callable
        ``rates(t, x, u)`` returns N values.
    inputs : sequence of str, or Signals
    outputs : mapping of str to callable
        ``output(t, x, u)`` returns one value.
    constraints : sequence of str or Constraint
        Expressions over states, inputs, parameters and outputs that must be zero.
    parameters : mapping of str to float
        What constraints may use beside.
    analytic : bool
        The functions are compositions of analytic operations (+ - * / ** and NumPy's sin, cos, exp, ...; no abs,
        no comparisons, no conversion to float): exact derivatives are then taken by complex step. fmilin checks
        each column against a difference, as it does with every exact derivative.

    Raises
    ------
    UsageError
        When a size is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> import fmilin as fl
    >>> def rates(t, s, u):
    ...     x, y, vx, vy = s
    ...     tension = (vx**2 + vy**2 - 9.81 * y) / (x**2 + y**2)
    ...     return np.array([vx, vy, -tension * x, -9.81 - tension * y])
    >>> start = {"x": 0.0, "y": -1.0, "vx": 0.0, "vy": 0.0}
    >>> model = FunctionModel("pendulum", start, rates, constraints=["x^2 + y^2 - 1"], analytic=True)
    >>> lin = fl.linearize(model)
    >>> lin.method.derivatives, bool(abs(lin.A[1, 0] + 9.81) < 1e-14)
    ('exact', True)
    """

    def __init__(
        self,
        name: str,
        states: Mapping[str, float] | Signals,
        rates: Function,
        *,
        inputs: Sequence[str] | Signals = (),
        outputs: Mapping[str, Callable[[float, Array, Array], Any]] | None = None,
        constraints: Sequence[str | Constraint] = (),
        parameters: Mapping[str, float] | None = None,
        analytic: bool = False,
    ) -> None:
        signals = states if isinstance(states, Signals) else Signals(Signal(n, start=v) for n, v in states.items())
        declared = tuple(Constraint.from_text(c) if isinstance(c, str) else c for c in constraints)
        entries = inputs if isinstance(inputs, Signals) else Signals(inputs)
        self._set_up(_Parts(name, signals, rates, entries, outputs or {}, declared, parameters or {}, analytic), None)

    def _set_up(self, parts: _Parts, chosen: tuple[Sequence[int], Sequence[str]] | None) -> None:
        kept, names = chosen or (range(len(parts.inputs)), list(parts.outputs))
        self._parts, self._kept = parts, list(kept)
        self._functions = [_quantities(parts)[n] for n in names]
        self.info = ModelInfo(parts.name)
        self.states, self.inputs, self.outputs = parts.states, parts.inputs.select(kept), Signals(names)
        self.start = OperatingPoint(0.0, self.states.starts, self.inputs.starts)
        self.copies = {
            i: Copy("state", self.states.positions[n]) for i, n in enumerate(names) if n in self.states.positions
        } | {i: Copy("input", self.inputs.positions[n]) for i, n in enumerate(names) if n in self.inputs.positions}
        available = _quantities(parts)
        self.constraints = Constraints(
            parts.constraints,
            self.states,
            self.inputs,
            parameters=parts.parameters,
            other=lambda n: n if n in available else None,
            known=available,
        )
        self._observed = [available[n] for n in self.constraints.observed]

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return derivatives, outputs and residuals at a point.

        Raises
        ------
        ModelError
            When one of the functions raises, or returns the wrong number of values.
        """
        rates, outputs, z = self._values(t, x, self._full(u))
        return Evaluation(rates, outputs, self.constraints.residuals(t, x, u, z))

    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation | None:
        """Return derivatives by complex step along the columns of (dx, du); None when the code is not analytic."""
        if not self._parts.analytic:
            return None
        k = dx.shape[1]
        n, ny = len(self.states), len(self.outputs)
        slopes = np.zeros((n + ny + len(self._observed), k))
        full = np.zeros((len(self._parts.inputs), k))
        full[self._kept] = du
        for j in range(k):
            values = self._values(t, x + 1j * STEP * dx[:, j], self._full(u) + 1j * STEP * full[:, j])
            slopes[:, j] = np.concatenate([np.imag(v) for v in values]) / STEP
        z = self._values(t, x, self._full(u))[2]
        g = self.constraints.partials(t, x, u, z)
        residuals = g.states @ dx + g.inputs @ du + g.observed @ slopes[n + ny :]
        return Evaluation(slopes[:n], slopes[n : n + ny], residuals)

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Model:
        """Return the same model with chosen inputs and outputs; inputs left out stay at their start values."""
        available = _quantities(self._parts)
        names = list(self.outputs.names) if outputs is None else list(outputs)
        for name in names:
            if name not in available:
                raise UnknownNameError.among(name, available, "an output or another quantity of the model")
        kept = self._kept
        if inputs is not None:
            kept = [self._parts.inputs.index_of(n, "an input of the model") for n in inputs]
        model = FunctionModel.__new__(FunctionModel)
        model._set_up(self._parts, (kept, names))
        return model

    def with_constraints(self, constraints: Sequence[Constraint]) -> Model:
        """Return the same model with these constraints instead of its own."""
        model = FunctionModel.__new__(FunctionModel)
        model._set_up(replace(self._parts, constraints=tuple(constraints)), (self._kept, list(self.outputs.names)))
        return model

    def _full(self, u: Array) -> Array:
        """Return all inputs of the functions: the chosen ones, the others at their start values."""
        full = self._parts.inputs.starts.astype(u.dtype)
        full[self._kept] = u
        return full

    def _values(self, t: float, x: Array, u: Array) -> tuple[Array, Array, Array]:
        dtype = np.result_type(x, u)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                rates = np.asarray(self._parts.rates(t, x, u), dtype=dtype).ravel()
                outputs = np.array([f(t, x, u) for f in self._functions], dtype=dtype).ravel()
                observed = np.array([f(t, x, u) for f in self._observed], dtype=dtype).ravel()
        except (*_FAULTS, np.exceptions.ComplexWarning) as error:
            hint = " A model that is not analytic must not say so." if dtype.kind == "c" else ""
            raise ModelError(f"The function of the model '{self.info.name}' failed: {error!r}.{hint}") from error
        if rates.shape != (len(self.states),):
            raise UsageError(
                f"rates of the model '{self.info.name}' returns {rates.size} values for {len(self.states)} states."
            )
        return rates, outputs, observed


def _quantities(parts: _Parts) -> dict[str, Callable[[float, Array, Array], Any]]:
    """Return everything that may be an output, by name."""

    def entry(i: int) -> Callable[[float, Array, Array], Any]:
        return lambda _t, x, _u: x[i]

    def rate(i: int) -> Callable[[float, Array, Array], Any]:
        return lambda t, x, u: parts.rates(t, x, u)[i]

    def given(i: int) -> Callable[[float, Array, Array], Any]:
        return lambda _t, _x, u: u[i]

    states = {n: entry(i) for i, n in enumerate(parts.states.names)}
    rates = {f"der({n})": rate(i) for i, n in enumerate(parts.states.names)}
    inputs = {n: given(i) for i, n in enumerate(parts.inputs.names)}
    return rates | inputs | states | dict(parts.outputs)
