"""Whether deviations of a linear model grow: True, False, or None where the errors of its entries leave it open.

Entries are known to E, so eigenvalues are known to what E does to them. A simple eigenvalue moves by at most
sum_ij E_ij |y_i x_j| with its left and right eigenvectors, y' x = 1 (Golub and Van Loan, Matrix computations, section
7.2). Eigenvalues that E can make equal form a group, which is judged by the block of the matrix on its invariant
subspace: the mean of the block moves little, and its nilpotent part N decides whether deviations grow like t, t^2, ...
at the stability limit (a Jordan block).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fmilin.ground import FloatArray
from fmilin.ground.tolerances import GROWS_BEFORE_ERRORS, KNOWN_NEUTRAL, KNOWN_NEUTRAL_MULTIPLIER

ComplexArray = NDArray[np.complex128]

EPS = float(np.finfo(np.float64).eps)
SOLVER_ROUNDING = 4.0  # in units of eps |A|: the backward error of the eigenvalue solver
SAFETY = 3.0  # errors of entries are estimates: an eigenvalue is on one side of the limit beyond so many of them
SEPARATE = 3.0  # eigenvalues are distinct when they are farther apart than so many of their errors together
NEAREST = 1.0 + 1e-3  # how much farther than its nearest neighbour a group may be that is united in the same round
FADES = 10.0  # a power of N below so many times its own error is zero


@dataclass(frozen=True, eq=False)
class EigenvalueGroup:
    """Eigenvalues that the errors of the entries cannot tell apart; mostly one."""

    members: tuple[int, ...]  # positions among the eigenvalues
    mean: complex
    mean_error: float
    radius: float  # how far a member may be from the mean, errors included
    growth: float  # how far the mean is beyond the stability limit: its real part, or |z| - 1
    growth_error: float
    is_defective: bool | None = False  # whether fewer directions than members belong to it; None: cannot be told


@dataclass(frozen=True, eq=False)
class Stability:
    """Whether deviations grow, and why."""

    #: True: no deviation grows (it may stay); False: one certainly does; None: the errors leave it open
    stable: bool | None
    text: str  #: the verdict in words; begins with "stable", "neutral", "unstable" or "cannot be told"
    eigenvalues: ComplexArray  #: (P,), in 1/s, or multipliers; sorted by real part, then imaginary part
    errors: FloatArray  #: (P,), by what each of them may be off
    groups: tuple[EigenvalueGroup, ...] = field(default=(), repr=False)
    unstable: int = 0  #: eigenvalues that are certainly beyond the stability limit
    defective: int = 0  #: eigenvalues at the limit in a group that certainly has too few directions
    undecided: int = 0  #: eigenvalues on an unknown side of the limit
    neutral: int = 0  #: eigenvalues at the limit


def judge_stability(
    A: FloatArray, error: FloatArray | float = 0.0, *, sampled: bool = False, structured: bool = True
) -> Stability:
    """Return whether deviations of y' = A y, or of y[k+1] = A y[k] where ``sampled``, grow.

    Parameters
    ----------
    A : ndarray, shape (P, P)
    error : ndarray, shape (P, P), or float
        Absolute errors of the entries. Rounding (eps times each entry) is added.
    sampled : bool
        Whether the limit is the unit circle.
    structured : bool
        Whether entries that are zero with an error of zero are zeros of the model. False for computed products.

    Examples
    --------
    >>> import numpy as np
    >>> from fmilin.linear_model.stability import judge_stability
    >>> judge_stability(np.array([[0.0, 1.0], [-1.0, -0.1]])).stable
    True
    >>> judge_stability(np.array([[0.0, 1.0], [0.0, 0.0]])).text
    'unstable: deviations grow in proportion to time (the eigenvalue 0, 2-fold, has fewer directions)'
    >>> print(judge_stability(np.array([[0.0, 1.0], [-1.0, -1e-9]]), 1e-6).stable)
    None
    """
    if not len(A):
        nothing = np.empty(0)
        return Stability(
            stable=True, text="stable: there is no deviation", eigenvalues=nothing.astype(np.complex128), errors=nothing
        )
    if not np.isfinite(A).all():
        unknown = np.full(len(A), np.nan)
        return Stability(
            stable=None, text="cannot be told: the matrix is not finite",
            eigenvalues=unknown.astype(np.complex128), errors=unknown,
        )  # fmt: skip
    matrix = _UncertainMatrix.balance(A, np.broadcast_to(error, A.shape), structured=structured, sampled=sampled)
    groups = _judge_defects(matrix, find_groups(matrix, sampled=sampled))
    return _summarize(matrix, groups, sampled=sampled)


@dataclass(frozen=True, eq=False)
class _UncertainMatrix:
    """A balanced matrix, errors of its entries, and its eigenvalues with the errors that belong to simple ones."""

    A: FloatArray  # (P, P)
    error: FloatArray  # (P, P), rounding included
    noise: float  # the backward error of the solver, a norm
    values: ComplexArray  # (P,), sorted
    moved: FloatArray  # (P,), by what an eigenvalue moves with the entries' errors
    growth_error: FloatArray  # (P,), by what its real part moves, or its modulus

    @classmethod
    def balance(cls, A: FloatArray, error: FloatArray, *, structured: bool, sampled: bool) -> _UncertainMatrix:
        from scipy.sparse.csgraph import connected_components

        # Blocks of states that do not depend on each other have their own eigenvalues, whatever couples them one way:
        # a zero that the model has by structure stays exact.
        error = error + EPS * np.abs(A)
        ratio = _balance(A, error)
        A, error = A * ratio, error * ratio
        pattern = (A != 0) | (error > 0) if structured else np.ones(A.shape, dtype=bool)
        labels = connected_components(pattern, connection="strong")[1]
        blocks = (np.flatnonzero(labels == k) for k in range(int(labels.max()) + 1))
        parts = [_eigenvalues_of_block(A, error, rows, sampled=sampled) for rows in blocks]
        values, moved, growth_error = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.lexsort((values.imag, values.real))
        noise = SOLVER_ROUNDING * EPS * float(np.linalg.norm(A))
        return cls(A, error, noise, values[order], moved[order], growth_error[order])

    @cached_property
    def schur_form(self) -> tuple[ComplexArray, ComplexArray]:
        """The triangular T and the unitary Q of A = Q T Q'."""
        from scipy.linalg import schur

        T, Q = schur(self.A, output="complex")
        return T, Q

    @property
    def rate(self) -> float:
        """The modulus of the fastest eigenvalue."""
        return float(np.abs(self.values).max(initial=0.0))


def _balance(A: FloatArray, error: FloatArray) -> FloatArray:
    """Return the factors (P, P) of the entries in coordinates of comparable sizes."""
    from scipy.linalg import matrix_balance

    # Entries that are all error do not count: balanced against them, what is certain would become as small as they are.
    sizes = np.where(np.abs(A) > SAFETY * error, np.abs(A), 0.0)
    np.fill_diagonal(sizes, 0.0)
    D = matrix_balance(sizes, permute=False, separate=True)[1][0]
    return np.asarray(D / D[:, None])


def _eigenvalues_of_block(
    A: FloatArray, error: FloatArray, rows: NDArray[np.intp], *, sampled: bool
) -> tuple[ComplexArray, FloatArray, FloatArray]:
    """Return eigenvalues (p,) of a diagonal block, by what errors move them, and by what they change their growth."""
    from scipy.linalg import eig

    block, uncertain = A[np.ix_(rows, rows)], error[np.ix_(rows, rows)]
    if len(rows) == 1:
        value, off = block[0].astype(np.complex128), uncertain[0]
        return value, off, off
    ratio = _balance(block, uncertain)
    block, uncertain = block * ratio, uncertain * ratio
    values, left, right = eig(block, left=True, right=True)  # type: ignore[misc]
    product = np.einsum("ik,ik->k", left.conj(), right)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        condition = 1.0 / np.abs(product)
        # d lambda = sum_ij conj(y_i) x_j dA_ij / (y' x)
        moved = np.nan_to_num(np.sum(np.abs(left) * (uncertain @ np.abs(right)), axis=0) * condition, nan=np.inf)
    rounding = SOLVER_ROUNDING * EPS * float(np.linalg.norm(block)) * condition
    growth, growth_error = _growth(values, sampled=sampled), moved.copy()
    # Where the error could matter, what errors do to the growth alone: it is less than what they do to a frequency.
    for k in np.flatnonzero((np.abs(growth) <= SAFETY * (moved + rounding)) & np.isfinite(moved + rounding)):
        outward = values[k].conj() / np.abs(values[k]) if sampled and values[k] != 0 else 1.0
        slopes = np.outer(left[:, k].conj(), right[:, k]) * (outward / product[k])
        growth_error[k] = float(np.sum(uncertain * np.abs(slopes.real)))
    return values.astype(np.complex128), moved + rounding, growth_error + rounding


def find_groups(matrix: _UncertainMatrix, *, sampled: bool) -> list[EigenvalueGroup]:
    """Return groups of eigenvalues that errors cannot tell apart."""
    groups = [_simple_group(matrix, k, sampled=sampled) for k in range(len(matrix.values))]
    while True:
        merged = _merge_near_groups(matrix, groups, sampled=sampled)
        if len(merged) == len(groups):
            return groups
        groups = merged


def _growth(values: ComplexArray, *, sampled: bool) -> FloatArray:
    """Return how far eigenvalues are beyond the stability limit."""
    return np.asarray(np.abs(values) - 1.0 if sampled else values.real)


def _growth_of_one(value: complex, *, sampled: bool) -> float:
    return abs(value) - 1.0 if sampled else value.real


def _simple_group(matrix: _UncertainMatrix, k: int, *, sampled: bool) -> EigenvalueGroup:
    value, error = complex(matrix.values[k]), float(matrix.moved[k])
    growth = _growth_of_one(value, sampled=sampled)
    return EigenvalueGroup((k,), value, error, error, growth, float(matrix.growth_error[k]))


def _merge_near_groups(
    matrix: _UncertainMatrix, groups: list[EigenvalueGroup], *, sampled: bool
) -> list[EigenvalueGroup]:
    """Return the groups with those united that are nearer to each other than their errors."""
    from scipy.sparse.csgraph import connected_components

    means = np.array([group.mean for group in groups])
    radii = np.array([min(group.radius, 1e300) for group in groups])
    distance = np.abs(means[:, None] - means)
    touch = distance <= SEPARATE * (radii[:, None] + radii)
    # First-order errors of an eigenvalue that is nearly defective are far too large. It is united with its nearest
    # neighbours alone, after which its error follows from the block of both.
    elsewhere = distance + np.diag(np.full(len(means), np.inf))
    nearest = elsewhere.min(axis=1, initial=np.inf)
    of_less_certain = np.where(radii[:, None] >= radii, nearest[:, None], nearest)
    touch &= distance <= NEAREST * of_less_certain
    count, labels = connected_components(touch, directed=False)
    united = []
    for label in range(count):
        own = [groups[k] for k in np.flatnonzero(labels == label)]
        united.append(own[0] if len(own) == 1 else _unite(matrix, own, sampled=sampled))
    return united


def _unite(matrix: _UncertainMatrix, groups: list[EigenvalueGroup], *, sampled: bool) -> EigenvalueGroup:
    members = tuple(sorted(k for group in groups for k in group.members))
    block = _invariant_block(matrix, members)
    values = matrix.values[list(members)]
    mean = complex(np.mean(values))
    if block is None:
        radius = float(np.abs(values - mean).max()) + matrix.noise
        return EigenvalueGroup(members, mean, radius, radius, _growth_of_one(mean, sampled=sampled), radius, None)
    mean = block.mean
    error = block.mean_error
    radius = float(np.abs(values - mean).max()) + error + block.spread
    return EigenvalueGroup(members, mean, error, radius, _growth_of_one(mean, sampled=sampled), error)


@dataclass(frozen=True, eq=False)
class _InvariantBlock:
    """The matrix on the invariant subspace of a group: mean times the identity, plus N."""

    mean: complex
    mean_error: float
    N: ComplexArray  # (m, m)
    error: float  # of N, a norm

    @property
    def size(self) -> float:
        """The norm of N."""
        return float(np.linalg.norm(self.N, 2))

    @property
    def index(self) -> int:
        """The power at which N vanishes within its error, as for the longest Jordan block."""
        power, size = self.N, self.size
        for q in range(1, len(self.N) + 1):
            if float(np.linalg.norm(power, 2)) <= FADES * q * self.error * max(size, self.error) ** (q - 1):
                return q
            power = power @ self.N
        return len(self.N)

    @property
    def spread(self) -> float:
        """By how far errors may split the eigenvalues of the block."""
        q = self.index
        return float((self.error * max(self.size, self.error) ** (q - 1)) ** (1.0 / q))


def _invariant_block(matrix: _UncertainMatrix, members: tuple[int, ...]) -> _InvariantBlock | None:
    """Return the block of a group; None where the solver does not separate it from the others."""
    from scipy.linalg import lapack

    m = len(members)
    mean = complex(np.mean(matrix.values[list(members)]))
    T, Q = matrix.schur_form
    select = np.zeros(len(T), dtype=np.intc)
    select[np.argsort(np.abs(np.diag(T) - mean))[:m]] = 1
    T, Q, _, reordered, _, _, info = lapack.ztrsen(select, T, Q, job="N", lwork=1)
    if info != 0 or reordered != m:
        return None
    X, block = Q[:, :m], T[:m, :m]
    # The left basis is Y' = [1 R] Q' with T11 R - R T22 = T12, so that Y' X = 1.
    Y = Q.conj().T[:m]
    if m < len(T):
        R, scale, info = lapack.ztrsyl(block, T[m:, m:], T[:m, m:], isgn=-1)
        if info < 0 or scale == 0:
            return None
        Y = Y + R / scale @ Q.conj().T[m:]
    rounding = matrix.noise * float(np.linalg.norm(Y, 2))
    change = np.abs(Y) @ matrix.error @ np.abs(X)
    if not np.isfinite(change).all():
        return None
    mean = complex(np.trace(block)) / m
    mean_error = float(np.trace(change)) / m + rounding
    N = block - mean * np.eye(m)
    return _InvariantBlock(mean, mean_error, N, float(np.linalg.norm(change, 2)) + rounding)


def _judge_defects(matrix: _UncertainMatrix, groups: list[EigenvalueGroup]) -> tuple[EigenvalueGroup, ...]:
    """Return the groups; of those at the limit it is said whether they have fewer directions than members."""
    judged = []
    for group in groups:
        at_limit = abs(group.growth) <= max(group.radius, SAFETY * group.growth_error)
        if len(group.members) == 1 or not at_limit or group.is_defective is None:
            judged.append(group)
            continue
        block = _invariant_block(matrix, group.members)
        judged.append(replace(group, is_defective=None if block is None else _is_defective(block)))
    return tuple(judged)


def _is_defective(block: _InvariantBlock) -> bool | None:
    """Whether N is certainly not zero, and deviations grow by orders before errors could make an end of it."""
    if block.size <= FADES * block.error:
        return False
    grows_by = block.size / block.spread if block.spread > 0 else np.inf
    return True if grows_by >= GROWS_BEFORE_ERRORS else None


def _summarize(matrix: _UncertainMatrix, groups: tuple[EigenvalueGroup, ...], *, sampled: bool) -> Stability:
    P = len(matrix.values)
    errors = np.empty(P)
    counts = {"unstable": 0, "defective": 0, "undecided": 0, "neutral": 0}
    worst: dict[str, EigenvalueGroup] = {}
    tolerance = KNOWN_NEUTRAL_MULTIPLIER if sampled else KNOWN_NEUTRAL * matrix.rate
    for group in groups:
        errors[list(group.members)] = group.radius
        kind = _kind(group, tolerance)
        if kind == "decays":
            continue
        counts[kind] += len(group.members)
        if kind not in worst or group.growth > worst[kind].growth:
            worst[kind] = group
    stable, text = _verdict(matrix, groups, counts, worst, sampled=sampled)
    return Stability(stable, text, matrix.values, errors, groups, **counts)


def _kind(group: EigenvalueGroup, tolerance: float) -> str:
    """Return on which side of the limit a group is."""
    uncertain = SAFETY * group.growth_error
    several = len(group.members) > 1
    if group.growth > uncertain:
        # A mean beyond the limit leaves a member there, wherever the others are.
        return "unstable"
    if group.growth < -uncertain and not (several and group.growth + group.radius >= 0):
        return "decays"
    if several and group.is_defective is not False:
        inside = abs(group.growth) <= uncertain
        return "defective" if group.is_defective and inside else "undecided"
    return "neutral" if group.growth_error <= tolerance else "undecided"


def _verdict(
    matrix: _UncertainMatrix,
    groups: tuple[EigenvalueGroup, ...],
    counts: dict[str, int],
    worst: dict[str, EigenvalueGroup],
    *,
    sampled: bool,
) -> tuple[bool | None, str]:
    P = len(matrix.values)
    if counts["unstable"]:
        return False, f"unstable: {_count_unstable(counts['unstable'], P, worst['unstable'], sampled=sampled)}"
    if counts["defective"]:
        group = worst["defective"]
        name = _number(group.mean, group.mean_error)
        multiple = f"{len(group.members)}-fold, has fewer directions"
        period = "the number of steps" if sampled else "time"
        kind = "multiplier" if sampled else "eigenvalue"
        return False, f"unstable: deviations grow in proportion to {period} (the {kind} {name}, {multiple})"
    if counts["undecided"]:
        group = worst["undecided"]
        name = f"{_number(group.mean, group.mean_error)} is known to +- {max(group.growth_error, group.radius):.1g}"
        kind = "multiplier" if sampled else "eigenvalue"
        return None, f"cannot be told: the {kind} {name}, and the stability limit is within that"
    if counts["neutral"]:
        return True, "neutral: no deviation grows, and some do not die out"
    slowest = max(group.growth for group in groups)
    rate = f"the largest |z| is {slowest + 1:.6g}" if sampled else f"the slowest at {-slowest:.4g} 1/s"
    return True, f"stable: deviations die out, {rate}"


def _count_unstable(count: int, P: int, worst: EigenvalueGroup, *, sampled: bool) -> str:
    if sampled:
        verb = "multiplier is" if count == 1 else "multipliers are"
        return f"{count} of {P} {verb} larger than 1, the largest {worst.growth + 1:.6g}"
    verb = "has a positive real part" if count == 1 else "have positive real parts"
    return f"{count} of {P} eigenvalues {verb}, the largest {worst.growth:.4g} 1/s"


def _number(value: complex, error: float) -> str:
    """Return a number without the digits that are rounding."""
    real = 0.0 if abs(value.real) <= SAFETY * error else value.real
    imaginary = 0.0 if abs(value.imag) <= SAFETY * error else abs(value.imag)
    return f"{real:.6g}" if imaginary == 0 else f"{real:.6g} +- {imaginary:.6g}i"
