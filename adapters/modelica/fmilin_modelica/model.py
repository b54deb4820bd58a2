"""A flattened model as a fmilin Model: its equations in CasADi, of any index, as ``fl.models.DaeModel`` takes them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fmilin import Evaluation, OperatingPoint
from fmilin.adapters import DaeEngine, DescribesDeclarations, ModelInfo, NativeModel, Remark, ReportsStart, StartValue
from fmilin.errors import ConstraintError, FmilinError, ModelError, NumericalError, UsageError
from fmilin.models import DaeGraph, DaeModel
from fmilin.signals import FloatArray, Signal, Signals
from fmilin_modelica.aliases import merge_aliases
from fmilin_modelica.equations import Equations
from fmilin_modelica.front_end import flattened
from fmilin_modelica.guessing import guess_start_values
from fmilin_modelica.homotopy import follow_homotopy
from fmilin_modelica.model_graph import build_graph, list_conditions, order_starts, rank_coordinate
from fmilin_modelica.modes import HeldModeError, Mode, group_of
from fmilin_modelica.moved import (
    AS_WRITTEN,
    FOLLOWS,
    MovedStart,
    moved_remark,
    moved_starts,
    report_start_value,
)
from fmilin_modelica.places import describe_declarations
from fmilin_modelica.sources import Source
from fmilin_modelica.starting import Point, Starting, chosen_rows
from fmilin_modelica.walker import UnsupportedError

if TYPE_CHECKING:
    from fmilin.adapters import ImplicitSystem

__all__ = ["ModelicaModel"]

MODE_ITERATIONS = 50  # of events at the start; each friction element needs three at most
ROUNDED_MOVE = 1e-10  # of a state with a coordinate. Looser: the rounding of a velocity at rest counts as a motion


class ModelicaEngine(DaeEngine):
    """The equations of a flattened model, from a consistent start.

    Parameters of its equations are changed at once; those that its structure or its start values depend on by walking
    the graph again, and those that the front end has used already by flattening once more.
    """

    def __init__(self, source: Source, equations: Equations) -> None:
        self.source, self.equations = source, equations
        self.missing = equations.missing_in_order()
        self.merged = merge_aliases(equations.residuals, equations.states, equations.algebraic, equations.inputs)
        self.moved: tuple[MovedStart, ...] = ()
        graph = build_graph(equations, self.merged)
        if self.missing:  # nothing can be computed before they are set
            super().__init__(graph)
            return
        graph, starting, point = self._search_start(graph)
        graph, starting, point = self._settle_modes(graph, starting, point)
        found = _with_parameters(graph, self.equations.free, point)
        if not self.keeps_structure(found):
            # Start values of free parameters, 0 mostly, hid terms of the equations and of the initial equations.
            graph, starting, point = self._search_start(found)
        states = self.merged.states
        T = starting.motions(point, conditions=False)
        preferred = sorted(range(len(states)), key=lambda i: rank_coordinate(states[i]))
        chosen = chosen_rows(T, preferred)
        sizes = _sizes(graph.states, T, chosen)
        is_complete = len(chosen) == T.shape[1]
        self.independent = tuple(graph.states.names[i] for i in sorted(chosen)) if is_complete else ()
        said = self.equations.assertions()
        fails = starting.holds(point, [condition for condition, _ in said])
        failed = [f"'{words}'" for (_, words), now in zip(said, fails, strict=True) if now]
        if failed:
            self.notes = (*self.notes, f"Assertions of the model fail at its start: {', '.join(failed)}.")
        self.moved = tuple(moved_starts(self.merged.written, point.x))
        started = replace(
            _with_parameters(graph, self.equations.free, point),
            states=Signals(
                replace(s, start=float(v), nominal=size)
                for s, v, size in zip(graph.states, point.x, sizes, strict=True)
            ),
        )
        if started != graph:
            self._take(started)
        self.set_newton_start(started, point.w)

    def _begin(self, graph: DaeGraph, *, is_damped: bool = False) -> tuple[Starting, Point]:
        """Reduce the equations, and search for a consistent start."""
        super().__init__(graph)
        conditions, names = list_conditions(self.equations, self.merged)
        starting = Starting(self, conditions, names, self.equations.free, is_damped=is_damped)
        return starting, starting.consistent(order_starts(self.merged.states))

    def _search_start(self, graph: DaeGraph) -> tuple[DaeGraph, Starting, Point]:
        """Return a consistent start, from other start values where the given ones lead to none."""
        try:
            return graph, *self._begin(graph)
        except (NumericalError, ConstraintError, ValueError):  # scipy rejects values that are not numbers
            begin = follow_homotopy(self.equations, graph)
            if begin is not None:
                with contextlib.suppress(NumericalError, ConstraintError, ValueError):
                    return begin, *self._begin(begin)
            graph = self._add_guesses(graph)
        try:
            return graph, *self._begin(graph)
        except ConstraintError:
            return graph, *self._begin(graph, is_damped=True)

    def _settle_modes(self, graph: DaeGraph, starting: Starting, point: Point) -> tuple[DaeGraph, Starting, Point]:
        """Return the start with the friction elements in the modes that it gives them, by iterating events.

        Raises
        ------
        ConstraintError
            When the iteration returns to modes that it has left: no mode agrees with the motion that it gives.
        """
        tried = [self.equations.modes]
        while True:
            here = point.without_noise(*self._noise_sizes(starting, point))
            modes = self.equations.modes_at(partial(starting.values_at, here))
            if modes == self.equations.modes:
                break
            if modes in tried or len(tried) > MODE_ITERATIONS:
                raise ConstraintError(self._describe_contradiction(modes))
            tried.append(modes)
            equations = Equations(self.equations.flat, self.equations.changed, modes, self.equations.held_modes)
            self.equations = equations
            self.merged = merge_aliases(equations.residuals, equations.states, equations.algebraic, equations.inputs)
            graph, starting, point = self._search_start(build_graph(equations, self.merged))
        if self.equations.mode_note:
            graph = replace(graph, notes=self.equations.notes())
            self._take(graph)
            self.notes = (*graph.notes, *self.reduced.notes, *self.reduced.remarks)
        return graph, starting, point

    def _noise_sizes(self, starting: Starting, point: Point) -> tuple[FloatArray, FloatArray]:
        """Return sizes of states, by the nominal values of the coordinates, and of unknowns that follow from them."""
        T = starting.motions(point, conditions=False)
        states = self.graph.states
        preferred = sorted(range(len(states)), key=lambda i: rank_coordinate(self.merged.states[i]))
        least = _sizes_from_coordinates(states, T, chosen_rows(T, preferred))
        sizes = np.array([max(s.nominal or 0.0, v) or 1.0 for s, v in zip(states, least, strict=True)])
        return sizes, starting.sizes_of_unknowns(point, sizes)

    def _describe_contradiction(self, modes: Mapping[int, Mode]) -> str:
        """Return a message on friction elements with modes that change at each iteration."""
        numbers = {k for k in (*modes, *self.equations.modes) if modes.get(k) != self.equations.modes.get(k)}
        names = sorted({f"'{group_of(self.equations.variables[k].name)}'" for k in numbers})
        return (
            f"The friction elements {', '.join(names)} of '{self.equations.flat['name']}' have no mode at the start, "
            "stuck or sliding, that agrees with the motion it gives. Change their start values or the forces on them."
        )

    def _add_guesses(self, graph: DaeGraph) -> DaeGraph:
        """Return the equations with other start values, where they are singular at the given ones or lead nowhere."""
        entries = [*self.merged.states, *self.equations.algebraic]
        order = sorted(range(len(entries)), key=lambda i: (not entries[i].fixed, *rank_coordinate(entries[i])))
        fixed = {i for i, entry in enumerate(entries) if entry.fixed}
        return guess_start_values(
            graph, order, fixed, list_conditions(self.equations, self.merged)[0], self.equations.free
        )

    def _take(self, graph: DaeGraph) -> None:
        super()._take(graph)
        self.info = ModelInfo(graph.name, tool=self.equations.flat["tool"])
        missing = dict.fromkeys(self.equations.missing, float("nan"))
        self.parameters = {**self.equations.numbers, **self.parameters, **missing}

    def with_parameters(self, values: Mapping[str, float]) -> ModelicaEngine:
        """Return the same engine with other values.

        Where initial equations determine the start or free parameters, or friction may be stuck, these follow: the
        start is searched for again.
        """
        quick = self.graph.parameters.positions.keys() - self.equations.frozen
        has_conditions = bool(list_conditions(self.equations, self.merged)[1])
        is_settled = not (self.missing or has_conditions or self.equations.mode_note)
        if values.keys() <= quick and all(values.values()) and is_settled:
            signals = Signals(replace(s, start=values.get(s.name, s.start)) for s in self.graph.parameters)
            graph = replace(self.graph, parameters=signals)
            if self.keeps_structure(graph):
                return self.with_system(graph)
        pairs = zip(self.graph.parameters, self.equations.parameters.values(), strict=True)
        changed = {signal.name: signal.start for signal, entry in pairs if signal.start != entry.value}
        return type(self)(self.source, opened(self.source, {**self.equations.changed, **changed, **values}))


class ModelicaModel(DaeModel, ReportsStart, DescribesDeclarations):
    """A model in Modelica, flattened and walked into CasADi."""

    engine: ModelicaEngine

    @cached_property
    def _selection(self) -> Any:
        self._require_values()
        return super()._selection

    def _require_right(self) -> None:
        if not self.engine.missing:
            super()._require_right()

    def _require_values(self) -> None:
        """Raise UsageError while parameters without a value in the text have not been set."""
        missing = self.engine.missing
        if not missing:
            return
        named = missing[0] if len(missing) == 1 else f"{', '.join(missing[:-1])} and {missing[-1]}"
        what = "parameter" if len(missing) == 1 else "parameters"
        raise UsageError(
            f"The {what} {named} of '{self.info.name}' {'has' if len(missing) == 1 else 'have'} no value in the "
            f"model: give each one, parameters={{{missing[0]!r}: VALUE}}."
        )

    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation | None:
        """Return exact directional derivatives; None while parameters have no values."""
        return None if self.engine.missing else super().products(t, x, u, dx, du)

    def in_graph(self) -> ImplicitSystem | None:
        """Return the equations as a graph."""
        self._require_values()
        return super().in_graph()

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes on the model, among them a list of parameters without a value."""
        missing = self.engine.missing
        note = f"Parameters without a value, to be set before anything is computed: {', '.join(missing)}."
        return (*super().notes, *([note] if missing else []))

    def describe_parameters(self) -> Mapping[str, Signal]:
        """Return unit and description of each parameter by its name."""
        parameters = [v for v in self.engine.equations.variables if v.role == "parameter"]
        return {name: Signal(name, v.unit, description=v.description) for v in parameters for _, name in v.entries()}

    def report_start(self) -> tuple[StartValue, ...]:
        """Return the start values that the model writes, and where none is written those of states, as they became."""
        self._require_values()
        merged = self.engine.merged
        written = {(start.state, start.name): start for start in merged.written}
        rows = []
        for i, entry in enumerate(merged.states):
            reached, unit = float(self.start.states[i]), entry.variable.unit
            starts = [start for (state, _), start in written.items() if state == i]
            rows += [report_start_value(start, reached * start.sign, unit, entry) for start in starts]
            if not starts:
                rows.append(StartValue(entry.name, unit, None, reached, FOLLOWS))
        return tuple(rows)

    def describe_declarations(self, message: str) -> str:
        """Return where the first variables that a message names are declared."""
        return describe_declarations(message, self.engine.equations.flat["places_of_variables"])

    def list_point_remarks(self, point: OperatingPoint) -> tuple[Remark, ...]:
        """Return, at the start itself, which start values that the model writes had to move."""
        moved, x = self.engine.moved, point.states
        is_start = all(np.isclose(x[m.state], m.became * m.sign, rtol=AS_WRITTEN, atol=AS_WRITTEN) for m in moved)
        return (*super().list_point_remarks(point), *([moved_remark(moved)] if moved and is_start else []))

    def may_have_point_remarks(self) -> bool:
        """Return whether starts have moved, or diagnostics of a DAE are possible."""
        return bool(self.engine.moved) or super().may_have_point_remarks()

    @classmethod
    def opened(cls, source: Source) -> Self:
        """Return the model of a source."""
        model = cls.__new__(cls)
        equations = opened(source)
        try:
            NativeModel.__init__(model, ModelicaEngine(source, equations))
        except HeldModeError:
            raise
        except UsageError as error:  # of equations that were typed; here the file is wrong, not the command
            raise _note_places(ModelError(str(error)), equations) from None
        except FmilinError as error:
            raise _note_places(error, equations)  # noqa: B904 - the same error
        return model


def _note_places(error: FmilinError, equations: Equations) -> FmilinError:
    """Return an error with a note on the places of what it names."""
    if note := describe_declarations(str(error), equations.flat["places_of_variables"]):
        error.add_note(note)
    return error


def opened(source: Source, changed: Mapping[str, float] | None = None) -> Equations:
    """Return the equations of a source, some of its parameters changed."""
    try:
        return _opened(source, changed)
    except UnsupportedError as error:
        place = f"{error.place}: " if error.place else ""
        raise ModelError(f"{place}'{source.shown}' has {error}, which the Modelica adapter does not support.") from None


def _opened(source: Source, changed: Mapping[str, float] | None) -> Equations:
    held_modes = dict(source.modes)
    equations = Equations(flattened(source), held_modes=held_modes)
    if not changed:
        return equations
    values = equations.typed(changed)
    structural = {name: value for name, value in values.items() if equations.needs_flattening(name)}
    flat = flattened(source, structural) if structural else equations.flat
    return Equations(flat, values, held_modes=held_modes)


def _with_parameters(graph: DaeGraph, free: Sequence[str], point: Point) -> DaeGraph:
    """Return the graph with the values of the free parameters at the start."""
    values = dict(zip(free, point.free.tolist(), strict=True))
    return replace(graph, parameters=Signals(s.with_start(values.get(s.name, s.start)) for s in graph.parameters))


def _sizes(states: Signals, T: FloatArray, chosen: Sequence[int]) -> list[float | None]:
    """Return nominal values, none smaller than what the nominal values of the coordinates make of the state.

    Libraries give differences of angles and lengths small nominal values (1e-4), as if they belonged to stiff springs.
    """
    least = _sizes_from_coordinates(states, T, chosen)
    return [None if s.nominal is None else max(s.nominal, v) for s, v in zip(states, least, strict=True)]


def _sizes_from_coordinates(states: Signals, T: FloatArray, chosen: Sequence[int]) -> list[float]:
    """Return how far each state moves with coordinates of their nominal sizes, 1 without; 0 where it does not."""
    if not len(chosen):
        return [0.0] * len(states)
    moves = np.abs(np.linalg.lstsq(T[list(chosen)].T, T.T, rcond=None)[0].T)
    moves = np.where(moves > ROUNDED_MOVE, moves, 0.0)
    least: list[float] = (moves * [states[i].nominal or 1.0 for i in chosen]).max(axis=1).tolist()
    return least
