"""What is asked of a periodic motion, checked against the model: unknowns, what is held, what may turn or drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fmilin.ground.errors import FmilinError, UsageError
from fmilin.manifold.operating_points import assembled_from, operating_point
from fmilin.manifold.selection import kinematic_pairs
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Stepped
from fmilin.motion.simulation.inputs import input_course
from fmilin.motion.simulation.run import RunRequest
from fmilin.points.request import quantity

TURNS = {"": 2 * np.pi, "1": 2 * np.pi, "rad": 2 * np.pi, "deg": 360.0, "rev": 1.0, "turn": 1.0}
PERIOD = "period"
REPEATED = 1e-7  # relative: how near the rates after a turn must be to those before


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
            raise UsageError(f"The period {self.period:g} is no time: it is positive and finite.")
        if self.segments is not None and self.segments < 1:
            raise UsageError("There is one stretch of shooting at least.")


@dataclass(frozen=True, eq=False)
class OrbitProblem:
    """A request with the model's own names and numbers."""

    model: Model
    request: OrbitRequest
    start: OperatingPoint
    held: tuple[int, ...]  # states whose values at the start stay
    turn: int | None  # the state that grows by a turn
    gain: float  # that turn, in the unit of the state; negative where it turns backwards
    drifting: tuple[int, ...]  # states that may grow by any amount
    free_inputs: tuple[int, ...]
    free_parameters: tuple[str, ...]
    finds_period: bool
    angles: Mapping[int, float]  # states that are the same after a turn, and what a turn is


def orbit_problem(model: Model, request: OrbitRequest) -> OrbitProblem:
    """Return the problem that a request poses for a model; refuse parts that do not fit each other or the model."""
    if isinstance(model, Stepped):
        _require_settable(model, request)
    fixed = {name: float(value) for name, value in request.fixed.items()}
    kinds = {name: quantity(model, name)[0] for name in (*fixed, *(n for n in request.free if n != PERIOD))}
    if both := [name for name in request.free if name in fixed]:
        raise UsageError(f"'{both[0]}' is both fixed and free. Leave one of them out.")
    if states := [name for name in request.free if kinds.get(name) == "state"]:
        raise UsageError(f"'{states[0]}' is a state: states are free unless they are fixed. Leave it out of the free.")
    parameters = {name: value for name, value in fixed.items() if kinds[name] == "parameter"}
    model = model.with_parameters(parameters) if parameters else model
    start, held = _start(model, request, {n: v for n, v in fixed.items() if kinds[n] != "parameter"})
    turn = None if request.turn is None else model.states.index_of(request.turn, "a state of the model")
    gain = 0.0 if turn is None else _turn(model, turn, start)
    steady = tuple(model.states.index_of(name, "a state of the model") for name in request.steady)
    finds_period = request.period is None or PERIOD in request.free
    phase = () if turn is None or not finds_period else (turn,)
    return OrbitProblem(
        model, request, start,
        held=tuple(dict.fromkeys((*held, *phase, *steady))),
        turn=turn, gain=gain,
        drifting=tuple(i for i in steady if i != turn),
        free_inputs=tuple(quantity(model, n)[1] for n in request.free if kinds.get(n) == "input"),
        free_parameters=tuple(n for n in request.free if kinds.get(n) == "parameter"),
        finds_period=finds_period, angles=_angles(model, start),
    )  # fmt: skip


def _require_settable(model: Stepped, request: OrbitRequest) -> None:
    """Refuse a co-simulation FMU whose steps do not begin where they are told to, and what only rates would say."""
    start: OperatingPoint = model.start  # type: ignore[attr-defined]
    reason = model.why_not_settable(start)
    if not reason and (request.period is None or request.turn is not None or PERIOD in request.free):
        reason = "Its period is not found, as it does not say its rates: give it (--period alone)."
    if reason or model.constraints:  # type: ignore[attr-defined]
        name = model.info.name  # type: ignore[attr-defined]
        raise UsageError(
            f"'{name}' is a co-simulation FMU, which brings its own solver, and its periodic motion cannot be looked "
            f"at. {reason or 'Its states obey constraints.'} Otherwise export it with the model exchange interface."
        )


def _start(model: Model, request: OrbitRequest, fixed: Mapping[str, float]) -> tuple[OperatingPoint, list[int]]:
    held = [model.states.positions[name] for name in fixed if model.states.has(name)]
    if isinstance(request.start, OperatingPoint):
        x, u = request.start.states, request.start.inputs.copy()
        time = request.start.time if request.time is None else request.time
        states = {name: value for name, value in fixed.items() if model.states.has(name)}
        u[[model.inputs.positions[n] for n in fixed if n not in states]] = [fixed[n] for n in fixed if n not in states]
        point = replace(request.start, inputs=u, time=time)
        if any(x[model.states.positions[name]] != value for name, value in states.items()):
            x = x.copy()
            x[held] = list(states.values())
            constrained = len(model.constraints)
            point = assembled_from(model, time, x, u, states) if constrained else replace(point, states=x)
    else:
        point = operating_point(model, {**(request.start or {}), **fixed}, time=request.time)
    if request.run.inputs is not None:
        course = input_course(model.inputs, point.inputs, request.run.inputs).piece(point.time, point.time)
        point = replace(point, inputs=course(point.time).copy())
    return point, held


def _turn(model: Model, turn: int, start: OperatingPoint) -> float:
    """Return what a state grows by in a turn; refuse what is no angle."""
    signal = model.states[turn]
    angle = "An angle is measured in rad, deg or rev, and the model is the same after a turn of it."
    if signal.unit not in TURNS:
        raise UsageError(f"'{signal.name}' is in {signal.unit} and no angle that turns. {angle}")
    if turn in kinematic_pairs(model, start).values():
        raise UsageError(f"'{signal.name}' is the rate of another state and no angle that turns. {angle}")
    gain = TURNS[signal.unit]
    if different := after_turn(model, turn, start, gain):
        raise UsageError(
            f"'{signal.name}' is no angle that turns: after a turn of {gain:.6g} {signal.unit or 'rad'} {different}. "
            f"{angle} Name such a state in turn (--turn), or give the period."
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
    if (gaps > REPEATED * (1 + np.abs(here.derivatives).max(initial=0.0))).any():
        return f"the rate of '{model.states.names[int(np.argmax(gaps))]}' is not what it was"
    if np.abs(turned.residuals - here.residuals).max(initial=0.0) > REPEATED:
        return "a constraint is not what it was"
    return ""


def _angles(model: Model, start: OperatingPoint) -> dict[int, float]:
    """Return the states that may make turns of their own on the way, and what a turn of each is."""
    # Of what has no unit and no influence nobody knows that it is an angle.
    if isinstance(model, Stepped):
        return {}
    rates = set(kinematic_pairs(model, start).values())
    units = {i: TURNS[signal.unit] for i, signal in enumerate(model.states) if signal.unit in TURNS and i not in rates}

    def is_angle(i: int, gain: float) -> bool:
        matters = model.states[i].unit not in ("", "1") or any(
            after_turn(model, i, start, s * gain) for s in (0.3, 0.55)
        )
        return matters and not after_turn(model, i, start, gain)

    return {i: gain for i, gain in units.items() if is_angle(i, gain)}
