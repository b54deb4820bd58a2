"""Parameters of a model from a measured frequency response: least squares on G(jw) over parameters.

dG = dC X + Y (dA X + dB) + dD with X = (jw - A)^-1 B, Y = C (jw - A)^-1, the point following.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmilin.ground.errors import NumericalError, UsageError
from fmilin.ground.signals import FloatArray
from fmilin.ground.verbs import Shown
from fmilin.linear_model.model import LinearModel
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.visits import one_at_a_time
from fmilin.points.uncertainty import Box, VariedModel

UNDETERMINED = 1e-7  # of the largest singular value of the slopes: a combination of parameters that changes nothing
POOR = 0.05  # relative difference (root of the mean square) that asks for other starts
STARTS = 8  # points of the box from which a fit is tried then


@dataclass(frozen=True, eq=False, repr=False)
class IdentifiedParameters(Shown):
    """Parameters with which a linear model's response is nearest to a measured one; printed, they are a sentence."""

    parameters: dict[str, float]  #: each in its unit
    deviations: dict[str, float]  #: standard deviations of them, as far as what is left of the response is noise
    linear: LinearModel  #: with these parameters
    residual: float  #: root of the mean square of (G - measured) times the weights, without unit by default

    def __str__(self) -> str:
        values = (f"{name} = {v:.6g} +- {self.deviations[name]:.2g}" for name, v in self.parameters.items())
        return f"{', '.join(values)}; what is left of the response is {self.residual:.3g} (root of the mean square)."


@one_at_a_time
def identified_parameters(
    model: Model,
    parameters: Box,
    frequencies: ArrayLike,
    response: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    point: OperatingPoint | None = None,
) -> IdentifiedParameters:
    """Return the parameters with which the linear model of a model has the response that was measured.

    Parameters
    ----------
    model : Model
        Continuous, with parameters that can be changed; a fit begins at their values. All its channels were measured:
        ``model.with_interface(inputs, outputs)`` has some.
    parameters : mapping of str to (float, float)
        Lowest and highest value of each, in its unit.
    frequencies : array, shape (k,), in rad/s
    response : complex array, shape (ny, nu, k), or (k,) of one channel
        In units of outputs per unit of inputs.
    weights : array of the shape of ``response``, optional
        1 / abs(response) by default: differences count relatively. Zero leaves a value out.
    point : OperatingPoint, optional
        Where the model starts, for None. A trimmed point stays trimmed, any other one keeps its independent states.

    Raises
    ------
    UsageError, UnknownNameError
        When shapes do not fit, a range is none, or there is no such parameter.
    NumericalError
        When the response does not tell some parameters apart.

    Examples
    --------
    >>> import numpy as np, fmilin as fl
    >>> from fmilin.models.ode import OdeModel
    >>> lag = OdeModel("lag", {"y": "(u - y)/T"}, inputs=["u"], parameters={"T": 1.0}, outputs={"out": "y"})
    >>> w = np.array([0.1, 1.0, 10.0])
    >>> fit = fl.design.identified_parameters(lag, {"T": (0.1, 10)}, w, 1 / (1 + 2j * w))
    >>> round(fit.parameters["T"], 6)
    2.0
    """
    from scipy.optimize import least_squares

    varied, w = VariedModel(model, point, parameters), np.asarray(frequencies, dtype=np.float64)
    start = varied.linear({})
    measured, weight = _measured(start, w, response, weights)

    def differences(q: FloatArray) -> FloatArray:
        return _flat((_response(varied.linear(varied.values(q), derivatives=False), w)[0] - measured) * weight)

    def slopes(q: FloatArray) -> FloatArray:
        by_parameters = _response(varied.linear(varied.values(q)), w)[1]
        return np.array([half * _flat(d * weight) for half, d in zip(varied.half, by_parameters, strict=True)]).T

    best: Any = None
    random, count = np.random.default_rng(34), int(np.count_nonzero(weight))
    for q in [np.clip(varied.q_of(start), -1.0, 1.0), *random.uniform(-0.9, 0.9, (STARTS, len(parameters)))]:
        fit = least_squares(differences, q, slopes, bounds=(-1, 1), xtol=1e-12, ftol=1e-12, gtol=1e-12)
        best = fit if best is None or fit.cost < best.cost else best
        if 2 * best.cost <= POOR**2 * count:
            break
    J = slopes(best.x)
    _, values, directions = np.linalg.svd(J, full_matrices=False)
    if values[-1] <= UNDETERMINED * values[0]:
        alike = [name for name, part in zip(parameters, directions[-1], strict=True) if abs(part) > 1e-2]
        raise NumericalError(
            f"The response does not determine {', '.join(alike)}: it stays as it is for some change of "
            f"{'them together' if len(alike) > 1 else 'it'}. Fix one of them, or measure another channel.",
            variable=alike[0],
        )
    variances = np.diag(np.linalg.inv(J.T @ J)) * 2 * best.cost / max(2 * count - len(best.x), 1)
    deviations = dict(zip(parameters, (np.sqrt(variances) * varied.half).tolist(), strict=True))
    chosen = varied.values(best.x)
    return IdentifiedParameters(chosen, deviations, varied.linear(chosen), float(np.sqrt(2 * best.cost / count)))


def _measured(linear: LinearModel, w: FloatArray, response: ArrayLike, weights: ArrayLike | None) -> tuple[Any, Any]:
    """Return the response and its weights, (k, ny, nu)."""
    shape, given = (len(linear.outputs), len(linear.inputs), w.size), np.asarray(response, dtype=np.complex128)
    if w.ndim != 1 or given.shape not in (shape, shape[2:] if shape[:2] == (1, 1) else shape) or not given.size:
        raise UsageError(
            f"A response of shape {given.shape} does not fit {shape[0]} outputs, {shape[1]} inputs and {w.size} "
            "frequencies, in this order. Choose what was measured with model.with_interface(inputs, outputs)."
        )
    with np.errstate(divide="ignore"):
        size = 1 / np.abs(given) if weights is None else np.asarray(weights, float)
    size = np.where(given == 0, 0.0, size) if weights is None else size
    if size.shape != given.shape or not (np.isfinite(given).all() and np.isfinite(size).all() and size.any()):
        raise UsageError("Response and weights are finite numbers of one shape, and not all weights are zero.")
    return np.moveaxis(given.reshape(shape), -1, 0), np.moveaxis(size.reshape(shape), -1, 0)


def _response(linear: LinearModel, w: FloatArray) -> tuple[Any, list[Any]]:
    """Return G, (k, ny, nu), and its derivatives by parameters."""
    pencil = 1j * w[:, None, None] * np.eye(len(linear.A)) - linear.A
    X = np.linalg.solve(pencil, linear.B)
    Y = np.swapaxes(np.linalg.solve(np.swapaxes(pencil, 1, 2), linear.C.T), 1, 2)
    slopes = [d.C @ X + Y @ (d.A @ X + d.B) + d.D for d in linear.derivatives.values()]
    return linear.C @ X + linear.D, slopes


def _flat(values: NDArray[np.complex128]) -> FloatArray:
    return np.concatenate((values.real.ravel(), values.imag.ravel()))
