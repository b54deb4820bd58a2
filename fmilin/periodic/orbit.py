"""An orbit: a motion that comes back to where it began, or a turn or a step further on; and what is asked of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, NumericalError, UsageError
from fmilin.manifold.operating_points import assemble_branch_point, operating_point
from fmilin.manifold.selection import kinematic_pairs
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Stepped
from fmilin.numerics.certificate import Certificate
from fmilin.signals import FloatArray
from fmilin.simulation.inputs import input_course
from fmilin.simulation.run import MotionSamples, RunRequest, sample_motion
from fmilin.simulation.trajectory import EventRecord
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr
from fmilin.trimming.trim_request import quantity

AT_EVENT = 1e-6  # of the period: an event that near to its beginning could come before or after it


@dataclass(frozen=True, eq=False, repr=False)
class PeriodicOrbit(TableRepr):
    """A periodic motion of a model."""

    _attributes = ".times, .points, .shift, .free"

    model: Model  #: with the parameters of the orbit
    period: float  #: in seconds
    times: FloatArray  #: shape (m + 1,); in seconds, from the start to the end of one period, equally spaced
    #: the motion at these times; the last one is the first one, turned or shifted by ``shift``
    points: tuple[OperatingPoint, ...]
    #: how well the orbit is determined: its gap, the Newton step, regularity, how far the periodic motion may be from
    #: this one, for each state at the start, the period and what is free
    certificate: Certificate
    #: shape (N,); what the states gain in a period: a turn of the state of ``turn``, what those of ``steady`` move by
    shift: FloatArray
    free: Mapping[str, float] = field(default_factory=dict)  #: what the free inputs and parameters have become
    remarks: tuple[Remark, ...] = ()  #: on the orbit
    run: RunRequest = field(default_factory=RunRequest)  #: how it was integrated: inputs over time, the integrator
    nodes: tuple[OperatingPoint, ...] = ()  #: where the stretches begin that were integrated one by one
    events: tuple[EventRecord, ...] = ()  #: what the motion passes on its way: impacts, switches
    #: shape (N, N), or None; what that distance may change in the deviations of all states after a period
    monodromy_error: FloatArray | None = None

    @implemented_in("fmilin.report.periodic:show_orbit")
    def _print_table(self, page: Sheet) -> None: ...

    @property
    def closure(self) -> float:
        """How far the end is from the start, in sizes of the states."""
        return self.certificate.residual

    @property
    def distance(self) -> Mapping[str, float]:
        """How far the periodic motion may be, for each state at the start, the period and what is free."""
        return self.certificate.distance

    @property
    def regularity(self) -> float:
        """How regular the shooting equations are: near zero where two orbits meet, and inside a family."""
        return self.certificate.regularity

    @property
    def measured(self) -> bool:
        """Whether deviations from it are measured: linear models do not see events, nor into other solvers."""
        return bool(self.events) or isinstance(self.model, Stepped)

    @property
    def start(self) -> OperatingPoint:
        """Where it begins."""
        return self.points[0]

    def sample(self, points: int) -> tuple[OperatingPoint, ...]:
        """Return points + 1 samples of one period, equally spaced."""
        if len(self.points) == points + 1:
            return self.points
        return sample_orbit(self.model, self.nodes, self.period, self.run, points)[0]

    def states(self) -> FloatArray:
        """All states along the orbit, shape (m + 1, N)."""
        return np.array([point.states for point in self.points])


def simulate_motion(model: Model, start: OperatingPoint, times: FloatArray, run: RunRequest) -> MotionSamples:
    """Return the motion at some times (K,), equally spaced ones where a model brings its own solver."""
    if isinstance(model, Stepped):
        return _simulate_steps(model, start, times, run)
    motion = sample_motion(model, start, times, run)
    if len(motion.times) < len(times):
        raise NumericalError(f"The motion ends at t = {motion.times[-1]:.6g} s, before its period does.")
    return motion


def _simulate_steps(model: Stepped, start: OperatingPoint, times: FloatArray, run: RunRequest) -> MotionSamples:
    """Return the motion by a model's own steps, inputs held over each of them."""
    length, count = float(times[-1] - times[0]), len(times) - 1
    # The step of the solver, else the one that is recommended for calls, else that between the times asked for.
    solver_step = model.cadence.internal or model.cadence.step or length / count
    parts = max(1, round(length / count / solver_step))
    step = length / (count * parts)
    signals = model.inputs  # type: ignore[attr-defined]
    course = input_course(signals, start.inputs, run.inputs).piece(start.time, start.time + length)
    u = np.array([course(times[0] + step * k) for k in range(count * parts + 1)])
    states = np.vstack((start.states, model.respond(start, u[:-1], step).states[parts - 1 :: parts]))
    return MotionSamples(times, states, u[::parts], start.parameters)


def require_between_events(events: Sequence[EventRecord], start: float, period: float) -> None:
    """Reject a period that begins at an event."""
    for event in (event for event in events if event.cause not in ("input", "time")):  # those move with the state
        if min(abs(event.time - start), abs(event.time - start - period)) <= AT_EVENT * period:
            raise UsageError(
                f"The period begins at an event, at t = {event.time:.6g} s ({event.cause}): the motions before and "
                "after it cannot be distinguished there. Begin between events (start=, fixed=, time=)."
            )


def sample_orbit(
    model: Model, nodes: tuple[OperatingPoint, ...], period: float, run: RunRequest, points: int
) -> tuple[tuple[OperatingPoint, ...], tuple[EventRecord, ...]]:
    """Return points + 1 samples of one period, each integrated from the node before it, and the events on the way."""
    samples, events = sample_orbit_times(
        model, nodes, nodes[0].time + period * np.arange(points + 1) / points, period, run
    )
    require_between_events(events, nodes[0].time, period)
    return samples, events


def sample_orbit_times(
    model: Model, nodes: tuple[OperatingPoint, ...], times: FloatArray, period: float, run: RunRequest
) -> tuple[tuple[OperatingPoint, ...], tuple[EventRecord, ...]]:
    """Return the motion at rising times of a period, as :func:`sample_orbit`."""
    begins = np.array([node.time for node in nodes])
    # 1e-12: a time at a node, up to the rounding of sums of times, belongs to the piece that begins there.
    number = np.clip(np.searchsorted(begins, times + 1e-12 * period, side="right") - 1, 0, len(begins) - 1)
    samples: list[OperatingPoint] = []
    events: list[EventRecord] = []
    for k, node in enumerate(nodes):
        piece_times = times[number == k]
        if not len(piece_times):
            continue
        if abs(piece_times[0] - node.time) <= 1e-12 * period:
            piece_times[0] = node.time
            grid = piece_times
        else:
            grid = np.concatenate(([node.time], piece_times))
        motion = simulate_motion(model, node, grid, run)
        samples += [motion.point(i) for i in range(len(grid) - len(piece_times), len(grid))]
        events += motion.events
    return tuple(samples), tuple(events)


TURNS = {"": 2 * np.pi, "1": 2 * np.pi, "rad": 2 * np.pi, "deg": 360.0, "rev": 1.0, "turn": 1.0}
PERIOD = "period"
REPEATED_RATE_TOLERANCE = 1e-7  # relative: how near the rates after a turn must be to those before


@dataclass(frozen=True)
class OrbitRequest:
    """Which periodic motion is wanted; the arguments of :func:`fmilin.periodic_orbit`."""

    period: float | None = None
    turn: str | None = None
    fixed: Mapping[str, float] = field(default_factory=dict)
    free: Sequence[str] = ()
    steady: Sequence[str] = ()
    start: Mapping[str, float] | OperatingPoint | None = None
    time: float | None = None
    run: RunRequest = field(default_factory=RunRequest)  # inputs over time, the integrator
    segments: int | None = None

    def __post_init__(self) -> None:
        if self.period is not None and not (np.isfinite(self.period) and self.period > 0):
            raise UsageError(f"The period {self.period:g} is not a time: it is positive and finite.")
        if self.segments is not None and self.segments < 1:
            raise UsageError("The number of shooting segments must be at least 1.")


@dataclass(frozen=True, eq=False)
class OrbitProblem:
    """A request with the model's own names and numbers."""

    model: Model
    request: OrbitRequest
    start: OperatingPoint
    fixed_states: tuple[int, ...]  # states that keep their values at the start
    turn: int | None  # the state that grows by a turn
    gain: float  # that turn, in the unit of the state; negative where it turns backwards
    drifting: tuple[int, ...]  # states that may grow by any amount
    free_inputs: tuple[int, ...]
    free_parameters: tuple[str, ...]
    finds_period: bool
    angles: Mapping[int, float]  # states that are the same after a turn, and what a turn is

    def with_run(self, run: RunRequest) -> OrbitProblem:
        """Return the problem with another way to integrate."""
        return replace(self, request=replace(self.request, run=run))


def orbit_problem(model: Model, request: OrbitRequest) -> OrbitProblem:
    """Return the problem that a request poses for a model; reject parts that do not fit each other or the model."""
    if isinstance(model, Stepped):
        _require_settable(model, request)
    fixed = {name: float(value) for name, value in request.fixed.items()}
    kinds = {name: quantity(model, name)[0] for name in (*fixed, *(n for n in request.free if n != PERIOD))}
    if both := [name for name in request.free if name in fixed]:
        raise UsageError(f"'{both[0]}' is both fixed and free. Leave one of them out.")
    if states := [name for name in request.free if kinds.get(name) == "state"]:
        raise UsageError(f"'{states[0]}' is a state: states are free unless they are fixed. Leave it out of free=.")
    parameters = {name: value for name, value in fixed.items() if kinds[name] == "parameter"}
    model = model.with_parameters(parameters) if parameters else model
    start, fixed_states = _start(model, request, {n: v for n, v in fixed.items() if kinds[n] != "parameter"})
    turn = None if request.turn is None else model.states.index_of(request.turn, "a state of the model")
    gain = 0.0 if turn is None else _turn(model, turn, start)
    steady = tuple(model.states.index_of(name, "a state of the model") for name in request.steady)
    finds_period = request.period is None or PERIOD in request.free
    # Any phase begins a period that is found: a turning angle stays where it is at the start.
    phase = () if turn is None or not finds_period else (turn,)
    return OrbitProblem(
        model, request, start,
        fixed_states=tuple(dict.fromkeys((*fixed_states, *phase, *steady))),
        turn=turn, gain=gain,
        drifting=tuple(i for i in steady if i != turn),
        free_inputs=tuple(quantity(model, n)[1] for n in request.free if kinds.get(n) == "input"),
        free_parameters=tuple(n for n in request.free if kinds.get(n) == "parameter"),
        finds_period=finds_period, angles=_angles(model, start),
    )  # fmt: skip


def _require_settable(model: Stepped, request: OrbitRequest) -> None:
    """Reject a co-simulation FMU with steps that do not begin at the states set, and options that need rates."""
    start: OperatingPoint = model.start  # type: ignore[attr-defined]
    reason = model.why_not_settable(start)
    if not reason and (request.period is None or request.turn is not None or PERIOD in request.free):
        reason = "Its period cannot be found, because it does not provide its rates: give the period (period= alone)."
    if reason or model.constraints:  # type: ignore[attr-defined]
        name = model.info.name  # type: ignore[attr-defined]
        raise UsageError(
            f"'{name}' is a co-simulation FMU, which has its own solver, and its periodic motion cannot be analysed. "
            f"{reason or 'Its states obey constraints.'} Otherwise export it with the model exchange interface."
        )


def _start(model: Model, request: OrbitRequest, fixed: Mapping[str, float]) -> tuple[OperatingPoint, list[int]]:
    fixed_states = [model.states.positions[name] for name in fixed if model.states.has(name)]
    if isinstance(request.start, OperatingPoint):
        x, u = request.start.states, request.start.inputs.copy()
        time = request.start.time if request.time is None else request.time
        states = {name: value for name, value in fixed.items() if model.states.has(name)}
        u[[model.inputs.positions[n] for n in fixed if n not in states]] = [fixed[n] for n in fixed if n not in states]
        point = replace(request.start, inputs=u, time=time)
        # A point that has these values stays as it is, to the last digit.
        if any(x[model.states.positions[name]] != value for name, value in states.items()):
            x = x.copy()
            x[fixed_states] = list(states.values())
            constrained = len(model.constraints)
            point = (
                assemble_branch_point(PointEvaluator(model), time, x, u, states)
                if constrained
                else replace(point, states=x)
            )
    else:
        point = operating_point(model, {**(request.start or {}), **fixed}, time=request.time)
    if request.run.inputs is not None:
        course = input_course(model.inputs, point.inputs, request.run.inputs).piece(point.time, point.time)
        point = replace(point, inputs=course(point.time).copy())
    return point, fixed_states


def _turn(model: Model, turn: int, start: OperatingPoint) -> float:
    """Return what a state grows by in a turn; reject what is not an angle."""
    signal = model.states[turn]
    angle = "An angle must be in rad, deg or rev, and the model must be the same after a turn of it."
    if signal.unit not in TURNS:
        raise UsageError(f"'{signal.name}' is in {signal.unit} and no angle that turns. {angle}")
    if turn in kinematic_pairs(model, start).values():
        raise UsageError(f"'{signal.name}' is the rate of another state and no angle that turns. {angle}")
    gain = TURNS[signal.unit]
    if different := after_turn(model, turn, start, gain):
        raise UsageError(
            f"'{signal.name}' is not an angle that turns: after a turn of {gain:.6g} {signal.unit or 'rad'} "
            f"{different}. {angle} Name such a state (turn=), or give the period."
        )
    return gain


def after_turn(model: Model, i: int, start: OperatingPoint, gain: float) -> str:
    """Return what differs when a state has made a turn, in words; empty where nothing does."""
    x = start.states.copy()
    x[i] += gain
    here = model.evaluate(start.time, start.states, start.inputs)
    try:
        turned = model.evaluate(start.time, x, start.inputs)
    except FmilinError:
        return "the model cannot be evaluated"
    gaps = np.abs(turned.derivatives - here.derivatives)
    if (gaps > REPEATED_RATE_TOLERANCE * (1 + np.abs(here.derivatives).max(initial=0.0))).any():
        return f"the rate of '{model.states.names[int(np.argmax(gaps))]}' has changed"
    if np.abs(turned.residuals - here.residuals).max(initial=0.0) > REPEATED_RATE_TOLERANCE:
        return "the value of a constraint has changed"
    return ""


def _angles(model: Model, start: OperatingPoint) -> dict[int, float]:
    """Return the states that may make turns of their own on the way, and what a turn of each is."""
    # A quantity without unit and influence cannot be recognized as an angle.
    if isinstance(model, Stepped):
        return {}
    rates = set(kinematic_pairs(model, start).values())
    units = {i: TURNS[signal.unit] for i, signal in enumerate(model.states) if signal.unit in TURNS and i not in rates}

    def is_angle(i: int, gain: float) -> bool:
        # 0.3, 0.55: at common parts of a turn, as a half, a function of an angle may have the same value again.
        matters = model.states[i].unit not in ("", "1") or any(
            after_turn(model, i, start, s * gain) for s in (0.3, 0.55)
        )
        return matters and not after_turn(model, i, start, gain)

    return {i: gain for i, gain in units.items() if is_angle(i, gain)}
