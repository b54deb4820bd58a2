"""A period as one sample: inputs held over its parts, outputs read where each begins (Meyer and Burrus 1975)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fmilin.ground.signals import FloatArray, Signals
from fmilin.motion.periodic.fourier import Interpolant
from fmilin.motion.periodic.transition import factors, product

Matrices = tuple[FloatArray, FloatArray, FloatArray, FloatArray]  # A, B, C, D


def lifted_matrices(matrices: Matrices, period: float, count: int) -> Matrices:
    """Return A, B, C, D over a period from those at m times; B (P, count nu), C (count ny, P)."""
    A, B, C, D = matrices
    P, nu, ny = A.shape[1], B.shape[2], C.shape[1]
    held = np.zeros((len(A), P + nu, P + nu))
    held[:, :P, :P], held[:, :P, P:] = A, B
    steps = factors(Interpolant(held), period, count).reshape(count, -1, P + nu, P + nu)
    phases = np.arange(count) / count
    seen, at_once = Interpolant(C)(phases), Interpolant(D)(phases)
    x, u = np.eye(P), np.zeros((P, count * nu))  # how the state at a part follows from the start, and from the inputs
    outputs, feed = np.zeros((count, ny, P)), np.zeros((count, ny, count * nu))
    for k, part in enumerate(product(step) for step in steps):
        own = slice(k * nu, (k + 1) * nu)
        outputs[k], feed[k] = seen[k] @ x, seen[k] @ u
        feed[k][:, own] += at_once[k]
        x, u = part[:P, :P] @ x, part[:P, :P] @ u
        u[:, own] += part[:P, P:]
    return x, u, outputs.reshape(count * ny, P), feed.reshape(count * ny, count * nu)


def lifted_signals(signals: Signals, count: int) -> Signals:
    """Return names for signals in the parts of a period, ``u.0``, ``u.1``, ..., all of one part together."""
    return Signals(replace(signal, name=f"{signal.name}.{k}", aliases=()) for k in range(count) for signal in signals)
