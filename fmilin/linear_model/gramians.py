"""Gramians: how far unit energy moves a mode, how much of it an output shows, and Hankel singular values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.signals import FloatArray
from fmilin.linear_model.modes import shape_of

if TYPE_CHECKING:
    from fmilin.linear_model.model import LinearModel

__all__ = ["eigenvectors", "energies", "hankel_values", "sorted_schur"]

Complex = NDArray[np.complex128]


def energies(linear: LinearModel, single: Sequence[tuple[complex, bool]]) -> tuple[FloatArray, FloatArray]:
    """Return the amplitudes that unit energy of inputs reaches, (modes, nu), and what outputs show, (modes, ny).

    With x - x0 = Re(shape z) and z' = lambda z + beta u, Gramians of Re z and Im z are 2 x 2 (1 x 1 of a real mode).

    ``single``: eigenvalues of A, and whether each is single; NaN for the others, infinite where a mode does not decay.
    """
    values, left, right = eigenvectors(linear.A)
    nu, ny = len(linear.inputs), len(linear.outputs)
    reached, shown = np.full((len(single), nu), np.nan), np.full((len(single), ny), np.nan)
    for row, (value, alone) in enumerate(single):
        if not alone:
            continue
        k = int(np.argmin(np.abs(values - value)))
        v = right[:, k] / shape_of(linear.T, right[:, k])[1]
        beta = left[:, k].conj() @ linear.B / (left[:, k].conj() @ v)
        pair = abs(value.imag) > 0
        for j in range(nu):
            reached[row, j] = _moved(value, beta[j], linear.sample_time, pair=pair)
        for i in range(ny):
            shown[row, i] = _seen(value, linear.C[i] @ v, linear.sample_time, pair=pair)
    return reached, shown


def eigenvectors(A: FloatArray) -> tuple[Complex, Complex, Complex]:
    """Return eigenvalues, left and right eigenvectors as columns, all of length 1."""
    from scipy.linalg import eig

    found: Any = eig(A, left=True, right=True)
    return found[0].astype(np.complex128), found[1].astype(np.complex128), found[2].astype(np.complex128)


def sorted_schur(A: FloatArray, first: Callable[[complex], bool]) -> tuple[Complex, Complex, int]:
    """Return T and Q of A = Q T Q' with the eigenvalues first that are chosen, and how many they are."""
    from scipy.linalg import schur

    found: Any = schur(A.astype(np.complex128), output="complex", sort=first)  # type: ignore[call-overload]
    return found[0], found[1], int(found[2])


def _block(value: complex, *, pair: bool) -> FloatArray:
    a, b = value.real, value.imag
    return np.array([[a, -b], [b, a]]) if pair else np.array([[a]])


def _moved(value: complex, beta: complex, sample_time: float, *, pair: bool) -> float:
    """Return the largest amplitude |z| that unit energy reaches; of a pair x is 2 Re(v z), so z counts twice."""
    b = 2 * np.array([[beta.real], [beta.imag]]) if pair else np.array([[complex(beta).real]])
    if not b.any():
        return 0.0
    gramian = _gramian(_block(value, pair=pair), b, sample_time)
    return float("inf") if gramian is None else float(np.sqrt(max(np.linalg.eigvalsh(gramian)[-1], 0.0)))


def _seen(value: complex, gamma: complex, sample_time: float, *, pair: bool) -> float:
    """Return the root of the largest energy of Re(gamma z) after |z| = 1."""
    c = np.array([[gamma.real, -gamma.imag]]) if pair else np.array([[complex(gamma).real]])
    if not c.any():
        return 0.0
    gramian = _gramian(_block(value, pair=pair).T, c.T, sample_time)
    return float("inf") if gramian is None else float(np.sqrt(max(np.linalg.eigvalsh(gramian)[-1], 0.0)))


def _gramian(A: FloatArray, B: FloatArray, sample_time: float) -> FloatArray | None:
    """Return the Gramian of (A, B); None where A does not decay. Sums over samples count with the sample time."""
    from scipy.linalg import solve_continuous_lyapunov, solve_discrete_lyapunov

    values = np.linalg.eigvals(A)
    scale = float(np.abs(values).max(initial=0.0))
    if sample_time > 0:
        return None if scale >= 1 - 1e-12 else np.asarray(solve_discrete_lyapunov(A, B @ B.T / sample_time))
    return None if values.real.max() >= -1e-12 * scale else np.asarray(solve_continuous_lyapunov(A, -B @ B.T))


def hankel_values(linear: LinearModel) -> FloatArray:
    """Return the Hankel singular values of the part of a linear model that decays, largest first.

    Of inputs and outputs in their sizes (nominal values), so that they are numbers without units that compare.
    """
    from scipy.linalg import solve_sylvester

    decays = (lambda z: abs(z) < 1 - 1e-9) if linear.sample_time > 0 else (lambda s: s.real < -1e-9 * abs(s))
    if not len(linear.A) or not len(linear.inputs) or not len(linear.outputs):
        return np.zeros(0)
    u0 = np.array([linear.point.inputs.get(n, 0.0) for n in linear.inputs.names])
    out0 = np.array([linear.point.outputs.get(n, 0.0) for n in linear.outputs.names])
    inward, outward = linear.B * linear.inputs.scales(u0), linear.C / linear.outputs.scales(out0)[:, None]
    T, Q, count = sorted_schur(linear.A, decays)
    if not count:
        return np.zeros(0)
    X = solve_sylvester(T[:count, :count], -T[count:, count:], -T[:count, count:]) if count < len(T) else None
    B, C = Q.conj().T @ inward, outward @ Q
    stable = B[:count] if X is None else B[:count] - X @ B[count:]
    Wc, Wo = (
        _full(T[:count, :count], stable, linear),
        _full(T[:count, :count].conj().T, C[:, :count].conj().T, linear),
    )
    found: FloatArray = np.sqrt(np.maximum(np.sort(np.linalg.eigvals(Wc @ Wo).real)[::-1], 0.0))
    return found


def _full(A: Complex, B: Complex, linear: LinearModel) -> Complex:
    from scipy.linalg import solve_continuous_lyapunov, solve_discrete_lyapunov

    Q = B @ B.conj().T
    return np.asarray(solve_discrete_lyapunov(A, Q) if linear.sample_time > 0 else solve_continuous_lyapunov(A, -Q))
