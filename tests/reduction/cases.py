"""Linear models of textbook systems, for tests of what can be done to them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmilin import LinearModel
from fmilin.linear_model.model import EntryErrors, LinearizationPoint
from fmilin.signals import FloatArray, Signal, Signals
from tests.hand_made import sized

__all__ = ["cart_with_pendulum", "from_matrices", "masses_and_springs", "response"]


def from_matrices(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike | None = None, *, states: Signals | None = None
) -> LinearModel:
    """A linear model at rest at zero, with these matrices."""
    n, n_u, n_y = np.shape(A)[0], np.shape(B)[1], np.shape(C)[0]
    base = sized(n, 0, n_u, n_y)
    states = Signals(Signal(f"x[{i + 1}]") for i in range(n)) if states is None else states
    point = LinearizationPoint(0.0, dict.fromkeys(states.names, 0.0), dict.fromkeys(base.inputs.names, 0.0), {})
    zeros = [np.zeros(shape) for shape in ((n, n), (n, n_u), (n_y, n), (n_y, n_u), (n, n))]
    return replace(
        base,
        A=np.array(A, dtype=float),
        B=np.array(B, dtype=float),
        C=np.array(C, dtype=float),
        D=np.zeros((n_y, n_u)) if D is None else np.array(D, dtype=float),
        T=np.eye(n),
        T_u=np.zeros((n, n_u)),
        f0=np.zeros(n),
        y0=np.zeros(n),
        states=states,
        full_states=states,
        point=point,
        errors=EntryErrors(*zeros),
    )


def masses_and_springs(count: int, damping: float = 0.02) -> LinearModel:
    """A chain of unit masses between walls: frequencies 2 sin(k pi / (2 (count + 1))); pushed at one end."""
    K = 2 * np.eye(count) - np.eye(count, k=1) - np.eye(count, k=-1)
    zeros, one = np.zeros((count, count)), np.eye(count)
    A = np.block([[zeros, one], [-K, -damping * K]])
    return from_matrices(A, np.eye(2 * count)[:, [count]], np.eye(2 * count)[[count - 1]])


def cart_with_pendulum() -> LinearModel:
    """A hanging pendulum on a cart that nothing holds: the cart's position is cyclic. States x, phi, v, w."""
    names = Signals([Signal("x", "m"), Signal("phi", "rad", 0.1), Signal("v", "m/s"), Signal("w", "rad/s", 0.5)])
    A = np.array([[0, 0, 1, 0], [0, 0, 0, 1], [0, 1.0, 0, 0], [0, -2.0, 0, -0.1]])
    return from_matrices(A, np.array([[0], [0], [1.0], [-1.0]]), np.array([[0, 1.0, 0, 0]]), states=names)


def response(linear: LinearModel, w: FloatArray) -> NDArray[np.complex128]:
    """C (jw - A)^-1 B + D, shape (number of frequencies, ny, nu)."""
    one = np.eye(len(linear.A))
    return np.array([linear.C @ np.linalg.solve(1j * v * one - linear.A, linear.B) + linear.D for v in w])
