"""Lagrange's equations at one point, taken apart: M, G, multipliers of least norm, and the slopes of the forces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.model.interface import SecondOrderForm
from fmilin.numerics.saddle_point.null_space import NullSpaceFactors

if TYPE_CHECKING:
    from fmilin.numerics.codegen.functions import SystemFunctions
    from fmilin.numerics.codegen.implicit import ImplicitSystem

__all__ = ["is_lagrange", "second_order_form"]


def is_lagrange(system: ImplicitSystem) -> bool:
    """Whether the unknowns are the accelerations of half the states, followed by multipliers."""
    states, names = system.state_signals.names, system.unknown_names
    n = len(states) // 2
    wanted = (*(f"der({v})" for v in states[n:]), *(f"lambda[{k + 1}]" for k in range(len(names) - n)))
    return 2 * n == len(states) and n > 0 and names == wanted


def second_order_form(
    numeric: SystemFunctions, point: tuple[float, FloatArray, FloatArray, FloatArray], outputs: int
) -> SecondOrderForm | None:
    """Return the form at ``point`` = (t, x, u, p), or None when the system is not made of Lagrange's equations."""
    if not is_lagrange(numeric.system):
        return None
    t, x, u, p = point
    n = len(x) // 2
    W, r = numeric.equations(t, x, u, p)
    scales = np.array([s.nominal or 1.0 for s in numeric.system.state_signals[:n]])
    w = NullSpaceFactors(W[:n, :n], W[n:, :n], scales=scales).solve(r)
    e_s, c_s, c_w = numeric.partials(point, w)

    def bend(a: FloatArray) -> FloatArray:
        moving = np.concatenate((x[:n], a))
        at_rest = np.concatenate((x[:n], np.zeros(n)))
        # The lower right-hand side is -Gdot v: quadratic in v for constraints that do not move with time.
        return numeric.equations(t, at_rest, u, p)[1][n:] - numeric.equations(t, moving, u, p)[1][n:]

    return SecondOrderForm(
        positions=np.arange(n),
        velocities=np.arange(n, 2 * n),
        M=W[:n, :n],
        G=W[n:, :n],
        multipliers=w[n:],
        accelerations=w[:n],
        force_states=e_s[:n, : 2 * n],
        force_inputs=e_s[:n, 2 * n :],
        output_states=c_s[:outputs, : 2 * n],
        output_inputs=c_s[:outputs, 2 * n :],
        output_unknowns=c_w[:outputs],
        bend=bend,
        constraint_states=-e_s[n:, : 2 * n],
        constraint_inputs=-e_s[n:, 2 * n :],
    )
