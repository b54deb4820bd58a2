"""Simulate a model on its manifold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import NumericalError, UsageError
from fmilin.manifold.operating_points import operating_point
from fmilin.manifold.projection import require_on_manifold
from fmilin.manifold.selection import kinematic_pairs
from fmilin.model.capabilities import HasSamples, compile_model
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.locks import one_at_a_time
from fmilin.model.stepping import Hybrid, Stepped
from fmilin.signals import FloatArray, RealArray, as_numbers
from fmilin.simulation.inputs import Inputs, input_course
from fmilin.simulation.integration_loop import IntegrationPlan, MotionIntegration, MotionSample
from fmilin.simulation.map_run import run_map
from fmilin.simulation.method import Method
from fmilin.simulation.projector import require_invariance
from fmilin.simulation.stabilization import Clocked, Energy, IntegratedCoordinates, Plant, Stabilization
from fmilin.simulation.stabilizations import Underlying, stabilization_named
from fmilin.simulation.time_breaks import TimeBreaks, find_time_breaks
from fmilin.simulation.trajectory import EventRecord, Statistics, Trajectory
from fmilin.tolerances import START_GAP_TOLERANCE

EVENT = "event"  # instead of a comparison
MAX_WAIT_SECONDS = 1000.0  # seconds until something comes true
DEFAULT_INTERVAL_COUNT = 500  # samples of a run that asks for no step, less one


@one_at_a_time
def simulate(
    model: Model,
    point: OperatingPoint | None = None,
    *,
    stop_time: float,
    start_time: float | None = None,
    step: float | None = None,
    inputs: Inputs | None = None,
    stabilization: Stabilization | str = "projection",
    method: Method | str = "DOP853",
    energy: str | None = None,
    progress: Callable[[float], None] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
    formulation: Stabilization | str | None = None,
) -> Trajectory:
    """Return the motion of a model on the manifold of its constraints.

    Parameters
    ----------
    model : Model
        A hybrid one starts in its first mode, and stays in the mode that it has reached.
    point : OperatingPoint, optional
        Where to start; where the model itself starts by default.
    stop_time : float, in seconds
    start_time : float, optional
        In seconds; that of the point, or the model's own.
    step : float, optional
        Of the samples, in seconds; a 500th of the whole by default. It does not bind the integrator.
    inputs : mapping, InputTable or callable, optional
        Inputs over time; they keep the values of the point where nothing is said.
    stabilization : Stabilization or {"projection", "local", "baumgarte", "none"}
        How the states are kept on the manifold; ``formulation`` is its old name.
    method : Method or str
        The integrator and its tolerances.
    energy : str, optional
        An expression or the name of a variable: recorded along the motion.
    progress : callable, optional
        Called with the time after each step.
    stop : callable, optional
        Asked after each sample; once it says yes, the motion ends there, with a diagnostic ``interrupted``.
    formulation : Stabilization or str, optional

    Raises
    ------
    UsageError, UnknownNameError
        When the request does not fit the model.
    ConstraintError
        When the start violates a constraint, or the motion does not keep one.
    NumericalError
        When the integration cannot go on, with the time and the reason.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.systems import cartesian_pendulum
    >>> motion = fl.simulate(cartesian_pendulum(angle=1.0), stop_time=2.0, step=0.5)
    >>> motion["angle"].round(6).tolist()
    [1.0, 0.104258, -0.980067, -0.307871, 0.920794]
    >>> motion.largest_drift < 1e-14
    True
    """
    if isinstance(model, HasSamples):
        holding_model, at = model.hold_samples(_choose_start(model.without_samples(), point, start_time))
        return simulate(
            holding_model,
            at,
            stop_time=stop_time,
            step=step,
            inputs=inputs,
            stabilization=formulation or stabilization,
            method=method,
            energy=energy,
            progress=progress,
            stop=stop,
        )
    start = _choose_start(model, point, start_time)
    if model.map_period:
        if energy is not None:
            raise UsageError("Along a sampled model energy= is not recorded: add it to its outputs.")
        return run_map(model, start, stop_time, step, inputs)
    request = RunRequest(inputs, formulation or stabilization, method, energy, progress, stop=stop)
    return simulate_at_times(model, start, _grid(start.time, stop_time, step), request)


@dataclass(frozen=True)
class RunRequest:
    """How to integrate: the arguments of :func:`simulate` that say so."""

    inputs: Inputs | None = None
    stabilization: Stabilization | str = "projection"
    method: Method | str = "DOP853"
    energy: str | None = None
    progress: Callable[[float], None] = lambda _: None
    until: str | None = None
    stop: Callable[[], bool] = lambda: False
    verified: bool = False  # whether it is known that the motion keeps the constraints


@dataclass(frozen=True, eq=False)
class MotionSamples:
    """States and inputs at times of a motion, and the events between them."""

    times: FloatArray  # (K,)
    states: FloatArray  # (K, N)
    inputs: FloatArray  # (K, nu)
    parameters: Mapping[str, float]
    events: tuple[EventRecord, ...] = ()

    def point(self, k: int = -1) -> OperatingPoint:
        """Return a sample as an operating point."""
        return OperatingPoint(float(self.times[k]), self.states[k].copy(), self.inputs[k].copy(), dict(self.parameters))


def verify_motion(model: Model, start: OperatingPoint, request: RunRequest) -> RunRequest:
    """Return the request for further runs: that the motion keeps the constraints is verified here, once for all.

    Raises as :func:`simulate` does before it integrates.
    """
    _prepare_run(model, start, request)
    return replace(request, verified=True)


def sample_motion(model: Model, start: OperatingPoint, times: FloatArray, request: RunRequest) -> MotionSamples:
    """Integrate as :func:`simulate_at_times` does, and return states and inputs alone, at as many times as there are.

    No outputs, energies and drifts are evaluated, which a search for a motion does not need.
    """
    run = _prepare_run(compile_model(model, len(times)), start, request)
    breaks = find_time_breaks(model, run.start, run.plant.course, float(times[-1]))
    integration = run.integration(times, breaks)
    states, inputs = [], []
    for sample in integration.samples(run.start.time, run.start.states):
        if sample.is_wanted:
            states.append(sample.states)
            inputs.append(run.plant.u(sample.time))
    reached = times[: len(states)]
    return MotionSamples(reached, np.array(states), np.array(inputs), start.parameters, tuple(integration.events))


def simulate_at_times(model: Model, start: OperatingPoint, times: FloatArray, request: RunRequest) -> Trajectory:
    """Integrate as :func:`simulate` does, with samples at ``times`` (K,), which increase from that of ``start``."""
    run = _prepare_run(compile_model(model, len(times)), start, request)
    breaks = find_time_breaks(model, run.start, run.plant.course, float(times[-1]), request.stop)
    integration = run.integration(times, breaks)
    recorder = _Recorder(run.plant)
    for sample in integration.samples(run.start.time, run.start.states):
        recorder.take(sample)
        if request.stop():
            remark = Remark("interrupted", f"The simulation was interrupted at t = {sample.time:.9g} s.")
            return replace(_trajectory(run, integration, recorder), remarks=(remark, *breaks.remarks))
    motion = _trajectory(run, integration, recorder)
    return replace(motion, remarks=(*motion.remarks, *breaks.remarks))


@one_at_a_time
def snapshots(
    model: Model,
    point: OperatingPoint | None = None,
    *,
    times: Sequence[float] | RealArray = (),
    until: str | None = None,
    stop_time: float | None = None,
    inputs: Inputs | None = None,
    stabilization: Stabilization | str = "projection",
    method: Method | str = "DOP853",
    progress: Callable[[float], None] = lambda _: None,
    formulation: Stabilization | str | None = None,
) -> Iterator[OperatingPoint]:
    """Yield operating points of one motion, in the order of time: at times, where something comes true, at an event.

    While a point is being examined, a hybrid model is in its mode of that time: linearize there before asking for the
    next one. Raises UsageError, UnknownNameError, ConstraintError or NumericalError as for :func:`simulate`; a
    NumericalError also where ``until`` does not come true in time.

    Parameters
    ----------
    times : sequence of float
        In seconds, increasing, none before the start.
    until : str, optional
        The last point: where this comparison begins to hold, over any variables (``"x > 3"``, ``"v < 0"``), or just
        after the first ``"event"``. Points at ``times`` that come later are left out.
    stop_time : float, optional
        In seconds: how long to wait for that; 1000 s by default.
    model, point, inputs, stabilization, method, progress, formulation
        As for :func:`simulate`.
    """
    start = _choose_start(model, point, None)
    requested_times = as_numbers(times, "One of the times of the snapshots")
    grid = requested_times if until is None else _append_wait_end(requested_times, start.time, stop_time)
    request = RunRequest(inputs, formulation or stabilization, method, progress=progress, until=until)
    run = _prepare_run(compile_model(model, len(grid)), start, request)
    if not grid.size or not np.isfinite(grid).all() or (np.diff(grid) <= 0).any() or grid[0] < run.start.time:
        raise UsageError(
            f"The times of the snapshots must be finite numbers that increase, none before the start at "
            f"{run.start.time:g} s."
        )
    breaks = find_time_breaks(model, run.start, run.plant.course, float(grid[-1]))
    integration = run.integration(grid, breaks)
    for sample in integration.samples(run.start.time, run.start.states):
        if sample.is_wanted and (integration.met or until is None or sample.time in requested_times):
            yield run.plant.point(sample.time, sample.states)
    if until is not None and not integration.met:
        near = integration.nearest
        short = f": the closest value is off by {-near:.4g}" if np.isfinite(near) else ""
        text = f"'{until}' does not become true before t = {grid[-1]:g} s{short}. {integration.ended} Simulate longer "
        raise NumericalError(f"{text}(fl.snapshots(model, stop_time=T)), or change the condition.".replace("  ", " "))
    if integration.ended:
        raise UsageError(f"{integration.ended} Later snapshots do not exist: choose earlier times.")


def _append_wait_end(times: FloatArray, start: float, stop: float | None) -> FloatArray:
    """Return the times of samples, and where the wait ends."""
    end = start + MAX_WAIT_SECONDS if stop is None else float(stop)
    if not (np.isfinite(end) and end > start):
        raise UsageError(f"The motion cannot stop at {end:g} s: it starts at {start:g} s.")
    return np.append(times[times < end], end)


@dataclass(frozen=True)
class _Run:
    plant: Plant
    integrated: IntegratedCoordinates
    start: OperatingPoint
    method: Method
    stabilization: str
    hybrid: Hybrid | None
    progress: Callable[[float], None]
    until: str | None = None

    def integration(self, grid: FloatArray, breaks: TimeBreaks) -> MotionIntegration:
        plan = IntegrationPlan(
            self.method, grid, self.hybrid, self.progress, _condition(self.plant, self.start, self.until)
        )
        plan = replace(plan, breaks=breaks.times)
        return MotionIntegration(self.plant, self.integrated, replace(plan, until_event=self.until == EVENT))


def _prepare_run(model: Model, start: OperatingPoint, request: RunRequest) -> _Run:
    model.require_rates("integrate it")
    chosen, method = request.stabilization, request.method
    chosen = stabilization_named(chosen) if isinstance(chosen, str) else chosen
    method = Method(method) if isinstance(method, str) else method
    course = input_course(model.inputs, start.inputs, request.inputs)
    course_at_start = course.piece(start.time, start.time)(start.time)
    start = OperatingPoint(start.time, start.states, course_at_start, start.parameters, start.adjusted)
    pairs = kinematic_pairs(model, start) if len(model.constraints) else {}
    plant = Plant(model, start, course, pairs, request.energy)
    otherwise = "The start of the simulation is not on the manifold"
    require_on_manifold(plant.invariants, start.time, start.states, nearer=START_GAP_TOLERANCE, otherwise=otherwise)
    if not (isinstance(chosen, Underlying) or request.verified):
        require_invariance(plant, start.time, start.states)
    integrated = chosen.start(plant)
    if not len(integrated.begin(start.time, start.states)):
        integrated = Clocked(integrated)
    hybrid = model if isinstance(model, Hybrid) else None
    return _Run(plant, integrated, start, method, type(chosen).__name__, hybrid, request.progress, request.until)


def _condition(plant: Plant, start: OperatingPoint, until: str | None) -> Callable[[float, FloatArray], float] | None:
    """Return what is positive where a comparison holds, as a function of time and states."""
    if until is None or until == EVENT:
        return None
    sides = re.fullmatch(r"([^<>=]+)([<>])=?([^<>=]+)", until)
    if sides is None or not (sides[1].strip() and sides[3].strip()):
        raise UsageError(
            f'\'{until}\' is not a comparison of two expressions. Write for example "x > 3", or "{EVENT}".'
        )
    larger, smaller = (sides[1], sides[3]) if sides[2] == ">" else (sides[3], sides[1])
    text = f"({larger.strip()}) - ({smaller.strip()})"
    model = plant.model
    value = Energy(model, text, start, pairs=plant.invariants.pairs, scales=plant.scales, what="condition").value
    return lambda t, x: value(t, x, plant.u(t))


def _choose_start(model: Model, point: OperatingPoint | None, start_time: float | None) -> OperatingPoint:
    if isinstance(model, Stepped):
        raise UsageError(
            f"'{model.info.name}' is a co-simulation FMU, which has its own solver: fmilin does not integrate it. "
            "Compute its linear model at a later time: fl.snapshots(model, times=[T]). To simulate it, use FMPy."
        )
    if point is None:
        return operating_point(model, time=start_time)
    if start_time is None or start_time == point.time:
        return point
    if not np.isfinite(start_time):
        raise UsageError(f"The simulation cannot start at {start_time:g} s: give a finite time.")
    return OperatingPoint(float(start_time), point.states, point.inputs, point.parameters, point.adjusted)


def _grid(start: float, stop: float, step: float | None) -> FloatArray:
    if not np.isfinite(stop) or stop < start:
        raise UsageError(f"The simulation cannot stop at {stop:g} s: it starts at {start:g} s.")
    if stop == start:
        return np.array([start])
    if step is None:
        return np.linspace(start, stop, DEFAULT_INTERVAL_COUNT + 1)
    if not (np.isfinite(step) and step > 0):
        raise UsageError(f"The step of the samples must be a positive number of seconds, not {step:g}.")
    count = int(np.floor((stop - start) / step * (1 + 1e-12) + 1e-9))
    if count > 10_000_000:
        raise UsageError(f"A step of {step:g} s makes {count} samples; the limit is 10 million.")
    grid = start + step * np.arange(count + 1)
    near = abs(grid[-1] - stop) <= 1e-9 * step
    return np.append(grid[:-1] if near else grid, stop)


@dataclass
class _Recorder:
    """Looks at every sample while the plant is at it."""

    plant: Plant
    times: list[float] = field(default_factory=list)
    rows: list[tuple[FloatArray, FloatArray, FloatArray, FloatArray, float]] = field(default_factory=list)

    def take(self, sample: MotionSample) -> None:
        t, x, plant = sample.time, sample.states, self.plant
        u = plant.u(t).copy()
        energy = np.nan if plant.energy is None else plant.energy.value(t, x, u)
        outputs = plant.evaluate(t, x).outputs
        self.times.append(t)
        self.rows.append((x.copy(), u, outputs, plant.h(t, x), energy))

    def columns(self, member: int, width: int) -> FloatArray:
        return np.array([row[member] for row in self.rows]).reshape(len(self.rows), width)


def _trajectory(run: _Run, integration: MotionIntegration, recorder: _Recorder) -> Trajectory:
    model, plant = run.plant.model, run.plant
    remarks = [Remark("ended", integration.ended)] if integration.ended else []
    return Trajectory(
        times=np.array(recorder.times),
        states=recorder.columns(0, len(model.states)),
        inputs=recorder.columns(1, len(model.inputs)),
        outputs=recorder.columns(2, len(model.outputs)),
        state_signals=model.states,
        input_signals=model.inputs,
        output_signals=model.wrapped_outputs,
        drift=recorder.columns(3, len(plant.invariants)),
        invariants=plant.invariants.names,
        energy=np.empty(0) if plant.energy is None else recorder.columns(4, 1)[:, 0],
        stabilization=run.stabilization,
        method=run.method.name,
        switches=tuple(run.integrated.switches),
        events=tuple(integration.events),
        statistics=Statistics(integration.steps, plant.evaluations, run.integrated.projections),
        parameters=tuple(run.start.parameters.items()),
        remarks=tuple(remarks),
        model_name=model.info.name,
    )
