"""Count and search of the eigenvalues of a system with delays right of a vertical line.

The determinant of [[s I - A, -B2 E], [-C2, I - D22 E]] is det(s I - A) det(I - P22 E) with P22 = D22 + C2 (s I - A)^-1
B2. Beyond a frequency the spectral radius of P22 E is certainly below 1, so that the remaining phase up to infinity is
known in closed form; below it the phase is followed from point to point. The logarithmic derivative at both ends of a
step shows eigenvalues near it, even where an even number of them turns the phase by whole turns. This is the
argument principle.
"""

from __future__ import annotations

import math

import numpy as np

from fmilin.numerics.delay_form import Complex, DelayForm
from fmilin.numerics.delay_loops import balance_form, list_loop_parts
from fmilin.signals import FloatArray

FIRST_PHASE_STEP = 0.5  # in rad, of the sum of the delays between two points of the first grid
MAX_PHASE_STEP = 1.0  # in rad, of the determinant between two points
MAX_PHASE_SURPRISE = 0.3  # in rad, between a step and its prediction by derivatives
MAX_RELATIVE_STEP = 1.5  # times the logarithmic derivative: eigenvalues nearer than this make a step shorter
MAX_POINTS = 200_000  # on the line of the argument principle: where more are needed the count stays unknown
MAX_HALVINGS = 60  # of a step near an eigenvalue on the line, until its ends are neighbouring numbers
SEARCH_PHASE_STEP = 1.0  # in rad, of the sum of the delays between points from which Newton's method starts
SEARCH_ITERATIONS = 25  # of Newton's method from each start: those of eigenvalues elsewhere do not end
SEARCH_TOLERANCE = 1e-6  # of Newton's last step, relative to the eigenvalue
MAX_SEARCH_POINTS = 20_000  # starts that are iterated together
POLE_OFFSETS = np.sinh(np.linspace(-6.0, 6.0, 13))  # of points around a pole, relative to its distance from the line
SMALL_LOOP_RADIUS = 0.9  # the spectral radius of P22 E that ends the grid, from its limit (0) to 1 (1)
MAX_FREQUENCY_DOUBLINGS = 120  # of the frequency above which the loop is small: overflowing bounds do not become small
MAX_COUNT_ERROR = 0.1  # between the number of turns and a whole number: more is rounding


def count_eigenvalues_right_of(form: DelayForm, abscissa: float) -> int | None:
    """Return how many eigenvalues have a larger real part, by the argument principle; None where that is too costly.

    Of neutral systems only right of a line on which what passes the delays without a state fades from turn to turn.
    """
    form = form.close_undelayed()
    total = 0
    for part in list_loop_parts(form):
        block = balance_form(form.select_loop(part.states, part.channels))
        if not part.channels:
            total += int(np.count_nonzero(np.linalg.eigvals(block.A).real > abscissa))
            continue
        counted = count_in_part(block, abscissa)
        if counted is None:
            return None
        total += counted
    return total


def count_in_part(form: DelayForm, abscissa: float) -> int | None:
    """Return how many eigenvalues of one strongly connected part are right of a line; None where it is too costly."""
    top = bound_frequency(form, abscissa)
    total = float(form.delays.sum())
    if not top * total / FIRST_PHASE_STEP < MAX_POINTS:
        return None
    poles = np.linalg.eigvals(form.A).astype(np.complex128)
    around = np.abs(poles.imag)[:, None] + np.abs(poles.real - abscissa)[:, None] * POLE_OFFSETS
    even = np.linspace(0.0, top, int(top * total / FIRST_PHASE_STEP) + 17)
    w = np.unique(np.concatenate((even, around[(around > 0) & (around < top)])))
    turn = _follow_phase(form, abscissa, w)
    if turn is None:
        return None
    s = complex(abscissa, top)
    E = np.exp(-s * form.delays)
    P22 = form.D22 + form.C2 @ np.linalg.solve(s * np.eye(len(form.A)) - form.A, form.B2)
    # from the end of the grid to infinity, where each s - p points upward and det(I - P22 E) is 1
    turn -= float(np.angle(-1j * (s - poles)).sum() + np.angle(1.0 - np.linalg.eigvals(P22 * E)).sum())
    counted = len(form.A) / 2 - turn / math.pi
    return round(counted) if abs(counted - round(counted)) < MAX_COUNT_ERROR else None


def _follow_phase(form: DelayForm, abscissa: float, w: FloatArray) -> float | None:
    """Return by how much the phase of the determinant grows along the line from frequency 0 to the last one."""
    try:
        phases, slopes = _evaluate(form, abscissa, w)
        for _ in range(MAX_HALVINGS):
            lengths = np.diff(w)
            steps = np.angle(np.exp(1j * np.diff(phases)))
            predicted = lengths * (slopes.real[1:] + slopes.real[:-1]) / 2
            sizes = np.maximum(np.abs(slopes[1:]), np.abs(slopes[:-1]))
            coarse = np.flatnonzero(
                (np.abs(steps) > MAX_PHASE_STEP)
                | (np.abs(steps - predicted) > MAX_PHASE_SURPRISE)
                | (lengths * sizes > MAX_RELATIVE_STEP)
            )
            if not len(coarse):
                return float(steps.sum())
            if len(w) + len(coarse) > MAX_POINTS:
                return None
            middles = (w[coarse] + w[coarse + 1]) / 2
            new_phases, new_slopes = _evaluate(form, abscissa, middles)
            w = np.insert(w, coarse + 1, middles)
            phases = np.insert(phases, coarse + 1, new_phases)
            slopes = np.insert(slopes, coarse + 1, new_slopes)
    except np.linalg.LinAlgError:
        return None  # an eigenvalue on the line
    return None


def _evaluate(form: DelayForm, abscissa: float, w: FloatArray) -> tuple[FloatArray, Complex]:
    """Return the phase of the determinant at points of the line, and its logarithmic derivative."""
    points = np.asarray(abscissa + 1j * w)
    return form.compute_characteristic_phases(points), form.compute_logarithmic_slopes(points)


def search_eigenvalues(form: DelayForm, abscissa: float) -> Complex:
    """Return points near eigenvalues of one part right of a line, by Newton's method on the logarithm of det.

    It starts from the line, on which the phase of the delays needs ``SEARCH_PHASE_STEP`` from point to point. Some
    eigenvalues may be missing, and some points repeat each other.
    """
    top, total = bound_frequency(form, abscissa), float(form.delays.sum())
    count = top * total / SEARCH_PHASE_STEP
    if not count < MAX_SEARCH_POINTS:
        return np.empty(0, np.complex128)
    s = np.asarray(abscissa + 1j * np.linspace(0.0, top, int(count) + 17))
    done: list[complex] = []
    for _ in range(SEARCH_ITERATIONS):
        try:
            step = 1.0 / form.compute_logarithmic_slopes(s)
        except np.linalg.LinAlgError:  # an iterate is an eigenvalue to the last digit
            s = s * (1.0 + SEARCH_TOLERANCE / 8) + 1e-9j / total
            continue
        s = s - step * np.minimum(1.0, 1.0 / (total * np.abs(step)))
        stays = np.isfinite(s) & (s.real * total > abscissa * total - 1.0) & (np.abs(s.imag) <= 2 * top)
        has_converged = np.abs(step) <= SEARCH_TOLERANCE * (np.abs(s) + 1.0 / total)
        done += s[stays & has_converged].tolist()
        s = s[stays & ~has_converged]
        if not len(s):
            break
    points = np.sort_complex(np.array(done, dtype=np.complex128))
    is_new = np.abs(np.diff(points, prepend=np.inf)) > SEARCH_TOLERANCE * (np.abs(points) + 1.0 / total)
    return np.asarray(points[is_new])


def bound_frequency(form: DelayForm, abscissa: float) -> float:
    """Return a frequency beyond which the spectral radius of P22 E is below 1 on a vertical line; inf if there is none.

    |P22| is bounded by the residues at the poles of A over their distances, and by the norm of A.
    """
    n = len(form.A)
    poles, V = np.linalg.eig(form.A) if n else (np.empty(0), np.empty((0, 0)))
    # 700: beyond it the exponential overflows, and a bound of that size is as good as none.
    growth = np.exp(np.minimum(-abscissa * form.delays, 700.0))
    norm = float(np.linalg.norm(form.A, 2)) if n else 0.0
    by_norm = np.outer(np.linalg.norm(form.C2, axis=1), np.linalg.norm(form.B2, axis=0))
    try:
        residues = np.abs(form.C2 @ V)[:, :, None] * np.abs(np.linalg.solve(V, form.B2.astype(np.complex128)))[None]
    except np.linalg.LinAlgError:
        residues = np.full((len(growth), n, len(growth)), np.inf)

    passing = float(np.abs(np.linalg.eigvals(np.abs(form.D22) * growth)).max(initial=0.0))  # 0 of retarded systems
    if not passing < 1:
        return math.inf
    limit = passing + SMALL_LOOP_RADIUS * (1.0 - passing)

    def is_small(frequency: float) -> bool:
        nearest = np.hypot(abscissa - poles.real, np.maximum(frequency - np.abs(poles.imag), 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = (residues / nearest[None, :, None]).sum(axis=1)
        if frequency > norm:
            bound = np.fmin(bound, by_norm / (frequency - norm))
        P22 = (np.abs(form.D22) + bound) * growth
        if not np.isfinite(P22).all():
            return False
        return float(np.abs(np.linalg.eigvals(P22)).max(initial=0.0)) < limit

    frequency = 1.0 / float(form.delays.sum())
    for _ in range(MAX_FREQUENCY_DOUBLINGS):
        if is_small(frequency):
            break
        frequency *= 2.0
    else:
        return math.inf
    # The last doubling may be too far by up to a half: each part of it saves points of the line.
    for factor in (0.75, 0.875):
        if is_small(factor * frequency):
            frequency *= factor
    return frequency
