"""Linear models along a periodic orbit, in coordinates that come back to themselves.

Whether samples of A determine it between them is examined, too. A motion that stands still for most of its period and
then leaps (a relaxation oscillation), or one that is pushed by narrow pulses, is not determined by any affordable
number of equally spaced samples: there the transitions from sample to sample are computed, by steps that are halved
where A changes fast.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np
from scipy import linalg

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, ModelError, NumericalError, UsageError
from fmilin.linearization.request import Request
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.locks import one_at_a_time
from fmilin.options import Linearization
from fmilin.options.function_options import PeriodicOptions, takes_linearization
from fmilin.periodic.floquet import Periodic
from fmilin.periodic.fourier import Interpolant, derivative, with_upper_harmonics_mistaken
from fmilin.periodic.orbit import PeriodicOrbit, sample_orbit_times
from fmilin.periodic.path import LinearizedPath, linearize_stretch, measure_transitions
from fmilin.periodic.periodic_model import PeriodicModel
from fmilin.periodic.transition import NODES, compute_factors, product
from fmilin.signals import FloatArray
from fmilin.simulation.inputs import input_course
from fmilin.simulation.time_breaks import find_time_breaks

MIN_POINTS = 4  # points of a period
CHECKED_PHASE_COUNT = 12  # phases between the samples at which A is examined
LATERAL_DISPLACEMENT_SIZE = 1e-4  # in sizes of the coordinates: how far from the motion
INTERPOLATION_TOLERANCE = (
    1e-6  # what A may be off between samples that tell it, relative to a turn per period or its own size
)
UPPER_HARMONICS_FACTOR = (
    1e-3  # so many times more the upper harmonics of the samples may be: they are there, not between them
)
HALVINGS = 16  # of steps of the period: 2^16 times as many as samples
MAX_LOST_RATE_RATIO = (
    1e-3  # of the fastest rate: from what rates differ between the samples these do not tell the motion either
)
STEPS = 2**13  # at once
KNOT_GAP_FRACTION = 1e-12  # of a step
MAX_KNOTS = 1000  # of a period
STEP_HALVING_TOLERANCE = 1e-10  # relative: what halving a step may change


@one_at_a_time
@takes_linearization
def linearize_periodic(
    model: Model,
    orbit: PeriodicOrbit,
    *,
    points: int = 64,
    linearization: Linearization | None = None,
    **options: Unpack[PeriodicOptions],
) -> PeriodicModel:
    """Return the linear models along a periodic orbit: y' = A(t) y + B(t) u, all matrices of the orbit's period.

    Raises UsageError when there are fewer than four phases; FmilinError as :func:`fmilin.linearize`, at the first phase
    that fails.

    Parameters
    ----------
    model : Model
    orbit : PeriodicOrbit
        From :func:`fmilin.periodic_orbit`.
    points : int
        Equally spaced phases. Results computed from the matrices converge with their number faster than any power, as
        long as the matrices are smooth.
    linearization : Linearization, optional
        How each phase is linearized; its options may be keywords instead. If no coordinates are named, they are states
        that are good coordinates all along the orbit; if there are none, a basis of the tangent space is carried along.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.models import OdeModel
    >>> mathieu = OdeModel("Mathieu", {"x": "v", "v": "-(1.2 + 0.3*cos(2*time))*x"})
    >>> orbit = fl.periodic_orbit(mathieu, period=3.141592653589793)
    >>> fl.linearize_periodic(mathieu, orbit).floquet().stable
    True
    """
    request = Request.of("linearize_periodic", linearization, options)
    return linearize_orbit(model, orbit, request, points)


def linearize_orbit(model: Model, orbit: PeriodicOrbit, request: Request, points: int = 64) -> PeriodicModel:
    """Return the linear models that a request describes; see :func:`linearize_periodic`."""
    if points < MIN_POINTS:
        raise UsageError(f"A period needs {MIN_POINTS} points at least, not {points}: use a larger number of them.")
    # The model of the orbit has the parameters of the orbit; one with other states is taken as it was given.
    orbit_model = orbit.model if orbit.model.states.names == model.states.names else model
    samples = orbit.sample(points)
    if orbit.measured:
        path, transitions = measure_transitions(replace(orbit, model=orbit_model), samples, request)
    else:
        path, transitions = linearize_stretch(orbit_model, samples, request, closed=True), None
    chosen = [orbit_model.inputs.positions[name] for name in path.inputs.names]
    diagnostics = summarize_diagnostics(path.diagnostics)
    jump = np.eye(len(path.states))
    if path.carried:
        path, jump = _close_coordinates(path, orbit.period)
    # Measured transitions leave nothing open between samples; reflected coordinates are not periodic, as they must be.
    if not orbit.measured and np.allclose(jump, np.eye(len(jump))):
        path, transitions = _refine_between_samples(path, orbit, samples, request)
    symmetries = {"the motion itself": path.f0[0]}  # deviations that may come back as they are
    symmetries |= {f"shift of {orbit_model.states.names[i]}": path.R[0][:, i] for i in np.flatnonzero(orbit.shift)}
    return PeriodicModel(
        path.A[:-1], path.B[:-1], path.C[:-1], path.D[:-1], path.T[:-1],
        period=orbit.period, times=path.times[:-1],
        points=tuple(replace(point, inputs=point.inputs[chosen]) for point in samples[:-1]),
        states=path.states, full_states=orbit_model.states,
        inputs=path.inputs, outputs=path.outputs,
        error=path.error[:-1], jump=jump, info=orbit_model.info, closure=orbit.closure,
        symmetries=symmetries, remarks=(*orbit.remarks, *diagnostics), f0=path.f0[:-1], transitions=transitions,
        monodromy_error=_monodromy_error(orbit, path),
    )  # fmt: skip


def summarize_diagnostics(diagnostics: Sequence[Sequence[Remark]]) -> tuple[Remark, ...]:
    """Return each kind of diagnostic of the phases once, as the first one states it, with the number of phases."""
    first: dict[str, Remark] = {}
    counts: Counter[str] = Counter()
    for of_phase in diagnostics:
        kinds = {remark.kind: remark for remark in of_phase}
        counts.update(kinds.keys())
        first = kinds | first
    total = len(diagnostics)
    return tuple(
        remark
        if remark.speaks_of_the_model or counts[kind] == total
        else replace(remark, message=f"{remark.message} (First of {counts[kind]} of {total} phases.)")
        for kind, remark in first.items()
    )


def _monodromy_error(orbit: PeriodicOrbit, path: LinearizedPath) -> FloatArray | None:
    """Return what the distance of the true orbit may change in the monodromy matrix, in the coordinates at time 0."""
    if orbit.monodromy_error is None:
        return None
    return np.asarray(np.abs(path.R[0]) @ orbit.monodromy_error @ np.abs(path.T[0]))


def _close_coordinates(path: LinearizedPath, period: float) -> tuple[LinearizedPath, FloatArray]:
    """Return a path in carried coordinates that come back to themselves, and what jumps all the same."""
    # Carried once around, a basis comes back turned, J = F exp(L): turned back steadily on the way, by exp(L t/T), it
    # closes, but for a reflection F.
    L, F = _unwind(path.closing)
    phases = (path.times - path.times[0]) / period
    E = np.array([linalg.expm(L * phase) for phase in phases])
    back = np.array([linalg.expm(-L * phase) for phase in phases])
    R, T = E @ path.R, path.T @ back
    both = np.concatenate((R[:-1], F @ R[:-1]))
    rate = derivative(both, 2 * period)[: len(R) - 1]
    rate = np.concatenate((rate, F @ rate[:1]))
    closed = replace(
        path, A=E @ path.A @ back + rate @ T, B=E @ path.B, C=path.C @ back, T=T, R=R,
        f0=(E @ path.f0[..., None])[..., 0], error=np.abs(E) @ path.error @ np.abs(back),
    )  # fmt: skip
    return closed, F


def _unwind(J: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return L and F of an orthogonal J = F exp(L), L real, F with F F = 1 that commute: the identity if possible."""
    S, Z = linalg.schur(J, output="real")
    L, F = np.zeros_like(S), np.eye(len(S))
    minus: list[int] = []
    k = 0
    while k < len(S):
        # A block of two is a rotation; of eigenvalues 1 and -1 rounding leaves no more than this below the diagonal.
        if k + 1 < len(S) and abs(S[k + 1, k]) > 1e-8:
            L[k, k + 1], L[k + 1, k] = (angle := np.arctan2(S[k, k + 1], S[k, k])), -angle
            k += 2
            continue
        if S[k, k] < 0:
            minus.append(k)
        k += 1
    for a, b in zip(minus[0::2], minus[1::2], strict=False):  # two of them are half a turn
        L[a, b], L[b, a] = np.pi, -np.pi
    if len(minus) % 2:
        F[minus[-1], minus[-1]] = -1.0
    return np.asarray(Z @ L @ Z.T), np.asarray(Z @ F @ Z.T)


# -- whether samples determine A between them ------------------------------------------------------------------------


def _refine_between_samples(
    path: LinearizedPath, orbit: PeriodicOrbit, samples: Sequence[OperatingPoint], request: Request
) -> tuple[LinearizedPath, FloatArray | None]:
    """Return the path with what its samples leave open in its error, or transitions (m, P, P) that leave nothing."""
    A, period, P = path.A[:-1], orbit.period, len(path.states)
    D = Periodic(A, period, np.eye(P), path.error[:-1]).equilibrate()[1]
    ratio = D / D[:, None]
    tail = np.abs(ratio * (with_upper_harmonics_mistaken(A, np.ones((P, P))) - A)).max(initial=0.0)
    phases = (
        np.random.default_rng(1888).random(CHECKED_PHASE_COUNT) + np.arange(CHECKED_PHASE_COUNT)
    ) / CHECKED_PHASE_COUNT
    off, transitions = _measure_gaps(path, orbit, samples, D, phases), None
    # Pulses that the model's graph, or its inputs, announce are too short for phases that are drawn.
    knots = _knots(orbit)
    if knots.size:
        between = 0.5 * (knots[1:] + knots[:-1])
        off = max(off, _measure_gaps(path, orbit, samples, D, np.concatenate((knots, between))))
    if max(off, UPPER_HARMONICS_FACTOR * float(tail)) <= INTERPOLATION_TOLERANCE * max(
        1 / period, float(np.abs(A * ratio).max(initial=0.0))
    ):
        return path, None
    # Steps between samples are taken in states as coordinates: with a carried basis what is open stays in the error.
    if not path.carried:
        transitions, off = _halve_steps(path, orbit, request, D, knots)
    off = min(off, 1 / period)  # nothing is known then
    return replace(path, error=path.error + off / max(P, 1) / ratio), transitions


def _knots(orbit: PeriodicOrbit) -> FloatArray:
    """Return the phases of jumps, kinks and pulses of what acts on the model."""
    begin = orbit.start.time
    course = input_course(orbit.model.inputs, orbit.start.inputs, orbit.run.inputs)
    times = find_time_breaks(orbit.model, orbit.start, course, begin + orbit.period).times
    return np.asarray((times[:MAX_KNOTS] - begin) / orbit.period)


def _measure_gaps(
    path: LinearizedPath, orbit: PeriodicOrbit, samples: Sequence[OperatingPoint], D: FloatArray, phases: FloatArray
) -> float:
    """Return how far A is from what its samples say between them, in 1/s, in coordinates y = D z."""
    model, period, m = orbit.model, orbit.period, len(path.times) - 1
    x, random = np.array([point.states for point in samples]), np.random.default_rng(1883)
    gain, R = x[-1] - x[0], path.R[:-1]
    staying = x[:-1] - np.outer(np.arange(m) / m, gain)
    inputs = np.array([point.inputs for point in samples[:-1]])
    rate, sizes = derivative(staying, period) + gain / period, model.states.scales(x[0])
    parts = (path.A[:-1], path.T[:-1], staying, R, derivative(R, period), inputs, rate)
    courses = [Interpolant(part) for part in parts]
    # 1e-300: sizes and rates may be zero, and are divided by.
    D = D * LATERAL_DISPLACEMENT_SIZE / float(np.max(D / np.maximum(np.abs(R[0]) @ sizes, 1e-300), initial=1e-300))
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
    blurred = lost * float(np.abs(path.A * D / D[:, None]).max(initial=0.0)) if lost > MAX_LOST_RATE_RATIO else 0.0
    return max(float(off.max(initial=0.0)), blurred)


def _halve_steps(
    path: LinearizedPath, orbit: PeriodicOrbit, request: Request, D: FloatArray, knots: FloatArray
) -> tuple[FloatArray, float]:
    """Return transitions from sample to sample by steps as short as A needs, and what they leave open, in 1/s."""
    how = replace(request, independent=path.states.names, coordinates="partition", outputs=None, inputs=None)
    if path.is_exact:
        how = replace(how, checks="none")  # the samples were checked; these are nodes of steps between them
    m, P = len(path.times) - 1, len(path.states)

    def steps(starts: FloatArray, lengths: FloatArray) -> FloatArray:
        # The last node of a step that ends at a knot belongs to what is before it.
        nodes = starts[:, None] + lengths[:, None] * NODES * (1 - KNOT_GAP_FRACTION)
        times = orbit.start.time + orbit.period * nodes.ravel()
        points = sample_orbit_times(orbit.model, orbit.nodes, times, orbit.period, orbit.run)[0]
        A = linearize_stretch(orbit.model, points, how).A.reshape(-1, len(NODES), P, P)
        return compute_factors(A, lengths * orbit.period)

    inside = knots[np.abs(knots * m - np.round(knots * m)) > KNOT_GAP_FRACTION]
    starts = np.union1d(np.arange(m) / m, inside)
    lengths, change = np.diff(np.append(starts, 1.0)), np.full(len(starts), 1.0)
    coarse, finished = steps(starts, lengths), list[tuple[float, FloatArray]]()
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
        rough = ~(change <= STEP_HALVING_TOLERANCE)
        finished += zip(starts[~rough].tolist(), both[~rough], strict=True)
        starts, coarse, change = halves[rough].ravel(), fine[rough].reshape(-1, P, P), change[rough]
        lengths = np.repeat(lengths[rough], 2)
        if not 0 < len(starts) <= STEPS:
            break
    finished = sorted([*finished, *zip(starts.tolist(), coarse, strict=True)], key=lambda step: step[0])
    # 1e-9: a step that begins at a sample, up to rounding, belongs to what follows it.
    numbers = np.floor(np.array([start for start, _ in finished]) * m + 1e-9)
    factors = np.array([factor for _, factor in finished])
    return np.array([product(factors[numbers == k]) for k in range(m)]), float(change.sum()) / orbit.period
