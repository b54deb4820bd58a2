"""``delay(x, T)`` in Modelica: exact internal delays of linear models, also of FixedDelay in the Standard Library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, cast

import casadi as ca

from fmilin.errors import UsageError
from fmilin.models import DaeGraph, DaeModel, DelayedModel
from fmilin.signals import Signal, Signals
from fmilin_modelica.aliases import merge_aliases

if TYPE_CHECKING:
    from fmilin_modelica.model import ModelicaEngine, ModelicaModel

__all__ = ["DelayedModelicaModel", "SignalDelay", "add_sources", "delay_model", "name_delay"]

MAX_NAME_CHARACTERS = 40  # of an expression that is the name of its delay


@dataclass(frozen=True)
class SignalDelay:
    """A delay of a flattened model."""

    name: str
    source: Any  # the signal before the delay, in CasADi
    delayed: Any  # the symbol behind it
    seconds: float


def name_delay(source: Any, number: int) -> str:
    """Return the name of a delay: of the variable that is delayed, or of its expression where that is short."""
    text = str(source)
    text = text[1:-1] if text.startswith("(") and text.endswith(")") and text.count("(") == 1 else text
    return text if len(text) <= MAX_NAME_CHARACTERS and "@" not in text else f"delay {number + 1}"


def add_sources(graph: DaeGraph, delays: Sequence[SignalDelay]) -> DaeGraph:
    """Return a graph with the signals before delays as its last outputs."""
    if not delays:
        return graph
    sources = {DelayedModel.name_ends(delay.name)[1]: ca.SX(delay.source) for delay in delays}
    signals = Signals([*graph.output_signals, *(Signal(name) for name in sources)])
    return replace(graph, outputs={**graph.outputs, **sources}, output_signals=signals)


class DelayedModelicaModel(DelayedModel):
    """A model in Modelica with delays."""

    def with_parameters(self, values: Mapping[str, float]) -> Self:
        """Return the same model with other parameter ``values``, which its delays follow."""
        model = self.without_delays().with_parameters(values)
        changed = delay_model(cast("ModelicaModel", model)).with_interface(self.inputs.names, self.outputs.names)
        if changed.constraints.names != self.constraints.names:
            changed = changed.with_constraints(self.constraints.declared)
        return cast("Self", changed)


def delay_model(model: ModelicaModel) -> DelayedModelicaModel:
    """Return a model that was walked without its delays with them."""
    engine = model.engine
    delays = list(engine.equations.delays.values())
    if engine.missing:
        raise UsageError(
            f"'{model.info.name}' has delays and parameters without a value ({', '.join(engine.missing)}): write "
            "values for them into the model."
        )
    channels = [delay.name for delay in delays]
    ends = [DelayedModel.name_ends(name) for name in channels]
    before = [name for _, name in ends]
    outputs = [name for name in engine.graph.output_signals.names if name not in before]
    undelayed = model.with_interface(engine.inputs.names, [*outputs, *before])
    start = undelayed.start
    values = undelayed.evaluate(start.time, start.states, start.inputs).outputs[len(outputs) :]
    cut = DaeModel.from_graph(_cut_graph(engine, values.tolist())).with_interface(None, [*outputs, *before])
    return DelayedModelicaModel(undelayed, cut, channels, lambda _: [delay.seconds for delay in delays])


def _cut_graph(engine: ModelicaEngine, values: Sequence[float]) -> DaeGraph:
    """Return the equations with the delayed signals as their last inputs, of these values at the start."""
    from fmilin_modelica.model_graph import build_graph

    settled = engine.graph
    equations = engine.equations.cut_delays()
    merged = merge_aliases(equations.residuals, equations.states, equations.algebraic, equations.inputs)
    graph = build_graph(equations, merged)
    cut_inputs = graph.inputs[len(settled.inputs) :]
    behind = [signal.with_start(value) for signal, value in zip(cut_inputs, values, strict=True)]
    return replace(
        graph,
        inputs=Signals([*settled.inputs, *behind]),
        states=settled.states,
        algebraic=settled.algebraic,
        parameters=settled.parameters,
        preferred=engine.independent,
    )
