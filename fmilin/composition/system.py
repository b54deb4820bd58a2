"""Connected models as one :class:`~fmilin.Model`: members' states side by side, their constraints kept.

The file is longer than others because one class answers the whole interface of a model by asking its members.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fmilin.composition.algebraic_loops import compute_structure
from fmilin.composition.coupling import CoupledMembers
from fmilin.composition.linear_member import LinearMember
from fmilin.composition.members import MemberView, Wires
from fmilin.composition.system_declaration import (
    Affine,
    Feed,
    Prefixed,
    SystemOutput,
    WireLink,
    get_signal,
    in_member,
    of_member,
    parameters_by_member,
    qualify,
    require_rates_of_prescribed_motions,
    resolve_delays,
    resolve_outputs,
    split,
    with_parameter_feeds,
)
from fmilin.constraints.declared import Constraint, Constraints
from fmilin.errors import FmilinError, NumericalError, UnknownNameError, UsageError, quote_first
from fmilin.model.capabilities import (
    HasBaumgarteStabilization,
    HasCompiledEvaluation,
    HasDerivativeErrors,
    HasDirectionalDerivatives,
    HasGraph,
    HasMembers,
    has_graph,
)
from fmilin.model.interface import Copy, Evaluation, Model, ModelInfo, OperatingPoint
from fmilin.signals import FloatArray, Signal, Signals
from fmilin.support.implemented_in import implemented_in
from fmilin.support.kinds import kinds_checked

if TYPE_CHECKING:
    from fmilin.codegen.implicit import ImplicitSystem


@dataclass(frozen=True)
class SystemDeclaration:
    """The parts of a connected model."""

    name: str
    members: Mapping[str, Model]
    links: Sequence[WireLink]
    feeds: Sequence[Feed]  # all inputs of the system
    outputs: Sequence[SystemOutput]
    constraints: Sequence[Constraint] | None = None  # None: those of the members
    chosen: Sequence[int] | None = None  # which feeds are inputs now; the others stay at their start values
    notes: Sequence[str] = ()


class ConnectedModel(
    Model,
    HasBaumgarteStabilization,
    HasCompiledEvaluation,
    HasDerivativeErrors,
    HasDirectionalDerivatives,
    HasGraph,
    HasMembers,
):
    """A model made of members and connections, which :func:`fmilin.connect` and ``fl.load("system.ssp")`` return.

    It is a :class:`~fmilin.Model` like any other; :func:`fmilin.cosimulated`, :func:`fmilin.sampled_loop` and
    :func:`fmilin.loop_transfer` need its connections. ``members`` holds the models by name. Closing the first view
    closes its members.
    """

    _made_by = "fl.connect joins members to one, and fl.load opens an SSP file"

    def __init__(self, declaration: SystemDeclaration, *, owner: bool = True) -> None:
        self.declaration, self.members = declaration, dict(declaration.members)
        self._owner = owner
        # opens the file of the system anew, for a pickled copy; None for a system that was connected in Python
        self.reopening: Callable[[], ConnectedModel] | None = None
        models = list(self.members.values())
        self.info = ModelInfo(declaration.name, tool="fmilin, connected")
        self.states = Signals(of_member(name, s) for name, m in self.members.items() for s in m.states)
        self._chosen = list(range(len(declaration.feeds)) if declaration.chosen is None else declaration.chosen)
        self.inputs = Signals(declaration.feeds[i].signal for i in self._chosen)
        self.parameters = Prefixed({name: m.parameters for name, m in self.members.items() if m.parameters})
        self.moves_parameters = any(m.moves_parameters for m in models)
        self.start = self._start(models)
        self.constraints = self._bound()
        require_rates_of_prescribed_motions(self.members, declaration.links)
        self.coupling = self._couple_members()
        self.outputs = Signals(self._output(w) for w in declaration.outputs)
        self.copies = self._copies()
        self.independent = self._list_recommended_states() if declaration.constraints is None else ()
        self.independent_by_default = all(m.independent_by_default for m in models if len(m.constraints))
        self._several = self._check_loops() if self.coupling.loops else ()

    @property
    def used_alone(self) -> tuple[object, ...]:
        """The resources that only one thread may use at a time, of all members."""
        return tuple(thing for model in self.members.values() for thing in model.used_alone)

    def _start(self, models: Sequence[Model]) -> OperatingPoint:
        times = {m.start.time for m in models}
        if len(times) > 1:
            starts = ", ".join(f"'{name}' at {m.start.time:g} s" for name, m in self.members.items())
            raise UsageError(f"The members start at different times ({starts}). Open them with the same start time.")
        parameters = {
            qualify(name, p): value for name, m in self.members.items() for p, value in m.start.parameters.items()
        }
        states = np.concatenate([np.empty(0), *(m.start.states for m in models)])
        time, names = times.pop() if times else 0.0, (self.states.names, self.inputs.names)
        return OperatingPoint(time, states, self.inputs.starts, parameters, names=names)

    def _bound(self) -> Constraints:
        declared = self.declaration.constraints
        if declared is None:
            declared = [c for name, m in self.members.items() for c in self._translate_constraints(name, m)]
        return Constraints(
            declared,
            self.states,
            self.inputs,
            parameters=Prefixed({name: m.constraints.parameters for name, m in self.members.items()}),
            other=self._canonical,
            offered=[qualify(name, s.name) for name, m in self.members.items() for s in (*m.inputs, *m.outputs)],
        )

    def _translate_constraints(self, name: str, model: Model) -> list[Constraint]:
        """Return a member's constraints over the names of the system."""
        direct = {
            targets[0][0]: f.signal.name
            for f in (self.declaration.feeds[i] for i in self._chosen)
            for targets in ([t for t in f.targets if t[1] == Affine()],)
            if targets
        }
        variables = {*model.states.positions, *model.inputs.positions, *model.constraints.parameters}

        def new(variable: str) -> str:
            if variable == "time" and variable not in variables:
                return variable
            return direct.get((name, variable), qualify(name, variable))

        rates = [None if c.rate is None else c.rate.renamed(new) for c in model.constraints.declared]
        return [
            replace(c, expression=c.expression.renamed(new), rate=rate, name=f"{name}: {c.label}")
            for c, rate in zip(model.constraints.declared, rates, strict=True)
        ]

    def _canonical(self, name: str) -> str | None:
        """Return the name of a variable that constraints may observe: any that a member shows."""
        try:
            member, variable = split(name, self.members)
            return qualify(member, get_signal(self.members[member], (member, variable)).name)
        except UnknownNameError:
            return None

    def _couple_members(self) -> CoupledMembers:
        output_sources = [w.source for w in self.declaration.outputs]
        observed = [split(name, self.members) for name in self.constraints.observed]
        taps: dict[str, dict[str, int]] = {name: {} for name in self.members}
        for member, variable in (*(link.source for link in self.declaration.links), *output_sources, *observed):
            taps[member].setdefault(variable, len(taps[member]))
        parts = []
        for name, model in self.members.items():
            with in_member(name):
                names = tuple(taps[name])
                view = model if model.outputs.names == names else model.with_interface(None, names)
                parts.append(MemberView(name, view))
        first = np.cumsum([0, *(len(t) for t in taps.values())])
        self._taps = {
            (name, variable): int(first[i]) + tap
            for i, (name, member_taps) in enumerate(taps.items())
            for variable, tap in member_taps.items()
        }
        self._output_taps = np.array([self._taps[source] for source in output_sources], dtype=np.intp)
        self._changes = np.array([w.change for w in self.declaration.outputs], dtype=float).reshape(-1, 2)
        self._plain = bool((self._changes == (1.0, 0.0)).all())
        self._observed = np.array([self._taps[source] for source in observed], dtype=np.intp)
        return CoupledMembers(parts, self._wires())

    def _wires(self) -> Wires:
        keys = [(name, s.name) for name, m in self.members.items() for s in m.inputs]
        positions = {key: i for i, key in enumerate(keys)}
        starts = np.concatenate([np.empty(0), *(m.start.inputs for m in self.members.values())])
        count = len(positions)
        sources, inputs = np.full(count, -1, dtype=np.intp), np.full(count, -1, dtype=np.intp)
        factors, offsets = np.zeros(count), starts.copy()
        for link in self.declaration.links:
            v = positions[link.target]
            sources[v] = self._taps[link.source]
            factors[v], offsets[v] = link.change
        for i, feed in enumerate(self.declaration.feeds):
            for target, (factor, offset) in feed.targets:
                v = positions[target]
                if i in self._chosen:
                    inputs[v], factors[v], offsets[v] = self._chosen.index(i), factor, offset
                else:
                    offsets[v] = factor * feed.signal.start + offset
        return Wires(sources, inputs, factors, offsets, tuple(qualify(*key) for key in positions))

    def _output(self, declared: SystemOutput) -> Signal:
        member, variable = declared.source
        i = list(self.members).index(member)
        part = self.coupling.parts[i]
        signal = part.model.outputs[self._taps[declared.source] - self.coupling.outputs[i].start]
        output = of_member(member, replace(signal, name=variable, aliases=()), declared.name)
        return output if declared.unit is None else replace(output, unit=declared.unit)

    def _copies(self) -> dict[int, Copy]:
        copies, wires = {}, self.coupling.wires
        for row, tap in enumerate(self._output_taps):
            if tuple(self._changes[row]) != (1.0, 0.0):
                continue
            m = next(i for i, s in enumerate(self.coupling.outputs) if s.start <= tap < s.stop)
            copy = self.coupling.parts[m].model.copies.get(int(tap) - self.coupling.outputs[m].start)
            if copy is None:
                continue
            if copy.kind == "state":
                copies[row] = Copy("state", self.coupling.states[m].start + copy.index)
                continue
            v = self.coupling.inputs[m].start + copy.index
            if wires.inputs[v] >= 0 and (wires.factors[v], wires.offsets[v]) == (1.0, 0.0):
                copies[row] = Copy("input", int(wires.inputs[v]))
        return copies

    def _list_recommended_states(self) -> tuple[str, ...]:
        """Return the members' own recommendations, where every constrained member has one; else none."""
        names: list[str] = []
        for name, model in self.members.items():
            member_states = model.independent if len(model.constraints) else model.states.names
            if len(model.states) and not member_states:
                return ()
            names += [qualify(name, n) for n in member_states]
        return tuple(names) if len(self.constraints) else ()

    def _check_loops(self) -> tuple[str, ...]:
        """Reject loops without a single solution where the system starts; say which have several."""
        at = (self.start.time, self.start.states, self.start.inputs)
        try:
            self.coupling.require_solvable(*at)
        except NumericalError:
            raise
        except FmilinError:  # it cannot be evaluated there: the error of a request for a point says why
            return ()
        if not self._owner:
            return ()
        return tuple(
            f"The algebraic loop through {quote_first(names, 6)} has several solutions where the system starts: "
            f"{names[0]} = {', '.join(f'{v:.6g}' for v in np.unique(values[:, 0].round(9)))}. The one nearest to the "
            f"start values of these inputs is used, {values[0, 0]:.6g}."
            for names, values in self.coupling.further_solutions(*at)
        )

    @cached_property
    def structure(self) -> Any:  # type: ignore[override]
        """Which derivatives and outputs depend on which states and inputs, through the connections, too."""
        A, B, C, D, reached = compute_structure(
            self.coupling, self.coupling.wires, self.coupling.depends, len(self.inputs)
        )
        n, rows = len(self.states), self._output_taps
        direct = np.hstack((np.vstack((A.toarray(), C[rows].toarray())), np.zeros((n + len(rows), len(self.inputs)))))
        return (direct + np.vstack(((B @ reached).toarray(), (D[rows] @ reached).toarray()))) > 0

    @property
    def output_turns(self) -> tuple[float | None, ...]:
        """Those of the members, in the units of the system."""
        of_members = [turn for part in self.coupling.parts for turn in part.model.output_turns]
        chosen = [of_members[tap] for tap in self._output_taps]
        factors = np.abs(self._changes[:, 0]).tolist()
        return tuple(turn and turn * factor for turn, factor in zip(chosen, factors, strict=True))

    @property
    def notes(self) -> tuple[str, ...]:
        """Those of the system, and the members' own, each with its member."""
        member_notes = [f"In the member '{name}': {note}" for name, m in self.members.items() for note in m.notes]
        return (*self.declaration.notes, *self._several, *member_notes)

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return derivatives, outputs and residuals at a point; see :meth:`fmilin.Model.evaluate`."""
        at = self.coupling.settle(t, x, u)
        z = at.outputs[self._observed]
        return Evaluation(
            at.rates, self._convert_outputs(at.outputs[self._output_taps]), self.constraints.residuals(t, x, u, z)
        )

    def compile_for_evaluations(self, evaluations: int) -> Self:
        """Return the system of members that are compiled as soon as that pays."""
        coupling = self.coupling.compile_for_evaluations(evaluations)
        if coupling is self.coupling:
            return self
        view = copy(self)
        view.coupling = coupling
        return view

    def _convert_outputs(self, outputs: FloatArray) -> FloatArray:
        return outputs if self._plain else self._changes[:, 0] * outputs + self._changes[:, 1]

    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation | None:
        """Return exact products, through algebraic loops by the implicit function; None when a member has none."""
        J = self.coupling.jacobians(t, x, u)
        if J is None:
            return None
        rates, outputs, _ = J.through(dx, du)
        system_outputs = outputs[self._output_taps] * (1.0 if self._plain else self._changes[:, :1])
        if not len(self.constraints):
            return Evaluation(rates, system_outputs, np.zeros((0, dx.shape[1])))
        dz = outputs[self._observed]
        z = self.coupling.settle(t, x, u).outputs[self._observed]
        return Evaluation(rates, system_outputs, self.constraints.along((t, x, u, z), np.concatenate((dx, du, dz))))

    def product_errors(
        self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> Evaluation | None:
        """Return what members' own errors make of the products; None without: dv is wrong by |(I - K D)^-1 K| e."""
        measured = any(isinstance(m, (LinearMember, ConnectedModel)) for m in self.members.values())
        J = self.coupling.jacobians(t, x, u) if measured else None
        if J is None:
            return None
        errors = self._own_errors(t, x, u, dx, J.through(dx, du)[2])
        if errors is None:
            return None
        rates, outputs = J.spread(*errors)
        system_outputs = outputs[self._output_taps] * np.abs(self._changes[:, :1])
        return Evaluation(rates, system_outputs, np.zeros((len(self.constraints), dx.shape[1])))

    def _own_errors(
        self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, dv: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return the errors of all rates and all outputs of members along their own directions; None without any."""
        coupling = self.coupling
        n, _, ny = coupling.size
        rates, outputs, any_at_all = np.zeros((n, dx.shape[1])), np.zeros((ny, dx.shape[1])), False
        for i, (part, (member_states, v)) in enumerate(
            zip(coupling.parts, coupling.compute_member_points(t, x, u), strict=True)
        ):
            model = part.model
            if not isinstance(model, HasDerivativeErrors):
                continue
            errors = model.product_errors(t, member_states, v, dx[coupling.states[i]], dv[coupling.inputs[i]])
            if errors is not None:
                any_at_all = True
                rates[coupling.states[i]], outputs[coupling.outputs[i]] = errors.derivatives, errors.outputs
        return (rates, outputs) if any_at_all else None

    def _at_members(
        self, t: float, x: FloatArray, u: FloatArray, act: Callable[[Model, FloatArray, FloatArray], Any]
    ) -> list[Any]:
        results = []
        for part, (member_states, v) in zip(
            self.coupling.parts, self.coupling.compute_member_points(t, x, u), strict=True
        ):
            with in_member(part.name):
                results.append(act(part.model, member_states, v))
        return results

    def has_graph(self) -> bool:
        """Return whether all members have a graph."""
        return all(has_graph(model) for model in self.members.values())

    def in_graph(self) -> ImplicitSystem | None:
        """Return the equations of all members as one graph, algebraic loops among its linear unknowns."""
        if not self.has_graph():
            return None
        from fmilin.composition.system_graph import Drawn, in_graph

        selected_outputs = np.column_stack((self._output_taps, self._changes))
        observed = dict(zip(self.constraints.observed, self._observed.tolist(), strict=True))
        signals = (self.states, self.inputs, self.outputs)
        return in_graph(Drawn(self.info.name, self.coupling, signals, selected_outputs, observed))

    def with_stabilization(self, alpha: float, beta: float) -> Model | None:
        """Return the same with all constrained members stabilized; None where one has no way for it."""
        members: dict[str, Model] = {}
        for name, model in self.members.items():
            if not len(model.constraints):
                members[name] = model
                continue
            stable = model.with_stabilization(alpha, beta) if isinstance(model, HasBaumgarteStabilization) else None
            if stable is None:
                return None
            members[name] = stable
        return self._replace_declaration(members=members)

    @kinds_checked
    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Self:
        """Return the system with chosen inputs (parameters of FMUs, too) and any variables of members as outputs."""
        changes: dict[str, Any] = {}
        if inputs is not None:
            feeds, members = with_parameter_feeds(self.declaration.feeds, self.members, inputs)
            input_signals = Signals(feed.signal for feed in feeds)
            changes |= {"feeds": feeds, "members": members}
            changes["chosen"] = [input_signals.index_of(name, "an input of the system") for name in inputs]
            if len(set(changes["chosen"])) < len(inputs):
                raise UsageError(f"The same input is named twice among {', '.join(inputs)}.")
        if outputs is not None:
            declared = {w.name: w for w in self.declaration.outputs}
            fed = {feed.signal.name: feed.targets[0][0] for feed in self.declaration.feeds if feed.targets}
            changes["outputs"] = [self._find_output(name, declared, fed) for name in outputs]
        return self._view(**changes)

    def _find_output(
        self, name: str, declared: Mapping[str, SystemOutput], fed: Mapping[str, tuple[str, str]]
    ) -> SystemOutput:
        if name in declared:
            return declared[name]
        if name in fed:
            return SystemOutput(name, fed[name])
        return resolve_outputs(self.members, {name: name})[0]

    @kinds_checked
    def with_constraints(self, constraints: Sequence[Constraint]) -> Self:
        """Return the same system with these constraints instead of its members'."""
        return self._view(constraints=tuple(constraints))

    @kinds_checked
    def with_parameters(self, values: Mapping[str, float]) -> Self:
        """Return the same system with other parameters of its members, ``member.name``."""
        members = dict(self.members)
        for name, member_values in parameters_by_member(values, members).items():
            with in_member(name):
                members[name] = members[name].with_parameters(member_values)
        return self._replace_declaration(members=members)

    def is_member_input(self, name: str) -> bool:
        """Return whether a name denotes inputs of a member, as ``plant.u``."""
        try:
            return bool(resolve_delays(self.members, name))
        except UnknownNameError:
            return False

    @implemented_in("fmilin.composition.delayed_system:add_wire_delays")
    def with_wire_delays(self, delays: Mapping[str, float]) -> Model:
        """Return the system with delays in seconds of what reaches inputs of members, by their names."""
        ...

    def __copy__(self) -> Self:
        """Return a view of the same class and members: ``copy`` would build a system anew, as ``pickle`` does."""
        view = object.__new__(type(self))
        vars(view).update(vars(self))
        return view

    def __reduce__(self) -> tuple[object, ...]:
        """Write the path of an SSP file, or else the members; a copy that is read opens FMUs anew."""
        if self.reopening is not None:
            view = self.declaration.constraints, self.inputs.names, self.outputs.names
            return _open_again, (self.reopening, *view)
        if type(self) is not ConnectedModel:  # what a subclass adds is not in the declaration
            return copyreg.__newobj__, (type(self),), vars(self)  # type: ignore[attr-defined]
        return type(self), (self.declaration,)

    def _view(self, **changes: Any) -> Self:
        """Return another view of the same members."""
        view = self._replace_declaration(**changes)
        view.reopening = self.reopening
        return view

    def _replace_declaration(self, **changes: Any) -> Self:
        return type(self)(replace(self.declaration, **changes), owner=False)

    def close(self) -> None:
        """Close the members, unless this is another view of a system."""
        if not self._owner:
            return
        for model in self.members.values():
            model.close()


def _open_again(
    reopening: Callable[[], ConnectedModel],
    constraints: Sequence[Constraint] | None,
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> ConnectedModel:
    """Return a view like one that was pickled, of new instances of the members."""
    system = reopening()
    view = system if constraints is None else system.with_constraints(constraints)
    same = (view.inputs.names, view.outputs.names) == (tuple(inputs), tuple(outputs))
    return view if same else view.with_interface(inputs, outputs)
