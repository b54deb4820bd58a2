"""The nonlinear plant on its manifold under a sampled regulator, with what real actuators and sensors do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from fmilin.composition.connect import connect
from fmilin.composition.linear_member import SIMULTANEOUS_TIME_TOLERANCE, ActuatorLimits, HeldMember, Law, SamplingTimes
from fmilin.design.regulator_protocol import Regulator
from fmilin.design.regulators import (
    EstimatorRegulator,
    KalmanRegulator,
    LinearRegulator,
    StateFeedback,
    build_regulator,
)
from fmilin.errors import UnknownNameError, UsageError
from fmilin.manifold.operating_points import operating_point, require_sizes
from fmilin.model.interface import Model, ModelInfo, OperatingPoint
from fmilin.models.ode import OdeModel
from fmilin.signals import FloatArray, Signal, Signals, as_numbers, limits_by_name
from fmilin.simulation.run import simulate
from fmilin.simulation.trajectory import Trajectory
from fmilin.support.kinds import kinds_checked

if TYPE_CHECKING:
    from control import StateSpace, TransferFunction

    from fmilin.linear_model.model import LinearModel
    from fmilin.simulation.inputs import Inputs
    from fmilin.simulation.method import Method
    from fmilin.simulation.stabilization import Stabilization

_PLANT, _REGULATOR = "plant", "regulator"


class SimulationOptions(TypedDict, total=False):
    """Options of :func:`fmilin.simulate` that a closed loop takes, too."""

    start_time: float | None
    step: float | None
    inputs: Inputs | None
    stabilization: Stabilization | str
    method: Method | str
    energy: str | None
    progress: Callable[[float], None]
    stop: Callable[[], bool]
    formulation: Stabilization | str | None


@kinds_checked
def closed_loop(
    model: Model,
    regulator: Regulator | LinearModel | StateSpace | TransferFunction,
    point: OperatingPoint | None = None,
    *,
    stop_time: float,
    start: OperatingPoint | None = None,
    limits: Mapping[str, tuple[float, float]] | None = None,
    delay: float = 0.0,
    noise: Mapping[str, float] | None = None,
    seed: int = 0,
    quantization: Mapping[str, float] | None = None,
    sample_times: Mapping[str, float] | None = None,
    disturbances: Mapping[str, float | Callable[[float], float]] | None = None,
    **simulation: Unpack[SimulationOptions],
) -> Trajectory:
    """Return the motion of a nonlinear model under a sampled regulator, with all its inputs as they were applied.

    At every sample the regulator reads the plant, disturbed, noise added and in steps of the sensor, and answers; the
    answer is limited and, after the delay, held until the next one takes effect. A linear regulator with
    feedthrough corrects its states by the limited outputs (Hanus' conditioning, where that is stable).
    Angles that wrap deviate from an operating value, or from a prediction, by half a turn at most. Raises
    UsageError or UnknownNameError when the regulator does not fit the plant, or a limit, delay or noise is not valid;
    ConstraintError, NumericalError as for :func:`fmilin.simulate`.

    Parameters
    ----------
    model : Model
    regulator : control.StateSpace, LinearModel, or a regulator
        Sampled. A system of python-control (its input labels name variables of the plant, its output labels inputs)
        works in deviations from ``point``, and its sign is its own: u - u0 = R (y - y0), with no minus. Or what
        :func:`fmilin.design.state_feedback` and :class:`fmilin.design.KalmanRegulator` make, or any object with
        ``reads``, ``drives``, ``sample_time``, ``restart``, ``answer(t, read)`` and ``update_states(outputs)``.
    point : OperatingPoint, optional
        That of the regulator; where the model starts by default.
    stop_time : float, in seconds
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
    quantization : mapping of str to float, optional
        The step in which a variable is read, or an input set.
    sample_times : mapping of str to float, optional
        Seconds between readings of a variable that comes more rarely than the regulator runs; held meanwhile.
    disturbances : mapping of str to float or callable, optional
        What is added, as a function of time in seconds: to an input that the regulator drives, behind the actuator, or
        to what is read.
    **simulation
        ``inputs`` (the other inputs of the plant over time: set points, forces), ``step`` (of the result; the
        regulator's own by default), ``stabilization``, ``method``, ``progress``: as for :func:`fmilin.simulate`.
    """
    point = operating_point(model) if point is None else point
    require_sizes(model, point)
    start = point if start is None else start
    u0 = dict(zip(model.inputs.names, point.inputs.tolist(), strict=True))
    law = build_regulator(
        regulator,
        partial(_evaluate_variable, model, point),
        lambda name: u0[model.inputs[model.inputs.index_of(name, "an input")].name],
    )
    if isinstance(law, LinearRegulator | StateFeedback):
        law = law.with_turns([_find_turn(model, name) for name in law.reads])
    rest = quantization or {}, sample_times or {}, disturbances or {}
    real = _Imperfect(limits or {}, delay, noise or {}, seed, *rest)
    member = _member(law, model, start, u0, real)
    driven = {model.inputs.index_of(name, "an input of the plant") for name in law.drives}
    undriven_inputs = [s.name for j, s in enumerate(model.inputs) if j not in driven]
    shaken = [name for name in law.drives if name in real.disturbances]
    feeds = {name: f"{name} disturbed.u" if name in shaken else f"{_REGULATOR}.{name}" for name in law.drives}
    system = connect(
        {_PLANT: model, _REGULATOR: member}
        | {f"{name} disturbed": OdeModel("sum", {}, inputs=["a", "w"], outputs={"u": "a + w"}) for name in shaken},
        [(f"{_PLANT}.{r}", f"{_REGULATOR}.{r}") for r in law.reads]
        + [(feed, f"{_PLANT}.{name}") for name, feed in feeds.items()]
        + [(f"{_REGULATOR}.{name}", f"{name} disturbed.a") for name in shaken],
        inputs={name: f"{_PLANT}.{name}" for name in undriven_inputs}
        | {f"{name} disturbed": f"{name} disturbed.w" for name in shaken},
        outputs={s.name: f"{_PLANT}.{s.name}" for s in model.outputs} | {feed: feed for feed in feeds.values()},
        name=model.info.name,
    )
    if shaken:
        simulation["inputs"] = _with(simulation.get("inputs"), {f"{n} disturbed": real.disturbances[n] for n in shaken})
    u = np.concatenate((start.inputs[[model.inputs.index_of(name) for name in undriven_inputs]], np.zeros(len(shaken))))
    options: SimulationOptions = {"step": law.sample_time, **simulation}
    ran = simulate(
        system,
        OperatingPoint(start.time, start.states, u, {}),
        stop_time=stop_time,
        **options,
    )
    observed = law.remarks if isinstance(law, KalmanRegulator | EstimatorRegulator) else ()
    limited = {name: (float(low), float(high)) for name, (low, high) in (limits or {}).items()}
    return _of_plant(replace(ran, remarks=(*ran.remarks, *observed), limits=limited), model, law)


def _with(inputs: Any, more: Mapping[str, Any]) -> Mapping[str, Any]:
    if inputs is not None and not isinstance(inputs, Mapping):
        raise UsageError("With disturbances, give the other inputs by name: inputs={NAME: value or function}.")
    return {**(inputs or {}), **more}


def _evaluate_variable(model: Model, point: OperatingPoint, name: str) -> float:
    """Return the value of any variable of the plant at the point."""
    if model.states.has(name):
        return float(point.states[model.states.index_of(name)])
    view = model.with_interface(None, [name])
    return float(view.evaluate(point.time, point.states, point.inputs).outputs[0])


def _find_turn(model: Model, name: str) -> float | None:
    """Return the turn of a variable of the plant that wraps; None where it is not known to wrap."""
    return None if model.states.has(name) else model.with_interface(None, [name]).output_turns[0]


@dataclass(frozen=True)
class _Imperfect:
    """The imperfections between the regulator and the plant."""

    limits: Mapping[str, tuple[float, float]]
    delay: float
    noise: Mapping[str, float]
    seed: int
    quantization: Mapping[str, float]
    sample_times: Mapping[str, float]
    disturbances: Mapping[str, float | Callable[[float], float]]

    def __post_init__(self) -> None:
        if not (np.isfinite(as_numbers(self.delay, "The delay")) and self.delay >= 0):
            raise UsageError(f"The delay must be a number of seconds, 0 or more, not {self.delay:g}.")
        limits_by_name(self.limits)
        for name, sd in self.noise.items():
            if not (np.isfinite(as_numbers(sd, f"The noise of '{name}'")) and sd >= 0):
                raise UsageError(f"The noise of '{name}' is {sd:g}: a standard deviation is finite and 0 or more.")
        for what, values in (("step in which", self.quantization), ("sample time at which", self.sample_times)):
            for name, value in values.items():
                if not (np.isfinite(as_numbers(value, f"The {what} '{name}' comes")) and value > 0):
                    raise UsageError(f"The {what} '{name}' comes must be positive and finite, not {value:g}.")

    def actuator(self, drives: tuple[str, ...]) -> ActuatorLimits:
        for name in self.limits:
            if name not in drives:
                raise UnknownNameError.among(name, drives, "an input that the regulator drives")
        bounds = np.array([self.limits.get(name, (-np.inf, np.inf)) for name in drives], dtype=np.float64)
        return ActuatorLimits(bounds[:, 0], bounds[:, 1], self.delay)

    def around(self, law: Regulator) -> Law:
        """Return the regulator as it reads and answers through these."""
        for values, names, what in (
            (self.noise, law.reads, "a variable that the regulator reads"),
            (self.sample_times, law.reads, "a variable that the regulator reads"),
            (self.quantization, (*law.reads, *law.drives), "a variable that the regulator reads or drives"),
            (self.disturbances, (*law.reads, *law.drives), "a variable that the regulator reads or drives"),
        ):
            for name in values:
                if name not in names:
                    raise UnknownNameError.among(name, names, what)
        acts = any((self.noise, self.sample_times, self.quantization, self.disturbances))
        return _ConvertedLaw(law, self) if acts else law


class _ConvertedLaw:
    """A law behind its converters: disturbed, noisy, quantized readings at their own rates; the same in every run."""

    def __init__(self, law: Regulator, real: _Imperfect) -> None:
        self.law, self.real = law, real
        self._deviations = np.array([real.noise.get(name, 0.0) for name in law.reads])
        self._read_intervals = np.array([real.sample_times.get(name, 0.0) for name in law.reads])
        self._steps = [np.array([real.quantization.get(n, 0.0) for n in names]) for names in (law.reads, law.drives)]
        self.restart()

    def restart(self) -> None:
        self._random = np.random.default_rng(self.real.seed)
        self._last, self._due = np.zeros(len(self._read_intervals)), np.full(len(self._read_intervals), -np.inf)
        self.law.restart()

    def answer(self, t: float, read: FloatArray) -> FloatArray:
        added = [self.real.disturbances.get(name, 0.0) for name in self.law.reads]
        moved = read + [float(d(t)) if callable(d) else d for d in added]
        moved = moved + self._deviations * self._random.standard_normal(len(read))
        fresh = t >= self._due - SIMULTANEOUS_TIME_TOLERANCE * self.law.sample_time
        begun = np.where(np.isfinite(self._due), self._due, t)
        self._due = np.where(fresh, begun + self._read_intervals, self._due)
        self._last = np.where(fresh, _in_steps(moved, self._steps[0]), self._last)
        return _in_steps(np.asarray(self.law.answer(t, self._last)), self._steps[1])

    def update_states(self, outputs: FloatArray) -> None:
        self.law.update_states(outputs)


def _in_steps(values: FloatArray, steps: FloatArray) -> FloatArray:
    return np.where(steps > 0, np.round(values / np.where(steps > 0, steps, 1.0)) * steps, values)


def _member(
    law: Regulator, model: Model, start: OperatingPoint, u0: Mapping[str, float], real: _Imperfect
) -> HeldMember:
    if not (np.isfinite(law.sample_time) and law.sample_time > 0):
        raise UsageError(f"The regulator's sample time must be positive and finite, not {law.sample_time:g} s.")
    actuator = real.actuator(law.drives)
    named = [model.inputs[model.inputs.index_of(name, "an input of the plant")] for name in law.drives]
    drive_signals = Signals(Signal(name, s.unit, start=u0[s.name]) for name, s in zip(law.drives, named, strict=True))
    info = ModelInfo(_REGULATOR)
    return HeldMember(
        info,
        real.around(law),
        SamplingTimes(law.sample_time, start.time),
        Signals(law.reads),
        drive_signals,
        actuator=actuator,
    )


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
        output_signals=model.wrapped_outputs,
        model_name=model.info.name,
    )
