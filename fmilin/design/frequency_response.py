"""Frequency responses of nonlinear models as an instrument measures them: sine by sine, all at once, or in one sweep.

Of a sine a sin(w t) the response is the part of the output at w over a: at a finite amplitude the describing function.
It is fitted by least squares with a mean, a drift and four harmonics, over two stretches at the end of the record;
the record is doubled until they agree. A chirp starts and ends at rest, so that the Fourier integrals of output and
input divide (Ljung, System Identification, 6.3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fmilin.design.closed_loop import closed_loop
from fmilin.design.regulator_protocol import Regulator  # a protocol: arguments are compared with it
from fmilin.errors import NumericalError, UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.manifold.operating_points import operating_point
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray, RealArray, Signal, Signals, as_numbers
from fmilin.simulation.run import simulate
from fmilin.simulation.trajectory import Trajectory
from fmilin.support.implemented_in import implemented_in
from fmilin.support.kinds import kinds_checked
from fmilin.support.table_repr import Sheet, TableRepr

if TYPE_CHECKING:
    from control import StateSpace, TransferFunction
    from matplotlib.figure import Figure


Complex = NDArray[np.complex128]
Run = Callable[[Callable[[float], float], float, float], Trajectory]
HARMONIC_COUNT = 5  # fitted with a sine
PERIODS, MAX_PERIODS = 8, 512  # of the slowest sine, in the first record and in the longest
STRETCH_MISMATCH_TOLERANCE = 2e-4  # of the largest response: how far two stretches of a record may differ
SAMPLES = 24  # in a period of the fastest sine
NEGLIGIBLE_RESPONSE_SIZE = 1e-9  # of an output's size: no response


@dataclass(frozen=True, eq=False, repr=False)
class FrequencyResponse(TableRepr):
    """What :func:`frequency_response` measured."""

    _attributes = ".response, .error, .distortion, .plot(linear)"

    input: Signal  #: that was excited
    outputs: Signals  #: that were measured
    frequencies: FloatArray  #: shape (n,), in rad/s
    amplitudes: FloatArray  #: shape (k,)
    response: Complex  #: shape (outputs, n), or (k, outputs, n) where several amplitudes were asked for
    error: FloatArray  #: of the shape of ``response``: how far two stretches of the record differ
    #: of that shape: amplitude of the higher harmonics over that of the first one; NaN where not measured sine by sine
    distortion: FloatArray

    @implemented_in("fmilin.report.designs:show_response")
    def _print_table(self, page: Sheet) -> None: ...

    @implemented_in("fmilin.report.response_plots:create_measurement_figure")
    def plot(self, linear: LinearModel | None = None, *, db: bool = True) -> Figure:
        """Return magnitude and phase over frequency, with those of a linear model of the same names as lines.

        ``db=False`` draws factors instead of dB.
        """
        ...


@kinds_checked
def frequency_response(
    model: Model,
    point: OperatingPoint | None = None,
    *,
    input: str,  # noqa: A002 - the contract's name
    frequencies: Sequence[float] | RealArray,
    amplitude: float | Sequence[float],
    outputs: Sequence[str] | None = None,
    signal: Literal["sine", "multisine", "chirp"] = "sine",
    regulator: Regulator | LinearModel | StateSpace | TransferFunction | None = None,
) -> FrequencyResponse:
    """Return the response of a nonlinear model from an input to outputs, as an instrument measures it.

    Raises UsageError or UnknownNameError when frequencies or amplitudes are not positive, or a name is unknown;
    NumericalError when the response does not settle: the point is not stable.

    Parameters
    ----------
    model : Model
    point : OperatingPoint, optional
        Where it is excited, best an equilibrium; where the model starts by default.
    input : str
        An input; with a regulator that drives it, what is added to it behind the actuator.
    frequencies : sequence of float, in rad/s
    amplitude : float or sequence of float
        Of each sine, in the input's unit. Several: describing functions.
    outputs : sequence of str, optional
        States, outputs or inputs; all outputs by default.
    signal : str
        ``"sine"``: one at a time. ``"multisine"``: all together, with Schroeder's phases. ``"chirp"``: a sweep.
    regulator : regulator, optional
        Closes the loop, as in :func:`fmilin.closed_loop`.
    """
    w, sizes = as_numbers(frequencies, "One of the frequencies"), np.atleast_1d(as_numbers(amplitude, "The amplitude"))
    if (
        w.ndim != 1
        or not len(w)
        or not sizes.size
        or not all(np.isfinite(v).all() and (v > 0).all() for v in (w, sizes))
    ):
        raise UsageError("Frequencies (in rad/s) and amplitudes must be positive numbers: give at least one of each.")
    if signal not in ("sine", "multisine", "chirp"):
        raise UsageError(f"'{signal}' is not a signal to measure with: use sine, multisine or chirp.")
    point = operating_point(model) if point is None else point
    j = model.inputs.index_of(input, "an input of the model")
    names = tuple(model.outputs.names if outputs is None else outputs)
    if not names:
        raise UsageError("There is no output to measure: name at least one in 'outputs'.")
    for name in names:
        if not (model.states.has(name) or model.inputs.has(name) or model.outputs.has(name)):
            model.outputs.index_of(name, "a state, input or output of the model")
    measured: list[tuple[Any, ...]] = []
    for size in sizes:
        run = _build_excited_run(model, point, regulator, j)
        if signal == "chirp":
            measured.append(_by_chirp(run, w, float(size), names))
        elif signal == "multisine":
            measured.append(_by_sines(run, w, float(size), names))
        else:
            each = [_by_sines(run, w[i : i + 1], float(size), names) for i in range(len(w))]
            measured.append(tuple(np.concatenate(parts, axis=1) for parts in zip(*each, strict=True)))
    stacks = [np.array(parts) for parts in zip(*measured, strict=True)]
    G, error, distortion = stacks if np.ndim(amplitude) else (s[0] for s in stacks)
    groups = (model.outputs, model.states, model.inputs)
    signals = Signals(next(g[g.index_of(name)] for g in groups if g.has(name)) for name in names)
    return FrequencyResponse(model.inputs[j], signals, w, sizes, G, error.real, distortion.real)


def _build_excited_run(model: Model, point: OperatingPoint, regulator: Any, j: int) -> Run:
    """Return what runs the model under a function of the time since the start, added to its input j."""
    name, u0 = model.inputs[j].name, float(point.inputs[j])
    driven = (*getattr(regulator, "drives", ()), *getattr(regulator, "output_labels", ()))

    def run(added: Callable[[float], float], length: float, step: float) -> Trajectory:
        options: dict[str, Any] = {"stop_time": point.time + length, "step": step}
        if name in driven:
            return closed_loop(model, regulator, point, disturbances={name: lambda t: added(t - point.time)}, **options)
        options["inputs"] = {name: lambda t: u0 + added(t - point.time)}
        if regulator is None:
            return simulate(model, point, **options)
        return closed_loop(model, regulator, point, **options)

    return run


def _by_sines(run: Run, w: FloatArray, a: float, names: Sequence[str]) -> tuple[Complex, FloatArray, FloatArray]:
    """Return response, error and distortion, each (outputs, n), of sines that run together."""
    phases = -np.pi * np.arange(len(w)) * (np.arange(len(w)) - 1) / len(w)
    slowest = float(min([*np.diff(np.sort(w)), w.min()])) if len(w) > 1 else float(w[0])
    step, periods, before = 2 * np.pi / (SAMPLES * float(w.max())), PERIODS, np.inf
    while True:
        length = periods * 2 * np.pi / slowest
        ran = run(lambda t: float(a * np.sin(w * t + phases).sum()), length, step)
        t = ran.times - ran.times[0]
        values = np.column_stack([ran[name] for name in names])
        halves = [
            _fit_amplitudes(t[k], values[k], w, phases)
            for k in ((t >= length / 2) & (t <= 3 * length / 4), t >= 3 * length / 4)
        ]
        G, error = halves[1][0] / a, np.abs(halves[1][0] - halves[0][0]) / a
        sizes = NEGLIGIBLE_RESPONSE_SIZE * np.maximum(np.abs(values).max(axis=0), 1e-3) / a
        if (error <= np.maximum(STRETCH_MISMATCH_TOLERANCE * np.abs(G).max(axis=1), sizes)[:, None]).all():
            return G, error, halves[1][1]
        periods, growing, before = 2 * periods, error.max() > 2 * before, error.max()
        if periods > MAX_PERIODS or growing or not np.isfinite(values).all():
            raise _build_unsettled_error(names[int(np.argmax(error.max(axis=1)))], w.min(), length)


def _fit_amplitudes(t: FloatArray, values: FloatArray, w: FloatArray, phases: FloatArray) -> tuple[Complex, FloatArray]:
    """Return amplitudes relative to sin(w t + phase), and the share of higher harmonics, each (outputs, n)."""
    orders = range(1, HARMONIC_COUNT + 1) if len(w) == 1 else range(1, 2)
    arguments = np.hstack([np.outer(t, k * w) + k * phases for k in orders])
    basis = np.hstack(
        [np.sin(arguments), np.cos(arguments), np.ones((len(t), 1)), (t - t.mean())[:, None] / (np.ptp(t))]
    )
    weights = np.linalg.lstsq(basis, values, rcond=None)[0].T
    n, column_count = len(w), arguments.shape[1]
    parts = weights[:, :column_count] + 1j * weights[:, column_count : 2 * column_count]
    with np.errstate(divide="ignore", invalid="ignore"):
        higher = np.linalg.norm(parts[:, n:], axis=1)[:, None] / np.abs(parts[:, :n])
    return parts[:, :n], higher if n == 1 else np.full((len(values.T), n), np.nan)


def _by_chirp(run: Run, w: FloatArray, a: float, names: Sequence[str]) -> tuple[Complex, FloatArray, FloatArray]:
    low, high = float(w.min()) / 2, 2 * float(w.max())
    sweep = 2 * np.pi * PERIODS / low
    rate = np.log(high / low) / sweep
    step = 2 * np.pi / (SAMPLES * high)

    def excitation(t: float) -> float:
        fade = min(1.0, 20 * t / sweep, 20 * (sweep - t) / sweep)
        return float(a * max(fade, 0.0) * np.sin(low * (np.exp(rate * t) - 1) / rate))

    length = 2 * sweep
    while True:
        ran = run(excitation, length, step)
        t = ran.times - ran.times[0]
        values = np.column_stack([ran[name] - ran[name][0] for name in names])
        excitation_values = np.array([excitation(s) for s in t])
        kernel = np.exp(-1j * np.outer(w, t))
        U = np.trapezoid(kernel * excitation_values, t, axis=1)
        G = np.array([np.trapezoid(kernel * column, t, axis=1) / U for column in values.T])
        truncation = np.abs(values[t >= 0.95 * length]).max(axis=0)[:, None] / (w * np.abs(U))  # what the end cuts off
        if (
            truncation <= STRETCH_MISMATCH_TOLERANCE * np.abs(G).max(axis=1, keepdims=True) + NEGLIGIBLE_RESPONSE_SIZE
        ).all():
            return G, truncation, np.full(G.shape, np.nan)
        length += sweep
        if length > MAX_PERIODS / PERIODS * sweep or not np.isfinite(values).all():
            raise _build_unsettled_error(names[int(np.argmax(truncation.max(axis=1)))], low, length)


def _build_unsettled_error(name: str, w: float, length: float) -> NumericalError:
    return NumericalError(
        f"'{name}' does not settle to a motion of the input's frequency: not in {length:.4g} s at {w:.4g} rad/s. The "
        "point is unstable or hardly damped, or the response has another period. Close a loop around it (regulator=), "
        "use a smaller amplitude, or plot the linear model (lin.plot.bode())."
    )
