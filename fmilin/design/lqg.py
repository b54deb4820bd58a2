"""A regulator from a linear model in one call: optimal feedback on the estimates of a Kalman filter (LQG).

The feedback minimizes the integral of y' Q y + u' R u in continuous time, with the inputs held over each sample: over a
sample of h seconds the cost is a quadratic form of y, u and the sum of both (Van Loan 1978), so that weights mean the
same for every sample time, and the gains go to those of ``control.lqr`` as h goes to 0. The solution of the Riccati
equation is refined by Newton's iteration and certified by its residual.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import expm, solve_discrete_are, solve_discrete_lyapunov

from fmilin.design.kalman import KalmanFilter, kalman_filter
from fmilin.design.loop_analysis import analyse_loops
from fmilin.design.regulator_design import RegulatorDesign, build_sampling_error
from fmilin.design.tracking_regulator import Tracking, TrackingRegulator, find_static_response
from fmilin.errors import NumericalError, UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.system_zeros import select_channels
from fmilin.reduction.transformation import discretize
from fmilin.signals import FloatArray, RealArrayLike, Signals, as_numbers, limits_by_name
from fmilin.support.implemented_in import implemented_in
from fmilin.support.kinds import kinds_checked
from fmilin.support.table_repr import Sheet

if TYPE_CHECKING:
    pass

Weights = Mapping[str, float] | RealArrayLike
MAX_RICCATI_RESIDUAL = 1e-8  # relative to the terms of the equation: a larger one is not a solution
NEWTON_STEPS = 3
INTEGRAL_TIME_FACTOR = 1.0  # of the slowest motion of the loop without integral action, by default


@dataclass(frozen=True, eq=False, repr=False)
class LqgDesign(RegulatorDesign):
    """A regulator with its gains, filter, loops and closed-loop poles; :func:`lqg` makes it."""

    _attributes = ".regulator, .gain, .filter, .margins, .poles, .verify(model), .save(path), .plot()"
    method = "LQG"

    regulator: TrackingRegulator  #: runs in :func:`fmilin.closed_loop`; ``regulator.follow({"y": 1.0})``
    cost: FloatArray  #: shape (P + tracked, P + tracked); the solution of the Riccati equation of the feedback
    residual: float  #: of that equation, relative to its terms

    @implemented_in("fmilin.report.regulator_report:show_lqg")
    def _print_table(self, page: Sheet) -> None: ...

    @property
    def gain(self) -> FloatArray:
        """K of the states, shape (drives, P): u = u0 - K (y - y0)."""
        return self.regulator.gain

    @property
    def integral_gain(self) -> FloatArray:
        """K_z of the integrals of the tracked outputs, shape (drives, tracked)."""
        return self.regulator.tracking.gain

    @property
    def filter(self) -> KalmanFilter:
        """The Kalman filter."""
        return self.regulator.filter

    def to_document(self) -> dict[str, Any]:
        """Return gains, poles and margins as plain data, by the names of signals."""
        return self._describe_loops("lqg") | {
            "states": list(self.linear.states.names),
            "gain": self.gain,
            "integral_gain": self.integral_gain,
            "filter_gain": self.filter.gain,
            "riccati_residual": self.residual,
        }


@kinds_checked
def lqg(
    linear: LinearModel,
    *,
    states: Weights,
    inputs: Weights,
    process: Mapping[str, float] | RealArrayLike,
    measured: Mapping[str, float],
    sample_time: float,
    track: Sequence[str] | Mapping[str, float] = (),
    limits: Mapping[str, tuple[float, float]] | None = None,
    hold_noise: bool = False,
) -> LqgDesign:
    """Return the sampled LQG regulator of a continuous linear model, with its margins and closed-loop poles.

    Parameters
    ----------
    linear : LinearModel
        Continuous, at an equilibrium.
    states : mapping of str to float, or array of shape (P, P)
        By independent coordinate, dependent state or output: its weight, for instance 1/(largest deviation)^2. As an
        array: Q.
    inputs : mapping of str to float, or array of shape (nu, nu)
        By input: the weight of what the regulator drives; other inputs stay at the operating point. As an array: R.
    process : mapping of str to float, or array of shape (P, P)
        Process noise by input, as for :func:`kalman_filter`: its spectral density, with ``hold_noise`` its variance.
    measured : mapping of str to float
        By output that is measured: the variance of a sample's noise.
    sample_time : float, in seconds
    track : sequence of str, or mapping of str to float
        Measured outputs that follow references, with integral action: weights of their integrals, by default such that
        the integral acts as fast as the slowest motion of the loop without it.
    limits : mapping of str to (float, float), optional
        Of driven inputs, absolute: the regulator keeps to them and does not wind up.
    hold_noise : bool
        Whether process noise is constant over each sample.

    Raises
    ------
    UsageError
        When weights are negative or no numbers, an output that is tracked is not measured or cannot be held by the
        inputs, or the linear model is sampled.
    UnknownNameError
        When there is no such state, input or output.
    NumericalError
        When a mode cannot be stabilized from the inputs or observed from the outputs, beyond rounding.

    Examples
    --------
    >>> import fmilin as fl
    >>> model = fl.models.OdeModel("cart", {"x": "v", "v": "F - 0.1*v"}, inputs=["F"], outputs={"y": "x"})
    >>> design = fl.design.lqg(
    ...     fl.linearize(model), states={"x": 100.0}, inputs={"F": 1.0}, process={"F": 0.1}, measured={"y": 1e-4},
    ...     sample_time=0.02, track=["y"], limits={"F": (-5.0, 5.0)}
    ... )
    >>> bool(abs(design.poles).max() < 1), design.verify(model).stable
    (True, True)
    """
    if linear.sample_time:
        raise build_sampling_error(linear)
    linear = select_channels(linear, None, list(measured))
    drives, R = read_input_weights(linear.inputs, inputs)
    columns = [linear.inputs.index_of(name) for name in drives]
    bounds = limits_by_name(limits or {})
    for name in bounds:
        if name not in drives:
            raise UsageError(f"'{name}' has limits, but the regulator does not drive it: give it a weight in inputs=.")
    Q = read_state_weights(linear, states)
    rows = [linear.outputs.index_of(name, "an output that is measured") for name in track]
    kalman = kalman_filter(linear, sample_time, process=process, measured=measured, hold_noise=hold_noise)
    gain, cost, residual, tracking = _design_feedback(linear, Q, R, columns, sample_time, (rows, track))
    regulator = TrackingRegulator(kalman, gain, drives, tracking, bounds)
    loops = analyse_loops(linear, kalman.sampled, regulator.linear_model())
    if not loops.is_stable:
        raise NumericalError(
            "The closed loop is not stable beyond rounding: its largest pole has |z| = "
            f"{np.abs(loops.poles).max():.9g}. "
            "Change the weights or the sample time."
        )
    return LqgDesign(linear, regulator, loops, bounds, cost, residual)


def read_input_weights(signals: Signals, weights: Weights) -> tuple[tuple[str, ...], FloatArray]:
    """Return the driven inputs and R, which must be positive definite."""
    if isinstance(weights, Mapping):
        names = tuple(signals[signals.index_of(name, "an input of the linear model")].name for name in weights)
        R = np.diag([float(as_numbers(w, f"The weight of '{n}'")) for n, w in weights.items()])
    else:
        names, R = tuple(signals.names), np.atleast_2d(as_numbers(weights, "The weights of the inputs"))
    if not names:
        raise UsageError("The regulator drives no input: give weights of inputs (inputs={'NAME': weight}).")
    if R.shape != (len(names), len(names)) or not np.isfinite(R).all() or np.linalg.eigvalsh((R + R.T) / 2).min() <= 0:
        raise UsageError(f"The weights of the inputs {', '.join(names)} must be positive numbers.")
    return names, (R + R.T) / 2


def read_state_weights(linear: LinearModel, weights: Weights) -> FloatArray:
    """Return Q, shape (P, P), of weights by coordinate, dependent state or output; positive semidefinite."""
    P = len(linear.states)
    if not isinstance(weights, Mapping):
        Q = np.atleast_2d(as_numbers(weights, "The weights of the states"))
        if (
            Q.shape != (P, P)
            or not np.isfinite(Q).all()
            or np.linalg.eigvalsh((Q + Q.T) / 2).min(initial=0.0) < (-1e-12 * np.abs(Q).max(initial=0.0))
        ):
            raise UsageError(f"The weights of the states need the shape {(P, P)} and must not be negative.")
        return np.asarray((Q + Q.T) / 2)
    Q = np.zeros((P, P))
    for name, weight in weights.items():
        value = float(as_numbers(weight, f"The weight of '{name}'"))
        if not (np.isfinite(value) and value >= 0):
            raise UsageError(f"The weight of '{name}' is {value:g}: it must be finite and 0 or more.")
        if linear.states.has(name):
            row = np.eye(P)[linear.states.index_of(name)]
        elif linear.outputs.has(name):
            row = linear.C[linear.outputs.index_of(name)]
        else:
            row = linear.T[linear.full_states.index_of(name, "a state or measured output of the linear model")]
        Q += value * np.outer(row, row)
    return Q


def _design_feedback(
    linear: LinearModel,
    Q: FloatArray,
    R: FloatArray,
    columns: Sequence[int],
    sample_time: float,
    track: tuple[Sequence[int], Sequence[str] | Mapping[str, float]],
) -> tuple[FloatArray, FloatArray, float, Tracking]:
    """Return K, the cost, the residual of its Riccati equation, and the integral action."""
    rows, integral_weights = track
    P, q = len(linear.A), len(rows)
    sampled = discretize(linear, sample_time)
    A, B, C = linear.A, linear.B[:, list(columns)], linear.C[list(rows)]
    if np.any(np.abs(linear.D[np.ix_(list(rows), list(columns))]) > 0):
        names = ", ".join(linear.outputs.names[i] for i in rows)
        raise UsageError(f"One of {names} answers to an input at once: track positions, not accelerations or forces.")
    K, S, residual = solve_sampled_feedback(A, B, Q, R, sample_time)
    states, inputs = find_static_response(sampled, columns, rows) if q else (np.zeros((P, 0)), np.zeros((len(R), 0)))
    if not q:
        return K, S, residual, Tracking((), np.zeros((len(R), 0)), states, inputs)
    slowest = np.abs(np.linalg.eigvals(sampled.A - sampled.B[:, list(columns)] @ K)).max()
    rate = -np.log(slowest) / sample_time / INTEGRAL_TIME_FACTOR
    if isinstance(integral_weights, Mapping):
        weights = np.array([float(as_numbers(w, f"The weight of '{n}'")) for n, w in integral_weights.items()])
        if not (np.isfinite(weights).all() and (weights > 0).all()):
            raise UsageError("The weights of the integrals of tracked outputs must be positive numbers.")
    else:
        weights = rate**2 * _weigh_outputs(Q, C)
    augmented = np.block([[A, np.zeros((P, q))], [C, np.zeros((q, q))]])
    all_weights = np.block([[Q, np.zeros((P, q))], [np.zeros((q, P)), np.diag(weights)]])
    gains, S, residual = solve_sampled_feedback(augmented, np.vstack((B, np.zeros((q, len(R))))), all_weights, R,
                                                sample_time)  # fmt: skip
    recovery = min(1.0, sample_time * rate)
    return gains[:, :P], S, residual, Tracking(tuple(rows), gains[:, P:], states, inputs, recovery)


def _weigh_outputs(Q: FloatArray, C: FloatArray) -> FloatArray:
    """Return the weight that Q puts on each output: the largest w with w C' C <= Q; 1 where Q puts none on it."""
    inverse = np.linalg.pinv(Q, hermitian=True)
    covered = np.abs(C @ inverse @ Q - C).max(axis=1) <= 1e-9 * np.abs(C).max(axis=1)
    sizes = np.einsum("ij,jk,ik->i", C, inverse, C)
    return np.where(covered & (sizes > 0), 1 / np.where(sizes > 0, sizes, 1.0), 1.0)


def solve_sampled_feedback(
    A: FloatArray, B: FloatArray, Q: FloatArray, R: FloatArray, sample_time: float
) -> tuple[FloatArray, FloatArray, float]:
    """Return K, S and the relative residual of the Riccati equation, for the continuous cost with inputs held."""
    Phi, Gamma, Qd, N, Rd = sample_cost(A, B, Q, R, sample_time)
    scale = np.sqrt(np.maximum(np.diag(Qd), 1e-12 * np.diag(Qd).max(initial=0.0)))
    scale = np.where(scale > 0, scale, 1.0)
    scaled = Phi * scale[:, None] / scale, Gamma * scale[:, None], Qd / np.outer(scale, scale), N / scale[:, None]
    try:
        S = solve_discrete_are(scaled[0], scaled[1], scaled[2], Rd, s=scaled[3])
    except (np.linalg.LinAlgError, ValueError) as error:
        raise NumericalError(
            "There is no stabilizing feedback: an undamped or unstable mode is not moved by the driven inputs, or "
            f"costs nothing ({error}). Drive another input, or weigh a state that the mode moves."
        ) from None
    S = S * np.outer(scale, scale)
    for _ in range(NEWTON_STEPS):
        K = _compute_gain(Phi, Gamma, N, Rd, S)
        closed = Phi - Gamma @ K
        if np.abs(np.linalg.eigvals(closed)).max(initial=0.0) >= 1:
            break
        cost = Qd + K.T @ Rd @ K - N @ K - (N @ K).T
        refined = solve_discrete_lyapunov(closed.T, cost)
        if not np.isfinite(refined).all():
            break
        S = (refined + refined.T) / 2
    K = _compute_gain(Phi, Gamma, N, Rd, S)
    cross = Phi.T @ S @ Gamma + N
    terms = Phi.T @ S @ Phi, S, cross @ K, Qd
    residual = float(np.abs(terms[0] - terms[1] - terms[2] + terms[3]).max(initial=0.0))
    residual /= max(float(np.abs(term).max(initial=0.0)) for term in terms) or 1.0
    if not (residual <= MAX_RICCATI_RESIDUAL and np.abs(np.linalg.eigvals(Phi - Gamma @ K)).max(initial=0.0) < 1):
        raise NumericalError(
            "There is no stabilizing feedback beyond rounding: the Riccati equation is solved to "
            f"{residual:.2g} only, or a mode stays. Drive another input, or weigh a state that the mode moves."
        )
    return K, S, residual


def _compute_gain(Phi: FloatArray, Gamma: FloatArray, N: FloatArray, R: FloatArray, S: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.solve(R + Gamma.T @ S @ Gamma, Gamma.T @ S @ Phi + N.T))


def sample_cost(
    A: FloatArray, B: FloatArray, Q: FloatArray, R: FloatArray, sample_time: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return Phi, Gamma and the cost [[Q, N], [N', R]] of a sample with the inputs held (Van Loan 1978)."""
    P, k = B.shape
    F = np.block([[A, B], [np.zeros((k, P + k))]])
    weights = np.block([[Q, np.zeros((P, k))], [np.zeros((k, P)), R]])
    halvings = max(0, int(np.ceil(np.log2(max(float(np.linalg.norm(F, 1)) * sample_time, 1.0)))))
    n = P + k
    E = expm(np.block([[-F.T, weights], [np.zeros((n, n)), F]]) * (sample_time / 2**halvings))
    step = E[n:, n:]
    cost = step.T @ E[:n, n:]
    for _ in range(halvings):  # of two halves the second begins where the first ends
        cost, step = cost + step.T @ cost @ step, step @ step
    cost = (cost + cost.T) / 2
    return step[:P, :P], step[:P, P:], cost[:P, :P], cost[:P, P:], cost[P:, P:]
