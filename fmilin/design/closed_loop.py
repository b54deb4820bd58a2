"""The nonlinear plant on its manifold under a sampled regulator, with what real actuators and sensors do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fmilin.connected.connect import connect
from fmilin.connected.sampled_member import Actuator, HeldMember, Law, Schedule
from fmilin.design.regulators import Regulator, regulator_of
from fmilin.ground.errors import UnknownNameError, UsageError
from fmilin.ground.signals import FloatArray, Signal, Signals
from fmilin.manifold.operating_points import operating_point
from fmilin.model.interface import Model, ModelInfo, OperatingPoint
from fmilin.motion.simulation.run import simulate
from fmilin.motion.simulation.trajectory import Trajectory

_PLANT, _REGULATOR = "plant", "regulator"


def closed_loop(
    model: Model,
    regulator: Any,
    point: OperatingPoint | None = None,
    *,
    stop_time: float,
    start: OperatingPoint | None = None,
    limits: Mapping[str, tuple[float, float]] | None = None,
    delay: float = 0.0,
    noise: Mapping[str, float] | None = None,
    seed: int = 0,
    **simulation: Any,
) -> Trajectory:
    """Simulate a nonlinear model under a sampled regulator.

    At every sample the regulator reads the plant, noise added, and answers; the answer is limited and, after the delay,
    held until the next one takes effect.

    Parameters
    ----------
    model : Model
        The plant.
    regulator : control.StateSpace, LinearModel, or a regulator
        Sampled. A system of python-control (its input labels name variables of the plant, its output labels inputs)
        works in deviations from ``point``, and its sign is its own: u - u0 = R (y - y0), with no minus. Or what
        :func:`fmilin.design.state_feedback` and :class:`fmilin.design.KalmanRegulator` make, or any object with
        ``reads``, ``drives``, ``sample_time``, ``restart``, ``answer(t, read)`` and ``applied(outputs)``.
    point : OperatingPoint, optional
        That of the regulator; where the model starts by default.
    stop_time : float
        In seconds.
    start : OperatingPoint, optional
        Where the motion starts; ``point`` by default.
    limits : mapping of str to (float, float), optional
        Of inputs: the least and the largest value, absolute.
    delay : float
        From a sample to its effect, in seconds.
    noise : mapping of str to float, optional
        Standard deviation of what is read, by variable.
    seed : int
        Of the noise.
    **simulation
        ``inputs`` (the other inputs of the plant over time: disturbances, set points), ``step`` (of the result; the
        regulator's own by default), ``stabilization``, ``method``, ``progress``: as for :func:`fmilin.simulate`.

    Returns
    -------
    Trajectory
        Of the plant, with all its inputs as they were applied.

    Raises
    ------
    UsageError, UnknownNameError
        When the regulator does not fit the plant, or a limit, delay or noise is none.
    ConstraintError, NumericalError
        As for :func:`fmilin.simulate`.
    """
    point = operating_point(model) if point is None else point
    start = point if start is None else start
    u0 = dict(zip(model.inputs.names, point.inputs.tolist(), strict=True))
    law = regulator_of(
        regulator,
        partial(_value_at, model, point),
        lambda name: u0[model.inputs[model.inputs.index_of(name, "an input")].name],
    )
    member = _member(law, model, start, u0, _Imperfect(limits or {}, delay, noise or {}, seed))
    driven = {model.inputs.index_of(name, "an input of the plant") for name in law.drives}
    others = [s.name for j, s in enumerate(model.inputs) if j not in driven]
    system = connect(
        {_PLANT: model, _REGULATOR: member},
        [(f"{_PLANT}.{r}", f"{_REGULATOR}.{r}") for r in law.reads]
        + [(f"{_REGULATOR}.{d}", f"{_PLANT}.{d}") for d in law.drives],
        inputs={name: f"{_PLANT}.{name}" for name in others},
        outputs={s.name: f"{_PLANT}.{s.name}" for s in model.outputs}
        | {f"{_REGULATOR}.{d}": f"{_REGULATOR}.{d}" for d in law.drives},
        name=model.info.name,
    )
    remaining = [model.inputs.index_of(name) for name in others]
    ran = simulate(
        system,
        OperatingPoint(start.time, start.states, start.inputs[remaining], {}),
        stop_time=stop_time,
        **{"step": law.sample_time, **simulation},
    )
    return _of_plant(ran, model, law)


def _value_at(model: Model, point: OperatingPoint, name: str) -> float:
    """Return the value of any variable of the plant at the point."""
    if model.states.has(name):
        return float(point.states[model.states.index_of(name)])
    view = model.with_interface(None, [name])
    return float(view.evaluate(point.time, point.states, point.inputs).outputs[0])


class _Imperfect:
    def __init__(
        self, limits: Mapping[str, tuple[float, float]], delay: float, noise: Mapping[str, float], seed: int
    ) -> None:
        if not (np.isfinite(delay) and delay >= 0):
            raise UsageError(f"The delay is a number of seconds, 0 or more, not {delay:g}.")
        for name, (least, largest) in limits.items():
            if not least < largest:
                raise UsageError(f"The limits of '{name}' are {least:g} and {largest:g}: the first is the smaller one.")
        for name, sd in noise.items():
            if not (np.isfinite(sd) and sd >= 0):
                raise UsageError(f"The noise of '{name}' is {sd:g}: a standard deviation is finite and 0 or more.")
        self.limits, self.delay, self.noise, self.seed = limits, delay, noise, seed

    def actuator(self, drives: tuple[str, ...]) -> Actuator:
        for name in self.limits:
            if name not in drives:
                raise UnknownNameError.among(name, drives, "an input that the regulator drives")
        bounds = np.array([self.limits.get(name, (-np.inf, np.inf)) for name in drives], dtype=np.float64)
        return Actuator(bounds[:, 0], bounds[:, 1], self.delay)

    def deviations(self, reads: tuple[str, ...]) -> FloatArray:
        for name in self.noise:
            if name not in reads:
                raise UnknownNameError.among(name, reads, "a variable that the regulator reads")
        return np.array([self.noise.get(name, 0.0) for name in reads])


class _Noisy:
    """A law whose readings are noisy; the same noise in every run."""

    def __init__(self, law: Law, deviations: FloatArray, seed: int) -> None:
        self.law, self.deviations, self.seed = law, deviations, seed
        self._random = np.random.default_rng(seed)

    def restart(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self.law.restart()

    def answer(self, t: float, read: FloatArray) -> FloatArray:
        return self.law.answer(t, read + self.deviations * self._random.standard_normal(len(read)))

    def applied(self, outputs: FloatArray) -> None:
        self.law.applied(outputs)


def _member(
    law: Regulator, model: Model, start: OperatingPoint, u0: Mapping[str, float], real: _Imperfect
) -> HeldMember:
    if not (np.isfinite(law.sample_time) and law.sample_time > 0):
        raise UsageError(f"The regulator's sample time is {law.sample_time:g} s: it must be positive and finite.")
    actuator, deviations = real.actuator(law.drives), real.deviations(law.reads)
    named = [model.inputs[model.inputs.index_of(name, "an input of the plant")] for name in law.drives]
    held = Signals(Signal(name, s.unit, start=u0[s.name]) for name, s in zip(law.drives, named, strict=True))
    ran = _Noisy(law, deviations, real.seed) if deviations.any() else law
    info = ModelInfo(_REGULATOR)
    return HeldMember(info, ran, Schedule(law.sample_time, start.time), Signals(law.reads), held, actuator=actuator)


def _of_plant(ran: Trajectory, model: Model, law: Regulator) -> Trajectory:
    """Return the trajectory with the plant's own names, all its inputs among them."""
    ny = len(model.outputs)
    driven = {model.inputs.index_of(name): ran.outputs[:, ny + i] for i, name in enumerate(law.drives)}
    columns = [driven[j] if j in driven else ran[s.name] for j, s in enumerate(model.inputs)]
    return replace(
        ran,
        inputs=np.array(columns).reshape(len(model.inputs), len(ran)).T,
        outputs=ran.outputs[:, :ny],
        state_signals=model.states,
        input_signals=model.inputs,
        output_signals=model.outputs,
    )
