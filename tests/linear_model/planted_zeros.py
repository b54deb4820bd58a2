"""Random linear systems with zeros that are known: planted in the normal form, then hidden.

In the normal form (Isidori) outputs are chains of integrators that inputs drive, and what remains is the zero dynamics:

    z' = A_z z + G xi        xi_i1' = xi_i2, ..., xi_ir' = R z + Q xi + u_i        y_i = xi_i1  (u_i where r = 0)

State feedback (R, Q), output injection (G), regular transformations of states, inputs and outputs, and outputs that are
functions of xi, or inputs that act on the chains only, move no zero. A part of z that neither drives nor is driven is
not minimal: its eigenvalues are invariant zeros, and no transmission zeros.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from fmilin.signals import FloatArray

Complex = NDArray[np.complex128]


@dataclass(frozen=True)
class PlantedSystem:
    """A system and what is true of it."""

    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray
    transmission: Complex
    invariant: Complex
    orders: tuple[int, ...] | None  # of the infinite zeros; None where they are not those of the chains
    description: str

    @property
    def matrices(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """A, B, C and D."""
        return self.A, self.B, self.C, self.D


def plant_zeros(seed: int) -> PlantedSystem:
    """Return the random system of a seed: of every kind, square or not, minimal or not, D regular, singular or 0."""
    rng = np.random.default_rng(seed)
    channels = int(rng.integers(1, 4))
    kind = ("D = 0", "D singular", "D regular")[seed % 3]
    orders = {
        "D = 0": rng.integers(1, 4, channels),
        "D singular": np.concatenate(([0], rng.integers(1, 4, channels))),
        "D regular": np.zeros(channels, dtype=int),
    }[kind].tolist()
    count = len(orders)
    hidden = int(rng.integers(1, 3)) if seed % 4 == 1 else 0
    integrators = seed % 5 == 2
    sampled = seed % 7 == 3
    shape = ("square", "more outputs", "more inputs")[seed // 2 % 3]
    visible = [] if shape == "more outputs" and seed % 10 == 0 else _choose(rng, int(rng.integers(1, 5)), sampled)
    if integrators:
        visible = [0.0, *visible]
    concealed = _choose(rng, hidden, sampled)
    while len(visible) + len(concealed) and _gap([*visible, *concealed]) < 0.05:
        visible, concealed = [0.0] * integrators + _choose(rng, len(visible), sampled), _choose(rng, hidden, sampled)
    Az = block_diag(np.zeros((0, 0)), *map(_block, [*visible, *concealed]))
    nz = len(Az)
    n_visible = sum(len(_block(value)) for value in visible)
    n = nz + sum(orders)
    A, B = np.zeros((n, n)), np.zeros((n, count))
    C, D = np.zeros((count, n)), np.zeros((count, count))
    A[:nz, :nz] = Az
    chains = np.arange(nz, n)
    driven = np.arange(nz)[: n_visible if hidden else nz]
    k = nz
    for i, r in enumerate(orders):
        if r == 0:
            D[i, i] = 1.0
            C[i, driven] = rng.standard_normal(len(driven))
            C[i, chains] = rng.standard_normal(len(chains))
            B[driven, i] = rng.standard_normal(len(driven))
            A[driven] += np.outer(B[driven, i], C[i])  # output injection
            continue
        C[i, k] = 1.0
        A[np.arange(k, k + r - 1), np.arange(k + 1, k + r)] = 1.0
        B[k + r - 1, i] = 1.0
        A[k + r - 1, driven] = rng.standard_normal(len(driven))
        A[k + r - 1, chains] = rng.standard_normal(len(chains))
        A[driven, k] += rng.standard_normal(len(driven))
        k += r
    if shape == "more outputs" and len(chains):
        more = np.zeros((1, n))
        more[0, chains] = rng.standard_normal(len(chains))
        C, D = np.vstack((C, more)), np.vstack((D, np.zeros((1, count))))
        orders = None
    elif shape == "more inputs" and len(chains):
        more = np.zeros((n, 1))
        more[chains, 0] = rng.standard_normal(len(chains))
        B, D = np.hstack((B, more)), np.hstack((D, np.zeros((len(C), 1))))
        orders = None
    else:
        shape = "square"
    T = _well_conditioned(rng, n)
    U, V = _well_conditioned(rng, B.shape[1]), _well_conditioned(rng, len(C))
    A, B, C, D = T @ A @ np.linalg.inv(T), T @ B @ U, V @ C @ np.linalg.inv(T), V @ D @ U
    unit = 1.0
    if seed % 3 == 1 and not sampled:  # other units of states, inputs, outputs and time
        states, inputs, outputs = (10.0 ** rng.uniform(-5, 5, size) for size in (n, B.shape[1], len(C)))
        unit = 10.0 ** rng.uniform(-4, 4)
        A, B = unit * states[:, None] * A / states, unit * states[:, None] * B * inputs
        C, D = outputs[:, None] * C / states, outputs[:, None] * D * inputs
    description = f"{kind}, {shape}, {hidden} hidden, {'integrators, ' * integrators}{'sampled' * sampled}"
    return PlantedSystem(
        A, B, C, D,
        transmission=unit * _both(visible),
        invariant=unit * _both([*visible, *concealed]),
        orders=None if orders is None else tuple(sorted(orders)),
        description=description,
    )  # fmt: skip


def _choose(rng: np.random.Generator, count: int, sampled: bool) -> list[complex]:
    values: list[complex] = []
    for _ in range(count):
        size = rng.uniform(0.1, 2.0) if sampled else 10.0 ** rng.uniform(-1.0, 1.5)
        angle = rng.choice([0.0, np.pi, rng.uniform(0.3, 2.8)])
        values.append(complex(size * np.cos(angle), size * np.sin(angle) if 0 < angle < np.pi else 0.0))
    return values


def _gap(values: list[complex]) -> float:
    """Return the smallest distance of two zeros relative to their size."""
    every = _both(values)
    distances = np.abs(every[:, None] - every) / np.maximum(np.maximum(np.abs(every)[:, None], np.abs(every)), 1e-3)
    np.fill_diagonal(distances, np.inf)
    return float(distances.min())


def _block(value: complex) -> FloatArray:
    value = complex(value)
    if value.imag == 0:
        return np.array([[value.real]])
    return np.array([[value.real, value.imag], [-value.imag, value.real]])


def _both(values: list[complex]) -> Complex:
    every = [complex(v) for v in values]
    return np.array([*every, *(v.conjugate() for v in every if v.imag)], dtype=np.complex128)


def _well_conditioned(rng: np.random.Generator, n: int) -> FloatArray:
    """Return a random matrix with singular values between 1/3 and 3."""
    if not n:
        return np.zeros((0, 0))
    U, V = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
    return np.asarray(U * 3.0 ** rng.uniform(-1, 1, n) @ V)
