"""Periodic motions: a first guess by integration, shooting, and what stands in the way where it does not close."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from fmilin.errors import ConstraintError, NumericalError
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.locks import one_at_a_time
from fmilin.model.stepping import Stepped
from fmilin.periodic.certified_orbit import CertifiedOrbit, certify_orbit
from fmilin.periodic.orbit import (
    PERIOD,
    OrbitProblem,
    OrbitRequest,
    PeriodicOrbit,
    after_turn,
    orbit_problem,
    sample_orbit,
    simulate_motion,
)
from fmilin.periodic.orbit_checks import remark_on_orbit, require_repeating
from fmilin.periodic.shooting import ORBIT_GAP_TOLERANCE, ShootingEquations, ShootingResult, Shot, solve_shooting
from fmilin.signals import FloatArray
from fmilin.simulation.inputs import Inputs
from fmilin.simulation.method import Method
from fmilin.simulation.run import RunRequest, verify_motion

SAMPLES = 200  # of a stretch that is searched for the first return
MAX_CROSSINGS_RATIO = 40.0  # times that a motion crosses its extent, in one stretch at most
MAX_STRETCHES = 14  # each twice as long as the one before
PATIENT_STRETCH_COUNT = 6  # stretches after which the motion goes on from where it has settled
SETTLING_PERIODS = (1, 10, 50)  # periods that are integrated before shooting is tried again
SHOOTING_SEGMENT_COUNT = 8  # stretches of multiple shooting
RETURN_DISTANCE_FRACTION = 0.2  # of the extent of the motion: nearer than this to the start it may have returned
PHASE_CORRECTION_COUNT = 6  # corrections of the first period
PHASE_CONVERGED = 1e-7  # of the period: corrections are Newton's, and leave about the square of this
STANDSTILL_RATE_TOLERANCE = 1e-9  # in sizes of the states per second
ORBIT_METHOD = Method("DOP853", 1e-12, 1e-13)
# The search for a start needs a few digits: its integrations take a quarter of the steps.
SEARCH_TOLERANCES = (1e-8, 1e-9)
SEARCH_GAP_TOLERANCE = 1e-6  # gaps, in sizes of the states, at which the search ends
MAX_CLOSABLE_GAP = 1e-2  # gaps that accurate integrations may still close


@one_at_a_time
def periodic_orbit(
    model: Model,
    start: Mapping[str, float] | OperatingPoint | None = None,
    *,
    period: float | None = None,
    turn: str | None = None,
    fixed: Mapping[str, float] | None = None,
    free: Sequence[str] = (),
    steady: Sequence[str] = (),
    time: float | None = None,
    inputs: Inputs | None = None,
    points: int = 64,
    segments: int | None = None,
    method: Method | str | None = None,
) -> PeriodicOrbit:
    """Return a periodic motion on the manifold, by shooting from a first guess.

    Raises UsageError or UnknownNameError when the request does not fit the model, or the motion passes an event;
    NumericalError when the motion does not close, with what was reached.

    Parameters
    ----------
    model : Model
    start : mapping of str to float or OperatingPoint, optional
        Where the search begins: states and inputs by name, as for :func:`fmilin.operating_point`.
    period : float, optional
        In seconds: of a motion that is forced, by time or by inputs. Without it the period is found.
    turn : str, optional
        The state that grows by one turn a period: 2 pi where it is in rad, 360 in deg, 1 in rev.
    fixed : mapping of str to float, optional
        States that have these values at the start of the period, inputs and parameters that keep them.
    free : sequence of str
        Inputs and parameters to solve for, constant over the period (the torque that keeps a speed); ``"period"``: the
        given period is a first guess.
    steady : sequence of str
        States that may gain something every period, as the distance that a vehicle has gone.
    time : float, optional
        Of the start, in seconds.
    inputs : mapping, InputTable or callable, optional
        Inputs over time, as for :func:`fmilin.simulate`.
    points : int
        Samples of the orbit, less one.
    segments : int, optional
        Stretches of multiple shooting; one, and where that fails eight, by default.
    method : Method or str, optional
        The integrator.

    Notes
    -----
    Newton's method on x(T) = x(0) in independent coordinates (Parker and Chua, Practical numerical algorithms for
    chaotic systems, chapter 5); of an orbit that is one of a family the nearest is found.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.models import OdeModel
    >>> oscillator = OdeModel("van der Pol", {"x": "v", "v": "(1 - x**2)*v - x"}, start={"x": 2.0})
    >>> orbit = fl.periodic_orbit(oscillator)
    >>> round(orbit.period, 8)
    6.66328686
    """
    run = RunRequest(inputs=inputs, method=method or ORBIT_METHOD)
    request = OrbitRequest(period, turn, fixed or {}, tuple(free), tuple(steady), start, time, run, segments)
    return find_orbit(model, request, points)


def find_orbit(model: Model, request: OrbitRequest, points: int = 64) -> PeriodicOrbit:
    """Return the periodic motion that a request describes; see :func:`periodic_orbit`."""
    problem = orbit_problem(model, request)
    # A model with its own solver has no constraints to be kept: those are rejected before.
    if not isinstance(problem.model, Stepped):
        problem = problem.with_run(verify_motion(problem.model, problem.start, problem.request.run))
    coarse = _with_search_tolerances(problem)
    coarse, shot = _first(coarse)
    problem = replace(problem, gain=coarse.gain)
    return _orbit(problem, _close_orbit(problem, coarse, shot), points)


def _with_search_tolerances(problem: OrbitProblem) -> OrbitProblem:
    """Return the problem with the tolerances of the search, where those that were asked for are smaller."""
    run = problem.request.run
    method = Method(run.method) if isinstance(run.method, str) else run.method
    # A solver of the model, and steps that are fixed, have no tolerances to be loosened.
    if isinstance(problem.model, Stepped) or method.name == "RK4" or method.relative >= SEARCH_TOLERANCES[0]:
        return problem
    relative, absolute = SEARCH_TOLERANCES
    method = replace(method, relative=relative, absolute=max(absolute, method.absolute))
    return problem.with_run(replace(run, method=method))


# -- the first guess -----------------------------------------------------------------------------------------------


def _first(problem: OrbitProblem) -> tuple[OrbitProblem, Shot]:
    """Return where shooting begins: the period that is given, else the first return of the motion from the start."""
    start, model, none = problem.start, problem.model, np.zeros(len(problem.drifting))
    if isinstance(model, Stepped):  # it does not say its rates
        return problem, Shot(model, (start,), problem.request.period or 0.0, none)
    rate = model.evaluate(start.time, start.states, start.inputs).derivatives
    if problem.turn is not None and rate[problem.turn] < 0:
        problem = replace(problem, gain=-problem.gain)
    if problem.request.period is not None:
        return problem, Shot(model, (start,), problem.request.period, none)
    if np.all(np.abs(rate) <= STANDSTILL_RATE_TOLERANCE * model.states.scales(start.states)):
        raise NumericalError(
            "The motion begins at an equilibrium and stays there: only a moving model has a period. Give a start on "
            "or near the orbit (start={'NAME': VALUE}), or the period of the excitation (period=)."
        )
    return _first_return(problem, rate)


def _first_return(problem: OrbitProblem, rate: FloatArray) -> tuple[OrbitProblem, Shot]:
    """Return the shot of the first return: from the start, or from where the motion has settled meanwhile."""
    start, scales = problem.start, problem.model.states.scales(problem.start.states)
    fastest = float(np.max(np.abs(rate) / scales))
    # Of motions that begin slowly ten seconds, which the stretches double as long as nothing returns.
    length = 1.0 / max(fastest, 0.1)
    if problem.turn is not None and rate[problem.turn] != 0:
        # Half of a turn at the rate of the start: the first stretches tell whether it goes on.
        length = 0.5 * abs(problem.gain / rate[problem.turn])
    drifting = list(problem.drifting)
    for stretch in range(MAX_STRETCHES):
        motion = simulate_motion(
            problem.model, start, start.time + np.linspace(0, length, SAMPLES + 1), problem.request.run
        )
        gone = motion.states - start.states
        k = _find_turn(gone[:, problem.turn], problem.gain) if problem.turn is not None else _find_return(
            np.delete(gone / scales, drifting, axis=1), np.delete(rate / scales, drifting)
        )  # fmt: skip
        if k is not None:
            sign = 1.0 if problem.turn is None else np.sign(gone[round(k), problem.turn])
            drift = gone[round(k), drifting]
            problem = replace(problem, gain=sign * abs(problem.gain))
            return problem, _in_phase(problem, Shot(problem.model, (start,), float(length * k / SAMPLES), drift))
        # How long the motion takes to cross its own extent, on the average: relaxation oscillations leap in between.
        # A state that moves by rounding crosses its extent at every sample.
        extent = np.maximum(np.ptp(motion.states, axis=0), 1e-12 * scales)
        crossing = length / float(np.max(np.abs(np.diff(motion.states, axis=0)).sum(axis=0) / extent))
        length *= 2
        if (
            problem.turn is None
            and not problem.fixed_states
            and (stretch >= PATIENT_STRETCH_COUNT or length > MAX_CROSSINGS_RATIO * crossing)
        ):
            # A few times the crossing: the next return is within that, if the motion has settled on an orbit.
            start, length = replace(start, states=motion.states[-1]), 8 * crossing
            rate = problem.model.evaluate(start.time, start.states, start.inputs).derivatives
    what = "return to where it began" if problem.turn is None else f"turn '{problem.request.turn}' once around"
    raise NumericalError(
        f"The motion does not {what} within {length / 2:.4g} s from its start. Give a start nearer to the orbit "
        "(start={'NAME': VALUE}), or, for a forced motion, its period (period=)."
    )


def _in_phase(problem: OrbitProblem, shot: Shot) -> Shot:
    """Return the shot with the period after which the motion is nearest to its start; on an orbit it closes."""
    (start,), scales = shot.nodes, problem.model.states.scales(problem.start.states)
    for _ in range(PHASE_CORRECTION_COUNT):
        times = start.time + np.array([0.0, shot.period])
        end = simulate_motion(shot.model, start, times, problem.request.run).point()
        rate = shot.model.evaluate(end.time, end.states, end.inputs).derivatives / scales
        gap = (end.states - start.states - ShootingEquations(problem).shift(shot, end.states)) / scales
        rate[list(problem.drifting)] = 0.0
        by = -float(rate @ gap) / max(float(rate @ rate), 1e-300)  # 1e-300: at rest
        # A period that changes by so much is that of another return.
        if not abs(by) < RETURN_DISTANCE_FRACTION * shot.period:
            break
        shot = replace(shot, period=shot.period + by)
        if abs(by) < PHASE_CONVERGED * shot.period:
            break
    return shot


def _find_turn(angle: FloatArray, gain: float) -> float | None:
    """Return at which sample, in parts, an angle (K,) has grown by a turn, either way."""
    beyond = np.flatnonzero(np.abs(angle) >= abs(gain))
    if not beyond.size:
        return None
    k = int(beyond[0])
    return float(k - 1 + (abs(gain) - abs(angle[k - 1])) / (abs(angle[k]) - abs(angle[k - 1])))


def _find_return(gone: FloatArray, rate: FloatArray) -> float | None:
    """Return at which sample, in parts, a motion (K, N) less its start crosses the plane through its start again."""
    # Of the crossings in the direction of the start the first that is near it, compared with the motion's extent.
    height = gone @ (rate / max(float(np.linalg.norm(rate)), 1e-300))  # 1e-300: at rest
    distance = np.linalg.norm(gone, axis=1)
    crossings = np.flatnonzero((height[1:-1] < 0) & (height[2:] >= 0)) + 1
    for k in crossings:
        if min(distance[k : k + 2]) <= RETURN_DISTANCE_FRACTION * distance[: k + 1].max():
            return float(k - height[k] / (height[k + 1] - height[k]))
    return None


# -- closing it ----------------------------------------------------------------------------------------------------


def _close_orbit(problem: OrbitProblem, coarse: OrbitProblem, first: Shot) -> CertifiedOrbit:
    """Return the orbit by single shooting, from a start that has settled, by multiple shooting: what closes first.

    Each way is tried with the tolerances of the search, ``coarse``, and completed with those of ``problem``.
    """
    doubt: NumericalError | None = None
    reached: list[ShootingResult] = []
    trouble: NumericalError | ConstraintError | None = None
    for attempt in _attempts(coarse, first):
        equations = ShootingEquations(problem)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                result = _solve(problem, coarse, equations, attempt())
        except (NumericalError, ConstraintError) as error:
            trouble = trouble or error
            continue
        if result.size <= ORBIT_GAP_TOLERANCE and not _has_come_to_rest(problem, result.shot):
            try:
                with np.errstate(over="ignore", invalid="ignore"):
                    return certify_orbit(equations, result.shot)
            except NumericalError as error:
                doubt = doubt or error
                continue
        reached.append(result)
    if doubt is not None:
        raise doubt
    if not reached:
        raise NumericalError(
            f"No periodic motion was reached. {trouble} If deviations grow that much within a period, use more "
            "segments (segments=32), give a start nearer to the orbit (start={'NAME': VALUE}), or stabilize it by a "
            "controller first."
        )
    nearest = min(reached, key=lambda result: result.size)
    raise NumericalError(_why_open(problem, nearest.size, nearest.shot, nearest.gap))


def _solve(problem: OrbitProblem, coarse: OrbitProblem, equations: ShootingEquations, guess: Shot) -> ShootingResult:
    """Return where the motion closes best: with the tolerances of the search, then with those of the problem."""
    if coarse is problem:
        return solve_shooting(equations, guess)
    result = solve_shooting(ShootingEquations(coarse), guess, target=SEARCH_GAP_TOLERANCE)
    if not result.size <= MAX_CLOSABLE_GAP:
        return result
    shot = result.shot
    if shot is guess and problem.finds_period and len(shot.nodes) == 1:
        # A start on an orbit that is one of a family stays: the period alone becomes more accurate.
        shot = _in_phase(problem, shot)
    return solve_shooting(equations, shot)


def _has_come_to_rest(problem: OrbitProblem, shot: Shot) -> bool:
    """Whether what closes is a rest that nothing forces, and was not asked for: it closes after any time."""
    scales = problem.model.states.scales(problem.start.states)
    first, model = problem.start, problem.model
    if isinstance(model, Stepped):
        return False

    def moves(t: float, x: FloatArray) -> FloatArray:
        return np.asarray(model.evaluate(t, x, first.inputs).derivatives / scales)

    begins = np.abs(moves(first.time, first.states)).max(initial=0.0)
    rests = max(float(np.abs(moves(node.time, node.states)).max(initial=0.0)) for node in shot.nodes)
    # 0.37: at a half or a third of the period an excitation may be what it was.
    later = np.abs(moves(first.time + 0.37 * shot.period, first.states) - moves(first.time, first.states))
    unforced = problem.request.run.inputs is None and later.max(initial=0.0) <= STANDSTILL_RATE_TOLERANCE * begins
    # 1e-6: what closes to the tolerance of the search may still creep towards the equilibrium.
    return bool(begins > STANDSTILL_RATE_TOLERANCE and rests <= 1e-6 * begins and unforced)


def _attempts(problem: OrbitProblem, first: Shot) -> list[Callable[[], Shot]]:
    """Return ways to begin: in one piece, in many from the start or along the motion, from where it has settled."""
    segments = problem.request.segments
    ways: list[Callable[[], Shot]] = [partial(_cut, problem, first, 1)]
    # Deviations of a model with its own solver are measured, which takes a single segment.
    if segments != 1 and not isinstance(problem.model, Stepped):
        many: list[Callable[[], Shot]] = [partial(_cut, problem, first, segments or SHOOTING_SEGMENT_COUNT)]
        # Only a period that is known places the nodes, and a turn needs the motion between them.
        if not problem.finds_period and problem.turn is None:
            many.insert(0, partial(_spread, first, segments or SHOOTING_SEGMENT_COUNT))
        ways = [*many, *ways] if segments else [*ways, *many]
    # A motion that settles leaves the states that are fixed.
    if not problem.fixed_states:
        ways += [partial(_settle_shot, problem, first, periods) for periods in SETTLING_PERIODS]
    return ways


def _spread(shot: Shot, segments: int) -> Shot:
    """Return the shot with nodes that all are its start: from an orbit that holds nothing the motion leads far away."""
    times = shot.nodes[0].time + shot.period * np.arange(segments) / segments
    return replace(shot, nodes=tuple(replace(shot.nodes[0], time=float(t)) for t in times))


def _cut(problem: OrbitProblem, shot: Shot, segments: int) -> Shot:
    """Return the shot with as many nodes, on the motion from its start."""
    if segments == 1:
        return shot
    start = shot.nodes[0]
    times = start.time + shot.period * np.arange(segments) / segments
    motion = simulate_motion(shot.model, start, times, problem.request.run)
    return replace(shot, nodes=tuple(motion.point(k) for k in range(segments)))


def _settle_shot(problem: OrbitProblem, shot: Shot, periods: int) -> Shot:
    """Return the shot from where the motion has come after some periods."""
    start = shot.nodes[0]
    end = start.time + periods * shot.period
    motion = simulate_motion(shot.model, start, np.array([start.time, end]), problem.request.run)
    states = motion.states[-1].copy()
    if problem.turn is not None:
        states[problem.turn] -= periods * problem.gain
    later = replace(problem, start=replace(start, states=states, time=start.time))
    if problem.request.period is None:
        # The period of a motion that has settled is another one than that of its first return.
        return _first(later)[1]
    return replace(shot, nodes=(later.start,))


def _why_open(problem: OrbitProblem, gap: float, shot: Shot, gaps: FloatArray) -> str:
    """Return in words what keeps a motion from closing."""
    states, scales = problem.model.states, problem.model.states.scales(problem.start.states)
    worst = int(np.argmax(np.abs(gaps) / scales))
    if gap <= ORBIT_GAP_TOLERANCE:
        times = problem.start.time + np.array([0.0, shot.period])
        gaps = (
            simulate_motion(problem.model, problem.start, times, problem.request.run).states[-1] - problem.start.states
        )
        gap = float(np.abs(gaps / scales).max(initial=0.0))
        text = f"The motion after {shot.period:.9g} s is an equilibrium without excitation, which any period closes. "
    else:
        text = (
            f"The motion does not close: after {shot.period:.9g} s '{states.names[worst]}' is off by {gaps[worst]:.3g} "
            f"{states[worst].unit}".rstrip()
            + f", at best ({gap:.2g} of the sizes of the states). "
        )

    def is_cyclic(i: int) -> bool:
        """Whether nothing depends on a state: rates and constraints are the same wherever it stands."""
        if isinstance(problem.model, Stepped):
            return False
        # Two distances, neither of which is a multiple of the other: a periodic function is the same after a period.
        return not any(after_turn(problem.model, i, problem.start, by * scales[i]) for by in (0.7, -1.9))

    cyclic = [i for i in np.argsort(-np.abs(gaps) / scales).tolist() if is_cyclic(i) and i != problem.turn]
    # A cyclic state that hardly moves is not what keeps the motion open.
    if cyclic and abs(gaps[cyclic[0]]) > 1e-3 * gap * scales[cyclic[0]]:
        name = states.names[cyclic[0]]
        return text + (
            f"'{name}' is cyclic: nothing depends on it, and it goes on by {gaps[cyclic[0]]:.4g} every period. If "
            f"this is intended, name it with steady=[{name!r}], or with turn={name!r} where it is an angle that turns."
        )
    if problem.request.period is not None and PERIOD not in problem.request.free:
        return text + (
            "If the motion has no excitation of this period, leave period= out, or solve for it with free=['period']. "
            "Otherwise give a start nearer to the orbit (start={'NAME': VALUE}), or, if deviations grow by orders of "
            "magnitude within a period, use more segments (segments=64)."
        )
    return text + (
        "Give a start nearer to the orbit (start={'NAME': VALUE}), let the motion settle first, or free an input that "
        "balances losses over a period (free=)."
    )


# -- the result ----------------------------------------------------------------------------------------------------


def _orbit(problem: OrbitProblem, certified: CertifiedOrbit, points: int) -> PeriodicOrbit:
    shot = certified.shot
    model, names, run = shot.model, problem.model.inputs.names, problem.request.run
    samples, events = sample_orbit(model, shot.nodes, shot.period, run, points)
    shift = ShootingEquations(problem).shift(shot, samples[-1].states)
    free = {names[j]: float(shot.nodes[0].inputs[j]) for j in problem.free_inputs}
    free |= {name: float(model.parameters[name]) for name in problem.free_parameters}
    orbit = PeriodicOrbit(
        model=model,
        period=float(shot.period),
        times=np.array([p.time for p in samples]),
        points=samples,
        certificate=certified.certificate,
        shift=shift,
        free=free,
        run=run,
        nodes=shot.nodes,
        events=events,
        monodromy_error=certified.monodromy_error,
    )
    # Only a given period may differ from that of the excitation. Rates next to an event are those of another mode.
    if problem.request.period is not None and not orbit.measured:
        require_repeating(orbit)
    return replace(orbit, remarks=remark_on_orbit(orbit, certified))
