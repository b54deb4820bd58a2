"""H-infinity loop shaping in one call: the most robust sampled regulator for a plant with a shaped loop gain.

The shaped plant is G_s = W_2 G W_1: outputs over the deviations that matter, inputs times their amplitudes, integral
action on tracked outputs, all scaled to the crossover frequency. The regulator maximizes the size of the perturbations
of its normalized coprime factors under which the loop stays stable (Glover and McFarlane 1989): two Riccati equations,
no iteration. The plant at its samples is taken to the plane of s = (2/h) (z - 1)/(z + 1), in which norms and stability
are the same, so that the regulator is that of the sampled plant and not an approximation of a continuous one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import block_diag, solve_continuous_are

from fmilin.design.laws import Matrices, linear_law
from fmilin.design.loop_analysis import analyse_loops
from fmilin.design.regulator_design import RegulatorDesign, build_sampling_error
from fmilin.design.shaped_regulator import ShapedRegulator
from fmilin.errors import NumericalError, UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.system_zeros import select_channels
from fmilin.reduction.transformation import discretize
from fmilin.signals import FloatArray, Signal, Signals, as_numbers, limits_by_name
from fmilin.support.implemented_in import implemented_in
from fmilin.support.kinds import kinds_checked
from fmilin.support.table_repr import Sheet

GAMMA_FACTOR = 1.05  # gamma over the least one: at the least one the regulator has a direct path of high gain
INTEGRAL_CORNER_FACTOR = 0.2  # of the crossover frequency: above it, integral action costs little phase
MAX_RICCATI_RESIDUAL = 1e-8  # relative to the terms of the equation, as for LQG
FREQUENCY_COUNT = 2000  # at which the norm of the loop is evaluated
MIN_FREQUENCY_FACTOR = 1e-6  # of half the sampling frequency
MARGIN_TOLERANCE = 1e-6  # by which the margin by frequencies may lie below the one by Riccati equations


@dataclass(frozen=True, eq=False, repr=False)
class LoopShapingDesign(RegulatorDesign):
    """A regulator by H-infinity loop shaping, with its loops and closed-loop poles; :func:`loop_shaping` makes it."""

    _attributes = ".regulator, .stability_margin, .margins, .poles, .verify(model), .save(path), .plot()"
    method = "H-infinity loop-shaping"

    regulator: ShapedRegulator  #: runs in :func:`fmilin.closed_loop`; ``regulator.follow({"y": 1.0})``
    stability_margin: float  #: epsilon of the shaped loop, by frequencies: a ratio from 0 to 1, robust from about 0.25
    designed_margin: float  #: 1/gamma of the Riccati equations, a ratio; stability_margin is at least that
    best_margin: float  #: the largest ratio that any regulator has for this shaped plant
    gain: float  #: the factor by which the shaped plant was scaled to the crossover frequency
    residual: float  #: of the Riccati equations, relative to their terms

    @implemented_in("fmilin.report.regulator_report:show_shaping")
    def _print_table(self, page: Sheet) -> None: ...

    def to_document(self) -> dict[str, Any]:
        """Return robust stability margins, poles and margins as plain data, by the names of signals."""
        return self._describe_loops("loop-shaping") | {
            "stability_margin": self.stability_margin,
            "designed_margin": self.designed_margin,
            "best_margin": self.best_margin,
            "shaping_gain": self.gain,
            "riccati_residual": self.residual,
        }


@kinds_checked
def loop_shaping(
    linear: LinearModel,
    *,
    inputs: Mapping[str, float],
    measured: Mapping[str, float],
    crossover: float,
    sample_time: float,
    track: Sequence[str] = (),
    limits: Mapping[str, tuple[float, float]] | None = None,
) -> LoopShapingDesign:
    """Return the sampled regulator of H-infinity loop shaping, with its margins and closed-loop poles.

    Parameters
    ----------
    linear : LinearModel
        Continuous, at an equilibrium.
    inputs : mapping of str to float
        By input that the regulator drives: an amplitude that it usually has, in its unit.
    measured : mapping of str to float
        By output that is measured: a deviation that matters, in its unit.
    crossover : float, in rad/s
        Where the largest gain of the shaped plant is to be 1: about the bandwidth of the loop.
    sample_time : float, in seconds
    track : sequence of str
        Measured outputs that follow references; with any, the regulator has integral action in all its inputs.
    limits : mapping of str to (float, float), optional
        Of driven inputs, absolute: the regulator keeps to them and does not wind up.

    Raises
    ------
    UsageError
        When sizes are not positive, the crossover is not below half the sampling frequency, an output that is tracked
        is not measured, or the linear model is sampled.
    UnknownNameError
        When there is no such input or output.
    NumericalError
        When a mode cannot be stabilized from the inputs or observed from the outputs, beyond rounding.

    References
    ----------
    K. Glover and D. McFarlane, Robust stabilization of normalized coprime factor plant descriptions with
    H-infinity-bounded uncertainty, IEEE Trans. Automatic Control 34 (1989), 821-830. S. Skogestad and I. Postlethwaite,
    Multivariable Feedback Control (2005), section 9.4.

    Examples
    --------
    >>> import fmilin as fl
    >>> model = fl.models.OdeModel("cart", {"x": "v", "v": "F - 0.1*v"}, inputs=["F"], outputs={"y": "x"})
    >>> design = fl.design.loop_shaping(
    ...     fl.linearize(model), inputs={"F": 1.0}, measured={"y": 0.1}, crossover=2.0, sample_time=0.02, track=["y"]
    ... )
    >>> bool(design.stability_margin > 0.25), design.verify(model).stable
    (True, True)
    """
    if linear.sample_time:
        raise build_sampling_error(linear)
    linear = select_channels(linear, None, list(measured))
    drives = tuple(linear.inputs[linear.inputs.index_of(name, "an input of the linear model")].name for name in inputs)
    if not drives:
        raise UsageError("The regulator drives no input: give amplitudes of inputs (inputs={'NAME': amplitude}).")
    amplitudes, deviations = _read_sizes(inputs, "amplitude"), _read_sizes(measured, "deviation")
    sampled = discretize(linear, sample_time)
    if not (np.isfinite(crossover) and 0 < crossover < np.pi / sample_time):
        raise UsageError(
            f"A crossover at {crossover:g} rad/s is not possible with a sample every {sample_time:g} s: it must be "
            f"positive and below half the sampling frequency, {np.pi / sample_time:.4g} rad/s."
        )
    bounds = limits_by_name(limits or {})
    for name in bounds:
        if name not in drives:
            raise UsageError(f"'{name}' has limits, but the regulator does not drive it: name it in inputs=.")
    rows = [linear.outputs.index_of(name, "an output that is measured") for name in track]
    if len(rows) > len(drives):
        raise UsageError(
            f"{len(drives)} inputs hold at most {len(drives)} outputs, not {len(rows)}: track fewer outputs, or drive "
            "more inputs."
        )
    columns = [linear.inputs.index_of(name) for name in drives]
    plant = _to_continuous(_hold_inputs(sampled, columns), sample_time)
    shaping = _shape_inputs(amplitudes, INTEGRAL_CORNER_FACTOR * crossover if rows else 0.0)
    shaped = _scale_outputs(_in_series(plant, shaping), 1 / deviations)
    warped = 2 / sample_time * np.tan(crossover * sample_time / 2)
    gain = 1 / np.linalg.norm(_respond(shaped, 1j * warped), 2)
    shaped = shaped[0], gain * shaped[1], shaped[2], gain * shaped[3]
    central, least, gamma, residual = stabilize_coprime_factors(shaped)
    weight = _to_sampled(_scale_inputs(shaping, np.full(len(drives), gain)), sample_time)
    sampled_central = _to_sampled(central, sample_time)
    matrices = _scale_inputs(_in_series(weight, sampled_central), 1 / deviations)
    law = _make_law(linear, matrices, drives, sample_time)
    back = np.vstack((weight[1] @ np.linalg.inv(weight[3]), np.zeros((len(central[0]), len(drives)))))
    regulator = ShapedRegulator(law, track, bounds, back)
    loops = analyse_loops(linear, sampled, law)
    if not loops.is_stable:
        raise NumericalError(
            "The closed loop is not stable beyond rounding: its largest pole has |z| = "
            f"{np.abs(loops.poles).max():.9g}. Change the crossover frequency or the sample time."
        )
    margin = measure_stability_margin(_to_sampled(shaped, sample_time), sampled_central, sample_time)
    if margin < (1 - MARGIN_TOLERANCE) / gamma:
        raise NumericalError(
            f"The robust stability margin of the loop is {margin:.6g}, and {1 / gamma:.6g} by the Riccati equations: "
            "they are not solved well enough. Change the crossover frequency, or scale inputs and outputs."
        )
    return LoopShapingDesign(linear, regulator, loops, bounds, margin, 1 / gamma, 1 / least, float(gain), residual)


def _read_sizes(sizes: Mapping[str, float], what: str) -> FloatArray:
    values = np.array([float(as_numbers(v, f"The {what} of '{n}'")) for n, v in sizes.items()])
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise UsageError(f"Each {what} must be a positive number, in the unit of its signal.")
    return values


def _hold_inputs(sampled: LinearModel, columns: Sequence[int]) -> Matrices:
    """Return the plant as a regulator reads it: outputs at a sample depend on the inputs that were held before it."""
    A, B, C = sampled.A, sampled.B[:, list(columns)], sampled.C
    D = sampled.D[:, list(columns)]
    if not D.any():
        return A, B, C, np.zeros_like(D)
    k = len(columns)
    return block_diag(A, np.zeros((k, k))), np.vstack((B, np.eye(k))), np.hstack((C, D)), np.zeros_like(D)


def _to_continuous(system: Matrices, sample_time: float) -> Matrices:
    """Return the system in s of a system in z = (1 + s h/2)/(1 - s h/2)."""
    A, B, C, D = system
    rate, identity = 2 / sample_time, np.eye(len(A))
    inverse = np.linalg.inv(A + identity)
    root = np.sqrt(2 * rate)
    return rate * inverse @ (A - identity), root * inverse @ B, root * C @ inverse, D - C @ inverse @ B


def _to_sampled(system: Matrices, sample_time: float) -> Matrices:
    """Return the system in z of a system in s = (2/h) (z - 1)/(z + 1)."""
    A, B, C, D = system
    rate, identity = 2 / sample_time, np.eye(len(A))
    inverse = np.linalg.inv(rate * identity - A)
    root = np.sqrt(2 * rate)
    return (rate * identity + A) @ inverse, root * inverse @ B, root * C @ inverse, D + C @ inverse @ B


def _shape_inputs(amplitudes: FloatArray, corner: float) -> Matrices:
    """Return W_1 = diag(amplitudes) (s + corner)/s, without states where the corner is 0."""
    k = len(amplitudes)
    if corner == 0:
        return np.zeros((0, 0)), np.zeros((0, k)), np.zeros((k, 0)), np.diag(amplitudes)
    return np.zeros((k, k)), np.eye(k), np.diag(corner * amplitudes), np.diag(amplitudes)


def _in_series(second: Matrices, first: Matrices) -> Matrices:
    A2, B2, C2, D2 = second
    A1, B1, C1, D1 = first
    A = np.block([[A2, B2 @ C1], [np.zeros((len(A1), len(A2))), A1]])
    return A, np.vstack((B2 @ D1, B1)), np.hstack((C2, D2 @ C1)), D2 @ D1


def _scale_outputs(system: Matrices, factors: FloatArray) -> Matrices:
    A, B, C, D = system
    return A, B, factors[:, None] * C, factors[:, None] * D


def _scale_inputs(system: Matrices, factors: FloatArray) -> Matrices:
    A, B, C, D = system
    return A, B * factors, C, D * factors


def _respond(system: Matrices, s: complex) -> np.ndarray[Any, np.dtype[np.complex128]]:
    A, B, C, D = system
    return np.asarray(C @ np.linalg.solve(s * np.eye(len(A)) - A, B) + D)


def stabilize_coprime_factors(system: Matrices) -> tuple[Matrices, float, float, float]:
    """Return the central regulator u = K y of a continuous system, the least gamma, its own, and the residual.

    Skogestad and Postlethwaite, equations 9.66 to 9.72; feedback is positive.
    """
    A, B, C, D = system
    S, R = np.eye(B.shape[1]) + D.T @ D, np.eye(len(C)) + D @ D.T
    drift = A - B @ np.linalg.solve(S, D.T @ C)
    Q, V = C.T @ np.linalg.solve(R, C), B @ np.linalg.solve(S, B.T)
    try:
        X = np.asarray(solve_continuous_are(drift, B, Q, S), dtype=np.float64)
        Z = np.asarray(solve_continuous_are(drift.T, C.T, V, R), dtype=np.float64)
    except (np.linalg.LinAlgError, ValueError) as error:
        raise NumericalError(
            "There is no stabilizing regulator: an undamped or unstable mode is not moved by the driven inputs, or not "
            f"seen in the measured outputs ({error}). Drive another input, or measure another output."
        ) from None
    residual = max(_measure_residual(drift, Q, V, X), _measure_residual(drift.T, V, Q, Z))
    if not residual <= MAX_RICCATI_RESIDUAL:
        raise NumericalError(
            f"There is no stabilizing regulator beyond rounding: the Riccati equations are solved to {residual:.2g} "
            "only. Drive another input, or measure another output."
        )
    least = float(np.sqrt(1 + np.abs(np.linalg.eigvals(X @ Z)).max(initial=0.0)))
    gamma = GAMMA_FACTOR * least
    F = -np.linalg.solve(S, D.T @ C + B.T @ X)
    L = (1 - gamma**2) * np.eye(len(A)) + X @ Z
    injection = np.asarray(gamma**2 * np.linalg.solve(L.T, Z @ C.T), dtype=np.float64)
    return (A + B @ F + injection @ (C + D @ F), injection, B.T @ X, -D.T), least, gamma, residual


def _measure_residual(A: FloatArray, Q: FloatArray, V: FloatArray, X: FloatArray) -> float:
    """Return the residual of A' X + X A - X V X + Q = 0, relative to its terms."""
    terms = A.T @ X, X @ V @ X, Q
    residual = np.abs(terms[0] + terms[0].T - terms[1] + terms[2]).max(initial=0.0)
    return float(residual / (max(np.abs(term).max(initial=0.0) for term in terms) or 1.0))


def measure_stability_margin(plant: Matrices, regulator: Matrices, sample_time: float) -> float:
    """Return 1/max |[K; I] (I - G K)^-1 [I, G]| over the frequencies of sampled G and K in positive feedback."""
    highest = np.pi / sample_time
    rates = [np.log(np.linalg.eigvals(part[0]).astype(complex) + 1e-300) / sample_time for part in (plant, regulator)]
    near = np.abs(np.concatenate(rates).imag)
    w = np.geomspace(MIN_FREQUENCY_FACTOR * highest, highest, FREQUENCY_COUNT)
    w = np.unique(np.concatenate((w, near[(near > w[0]) & (near < highest)])))
    largest = 0.0
    for z in np.exp(1j * w * sample_time):
        G, K = _respond(plant, z), _respond(regulator, z)
        identity = np.eye(len(G))
        loop = np.vstack((K, identity)) @ np.linalg.solve(identity - G @ K, np.hstack((identity, G)))
        largest = max(largest, float(np.linalg.norm(loop, 2)))
    return 1 / largest


def _make_law(linear: LinearModel, matrices: Matrices, drives: Sequence[str], sample_time: float) -> LinearModel:
    """Return the regulator as a sampled linear model in deviations from the operating point."""
    states = Signals(Signal(f"shaped[{i}]", start=0.0) for i in range(len(matrices[0])))
    point = linear.point
    reads = Signals(s.with_start(point.outputs[s.name]) for s in linear.outputs)
    outputs = Signals(linear.inputs[linear.inputs.index_of(n)].with_start(point.inputs[n]) for n in drives)
    return linear_law("regulator", linear, matrices, (states, reads, outputs), sample_time)
