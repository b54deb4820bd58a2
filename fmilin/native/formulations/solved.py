"""What each formulation hands on: its spectrum without a model around it, and A, B, T in independent coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fmilin.ground.errors import NumericalError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import NO_INERTIA, SYMMETRIC
from fmilin.native.formulations.bases import Basis
from fmilin.native.formulations.form import ConstrainedForm
from fmilin.native.formulations.motion_terms import Carried
from fmilin.native.formulations.spectrum import ComplexArray, Spectrum

__all__ = ["Reduced", "Solved", "seen_vectors", "selector", "tangent_mass", "violations", "without_inertia"]


@dataclass(frozen=True, eq=False)
class Reduced:
    """y' = A y + B u with (dq, dv) = T y, y = (S dq, S dv) = (z, z')."""

    A: FloatArray  # shape (2p, 2p)
    B: FloatArray  # shape (2p, nu)
    T: FloatArray  # shape (2n, 2p)
    basis: Basis
    error: float  # estimated relative error of A
    moving: Carried  # how the tangent space turns; trivial at an equilibrium


@dataclass(frozen=True, eq=False)
class Solved:
    """A spectrum and, where it exists, its state-space."""

    spectrum: Spectrum
    reduced: Reduced | None


def selector(basis: Basis) -> FloatArray:
    """Return diag(S, S), shape (2p, 2n)."""
    p, n = basis.S.shape
    both = np.zeros((2 * p, 2 * n))
    both[:p, :n] = both[p:, n:] = basis.S
    return both


def without_inertia(inertia: float, largest: float, movers: str = "") -> NumericalError:
    """Return what is said of a mass matrix that is not positive definite on the free velocities."""
    return NumericalError(
        "The mass matrix is not positive definite on the velocities that the constraints leave free: "
        f"{f'the motion of {movers}' if movers else 'some motion'} has the inertia {inertia:.3g} (the largest is "
        f"{largest:.3g}). Give it a mass, or a constraint that ties it to one.",
        variable=movers.split(",", maxsplit=1)[0],
    )


def tangent_mass(form: ConstrainedForm, basis: Basis) -> FloatArray:
    """Return Mr = R' M R, shape (p, p), after making sure that it is a mass matrix."""
    M = form.M
    if not np.isfinite(M).all():
        raise NumericalError("The mass matrix holds values that are no numbers: choose another point.")
    uneven = np.abs(M - M.T)
    if np.max(uneven, initial=0.0) > SYMMETRIC * np.max(np.abs(M), initial=0.0):
        i, j = np.unravel_index(int(np.argmax(uneven)), M.shape)
        raise NumericalError(
            f"The mass matrix is not symmetric: entries [{i}, {j}] and [{j}, {i}] are {M[i, j]:g} and {M[j, i]:g}. "
            "Write the equations so that M is symmetric: half of v' M v is the kinetic energy."
        )
    Mr: FloatArray = basis.R.T @ M @ basis.R
    if not len(Mr):
        return Mr
    # Scaled to a diagonal of ones: the inertias of a long beam and of a small angle may differ by 1e13.
    own = np.diagonal(Mr)
    scale = 1.0 / np.sqrt(np.where(own > 0, own, 1.0))
    values, vectors = np.linalg.eigh(scale[:, None] * Mr * scale)
    if np.min(own) <= 0 or values[0] <= NO_INERTIA * values[-1]:
        z = np.eye(len(Mr))[int(np.argmin(own))] if np.min(own) <= 0 else scale * vectors[:, 0]
        raise without_inertia(float(z @ Mr @ z), np.max(own), _movers(basis.R @ z, form.names))
    return Mr


def seen_vectors(vectors: ComplexArray, n: int) -> ComplexArray:
    """Return the (dq, dv) part of eigenvectors, its largest entry 1; zero where it is nothing but rounding."""
    seen = vectors[: 2 * n]
    if not seen.size:
        return seen
    largest = seen[np.argmax(np.abs(seen), axis=0), np.arange(seen.shape[1])]
    moves = np.abs(largest) > 1e-12 * np.linalg.norm(vectors, axis=0)
    scaled: ComplexArray = np.where(moves, seen / np.where(moves, largest, 1.0), 0.0)
    return scaled


def violations(form: ConstrainedForm, seen: ComplexArray) -> FloatArray:
    """Return how far each column (dq, dv) is from the constraints of position and velocity; NaN for zero columns.

    Relative to the norm of Phi_q, of a sparse one from above.
    """
    size, reach = np.linalg.norm(seen, axis=0), 1.0
    if form.is_sparse and form.m:
        entries = abs(form.Phi_q)
        reach = float(np.sqrt(entries.sum(axis=0).max() * entries.sum(axis=1).max()))
    elif form.Phi_q.size:
        reach = float(np.linalg.norm(form.Phi_q, 2))
    rate = form.rate_of(seen)
    broken = np.hypot(np.linalg.norm(form.Phi_q @ seen[: form.n], axis=0), np.linalg.norm(rate, axis=0))
    return np.where(size > 0, broken / (reach * np.where(size > 0, size, 1.0)), np.nan)


def _movers(direction: FloatArray, names: Sequence[str]) -> str:
    names = names or [f"q[{i + 1}]" for i in range(len(direction))]
    size = np.abs(direction) / np.max(np.abs(direction))
    order = [int(i) for i in np.argsort(-size, kind="stable") if size[i] > 1e-6]
    return ", ".join(names[i] for i in order[:4]) + (", ..." if len(order) > 4 else "")
