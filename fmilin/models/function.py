"""A model written as Python functions of arrays, with exact derivatives by complex step where its code is analytic.

F(x + i h d) = F(x) + i h F'(x) d + O(h^2) gives the directional derivative of analytic operations to the last bit for
h = 1e-30 (Squire and Trapp, 1998). Algebraic variables with g(t, x, z, u) = 0 are found by Newton's iteration; a
complex step of x moves them by dz = -g_z^-1 dg, the implicit function theorem.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.codegen.implicit import Guess, Point, solve_implicit
from fmilin.constraints.declared import Constraint
from fmilin.errors import ModelError, UsageError
from fmilin.model.interface import ModelInfo
from fmilin.models.native_engine import NativeEngine, Quantity, Values, list_available_quantities
from fmilin.models.native_model import NativeModel
from fmilin.numerics.factors import DenseFactors, Factors, require_regular
from fmilin.signals import FloatArray, Signal, Signals, as_numbers
from fmilin.support.kinds import containers_checked

Array = NDArray[Any]  # of doubles, or complex for a complex step
Function = Callable[[float, Array, Array], complex | Array | Sequence[complex]]
"""(t, x, u) -> values; x (N,) and u (nu,) are real, or complex for a complex step."""

STEP = 1e-30

_FAULTS = (ArithmeticError, TypeError, ValueError, IndexError, KeyError, AttributeError, NameError)


class FunctionModel(NativeModel):
    """``x' = rates(t, x, u)`` and outputs as Python functions, with constraints as expressions.

    Raises UsageError when a size is wrong.

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
        Further symbols that constraints may use.
    analytic : bool
        The functions are compositions of analytic operations (+ - * / ** and NumPy's sin, cos, exp, ...; no abs,
        no comparisons, no conversion to float): exact derivatives are then taken by complex step. fmilin checks
        each column against a difference, as it does with every exact derivative.
    algebraic : mapping of str to callable
        Names among ``states`` that have no rate, and for each a function ``residual(t, x, u)`` that is zero: Newton's
        iteration for them begins at their start values. All functions take them in x, in the order of ``states``;
        ``rates`` returns values for the others, which are the states.

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

    @containers_checked
    def __init__(
        self,
        name: str,
        states: Mapping[str, float] | Signals,
        rates: Function,
        *,
        inputs: Sequence[str] | Signals = (),
        outputs: Mapping[str, Function] | None = None,
        constraints: Sequence[str | Constraint] = (),
        parameters: Mapping[str, float] | None = None,
        analytic: bool = False,
        algebraic: Mapping[str, Function] | None = None,
    ) -> None:
        if not callable(rates) or not all(map(callable, (algebraic or {}).values())):
            raise UsageError(f"The rates and residuals of '{name}' must be functions of (t, x, u).")
        if isinstance(states, Mapping):
            starts = {n: as_numbers(v, f"The start value of '{n}'") for n, v in states.items()}
            if several := [n for n, v in starts.items() if v.ndim]:
                raise UsageError(
                    f"The start value of '{several[0]}' is {states[several[0]]!r}: give a single finite number instead."
                )
            states = Signals(Signal(n, start=float(v)) for n, v in starts.items())
        signals = states
        entries = inputs if isinstance(inputs, Signals) else Signals(inputs)
        unknown = {signals.index_of(n, f"a variable of '{name}'"): g for n, g in (algebraic or {}).items()}
        state_signals = signals.select(i for i in range(len(signals)) if i not in unknown)
        engine = _FunctionEngine(ModelInfo(name), state_signals, entries, rates, outputs or {})
        if unknown:
            engine.algebraic = Algebraic(name, signals, unknown, entries.starts, analytic=analytic)
        engine.constraints = [Constraint.from_text(c) if isinstance(c, str) else c for c in constraints]
        engine.parameters, engine.analytic = parameters or {}, analytic
        super().__init__(engine)


@dataclass(frozen=True)
class _Functions:
    """Functions of the outputs and of the observed quantities."""

    outputs: list[Function]
    observed: list[Function]


class _FunctionEngine(NativeEngine[_Functions]):
    """The functions themselves, with complex steps where they are analytic."""

    analytic = False
    algebraic: Algebraic | None = None

    def __init__(
        self, info: ModelInfo, states: Signals, inputs: Signals, rates: Function, functions: Mapping[str, Function]
    ) -> None:
        self.info, self.states, self.inputs = info, states, inputs
        self.outputs, self.rates, self.functions = tuple(functions), rates, functions

    @cached_property
    def available(self) -> dict[str, Quantity]:
        further = [] if self.algebraic is None else self.algebraic.quantities
        return list_available_quantities(
            self.states, self.inputs, [Quantity(Signal(n), f) for n, f in self.functions.items()], further
        )

    def select(self, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> _Functions:
        return _Functions([self.function(q) for q in outputs], [self.function(q) for q in observed])

    def evaluate(self, selection: _Functions, t: float, x: Array, u: Array) -> Values:
        """Call the functions at a point, which may be a complex one."""
        dtype, name, count = np.result_type(x, u), self.info.name, len(x)
        if self.algebraic is not None:
            x = self.algebraic.join_variables(t, x, u)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                rates = np.asarray(self.rates(t, x, u), dtype=dtype).ravel()
                outputs = np.array([f(t, x, u) for f in selection.outputs], dtype=dtype).ravel()
                observed = np.array([f(t, x, u) for f in selection.observed], dtype=dtype).ravel()
        except (*_FAULTS, np.exceptions.ComplexWarning) as error:
            hint = " A model that is not analytic must not be declared analytic." if dtype.kind == "c" else ""
            raise ModelError(f"The function of the model '{name}' failed: {error!r}.{hint}") from error
        if rates.shape != (count,):
            raise UsageError(
                f"rates of the model '{name}' returns {rates.size} values for {count} states. It must return one rate "
                "per state."
            )
        return rates, outputs, observed

    def differentiate(
        self, selection: _Functions, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> Values | None:
        """Return derivatives by complex step, one column after the other; None when the code is not analytic."""
        if not self.analytic:
            return None
        k = dx.shape[1]
        counts = len(x), len(selection.outputs), len(selection.observed)
        rates, outputs, z = (np.zeros((count, k)) for count in counts)
        for j in range(k):
            values = self.evaluate(selection, t, x + 1j * STEP * dx[:, j], u + 1j * STEP * du[:, j])
            rates[:, j], outputs[:, j], z[:, j] = (np.imag(value) / STEP for value in values)
        return rates, outputs, z

    def function(self, quantity: Quantity) -> Function:
        """Return what computes a quantity."""
        match quantity.source:
            case ("state", i):
                position = i if self.algebraic is None else self.algebraic.state_indices[i]
                return lambda _t, x, _u: x[position]
            case ("rate", i):
                return lambda t, x, u: np.asarray(self.rates(t, x, u))[i]
            case ("input", i):
                return lambda _t, _x, u: u[i]
        function: Function = quantity.source
        return function


DIFFERENCE = 6e-6  # of a central difference, in sizes


class Algebraic:
    """Which of some variables are algebraic, and the functions that they are zeros of."""

    def __init__(
        self,
        name: str,
        variables: Signals,
        residuals: Mapping[int, Callable[..., Any]],
        inputs: FloatArray,
        *,
        analytic: bool,
    ) -> None:
        self.name, self._names = name, tuple(variables.names[i] for i in residuals)
        self.state_indices = [i for i in range(len(variables)) if i not in residuals]
        self._positions, self._residuals = list(residuals), list(residuals.values())
        self._analytic = analytic
        self.quantities = [Quantity(variables[i], _variable(i)) for i in self._positions]
        starts, self._sizes = variables.starts, variables.scales()[self._positions]
        point = 0.0, starts[self.state_indices], inputs, np.empty(0)
        rough = Guess(starts[self._positions], self._sizes, *point, equations=self._names)
        w = solve_implicit(self._linearize_residuals, rough, point, name)[1]
        self._guess = Guess(w, self._sizes, *point, equations=self._names)

    def join_variables(self, t: float, x: Array, u: Array) -> Array:
        """Return states and algebraic variables together."""
        point = float(t), np.real(x), np.real(u), np.empty(0)
        factors, w = solve_implicit(self._linearize_residuals, self._guess, point, self.name)
        full = self._full(x, w)
        if np.iscomplexobj(x) or np.iscomplexobj(u):
            full[self._positions] += 1j * factors.solve(-np.imag(self._values(t, full, u)))
        return full

    def _full(self, x: Array, w: Array) -> Array:
        full = np.zeros(len(self.state_indices) + len(w), dtype=np.result_type(x, w))
        full[self.state_indices], full[self._positions] = x, w
        return full

    def _values(self, t: float, full: Array, u: Array) -> Array:
        return np.array([g(t, full, u) for g in self._residuals]).ravel()

    def _linearize_residuals(self, point: Point, w: FloatArray) -> tuple[Factors, FloatArray]:
        t, x, u, _ = point

        def values(z: Array) -> Array:
            return self._values(t, self._full(x, z), u)

        J = np.zeros((len(w), len(w)))
        for j in range(len(w)):
            if self._analytic:
                J[:, j] = np.imag(values(w + 1j * STEP * np.eye(len(w))[j])) / STEP
            else:
                h = DIFFERENCE * max(abs(w[j]), self._sizes[j])
                J[:, j] = (values(w + h * np.eye(len(w))[j]) - values(w - h * np.eye(len(w))[j])) / (2 * h)
        factors = DenseFactors(J)
        require_regular(factors, f"The algebraic equations of '{self.name}'", self._names, f"at time {t:g}")
        return factors, -values(w)


def _variable(i: int) -> Callable[[float, Array, Array], Any]:
    return lambda _t, x, _u: x[i]
