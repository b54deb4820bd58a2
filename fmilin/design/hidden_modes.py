"""Modes on or outside the stability limit that outputs do not observe, or inputs do not move, beyond rounding.

The test of Popov, Belevitch and Hautus: the mode z of (A, C) is not observable when [A - z I; C] v = 0 for some v. In
floating point the residual is never zero. It counts as zero when changes within the errors of the entries make it zero
(Oettli and Prager, Numerische Mathematik 6, 1964): |[A - z I; C] v| <= [E_A; E_C] |v|, entry by entry. That comparison
does not depend on the units of states and outputs; the scaling serves to find v.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eig, expm

from fmilin.linear_model.model import LinearModel
from fmilin.numerics.decompositions import compute_balancing_scales
from fmilin.signals import FloatArray, Signals
from fmilin.tolerances import EPS, HIDDEN_MODE_ERROR_FACTOR

ENTRY_ROUNDING_ERROR = 10 * EPS  # error of an entry, relative to the largest of its row in balanced coordinates
MIN_DIFFERENCE_ERROR = 1e-13  # relative errors above this are those of differences, which balancing must not reduce
NEAR_LIMIT = 100.0  # times its estimated error, how far inside the limit an eigenvalue may be computed
CLUSTER_DISTANCES = (1e-9, 1e-7, 1e-5, 1e-3, 1e-2)  # distances within which eigenvalues may be one multiple eigenvalue
REFINEMENTS = 3
UNCERTAINTY_FACTOR = 10.0  # times the estimated error of an eigenvalue within which it may be on the limit
MAX_NAMED_STATES = 4  # states of a direction that are named
ComplexArray = NDArray[np.complex128]


@dataclass(frozen=True, slots=True)
class UncertainPair:
    """A pair of matrices with the absolute errors of their entries; ``sampled`` decides where the limit is."""

    A: FloatArray  # (P, P)
    C: FloatArray  # (m, P)
    A_error: FloatArray
    C_error: FloatArray
    sampled: bool

    def transpose(self, B: FloatArray, B_error: FloatArray) -> UncertainPair:
        """Return the pair (A', B'): its unobservable modes are those that B (P, k) does not move."""
        return UncertainPair(self.A.T, B.T, self.A_error.T, B_error.T, self.sampled)


@dataclass(frozen=True, slots=True)
class HiddenMode:
    """A mode that is hidden within the errors of the entries."""

    value: complex  # z or s
    direction: ComplexArray  # (P,), of the states; of the transposed system for modes that are not moved
    margin: float  # how far inside the limit: 1 - |z|, or -Re s
    uncertainty: float  # of the margin

    @property
    def may_stay(self) -> bool:
        """Whether the mode is on or outside the limit, within the errors."""
        return self.margin <= self.uncertainty

    @property
    def may_be_on_limit(self) -> bool:
        """Whether the mode neither decays nor grows, within the errors."""
        return abs(self.margin) <= self.uncertainty

    def describe(self, states: Signals, scales: FloatArray, sample_time: float = 0.0) -> str:
        """Return the mode in words: its eigenvalue, and the states that it is made of, in parts of their sizes."""
        letter = "z" if sample_time else "s"
        value = self.value
        eigenvalue_text = (
            f"{value.real:.4g}"
            if abs(value.imag) <= 1e-9 * abs(value)
            else f"{value.real:.4g} +- {abs(value.imag):.4g}i"
        )
        parts = np.abs(self.direction) / scales
        parts = parts / max(float(parts.max(initial=0.0)), 1e-300)
        largest = [i for i in np.argsort(-parts)[:MAX_NAMED_STATES] if parts[i] > 1e-3]
        names = ", ".join(f"{states.names[i]} ({parts[i]:.2g})" for i in largest)
        return f"{letter} = {eigenvalue_text}, which moves {names}"


def find_hidden_modes(system: UncertainPair) -> list[HiddenMode]:
    """Return the modes near or outside the limit that ``system.C`` does not observe, those that decay least first."""
    if not len(system.A):
        return []
    scales = compute_equilibrating_scales(system.A)
    A, A_error = (M * scales / scales[:, None] for M in (system.A, system.A_error))
    C, C_error = system.C * scales, system.C_error * scales
    balanced = UncertainPair(A, C, A_error, C_error, system.sampled)
    hidden_modes: list[HiddenMode] = []
    for candidate in _candidates(balanced):
        mode = _judge(balanced, candidate)
        if mode is None:
            continue
        alike = 1e-6 * max(abs(mode.value), 1.0 if system.sampled else 0.0)
        if all(
            abs(mode.value - other.value) > alike and abs(mode.value.conjugate() - other.value) > alike
            for other in hidden_modes
        ):
            hidden_modes.append(HiddenMode(mode.value, mode.direction * scales, mode.margin, mode.uncertainty))
    return sorted(hidden_modes, key=lambda mode: mode.margin)


def compute_equilibrating_scales(A: FloatArray) -> FloatArray:
    """Return powers of 2 that make rows and columns of D^-1 A D alike in size, shape (P,)."""
    if not np.any(A - np.diag(np.diag(A))):
        return np.ones(len(A))
    return compute_balancing_scales(A)


def _candidates(system: UncertainPair) -> Iterator[complex]:
    """Yield the values at which a mode near or outside the limit may be, with the means of groups of eigenvalues.

    The eigenvalues of a Jordan block of order k are spread by rounding over a circle of radius eps^(1/k), around a mean
    that is as exact as the matrix.
    """
    values, left_vectors, right_vectors = _eigenvectors(system.A)
    size = max(float(np.linalg.norm(system.A, 2)), 1e-300)
    unit = 1.0 if system.sampled else size
    along = np.abs(np.einsum("ij,ij->j", left_vectors.conj(), right_vectors))
    error = (np.abs(left_vectors).T @ system.A_error @ np.abs(right_vectors)).diagonal() + EPS * size
    inside = 1 - np.abs(values) if system.sampled else -values.real
    near = values[inside < NEAR_LIMIT * error / np.maximum(along, 1e-300)]
    near = near[near.imag >= -CLUSTER_DISTANCES[-1] * unit]
    means: list[complex] = []
    for radius in CLUSTER_DISTANCES:
        for value in near:
            group = values[np.abs(values - value) <= radius * unit]
            mean = complex(group.mean())
            means.append(complex(mean.real, 0.0) if abs(mean.imag) <= radius * unit else mean)
    yielded: list[complex] = []
    for value in (*near, *means):
        if not any(abs(value - other) <= EPS * unit for other in yielded):
            yielded.append(complex(value))
            yield complex(value)


def _eigenvectors(A: FloatArray) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
    """Return the eigenvalues with left and right eigenvectors of length 1."""
    values, left_vectors, right_vectors = eig(A, left=True, right=True)  # type: ignore[misc] # scipy's stubs know one form
    return values, left_vectors, right_vectors


def _judge(system: UncertainPair, value: complex) -> HiddenMode | None:
    """Return the mode near a value if changes within the errors hide it from the outputs; None if not."""
    P = len(system.A)
    stacked_error = np.vstack((system.A_error, system.C_error))
    weights = 1 / np.maximum(np.linalg.norm(np.vstack((system.A, system.C)), axis=1), 1e-300)
    weights[:P] = 1 / max(float(np.linalg.norm(system.A, 2)), 1e-300)
    real = value.imag == 0
    for _ in range(REFINEMENTS):
        pencil = np.vstack((system.A - value * np.eye(P), system.C))
        v = np.linalg.svd((pencil.real if real else pencil) * weights[:, None])[2][-1].conj()
        residual = np.abs(pencil @ v)
        allowed = stacked_error @ np.abs(v)
        allowed[:P] += 2 * EPS * abs(value) * np.abs(v)
        if (residual <= HIDDEN_MODE_ERROR_FACTOR * allowed).all():
            return _mode(system, value, v)
        value = complex(v.conj() @ system.A @ v) if not real else complex(float(v @ system.A @ v), 0.0)
        weights = 1 / np.maximum(allowed, 1e-3 * allowed.max() + 1e-300)
    return None


def _mode(system: UncertainPair, value: complex, v: ComplexArray) -> HiddenMode:
    """Return a hidden mode with the error of its distance from the limit."""
    w = np.linalg.svd(system.A - value * np.eye(len(v)))[0][:, -1]
    moved = float(np.abs(w) @ (system.A_error @ np.abs(v))) + EPS * abs(value)
    along = abs(complex(w.conj() @ v))
    change = min(moved / max(along, 1e-300), float(np.sqrt(moved)))
    margin = 1 - abs(value) if system.sampled else -value.real
    return HiddenMode(value, np.asarray(v, dtype=np.complex128), margin, UNCERTAINTY_FACTOR * change)


def right_direction(A: FloatArray, mode: HiddenMode) -> HiddenMode:
    """Return a mode of the transposed system with the direction of the states in which A moves it."""
    scales = compute_equilibrating_scales(A)
    pencil = A * scales / scales[:, None] - mode.value * np.eye(len(A))
    right = np.linalg.svd(pencil)[2][-1].conj()
    return replace(mode, direction=right * scales)


def entry_errors(M: FloatArray, stated: FloatArray, row_sizes: FloatArray, column_sizes: FloatArray) -> FloatArray:
    """Return the errors of entries, from those that a model states, for the sizes of rows and columns.

    A model states the errors of exact derivatives relative to the largest entry of a row in nominal sizes, which may be
    far from those of the motion: in balanced coordinates rounding is often less.
    """
    sizes = np.abs(M) * column_sizes / row_sizes[:, None]
    largest = sizes.max(axis=1, initial=0.0)[:, None] * row_sizes[:, None] / column_sizes
    is_rounding = stated <= MIN_DIFFERENCE_ERROR * np.maximum(np.abs(M).max(axis=1, initial=0.0)[:, None], np.abs(M))
    rounded = np.minimum(stated, ENTRY_ROUNDING_ERROR * largest)
    return np.asarray(np.where(is_rounding, rounded, stated) + 4 * EPS * np.abs(M))


def compute_continuous_errors(linear: LinearModel) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the errors of the entries of A, B and C of a linear model."""
    scales, E = compute_equilibrating_scales(linear.A), linear.errors
    B_sizes = np.maximum(np.abs(linear.B / scales[:, None]).max(axis=0, initial=0.0), 1e-300)
    return (
        entry_errors(linear.A, E.A, scales, scales),
        entry_errors(linear.B, E.B, scales, 1 / B_sizes),
        entry_errors(linear.C, E.C, np.ones(len(linear.C)), scales),
    )


def compute_sampled_errors(linear: LinearModel, sample_time: float) -> tuple[FloatArray, FloatArray]:
    """Return the errors of the entries of Phi = exp(A h) and Gamma = int exp(A s) B ds, inputs held."""
    A_error, B_error, _ = compute_continuous_errors(linear)
    return exponential_errors((linear.A, linear.B), (A_error, B_error), sample_time)


def exponential_errors(
    matrices: tuple[FloatArray, FloatArray], errors: tuple[FloatArray, FloatArray], sample_time: float
) -> tuple[FloatArray, FloatArray]:
    """Return the errors of the entries of exp(A h) and int exp(A s) B ds for A, B and the errors of their entries.

    They are those of the sum of the moduli of the terms, through as many squarings as the exponential takes.
    """
    A, B = matrices
    P, nu = B.shape
    M, E = (np.zeros((P + nu, P + nu)) for _ in range(2))
    M[:P, :P], M[:P, P:] = A, B
    E[:P, :P], E[:P, P:] = errors
    scales = compute_equilibrating_scales(A)
    size = float(np.linalg.norm(A * scales / scales[:, None], 1)) * sample_time
    squarings = max(0, int(np.ceil(np.log2(max(size, 1.0)))))
    h = sample_time / 2**squarings
    terms = expm(np.abs(M) * h)
    error = 4 * EPS * terms + terms @ (E * h) @ terms
    power = expm(M * h)
    for _ in range(squarings):
        absolute = np.abs(power)
        error = absolute @ error + error @ absolute + EPS * absolute @ absolute
        power = power @ power
    return error[:P, :P], error[:P, P:]
