"""Native models with delays in their equations: linearized exactly, and trimmed without the delays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn, Self

import numpy as np

from fmilin.constraints.declared import Constraint
from fmilin.errors import UsageError, quote_first
from fmilin.linear_model import delay_channels
from fmilin.model.capabilities import CutDelays, HasDelays
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray
from fmilin.support.kinds import kinds_checked


def delay_inputs(model: Model, delays: Mapping[str, float]) -> DelayedModel:
    """Return a model with dead time in seconds before inputs, by their names."""
    return DelayedModel(model, model, (), _compute_no_seconds, input_delays=delays)


def _compute_no_seconds(_: Mapping[str, float]) -> Sequence[float]:
    """Return the seconds of no channels."""
    return ()


class DelayedModel(Model, HasDelays):
    """A model with ``delay(x, T)`` in its equations, which ``OdeModel``, ``DaeModel`` and ``LagrangeModel`` return.

    ``fl.trim``, ``fl.operating_point`` and ``fl.linearize`` take it; linear models of it have the delays exactly. Other
    functions raise a UsageError: the derivatives depend on the past. ``without_delays()`` is the model in which
    everything arrives at once, with the same equilibria.

    >>> import fmilin as fl
    >>> hayes = fl.models.OdeModel("Hayes", {"x": "-x - 2*delay(x, tau)"}, parameters={"tau": 1.0})
    >>> lin = fl.linearize(hayes)
    >>> lin.delays, [complex(value) for value in lin.eigenvalues(2).round(6)]
    ({'x': 1.0}, [(-0.092484-1.997283j), (-0.092484+1.997283j)])
    """

    _made_by = "delay(x, T) in equations of fl.models.OdeModel, DaeModel and LagrangeModel makes one"

    def __init__(
        self,
        undelayed: Model,
        cut: Model,
        channels: Sequence[str],
        compute_seconds: Callable[[Mapping[str, float]], Sequence[float]],
        *,
        delays_follow_parameters: bool = False,
        input_delays: Mapping[str, float] | None = None,
    ) -> None:
        """Take a model without delays and one with delayed signals as inputs.

        Parameters
        ----------
        undelayed : Model
            Its last outputs are the signals before the delays, by the names of :meth:`name_ends`.
        cut : Model
            The same with the delayed signals as its last inputs.
        channels : sequence of str
            The names of the delayed signals.
        compute_seconds : callable
            Returns the delays in seconds for values of the parameters.
        delays_follow_parameters : bool
            Whether they depend on them.
        input_delays : mapping of str to float, optional
            Dead time in seconds before inputs of the model.
        """
        self._undelayed, self._cut = undelayed, cut
        self._channels, self._compute_seconds = tuple(channels), compute_seconds
        self.delays_follow_parameters = delays_follow_parameters
        count = len(undelayed.outputs) - len(channels)
        self.info, self.states, self.inputs = undelayed.info, undelayed.states, undelayed.inputs
        self.outputs = undelayed.outputs[:count]
        self.constraints, self.start = undelayed.constraints, undelayed.start
        self.parameters, self.moves_parameters = undelayed.parameters, undelayed.moves_parameters
        self.independent, self.independent_by_default = undelayed.independent, undelayed.independent_by_default
        added = [self.name_ends(name)[0] for name in channels]
        if list(cut.inputs.names) != [*self.inputs.names, *added]:
            raise UsageError(
                f"A delayed signal of '{self.info.name}' ({quote_first(list(channels), 4)}) stands in an equation that "
                "has to be differentiated, as constraints have: the rate of the delayed signal would be needed. Write "
                "delays into equations of motion only."
            )
        self._input_delays = dict(input_delays or {})
        for name in self._input_delays:
            self.inputs.index_of(name, "an input of the model, to be delayed")
        seconds = [float(value) for value in compute_seconds(self.parameters)]
        for name, value in (*zip(self._channels, seconds, strict=True), *self._input_delays.items()):
            if not (math.isfinite(value) and value >= 0):
                raise UsageError(f"The delay of '{name}' is {value:g} s: a delay is finite and not negative.")
        self._seconds = tuple(seconds)

    @property
    def delays(self) -> Mapping[str, float]:
        """The delays in seconds, by the delayed expressions and inputs."""
        return {**dict(zip(self._channels, self._seconds, strict=True)), **self._input_delays}

    @staticmethod
    def name_ends(channel: str) -> tuple[str, str]:
        """Return the names of a delayed ``channel`` behind the delay, of an input, and before it, of an output."""
        return delay_channels.name_ends(channel)

    @property
    def notes(self) -> tuple[str, ...]:
        """Those of the model without delays."""
        return self._undelayed.notes

    @property
    def used_alone(self) -> tuple[object, ...]:
        """The resources of both models."""
        return (*self._undelayed.used_alone, *self._cut.used_alone)

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> NoReturn:
        """Reject every point ``t``, ``x``, ``u``. Raises UsageError: derivatives depend on the past, too."""
        raise UsageError(
            f"'{self.info.name}' has delays ({quote_first(list(self.delays), 4)}), and this is not made for delays: it "
            "would ignore them. Linearize the model (fl.linearize) and use the linear model; model.without_delays() is "
            "the same without delays."
        )

    @kinds_checked
    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Self:
        """Return the model with chosen inputs and outputs, as :meth:`fmilin.Model.with_interface`."""
        behind, before = self._ends()
        chosen_inputs = None if inputs is None else [*inputs, *behind]
        chosen_outputs = [*(self.outputs.names if outputs is None else outputs), *before]
        undelayed = self._undelayed.with_interface(inputs, chosen_outputs)
        if self._cut is self._undelayed:  # nothing but inputs is delayed
            return self._replace_models(undelayed, undelayed)
        return self._replace_models(undelayed, self._cut.with_interface(chosen_inputs, chosen_outputs))

    def _replace_models(self, undelayed: Model, cut: Model) -> Self:
        late = {name: seconds for name, seconds in self._input_delays.items() if undelayed.inputs.has(name)}
        return type(self)(
            undelayed,
            cut,
            self._channels,
            self._compute_seconds,
            delays_follow_parameters=self.delays_follow_parameters,
            input_delays=late,
        )

    def _ends(self) -> tuple[list[str], list[str]]:
        ends = [self.name_ends(name) for name in self._channels]
        return [behind for behind, _ in ends], [before for _, before in ends]

    @kinds_checked
    def with_constraints(self, constraints: Sequence[Constraint]) -> Self:
        """Return the same model with these constraints declared instead of its own."""
        return self._replace_models(
            self._undelayed.with_constraints(constraints), self._cut.with_constraints(constraints)
        )

    @kinds_checked
    def with_parameters(self, values: Mapping[str, float]) -> Self:
        """Return the same model with other parameter values; delays follow the parameters in them."""
        return self._replace_models(self._undelayed.with_parameters(values), self._cut.with_parameters(values))

    def close(self) -> None:
        """Close both models."""
        self._undelayed.close()
        self._cut.close()

    def without_delays(self) -> Model:
        """Return the model in which everything arrives at once."""
        return self._undelayed.with_interface(None, self.outputs.names)

    def cut_delays(self, point: OperatingPoint) -> CutDelays:
        """Return the model with delayed signals as inputs, which have the values at a ``point`` that does not move."""
        model = self.with_parameters(point.parameters) if point.parameters else self
        outputs = model._undelayed.evaluate(point.time, point.states, point.inputs).outputs
        values = outputs[len(self.outputs) :]
        inputs = np.concatenate((point.inputs, values))
        parameters = {name: value for name, value in point.parameters.items() if name in model._cut.parameters}
        return CutDelays(
            model=model._cut,
            point=replace(point, inputs=inputs, parameters=parameters, names=((), ())),
            channels=self._channels,
            seconds=list(model._seconds),
            of_inputs=model._input_delays,
            compute_seconds=self._compute_seconds if self.delays_follow_parameters else None,
        )
