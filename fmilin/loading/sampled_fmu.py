"""FMUs with discrete states as sampled models, which are all that ``fl.models.DiscreteModel`` is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from fmilin.constraints.declared import Constraint
from fmilin.fmi.read.archive import FmuFile
from fmilin.fmi.read.discrete_states import AUTOMATIC
from fmilin.fmi.read.sample_map import SampleMap
from fmilin.fmi.read.settings import Value
from fmilin.loading.source_kind import INTERFACES
from fmilin.models.map_model import MapModel, keep_in_level
from fmilin.models.native_engine import AdjustableEngine, NativeEngine, Quantity, Values, list_available_quantities
from fmilin.options import FmuOptions, Loading
from fmilin.signals import FloatArray, Signals
from fmilin.trimming.trim_request import PointRequest

Selected = tuple[Sequence[Quantity], Sequence[Quantity]]  # outputs, and what constraints observe


def load_sampled_fmu(
    fmu: FmuFile, request: Loading, at: PointRequest, settings: Mapping[str, float], constraints: Sequence[Constraint]
) -> SampledFmuModel:
    """Return the sampled model of an FMU with discrete states; ``settings`` are those that are set at loading."""
    options, interface = fmu.options, fmu.description.interface
    if request.interface is not None:
        interface = INTERFACES[request.interface]
    if options.discrete_states is None:
        options = replace(options, discrete_states=AUTOMATIC)
    file = (fmu.absolute, options)
    open_map = partial(open_sample_map, file, dict(request.parameters), dict(settings), at.time, interface)
    return SampledFmuModel(SampledFmuEngine(open_map, [keep_in_level(c) for c in constraints]))


class SampledFmuModel(MapModel):
    """An FMU with discrete states as x[k+1] = F(x[k], u[k]); ``fl.load`` returns it.

    Its states are numbers that the FMU declares as discrete-time (FMI 3.0: those of clocked partitions), or that
    ``fl.FmuOptions(discrete_states=[...])`` names.
    """

    engine: SampledFmuEngine

    @property
    def used_alone(self) -> tuple[object, ...]:
        """The FMU's instance."""
        return self.engine.map.fmu.used_alone

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on defects and omissions of the FMU."""
        return self.engine.map.fmu.notes


class SampledFmuEngine(NativeEngine[Selected], AdjustableEngine):
    """The map of an FMU as an engine; parameters are set before an instance is initialized."""

    def __init__(self, open_map: Callable[[Mapping[str, float]], SampleMap], constraints: Sequence[Constraint]) -> None:
        self._open_map, self._changed = open_map, dict[str, float]()
        self._take_map(open_map({}))
        self.constraints = constraints

    def _take_map(self, sample_map: SampleMap) -> None:
        fmu = sample_map.fmu
        self.map = sample_map
        self.info = fmu.info
        self.states, self.inputs = fmu.states, Signals(fmu.inputs)
        self.sample_time = sample_map.interval
        self.autonomous = True
        self.outputs = fmu.outputs.names

    @cached_property
    def parameters(self) -> Mapping[str, float]:  # type: ignore[override]
        """Numbers that can be set, by name."""
        return self.map.parameters

    @cached_property
    def available(self) -> Mapping[str, Quantity]:
        """States, inputs, outputs, and increments of states as ``der(x)``."""
        signals = list_available_quantities(self.states, self.inputs)
        outputs = {s.name: Quantity(s, i) for i, s in enumerate(self.map.fmu.outputs) if s.name not in signals}
        return {**signals, **outputs}

    def select(self, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> Selected:
        """Return both as they are."""
        return outputs, observed

    def evaluate(self, selection: Selected, t: float, x: FloatArray, u: FloatArray) -> Values:
        """Return increments, outputs and observed quantities at a point."""
        rates, outputs, observed = self.evaluate_points(selection, np.array([t]), x[None], u[None])
        return rates[0], outputs[0], observed[0]

    def evaluate_points(self, selection: Selected, t: FloatArray, x: FloatArray, u: FloatArray) -> Values:
        """Return the same at many points."""
        next_states, values = self.map.evaluate(x, u)
        rates = next_states - x
        sources = {"state": x, "input": u, "rate": rates}

        def gather(quantities: Sequence[Quantity]) -> FloatArray:
            columns = [
                sources[q.source[0]][:, q.source[1]] if isinstance(q.source, tuple) else values[:, q.source]
                for q in quantities
            ]
            return np.array(columns).T.reshape(len(x), len(columns))

        outputs, observed = selection
        return rates, gather(outputs), gather(observed)

    def with_parameters(self, values: Mapping[str, float]) -> Self:
        """Return an engine of another instance of the FMU, with these parameters."""
        self.require_parameters(values)
        changed = {**self._changed, **values}
        engine = copy(self)
        for name in ("parameters", "available", "point_codes"):
            vars(engine).pop(name, None)
        engine._changed = changed
        engine._take_map(self._open_map(changed))
        return engine

    def close(self) -> None:
        """Give back the FMU."""
        self.map.fmu.close()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Write how the FMU was opened: a copy that is read opens it anew."""
        return _reopen_engine, (self._open_map, self.constraints, self._changed)


def _reopen_engine(
    open_map: Callable[[Mapping[str, float]], SampleMap],
    constraints: Sequence[Constraint],
    changed: Mapping[str, float],
) -> SampledFmuEngine:
    engine = SampledFmuEngine(open_map, constraints)
    return engine.with_parameters(changed) if changed else engine


def open_sample_map(
    file: tuple[Any, FmuOptions],
    parameters: Mapping[str, Value],
    settings: Mapping[str, float],
    time: float | None,
    interface: str,
    changed: Mapping[str, float],
) -> SampleMap:
    """Open the map of an FMU with changed parameters."""
    values = {**parameters, **changed}
    return SampleMap.open(FmuFile(*file), parameters=values, settings=settings, time=time, interface=interface)
