"""The rightmost eigenvalues of a system with internal delays, with errors.

The history of each delayed signal obeys a transport equation. Collocated at Chebyshev nodes it makes a matrix of which
the eigenvalues approximate those of the infinitesimal generator (Breda, Maset and Vermiglio, SIAM J. Sci. Comput. 27,
2005). Newton's method on the characteristic equation corrects each of them to rounding; a second, finer mesh must lead
to the same ones, and the argument principle must count as many. Where it counts more, Newton's method from many points
of a vertical line must find them. Only delays on a loop matter, and each strongly connected part of the system has
eigenvalues of its own.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import NumericalError
from fmilin.numerics.delay_counts import count_in_part, search_eigenvalues
from fmilin.numerics.delay_form import Complex, DelayForm
from fmilin.numerics.delay_loops import balance_form, list_loop_parts, require_retarded
from fmilin.numerics.eigenvalue_errors import estimate_eigenvalues
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS

FIRST_NODE_COUNT = 24  # of the coarsest mesh of a delay
MESH_GROWTH_FACTOR = 1.5  # from one mesh to the next
MAX_MATRIX_SIZE = 700  # of the discretized generator
MAX_NEWTON_ITERATIONS = 60  # a double eigenvalue halves its error in each
MAX_CHANGE = 1e100  # of the null vector in an iteration: more is an overflow
NEWTON_TOLERANCE = 4.0  # times eps, relative to the eigenvalue: a step that ends Newton's method
SAME_ROOT_DISTANCE = 1e-6  # relative to the size of the eigenvalue, within which results of Newton's method are one
CANDIDATE_FACTOR = 1.6  # more candidates than eigenvalues are corrected: the rightmost ones of a mesh may be wrong
ROUNDING_FACTOR = 8.0  # backward error of F(s) v = 0 in units of eps times its entries
LINE_DISTANCE = 0.02  # of the line on which eigenvalues are counted, relative to the size of the last one
CIRCLE_POINT_COUNT = 96  # at which the determinant is evaluated to count the eigenvalues in a circle
LARGEST_CIRCLE_FACTOR = 0.4  # a circle around an eigenvalue, relative to the distance of the next one


class DelayEigenvalues(NamedTuple):
    """Eigenvalues of a system with delays."""

    values: Complex  # sorted by real part, then imaginary part
    errors: FloatArray  # how far each may be off
    from_delays: NDArray[np.bool_]  # whether an eigenvalue belongs to a loop with a delay
    is_complete: bool  # whether there are no others: no delay is on a loop


def find_rightmost_eigenvalues(form: DelayForm, count: int) -> DelayEigenvalues:
    """Return the ``count`` rightmost eigenvalues, one more where a conjugate pair would be split.

    All eigenvalues where no delay is on a loop. UsageError for neutral systems; NumericalError where meshes disagree.
    """
    form = form.close_undelayed()
    require_retarded(form)
    values, errors, from_delays = [], [], []
    is_complete = True
    for part in list_loop_parts(form):
        block = form.select_loop(part.states, part.channels)
        if part.channels:
            is_complete = False
            part_values, part_errors = _find_of_block(block, count)
        else:
            estimates = estimate_eigenvalues(block.A, block.errors)
            part_values, part_errors = estimates.values, estimates.errors
        values.append(part_values)
        errors.append(part_errors)
        from_delays.append(np.full(len(part_values), bool(part.channels)))
    if not values:
        return DelayEigenvalues(np.empty(0, np.complex128), np.empty(0), np.empty(0, np.bool_), is_complete=True)
    s, e, d = np.concatenate(values), np.concatenate(errors), np.concatenate(from_delays)
    order = np.lexsort((-np.abs(s.imag), -s.real))
    if not is_complete:
        order = order[: _end_of_pair(s[order], count)]
    order = order[np.lexsort((s[order].imag, s[order].real))]
    return DelayEigenvalues(s[order], e[order], d[order], is_complete)


def _end_of_pair(values: Complex, count: int) -> int:
    """Return ``count``, or one more where the last of so many values has its conjugate behind it."""
    if count < len(values) and values[count - 1].imag != 0:
        pairs = np.count_nonzero(np.abs(values[:count] - values[count].conj()) <= 1e-9 * abs(values[count]))
        same = np.count_nonzero(np.abs(values[:count] - values[count]) <= 1e-9 * abs(values[count]))
        return count + 1 if pairs > same else count
    return count


def discretize_generator(form: DelayForm, node_count: int) -> FloatArray:
    """Return the matrix of order n + m N that approximates the generator, N nodes for the history of each channel."""
    n, m = len(form.A), len(form.delays)
    N = node_count
    D, _ = differentiate_chebyshev(N)  # nodes from 1 (now) down to -1 (a delay ago)
    size = n + m * N
    G = np.zeros((size, size))
    G[:n, :n] = form.A
    ends = n + N * np.arange(1, m + 1) - 1  # the positions of w_i = v_i(-tau_i)
    G[:n, ends] = form.B2
    for i in range(m):
        rows = slice(n + i * N, n + (i + 1) * N)
        scale = 2.0 / form.delays[i]
        G[rows, rows] += scale * D[1:, 1:]
        first = scale * D[1:, 0]  # times v_i(0) = z_i = C2 x + D22 w
        G[rows, :n] += np.outer(first, form.C2[i])
        G[rows, ends] += np.outer(first, form.D22[i])
    return G


def differentiate_chebyshev(count: int) -> tuple[FloatArray, FloatArray]:
    """Return the differentiation matrix at the ``count`` + 1 Chebyshev points cos(pi k / count), and these points."""
    k = np.arange(count + 1)
    x = np.sin(np.pi * (count - 2 * k) / (2 * count))
    c = np.where((k == 0) | (k == count), 2.0, 1.0) * (-1.0) ** k
    # differences of cosines by a product of sines: no cancellation between neighbours
    i, j = np.meshgrid(k, k, indexing="ij")
    dx = 2 * np.sin(np.pi * (i + j) / (2 * count)) * np.sin(np.pi * (j - i) / (2 * count))
    D = np.outer(c, 1 / c) / (dx + np.eye(count + 1))
    D -= np.diag(D.sum(axis=1))
    return D, x


# -- one strongly connected part -------------------------------------------------------------------------------------


def _find_of_block(form: DelayForm, count: int) -> tuple[Complex, FloatArray]:
    """Return the rightmost eigenvalues of one part; two meshes must agree."""
    form = balance_form(form)
    n, m = len(form.A), len(form.delays)
    N = max(FIRST_NODE_COUNT, 2 * count // m)
    previous: Complex | None = None
    while n + m * N <= MAX_MATRIX_SIZE or previous is None:
        candidates = np.asarray(np.linalg.eigvals(discretize_generator(form, N)), dtype=np.complex128)
        roots = _correct(form, candidates, count, previous)
        enough = min(count, len(roots))  # where delays cancel, the spectrum is finite
        if previous is not None and (enough == count or len(previous) == enough) and _agree(roots, previous, enough):
            end = enough if len(roots) <= enough else _end_of_pair(roots, enough)
            line, expected = _choose_line(form, roots, end)
            counted = count_in_part(form, line)
            if counted == expected:
                return roots[:end], _estimate_errors(form, roots)[:end]
            if counted is not None and counted > expected:  # meshes that resolve no high frequency agree on low ones
                results = _search(form, line, roots[:expected], counted, count)
                if results is not None:
                    return results
        previous = roots
        N = int(MESH_GROWTH_FACTOR * N) + 1
    if len(previous) >= count:
        line, expected = _choose_line(form, previous, _end_of_pair(previous, count))
        counted = count_in_part(form, line)
        results = None if counted is None else _search(form, line, previous[:expected], counted, count)
        if results is not None:
            return results
    raise NumericalError(
        f"The {count} rightmost eigenvalues of the system with delays did not converge with {N} nodes for each delay: "
        "delays and time constants are too far apart. Use lin.pade(order), or count_eigenvalues_right_of(0.0) alone."
    )


def _choose_line(form: DelayForm, roots: Complex, count: int) -> tuple[float, int]:
    """Return a line in a gap of the real parts behind ``count`` roots, and how many roots are right of it."""
    for k in range(count, len(roots)):
        gap = float(roots[k - 1].real - roots[k].real)
        size = _size(form, complex(roots[k - 1]))
        # Narrower gaps may lie inside a multiple eigenvalue.
        if gap > 4 * SAME_ROOT_DISTANCE * size:
            return float(roots[k - 1].real) - min(gap / 2, LINE_DISTANCE * size), k
    return float(roots[-1].real) - LINE_DISTANCE * SAME_ROOT_DISTANCE**0.5 * _size(form, complex(roots[-1])), len(roots)


def _search(form: DelayForm, line: float, roots: Complex, total: int, count: int) -> tuple[Complex, FloatArray] | None:
    """Return ``count`` rightmost eigenvalues and their errors; None where not all right of a line are found.

    ``roots`` are known, and ``total`` is how many there are.
    """
    extended = roots.tolist()
    for start in search_eigenvalues(form, line).tolist():
        near = np.abs(np.array(extended) - start) <= _same_distance(form, start)
        if start.real > line and start.imag >= 0 and not near.any():
            is_real = start.imag <= _same_distance(form, start)
            extended += [complex(start.real, 0.0)] if is_real else [start, start.conjugate()]
    if len(extended) != total:
        return None
    values = np.array(extended, dtype=np.complex128)
    values = values[np.lexsort((values.imag, -values.real))][: int(CANDIDATE_FACTOR * count) + 4]
    corrected: list[complex] = []
    for value in values.tolist():
        root = value if value in roots else solve_newton(form, complex(value.real, abs(value.imag)))
        if root is None:
            return None
        corrected.append(root if value in roots or value.imag >= 0 else root.conjugate())
    eigenvalues = np.array(corrected, dtype=np.complex128)
    eigenvalues = eigenvalues[np.lexsort((eigenvalues.imag, -eigenvalues.real))]
    end = _end_of_pair(eigenvalues, count)
    return eigenvalues[:end], _estimate_errors(form, eigenvalues)[:end]


def _agree(roots: Complex, reference: Complex, count: int) -> bool:
    """Whether two meshes lead to the same ``count`` rightmost eigenvalues."""
    if len(reference) < count:
        return False
    size = np.maximum(np.abs(roots[:count]), np.abs(roots).max(initial=0.0) * EPS)
    return bool((np.abs(roots[:count] - reference[:count]) <= SAME_ROOT_DISTANCE * size + 1e-300).all())


def _correct(form: DelayForm, candidates: Complex, count: int, previous: Complex | None) -> Complex:
    """Return the corrected rightmost candidates, from the right, pairs side by side, multiple ones repeated.

    Candidates near ``previous`` roots, of a coarser mesh, need no correction.
    """
    upper = candidates[candidates.imag >= 0]
    upper = upper[np.argsort(-upper.real)][: int(CANDIDATE_FACTOR * count) + 4]
    distinct: list[tuple[complex, int]] = []
    for candidate in upper.tolist():
        root = _take_previous(form, candidate, previous) or solve_newton(form, candidate)
        if root is None:
            continue
        weight = 2 if candidate.imag > 0 and root.imag == 0 else 1  # a double real one appears as a narrow pair
        near = [k for k, (other, _) in enumerate(distinct) if abs(root - other) <= _same_distance(form, root)]
        if near:
            other, hits = distinct[near[0]]
            distinct[near[0]] = (other, hits + weight)
        else:
            distinct.append((root, weight))
    result: list[complex] = []
    for k, (root, hits) in enumerate(distinct):
        order = hits
        if hits > 1:
            neighbours = [other for j, (other, _) in enumerate(distinct) if j != k]
            order = _count_in_circle(form, root, neighbours)
        result += [root] * order
        if root.imag > 0:
            result += [root.conjugate()] * order
    values = np.array(result, dtype=np.complex128)
    return values[np.lexsort((values.imag, -values.real))] if len(values) else values


def _take_previous(form: DelayForm, candidate: complex, previous: Complex | None) -> complex | None:
    """Return the root of a coarser mesh that a candidate approximates."""
    if previous is None or not len(previous):
        return None
    nearest = complex(previous[np.argmin(np.abs(previous - candidate))])
    return nearest if nearest.imag >= 0 and abs(nearest - candidate) <= _same_distance(form, nearest) else None


def _size(form: DelayForm, s: complex) -> float:
    """Return the size relative to which a difference of eigenvalues is small."""
    return max(abs(s), 1.0 / float(form.delays.max()), float(np.abs(form.A).max(initial=0.0)) * EPS)


def _same_distance(form: DelayForm, s: complex) -> float:
    return SAME_ROOT_DISTANCE * _size(form, s)


def solve_newton(form: DelayForm, s: complex) -> complex | None:
    """Return the eigenvalue near ``s``; None where Newton's method runs away."""
    start = s
    real = abs(s.imag) <= SAME_ROOT_DISTANCE * _size(form, s)
    if real:
        s = complex(s.real, 0.0)
    F = form.evaluate_loop(np.array([s]))[0]
    v = np.linalg.svd(F)[2][-1].conj()
    last_step = math.inf
    for _ in range(MAX_NEWTON_ITERATIONS):
        F = form.evaluate_loop(np.array([s]))[0]
        bordered = np.zeros((len(v) + 1, len(v) + 1), dtype=np.complex128)
        bordered[:-1, :-1] = F
        bordered[:-1, -1] = form.differentiate_loop(np.array([s]))[0] @ v
        bordered[-1, :-1] = v.conj()
        try:
            change = np.linalg.solve(bordered, np.append(-F @ v, 0.0))
        except np.linalg.LinAlgError:
            return s if last_step <= _same_distance(form, s) else None
        step = complex(change[-1])
        # It would lead to the eigenvalue of another candidate, or to none.
        if not np.abs(change).max() < MAX_CHANGE or abs(s + step - start) > 0.5 * _size(form, start) + 4 * abs(start):
            return None
        if abs(step) >= 0.9 * last_step and last_step <= _same_distance(form, s):
            return s  # rounding
        v = v + change[:-1]
        v /= np.linalg.norm(v)
        was_right = s.real >= 0
        s = s + step
        if real:
            s = complex(s.real, 0.0)
        # Columns are scaled otherwise on the two sides of the axis, against overflow.
        if was_right != (s.real >= 0):
            v = _convert_vector(form, v, s)
        last_step = abs(step)
        if last_step <= NEWTON_TOLERANCE * EPS * abs(s):
            return s
    return s if last_step <= _same_distance(form, s) else None


def _convert_vector(form: DelayForm, v: Complex, s: complex) -> Complex:
    """Return an approximate null vector over the columns that hold at ``s``: w = E z."""
    n = len(form.A)
    v = v.copy()
    exponents = s * form.delays if s.real >= 0 else -s * form.delays
    largest = float(exponents.real.max(initial=0.0))  # against overflow: the length of v is free
    v[:n] *= np.exp(-largest)
    v[n:] *= np.exp(exponents - largest)
    return np.asarray(v / np.linalg.norm(v))


# -- errors and counts ---------------------------------------------------------------------------------------------


def bound_backward_error(form: DelayForm, s: complex) -> FloatArray:
    """Return bounds of the errors of the entries of F(s): rounding, and the errors of the matrices."""
    n = len(form.A)
    size = np.abs(form.loop) * ROUNDING_FACTOR * EPS + form.errors
    decay = np.exp(-abs(s.real) * form.delays)
    turns = ROUNDING_FACTOR * EPS * (1.0 + abs(s) * form.delays)  # rounding of s tau in the exponent
    if s.real >= 0:
        size[:, n:] = decay * (size[:, n:] + turns * np.abs(form.loop[:, n:]))
    else:
        diagonal = np.arange(n, len(size))
        size[diagonal, diagonal] += decay * turns
    states = np.arange(n)
    size[states, states] += ROUNDING_FACTOR * EPS * abs(s)
    return size


def _estimate_errors(form: DelayForm, values: Complex) -> FloatArray:
    """Return how far each eigenvalue may be off."""
    errors = np.empty(len(values))
    for k, value in enumerate(values.tolist()):
        distances = np.abs(values - value)
        alike = int(np.count_nonzero(distances <= _same_distance(form, value)))
        if value.imag < 0 and k and values[k - 1] == value.conjugate():
            errors[k] = errors[k - 1]
            continue
        bound = bound_backward_error(form, value)
        F = form.evaluate_loop(np.array([value]))[0]
        U, _, Vh = np.linalg.svd(F)
        u, v = U[:, -1].conj(), Vh[-1].conj()
        slope = abs(u @ form.differentiate_loop(np.array([value]))[0] @ v)
        moved = float(np.abs(u) @ bound @ np.abs(v)) + abs(complex(u @ F @ v))
        separations = distances[distances > _same_distance(form, value)]
        largest = LARGEST_CIRCLE_FACTOR * float(separations.min(initial=_size(form, value)))
        first_order = moved / slope if slope > 0 else math.inf
        is_simple = alike == 1 and first_order < 0.01 * largest
        errors[k] = first_order if is_simple else _find_safe_radius(form, value, float(np.linalg.norm(bound)), largest)
    return errors


def _find_safe_radius(form: DelayForm, s: complex, perturbation: float, largest: float) -> float:
    """Return the radius of a circle on which F(z) stays regular under the perturbation; ``largest`` if there is none.

    The number of eigenvalues inside cannot change then, whatever their multiplicity.
    """
    directions = np.exp(2j * np.pi * np.arange(16) / 16)
    for radius in np.geomspace(1e-14 * _size(form, s), largest, 120):
        F = form.evaluate_loop(s + radius * directions)
        if np.linalg.svd(F, compute_uv=False)[:, -1].min() > 2 * perturbation:
            return float(radius)
    return float(largest)


def _count_in_circle(form: DelayForm, s: complex, neighbours: list[complex]) -> int:
    """Return how many eigenvalues lie in a circle around ``s`` that excludes its neighbours."""
    distances = [abs(other - s) for other in neighbours] + ([2 * abs(s.imag)] if s.imag else [])
    radius = LARGEST_CIRCLE_FACTOR * min([*distances, 0.1 * _size(form, s)])
    points = s + radius * np.exp(2j * np.pi * np.arange(CIRCLE_POINT_COUNT) / CIRCLE_POINT_COUNT)
    phases = form.compute_characteristic_phases(points)
    steps = np.angle(np.exp(1j * np.diff(np.append(phases, phases[0]))))
    return max(1, round(float(steps.sum()) / (2 * np.pi)))
