"""What the eigenvalues say: frequencies, damping, and how the whole mechanism moves."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.ground import FloatArray, Shown


@dataclass(frozen=True, eq=False)
class Mode:
    """One real eigenvalue, or one pair of complex ones."""

    # in 1/s, the one of a pair with positive imaginary part. Of a sampled model: ``log(z) / sample_time``
    eigenvalue: complex
    # (N,), how all N states move, dependent ones included: ``x - x0 = Re(shape exp(eigenvalue t))`` to first order. Its
    # largest entry is 1
    shape: NDArray[np.complex128]

    @property
    def is_oscillatory(self) -> bool:
        """Whether this is a pair of complex eigenvalues."""
        return self.eigenvalue.imag > 0

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


class Modes(Shown, tuple[Mode, ...]):
    """The modes of a linear model, slowest first."""

    __slots__ = ()


def modes_of(A: FloatArray, T: FloatArray, sample_time: float = 0.0) -> Modes:
    """Return the modes of dy/dt = A (y - y0), or of samples, seen in x - x0 = T (y - y0), T (N, P), slowest first."""
    if not len(A):
        return Modes()
    values, vectors = np.linalg.eig(A)
    modes = []
    for value, vector in zip(values.astype(np.complex128), vectors.T.astype(np.complex128), strict=True):
        if value.imag < 0:
            continue
        shape, largest = shape_of(T, vector)
        modes.append(Mode(rate_of(complex(value), sample_time), shape / largest))
    return Modes(sorted(modes, key=lambda m: slowness(m.eigenvalue)))


def slowness(value: complex) -> tuple[float, float]:
    """Return the key that sorts eigenvalues, slowest first; what is as fast to nine digits, by the real part."""
    return float(f"{abs(value):.8e}"), value.real


def shape_of(T: FloatArray, vector: NDArray[np.complex128]) -> tuple[NDArray[np.complex128], complex]:
    """Return an eigenvector seen in all states, and its largest entry (1 where nothing moves)."""
    shape = T @ vector
    largest = complex(shape[np.argmax(np.abs(shape))]) if shape.size else 0.0
    return shape, largest or 1.0


def rate_of(value: complex, sample_time: float) -> complex:
    """Return an eigenvalue in 1/s: of a sampled motion ``log(z) / sample_time``, -inf for the dead beat 0."""
    if sample_time <= 0:
        return value
    growth = float(np.log(abs(value))) if value != 0 else -np.inf
    return complex(growth / sample_time, float(np.angle(value)) / sample_time)


Complex = NDArray[np.complex128]


def eigenvectors(A: FloatArray) -> tuple[Complex, Complex, Complex]:
    """Return eigenvalues, left and right eigenvectors as columns, all of length 1."""
    from scipy.linalg import eig

    result: Any = eig(A, left=True, right=True)
    return result[0].astype(np.complex128), result[1].astype(np.complex128), result[2].astype(np.complex128)


def groups_of(values: Complex, radius: FloatArray) -> list[list[int]]:
    """Return the connected groups of eigenvalues whose discs overlap."""
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

    def chosen(value: complex) -> bool:
        return bool(np.abs(inside - value).min() < np.abs(outside - value).min(initial=np.inf))

    result: Any = schur(A.astype(np.complex128), output="complex", sort=chosen)  # type: ignore[call-overload]
    (T, Q), count = result[:2], int(result[2])
    return T[:count, :count], Q[:, :count]


def lyapunov(A: Complex | FloatArray, Q: Complex | FloatArray, *, sampled: bool) -> Any:
    """Return X with A X + X A' + Q = 0; of a sampled motion with A X A' - X + Q = 0."""
    from scipy.linalg import solve_continuous_lyapunov, solve_discrete_lyapunov

    return solve_discrete_lyapunov(A, Q) if sampled else solve_continuous_lyapunov(A, -Q)
