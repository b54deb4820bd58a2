"""Optimal feedback and filters along periodic motions, by structured doubling of Riccati's equation.

The Hamiltonian [[A, -G], [-Q, -A']] of -S' = A' S + S A - S G S + Q leads from one end of an interval to the other,
x_1 = F x_0 - W l_1 and l_0 = H x_0 + F' l_1 with l = S x: three matrices that follow for two intervals from those of
each, and for a period that is doubled until all time to come is in H, which then is S (structured doubling; Chu, Fan,
Lin and Wang, International Journal of Control 77, 2004). Nothing grows on the way, as exponentials of the Hamiltonian
would. A filter is the regulator of the transposed system, with reversed time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from fmilin.design.kalman import require_intensities
from fmilin.design.measurement import factor_covariance, measurement_covariance
from fmilin.diagnostics import Remark
from fmilin.errors import NumericalError, UsageError
from fmilin.periodic.fourier import Interpolant, derivative
from fmilin.periodic.periodic_model import PeriodicModel
from fmilin.periodic.transition import factors
from fmilin.signals import FloatArray, RealArrayLike, as_numbers
from fmilin.support.implemented_in import implemented_in
from fmilin.support.kinds import kinds_checked
from fmilin.support.table_repr import Sheet, TableRepr
from fmilin.tolerances import INACCURATE_ENTRY_ERROR, MAX_ENTRY_ERROR

DOUBLINGS = 60
CONVERGENCE_TOLERANCE = 1e-14  # relative: a change of S in twice the time by which it has converged

Passage = tuple[FloatArray, FloatArray, FloatArray]  # F, W, H, each (..., P, P)


def periodic_riccati(A: FloatArray, G: FloatArray, Q: FloatArray, period: float) -> FloatArray:
    """Return S (m, P, P) at m equally spaced times, with which A - G S is stable; ``A``, ``G``, ``Q`` are (m, P, P).

    NumericalError: when there is none.
    """
    m, P = A.shape[:2]
    hamiltonian = np.block([[A, -G], [-Q, -np.swapaxes(A, 1, 2)]])
    steps = factors(Interpolant(hamiltonian), period, m)
    b, c, d = steps[:, :P, P:], steps[:, P:, :P], steps[:, P:, P:]
    each = np.linalg.inv(d)
    parts: Passage = (np.swapaxes(each, 1, 2), -b @ each, -each @ c)
    while len(parts[0]) > m:
        F, W, H = parts
        parts = _join_passages((F[0::2], W[0::2], H[0::2]), (F[1::2], W[1::2], H[1::2]))
    S = np.empty((m, P, P))
    S[0] = _for_ever(parts)
    for k in range(m - 1, 0, -1):
        F, W, H = (part[k] for part in parts)
        S[k] = H + F.T @ S[(k + 1) % m] @ np.linalg.solve(np.eye(P) + W @ S[(k + 1) % m], F)
    return (S + np.swapaxes(S, 1, 2)) / 2


def _join_passages(first: Passage, then: Passage) -> Passage:
    """Return the passage through two intervals, one after the other."""
    (F, W, H), (F_, W_, H_) = first, then
    both = np.linalg.solve(np.eye(F.shape[-1]) + W @ H_, np.concatenate((F, W), axis=-1))
    through, back = np.split(both, 2, axis=-1)
    over = np.swapaxes(F_, -1, -2)
    return F_ @ through, W_ + F_ @ back @ over, H + np.swapaxes(F, -1, -2) @ H_ @ through


def _for_ever(parts: Passage) -> FloatArray:
    passage: Passage = reduce(_join_passages, zip(*parts, strict=True))
    with np.errstate(all="ignore"):
        for _ in range(DOUBLINGS):
            before, passage = passage[2], _join_passages(passage, passage)
            if not np.isfinite(passage[2]).all():
                break
            if np.abs(passage[2] - before).max() <= CONVERGENCE_TOLERANCE * np.abs(passage[2]).max():
                return passage[2]
    raise NumericalError("The Riccati equation has no periodic solution that stabilizes the system.")


@dataclass(frozen=True, eq=False)
class PeriodicRiccati:
    """-S' = A' S + S A - S G S + Q of a regulator, or P' = A P + P A' - P G P + Q of a filter; all arrays (m, ., .)."""

    A: FloatArray
    G: FloatArray
    Q: FloatArray
    weight: FloatArray  # R^-1 B' (m, nu, P), or R^-1 C (m, ny, P): the gain is this times S, or P times its transpose
    period: float
    is_filter: bool

    def compute_gain(self, solution: FloatArray) -> FloatArray:
        """Return the gain that belongs to a solution."""
        if self.is_filter:
            return np.asarray(solution @ np.swapaxes(self.weight, 1, 2))
        return np.asarray(self.weight @ solution)

    def compute_rate(self, solution: FloatArray, k: int | slice = slice(None)) -> FloatArray:
        """Return the rate of a solution that the equation asks for, at the times ``k``."""
        A, G, Q = self.A[k], self.G[k], self.Q[k]
        if self.is_filter:
            product = A @ solution
            return np.asarray(product + np.swapaxes(product, -1, -2) - solution @ G @ solution + Q)
        product = np.swapaxes(A, -1, -2) @ solution
        return np.asarray(-(product + np.swapaxes(product, -1, -2) - solution @ G @ solution + Q))

    def compute_residual(self, solution: FloatArray) -> float:
        """Return how far a solution is from the equation, relative to the terms in it, entry by entry of its sizes."""
        rate = derivative(solution, self.period)
        A, S = np.abs(self.A), np.abs(solution)
        linear = A @ S if self.is_filter else np.swapaxes(A, 1, 2) @ S
        terms = linear + np.swapaxes(linear, 1, 2) + S @ np.abs(self.G) @ S + np.abs(self.Q)
        # Entries count in sizes of the largest diagonal terms over the period: units of the states do not decide.
        sizes = np.sqrt(np.maximum(np.diagonal(terms, axis1=1, axis2=2).max(axis=0), 1e-300))
        off = np.abs(rate - self.compute_rate(solution)) / np.outer(sizes, sizes)
        return float(off.max(initial=0.0))


@dataclass(frozen=True, eq=False, repr=False)
class PeriodicGain(TableRepr):
    """What :func:`periodic_lqr` and :func:`periodic_kalman_filter` return."""

    _attributes = ".gain, .riccati, .closed, .at(time)"

    #: shape (m, nu, P) or (m, P, ny); K of the regulator u = u0(t) - K(t) (y - y0(t)), or L of the filter, at the
    #: times of the periodic model
    gain: FloatArray
    #: shape (m, P, P); the solution of Riccati's equation: what is still to be paid for a deviation, or the filter's
    #: covariance
    riccati: FloatArray
    #: with A - B K, or A - L C: ``closed.floquet()`` says how fast deviations, or errors, die out
    closed: PeriodicModel
    equation: PeriodicRiccati  #: which ``riccati`` solves
    #: of ``riccati`` in that equation, relative to its terms; its rate is that of the harmonics of the samples
    residual: float
    remarks: tuple[Remark, ...] = ()  #: where ``residual`` is not small

    @implemented_in("fmilin.report.periodic:show_gain")
    def _print_table(self, page: Sheet) -> None: ...

    def at(self, time: float) -> FloatArray:
        """Return the gain at a ``time`` in seconds, shape (nu, P) or (P, ny): the harmonics of the samples say it."""
        phase = np.array((time - self.closed.times[0]) / self.closed.period)
        return Interpolant(self.gain)(phase)


@kinds_checked
def periodic_lqr(periodic: PeriodicModel, state_cost: RealArrayLike, input_cost: RealArrayLike) -> PeriodicGain:
    """Return the state feedback along a periodic motion that costs least: the integral of y' Q y + u' R u.

    Raises UsageError when shapes do not fit, R is not positive definite, or the coordinates do not come back to
    themselves; NumericalError when no feedback makes the motion stable, or the cost does not see what is neutral or
    grows.

    Parameters
    ----------
    periodic : PeriodicModel
    state_cost, input_cost : array, shapes (P, P), (nu, nu)
        Q and R of the independent coordinates and inputs.
    """
    Q, R = as_numbers(state_cost, "The cost of the states"), as_numbers(input_cost, "The cost of the inputs")
    P, nu = len(periodic.states), len(periodic.inputs)
    if Q.shape != (P, P) or R.shape != (nu, nu):
        raise UsageError(f"The costs have the shapes {Q.shape} and {R.shape}; they need {(P, P)} and {(nu, nu)}.")
    if nu == 0 or (np.isfinite(R).all() and np.linalg.eigvalsh(R + R.T).min() <= 0):
        raise UsageError("The cost of the inputs must be positive definite, and there must be inputs.")
    factor_covariance(Q, P, "The cost of the states")
    factor_covariance(R, nu, "The cost of the inputs")
    over_B: FloatArray = np.asarray(np.linalg.solve(R, np.swapaxes(periodic.B, 1, 2)))
    costs = np.broadcast_to(Q, periodic.A.shape)
    what = f"it is not controllable from {', '.join(periodic.inputs.names)}, or not observable in the cost"
    S = _solve_riccati(periodic, periodic.A, periodic.B @ over_B, costs, what)
    equation = PeriodicRiccati(periodic.A, periodic.B @ over_B, costs, over_B, periodic.period, is_filter=False)
    K = equation.compute_gain(S)
    return _certify(periodic, K, S, (equation, periodic.B @ K), what)


@kinds_checked
def periodic_kalman_filter(
    periodic: PeriodicModel, *, process: Mapping[str, float], measured: Mapping[str, float]
) -> PeriodicGain:
    """Return the Kalman filter along a periodic motion, y_hat' = A y_hat + B u + L (out - C y_hat - D u).

    Raises UsageError or UnknownNameError when a name is unknown, an output has no noise, a density is negative, or
    noise reaches an output at once;
    NumericalError when there is no stable filter: something that grows cannot be seen, or noise reaches nothing that is
    neutral.

    Parameters
    ----------
    periodic : PeriodicModel
        Its outputs are measured.
    process, measured : mapping of str to float
        Spectral densities of white noise, in the unit squared times seconds, by input and by output (each needs one).
    """
    R = measurement_covariance(periodic.outputs, measured)
    columns = require_intensities(periodic.inputs, process)
    noisy = [column for column, density in zip(columns, process.values(), strict=True) if density > 0]
    _refuse_white_feedthrough(periodic, noisy)
    G = periodic.B[:, :, columns]
    noise = G * np.array(list(process.values()), dtype=np.float64) @ np.swapaxes(G, 1, 2)
    over_C: FloatArray = np.asarray(np.linalg.solve(R, periodic.C))
    backwards = -np.arange(len(periodic.A))
    dual = [np.swapaxes(M, 1, 2)[backwards] for M in (periodic.A, np.swapaxes(over_C, 1, 2) @ periodic.C, noise)]
    what = (
        f"it is not observable from {', '.join(periodic.outputs.names) or 'no output'}, or not excited by the process "
        "noise"
    )
    covariance = _solve_riccati(periodic, dual[0], dual[1], dual[2], what)[backwards]
    information = np.swapaxes(over_C, 1, 2) @ periodic.C
    equation = PeriodicRiccati(periodic.A, information, noise, over_C, periodic.period, is_filter=True)
    L = equation.compute_gain(covariance)
    return _certify(periodic, L, covariance, (equation, L @ periodic.C), what)


def _solve_riccati(periodic: PeriodicModel, A: FloatArray, G: FloatArray, Q: FloatArray, what: str) -> FloatArray:
    periodic.require_closed("Riccati's equation")
    try:
        return periodic_riccati(A, G, Q, periodic.period)
    except (NumericalError, np.linalg.LinAlgError):
        raise NumericalError(f"An undamped or unstable mode along the motion cannot be stabilized: {what}.") from None


def _certify(
    periodic: PeriodicModel, gain: FloatArray, S: FloatArray, loop: tuple[PeriodicRiccati, FloatArray], what: str
) -> PeriodicGain:
    """Return the gain when its closed loop is stable and Riccati's equation holds between the samples, too."""
    equation, back = loop
    closed = replace(periodic, A=periodic.A - back, symmetries={}, f0=None)
    if not closed.floquet().margin < 0:
        raise NumericalError(f"An undamped or unstable mode along the motion cannot be stabilized: {what}.")
    residual = equation.compute_residual(S)
    if not residual <= MAX_ENTRY_ERROR:
        raise NumericalError(
            f"The solution of the Riccati equation along the motion has a relative residual of {residual:.2g}: "
            f"{len(S)} phases do not resolve it. Use more (points= of fl.linearize_periodic)."
        )
    remarks: tuple[Remark, ...] = ()
    if residual > INACCURATE_ENTRY_ERROR:
        text = (
            f"The Riccati equation along the motion has a relative residual of {residual:.1e}, with the rates that "
            f"follow from the harmonics of {len(S)} phases. Use more phases (points= of fl.linearize_periodic)."
        )
        remarks = (Remark("accuracy", text),)
    return PeriodicGain(gain, S, closed, equation, residual, remarks)


def _refuse_white_feedthrough(periodic: PeriodicModel, columns: Sequence[int]) -> None:
    """Reject white noise that reaches an output at once somewhere along the motion."""
    D = np.abs(periodic.D[:, :, list(columns)])
    sizes = 1e-9 * np.maximum(np.abs(periodic.D).max(initial=0.0), 1e-300)
    reached = np.argwhere(D.max(axis=0, initial=0.0) > sizes)
    if len(reached):
        i, j = reached[0]
        raise UsageError(
            f"White process noise through '{periodic.inputs.names[columns[j]]}' reaches the output "
            f"'{periodic.outputs.names[i]}' at once. Model the noise as the output of a filter, and join its states "
            "to the model, or measure an output that it does not reach."
        )
