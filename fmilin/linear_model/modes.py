"""Modes from the eigenvalues: frequencies, damping, and the motion of the whole mechanism."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.numerics.eigenvalue_errors import compute_eigenvalue_errors, compute_eigenvalues, group_eigenvalues
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr

Complex = NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class Mode:
    """One real eigenvalue, or one pair of complex ones."""

    # in 1/s, the one of a pair with positive imaginary part. Of a sampled model: ``log(z) / sample_time``
    eigenvalue: complex
    # (N,), how all N states move, dependent ones included: ``x - x0 = Re(shape exp(eigenvalue t))`` to first order. Its
    # largest entry is 1
    shape: NDArray[np.complex128]
    error: float = 0.0  # how far the eigenvalue may be off, in 1/s: see :meth:`LinearModel.eigenvalue_errors`
    # whether this is one real z < 0 of a sampled model, of which each sample changes the sign: its rate has the
    # imaginary part ``pi / sample_time``, and there is no conjugate eigenvalue
    is_alternating: bool = False

    @property
    def is_oscillatory(self) -> bool:
        """Whether this is a pair of complex eigenvalues."""
        return self.eigenvalue.imag > 0 and not self.is_alternating

    @property
    def frequency(self) -> float:
        """The undamped natural frequency ``|eigenvalue|`` in rad/s."""
        return abs(self.eigenvalue)

    @property
    def frequency_in_hertz(self) -> float:
        """The undamped natural frequency in Hz."""
        return self.frequency / (2 * np.pi)

    @property
    def damping_ratio(self) -> float:
        """``-Re / |eigenvalue|``: 1 and more never swings, 0 never decays, less than 0 grows; NaN for 0."""
        return -self.eigenvalue.real / self.frequency if self.frequency > 0 else float("nan")


class Modes(TableRepr, tuple[Mode, ...]):
    """The modes of a linear model, slowest first."""

    _attributes = "each has .eigenvalue, .frequency, .damping_ratio, .shape"

    __slots__ = ()

    @implemented_in("fmilin.report.notebook:show_modes")
    def _print_table(self, page: Sheet) -> None: ...


def compute_modes(A: FloatArray, T: FloatArray, sample_time: float = 0.0, E: FloatArray | None = None) -> Modes:
    """Return the modes of dy/dt = A (y - y0), or of samples, seen in x - x0 = T (y - y0), T (N, P), slowest first.

    ``E`` has the errors of the entries of A, shape (P, P); without it they count as exact.
    """
    if not len(A):
        return Modes()
    values = compute_eigenvalues(A)
    errors = compute_eigenvalue_errors(A, np.zeros_like(A) if E is None else E, values)
    vectors = _match_eigenvectors(A, values)
    modes = []
    for value, error, vector in zip(values.tolist(), errors.tolist(), vectors.T, strict=True):
        if value.imag < 0:
            continue
        shape, largest = compute_shape(T, vector)
        rate_error = float(convert_errors_to_rates(value, error, sample_time))
        is_alternating = sample_time > 0 and value.imag == 0 and value.real < 0
        modes.append(Mode(compute_rate(value, sample_time), shape / largest, rate_error, is_alternating))
    return Modes(sorted(modes, key=lambda m: slowness(m.eigenvalue)))


def _match_eigenvectors(A: FloatArray, values: Complex) -> Complex:
    """Return an eigenvector for each of the eigenvalues, as columns in their order."""
    computed, vectors = np.linalg.eig(A)
    distances = np.abs(values[:, None] - computed)
    order = distances.argmin(axis=1)
    if np.unique(order, return_index=True)[0].size < len(order):
        # Multiple eigenvalues have the same neighbour: the least sum of distances decides.
        from scipy.optimize import linear_sum_assignment

        order = linear_sum_assignment(distances)[1]
    return np.asarray(vectors, dtype=np.complex128)[:, order]


def convert_to_rates(values: Any, sample_time: float) -> Any:
    """Return eigenvalues in 1/s, of the shape of ``values``: ``log(z) / sample_time`` of a sampled motion.

    The dead beat, z = 0, has the rate -inf.
    """
    values = np.asarray(values, dtype=np.complex128)
    if sample_time <= 0:
        return values
    with np.errstate(divide="ignore"):
        growth = np.log(np.abs(values)) / sample_time
    rates = np.empty_like(values)
    rates.real = growth
    rates.imag = np.angle(values + 0.0) / sample_time  # -0.0 is 0.0: a negative real z has one angle, pi
    return rates


def convert_errors_to_rates(values: Any, errors: Any, sample_time: float) -> Any:
    """Return the errors of eigenvalues in 1/s; of a sampled motion those of ``log(z) / sample_time``."""
    errors = np.asarray(errors, dtype=np.float64)
    if sample_time <= 0:
        return errors
    sizes = np.abs(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sizes <= errors, np.inf, errors / sizes / sample_time)  # NaN stays


def slowness(value: complex) -> tuple[float, float]:
    """Return the key that sorts eigenvalues, slowest first; what is as fast to nine digits, by the real part."""
    return float(f"{abs(value):.8e}"), value.real


def compute_shape(T: FloatArray, vector: NDArray[np.complex128]) -> tuple[NDArray[np.complex128], complex]:
    """Return an eigenvector seen in all states, and its largest entry (1 where nothing moves)."""
    shape = T @ vector
    largest = complex(shape[np.argmax(np.abs(shape))]) if shape.size else 0.0
    return shape, largest or 1.0


def compute_rate(value: complex, sample_time: float) -> complex:
    """Return an eigenvalue in 1/s: of a sampled motion ``log(z) / sample_time``, -inf for the dead beat 0."""
    return complex(convert_to_rates(value, sample_time))


def eigenvectors(A: FloatArray) -> tuple[Complex, Complex, Complex]:
    """Return eigenvalues, left and right eigenvectors as columns, all of length 1."""
    from scipy.linalg import eig

    result: Any = eig(A, left=True, right=True)
    return result[0].astype(np.complex128), result[1].astype(np.complex128), result[2].astype(np.complex128)


def find_overlapping_groups(values: Complex, radius: FloatArray) -> list[list[int]]:
    """Return the connected groups of eigenvalues with overlapping discs."""
    remaining, groups = set(range(len(values))), []
    while remaining:
        group, waiting = [], [remaining.pop()]
        while waiting:
            i = waiting.pop()
            group.append(i)
            near = [j for j in remaining if abs(values[i] - values[j]) <= radius[i] + radius[j]]
            remaining.difference_update(near)
            waiting += near
        groups.append(sorted(group))
    return groups


def on_subspace(A: FloatArray, inside: Complex, outside: Complex) -> tuple[Complex, Complex]:
    """Return A on the invariant subspace of some eigenvalues, and an orthonormal basis of it."""
    from scipy.linalg import schur

    def is_inside(value: complex) -> bool:
        return bool(np.abs(inside - value).min() < np.abs(outside - value).min(initial=np.inf))

    result: Any = schur(A.astype(np.complex128), output="complex", sort=is_inside)  # type: ignore[call-overload]
    (T, Q), count = result[:2], int(result[2])
    return T[:count, :count], Q[:, :count]


def lyapunov(A: Complex | FloatArray, Q: Complex | FloatArray, *, sampled: bool) -> Any:
    """Return X with A X + X A' + Q = 0; of a sampled motion with A X A' - X + Q = 0."""
    from scipy.linalg import solve_continuous_lyapunov, solve_discrete_lyapunov

    return solve_discrete_lyapunov(A, Q) if sampled else solve_continuous_lyapunov(A, -Q)


@dataclass(frozen=True)
class EigenvalueCluster:
    """Eigenvalues with overlapping errors: one, or one pair of complex ones, as a rule."""

    # in 1/s; the mean of the cluster, with positive imaginary part of a pair; that of a single real z < 0 of a sampled
    # model has the imaginary part pi / sample_time
    eigenvalue: complex
    count: int  # how many eigenvalues, or pairs of complex ones
    is_pair: bool
    error: float  # radius of a disc around ``eigenvalue`` in which all of them lie, and the true ones too

    @property
    def real(self) -> float:
        """The real part, 0 where that is within the error."""
        return float(remove_uncertain_growth(self.eigenvalue, self.error).real)


def remove_uncertain_growth(values: Any, errors: Any) -> Any:
    """Return eigenvalues in 1/s, of the shape of ``values``, with the real part 0 where that is within its error."""
    values = np.asarray(values, dtype=np.complex128)
    return np.where(np.abs(values.real) <= errors, 1j * values.imag, values)


def cluster_modes(modes: Sequence[Mode]) -> list[EigenvalueCluster]:
    """Return the eigenvalues of modes, those together that their errors do not keep apart, slowest first."""
    infinite = [
        EigenvalueCluster(m.eigenvalue, count=1, is_pair=False, error=m.error)
        for m in modes
        if not np.isfinite(m.eigenvalue)
    ]
    finite = [m for m in modes if np.isfinite(m.eigenvalue)]
    both_conjugates = [m.eigenvalue for m in finite] + [m.eigenvalue.conjugate() for m in finite if m.is_oscillatory]
    values = np.array(both_conjugates, dtype=np.complex128)
    errors = np.array([m.error for m in finite] + [m.error for m in finite if m.is_oscillatory])
    conjugates = {i: len(finite) + k for k, i in enumerate(i for i, m in enumerate(finite) if m.is_oscillatory)}
    clusters = []
    for group in group_eigenvalues(values, errors):
        if min(group) >= len(finite):  # the mirror image of a cluster of complex eigenvalues
            continue
        is_pair = not any(i not in conjugates or conjugates[i] in group for i in group if i < len(finite))
        mean = complex(values[group].mean())
        is_alternating = not is_pair and all(finite[i].is_alternating for i in group if i < len(finite))
        if not is_pair and not is_alternating:
            mean = complex(mean.real)
        spread = float(np.abs(values[group] - mean).max())
        error = max(spread, float(errors[group].max()))
        clusters.append(EigenvalueCluster(mean, len(group), is_pair, error))
    return sorted([*clusters, *infinite], key=lambda cluster: slowness(cluster.eigenvalue))
