"""Second ways of gains along periodic motions: Riccati's equation by another integrator, the gain, the closed loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fmilin.auditing.motions import audit_periodic_model
from fmilin.auditing.result import Audit, AuditRow, compare, compare_claim, compare_covariances, keep_worst
from fmilin.periodic.fourier import Interpolant
from fmilin.tolerances import AUDITED_GAIN, AUDITED_RICCATI

if TYPE_CHECKING:
    from fmilin.design.periodic_gains import PeriodicGain


def audit_periodic_gain(gain: PeriodicGain) -> Audit:
    """Return the audit of a regulator or a filter along a periodic motion: of its equation, gain and closed loop."""
    closed = audit_periodic_model(gain.closed)
    floquet = gain.closed.floquet()
    stable = compare_claim("closed loop is stable", "multipliers of the closed loop", holds=floquet.margin < 0)
    rows = [stable, *_compare_riccati(gain), *_compare_gain(gain), *_compare_loop(gain), *closed.rows]
    return Audit("gain along a periodic motion", closed.name, tuple(rows), closed.unchecked)


def _compare_riccati(gain: PeriodicGain) -> Iterator[AuditRow]:
    """Integrate Riccati's equation from one sample to the next, in the direction in which errors die out."""
    from scipy.integrate import solve_ivp

    equation, S = gain.equation, gain.riccati
    m, P = S.shape[:2]
    A, G, Q = (Interpolant(matrix) for matrix in (equation.A, equation.G, equation.Q))

    def rate(phase: float, y: np.ndarray) -> np.ndarray:
        at = np.array(phase % 1.0)
        X = y.reshape(P, P)
        A_at = A(at) if equation.is_filter else A(at).T
        change = A_at @ X + X @ A_at.T - X @ G(at) @ X + Q(at)
        return np.asarray((change if equation.is_filter else -change) * equation.period).ravel()

    way = "Riccati's equation over a period by DOP853"
    ends = (0.0, 1.0) if equation.is_filter else (1.0, 0.0)
    solution = solve_ivp(
        rate, ends, S[0].ravel(), method="DOP853", t_eval=np.linspace(*ends, m + 1), rtol=1e-9, atol=1e-14
    )
    order = range(m + 1) if equation.is_filter else range(m, -1, -1)
    for k, column in zip(order, solution.y.T, strict=False):
        name = f"{'covariance' if equation.is_filter else 'cost'} at phase {k % m}/{m}"
        matrices = S[k % m], column.reshape(P, P)
        yield from compare_covariances(name, matrices, way, AUDITED_RICCATI, gain.closed.states.names)
    residual = equation.compute_residual(S)
    yield compare("residual", gain.residual, residual, "harmonics of the samples", 1e-6 * residual)


def _compare_gain(gain: PeriodicGain) -> list[AuditRow]:
    """Compare the gain with the one that belongs to the solution."""
    second = gain.equation.compute_gain(gain.riccati)
    size = AUDITED_GAIN * float(np.abs(second).max(initial=0.0))
    return keep_worst(
        compare(f"gain[{i}, {j}] at phase {k}/{len(second)}", float(gain.gain[k, i, j]), float(second[k, i, j]),
                "product with the solution", size)
        for k, i, j in np.ndindex(second.shape)
    )  # fmt: skip


def _compare_loop(gain: PeriodicGain) -> list[AuditRow]:
    """Compare the closed loop's A with A - G S, or A - P G, which needs neither the gain nor B and C."""
    equation = gain.equation
    back = gain.riccati @ equation.G if equation.is_filter else equation.G @ gain.riccati
    second = equation.A - back
    size = AUDITED_GAIN * float((np.abs(equation.A) + np.abs(back)).max(initial=0.0))
    return keep_worst(
        compare(f"closed A[{i}, {j}] at phase {k}/{len(second)}", float(gain.closed.A[k, i, j]), float(second[k, i, j]),
                "product with the solution", size)
        for k, i, j in np.ndindex(second.shape)
    )  # fmt: skip
