"""Noise as a filter takes it: where it enters, and its factors; what is not positive is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray, Signals, as_numbers
from fmilin.model.interface import Model


def factor_of(matrix: FloatArray, shape: int, what: str) -> FloatArray:
    """Return F with F F' = matrix, symmetric and positive semidefinite, (n, n)."""
    M = as_numbers(matrix, what)
    if M.shape != (shape, shape):
        raise UsageError(f"{what} is of the shape {M.shape}; it needs {(shape, shape)}.")
    if not np.isfinite(M).all() or not np.allclose(M, M.T, rtol=1e-9, atol=0):
        raise UsageError(f"{what} is not symmetric, or holds what is no finite number.")
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    if (values < -1e-12 * max(float(np.abs(values).max(initial=0.0)), 1e-300)).any():
        raise UsageError(f"{what} is not positive: its least eigenvalue is {values[0]:.3g}.")
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def process_directions(
    model: Model, noise: Mapping[str, float] | FloatArray, augmented: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    """Return directions of the states' rates (N, k) and of inputs (nu, k), times roots of spectral densities."""
    N, nu = len(model.states), len(model.inputs)
    if not isinstance(noise, Mapping):
        U = factor_of(noise, nu, "The spectral density of the process noise")
        return np.zeros((N, nu)), U
    X, U = np.zeros((N, len(noise))), np.zeros((nu, len(noise)))
    for k, (name, value) in enumerate(noise.items()):
        if not (np.isfinite(as_numbers(value, f"The process noise of '{name}'")) and value >= 0):
            raise UsageError(f"The process noise of '{name}' is {value:g}: a spectral density is finite and 0 or more.")
        if name in augmented:
            X[model.states.index_of(name), k] = np.sqrt(value)
        else:
            U[model.inputs.index_of(name, "an input, or a parameter or bias that is estimated"), k] = np.sqrt(value)
    return X, U


def measurement_covariance(outputs: Signals, noise: Mapping[str, float] | FloatArray) -> FloatArray:
    """Return R, shape (m, m), positive definite."""
    m = len(outputs)
    if not isinstance(noise, Mapping):
        R = as_numbers(noise, "The measurement noise")
        F = factor_of(R, m, "The covariance of the measurement noise")
        if (np.linalg.norm(F, axis=0) == 0).any():
            raise UsageError("The covariance of the measurement noise is singular: every output needs some noise.")
        return R
    R = np.zeros((m, m))
    for name, value in noise.items():
        if not (np.isfinite(as_numbers(value, f"The variance of '{name}'")) and value > 0):
            raise UsageError(f"The variance of '{name}' is {value:g}: it must be finite and positive.")
        i = outputs.index_of(name, "a measured output")
        R[i, i] = value
    if missing := [n for n, v in zip(outputs.names, np.diag(R), strict=True) if v == 0]:
        raise UsageError(f"No variance is given for {', '.join(missing)}, which the filter is to read.")
    return R


def initial_factor(
    states: Signals, T: FloatArray, kept: Sequence[int], given: Mapping[str, float] | FloatArray
) -> FloatArray:
    """Return a factor S (P, P) of the covariance at the start.

    As a matrix it is that of the coordinates. Variances of states are guesses, each by itself, and the manifold
    joins them: (T' diag(1/variance) T)^-1.
    """
    P = T.shape[1]
    if not isinstance(given, Mapping):
        M = as_numbers(given, "The initial covariance")
        if M.ndim != 1 or len(M) != len(states):
            return factor_of(M, P, "The initial covariance")
        given = dict(zip(states.names, M.tolist(), strict=True))
    rows = []
    for name, value in given.items():
        if not (np.isfinite(as_numbers(value, f"The initial variance of '{name}'")) and value > 0):
            raise UsageError(f"The initial variance of '{name}' is {value:g}: it must be finite and positive.")
        rows.append(T[states.index_of(name, "a state of the model")] / np.sqrt(value))
    J = np.array(rows).reshape(len(rows), P)
    sizes = np.linalg.norm(J, axis=0)
    values = np.linalg.svd(J / np.where(sizes > 0, sizes, 1.0), compute_uv=False)
    if len(rows) < P or not (sizes > 0).all() or values[-1] < 1e-9 * values[0]:
        raise UsageError(
            "The initial variances leave a direction open: give one for each of "
            f"{', '.join(states.names[k] for k in kept)}, or for enough other states."
        )
    information = J.T @ J
    return np.asarray(np.linalg.cholesky(np.linalg.inv(information)))
