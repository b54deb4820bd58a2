"""Padé approximations of a delay, [q/q], in a realization that is well conditioned for any order.

With p = s tau / 2, exp(-s tau) = (1 - tanh p)/(1 + tanh p) and tanh p = 1/(1/p + 1/(3/p + 1/(5/p + ...))). Cut after q
terms, the continued fraction is the [q/q] approximation. Its ladder has one state for each term.
"""

from __future__ import annotations

import numpy as np

from fmilin.numerics.delay_form import Complex, DelayForm
from fmilin.numerics.feedback import StateSpace
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass

BISECTION_COUNT = 60  # the interval is then one number
MIN_LOOP_GAP = 1e-12  # smallest singular value of I - D22 D of a loop with a solution


def approximate_delay(delay: float, order: int) -> StateSpace:
    """Return the Padé approximation of exp(-s delay) with ``order`` states; its gain is 1 at every frequency."""
    flows = _list_flows(order)  # rows of I_0, ..., I_order over (x, z)
    rates = (2.0 / delay) * flows[1:]
    response = flows[0] - flows[1]
    scale = np.sqrt(2.0 * np.arange(1, order + 1) - 1.0)  # makes the ladder lossless: A nearly skew-symmetric
    A = rates[:, :order] * scale[:, None] / scale
    B = rates[:, order:] * scale[:, None]
    return StateSpace(A, B, (response[:order] / scale)[None, :], response[None, order:])


def _list_flows(order: int) -> FloatArray:
    """Return I_k, shape (order + 1, order + 1), with x_k' = 2/tau I_k, I_(k-1) = I_(k+1) + (2k - 1) x_k, I_0 + I_1 = z.

    The chain of one parity begins at I_(order + 1) = 0, the other one at I_0 or I_1 = z minus the first one's end.
    """
    flows = np.zeros((order + 2, order + 1))
    terms = np.zeros((order + 1, order + 1))
    terms[np.arange(1, order + 1), np.arange(order)] = 2.0 * np.arange(1, order + 1) - 1.0
    for k in range(order, 0, -2):
        flows[k - 1] = flows[k + 1] + terms[k]
    end = (order + 1) % 2  # 0 where the order is odd: the first chain ends at I_0
    first = 1 - end
    flows[first] = -flows[end]
    flows[first, order] += 1.0
    for k in range(first + 1, order + 1, 2):
        flows[k + 1] = flows[k - 1] - terms[k]
    return flows[: order + 1]


def evaluate_approximation(turns: FloatArray, order: int) -> Complex:
    """Return the approximation at angles omega tau in rad."""
    p = 0.5j * np.asarray(turns, dtype=np.float64)
    value = np.zeros(len(p), dtype=np.complex128)
    for k in range(order, 0, -1):
        value = p / (2 * k - 1 + p * value)
    return np.asarray((1 - value) / (1 + value))


def find_largest_angle(order: int, error: float) -> float:
    """Return the angle omega tau up to which the approximation is off by less than ``error``."""
    angles = np.linspace(0.0, 4.0 * order + 8.0, 4000)[1:]
    differences = np.abs(evaluate_approximation(angles, order) - np.exp(-1j * angles))
    beyond = np.flatnonzero(differences > error)
    high = float(angles[beyond[0]]) if len(beyond) else float(angles[-1])
    low = high - float(angles[0])
    for _ in range(BISECTION_COUNT):
        middle = (low + high) / 2
        difference = abs(complex(evaluate_approximation(np.array([middle]), order)[0]) - np.exp(-1j * middle))
        low, high = (middle, high) if difference <= error else (low, middle)
    return low


@dataclass(frozen=True, eq=False)
class ApproximateForm:
    """A system with every delay approximated; its states are (x, states of the ladders)."""

    system: StateSpace
    w: FloatArray  # (m, n + states of the ladders + nu), what the delayed signals are made of
    through: FloatArray  # (m, m), what a change of z makes of w at once
    into: FloatArray  # (states of the ladders, m), what a change of z makes of the rates of the ladders


def approximate_form(form: DelayForm, order: int) -> ApproximateForm | None:
    """Return the system with every delay approximated; None where the approximations close a loop without a solution.

    Delays of zero have no states: there w = z.
    """
    from scipy.linalg import block_diag

    m = len(form.delays)
    direct = StateSpace(np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), np.ones((1, 1)))
    parts = [approximate_delay(delay, order) if delay > 0 else direct for delay in form.delays.tolist()]
    A_d, B_d, C_d, D_d = (block_diag(*(getattr(part, name) for part in parts)) for name in "ABCD")
    # z = C2 x + D21 u + D22 (C_d x_d + D_d z)
    gap = np.eye(m) - form.D22 @ D_d
    if np.linalg.svd(gap, compute_uv=False).min(initial=1.0) < MIN_LOOP_GAP:
        return None
    M = np.linalg.inv(gap)
    z_x, z_d, z_u = M @ form.C2, M @ form.D22 @ C_d, M @ form.D21
    w_x, w_d, w_u = D_d @ z_x, C_d + D_d @ z_d, D_d @ z_u
    A = np.block([[form.A + form.B2 @ w_x, form.B2 @ w_d], [B_d @ z_x, A_d + B_d @ z_d]])
    B = np.vstack((form.B1 + form.B2 @ w_u, B_d @ z_u))
    C = np.hstack((form.C1 + form.D12 @ w_x, form.D12 @ w_d))
    system = StateSpace(A, B, C, form.D11 + form.D12 @ w_u)
    return ApproximateForm(system, np.hstack((w_x, w_d, w_u)), D_d @ M, B_d @ M)
