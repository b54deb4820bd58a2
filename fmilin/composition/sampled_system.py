"""Connected systems of continuous models and maps: ``DiscreteModel`` as members, of one or several sample times.

The equations of such a system are neither rates nor increments alone: it is not evaluated as a whole. Its fixed points
are the equilibria of a companion in which the increments F(x, u) - x of maps stand as rates. Its linear model is that
from sample to sample, lifted over the common period. It is simulated with maps that sample and hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from fmilin.composition.algebraic_loops import depends_at_once
from fmilin.composition.hybrid_system import build_system
from fmilin.composition.linear_member import HeldMember, SampledMember, SamplingTimes
from fmilin.composition.sampled_loop import End, linearize_sampled_loop
from fmilin.composition.system import ConnectedModel
from fmilin.composition.system_declaration import in_member, parameters_by_member
from fmilin.errors import UsageError
from fmilin.linear_model.builder import find_inputs, with_inputs
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.linearize import linearize_request
from fmilin.linearization.request import Request
from fmilin.manifold.operating_points import apply_point_parameters
from fmilin.model.capabilities import HasSamples
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.models.map_model import DiscreteModel, MapModel
from fmilin.signals import FloatArray, Signals


class FixedPointForm(ConnectedModel):
    """A system in which increments of maps stand as rates: its equilibria are the fixed points."""

    map_period = float("nan")


class SampledSystem(ConnectedModel, HasSamples):
    """A connected system with maps among its members, which ``fl.connect`` returns for these.

    ``fl.trim``, ``fl.operating_point``, ``fl.linearize``, ``fl.simulate``, ``fl.loop_transfer`` and ``fl.opened`` take
    it; linear models of it have a ``sample_time``, the common period of all samples, and are exact. Other functions
    raise a UsageError.

    >>> import fmilin as fl
    >>> from fmilin.models import DiscreteModel, OdeModel
    >>> plant = OdeModel("plant", {"x": "u"}, inputs=["u"], outputs={"y": "x"})
    >>> law = DiscreteModel("law", {"s": "s + y"}, sample_time=0.5, inputs=["y"], outputs={"u": "-y - s/4"})
    >>> loop = fl.connect({"plant": plant, "law": law}, [("plant.y", "law.y"), ("law.u", "plant.u")])
    >>> fl.linearize(loop).A
    array([[ 0.5  , -0.125],
           [ 1.   ,  1.   ]])
    """

    _made_by = "fl.connect makes one of members among which are maps, such as fl.models.DiscreteModel"

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Raise UsageError: sampled members have no rates."""
        self._reject()

    def require_rates(self, purpose: str) -> None:
        """Raise UsageError: sampled members have no rates."""
        self._reject()

    def _reject(self) -> NoReturn:
        names = ", ".join(self.map_members)
        raise UsageError(
            f"'{self.info.name}' has sampled members ({names}); this function needs a continuous model. Linearize "
            "the system (fl.linearize): its linear model goes from sample to sample."
        )

    def has_graph(self) -> bool:
        """Say that maps are not equations in time."""
        return False

    @property
    def map_members(self) -> dict[str, MapModel]:
        """The members that are maps, by name."""
        return {name: member for name, member in self.members.items() if isinstance(member, MapModel)}

    def without_samples(self) -> FixedPointForm:
        """Return the system in which increments are rates."""
        return FixedPointForm(self.declaration, owner=False)

    def hold_samples(self, point: OperatingPoint) -> tuple[Model, OperatingPoint]:
        """Return the system with maps that sample and hold from a point on, and its continuous part."""
        system: SampledSystem = apply_point_parameters(self, point)  # type: ignore[assignment]
        points = system._find_member_points(point)
        members: dict[str, Model] = {}
        for name, member in system.members.items():
            x, v = points[name]
            members[name] = (
                MapMember(member, OperatingPoint(point.time, x, v)) if isinstance(member, MapModel) else member
            )
        return system._replace_maps(members, point)

    def hold_linear_maps(self, point: OperatingPoint, request: Request) -> tuple[ConnectedModel, OperatingPoint]:
        """Return the same with the linear models of maps in their places."""
        points = self._find_member_points(point)
        how = replace(request, independent=None, inputs=None, outputs=None)
        members: dict[str, Model] = {}
        for name, member in self.members.items():
            members[name] = member
            if not isinstance(member, MapModel):
                continue
            x, v = points[name]
            with in_member(name):
                map_with_states = show_states(member)
                members[name] = SampledMember(linearize_request(map_with_states, OperatingPoint(point.time, x, v), how))
        return self._replace_maps(members, point)

    def _find_member_points(self, point: OperatingPoint) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Return states and inputs of all members at a point."""
        coupling = self.without_samples().coupling
        points = coupling.compute_member_points(point.time, point.states, point.inputs)
        return {part.name: at for part, at in zip(coupling.parts, points, strict=True)}

    def _replace_maps(
        self, members: Mapping[str, Model], point: OperatingPoint
    ) -> tuple[ConnectedModel, OperatingPoint]:
        """Return the system of other members, and the states of the continuous ones."""
        holding_system = build_system(replace(self.declaration, members=members))
        is_continuous = [not isinstance(member, MapModel) for member in self.members.values() for _ in member.states]
        states = point.states[np.array(is_continuous, dtype=bool)]
        of_maps = parameters_by_member(point.parameters, self.members).keys() & self.map_members.keys()
        parameters = {
            name: value
            for name, value in point.parameters.items()
            if not parameters_by_member({name: value}, self.members).keys() & of_maps
        }
        return holding_system, replace(point, states=states, parameters=parameters, names=((), ()))

    def linearize_samples(
        self, point: OperatingPoint, request: Request, delays: Mapping[End, float] | None = None
    ) -> LinearModel:
        """Return the linear model from sample to sample, exact for continuous members with held inputs."""
        system: SampledSystem = apply_point_parameters(self, point)  # type: ignore[assignment]
        if request.outputs is not None:
            system = system.with_interface(None, list(request.outputs))
        holding_system, at = system.hold_linear_maps(point, request)
        how = replace(request, inputs=None, outputs=None)
        linear = linearize_sampled_loop(holding_system, at, how, delays)
        if point.parameters:
            linear = replace(linear, point=replace(linear.point, parameters=dict(point.parameters)))
        return linear if request.inputs is None else with_inputs(linear, find_inputs(linear.inputs, request.inputs))


class MapMember(HeldMember):
    """A map between its samples; its states are outputs as well."""

    def __init__(self, member: MapModel, start: OperatingPoint) -> None:
        map_with_states = show_states(member)
        law = MapLaw(map_with_states, start)
        evaluation = map_with_states.evaluate(start.time, start.states, start.inputs)
        inputs = Signals(s.with_start(v) for s, v in zip(map_with_states.inputs, start.inputs.tolist(), strict=True))
        outputs = Signals(
            s.with_start(v) for s, v in zip(map_with_states.outputs, evaluation.outputs.tolist(), strict=True)
        )
        super().__init__(member.info, law, SamplingTimes(member.sample_time, start.time), inputs, outputs)


class MapLaw:
    """A map that answers with its outputs at each sample, and moves on."""

    def __init__(self, map_with_states: MapModel, start: OperatingPoint) -> None:
        self._map, self._start = map_with_states, start.states.copy()
        self._states = self._start.copy()

    def restart(self) -> None:
        """Go back to before the first sample."""
        self._states = self._start.copy()

    @property
    def structure(self) -> NDArray[np.bool_]:
        """Which outputs depend on which inputs at a sample."""
        return depends_at_once(self._map.info.name, self._map)

    def compute_outputs(self, t: float, read: FloatArray) -> FloatArray:
        """Return the outputs for inputs, without moving on."""
        return self._map.evaluate(t, self._states, read).outputs

    def answer(self, t: float, read: FloatArray) -> FloatArray:
        """Return the outputs, and move on to the next sample."""
        evaluation = self._map.evaluate(t, self._states, read)
        self._states = self._states + evaluation.derivatives
        return evaluation.outputs

    def update_states(self, outputs: FloatArray) -> None:
        """Do nothing: a map has no limits of actuators."""


def show_states(member: MapModel) -> MapModel:
    """Return a map with its states behind its outputs."""
    further = [name for name in member.states.names if not member.outputs.has(name)]
    return member.with_interface(None, [*member.outputs.names, *further]) if further else member


def make_map(linear: LinearModel) -> MapModel:
    """Return a sampled linear model as a map."""
    x0, u0 = linear.y0, np.array([linear.point.inputs.get(s.name, s.start) for s in linear.inputs])
    states = Signals(s.with_start(float(v)) for s, v in zip(linear.states, x0, strict=True))
    inputs = Signals(s.with_start(float(v)) for s, v in zip(linear.inputs, u0, strict=True))

    def advance(_: float, x: Any, u: Any) -> Any:
        return x0 + linear.f0 + linear.A @ (x - x0) + linear.B @ (u - u0)

    def make_output(row: int, value: float) -> Any:
        return lambda _, x, u: value + linear.C[row] @ (x - x0) + linear.D[row] @ (u - u0)

    outputs = {s.name: make_output(i, linear.point.outputs.get(s.name, 0.0)) for i, s in enumerate(linear.outputs)}
    return DiscreteModel.from_function(
        linear.model.name,
        states,
        advance,
        sample_time=linear.sample_time,
        inputs=inputs,
        outputs=outputs,
        analytic=True,
    )
