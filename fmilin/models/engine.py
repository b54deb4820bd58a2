"""A model whose numbers come from an engine in one visit: what adapters are made of.

The engine says what its states, inputs and further quantities are, and computes all rates and quantities at a point
at once; :class:`EngineModel` makes a :class:`~fmilin.Model` of it, with inputs and outputs to choose and
constraints over everything that has a name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fmilin.constraints.declared import Constraint, Constraints
from fmilin.errors import ModelError, UnknownNameError
from fmilin.model.interface import Copy, Evaluation, Model, ModelInfo, OperatingPoint
from fmilin.signals import FloatArray, Signal, Signals, rate_unit

__all__ = ["Engine", "EngineModel"]


class Engine(ABC):
    """Foreign code that computes x' = f(t, x, u) and quantities z = c(t, x, u) in one visit.

    Attributes
    ----------
    info : ModelInfo
    states, inputs : Signals
        N and nu of them, with start values.
    quantities : Signals
        What else it computes, nz of them: sensors, positions of points, gaps of loops. May be empty.
    outputs : tuple of str
        Which quantities or states are the outputs when nobody chooses.
    constraints : tuple of Constraint
        Expressions over states, inputs, ``parameters`` and quantities that must be zero. The name of a quantity is
        one; give it a ``rate`` where its time derivative is a quantity too.
    independent : tuple of str
        States that the author recommends to keep; may be empty.
    parameters : mapping of str to float
        What constraints may use beside; fixed.
    notes : sequence of str
        What a user should know about this model (what was left out): warnings of every linear model.
    """

    info: ModelInfo
    states: Signals
    inputs: Signals
    quantities: Signals = Signals()
    outputs: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    independent: tuple[str, ...] = ()
    parameters: Mapping[str, float] = MappingProxyType({})
    notes: Sequence[str] = ()

    @abstractmethod
    def visit(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rates of all states, shape (N,), and all quantities, shape (nz,).

        Parameters
        ----------
        t : float
        x : array, shape (N,)
        u : array, shape (nu,)

        Raises
        ------
        ModelError
            When the engine refuses; NaN is returned as it is.
        """

    def slopes(
        self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return exact directional derivatives of rates (N, k) and quantities (nz, k), or None when there are none.

        Parameters
        ----------
        t, x, u
            As in :meth:`visit`.
        dx : array, shape (N, k)
        du : array, shape (nu, k)
        """
        del t, x, u, dx, du
        return None

    def close(self) -> None:  # noqa: B027 - most engines hold nothing
        """Give back what the engine holds."""


class EngineModel(Model):
    """The model of an :class:`Engine`.

    Parameters
    ----------
    engine : Engine

    Raises
    ------
    ConstraintError
        When a constraint names something unknown.
    UnknownNameError
        When a default output is unknown.
    """

    def __init__(self, engine: Engine) -> None:
        self._set_up(engine, range(len(engine.inputs)), engine.outputs, engine.constraints)

    def _set_up(
        self, engine: Engine, kept: Sequence[int], outputs: Sequence[str], constraints: Sequence[Constraint]
    ) -> None:
        self._engine, self._kept, self.notes = engine, list(kept), tuple(engine.notes)
        self._last: tuple[float, bytes, bytes, FloatArray] | None = None
        available = _available(engine)
        for name in outputs:
            if name not in available:
                raise UnknownNameError.among(name, available, f"an output or another quantity of '{engine.info.name}'")
        self.info, self.states, self.independent = engine.info, engine.states, tuple(engine.independent)
        self.inputs = engine.inputs.select(kept)
        self.outputs = Signals(available[name][0] for name in outputs)
        self._places = np.array([available[name][1] for name in outputs], dtype=np.intp)
        self.start = OperatingPoint(0.0, engine.states.starts, self.inputs.starts)
        self.copies = _copies(outputs, self.states, self.inputs)
        self.constraints = Constraints(
            constraints,
            self.states,
            self.inputs,
            parameters=dict(engine.parameters),
            other=lambda name: name if name in available else None,
            known=available,
        )
        self._observed = np.array([available[name][1] for name in self.constraints.observed], dtype=np.intp)

    @property
    def engine(self) -> Engine:
        """The engine itself."""
        return self._engine

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return derivatives, outputs and residuals at a point, in one visit to the engine."""
        full = self._full(u)
        values = self._gathered(*self._engine.visit(t, x, full), x, full)
        self._last = (t, x.tobytes(), u.tobytes(), values[self._observed])
        residuals = self.constraints.residuals(t, x, u, values[self._observed])
        return Evaluation(values[: len(self.states)], values[self._places], residuals)

    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation | None:
        """Return the engine's directional derivatives along the columns of (dx, du), or None when it has none."""
        full, du_full = self._full(u), np.zeros((len(self._engine.inputs), dx.shape[1]))
        du_full[self._kept] = du
        found = self._engine.slopes(t, x, full, dx, du_full)
        if found is None:
            return None
        slopes = self._gathered(*found, dx, du_full)
        g = self.constraints.partials(t, x, u, self._seen(t, x, u))
        residuals = g.states @ dx + g.inputs @ du + g.observed @ slopes[self._observed]
        return Evaluation(slopes[: len(self.states)], slopes[self._places], residuals)

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Self:
        """Return the same model with chosen inputs and outputs; inputs left out stay at their start values."""
        kept = self._kept
        if inputs is not None:
            kept = [self._engine.inputs.index_of(name, f"an input of '{self.info.name}'") for name in inputs]
        return self._changed(kept, self.outputs.names if outputs is None else outputs, self.constraints.declared)

    def with_constraints(self, constraints: Sequence[Constraint]) -> Self:
        """Return the same model with these constraints instead of its own."""
        return self._changed(self._kept, self.outputs.names, constraints)

    def close(self) -> None:
        """Give back what the engine holds."""
        self._engine.close()

    def _changed(self, kept: Sequence[int], outputs: Sequence[str], constraints: Sequence[Constraint]) -> Self:
        model = type(self).__new__(type(self))
        model._set_up(self._engine, kept, outputs, constraints)
        return model

    def _seen(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return the quantities that constraints use; without a visit where the last one was at this point."""
        if not self._observed.size:
            return np.empty(0)
        if self._last is None or self._last[:3] != (t, x.tobytes(), u.tobytes()):
            self.evaluate(t, x, u)
        assert self._last is not None  # noqa: S101 - evaluate() has just kept it
        return self._last[3]

    def _full(self, u: FloatArray) -> FloatArray:
        full = self._engine.inputs.starts
        full[self._kept] = u
        return full

    def _gathered(self, rates: FloatArray, quantities: FloatArray, x: FloatArray, u: FloatArray) -> NDArray[np.float64]:
        """Stack rates, quantities, states and inputs: where the places of outputs point to."""
        if len(rates) != len(self.states) or len(quantities) != len(self._engine.quantities):
            raise ModelError(
                f"The engine of '{self.info.name}' returned {len(rates)} rates and {len(quantities)} quantities for "
                f"{len(self.states)} states and {len(self._engine.quantities)} quantities."
            )
        return np.concatenate((rates, quantities, x, u))


def _available(engine: Engine) -> dict[str, tuple[Signal, int]]:
    """Return everything that may be an output: its signal, and its place among rates, quantities, states, inputs."""
    rates = [Signal(f"der({s.name})", rate_unit(s.unit)) for s in engine.states]
    stacked = [*rates, *engine.quantities, *engine.states, *engine.inputs]
    found: dict[str, tuple[Signal, int]] = {}
    for place, signal in enumerate(stacked):
        found[signal.name] = (signal, place)  # states and inputs go before quantities of the same name
    return found


def _copies(outputs: Sequence[str], states: Signals, inputs: Signals) -> dict[int, Copy]:
    found: dict[int, Copy] = {}
    for i, name in enumerate(outputs):
        if name in states.positions:
            found[i] = Copy("state", states.positions[name])
        elif name in inputs.positions:
            found[i] = Copy("input", inputs.positions[name])
    return found
