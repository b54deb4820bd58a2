"""Zeros of a linear system from its system pencil P(s) = [A - s I, B; C, D], and how far each may be off.

A zero is a number at which P(s) has a smaller rank than elsewhere. The pencil is first equilibrated (states, inputs,
outputs and the unit of time are scaled, which moves no zero). Two staircase reductions by orthogonal transformations,
one of P and one of its transpose, then give the subspaces on which P is regular (Emami-Naeini and Van Dooren,
Automatica 18, 1982), with the orders of the zeros at infinity and the minimal indices as by-products:

    X: states and inputs for which the outputs stay zero, S X = E X A_z        Y: the same of the transpose

With L = Y U sigma^-1/2 and R = X W sigma^-1/2 from the singular values of Y' E X, L' E R = I and A_z = L' S R has the
finite zeros as its eigenvalues. Perturbations dS of the system matrix move A_z by L' dS R to first order. For pencils
without full normal rank, the additional directions of X and Y are in the null space of Y' E X (Dopico and Noferini,
SIAM J. Matrix Anal. 2023).

Each zero is then certified by the pencil that was not reduced: with right and left vectors x and y of the zero z, the
residuals P(z) x and y* P(z) must be rounding, and the correction y* P(z) x / (y* E x) no larger than the error.

The module is long because reduction, eigenvalues and their certificates work on one scaled pencil.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fmilin.numerics.decompositions import column_space, compute_generalized_eigenvectors, schur_complex
from fmilin.numerics.eigenvalue_errors import BACKWARD_ERROR, estimate_eigenvalues, sort_eigenvalues
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import EPS, PENCIL_NONZERO_THRESHOLD, PENCIL_ZERO_TOLERANCE, UNCERTIFIED_ZERO

Complex = NDArray[np.complex128]
Mask = NDArray[np.bool_]

MAX_SWEEPS = 40  # of the equilibration; each halves the distance of rows and columns to equal norms
# An entry that is smaller than this part of both its row and its column may be what rounding left of a zero, and has no
# part in the scales: a state that nothing drives would otherwise be scaled until its rounding is as large as the rest.
POSSIBLE_ROUNDING_RATIO = 8.0 * EPS
NOISE_MARGIN = 10.0  # times the norm of errors, above which a singular value is certainly not zero: as in `minimal`
COUPLING_TOLERANCES = (1e-8, 1e-6, 1e-4)  # couplings taken for none where smaller limits give no zero that is certified
LARGEST_ERROR = 0.5  # of a zero, relative to it or to the unit of an equilibrated pencil
UNRESOLVED_SINGULAR_VALUE = (
    4.0 * EPS
)  # singular value of Y' E X, about 1/z^2 of a far zero z, that may be nothing but rounding
NEAR_EIGENVALUE = 1e-3  # a zero farther from all eigenvalues, relative to it, belongs to no hidden mode
REFINEMENTS = 4  # of the eigenvalue of a hidden mode
PARALLEL_MODE_TOLERANCE = (
    1e-6  # sine of an angle between hidden modes below which they are one: rounding has split a double one
)
DISAGREEMENT_FACTOR = 10.0  # times its error, that the second way may correct a zero: errors are estimates
ISOLATION_FACTOR = (
    10.0  # times its error, that an eigenvalue is away from others, for its correction to be of first order
)


@dataclass(frozen=True, eq=False)
class SystemPencil:
    """P(s) = S - s E with S = [[A, B], [C, D]] and E = [[I, 0], [0, 0]]."""

    S: FloatArray  # (n + p, n + m)
    error: FloatArray  # (n + p, n + m), of the entries of S
    n: int
    errors_known: bool = True  # whether an error of zero means that an entry is exact
    rounding: float = 0.0  # norm of a further perturbation of S, from what was done to it before

    @classmethod
    def build(
        cls,
        matrices: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
        errors: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
        *,
        errors_known: bool = True,
    ) -> SystemPencil:
        """Return the pencil of A, B, C and D with the errors of their entries; errors that are not finite are 0."""
        S, error = (np.block([[M[0], M[1]], [M[2], M[3]]]) for M in (matrices, errors))
        is_finite = bool(np.isfinite(error).all())
        return cls(S, np.where(np.isfinite(error), error, 0.0), len(matrices[0]), errors_known and is_finite)

    @property
    def p(self) -> int:
        """The number of outputs."""
        return len(self.S) - self.n

    @property
    def m(self) -> int:
        """The number of inputs."""
        return int(self.S.shape[1]) - self.n

    @property
    def transposed(self) -> SystemPencil:
        """The pencil of the dual system."""
        return replace(self, S=self.S.T, error=self.error.T)

    def restrict(self, Q: FloatArray) -> SystemPencil:
        """Return the pencil of the states Q z, for Q (n, r) with orthonormal columns."""
        left_basis, right_basis = _extend(Q, self.p), _extend(Q, self.m)
        error = np.abs(left_basis).T @ self.error @ np.abs(right_basis)
        return replace(self, S=left_basis.T @ self.S @ right_basis, error=error, n=Q.shape[1])

    def select_outputs(self, rows: list[int]) -> SystemPencil:
        """Return the pencil with some of the outputs."""
        chosen = [*range(self.n), *(self.n + i for i in rows)]
        return replace(self, S=self.S[chosen], error=self.error[chosen])


def _extend(Q: FloatArray, count: int) -> FloatArray:
    """Return [[Q, 0], [0, I]] with an identity of order ``count``."""
    n, r = Q.shape
    extended = np.zeros((n + count, r + count))
    extended[:n, :r] = Q
    extended[n:, r:] = np.eye(count)
    return extended


@dataclass(frozen=True, eq=False)
class EquilibratedPencil:
    """A pencil in other units: ``rows`` S ``columns`` has rows and columns of comparable norms, and s = unit s'."""

    pencil: SystemPencil
    rows: FloatArray  # (n + p,)
    columns: FloatArray  # (n + m,)
    unit: float  # of the zeros


def equilibrate(pencil: SystemPencil) -> EquilibratedPencil:
    """Return the pencil scaled by powers of two: states by a similarity, inputs, outputs and the time freely."""
    n = pencil.n
    sizes = np.abs(pencil.S)
    limit = np.minimum(sizes.max(axis=1, initial=0.0)[:, None], sizes.max(axis=0, initial=0.0))
    sizes = np.where((sizes > pencil.error) & (sizes > POSSIBLE_ROUNDING_RATIO * limit), sizes, 0.0)
    with np.errstate(divide="ignore"):
        logarithms = np.log2(sizes)
    # logarithms to base 2; the first ones bring all entries into the range in which squares do not overflow
    states, unit = np.zeros(n), float(_log2(sizes[:n, :n].max(initial=0.0)))
    outputs = -_log2(sizes[n:].max(axis=1, initial=0.0))
    inputs = -_log2(_scale(logarithms, states, np.zeros(pencil.m), outputs, unit)[:, n:].max(axis=0, initial=0.0))
    for _ in range(MAX_SWEEPS):
        scaled = _scale(logarithms, states, inputs, outputs, unit)
        size = float(np.linalg.norm(scaled[:n, :n])) / np.sqrt(n) if n else 0.0
        unit += np.log2(size) if size > 0 else 0.0
        scaled = _scale(logarithms, states, inputs, outputs, unit)
        inputs -= _log2(np.linalg.norm(scaled[:, n:], axis=0))
        scaled = _scale(logarithms, states, inputs, outputs, unit)
        outputs -= _log2(np.linalg.norm(scaled[n:], axis=1))
        scaled = _scale(logarithms, states, inputs, outputs, unit)
        np.fill_diagonal(scaled[:n, :n], 0.0)  # scales do not change it
        r, c = np.linalg.norm(scaled[:n], axis=1), np.linalg.norm(scaled[:, :n], axis=0)
        both = (r > 0) & (c > 0)
        # half of what one state alone would need: two states that are scaled against each other would oscillate
        states += np.where(both, 0.25 * (_log2(r) - _log2(c)), 0.0)
    states, inputs, outputs, unit = np.round(states), np.round(inputs), np.round(outputs), float(np.round(unit))
    rows, columns = np.concatenate((-states - unit, outputs)), np.concatenate((states, inputs))
    powers = (rows[:, None] + columns).astype(np.int64)
    with np.errstate(under="ignore"):
        S, error = (np.ldexp(M, powers) for M in (pencil.S, pencil.error))
    return EquilibratedPencil(replace(pencil, S=S, error=error), np.exp2(rows), np.exp2(columns), float(np.exp2(unit)))


def _scale(
    logarithms: FloatArray, states: FloatArray, inputs: FloatArray, outputs: FloatArray, unit: float
) -> FloatArray:
    rows, columns = np.concatenate((-states - unit, outputs)), np.concatenate((states, inputs))
    return np.asarray(np.exp2(logarithms + rows[:, None] + columns))


def _log2(lengths: FloatArray | float) -> FloatArray:
    """Return logarithms, 0 of what is zero."""
    return np.asarray(np.log2(np.where(lengths > 0, lengths, 1.0)))


# -- the staircase -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OutputNulling:
    """States and inputs for which the outputs of a pencil stay zero, and what was deflated on the way."""

    states: FloatArray  # (n, k), orthonormal: the largest set of states from which the outputs can be held at zero
    rows: FloatArray  # (n + p, r): combinations of the equations that determine inputs, with a D of full row rank
    infinite_orders: tuple[int, ...]  # of the zeros at infinity, ascending, those of order 0 included
    row_indices: tuple[int, ...]  # left minimal indices: combinations of outputs that are no more than their past
    is_doubtful: bool  # whether a singular value was neither clearly zero nor clearly not
    dropped: float  # largest singular value that was taken for zero

    def right_space(self, pencil: SystemPencil) -> FloatArray:
        """Return an orthonormal basis of the states and inputs (x, u) for which outputs stay zero."""
        space = _extend(self.states, pencil.m)
        r = self.rows.shape[1]
        if not r:
            return space
        Vt = np.linalg.svd(self.rows.T @ pencil.S @ space)[2]
        return np.asarray(space @ Vt[r:].T)


class RankDecisions:
    """Decides ranks of blocks of an equilibrated pencil by the errors of its entries, and notes doubtful ones.

    ``side`` -1 counts doubtful singular values as zeros, 1 as not zero, 0 by the middle between the limits; those below
    ``floor`` are zeros.
    """

    def __init__(self, pencil: SystemPencil, side: int = 0, floor: float = 0.0) -> None:
        self.pencil = pencil
        self.side = side
        self.floor = floor
        self.dropped = 0.0  # largest singular value that was taken for zero
        self.is_doubtful = False

    def decide(self, sigma: FloatArray, left_vectors: FloatArray, right_vectors: FloatArray) -> int:
        """Return how many of the singular values of left' S right are not zero."""
        pencil = self.pencil
        noise = float(np.linalg.norm(np.abs(left_vectors).T @ pencil.error @ np.abs(right_vectors))) + pencil.rounding
        lower = max(PENCIL_ZERO_TOLERANCE, noise)
        upper = NOISE_MARGIN * lower if pencil.errors_known else max(PENCIL_NONZERO_THRESHOLD, NOISE_MARGIN * noise)
        self.is_doubtful |= bool(((sigma > lower) & (sigma < upper)).any())
        limit = max({-1: upper, 0: np.sqrt(lower * upper), 1: lower}[self.side], self.floor)
        self.dropped = max(self.dropped, float(sigma[sigma <= limit].max(initial=0.0)))
        return int(np.count_nonzero(sigma > limit))


def null_outputs(pencil: SystemPencil, side: int = 0, floor: float = 0.0) -> OutputNulling:
    """Return the states and inputs of an equilibrated pencil for which outputs stay zero.

    Each step splits the output equations into those that determine inputs and the others, C2 x = 0. These remove
    states; that the removed ones stay zero gives the output equations of the next step. Every block is taken from the
    pencil itself by the accumulated transformations, so that rounding does not add up.
    """
    n, m = pencil.n, pencil.m
    ranks = RankDecisions(pencil, side, floor)
    V = np.eye(n)
    rows = np.vstack((np.zeros((n, pencil.p)), np.eye(pencil.p)))
    inputs = np.vstack((np.zeros((n, m)), np.eye(m)))
    infinite_orders: list[int] = []
    row_indices: list[int] = []
    candidates = pencil.p  # equations that may determine an input at this step for the first time
    for step in range(n + 1):
        U, sigma, _ = np.linalg.svd(rows.T @ pencil.S @ inputs)
        rank = ranks.decide(sigma, rows, inputs)
        rows = rows @ U
        determining, rest = rows[:, :rank], rows[:, rank:]
        infinite_orders += [step] * (candidates - rest.shape[1])
        _, sigma, Vt = np.linalg.svd(rest.T @ pencil.S[:, :n] @ V)
        candidates = ranks.decide(sigma, rest, np.vstack((V, np.zeros((m, V.shape[1])))))
        row_indices += [step] * (rest.shape[1] - candidates)
        rows = determining
        if not candidates:
            break
        removed = np.vstack((V @ Vt[:candidates].T, np.zeros((pencil.p, candidates))))
        rows = np.hstack((removed, determining))
        V = V @ Vt[candidates:].T
    return OutputNulling(V, rows, tuple(infinite_orders), tuple(row_indices), ranks.is_doubtful, ranks.dropped)


# -- the finite zeros --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ZeroEstimates:
    """The zeros of a system, finite and infinite."""

    values: Complex  # (k,), the finite ones, sorted by real part, then imaginary part
    errors: FloatArray  # (k,), how far each of them may be off
    disagreeing: Mask  # (k,), those that the pencil that was not reduced corrects by more than their error
    uncertified: Mask  # (k,), those at which the rank of the pencil does not drop; their error is infinite
    infinite_orders: tuple[int, ...]  # ascending; 0 for each direction in which inputs reach outputs at once
    normal_rank: int  # of the transfer matrix
    is_doubtful: bool = False  # whether errors or rounding decide how many zeros there are
    unresolved: int = 0  # zeros so far from all others that they count as infinite, and are left out
    is_consistent: bool = True  # whether the reductions of the pencil and of its transpose agree on that number

    @property
    def is_sound(self) -> bool:
        """Whether all zeros are certified, and none has an error as large as itself."""
        is_certified = self.is_consistent and not self.uncertified.any()
        return is_certified and bool((self.errors < np.maximum(1.0, np.abs(self.values)) * LARGEST_ERROR).all())


@dataclass(frozen=True, eq=False)
class _RegularPart:
    """The part L' (S - s E) R = A_z - s I of a pencil that has the finite zeros."""

    pencil: SystemPencil
    L: FloatArray  # (n + p, k)
    R: FloatArray  # (n + m, k)
    scale: FloatArray  # (k,), of the columns of L and R, with which those of orthonormal bases were divided
    dropped: float = 0.0  # norm of what was taken for zero in the pencil, or about it

    @cached_property
    def matrix(self) -> FloatArray:
        """A_z, shape (k, k)."""
        return np.asarray(self.L.T @ self.pencil.S @ self.R)

    @cached_property
    def error(self) -> FloatArray:
        """The errors of the entries of A_z: those of S, and the backward error of orthogonal transformations."""
        error = np.abs(self.L).T @ (self.pencil.error + EPS * np.abs(self.pencil.S)) @ np.abs(self.R)
        sizes = np.outer(np.linalg.norm(self.L, axis=0), np.linalg.norm(self.R, axis=0))
        return np.asarray(error + self.rounding * sizes)

    @cached_property
    def rounding(self) -> float:
        """The norm of the perturbation of S that stands for rounding of the reduction."""
        S = self.pencil.S
        return BACKWARD_ERROR * EPS * (float(np.linalg.norm(S, 2)) if S.size else 0.0) + self.pencil.rounding

    def correct(self, z: complex, x: Complex, y: Complex, reach: float) -> tuple[complex, Complex, Complex]:
        """Return a zero with its vectors after inverse iterations with the pencil itself, within a ``reach`` of it.

        Only of square pencils; where the iterations leave the disc, or fail, the zero and the vectors stay.
        """
        from scipy.linalg import lu_factor, lu_solve

        S, n = self.pencil.S, self.pencil.n
        if len(S) != S.shape[1]:
            return z, x, y
        E = np.diag((np.arange(len(S)) < n).astype(np.float64))
        center, start = z, (z, x, y)
        for _ in range(REFINEMENTS):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a pencil that is singular at z, as it should be
                factors = lu_factor(S - z * E + EPS * np.eye(len(S)))
            x, y = lu_solve(factors, E @ x), lu_solve(factors, E @ y, trans=2)
            x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
            step = (y.conj() @ (S - z * E) @ x) / (y.conj() @ E @ x)
            z += complex(step)
            if not (np.isfinite(z) and abs(z - center) <= reach):
                return start
        return z, x, y


def compute_zeros(pencil: SystemPencil) -> ZeroEstimates:
    """Return the invariant zeros of a system, and its zeros at infinity.

    Examples
    --------
    >>> import numpy as np
    >>> from fmilin.numerics.system_pencil import SystemPencil, compute_zeros
    >>> A, B = np.array([[0.0, 1.0], [-2.0, -3.0]]), np.array([[0.0], [1.0]])
    >>> C, D = np.array([[-5.0, 1.0]]), np.array([[0.0]])
    >>> zeros = compute_zeros(SystemPencil.build((A, B, C, D), tuple(map(np.zeros_like, (A, B, C, D)))))
    >>> zeros.values.round(12).tolist(), zeros.infinite_orders
    ([(5+0j)], (1,))
    """
    return _compute_in_units(equilibrate(pencil))


def _compute_in_units(scaled: EquilibratedPencil) -> ZeroEstimates:
    """Return the zeros in the unit that they had before the pencil was equilibrated."""
    estimates = _compute_soundly(scaled.pencil)
    if estimates.is_doubtful:  # it is not where every choice gives the same zeros
        alternatives = [_compute_soundly(scaled.pencil, side) for side in (-1, 1)]
        counts = {(len(each.values), each.infinite_orders) for each in (estimates, *alternatives)}
        estimates = replace(estimates, is_doubtful=len(counts) > 1)
    unit = scaled.unit
    return replace(estimates, values=unit * estimates.values, errors=unit * estimates.errors)


def _compute_soundly(pencil: SystemPencil, side: int = 0) -> ZeroEstimates:
    """Return the zeros of an equilibrated pencil, without far ones if these spoil the others.

    A chain of weak dampers and stiff springs has zeros so far away that single precision could not hold their
    product, and couplings at every level between 1 and rounding. Where no zero comes out right, weak couplings are
    taken for none: their zeros are infinite then, and the others are corrected by the pencil itself.
    """
    first = _compute_scaled(pencil, side, 0.0)
    if first.is_sound:
        return first
    for floor in COUPLING_TOLERANCES:
        estimates = _compute_scaled(pencil, side, floor)
        if estimates.is_sound:
            return replace(estimates, unresolved=max(len(first.values) + first.unresolved - len(estimates.values), 1))
    return first


def _compute_scaled(pencil: SystemPencil, side: int, floor: float) -> ZeroEstimates:
    primal, dual = null_outputs(pencil, side, floor), null_outputs(pencil.transposed, side, floor)
    count = primal.states.shape[1] - sum(dual.row_indices)
    dual_count = dual.states.shape[1] - sum(primal.row_indices)
    rank = pencil.p - len(primal.row_indices)
    is_consistent = (
        primal.infinite_orders == dual.infinite_orders
        and count == dual_count
        and rank == pencil.m - len(dual.row_indices)
    )
    count = max(min(count, dual_count), 0)
    part = _take_regular_part(pencil, primal, dual, count)
    part = replace(part, dropped=max(primal.dropped, dual.dropped))
    values, errors, disagreeing, uncertified = _certify(part)
    return ZeroEstimates(
        values=values,
        errors=errors,
        disagreeing=disagreeing,
        uncertified=uncertified,
        infinite_orders=primal.infinite_orders,
        normal_rank=rank,
        is_doubtful=primal.is_doubtful or dual.is_doubtful,
        unresolved=count - len(values),
        is_consistent=is_consistent,
    )


def _take_regular_part(pencil: SystemPencil, primal: OutputNulling, dual: OutputNulling, count: int) -> _RegularPart:
    """Return the part with ``count`` finite zeros, or with fewer: without those that rounding makes infinite."""
    n = pencil.n
    X, Y = primal.right_space(pencil), dual.right_space(pencil.transposed)
    U, sigma, Wt = np.linalg.svd(Y[:n].T @ X[:n])
    resolved = int(np.count_nonzero(sigma[:count] > UNRESOLVED_SINGULAR_VALUE))
    L, R = Y @ U[:, :count], X @ Wt[:count].T
    if resolved < count:  # there s has no part in the pencil, which determines these directions by the others
        K = L.T @ pencil.S @ R
        inner, outer = slice(None, resolved), slice(resolved, None)
        right_solution = np.linalg.lstsq(K[outer, outer], K[outer, inner])[0]
        left_solution = np.linalg.lstsq(K[outer, outer].T, K[inner, outer].T)[0]
        L, R = L[:, inner] - L[:, outer] @ left_solution, R[:, inner] - R[:, outer] @ right_solution
    scale = np.sqrt(sigma[:resolved])
    L, R = L / scale, R / scale
    Az = L.T @ pencil.S @ R
    R = R + _complete(pencil, R, X @ Wt[count:].T, Az)
    L = L + _complete(pencil.transposed, L, Y @ U[:, count:], Az.T)
    return _RegularPart(pencil, L, R, scale)


@dataclass(frozen=True, eq=False)
class ZeroMotion:
    """The motions of a system for which its outputs stay zero: S space = E space A_z."""

    space: FloatArray  # (n + m, k), of states and inputs; those of the states are orthonormal
    left_vectors: FloatArray  # (n + p, k), of equations: left' E space = I, left' S space = A_z
    input_rows: FloatArray  # (m, n + p): perturbations dS of S move the inputs of ``space`` by -input_rows dS space
    freedom: int  # how many combinations of inputs leave no trace in the outputs; the motion is not unique then


def find_zero_motion(pencil: SystemPencil) -> ZeroMotion:
    """Return the motion of an equilibrated pencil with outputs at zero.

    ``left`` is chosen by the dual system where that has the same zeros, so that it tells how errors move A_z; where
    outputs outnumber inputs, by the states alone.
    """
    n, m = pencil.n, pencil.m
    primal = null_outputs(pencil)
    V, freedom = primal.states, m - primal.rows.shape[1]
    outputs = primal.rows.T @ pencil.S  # of full row rank by inputs
    input_rows = np.linalg.pinv(outputs[:, n:]) @ primal.rows.T
    inputs = -input_rows @ pencil.S[:, :n] @ V
    space = np.vstack((V, inputs))
    dual = null_outputs(pencil.transposed).right_space(pencil.transposed)
    overlap = dual[:n].T @ V
    if np.linalg.matrix_rank(overlap, tol=PENCIL_NONZERO_THRESHOLD) == V.shape[1]:
        left_vectors = dual @ np.linalg.pinv(overlap).T
    else:
        left_vectors = np.vstack((V, np.zeros((pencil.p, V.shape[1]))))
    return ZeroMotion(space, left_vectors, input_rows, freedom)


def _complete(pencil: SystemPencil, R: FloatArray, free: FloatArray, Az: FloatArray) -> FloatArray:
    """Return the combinations ``free`` C of least size with S (R + free C) = E (R + free C) Az.

    ``free`` are the states and inputs that leave no trace in the outputs. Only pencils have some that are not of full
    column rank anywhere; by them the pencil maps into the states among them, at every s onto all of these.
    """
    n = pencil.n
    basis = column_space(free[:n]) if free.size else np.zeros((n, 0))
    if not basis.shape[1] or not len(Az):
        return np.zeros_like(R)
    S, E = basis.T @ pencil.S[:n] @ free, basis.T @ free[:n]
    T, Z = schur_complex(Az.astype(np.complex128))
    missing = basis.T @ (R[:n] @ Az - pencil.S[:n] @ R) @ Z
    C = np.zeros((free.shape[1], len(Az)), dtype=np.complex128)
    for j in range(len(Az)):
        right_side = missing[:, j] + E @ (C[:, :j] @ T[:j, j])
        C[:, j] = np.linalg.lstsq(S - T[j, j] * E, right_side)[0]
    return np.asarray(free @ (C @ Z.conj().T).real)


def _certify(part: _RegularPart) -> tuple[Complex, FloatArray, Mask, Mask]:
    """Return the zeros of an equilibrated pencil, their errors, and which of them disagree or are not certified."""
    k = len(part.matrix)
    if not k:
        nothing = np.zeros(0)
        return nothing.astype(np.complex128), nothing, nothing.astype(np.bool_), nothing.astype(np.bool_)
    # QZ in the orthonormal bases: far zeros, which are nearly infinite there, do not spoil the others
    L, R = part.L * part.scale, part.R * part.scale
    computed, left_vectors, right_vectors = compute_generalized_eigenvectors(
        L.T @ part.pencil.S @ R, np.diag(part.scale**2)
    )
    order = np.lexsort((computed.imag, computed.real))
    values = computed[order]
    x, y = R @ right_vectors[:, order], L @ left_vectors[:, order]
    x, y = x / np.linalg.norm(x, axis=0), y / np.linalg.norm(y, axis=0)
    assessed = _assess(part, values, x, y)
    if part.dropped > PENCIL_ZERO_TOLERANCE or assessed.uncertified.any():
        gaps = np.abs(values[:, None] - values)
        np.fill_diagonal(gaps, np.inf)
        for i in range(k):
            reach = gaps[i].min() / ISOLATION_FACTOR
            values[i], x[:, i], y[:, i] = part.correct(complex(values[i]), x[:, i], y[:, i], reach)
        values = np.where(computed[order].imag == 0, values.real, values)
        assessed = _assess(part, values, x, y)
    steps, errors, uncertified = assessed.steps, assessed.errors, assessed.uncertified
    corrections = np.abs(steps)
    distances = np.abs(values[:, None] - values)
    np.fill_diagonal(distances, np.inf)
    is_isolated = distances.min(axis=1) > ISOLATION_FACTOR * np.maximum(errors, corrections)
    if not is_isolated.all():
        ascending = np.lexsort((values.imag, values.real))
        clustered = np.empty(k)
        estimates = estimate_eigenvalues(part.matrix, part.error, sort_eigenvalues(values), structured=False)
        clustered[ascending] = estimates.errors
        errors = np.where(is_isolated, errors, clustered)
    corrected = np.where(is_isolated & ~uncertified, values + steps, values)
    disagreeing = is_isolated & (corrections > DISAGREEMENT_FACTOR * errors)
    errors = np.where(is_isolated, np.maximum(errors, corrections), errors)
    errors = np.where(uncertified, np.inf, errors)
    values = _pair_conjugates(values, corrected)
    ascending = np.lexsort((values.imag, values.real))
    return values[ascending], errors[ascending], disagreeing[ascending], uncertified[ascending]


@dataclass(frozen=True, eq=False)
class _Assessment:
    """The residuals of zeros in the unreduced pencil, shape (k,)."""

    steps: Complex  # corrections of the zeros
    errors: FloatArray  # to first order
    uncertified: Mask


def _assess(part: _RegularPart, values: Complex, x: Complex, y: Complex) -> _Assessment:
    """Return what the pencil says about zeros with unit vectors x (n + m, k) on its right, y (n + p, k) on its left."""
    pencil, S, n = part.pencil, part.pencil.S, part.pencil.n
    Ex = np.vstack((x[:n], np.zeros((pencil.p, len(values)))))
    yE = np.hstack((y[:n].conj().T, np.zeros((len(values), pencil.m))))
    Px, yP = S @ x - Ex * values, y.conj().T @ S - values[:, None] * yE
    slopes = np.einsum("ik,ik->k", y[:n].conj(), x[:n])
    perturbation = np.einsum("ik,ik->k", np.abs(y), (pencil.error + EPS * np.abs(S)) @ np.abs(x))
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.einsum("ik,ik->k", y.conj(), Px) / slopes
        errors = (perturbation + part.rounding) / np.abs(slopes)
    limit = (np.linalg.norm(S, 2) + np.abs(values)) * UNCERTIFIED_ZERO + np.linalg.norm(pencil.error) + pencil.rounding
    residuals = np.maximum(np.linalg.norm(Px, axis=0), np.linalg.norm(yP, axis=1))
    return _Assessment(steps, errors, ~(residuals <= limit))


def _pair_conjugates(values: Complex, corrected: Complex) -> Complex:
    """Return corrected eigenvalues of which real ones are real and pairs are conjugate, as ``values`` are."""
    paired = np.where(values.imag == 0, corrected.real, corrected)
    upper = np.flatnonzero(values.imag > 0)
    for i in upper.tolist():
        partners = np.flatnonzero(values == values[i].conj())
        same = np.flatnonzero(values == values[i])
        j = int(partners[int(np.flatnonzero(same == i)[0])]) if len(partners) == len(same) else None
        if j is not None:
            paired[j] = paired[i].conj()
    return np.asarray(paired, dtype=np.complex128)


# -- the minimal part --------------------------------------------------------------------------------------------------


def compute_transmission_zeros(pencil: SystemPencil, invariant: ZeroEstimates | None = None) -> ZeroEstimates:
    """Return the zeros of the minimal part of a system; ``invariant`` are all zeros, if they have been computed.

    An eigenvalue of A can be a zero only because no input reaches its mode, or no output shows it: the rank of
    [A - z I, B] or of [A - z I; C] drops (Popov, Belevitch, Hautus). Such modes are removed, one after the other.
    This decides by the distance to a system with a hidden mode. The steps of a staircase would not: a weak coupling
    enlarges the rounding of all later ones.
    """
    scaled = equilibrate(pencil)
    estimates = _compute_in_units(scaled) if invariant is None else invariant
    while (reduced := _remove_hidden_modes(scaled, estimates)) is not scaled:
        scaled = reduced
        estimates = _compute_in_units(scaled)
    return estimates


def _remove_hidden_modes(scaled: EquilibratedPencil, estimates: ZeroEstimates) -> EquilibratedPencil:
    """Return the pencil without the hidden modes of zeros, one mode of each; itself where none is hidden."""
    pencil = scaled.pencil
    n = pencil.n
    if not n or not len(estimates.values):
        return scaled
    zeros, radii = estimates.values / scaled.unit, estimates.errors / scaled.unit
    eigenvalues = np.linalg.eigvals(pencil.S[:n, :n])
    directions: list[FloatArray] = []
    rounding = pencil.rounding
    for z, radius in zip(zeros.tolist(), radii.tolist(), strict=True):
        near = max(NEAR_EIGENVALUE * (1.0 + abs(z)), radius)
        if z.imag < 0 or not (np.abs(eigenvalues - z) <= near).any():
            continue
        for side in (pencil.transposed, pencil):
            mode, smallest = _find_hidden_mode(side, z, radius)
            if mode is None:
                continue
            directions += [mode.real, mode.imag] if z.imag > 0 else [mode.real]
            rounding += smallest
            break
    if not directions:
        return scaled
    U, sigma, _ = np.linalg.svd(np.column_stack(directions))
    count = int(np.count_nonzero(sigma > PARALLEL_MODE_TOLERANCE * sigma[0]))
    rest = replace(pencil.restrict(U[:, count:]), rounding=rounding + 4 * EPS * float(np.linalg.norm(pencil.S)))
    return replace(scaled, pencil=rest)


def _find_hidden_mode(pencil: SystemPencil, z: complex, radius: float) -> tuple[Complex | None, float]:
    """Return the mode of an eigenvalue near z that no output shows, None if outputs show it, and by how much."""
    n = pencil.n
    A, C = pencil.S[:n, :n], pencil.S[n:, :n]
    noise = float(np.linalg.norm(pencil.error[:, :n])) + pencil.rounding
    # z itself is off by its error, and a mode that is only as far from hidden counts as hidden
    limit = max(
        np.sqrt(PENCIL_ZERO_TOLERANCE * PENCIL_NONZERO_THRESHOLD), NOISE_MARGIN * noise, min(radius, NEAR_EIGENVALUE)
    )
    best: tuple[Complex | None, float] = (None, np.inf)
    for _ in range(REFINEMENTS):
        sigma, Vh = np.linalg.svd(np.vstack((A - z * np.eye(n), C)))[1:]
        if not sigma[-1] < min(best[1], limit):
            break
        best = (Vh[-1].conj(), float(sigma[-1]))
        z = complex(Vh[-1] @ A @ Vh[-1].conj())  # of a multiple zero z is as far off as rounding scatters it
    return best


# -- relative degree ---------------------------------------------------------------------------------------------------


def count_differentiations(pencil: SystemPencil) -> FloatArray:
    """Return how often each output must be differentiated until an input shows, shape (p,); infinity where never."""
    scaled = equilibrate(pencil).pencil
    degrees = np.full(pencil.p, np.inf)
    for i in range(pencil.p):
        orders = null_outputs(scaled.select_outputs([i])).infinite_orders
        if orders:
            degrees[i] = orders[0]
    return degrees
