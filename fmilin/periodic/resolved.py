"""Whether a period is the model's; whether samples of A tell it between them, and transitions that do without these.

A motion that stands still for most of its period and then leaps (a relaxation oscillation), or one that is pushed by
narrow pulses, is told by no affordable number of equally spaced samples: steps are halved where A changes fast.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fmilin.errors import FmilinError, ModelError, NumericalError
from fmilin.linearization.request import Request
from fmilin.model.interface import OperatingPoint
from fmilin.periodic.floquet import Periodic
from fmilin.periodic.fourier import Interpolant, derivative, with_upper_harmonics_mistaken
from fmilin.periodic.orbit import REPEATED, PeriodicOrbit, samples_at
from fmilin.periodic.path import PathSlopes, slopes_along
from fmilin.periodic.transition import NODES, factors_of, product
from fmilin.signals import FloatArray
from fmilin.simulation.inputs import InputTable, input_course
from fmilin.simulation.time_breaks import find_time_breaks

LOOKS = 12  # phases between the samples at which A is looked at
ASIDE = 1e-4  # in sizes of the coordinates: how far beside the motion
TOLD = 1e-6  # what A may be off between samples that tell it, relative to a turn per period or its own size
UPPER = 1e-3  # so many times more the upper harmonics of the samples may be: they are there, not between them
HALVINGS = 16
LOST = 1e-3  # of the fastest rate: from what rates differ between the samples these do not tell the motion either
STEPS = 2**13  # at once
BEFORE_KNOT = 1e-12  # of a step
MOST_KNOTS = 1000  # of a period
ENOUGH = 1e-10  # relative: what halving a step may change


def resolved(
    slopes: PathSlopes, orbit: PeriodicOrbit, samples: Sequence[OperatingPoint], request: Request
) -> tuple[PathSlopes, FloatArray | None]:
    """Return slopes with what their samples leave open in their error, or transitions (m, P, P) that leave nothing."""
    A, period, P = slopes.A[:-1], orbit.period, len(slopes.states)
    D = Periodic(A, period, np.eye(P), slopes.error[:-1]).balanced()[1]
    ratio = D / D[:, None]
    tail = np.abs(ratio * (with_upper_harmonics_mistaken(A, np.ones((P, P))) - A)).max(initial=0.0)
    phases = (np.random.default_rng(1888).random(LOOKS) + np.arange(LOOKS)) / LOOKS
    off, transitions = _left_open(slopes, orbit, samples, D, phases), None
    # Pulses that the model's graph, or its inputs, announce are too short for phases that are drawn.
    knots = _knots(orbit)
    if knots.size:
        between = 0.5 * (knots[1:] + knots[:-1])
        off = max(off, _left_open(slopes, orbit, samples, D, np.concatenate((knots, between))))
    if max(off, UPPER * float(tail)) <= TOLD * max(1 / period, float(np.abs(A * ratio).max(initial=0.0))):
        return slopes, None
    if not slopes.carried:
        transitions, off = _halved(slopes, orbit, request, D, knots)
    off = min(off, 1 / period)  # nothing is known then
    return replace(slopes, error=slopes.error + off / max(P, 1) / ratio), transitions


def _knots(orbit: PeriodicOrbit) -> FloatArray:
    """Return the phases at which what acts on the model jumps, bends or pulses."""
    begin = orbit.start.time
    course = input_course(orbit.model.inputs, orbit.start.inputs, orbit.run.inputs)
    times = find_time_breaks(orbit.model, orbit.start, course, begin + orbit.period).times
    return np.asarray((times[:MOST_KNOTS] - begin) / orbit.period)


def _left_open(
    slopes: PathSlopes, orbit: PeriodicOrbit, samples: Sequence[OperatingPoint], D: FloatArray, phases: FloatArray
) -> float:
    """Return how far A is from what its samples say between them, in 1/s, in coordinates y = D z."""
    model, period, m = orbit.model, orbit.period, len(slopes.times) - 1
    x, random = np.array([point.states for point in samples]), np.random.default_rng(1883)
    gain, R = x[-1] - x[0], slopes.R[:-1]
    staying = x[:-1] - np.outer(np.arange(m) / m, gain)
    inputs = np.array([point.inputs for point in samples[:-1]])
    rate, sizes = derivative(staying, period) + gain / period, model.states.scales(x[0])
    parts = (slopes.A[:-1], slopes.T[:-1], staying, R, derivative(R, period), inputs, rate)
    courses = [Interpolant(part) for part in parts]
    D = D * ASIDE / float(np.max(D / np.maximum(np.abs(R[0]) @ sizes, 1e-300), initial=1e-300))
    off, lost, fastest = np.zeros(len(D)), 0.0, max(float(np.max(np.abs(rate) / sizes)), 1e-300)
    for phase in phases:
        A, T, at, R, turns, u, rate = (course(np.array([phase]))[0] for course in courses)
        aside = D * np.sign(random.uniform(-1, 1, len(D)))
        time, at = samples[0].time + phase * period, at + phase * gain
        try:
            ahead, behind = (model.evaluate(time, at + s * T @ aside, u).derivatives for s in (1, -1))
        except (ModelError, NumericalError):  # the model is not defined there
            continue
        if not np.isfinite(ahead + behind).all():
            continue
        off += np.abs(R @ (ahead - behind) / 2 - (A - turns @ T) @ aside) / D / len(phases)
        lost = max(lost, float(np.max(np.abs((ahead + behind) / 2 - rate) / sizes) / fastest))
    blurred = lost * float(np.abs(slopes.A * D / D[:, None]).max(initial=0.0)) if lost > LOST else 0.0
    return max(float(off.max(initial=0.0)), blurred)


def _halved(
    slopes: PathSlopes, orbit: PeriodicOrbit, request: Request, D: FloatArray, knots: FloatArray
) -> tuple[FloatArray, float]:
    """Return transitions from sample to sample by steps as short as A needs, and what they leave open, in 1/s."""
    how = replace(request, independent=slopes.states.names, coordinates="partition", outputs=None, inputs=None)
    m, P = len(slopes.times) - 1, len(slopes.states)

    def steps(starts: FloatArray, lengths: FloatArray) -> FloatArray:
        # The last node of a step that ends at a knot belongs to what is before it.
        nodes = starts[:, None] + lengths[:, None] * NODES * (1 - BEFORE_KNOT)
        times = orbit.start.time + orbit.period * nodes.ravel()
        points = samples_at(orbit.model, orbit.nodes, times, orbit.period, orbit.run)[0]
        A = slopes_along(orbit.model, points, how).A.reshape(-1, len(NODES), P, P)
        return factors_of(A, lengths * orbit.period)

    inside = knots[np.abs(knots * m - np.round(knots * m)) > BEFORE_KNOT]
    starts = np.union1d(np.arange(m) / m, inside)
    lengths, change = np.diff(np.append(starts, 1.0)), np.full(len(starts), 1.0)
    coarse, told = steps(starts, lengths), list[tuple[float, FloatArray]]()
    for _ in range(HALVINGS):
        lengths = lengths / 2
        halves = starts[:, None] + lengths[:, None] * np.arange(2)
        try:
            fine = steps(halves.ravel(), np.repeat(lengths, 2)).reshape(-1, 2, P, P)
        except FmilinError:  # a kink
            break
        both = fine[:, 1] @ fine[:, 0]
        gap, size = (np.abs(part * D / D[:, None]).max(axis=(1, 2)) for part in (both - coarse, both))
        change = gap / size
        rough = ~(change <= ENOUGH)
        told += zip(starts[~rough].tolist(), both[~rough], strict=True)
        starts, coarse, change = halves[rough].ravel(), fine[rough].reshape(-1, P, P), change[rough]
        lengths = np.repeat(lengths[rough], 2)
        if not 0 < len(starts) <= STEPS:
            break
    told = sorted([*told, *zip(starts.tolist(), coarse, strict=True)], key=lambda step: step[0])
    numbers = np.floor(np.array([start for start, _ in told]) * m + 1e-9)
    factors = np.array([factor for _, factor in told])
    return np.array([product(factors[numbers == k]) for k in range(m)]), float(change.sum()) / orbit.period


def require_repeating(orbit: PeriodicOrbit) -> None:
    """Refuse a period after which the motion is back, and the model or its inputs are not what they were."""
    model, given, signs, m = orbit.model, orbit.run.inputs, np.random.default_rng(1883), len(orbit.points) - 1
    for point in (orbit.points[k * m // 7] for k in (1, 3, 5)):
        aside = point.states + 0.1 * model.states.scales(point.states) * signs.choice((-1.0, 1.0), len(point.states))
        later, u = point.time + orbit.period, point.inputs
        if not isinstance(given, InputTable):  # which ends with the period
            u = input_course(model.inputs, u, given).piece(later, later)(later)
        try:
            now = model.evaluate(point.time, aside, point.inputs).derivatives
            then = model.evaluate(later, aside, u).derivatives
        except (ModelError, NumericalError):  # the model is not defined there
            continue
        wrong = np.abs(now - then) > REPEATED * (1 + np.abs(now).max())
        if not wrong.any():
            continue
        raise NumericalError(
            f"The motion is back after {orbit.period:.9g} s, but what acts on it is not: the rate of "
            f"'{model.states.names[int(np.argmax(wrong))]}' is another one then. Give the period of what forces the "
            "motion, or a multiple of it (period=)."
        )
