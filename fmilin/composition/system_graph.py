"""A connected system as one graph, which C code and FMUs are made from: W (w, v) = r.

Inputs v that hang on accelerations, multipliers or on themselves are further unknowns; others are put
in place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from fmilin.codegen.implicit import Guess, ImplicitSystem
from fmilin.codegen.system_functions import SystemFunctions
from fmilin.composition.coupling import CoupledMembers
from fmilin.composition.system_declaration import in_member, of_member, qualify
from fmilin.errors import UsageError
from fmilin.model.capabilities import read_graph
from fmilin.signals import FloatArray, Signals

SX = Any


@dataclass(frozen=True)
class Drawn:
    """A system that becomes a graph."""

    name: str
    coupling: CoupledMembers
    signals: tuple[Signals, Signals, Signals]  # states, inputs and outputs
    selected_outputs: FloatArray  # of every output: which output of a member it is, its factor and its offset
    observed: Mapping[str, int]  # which outputs of members constraints observe


def _column(*parts: SX) -> SX:
    return ca.vertcat(ca.SX(0, 1), *parts)


def in_graph(model: Drawn) -> ImplicitSystem | None:
    """Return the equations of a system; None where a member has no graph."""
    graphs = []
    for part in model.coupling.parts:
        with in_member(part.name):
            graph = read_graph(part.model)
        if graph is None:
            return None
        graphs.append(graph)
    inputs = ca.SX.sym("u", len(model.signals[1]))
    time = ca.SX.sym("time")
    wired = _Wired(model, graphs, inputs)
    wired.place_known()
    unknown = wired.unknown
    names = [model.coupling.wires.names[j] for j in unknown]
    w = _column(*(g.unknowns for g in graphs), *(wired.member_inputs[j] for j in unknown))
    rows = [wired.substitute_inputs(-g.remainder) for g in graphs]
    rows += [wired.member_inputs[j] - wired.substitute_inputs(wired.express_input(j)) for j in unknown]
    residual = _column(*rows)
    W = ca.jacobian(residual, w)
    iterates = any(g.guess is not None for g in graphs)
    if not iterates and w.numel() and any(ca.which_depends(ca.vec(ca.densify(W)), w, 1)):
        raise UsageError(
            f"The system '{model.name}' cannot be written as C: the connections to {', '.join(names)} close a loop in "
            "which accelerations or inputs do not enter linearly. Put a state (a filter) into it."
        )
    outputs = wired.substitute_inputs(wired.all_outputs)
    by_part = [(part.name, graph) for part, graph in zip(model.coupling.parts, graphs, strict=True)]
    selected_outputs = [outputs[int(i)] * factor + offset for i, factor, offset in model.selected_outputs]
    observed = {name: outputs[i] for name, i in model.observed.items()}

    def substitute_time(e: SX) -> SX:
        return ca.substitute(e, ca.vertcat(*(g.time for g in graphs)), ca.repmat(time, len(graphs), 1))

    at_zero = ca.substitute(residual, w, ca.SX.zeros(w.numel())) if not iterates else residual
    system = ImplicitSystem(
        name=model.name,
        time=time,
        states=_column(*(g.states for g in graphs)),
        inputs=inputs,
        parameters=_column(*(g.parameters for g in graphs)),
        unknowns=w,
        unknown_names=(*(qualify(p, n) for p, g in by_part for n in g.unknown_names), *names),
        matrix=substitute_time(ca.sparsify(W)),
        right_hand_side=substitute_time(ca.densify(-at_zero)),
        derivatives=substitute_time(wired.substitute_inputs(_column(*(g.derivatives for g in graphs)))),
        outputs=substitute_time(_column(*selected_outputs)),
        further={name: substitute_time(e) for name, e in observed.items()},
        state_signals=model.signals[0],
        input_signals=model.signals[1],
        output_signals=model.signals[2],
        parameter_signals=Signals(of_member(p, s) for p, g in by_part for s in g.parameter_signals),
        parameter_values=np.concatenate([np.empty(0), *(g.parameter_values for g in graphs)]),
    )
    return _add_guess(system, graphs) if iterates else system


def _add_guess(system: ImplicitSystem, graphs: Sequence[ImplicitSystem]) -> ImplicitSystem:
    """Return a system with the guess of its unknowns: of its members', zero for the others, then one solution."""
    member_guesses = [np.zeros(g.unknowns.numel()) if g.guess is None else g.guess.unknowns for g in graphs]
    rough = np.concatenate((*member_guesses, np.zeros(len(system.unknown_names) - sum(map(len, member_guesses)))))
    point = (system.state_signals.starts, system.input_signals.starts, system.parameter_values)
    guess = Guess(rough, np.maximum(1.0, np.abs(rough)), 0.0, *point, equations=system.unknown_names)
    w = SystemFunctions(replace(system, guess=guess)).unknowns(0.0, *point)
    return replace(system, guess=replace(guess, unknowns=w, sizes=np.maximum(1.0, np.abs(w))))


@dataclass
class _Wired:
    """The inputs of all members as expressions, as far as they are known."""

    model: Drawn
    graphs: Sequence[ImplicitSystem]
    inputs: SX

    def __post_init__(self) -> None:
        wires = self.model.coupling.wires
        self.member_inputs = _column(*(g.inputs for g in self.graphs))
        self.all_outputs = _column(*(g.outputs for g in self.graphs))
        self.w = _column(*(g.unknowns for g in self.graphs))
        self.expressions = [self.member_inputs[j] for j in range(self.member_inputs.numel())]
        for j, i in enumerate(wires.inputs):
            if i >= 0:
                self.expressions[j] = wires.factors[j] * self.inputs[int(i)] + wires.offsets[j]
            elif wires.sources[j] < 0:
                self.expressions[j] = ca.SX(float(wires.offsets[j]))
        self.unknown = [j for j in range(len(self.expressions)) if wires.sources[j] >= 0]

    def express_input(self, j: int) -> SX:
        """Return what feeds an input, over the members' own inputs."""
        wires = self.model.coupling.wires
        return wires.factors[j] * self.all_outputs[int(wires.sources[j])] + wires.offsets[j]

    def substitute_inputs(self, e: SX) -> SX:
        """Return an expression with the inputs that are known in their places."""
        if not self.member_inputs.numel():
            return e
        return ca.substitute(e, self.member_inputs, ca.vertcat(*self.expressions))

    def place_known(self) -> None:
        """Put in place whatever hangs on no unknown."""
        progress = True
        while progress and self.unknown:
            open_ = ca.vertcat(self.w, *(self.member_inputs[j] for j in self.unknown))
            candidates = self.substitute_inputs(ca.vertcat(*(self.express_input(j) for j in self.unknown)))
            depends = ca.which_depends(candidates, open_, 1, True)  # noqa: FBT003 - casadi's own
            ready = {j: candidates[i] for i, j in enumerate(self.unknown) if not depends[i]}
            for j, e in ready.items():
                self.expressions[j] = e
            self.unknown = [j for j in self.unknown if j not in ready]
            progress = bool(ready)
