"""A flattened model as a fmilin Model: its equations in CasADi, of any index, as ``fl.models.DaeModel`` takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import casadi as ca
import numpy as np

from fmilin.ground import ConstraintError, FloatArray, ModelError, NumericalError, Signal, Signals, UsageError
from fmilin.model.interface import ModelInfo
from fmilin.native.dae.engine import DaeEngine
from fmilin.native.dae.equations import DaeGraph
from fmilin.native.dae.model import DaeModel
from fmilin.native.native_model import NativeModel
from fmilin_modelica.equations import Entry, Equations
from fmilin_modelica.front_end import flattened
from fmilin_modelica.guessing import guessed
from fmilin_modelica.sources import Source
from fmilin_modelica.starting import Point, Starting, chosen_rows
from fmilin_modelica.walker import UnsupportedError

__all__ = ["ModelicaModel"]

_ADVICE = {"Always": 0, "Prefer": 1, "Default": 2, "Avoid": 3, "Never": 4}


class ModelicaEngine(DaeEngine):
    """The equations of a flattened model, from a consistent start.

    Parameters of its equations are changed at once; those that its structure or its start values depend on by walking
    the graph again, and those that the front end has used already by flattening once more.
    """

    def __init__(self, source: Source, equations: Equations) -> None:
        self.source, self.equations = source, equations
        states = equations.states
        wanted = sorted(range(len(states)), key=lambda i: _wanted(states[i]))
        fixed = [i for i, entry in enumerate(states) if entry.fixed]
        joints = [_wanted(entry)[0] <= _ADVICE["Prefer"] for entry in states]
        given = [i for i, e in enumerate(states) if joints[i] or e.fixed or e.start or not any(joints)]
        start = fixed, sorted(wanted, key=lambda i: states[i].start == 0.0), given
        graph = graph_of(equations)
        try:
            starting, point = self._begin(graph, *start)
        except (NumericalError, ConstraintError, ValueError):  # values that are not numbers are refused by scipy
            graph = self._guessed(graph)
            starting, point = self._begin(graph, *start)
        T = starting.motions(point, conditions=False)
        chosen = chosen_rows(T, wanted)
        sizes = _sizes(graph.states, T, chosen)
        self.independent = tuple(graph.states.names[i] for i in sorted(chosen))
        free = dict(zip(equations.free, point.free.tolist(), strict=True))
        said = self.equations.assertions()
        fails = starting.holds(point, [condition for condition, _ in said])
        failed = [f"'{words}'" for (_, words), now in zip(said, fails, strict=True) if now]
        if failed:
            self.notes = (*self.notes, f"What the model asserts does not hold at its start: {', '.join(failed)}.")
        moved = replace(
            graph,
            states=Signals(
                replace(s, start=float(v), nominal=size)
                for s, v, size in zip(graph.states, point.x, sizes, strict=True)
            ),
            parameters=Signals(s.starting_at(free.get(s.name, s.start)) for s in graph.parameters),
        )
        if moved != graph:
            self._take(moved)

    def _begin(self, graph: DaeGraph, *start: Sequence[int]) -> tuple[Starting, Point]:
        """Reduce the equations, and look for a consistent start."""
        super().__init__(graph)
        starting = Starting(self, *_conditions(self.equations), self.equations.free)
        return starting, starting.consistent(*start)

    def _guessed(self, graph: DaeGraph) -> DaeGraph:
        """Return the equations with other start values, where they are singular at the given ones or lead nowhere."""
        entries = [*self.equations.states, *self.equations.algebraic]
        order = sorted(range(len(entries)), key=lambda i: (not entries[i].fixed, *_wanted(entries[i])))
        return guessed(graph, order, _conditions(self.equations)[0], self.equations.free)

    def _take(self, graph: DaeGraph) -> None:
        super()._take(graph)
        self.info = ModelInfo(graph.name, tool=self.equations.flat["tool"])
        self.parameters = {**self.equations.numbers, **self.parameters}

    def with_parameters(self, values: Mapping[str, float]) -> ModelicaEngine:
        """Return the same engine with other values."""
        quick = self.graph.parameters.positions.keys() - self.equations.frozen
        if values.keys() <= quick and all(values.values()):
            signals = Signals(replace(s, start=values.get(s.name, s.start)) for s in self.graph.parameters)
            graph = replace(self.graph, parameters=signals)
            if self.keeps_structure(graph):
                return self.having(graph)
        pairs = zip(self.graph.parameters, self.equations.parameters.values(), strict=True)
        changed = {signal.name: signal.start for signal, entry in pairs if signal.start != entry.value}
        return type(self)(self.source, opened(self.source, {**self.equations.changed, **changed, **values}))


class ModelicaModel(DaeModel):
    """A model in Modelica, flattened and walked into CasADi."""

    @classmethod
    def opened(cls, source: Source) -> Self:
        """Return the model of a source."""
        model = cls.__new__(cls)
        try:
            NativeModel.__init__(model, ModelicaEngine(source, opened(source)))
        except UsageError as error:  # of equations that were typed; here the file is wrong, not the command
            raise ModelError(str(error)) from None
        return model


def opened(source: Source, changed: Mapping[str, float] | None = None) -> Equations:
    """Return the equations of a source, some of its parameters changed."""
    try:
        return _opened(source, changed)
    except UnsupportedError as error:
        raise ModelError(f"'{source.shown}' has {error}: the Modelica adapter does not know that.") from None


def _opened(source: Source, changed: Mapping[str, float] | None) -> Equations:
    equations = Equations(flattened(source))
    if not changed:
        return equations
    values = equations.typed(changed)
    structural = {name: value for name, value in values.items() if equations.needs_flattening(name)}
    flat = flattened(source, structural) if structural else equations.flat
    return Equations(flat, values)


def _sizes(states: Signals, T: FloatArray, chosen: Sequence[int]) -> list[float | None]:
    """Return nominal values, none smaller than what the nominal values of the coordinates make of the state.

    Libraries give differences of angles and lengths small nominal values (1e-4), as if they belonged to stiff springs.
    """
    if not len(chosen):
        return [s.nominal for s in states]
    moves = np.abs(np.linalg.lstsq(T[list(chosen)].T, T.T, rcond=None)[0].T)
    least = (moves * [states[i].nominal or 1.0 for i in chosen]).max(axis=1)
    return [None if s.nominal is None else max(s.nominal, float(v)) for s, v in zip(states, least, strict=True)]


def _conditions(equations: Equations) -> tuple[Any, list[str]]:
    """Return what holds at the start: initial equations, and algebraic variables with a fixed start value."""
    fixed = [entry for entry in equations.algebraic if entry.fixed]
    residuals = [*equations.initial_residuals, *(entry.symbol - entry.start for entry in fixed)]
    names = [f"initial equation {k + 1}" for k in range(len(equations.initial_residuals))]
    return _column(residuals), [*names, *(f"{entry.name} = {entry.start:g}" for entry in fixed)]


def graph_of(equations: Equations) -> DaeGraph:
    """Return what the engine takes."""
    states, algebraic, inputs = equations.states, equations.algebraic, equations.inputs
    outputs = [e for e in algebraic if e.variable.is_output]
    if not states:
        raise UsageError(f"The model '{equations.flat['name']}' has no states: nothing in it has a derivative.")
    parameters = list(equations.parameters.values())
    return DaeGraph(
        name=equations.flat["name"],
        residuals=_column(equations.residuals),
        x=_column([e.symbol for e in states]),
        dx=_column(equations.derivative_symbols()),
        z=_column([e.symbol for e in algebraic]),
        u=_column([e.symbol for e in inputs]),
        p=_column([p.symbol for p in parameters]),
        states=_signals(states),
        algebraic=_signals(algebraic),
        inputs=_signals(inputs),
        parameters=Signals(
            Signal(p.name, p.variable.unit, start=p.value, description=p.variable.description) for p in parameters
        ),
        time=equations.time,
        outputs={e.name: e.symbol for e in outputs},
        output_signals=_signals(outputs),
        equations=equations.names,
        fixed=tuple(e.name for e in states if e.fixed),
        notes=equations.notes(),
    )


def _column(items: Sequence[Any]) -> Any:
    return ca.vertcat(ca.SX(0, 1), *items)


def _signals(entries: Sequence[Entry]) -> Signals:
    return Signals(
        Signal(e.name, e.variable.unit, nominal=e.nominal, start=e.start, description=e.variable.description)
        for e in entries
    )


def _wanted(entry: Entry) -> tuple[Any, ...]:
    """Return how much a state is wished as a coordinate: what the model says, joints before bodies, given starts."""
    relative = "_rel" in entry.name
    return (
        _ADVICE.get(entry.variable.attributes["state_select"], 2),
        relative,
        not entry.fixed,
        len(entry.variable.shape),
        entry.name.count("."),
    )
