"""Whether deviations of a linear model grow: True, False, or None where the errors of its entries leave it open.

Eigenvalues have the errors of :mod:`fmilin.numerics.eigenvalue_errors`. Those that errors cannot tell apart form a
group. A group at the stability limit is judged by the block of the matrix on its invariant subspace: the mean of the
block moves little, and its nilpotent part N decides whether deviations grow like t, t^2, ... (a Jordan block).
"""

from __future__ import annotations

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from fmilin.numerics.eigenvalue_errors import (
    EigenvalueEstimates,
    UncertainMatrix,
    estimate_eigenvalues,
    group_eigenvalues,
)
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import GROWS_BEFORE_ERRORS, KNOWN_NEUTRAL_MULTIPLIER, NEUTRAL_MODE_ERROR

ComplexArray = NDArray[np.complex128]

SAFETY_FACTOR = 3.0  # errors of entries are estimates: an eigenvalue is on one side of the limit beyond so many of them
SEPARATION_FACTOR = 3.0  # eigenvalues are distinct when they are farther apart than so many of their errors together
VANISHING_POWER_FACTOR = 10.0  # a power of N below so many times its own error is zero


@dataclass(frozen=True, eq=False)
class EigenvalueGroup:
    """Eigenvalues that the errors of the entries cannot tell apart; mostly one."""

    members: tuple[int, ...]  # positions among the eigenvalues
    mean: complex
    mean_error: float
    radius: float  # how far a member may be from the mean, errors included
    growth: float  # how far the mean is beyond the stability limit: its real part, or |z| - 1
    growth_error: float
    is_defective: bool | None = False  # whether fewer directions than members belong to it; None: undecided


@dataclass(frozen=True, eq=False)
class Stability:
    """Whether deviations grow, and why."""

    #: True: no deviation grows (it may stay); False: one certainly does; None: the errors leave it open
    stable: bool | None
    text: str  #: the verdict in words; begins with "stable", "neutral", "unstable" or "cannot be determined"
    eigenvalues: ComplexArray  #: (P,), in 1/s, or multipliers; sorted by real part, then imaginary part
    errors: FloatArray  #: (P,), by what each of them may be off
    groups: tuple[EigenvalueGroup, ...] = field(default=(), repr=False)
    #: (P,), of each eigenvalue "decays", "neutral" (stays), "unstable" (grows exponentially), "defective" (grows in
    #: proportion to time) or "undecided"
    kinds: tuple[str, ...] = field(default=(), repr=False)
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
            stable=True, text="stable: there are no states", eigenvalues=nothing.astype(np.complex128), errors=nothing
        )
    if not np.isfinite(A).all():
        unknown = np.full(len(A), np.nan)
        return Stability(
            stable=None, text="cannot be determined: the matrix is not finite",
            eigenvalues=unknown.astype(np.complex128), errors=unknown,
        )  # fmt: skip
    errors = np.asarray(np.broadcast_to(error, A.shape), dtype=np.float64)
    estimates = estimate_eigenvalues(A, errors, sampled=sampled, structured=structured)
    matrix = UncertainMatrix.balance(A, errors, by_certain_entries=True)
    groups = _form_groups(matrix, estimates, sampled=sampled)
    return _summarize(estimates, groups, sampled=sampled)


def _form_groups(
    matrix: UncertainMatrix, estimates: EigenvalueEstimates, *, sampled: bool
) -> tuple[EigenvalueGroup, ...]:
    """Return groups of eigenvalues that errors cannot tell apart; those at the stability limit are looked into."""
    groups = []
    for members in group_eigenvalues(estimates.values, SEPARATION_FACTOR * estimates.errors):
        values, errors = estimates.values[members], estimates.errors[members]
        mean = complex(values.mean())
        radius = float(np.max(np.abs(values - mean) + errors))
        growth = _compute_growth(mean, sampled=sampled)
        if len(members) == 1:
            growth_error = float(estimates.growth_errors[members[0]])
            groups.append(EigenvalueGroup(tuple(members), mean, radius, radius, growth, growth_error))
            continue
        group = EigenvalueGroup(tuple(members), mean, radius, radius, growth, radius, is_defective=None)
        groups.append(
            _examine_group(matrix, group, values, sampled=sampled) if abs(growth) <= SAFETY_FACTOR * radius else group
        )
    return tuple(groups)


def _examine_group(
    matrix: UncertainMatrix, group: EigenvalueGroup, values: ComplexArray, *, sampled: bool
) -> EigenvalueGroup:
    """Return a group at the stability limit with the mean, and its error, of its block; and whether that is defective.

    The mean of a Jordan block of order k is known far better than its members, which move by the k-th root of errors.
    """
    on_group, error = matrix.restrict(values)
    if not np.isfinite(error).all():
        return group
    m = len(on_group)
    mean = complex(np.trace(on_group)) / m
    mean_error = float(np.trace(error)) / m
    block = _InvariantBlock(on_group - mean * np.eye(m), float(np.linalg.norm(error, 2)))
    radius = max(group.radius, mean_error + block.spread)
    growth = _compute_growth(mean, sampled=sampled)
    return EigenvalueGroup(group.members, mean, mean_error, radius, growth, mean_error, _is_defective(block))


def _compute_growth(value: complex, *, sampled: bool) -> float:
    """Return how far an eigenvalue is beyond the stability limit."""
    return abs(value) - 1.0 if sampled else value.real


@dataclass(frozen=True, eq=False)
class _InvariantBlock:
    """The nilpotent part N of the matrix on the invariant subspace of a group: what is left besides the mean."""

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
            if float(np.linalg.norm(power, 2)) <= VANISHING_POWER_FACTOR * q * self.error * max(size, self.error) ** (
                q - 1
            ):
                return q
            power = power @ self.N
        return len(self.N)

    @property
    def spread(self) -> float:
        """By how far errors may split the eigenvalues of the block."""
        q = self.index
        return float((self.error * max(self.size, self.error) ** (q - 1)) ** (1.0 / q))


def _is_defective(block: _InvariantBlock) -> bool | None:
    """Whether N is certainly not zero, and deviations grow by orders before errors could make an end of it."""
    if block.size <= VANISHING_POWER_FACTOR * block.error:
        return False
    grows_by = block.size / block.spread if block.spread > 0 else np.inf
    return True if grows_by >= GROWS_BEFORE_ERRORS else None


def _summarize(estimates: EigenvalueEstimates, groups: tuple[EigenvalueGroup, ...], *, sampled: bool) -> Stability:
    values = estimates.values
    fastest = float(np.abs(values).max(initial=0.0))
    counts = {"unstable": 0, "defective": 0, "undecided": 0, "neutral": 0}
    worst: dict[str, EigenvalueGroup] = {}
    kinds = ["decays"] * len(values)
    tolerance = KNOWN_NEUTRAL_MULTIPLIER if sampled else NEUTRAL_MODE_ERROR * fastest
    for group in groups:
        kind = _kind(group, tolerance)
        if kind == "decays":
            continue
        for member in group.members:
            kinds[member] = kind
        counts[kind] += len(group.members)
        if kind not in worst or group.growth > worst[kind].growth:
            worst[kind] = group
    stable, text = _verdict(len(values), groups, counts, worst, sampled=sampled)
    return Stability(stable, text, values, estimates.errors, groups, tuple(kinds), **counts)


def _kind(group: EigenvalueGroup, tolerance: float) -> str:
    """Return on which side of the limit a group is."""
    uncertain = SAFETY_FACTOR * group.growth_error
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
    P: int,
    groups: tuple[EigenvalueGroup, ...],
    counts: dict[str, int],
    worst: dict[str, EigenvalueGroup],
    *,
    sampled: bool,
) -> tuple[bool | None, str]:
    if counts["unstable"]:
        return False, f"unstable: {_count_unstable(counts['unstable'], P, worst['unstable'], sampled=sampled)}"
    if counts["defective"]:
        group = worst["defective"]
        name = _format_eigenvalue(group.mean, group.mean_error)
        multiple = f"{len(group.members)}-fold, has fewer directions"
        period = "the number of steps" if sampled else "time"
        kind = "multiplier" if sampled else "eigenvalue"
        return False, f"unstable: deviations grow in proportion to {period} (the {kind} {name}, {multiple})"
    if counts["undecided"]:
        group = worst["undecided"]
        value = f"{group.mean.real:.6g}" if sampled and abs(group.mean.imag) <= group.radius else None
        name = value or _format_eigenvalue(
            group.mean, group.mean_error
        )  # a multiplier is named by its value, which is about 1
        name = f"{name} is accurate to +- {max(group.growth_error, group.radius):.1g}"
        kind = "multiplier" if sampled else "eigenvalue"
        return None, f"cannot be determined: the {kind} {name}, and the stability limit is within that"
    if counts["neutral"]:
        return True, "neutral to first order: no deviation grows, and some do not die out"
    slowest = max(group.growth for group in groups)
    rate = f"the largest |z| is {slowest + 1:.6g}" if sampled else f"the slowest at {-slowest:.4g} 1/s"
    return True, f"stable: deviations die out, {rate}"


def _count_unstable(count: int, P: int, worst: EigenvalueGroup, *, sampled: bool) -> str:
    if sampled:
        verb = "multiplier is" if count == 1 else "multipliers are"
        return f"{count} of {P} {verb} larger than 1, the largest {worst.growth + 1:.6g}"
    verb = "has a positive real part" if count == 1 else "have positive real parts"
    return f"{count} of {P} eigenvalues {verb}, the largest {worst.growth:.4g} 1/s"


def _format_eigenvalue(value: complex, error: float) -> str:
    """Return a number without the digits that are rounding."""
    real = 0.0 if abs(value.real) <= SAFETY_FACTOR * error else value.real
    imaginary = 0.0 if abs(value.imag) <= SAFETY_FACTOR * error else abs(value.imag)
    return f"{real:.6g}" if imaginary == 0 else f"{real:.6g} +- {imaginary:.6g}i"
