"""The transition matrix of y' = A(t) y over one period, as factors that need never be multiplied out.

Each factor is the exact sensitivity of a collocation step (Radau IIA with six stages, order 11; Hairer and Wanner,
Solving ordinary differential equations II, section IV.5); the number of steps doubles until the product stays.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from scipy import special

from fmilin.errors import NumericalError
from fmilin.periodic.fourier import ComplexArray, Interpolant
from fmilin.signals import FloatArray, Signals

STAGE_COUNT = 6  # of Radau IIA: order 11, so that stiff motions and 13 digits need few steps
TRANSITION_TOLERANCE = 1e-13  # how much twice as many steps may change the product, relative, unless less is asked for
MAX_STEPS = 2**13  # steps
UNRESOLVED_FACTOR_TOLERANCE = (
    1e-6  # change of a factor in twice as many steps, relative, with which the largest number will not do
)
MAX_BLOCK_SIZE = 2**21  # numbers in the equations of stages that are solved together
GAP = 1e6  # between the sizes of multipliers that are computed apart from each other
SWEEP_COUNT = 4  # periods around which the basis goes: groups that are GAP apart are separate by GAP^4 then
MAX_CONDITION_NUMBER = 1e5  # condition number up to which factors are multiplied out


def _radau() -> tuple[FloatArray, FloatArray]:
    """Return the nodes c (s,) on (0, 1] and the matrix a (s, s) of the method; its weights are the last row."""
    inner = special.roots_jacobi(STAGE_COUNT - 1, 1.0, 0.0)[0]  # of (P_s - P_{s-1})/(x - 1)
    c = np.append((inner + 1) / 2, 1.0)
    powers = np.arange(STAGE_COUNT)
    V = c[:, None] ** powers
    integrals = c[:, None] ** (powers + 1) / (powers + 1)
    return c, np.asarray(np.linalg.solve(V.T, integrals.T).T)


NODES, WEIGHTS = _radau()


def factors(
    A: Callable[[FloatArray], FloatArray], period: float, samples: int, *, precision: float = TRANSITION_TOLERANCE
) -> FloatArray:
    """Return matrices (n, P, P); their product, the last one leftmost, is the transition matrix over a period.

    ``A`` takes phases (...) in parts of a period, and returns matrices (..., P, P); n is ``samples`` times some 2^k.
    """
    sampled_values = A(np.linspace(0, 1, 64, endpoint=False))
    if not np.isfinite(sampled_values).all():
        raise NumericalError("The matrix A is not finite along the period.")
    size = float(np.abs(np.linalg.eigvals(sampled_values)).max(initial=0.0)) * period
    # Begin with steps of about 2 / |lambda|, in which six stages are accurate to some digits: fewer would be doubled.
    n = samples * 2 ** int(np.clip(np.ceil(np.log2(max(1.0, size / 2 / samples))), 0, 8))
    coarse, change = _steps(A, period, n), np.inf
    # At least once, also from so many steps, the product is compared.
    while n < MAX_STEPS or change == np.inf:
        fine = _steps(A, period, 2 * n)
        pairs = fine[1::2] @ fine[0::2]
        scale = np.abs(pairs).max(axis=(1, 2), initial=1e-300)  # 1e-300: a factor of zeros
        change = float(np.max(np.abs(pairs - coarse).max(axis=(1, 2)) / scale))
        # Errors of n factors add up like random ones.
        if change * np.sqrt(n) <= precision:
            return fine
        coarse, n = fine, 2 * n
    if not change <= UNRESOLVED_FACTOR_TOLERANCE:
        raise NumericalError(
            f"{n} steps do not resolve the motion over {period:.4g} s: parts of it are far faster. Use a shorter "
            "period, or a model without them."
        )
    return coarse


def _steps(A: Callable[[FloatArray], FloatArray], period: float, n: int) -> FloatArray:
    order = A(np.zeros(1)).shape[-1]
    block = max(1, MAX_BLOCK_SIZE // max(1, (STAGE_COUNT * order) ** 2))
    parts = (np.arange(k, min(k + block, n)) for k in range(0, n, block))
    return np.concatenate([compute_factors(A((k[:, None] + NODES) / n), np.full(len(k), period / n)) for k in parts])


def compute_factors(at: FloatArray, lengths: FloatArray) -> FloatArray:
    """Return the factors of steps (n,) from A at their nodes (n, s, P, P): (I - h a A_i) K = A_i, I + h sum b_i K_i."""
    count, s, order = at.shape[:3]
    at = at * lengths[:, None, None, None]
    stages = -np.einsum("ij,nipq->nipjq", WEIGHTS, at).reshape(count, s * order, s * order)
    stages[:, np.arange(s * order), np.arange(s * order)] += 1.0
    K = np.linalg.solve(stages, at.reshape(count, s * order, order)).reshape(count, s, order, order)
    return np.asarray(np.eye(order) + np.einsum("i,nipq->npq", WEIGHTS[-1], K))


def product(steps: FloatArray) -> FloatArray:
    """Return the product of factors (n, P, P), the last one leftmost."""
    while len(steps) > 1:
        odd = steps[-1:] if len(steps) % 2 else steps[:0]
        steps = np.concatenate((steps[1::2] @ steps[: len(steps) - len(odd) : 2], odd))
    return np.asarray(steps[0])


def condense_factors(steps: FloatArray) -> FloatArray:
    """Return fewer factors of the same product, none of which has entries and inverses that differ by many orders."""
    while len(steps) > 1:
        even = len(steps) // 2 * 2
        pairs = steps[1:even:2] @ steps[0:even:2]
        sizes = np.linalg.svd(pairs, compute_uv=False)
        if not np.all(sizes[:, -1:] > sizes[:, :1] / MAX_CONDITION_NUMBER):
            break
        steps = np.concatenate((pairs, steps[even:]))
    return steps


def logarithms_of_multipliers(steps: FloatArray, after: FloatArray) -> ComplexArray:
    """Return log(mu) of the multipliers mu of ``after`` times the product of the steps; -inf of zeros."""
    # A product of many factors keeps the large multipliers alone: a small one drowns in the rounding of a large one. So
    # an orthonormal basis goes around the period (a QR decomposition a step, as in the periodic Schur form of
    # Bojanczyk, Golub and Van Dooren, 1992) until groups of multipliers of about the same size stand apart; of each
    # group the triangular factors are multiplied with their scale taken out.
    order = steps.shape[-1]
    Q = np.linalg.qr(np.random.default_rng(1892).normal(size=(order, order)))[0]
    for _ in range(SWEEP_COUNT):
        Q = _around(steps, after, Q)[0]
    end, triangles = _around(steps, after, Q)
    with np.errstate(divide="ignore"):
        sizes = np.log(np.abs(triangles[:, range(order), range(order)])).sum(axis=0)
    W = Q.T @ end
    parts = [_of_group(W, triangles, group) for group in _groups(sizes, W)]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.complex128)


def _around(steps: FloatArray, after: FloatArray, Q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Carry a basis around the period; return where it ends, and the triangular factors on the way."""
    triangles = []
    for step in (*steps, after):
        Q, R = np.linalg.qr(step @ Q)
        triangles.append(R)
    return Q, np.array(triangles)


def _groups(sizes: FloatArray, W: FloatArray) -> Iterator[slice]:
    """Yield groups of columns: cut where the sizes (logarithms) fall by :data:`GAP`, and the basis has come to rest."""
    start = 0
    for k in range(1, len(sizes) + 1):
        # 1e-8: the squares of what is left below the diagonal, which the groups leave out, are rounding.
        apart = k == len(sizes) or (
            sizes[start:k].min() - sizes[k:].max() > np.log(GAP) and np.abs(W[k:, :k]).max(initial=0.0) < 1e-8
        )
        if apart:
            yield slice(start, k)
            start = k


def _of_group(W: FloatArray, triangles: FloatArray, group: slice) -> ComplexArray:
    block, scale = np.eye(group.stop - group.start), 0.0
    for R in triangles[:, group, group]:
        block = R @ block
        size = float(np.abs(block).max())
        if size == 0:
            return np.full(group.stop - group.start, -np.inf, dtype=np.complex128)
        block, scale = block / size, scale + np.log(size)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.linalg.eigvals(W[group, group] @ block).astype(np.complex128)) + scale)


Matrices = tuple[FloatArray, FloatArray, FloatArray, FloatArray]  # A, B, C, D


def lift_matrices(matrices: Matrices, period: float, count: int) -> Matrices:
    """Return A, B, C, D over a period from those at m times; B (P, count nu), C (count ny, P)."""
    A, B, C, D = matrices
    P, nu, ny = A.shape[1], B.shape[2], C.shape[1]
    augmented = np.zeros((len(A), P + nu, P + nu))
    augmented[:, :P, :P], augmented[:, :P, P:] = A, B
    steps = factors(Interpolant(augmented), period, count).reshape(count, -1, P + nu, P + nu)
    phases = np.arange(count) / count
    output_maps, at_once = Interpolant(C)(phases), Interpolant(D)(phases)
    x, u = np.eye(P), np.zeros((P, count * nu))  # how the state at a part follows from the start, and from the inputs
    outputs, feed = np.zeros((count, ny, P)), np.zeros((count, ny, count * nu))
    for k, part in enumerate(product(step) for step in steps):
        columns = slice(k * nu, (k + 1) * nu)
        outputs[k], feed[k] = output_maps[k] @ x, output_maps[k] @ u
        feed[k][:, columns] += at_once[k]
        x, u = part[:P, :P] @ x, part[:P, :P] @ u
        u[:, columns] += part[:P, P:]
    return x, u, outputs.reshape(count * ny, P), feed.reshape(count * ny, count * nu)


def lift_signals(signals: Signals, count: int) -> Signals:
    """Return names for signals in the parts of a period, ``u.0``, ``u.1``, ..., all of one part together."""
    return Signals(replace(signal, name=f"{signal.name}.{k}", aliases=()) for k in range(count) for signal in signals)
