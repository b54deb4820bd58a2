"""Eigenvalues of a matrix with entries of limited accuracy, and how far each may be off.

An eigenvalue of A + dA with |dA| <= E, entry by entry, lies where the spectral radius of |(z I - A)^-1| E is at least 1
(Higham, Accuracy and Stability of Numerical Algorithms, section 7.2, for componentwise perturbations). The error of an
eigenvalue is therefore the radius of the smallest circle around it on which that radius stays below 1: the number of
eigenvalues inside cannot change. For a simple eigenvalue that is its condition number times the perturbation; for a
Jordan block of order k it is the k-th root law. Both limits come out of one formula.

The matrix is first split into the diagonal blocks of its block triangular form (the strongly connected parts of its
graph), because no perturbation inside the pattern couples their eigenvalues: a chain of integrators has exact zeros.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.numerics.components import find_connected_components, strong_components
from fmilin.numerics.decompositions import compute_balancing_scales, eigenvectors, schur_complex
from fmilin.numerics.lapack import lapack
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import EPS

Complex = NDArray[np.complex128]
Pattern = NDArray[np.bool_]

# Backward error of LAPACK's geev, in units of EPS times the Frobenius norm of the balanced matrix. Against mpmath, for
# 33 random, graded and defective matrices of order 2 to 8 no eigenvalue was off by more than the error that follows.
BACKWARD_ERROR = 2.0
# Discs of simple eigenvalues, enlarged by this factor, must be disjoint for the first-order law to hold: beyond it the
# second-order term, which is the error squared over the distance, is below a tenth of the first.
FIRST_ORDER_SEPARATION = 10.0
# Left and right eigenvectors with a product below this are those of a Jordan block: the first-order law has no bound.
MIN_SINE = 1e-200
# Separation of clusters in their own block: the circles themselves are rigorous there, and only the coupling to the
# rest is of first order.
CLUSTER_SEPARATION_FACTOR = 2.0
ANGLE_COUNT = 16  # points on a circle at which the spectral radius is examined
GROWTH = 1.3  # of the radius from one trial circle to the next
MATRIX_POWER_EXPONENT = (
    4  # of a matrix without negative entries, which mostly tell on which side of 1 its spectral radius is
)
SMALLEST_PART, SMALLEST_SIZE = 1e-9, 1e-200  # of vectors that are to stay positive
COARSE_STEP_COUNT = 2  # such steps at once, as long as circles fail
CIRCLES: FloatArray = GROWTH ** (
    COARSE_STEP_COUNT * np.arange(8.0)
)  # radii that are examined together, in units of the first
MAX_CLUSTER = 60  # order of a cluster up to which circles are tried; larger ones get the k-th root law
MAX_REMEMBERED_MATRICES = 500  # matrices with stored estimates
MAX_SCHUR = 800  # order of a block up to which its Schur form is computed for clusters
# Errors of entries are estimates. Within so many of them of the stability limit the error of the growth is computed;
# an entry of so many errors is certainly not zero.
NEAR_LIMIT = 3.0
CERTAIN_ENTRY_FACTOR = 3.0


@dataclass(frozen=True, eq=False)
class EigenvalueEstimates:
    """Eigenvalues of a matrix with entries of limited accuracy."""

    values: Complex  # (n,), sorted by real part, then imaginary part, block by block
    errors: FloatArray  # (n,), how far each of them may be off
    # (n,), how far the real part (or the modulus, where sampled) may be off: less than what moves a frequency. It is
    # ``errors`` except near the stability limit
    growth_errors: FloatArray


def compute_eigenvalues(A: FloatArray) -> Complex:
    """Return the eigenvalues, shape (n,), sorted by real part, then imaginary part, block by block."""
    parts = [np.linalg.eigvals(A[np.ix_(block, block)]) for block in split_into_blocks(A != 0)]
    return sort_eigenvalues(np.concatenate(parts) if parts else np.empty(0))


def sort_eigenvalues(values: NDArray[Any]) -> Complex:
    """Return eigenvalues sorted by real part, then imaginary part."""
    values = np.asarray(values, dtype=np.complex128)
    return values[np.lexsort((values.imag, values.real))]


def compute_eigenvalue_errors(A: FloatArray, E: FloatArray, values: Complex | None = None) -> FloatArray:
    """Return how far each of :func:`compute_eigenvalues` may be off, shape (n,), for errors E of the entries of A.

    ``values`` are these eigenvalues, where they have been computed already.
    """
    return estimate_eigenvalues(A, E, values).errors


def estimate_eigenvalues(
    A: FloatArray, E: FloatArray, values: Complex | None = None, *, sampled: bool = False, structured: bool = True
) -> EigenvalueEstimates:
    """Return the eigenvalues and how far each may be off, for errors E of the entries of A.

    Parameters
    ----------
    A, E : ndarray, shape (n, n)
    values : ndarray, shape (n,), optional
        These eigenvalues, where they have been computed already.
    sampled : bool
        Whether the growth of an eigenvalue is its modulus, and not its real part.
    structured : bool
        Whether entries that are zero with an error of zero are zeros of the model. False for computed products.
    """
    key = hashlib.blake2b(A.tobytes() + E.tobytes() + bytes([sampled, structured])).digest()
    cached = _remembered.get(key)
    if cached is None or not (values is None or np.array_equal(values, cached.values)):
        values = compute_eigenvalues(A) if values is None else values
        cached = _estimate(A, E, values, sampled=sampled, structured=structured)
        _remembered.pop(key, None)
        if len(_remembered) >= MAX_REMEMBERED_MATRICES:
            del _remembered[next(iter(_remembered))]  # the oldest
        _remembered[key] = cached
    return EigenvalueEstimates(cached.values.copy(), cached.errors.copy(), cached.growth_errors.copy())


# A table, or a file, has the eigenvalues of a model with their errors and its stability: both need the same estimates.
# So do the pictures and tables of a family at all of its points.
_remembered: dict[bytes, EigenvalueEstimates] = {}


def _estimate(A: FloatArray, E: FloatArray, values: Complex, *, sampled: bool, structured: bool) -> EigenvalueEstimates:
    if not len(A):
        return EigenvalueEstimates(values, np.zeros(0), np.zeros(0))
    if not np.isfinite(E).all() or not np.isfinite(A).all():
        unknown = np.full(len(values), np.inf)
        return EigenvalueEstimates(values, unknown, unknown)
    return _estimate_in_blocks(A, E, values, sampled=sampled, structured=structured)


def _estimate_in_blocks(
    A: FloatArray, E: FloatArray, values: Complex, *, sampled: bool, structured: bool
) -> EigenvalueEstimates:
    errors = np.zeros(len(values))
    growth_errors = np.zeros(len(values))
    pattern = (A != 0) | (E > 0)
    blocks = split_into_blocks(pattern) if structured else [np.arange(len(A))]
    reached = np.zeros(len(values), dtype=bool)
    for indices in blocks:
        block = _estimate_block(A[np.ix_(indices, indices)], E[np.ix_(indices, indices)], sampled=sampled)
        for i in _match(values, block.values, reached):
            nearest = np.abs(block.values - values[i]).argmin()
            # the two ways of computing the eigenvalue may differ by part of the error: both have to be within it
            difference = float(np.abs(block.values[nearest] - values[i]))
            errors[i] = max(block.errors[nearest], difference)
            growth_errors[i] = max(block.growth_errors[nearest], difference)
    return EigenvalueEstimates(values, errors, growth_errors)


def group_eigenvalues(values: Complex, errors: FloatArray) -> list[list[int]]:
    """Return groups of eigenvalues with overlapping discs, ordered by their first one."""
    if not len(values):
        return []
    distances = np.abs(values[:, None] - values)
    rounding = 4 * EPS * np.abs(values)  # copies of one subsystem differ by this where no error is stated
    overlapping = distances <= errors[:, None] + errors + rounding[:, None]
    return [component.tolist() for component in find_connected_components(overlapping)]


def split_into_blocks(pattern: Pattern) -> list[NDArray[np.intp]]:
    """Return the indices of each diagonal block of the block triangular form, in the order of their first index."""
    return strong_components(pattern)


def _match(values: Complex, own_values: Complex, reached: Pattern) -> Iterator[int]:
    """Yield which of all eigenvalues are those of one block, each once."""
    for value in own_values:
        distances = np.where(reached, np.inf, np.abs(values - value))
        nearest = int(distances.argmin())
        reached[nearest] = True
        yield nearest


@dataclass(frozen=True, eq=False)
class UncertainMatrix:
    """A matrix in balanced coordinates, the errors of its entries, and the norm of what rounding perturbs it by."""

    A: FloatArray
    E: FloatArray
    rounding: float

    @classmethod
    def balance(cls, A: FloatArray, E: FloatArray, *, by_certain_entries: bool = False) -> UncertainMatrix:
        """Return a matrix and the errors of its entries in coordinates of comparable sizes.

        The matrix and its errors are balanced together, so that entries below their errors do not decide the scales:
        it makes the errors of eigenvalues small. With ``by_certain_entries`` entries that may be zero are left out:
        balanced against them, what is certainly not zero would become as small as they are.
        """
        sizes = np.abs(A) + E
        if by_certain_entries:
            sizes = np.where(np.abs(A) > CERTAIN_ENTRY_FACTOR * E, np.abs(A), 0.0)
        np.fill_diagonal(sizes, 0.0)  # scales do not change the diagonal
        scale = compute_balancing_scales(sizes)
        balanced: FloatArray = np.asarray(A / scale[:, None] * scale, dtype=np.float64)
        error = E / scale[:, None] * scale + EPS * np.abs(balanced)  # entries are themselves rounded
        return cls(balanced, error, BACKWARD_ERROR * EPS * float(np.linalg.norm(balanced)))

    @cached_property
    def _schur_form(self) -> tuple[Complex, Complex]:
        """The triangular T and the unitary Q of A = Q T Q'."""
        return schur_complex(self.A.astype(np.complex128))

    def restrict(self, inside: Complex) -> tuple[Complex, FloatArray]:
        """Return the matrix on the invariant subspace of some eigenvalues, (k, k), and the errors of its entries there.

        The errors are not finite where the eigenvalues cannot be separated from the others.
        """
        T, Q = self._schur_form
        k = len(inside)
        diagonal = np.diag(T)
        chosen = np.zeros(len(T), dtype=np.int32)
        free = np.ones(len(T), dtype=bool)
        for value in inside:
            nearest = int(np.where(free, np.abs(diagonal - value), np.inf).argmin())
            free[nearest] = False
            chosen[nearest] = 1
        ordered: Any = lapack.ztrsen(chosen, T, Q, job="N")
        T, Q = ordered[0], ordered[1]
        on_group = T[:k, :k]
        right = Q[:, :k]
        rows = Q[:, :k].conj().T
        if k < len(T):
            # [I X] spans the left invariant subspace: T11 X - X T22 = T12
            solution: Any = lapack.ztrsyl(on_group, T[k:, k:], T[:k, k:], isgn=-1)
            with np.errstate(all="ignore"):
                rows = rows + (solution[0] / solution[1]) @ Q[:, k:].conj().T
        error = np.abs(rows) @ self.E @ np.abs(right)
        error += self.rounding * np.linalg.norm(rows, axis=1)[:, None]  # columns of ``right`` have length 1
        return on_group, error


def _estimate_block(A: FloatArray, E: FloatArray, *, sampled: bool) -> EigenvalueEstimates:
    """Return eigenvalues of a block and their errors."""
    if len(A) == 1:  # the entry is the eigenvalue
        return EigenvalueEstimates(A[0].astype(np.complex128), E[0], E[0])
    block = UncertainMatrix.balance(A, E)
    values, left_vectors, right_vectors = eigenvectors(block.A)
    product = np.einsum("ki,ki->i", left_vectors.conj(), right_vectors)
    sine = np.abs(product)
    sine[sine < MIN_SINE] = 0.0
    perturbation = np.einsum("ki,ki->i", np.abs(left_vectors), block.E @ np.abs(right_vectors)) + block.rounding
    with np.errstate(divide="ignore", over="ignore"):
        errors = np.where(sine > 0, perturbation / np.where(sine > 0, sine, 1.0), np.inf)
    growth_errors = errors.copy()
    growths = np.abs(values) - 1.0 if sampled else values.real
    for k in np.flatnonzero((np.abs(growths) <= NEAR_LIMIT * errors) & (sine > 0)).tolist():
        outward = values[k].conj() / abs(values[k]) if sampled and values[k] != 0 else 1.0
        # d lambda = sum_ij conj(y_i) x_j dA_ij / (y' x): of it the part along the growth
        derivatives = (np.outer(left_vectors[:, k].conj(), right_vectors[:, k]) * (outward / product[k])).real
        growth_errors[k] = float(np.sum(block.E * np.abs(derivatives))) + block.rounding / sine[k]
    refined = _refine_clusters(block, values, errors)
    return EigenvalueEstimates(values, refined, np.minimum(growth_errors, refined))


def _refine_clusters(block: UncertainMatrix, values: Complex, errors: FloatArray) -> FloatArray:
    """Return errors (n,) in which those of the first order are replaced where eigenvalues are not far enough apart."""
    distances = np.abs(values[:, None] - values)
    np.fill_diagonal(distances, np.inf)
    nearest = distances.min(axis=1)
    # an eigenvalue that is not well separated joins its nearest neighbour first; the circles tell whether more join
    radii = np.where(FIRST_ORDER_SEPARATION * errors < nearest, errors, 1.01 * nearest)
    separation = np.where(FIRST_ORDER_SEPARATION * errors < nearest, FIRST_ORDER_SEPARATION, 1.0)
    groups = _connect([[i] for i in range(len(values))], values, radii * separation)
    refined, done = errors.copy(), set[tuple[int, ...]]()
    while True:
        for group in groups:
            if len(group) == 1 or tuple(group) in done:
                continue
            done.add(tuple(group))
            if len(group) > MAX_CLUSTER or len(values) > MAX_SCHUR:
                refined[group] = _estimate_by_root_law(block, len(group))
                continue
            on_group, E_on_group = block.restrict(values[group])
            group_values = np.linalg.eigvals(on_group)
            for i in group:
                closest = group_values[int(np.abs(group_values - values[i]).argmin())]
                refined[i] = abs(closest - values[i]) + _find_radius(on_group, E_on_group, values[i])
        joined = _connect(groups, values, CLUSTER_SEPARATION_FACTOR * refined)
        if len(joined) == len(groups):
            return refined
        groups = joined


def _connect(groups: Sequence[Sequence[int]], values: Complex, radii: FloatArray) -> list[list[int]]:
    """Return groups joined where a disc of one meets a disc of another."""
    label = np.empty(len(values), dtype=np.intp)
    for number, group in enumerate(groups):
        label[list(group)] = number
    touching = np.abs(values[:, None] - values) <= np.maximum(radii[:, None], radii)
    touching |= label[:, None] == label
    return [component.tolist() for component in find_connected_components(touching)]


def _estimate_by_root_law(block: UncertainMatrix, count: int) -> float:
    """Return the error of ``count`` eigenvalues that meet in one Jordan block, where circles would take too long."""
    size = float(np.linalg.norm(block.A))
    perturbation = float(np.linalg.norm(block.E)) + block.rounding
    return size * min(perturbation / size, 1.0) ** (1.0 / count) if size > 0 else perturbation


def _find_radius(A: Complex, E: FloatArray, center: complex) -> float:
    """Return the radius of the smallest circle around a point that no eigenvalue of A crosses for errors E."""
    if not E.any():
        return 0.0
    if not np.isfinite(E).all():
        return float("inf")
    k = len(A)
    offsets = np.diag(A) - center
    elsewhere = np.angle(offsets[np.abs(offsets) > 0])
    angles = 2 * np.pi * np.arange(ANGLE_COUNT) / ANGLE_COUNT
    # most circles fail at one of the first points, and the others need not be examined
    directions = [np.exp(1j * part) for part in (angles[::4], np.concatenate((angles, elsewhere)))]
    largest = 2.0 * float(np.linalg.norm(A - center * np.eye(k)) + np.linalg.norm(E))

    def separate(radii: FloatArray) -> Pattern:
        return _separate(A, E, center + radii[:, None] * directions[0])

    def separates(radius: float) -> bool:
        return all(_separate(A, E, center + radius * part[None])[0] for part in directions)

    radius = float(E.max()) / k
    promising: list[bool] = []  # of the circles that were examined together, at few points
    while radius < largest:
        if not promising:
            promising = separate(radius * CIRCLES).tolist()
        if promising.pop(0) and separates(radius):
            break
        radius *= GROWTH**COARSE_STEP_COUNT
    for finer in range(COARSE_STEP_COUNT - 1, 0, -1):
        smaller = radius / GROWTH**finer
        if smaller < largest and separates(smaller):
            return smaller
    return min(radius, largest)


def _separate(A: Complex, E: FloatArray, points: Complex) -> Pattern:
    """Return on which of some circles (c,) no eigenvalue of A can be at one of the points (c, m), for errors E."""
    shifted = points[..., None, None] * np.eye(len(A)) - A
    with np.errstate(all="ignore"):
        try:
            products = np.abs(np.linalg.inv(shifted)) @ E
        except np.linalg.LinAlgError:  # an eigenvalue is at one of the points
            if len(points) == 1:
                return np.zeros(1, dtype=bool)
            return np.concatenate([_separate(A, E, circle[None]) for circle in points])
    return _are_below_one(products)


def _are_below_one(products: FloatArray) -> Pattern:
    """Return where the spectral radii of all matrices without negative entries (c, m, k, k) are below 1, (c,).

    It is between the smallest and the largest (P x)_i / x_i for any positive x (Collatz and Wielandt).
    """
    is_finite = np.asarray(np.isfinite(products).all(axis=(-2, -1)))
    above, below = ~is_finite, np.zeros_like(is_finite)
    products = np.where(is_finite[..., None, None], products, 0.0)
    sums = products.sum(axis=-2)
    above |= sums.min(axis=-1) >= 1.0
    below |= sums.max(axis=-1) < 1.0
    x = np.ones((*products.shape[:-1], 1))
    for _ in range(MATRIX_POWER_EXPONENT):
        powered = products @ x
        ratios = powered / x
        above |= ratios.min(axis=(-2, -1)) >= 1.0
        below |= ratios.max(axis=(-2, -1)) < 1.0
        x = np.maximum(powered, SMALLEST_PART * powered.max(axis=(-2, -1), keepdims=True) + SMALLEST_SIZE)
    is_failing = np.asarray(above.any(axis=-1))
    undecided = ~(above | below) & ~is_failing[..., None]
    if undecided.any():
        above[undecided] = np.abs(np.linalg.eigvals(products[undecided])).max(axis=-1) >= 1.0
    return np.asarray(~above.any(axis=-1))
