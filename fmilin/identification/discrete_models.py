"""A discrete linear model over one step, and the continuous one behind it, if there is one.

x[k+1] = A x[k] + B u[k] + d, y[k] = C x[k] + D u[k], inputs held during a step of h seconds. The continuous model is
log([A B d; 0 1 0; 0 0 1])/h = [Ac Bc f0; 0 0 0; 0 0 0], with |Im| < pi for every eigenvalue of the logarithm: no motion
may be faster than half the sampling frequency, and an eigenvalue 0 (a delay, a dead-beat part) has none.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from fmilin.errors import NumericalError
from fmilin.signals import FloatArray
from fmilin.tolerances import (
    LOGARITHM_TOLERANCE,
    MAX_NYQUIST_FRACTION,
    RANK_MEASURED,
    RELATION_TOLERANCE,
    VANISHED_EIGENVALUE_SIZE,
)

MAX_ROWS = 24  # outputs and states that are compared with each other


@dataclass(frozen=True)
class Sampled:
    """A discrete linear model in deviations from a point."""

    A: FloatArray  # shape (n, n)
    B: FloatArray  # shape (n, nu)
    C: FloatArray  # shape (ny, n)
    D: FloatArray  # shape (ny, nu)
    step: float  # h, in seconds
    reading: str  # what y[k] is: read at t_k after u[k] was set, or read at the end of step k with u[k] still standing
    T: FloatArray  # (N, n), declared states: ``X[k] = T x[k]`` at t_k; empty where none are declared
    drift: FloatArray  # (n,), d: how the point itself moves during a step

    @property
    def order(self) -> int:
        """Number of states."""
        return len(self.A)

    def response(self, inputs: FloatArray) -> FloatArray:
        """Return y for deviations of the inputs (K, nu), from rest, without drift; shape (K, ny)."""
        x = np.zeros(self.order)
        y = np.empty((len(inputs), len(self.C)))
        for k, u in enumerate(inputs):
            y[k] = self.C @ x + self.D @ u
            x = self.A @ x + self.B @ u
        return y

    def in_coordinates(self, S: FloatArray) -> Sampled:
        """Return the same model with the states S x; S is (n, n) and regular."""
        inverse = np.linalg.inv(S)
        A, B, C, T = S @ self.A @ inverse, S @ self.B, self.C @ inverse, self.T @ inverse
        return replace(self, A=A, B=B, C=C, T=T, drift=S @ self.drift)


@dataclass(frozen=True)
class Continuous:
    """A continuous linear model: x' = f0 + A x + B u, y = C x + D u."""

    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray
    f0: FloatArray
    T: FloatArray
    nyquist: float  # the largest angle of an eigenvalue of the discrete model, in parts of pi

    def in_coordinates(self, S: FloatArray) -> Continuous:
        """Return the same model with the states S x; S is (n, n) and regular."""
        inverse = np.linalg.inv(S)
        A, B, C, T = S @ self.A @ inverse, S @ self.B, self.C @ inverse, self.T @ inverse
        return replace(self, A=A, B=B, C=C, T=T, f0=S @ self.f0)

    def evaluate_transfer(self, s: complex) -> NDArray[np.complex128]:
        """Return the transfer function at s; infinite at an eigenvalue."""
        try:
            states = np.linalg.solve(s * np.eye(len(self.A)) - self.A, self.B.astype(np.complex128))
        except np.linalg.LinAlgError:
            return np.full(self.D.shape, np.inf, dtype=np.complex128)
        return np.asarray(self.C @ states + self.D, dtype=np.complex128)


_ENDLESS = "The model overflows within a few steps, so there is no linear model. Use a smaller step=."

Model = TypeVar("Model", Sampled, Continuous)


def compute_entry_differences(one: Model, other: Model) -> Model:
    """Return how far the matrices of two models are from each other, entry by entry, as such a model."""
    return replace(one, **{name: np.abs(getattr(one, name) - getattr(other, name)) for name in "ABCDT"})


def find_continuous_model(model: Sampled) -> Continuous:
    """Return the continuous model with inputs held over each step."""
    n, k = model.order, model.B.shape[1]
    if not np.isfinite(model.A).all():
        raise NumericalError(_ENDLESS)
    values = np.linalg.eigvals(model.A) if model.order else np.empty(0)
    gone = np.abs(values) < VANISHED_EIGENVALUE_SIZE
    if gone.any():
        raise NumericalError(
            f"{int(gone.sum())} of the {model.order} eigenvalues over one step of {model.step:g} s are zero: a delay, "
            "a part that settles within one step, or a motion much faster than the step. Such a model has no "
            "continuous form. Use a smaller step=, or the discrete model with lifted=True."
        )
    angle = float(np.max(np.abs(np.angle(values)), initial=0.0) / np.pi)
    if angle > MAX_NYQUIST_FRACTION:
        raise NumericalError(
            f"An eigenvalue over one step of {model.step:g} s lies at {angle:.3g} of half the sampling frequency: its "
            "true frequency cannot be distinguished from an alias. Use a smaller step=, or the discrete model with "
            "lifted=True."
        )
    M = np.eye(n + k + 1)
    M[:n, :n], M[:n, n : n + k], M[:n, -1] = model.A, model.B, model.drift
    L = take_logarithm(M) / model.step
    C, D = model.C, model.D
    if model.reading == "end of step":  # y[k] = Cc x[k+1] + Dc u[k]
        C = np.asarray(np.linalg.solve(model.A.T, model.C.T).T, dtype=np.float64) if n else model.C
        D = model.D - C @ model.B
    return Continuous(L[:n, :n], L[:n, n : n + k], C, D, L[:n, -1], model.T, angle)


def sample_model(model: Continuous, step: float, reading: str) -> Sampled:
    """Return the discrete model over another step: the exact one for inputs that are held."""
    n, k = model.B.shape
    M = np.zeros((n + k + 1, n + k + 1))
    M[:n, :n], M[:n, n : n + k], M[:n, -1] = model.A, model.B, model.f0
    if not np.isfinite(M).all():
        raise NumericalError(_ENDLESS)
    with np.errstate(all="ignore"):  # what grows beyond all numbers predicts nothing, and is compared with nothing
        E = linalg.expm(M * step)
    A, B = E[:n, :n], E[:n, n : n + k]
    C, D = model.C, model.D
    if reading == "end of step":
        C, D = model.C @ A, model.C @ B + model.D
    return Sampled(A, B, C, D, step, reading, model.T, E[:n, -1])


def take_logarithm(M: FloatArray) -> FloatArray:
    """Return the real logarithm, confirmed by its exponential."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scipy's own doubts: the exponential below is the test
        try:
            L = np.asarray(linalg.logm(M))
        except (ValueError, linalg.LinAlgError):  # it overflows on the way
            raise NumericalError(_ENDLESS) from None
    size = float(np.max(np.abs(M)))
    back = linalg.expm(L)
    worst = float(np.max(np.abs(back - M))) if np.isfinite(back).all() else np.inf
    imaginary = float(np.max(np.abs(L.imag)))
    if not (
        worst <= LOGARITHM_TOLERANCE * size
        and imaginary <= LOGARITHM_TOLERANCE * max(float(np.max(np.abs(L.real))), 1.0)
    ):
        raise NumericalError(
            "The discrete model has no real logarithm that can be trusted, so there is no continuous model. Use a "
            "smaller step=, or the discrete model with lifted=True."
        )
    return np.ascontiguousarray(L.real, dtype=np.float64)


# Outputs and declared states of a discrete model


@dataclass(frozen=True)
class OutputRows:
    """The rows C x + D u of outputs and declared states of a discrete model."""

    C: FloatArray  # (r, n)
    D: FloatArray  # (r, nu)
    square: FloatArray | None  # n independent rows of C in which A may have zeros


def find_observed_rows(model: Sampled) -> OutputRows:
    """Return the distinct rows of a discrete model, declared states before outputs, read at the start of steps."""
    n, k = model.B.shape
    C = np.vstack((model.T.reshape(-1, n), model.C))
    D = np.vstack((np.zeros((len(model.T), k)), model.D))
    if model.reading == "end of step" and n:  # y[k] = C x[k+1] + D u[k]
        C_start = np.linalg.solve(model.A.T, model.C.T).T
        C = np.vstack((model.T.reshape(-1, n), C_start))
        D = np.vstack((D[: len(model.T)], model.D - C_start @ model.B))
    sizes = np.linalg.norm(C, axis=1)
    visible = np.flatnonzero(sizes > RANK_MEASURED * np.max(sizes, initial=0.0))
    distinct: list[int] = []
    for i in visible.tolist():
        if all(compute_sine(np.append(C[i], D[i]), np.append(C[j], D[j])) > RANK_MEASURED for j in distinct):
            distinct.append(i)
    C, D = C[distinct[:MAX_ROWS]], D[distinct[:MAX_ROWS]]
    small = np.abs(D) <= RELATION_TOLERANCE * np.max(np.abs(D), axis=1, initial=0.0)[:, None]
    return OutputRows(C, np.where(small, 0.0, D), choose_independent(C, n))


def compute_sine(one: FloatArray, other: FloatArray) -> float:
    """Return the sine of the angle between two vectors."""
    a, b = (vector / np.linalg.norm(vector) for vector in (one, other))
    return float(np.linalg.norm(a - (a @ b) * b))


def choose_independent(rows: FloatArray, count: int) -> FloatArray | None:
    """Return the first rows that are well independent, as many as ``count``; None where there are fewer."""
    directions: list[FloatArray] = []
    chosen: list[FloatArray] = []
    for row in rows:
        trial = np.array([*directions, row / np.linalg.norm(row)])
        if np.linalg.svd(trial, compute_uv=False)[-1] > RANK_MEASURED:
            directions.append(trial[-1])
            chosen.append(row)
        if len(chosen) == count:
            return np.array(chosen)
    return None
