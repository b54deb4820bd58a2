"""Pulses on each input, the Markov parameters that they give, and the discrete model that these are realized as.

An input is moved by +a and by -a during one step: r(a) = (y(+a) - y(-a)) / (2 a). The change of r at a smaller a is the
error estimate. The order follows from singular values and held-out responses. Where declared states follow the
identified ones one to one, some become the coordinates; else they are ``z[1]``, ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from fmilin.errors import FmilinError, NumericalError
from fmilin.identification.discrete_models import Sampled
from fmilin.identification.experiments import Experiments, join
from fmilin.model.stepping import Response
from fmilin.signals import FloatArray
from fmilin.tolerances import (
    DOUBTFUL_CONDITION_NUMBER,
    MAX_COORDINATE_CONDITION_NUMBER,
    PREDICTION_ERROR_TOLERANCE,
    RANK_MEASURED,
    ROUNDING_TOLERANCE,
    SMALLEST_DIVISOR,
)

SMALLER_PULSE_RATIO = (
    3.0  # pulses that tell the error are smaller by this; no power of 2, with which a linear model rounds alike
)
MIN_STEPS = 20  # of a record
GROWTH = 1e4  # a record ends where responses exceed the largest of its first steps by this
GROWTH_RATIO, DISPROPORTION_TOLERANCE = (
    3.0,
    1e-6,
)  # or by this, and responses to a smaller pulse are out of proportion by that part
MAX_ORDER = 60  # the highest that is tried
MIN_SIZE_FOR_RANDOMIZED_SVD, OVERSAMPLING_COUNT, POWER_ITERATIONS = (
    400,
    40,
    2,
)  # size from which a leading part is computed; more directions; iterations


@dataclass(frozen=True)
class Markov:
    """Responses to unit pulses, input by input, aligned with the state at the start of each step."""

    D: FloatArray  # (ny, nu), the outputs of the step of the pulse itself
    Y: FloatArray  # (K, ny + N, nu), Y_1, Y_2, ...: outputs, then declared states, of the steps that follow
    errors: FloatArray  # shape (K, ny + N, nu)
    reading: str  # when outputs are read, see :class:`~fmilin.identification.discrete_models.Sampled`
    step: float
    half: Markov | None = None  # the same at a smaller amplitude


def measure_pulses(
    experiments: Experiments, amplitudes: FloatArray, step: float, count: int, *, first: int = 0, errors: bool = True
) -> Markov:
    """Return Markov parameters of ``count`` steps from pulses in step ``first``.

    This takes four runs for each input; two without ``errors``, which need smaller pulses, too.
    """
    zero = _respond_together(experiments, amplitudes, step, count) if first == 0 else None
    parts = (1.0, SMALLER_PULSE_RATIO) if errors else (1.0,)
    responses: list[list[Response]] = [[] for _ in parts]
    for j, amplitude in enumerate(amplitudes.tolist()):
        for record, part in zip(responses, parts, strict=True):
            if zero is not None and j in experiments.unresponsive:
                record.append(zero)
            elif first == 0:
                record.append(experiments.pulse(j, amplitude / part, step, count))
            else:
                record.append(experiments.respond_to_pulse(j, amplitude / part, step, count, first))
    reading = find_reading(experiments, step, responses[-1])
    full_record, *smaller = (_align(record, reading, step) for record in responses)
    if not smaller:
        return full_record
    differences = np.abs(full_record.Y - smaller[0].Y)
    return replace(full_record, errors=differences, half=replace(smaller[0], errors=differences))


def _respond_together(experiments: Experiments, amplitudes: FloatArray, step: float, count: int) -> Response | None:
    """Return the response to all inputs together that moved nothing in short runs, if there is none to them either."""
    unresponsive = sorted(experiments.unresponsive)
    if len(unresponsive) < 2:
        return None
    deviations = np.zeros((count, len(amplitudes)))
    deviations[0, unresponsive] = amplitudes[unresponsive]
    response = experiments.odd(deviations, step)
    return None if join(response).any() else response


def find_reading(experiments: Experiments, step: float, responses: Sequence[Response]) -> str:
    """Return how the outputs are to be read, which is measured once: the self-test of the sampling convention."""
    # An output that answers before the step can be read at once. One that answers in the step of the pulse however
    # small the step is feeds through, but is calculated at the end of steps only. Any other is strictly proper.
    return experiments.once("reading", lambda: _find_reading(experiments, step, responses))


def _find_reading(experiments: Experiments, step: float, responses: Sequence[Response]) -> str:
    sizes = np.array([np.max(np.abs(p.after), axis=0, initial=0.0) for p in responses]).T  # (ny, nu)
    at_once = np.array([p.at_once[0] for p in responses]).T
    relative = np.abs(at_once) / np.where(sizes > 0, sizes, 1.0)
    # a direct gain below a millionth of the response is rounding
    if relative.size and np.max(relative) > 1e-6:
        return "at once"
    limits = _extrapolate_ends(experiments, step)
    if limits is None or not limits.size:
        return "at once"
    through = np.abs(limits) / np.where(sizes > 0, sizes, 1.0)
    # a hundredth of the response remains at the end of a vanishing step only where outputs are of that end
    return "end of step" if np.max(through) > 1e-2 else "at once"


def _extrapolate_ends(experiments: Experiments, step: float) -> FloatArray | None:
    """Return what remains of the response at the end of the pulse's step as steps vanish, (ny, nu)."""
    step = max(step, 4 * (experiments.cadence.internal or 0.0))
    try:
        ends = _measure_ends(experiments, step)
    except FmilinError:  # the model does not take smaller steps
        try:
            ends = _measure_ends(experiments, 4 * step)
        except FmilinError:
            return None
    # Richardson: without the terms in h and h^2; the two estimates must agree
    first, second = 2 * ends[1] - ends[0], 2 * ends[2] - ends[1]
    limit: FloatArray = (4 * second - first) / 3
    # estimates that differ by a third are not converged: nothing is known to remain
    limit[np.abs(limit - second) > 0.3 * np.abs(limit)] = 0.0
    return limit


def _measure_ends(experiments: Experiments, step: float) -> list[FloatArray]:
    """Return what a pulse over one step shows at its end, for the step, its half and its quarter."""
    amplitudes = experiments.choose_amplitudes(step).tolist()
    return [
        np.array([experiments.pulse(j, a, h, 1).after[0] for j, a in enumerate(amplitudes)]).T
        for h in (step, step / 2, step / 4)
    ]


def _align(responses: Sequence[Response], reading: str, step: float) -> Markov:
    """Return Markov parameters: Y_k is what is seen of the state at the start of step k."""
    y = np.array([p.at_once if reading == "at once" else p.after for p in responses])  # (nu, K, ny)
    x = np.array([p.states for p in responses])
    Y = np.moveaxis(np.concatenate((y[:, 1:], x[:, :-1]), axis=2), 0, 2)
    D = y[:, 0].T
    return Markov(D, Y, np.zeros_like(Y), reading, step)


def is_out_of_proportion(markov: Markov) -> NDArray[np.bool_]:
    """Return at which steps of the record a response that has grown is not twice that to half a pulse, shape (K,)."""
    sizes = np.max(np.abs(markov.Y), axis=(1, 2), initial=0.0)
    early = float(np.max(sizes[:MIN_STEPS], initial=0.0))
    off = np.max(markov.errors, axis=(1, 2), initial=0.0)
    return np.asarray((off > DISPROPORTION_TOLERANCE * sizes) & (sizes > GROWTH_RATIO * early))


def before_growth(markov: Markov) -> Markov:
    """Return the part of the record before an unstable motion drowns all others."""
    sizes = np.max(np.abs(markov.Y), axis=(1, 2), initial=0.0)
    early = float(np.max(sizes[:MIN_STEPS], initial=0.0))
    # an unstable plant leaves the neighbourhood of the point before that: answers to half a pulse are no longer half
    late = np.flatnonzero((sizes > GROWTH * early)[MIN_STEPS:] | is_out_of_proportion(markov)[MIN_STEPS:])
    if not late.size or early == 0:
        return markov
    count = MIN_STEPS + int(late[0])
    half = markov.half and replace(markov.half, Y=markov.half.Y[:count], errors=markov.half.errors[:count])
    return replace(markov, Y=markov.Y[:count], errors=markov.errors[:count], half=half)


# With Markov parameters Y_k = C A^(k-1) B, k = 1, 2, ..., and block Hankel matrices
#     H(k) = [Y_(k+1) Y_(k+2) ...; Y_(k+2) Y_(k+3) ...; ...],    H(0) = P diag(s) Q',
# the n largest singular values s give, of order n (eigensystem realization, Juang and Pappa 1985),
#     A = s^-1/2 P' H(1) Q s^-1/2,   B = s^1/2 Q' E_nu,   C = E_ny' P s^1/2.


@dataclass(frozen=True)
class Hankel:
    """H(0) taken apart, from which realizations of every order follow."""

    singular_values: FloatArray  # (r,), falling; of the scaled Hankel matrix
    P: FloatArray
    Q: FloatArray
    next: FloatArray
    row_scales: FloatArray
    column_scales: FloatArray

    @classmethod
    def of(cls, markov: FloatArray, row_scales: FloatArray, column_scales: FloatArray) -> Hankel:
        """Build it from Markov parameters Y_1, Y_2, ... (K, ny, nu) and the sizes of outputs and inputs."""
        Y = markov / row_scales[:, None] * column_scales[None, :]
        K, ny, nu = Y.shape
        rows = K // 2
        columns = K - rows
        blocks = np.lib.stride_tricks.sliding_window_view(Y, columns, axis=0)  # (rows + 1, ny, nu, columns)
        tall = np.moveaxis(blocks, 3, 2)  # (i, ny, j, nu): Y_(i + j + 1)
        H0 = tall[:rows].reshape(rows * ny, columns * nu)
        H1 = tall[1 : rows + 1].reshape(rows * ny, columns * nu)
        P, s, Qt = _decompose(H0)
        return cls(s, P, Qt.T, H1, row_scales, column_scales)

    def realization(self, n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return A, B, C of order n, in the sizes of the data."""
        ny, nu = len(self.row_scales), len(self.column_scales)
        P, Q, root = self.P[:, :n], self.Q[:, :n], np.sqrt(self.singular_values[:n])
        A = (P.T @ self.next @ Q) / root[:, None] / root[None, :]
        B = root[:, None] * Q.T[:, :nu] / self.column_scales
        C = P[:ny] * root * self.row_scales[:, None]
        return A, B, C


def _decompose(H: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the SVD, of a large matrix its leading values (Halko, Martinsson and Tropp 2011, algorithms 4.4, 5.1)."""
    if min(H.shape) <= MIN_SIZE_FOR_RANDOMIZED_SVD:
        P, s, Qt = np.linalg.svd(H, full_matrices=False)
        return P, s, Qt
    # any fixed random matrix: equal calls give equal results
    basis = np.linalg.qr(H @ np.random.default_rng(2011).standard_normal((H.shape[1], MAX_ORDER + OVERSAMPLING_COUNT)))[
        0
    ]
    for _ in range(POWER_ITERATIONS):
        basis = np.linalg.qr(H @ np.linalg.qr(H.T @ basis)[0])[0]
    P, s, Qt = np.linalg.svd(basis.T @ H, full_matrices=False)
    return basis @ P, s, Qt


def count_significant(singular_values: FloatArray, noise: FloatArray, shape: tuple[int, int]) -> int:
    """Return how many singular values of an m x n matrix exceed what noise e in it makes, e (sqrt(m) + sqrt(n))."""
    if not singular_values.size or singular_values[0] == 0:
        return 0
    size = float(np.sqrt(np.mean(noise**2))) if noise.size else 0.0
    rounding = ROUNDING_TOLERANCE * float(singular_values[0])
    floor = max(size * (np.sqrt(shape[0]) + np.sqrt(shape[1])), rounding * np.sqrt(max(shape)))
    return min(int(np.count_nonzero(singular_values > floor)), MAX_ORDER)


@dataclass(frozen=True)
class Realized:
    """A discrete model, and what it was chosen from."""

    model: Sampled  # in balanced coordinates
    half: Sampled  # the same from pulses of half the amplitude, in coordinates close to those of ``model``
    singular_values: FloatArray  # of the scaled Hankel matrix, falling
    error: float  # the largest error on held-out responses; NaN without any
    significant: int | None = None  # singular values above noise and rounding, where estimated


HeldOutError = Callable[[Sampled], float]  # the largest error of a model on held-out responses


def realize(
    markov: Markov, ny: int, held_out_error: HeldOutError | None, order: int | None, scales: FloatArray
) -> Realized:
    """Choose the order and return the realization; rows beyond the first ``ny`` are declared states."""
    rows = _row_scales(markov)
    hankel = Hankel.of(markov.Y, rows, scales)
    half = hankel if markov.half is None else Hankel.of(markov.half.Y, rows, scales)
    noise = markov.errors / rows[:, None] * scales[None, :]
    shape = (len(hankel.P), len(hankel.Q))
    most = count_significant(hankel.singular_values, noise, shape)
    if order is not None:
        count = int(np.count_nonzero(hankel.singular_values > ROUNDING_TOLERANCE * hankel.singular_values[:1].sum()))
        if order > count:
            raise NumericalError(
                f"The responses have {count} directions, so no model of order {order} can be identified. Choose a "
                "smaller order=, or leave it out."
            )
        chosen = order
    else:
        chosen = _choose_order(hankel, markov, ny, most, held_out_error)
    model = _take_order(hankel, markov, ny, chosen)
    other = _take_order(half, markov if markov.half is None else markov.half, ny, chosen)
    error = float("nan") if held_out_error is None else held_out_error(model)
    return Realized(model, align_realization(other, model), hankel.singular_values[: MAX_ORDER + 1], error, most)


def choose_named_states(model: Sampled, scales: FloatArray, preferred: Sequence[int]) -> list[int] | None:
    """Return declared states, ``preferred`` or else the best conditioned, that can be the coordinates; None if none."""
    n = model.order
    if len(model.T) < n or n == 0:
        return None
    W = model.T / scales[:, None]
    moved = float(np.linalg.norm(W, 2))
    W = W / (np.linalg.norm(W, axis=0) + SMALLEST_DIVISOR)
    if moved == 0 or np.linalg.matrix_rank(W, tol=RANK_MEASURED * float(np.linalg.norm(W, 2))) < n:
        return None
    if len(preferred) == n and np.linalg.cond(W[list(preferred)]) < DOUBTFUL_CONDITION_NUMBER:
        return list(preferred)
    _, _, order = linalg.qr(W.T, mode="economic", pivoting=True)
    return sorted(int(i) for i in order[:n])


def _row_scales(markov: Markov) -> FloatArray:
    """Return the largest response of each row, and not less than a part of its errors."""
    sizes = np.max(np.abs(markov.Y), axis=(0, 2), initial=0.0)
    # a row below ten times its errors has nothing to say, and must not be enlarged to the others
    noise = 10 * np.max(markov.errors, axis=(0, 2), initial=0.0)
    largest = np.maximum(sizes, noise)
    return np.where(largest > 0, largest, 1.0)


def _choose_order(hankel: Hankel, markov: Markov, ny: int, most: int, held_out_error: HeldOutError | None) -> int:
    """Return the smallest order with a held-out error as small as that of the best, up to what noise allows."""
    if held_out_error is None or most == 0:
        return most
    errors = np.array([held_out_error(_take_order(hankel, markov, ny, n)) for n in range(1, most + 1)])
    best = float(np.min(errors))
    return (
        1 + int(np.flatnonzero(errors <= max(2.0 * best, PREDICTION_ERROR_TOLERANCE))[0]) if np.isfinite(best) else most
    )


def _take_order(hankel: Hankel, markov: Markov, ny: int, n: int) -> Sampled:
    A, B, C = hankel.realization(n)
    return Sampled(A, B, C[:ny], markov.D, markov.step, markov.reading, C[ny:], np.zeros(n))


def align_realization(other: Sampled, model: Sampled) -> Sampled:
    """Return ``other`` in the coordinates of ``model``: S with O S^-1 = O_model in the least squares sense."""
    n = model.order
    if n == 0:
        return other
    observed, observed_other = (_observability(m, n) for m in (model, other))
    S = np.asarray(np.linalg.lstsq(observed, observed_other, rcond=None)[0], dtype=np.float64)
    return (
        other
        if not np.isfinite(S).all() or np.linalg.cond(S) > MAX_COORDINATE_CONDITION_NUMBER
        else other.in_coordinates(S)
    )


def _observability(model: Sampled, n: int) -> FloatArray:
    C = np.vstack((model.C, model.T))
    blocks = [C]
    for _ in range(n - 1):
        blocks.append(blocks[-1] @ model.A)
    return np.vstack(blocks)
