"""Sensors on a linear model, for any quantity that its states, inputs or outputs make; noise as a filter takes it.

With x - x0 = T (y - y0) + T_u (u - u0) a sensor s(x, u, out) is

    s - s0 = (s_x T + s_out C) (y - y0) + (s_x T_u + s_u + s_out D) (u - u0).

At an equilibrium T does not change to first order, and der(x) = T (A (y - y0) + B (u - u0)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fmilin.constraints.expression_functions import build_function, find_expression_turn
from fmilin.constraints.expressions import Expression, parse
from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.model.interface import Model
from fmilin.signals import FloatArray, RealArrayLike, Signal, Signals, as_numbers, rate_unit
from fmilin.support.kinds import kinds_checked
from fmilin.tolerances import CANCELLATION_TOLERANCE, EQUILIBRIUM_RATE_TOLERANCE


@kinds_checked
def measurement(linear: LinearModel, sensors: Sequence[str] | Mapping[str, str]) -> LinearModel:
    """Return the linear model with sensors as its outputs.

    Parameters
    ----------
    linear : LinearModel, continuous
    sensors : sequence of str, or mapping of str to str
        Expressions over states (dependent ones too), inputs, outputs and, at an equilibrium, rates ``der(state)``; as a
        mapping under names of their own: ``{"gyro": "u4*cos(q3)", "tip": "l*sin(phi)"}``.

    Raises
    ------
    UsageError
        When an expression cannot be read, or the model is sampled.
    UnknownNameError
        When it contains an unknown name.
    NumericalError
        When a sensor has no finite value or slope at the point, or rates are asked for away from an equilibrium.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.systems import cartesian_pendulum
    >>> lin = fl.linearize(cartesian_pendulum(angle=0.5), independent=["x", "vx"])
    >>> fl.design.measurement(lin, {"height": "y"}).C.round(6)
    array([[0.546302, 0.      ]])
    """
    if linear.sample_time:
        raise UsageError(
            "Sensors must be added before a model is sampled: its states may have another meaning afterwards."
        )
    named = dict(sensors) if isinstance(sensors, Mapping) else {text: text for text in sensors}
    if isinstance(sensors, str) or not named:
        raise UsageError(
            "'sensors' must be a sequence of expressions, or a mapping of names to them, with at least one."
        )
    variables = _SensorVariables(linear)
    rows = [variables.row(name, parse(text)) for name, text in named.items()]
    C, D = (np.array([row[i] for row in rows]) for i in (0, 1))
    errors = replace(linear.errors, C=np.array([row[2] for row in rows]), D=np.array([row[3] for row in rows]))
    values = {name: row[4] for name, row in zip(named, rows, strict=True)}
    outputs = Signals(variables.signal(name, text, values[name]) for name, text in named.items())
    point = replace(linear.point, outputs=values)
    return replace(
        linear, C=C, D=D, errors=errors, outputs=outputs, point=point, descriptor=None, derivatives={}, discrete=None
    )


_SensorRow = tuple[FloatArray, FloatArray, FloatArray, FloatArray, float]
"""Of C and D, of their errors, and the value at the point."""


class _SensorVariables:
    """The variables of a linear model: value at the point, and how each depends on y and u."""

    def __init__(self, linear: LinearModel) -> None:
        self.linear, point = linear, linear.point
        self._variables: dict[str, tuple[Signal, _SensorRow]] = {}
        E = linear.errors
        (P, nu), zero_u = linear.B.shape, np.zeros_like(linear.T_u)
        nothing = np.zeros((nu, P))
        groups = (
            (linear.outputs, linear.C, linear.D, E.C, E.D, point.outputs),
            (linear.inputs, nothing, np.eye(nu), nothing, np.zeros((nu, nu)), point.inputs),
            (linear.full_states, linear.T, linear.T_u, E.T, zero_u, point.states),
        )
        for signals, C, D, EC, ED, values in groups:
            for i, signal in enumerate(signals):
                row = (C[i], D[i], EC[i], ED[i], float(values.get(signal.name, signal.start)))
                negative = (-C[i], -D[i], EC[i], ED[i], -row[-1])
                for name in (signal.name, *signal.aliases):
                    if name in signals.positions:
                        self._variables[name] = (signal, row)
                    else:
                        self._variables.setdefault(name.removeprefix("-"), (signal, negative))

    def row(self, name: str, expression: Expression) -> _SensorRow:
        rows = {variable: self._variable(variable)[1] for variable in expression.names}
        value, slopes = _slopes(expression, {variable: row[4] for variable, row in rows.items()})
        if not np.isfinite([value, *slopes.values()]).all():
            raise NumericalError(f"The sensor '{name}' has no finite value or derivative at the operating point.")
        P, nu = self.linear.B.shape
        parts = [np.zeros(P), np.zeros(nu), np.zeros(P), np.zeros(nu)]
        for variable, slope in slopes.items():
            for i, part in enumerate(rows[variable][:4]):
                parts[i] = parts[i] + (slope if i < 2 else abs(slope)) * part
        return parts[0], parts[1], parts[2], parts[3], value

    def signal(self, name: str, text: str, value: float) -> Signal:
        expression = parse(text)
        if not expression.is_variable:
            return Signal(name, start=value, description=text, turn=find_expression_turn(expression))
        variable = self._variable(expression.names[0])[0]
        return replace(variable, name=name, aliases=(), start=value)

    def _variable(self, name: str) -> tuple[Signal, _SensorRow]:
        if name in self._variables:
            return self._variables[name]
        if name.startswith("der(") and name.endswith(")") and self.linear.full_states.has(name[4:-1]):
            return self._rate(name)
        raise UnknownNameError.among(name, self._variables, "a state, input or output of the linear model")

    def _rate(self, name: str) -> tuple[Signal, _SensorRow]:
        linear = self.linear
        i = linear.full_states.index_of(name[4:-1])
        sizes = linear.states.scales(linear.y0)
        moving = float(np.max(np.abs(linear.f0) / sizes, initial=0.0))
        if moving > EQUILIBRIUM_RATE_TOLERANCE:
            raise NumericalError(
                f"'{name}' cannot be computed from a linear model at a point in motion (its fastest rate is "
                f"{moving:.3g}), where T changes. Declare it as an output of the model."
            )
        t, E = linear.T[i], linear.errors
        row = t @ linear.A, t @ linear.B, np.abs(t) @ E.A + E.T[i] @ np.abs(linear.A), np.abs(t) @ E.B, 0.0
        state = linear.full_states[i]
        return Signal(name, rate_unit(state.unit)), row


def _slopes(expression: Expression, values: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    """Return the value of an expression and its partial derivatives, exact."""
    functions, at = build_function(expression), np.array([values[name] for name in expression.names])
    return float(functions.values(at)[0]), dict(zip(expression.names, functions.jacobian(at)[0].tolist(), strict=True))


def factor_covariance(matrix: RealArrayLike, shape: int, what: str) -> FloatArray:
    """Return F with F F' = matrix, symmetric and positive semidefinite, (n, n)."""
    M = as_numbers(matrix, what)
    if M.shape != (shape, shape):
        raise UsageError(f"{what} has the shape {M.shape}; a square matrix of the shape {(shape, shape)} is needed.")
    if not np.isfinite(M).all() or not np.allclose(M, M.T, rtol=1e-9, atol=0):
        raise UsageError(f"{what} is not symmetric, or contains entries that are not finite numbers.")
    # Variances in units that differ by many orders would lose the small ones: decompose the correlations.
    sizes = np.sqrt(np.maximum(np.diag(M), 0.0))
    sizes = np.where(sizes > 0, sizes, 1.0)
    values, vectors = np.linalg.eigh((M + M.T) / 2 / np.outer(sizes, sizes))
    if (values < -1e-12 * max(float(np.abs(values).max(initial=0.0)), 1e-300)).any():
        least = np.linalg.eigvalsh((M + M.T) / 2)[0]
        raise UsageError(f"{what} is not positive definite: its smallest eigenvalue is {least:.3g}.")
    return np.asarray(sizes[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))


def process_directions(
    model: Model, noise: Mapping[str, float] | RealArrayLike, augment_model: Sequence[str], *, holds_noise: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Return directions of the states' rates (N, k) and of inputs (nu, k), times roots of spectral densities.

    With ``holds_noise`` those of inputs are times roots of variances, and stand first.
    """
    N, nu = len(model.states), len(model.inputs)
    what = "variance" if holds_noise else "spectral density"
    if not isinstance(noise, Mapping):
        U = factor_covariance(noise, nu, f"The {what} of the process noise")
        return np.zeros((N, nu)), U
    for name, value in noise.items():
        if not (np.isfinite(as_numbers(value, f"The process noise of '{name}'")) and value >= 0):
            raise UsageError(f"The process noise of '{name}' is {value:g}: a {what} must be finite and 0 or more.")
    names = sorted(noise, key=lambda name: name in augment_model)
    X, U = np.zeros((N, len(noise))), np.zeros((nu, len(noise)))
    for k, name in enumerate(names):
        root = np.sqrt(noise[name])
        if name in augment_model:
            X[model.states.index_of(name), k] = root
        else:
            U[model.inputs.index_of(name, "an input, or a parameter or bias that is estimated"), k] = root
    return X, U


def measurement_covariance(outputs: Signals, noise: Mapping[str, float] | RealArrayLike) -> FloatArray:
    """Return R, shape (m, m), positive definite."""
    m = len(outputs)
    if not isinstance(noise, Mapping):
        R = as_numbers(noise, "The measurement noise")
        F = factor_covariance(R, m, "The covariance of the measurement noise")
        if (np.linalg.norm(F, axis=0) == 0).any():
            raise UsageError(
                "The covariance of the measurement noise is singular: every output needs measurement noise."
            )
        return R
    R = np.zeros((m, m))
    for name, value in noise.items():
        if not (np.isfinite(as_numbers(value, f"The variance of '{name}'")) and value > 0):
            raise UsageError(f"The variance of '{name}' is {value:g}: it must be finite and positive.")
        i = outputs.index_of(name, "a measured output")
        R[i, i] = value
    if missing := [n for n, v in zip(outputs.names, np.diag(R), strict=True) if v == 0]:
        chosen = [name for name in outputs.names if name not in missing]
        omission = f", or leave out what is not measured, as by outputs={chosen}" if chosen else ""
        raise UsageError(f"No variance is given for {', '.join(missing)}, which the filter reads. Add it{omission}.")
    return R


def initial_factor(
    states: Signals, T: FloatArray, independent: Sequence[int], covariance: Mapping[str, float] | RealArrayLike
) -> FloatArray:
    """Return a factor S (P, P) of the covariance at the start.

    As a matrix it is that of the coordinates. Variances of states are guesses, each by itself, and the manifold
    joins them: (T' diag(1/variance) T)^-1.
    """
    P = T.shape[1]
    if not isinstance(covariance, Mapping):
        M = as_numbers(covariance, "The initial covariance")
        if M.ndim != 1 or len(M) != len(states):
            return factor_covariance(M, P, "The initial covariance")
        covariance = dict(zip(states.names, M.tolist(), strict=True))
    rows = []
    for name, value in covariance.items():
        if not (np.isfinite(as_numbers(value, f"The initial variance of '{name}'")) and value > 0):
            raise UsageError(f"The initial variance of '{name}' is {value:g}: it must be finite and positive.")
        row = T[states.index_of(name, "a state of the model")]
        # Rounding of a dependent state's derivatives says nothing of a coordinate.
        row = np.where(np.abs(row) > CANCELLATION_TOLERANCE * np.abs(row).max(initial=0.0), row, 0.0)
        rows.append(row / np.sqrt(value))
    J = np.array(rows).reshape(len(rows), P)
    sizes = np.linalg.norm(J, axis=0)
    values = np.linalg.svd(J / np.where(sizes > 0, sizes, 1.0), compute_uv=False)
    if len(rows) < P or not (sizes > 0).all() or values[-1] < 1e-9 * values[0]:
        raise UsageError(
            "The initial variances do not determine every direction: give one for each of "
            f"{', '.join(states.names[k] for k in independent)}, or for enough other states."
        )
    information = J.T @ J
    return np.asarray(np.linalg.cholesky(np.linalg.inv(information)))


def require_vector(values: RealArrayLike, signals: Signals, what: str) -> FloatArray:
    """Return one finite number for each signal, shape (n,); reject anything else."""
    numbers = as_numbers(values, what)
    if numbers.shape != (len(signals),) or not np.isfinite(numbers).all():
        raise UsageError(
            f"{what} is {np.asarray(values).tolist()}: {len(signals)} finite numbers are needed, for "
            f"{', '.join(signals.names) or 'no signals'}."
        )
    return numbers
