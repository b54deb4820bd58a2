"""What the eigenvalues say: frequencies, damping, and how the whole mechanism moves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.signals import FloatArray
from fmilin.ground.verbs import Shown


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
