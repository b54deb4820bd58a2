"""Parameters of a model: those that put its modes where they are wanted, and those that a measured response tells.

With q the parameters in halves of their ranges and c(q) the margins by which goals are met,

    min |q - q_0|^2 / 2   subject to   c(q) >= 0,   and where that fails   min s   subject to   c(q) + s >= 0,

both by sequential quadratic programming (Kraft: SLSQP) on exact derivatives of eigenvalues. Each eigenvalue is followed
from point to point by what its derivatives predict, in short steps.

dG = dC X + Y (dA X + dB) + dD with X = (jw - A)^-1 B, Y = C (jw - A)^-1, the point following.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Number
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize
from scipy.optimize import least_squares, linear_sum_assignment

from fmilin.errors import NumericalError, UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.linearize import linearize_request
from fmilin.linearization.request import Request
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.locks import one_at_a_time
from fmilin.options import Linearization
from fmilin.options.function_options import BoxOptions, takes_linearization
from fmilin.signals import FloatArray, as_numbers
from fmilin.support.implemented_in import implemented_in
from fmilin.support.kinds import require_field_kinds
from fmilin.support.table_repr import Sheet, TableRepr
from fmilin.trimming.uncertainty import Box, VariedModel

Complex = NDArray[np.complex128]

MAX_TRACKING_STEP = 0.2  # longest step of q in which eigenvalues are followed
GOAL_TOLERANCE = (
    1e-7  # by which goals are overfulfilled, in their own sizes: the optimizer keeps its constraints to rounding
)
RANDOM_START_COUNT = 4  # random points from which goals are tried, where they are not met from the given one
ZERO_EIGENVALUE_TOLERANCE = (
    1e-7  # of the largest eigenvalue: one below that, alone or in a group that rounding spreads, is zero
)


@dataclass(frozen=True, kw_only=True)
class ModeGoal:
    """The requirements on one mode, or on all of them."""

    near: complex | None = None  #: in 1/s, an eigenvalue of the model as it is, which is followed; all modes without
    damping: float | None = None  #: the smallest ratio -Re / modulus, without unit
    decay: float | None = None  #: the slowest, -Re in 1/s
    frequency: tuple[float, float] | None = None  #: the lowest and highest modulus, in rad/s

    def __post_init__(self) -> None:
        require_field_kinds(self)
        if self.near is not None and not _is_finite_complex(self.near):
            raise UsageError("A goal is near an eigenvalue of the model: give a finite complex number, in 1/s (near=).")
        numbers = {"damping": self.damping, "decay": self.decay}
        if infinite := [name for name, value in numbers.items() if value is not None and not np.isfinite(value)]:
            raise UsageError(f"The {infinite[0]} of a goal must be finite, not {numbers[infinite[0]]}.")
        if self.frequency is not None:
            limits = as_numbers(self.frequency, "A frequency of a goal")
            if limits.shape != (2,) or not 0 <= limits[0] <= limits[1]:
                raise UsageError(
                    f"The frequencies of a goal are {self.frequency!r}: give the lowest and the highest, in rad/s."
                )
        if self.damping is None and self.decay is None and self.frequency is None:
            raise UsageError("A goal has no number: give damping=, decay= or frequency=(lowest, highest).")


def _is_finite_complex(value: object) -> bool:
    if not isinstance(value, Number):
        return False
    try:
        return bool(np.isfinite(complex(value)))  # type: ignore[call-overload]
    except OverflowError:
        return False


@dataclass(frozen=True, eq=False, repr=False)
class PlacedModes(TableRepr):
    """Parameters that meet goals; printed, it says what changed."""

    _attributes = ".parameters, .before, .linear, .modes"

    parameters: dict[str, float]  #: each in its unit
    before: dict[str, float]  #: what they were
    linear: LinearModel  #: made anew with them
    modes: tuple[tuple[complex, complex], ...]  #: the eigenvalues that goals are about, before and after, in 1/s

    @implemented_in("fmilin.report.designs:show_sentence")
    def _print_table(self, page: Sheet) -> None: ...

    def __str__(self) -> str:
        changes = (f"{n} = {v:.6g} (was {self.before[n]:.6g})" for n, v in self.parameters.items())
        return f"{', '.join(changes)}: {'; '.join(f'{a:.4g} became {b:.4g}' for a, b in self.modes)}."


@one_at_a_time
@takes_linearization
def place_modes(
    model: Model,
    parameters: Box,
    goals: Sequence[ModeGoal] | ModeGoal,
    point: OperatingPoint | None = None,
    *,
    linearization: Linearization | None = None,
    **options: Unpack[BoxOptions],
) -> PlacedModes:
    """Return the parameters nearest to those of a model, in sizes of their ranges, with which its modes meet goals.

    Parameters
    ----------
    model : Model
        Continuous, with parameters that can be changed.
    parameters : mapping of str to (float, float)
        Lowest and highest value of each, in its unit.
    goals : ModeGoal or sequence of ModeGoal
        ``ModeGoal(near=-0.4 + 3.9j, damping=0.1)`` is about the mode with the eigenvalue nearest to ``near`` in the
        model as it is, and is followed from there; without ``near`` about all modes.
    point : OperatingPoint, optional
        Where the model starts, for None. A trimmed point stays trimmed, any other one keeps its independent states.
    linearization : Linearization, optional
        How the model is linearized; its options may be keywords instead.

    Raises
    ------
    UsageError, UnknownNameError
        When a range or a goal is not valid, or a parameter is unknown.
    NumericalError
        When no parameters were found that meet the goals: how near one came, with which. The search is local, from the
        given parameters and four other points of the box.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.models.ode import OdeModel
    >>> cart = OdeModel("cart", {"s": "v", "v": "-k*s - d*v"}, parameters={"k": 4.0, "d": 0.1})
    >>> placed = fl.design.place_modes(cart, {"d": (0.0, 5.0)}, fl.design.ModeGoal(damping=0.5))
    >>> round(placed.parameters["d"], 5)  # 2 * 0.5 * sqrt(4)
    2.0
    """
    goals = [goals] if isinstance(goals, ModeGoal) else list(goals)
    if other := [goal for goal in goals if not isinstance(goal, ModeGoal)]:
        raise UsageError(
            f"A goal is of the type '{type(other[0]).__name__}': give fl.design.ModeGoal(near=..., damping=...)."
        )
    request = Request.of("place_modes", linearization, options)
    varied = VariedModel(model, point, parameters, request)
    start = linearize_request(model, varied.point, replace(request, parameters=tuple(parameters)))
    goal_modes = [(g, i) for g in goals for i in _select_eigenvalues(g, start.eigenvalues())]
    if not goal_modes:
        raise UsageError("No goal or no mode was given: give fl.design.ModeGoal(near=..., damping=...) or several.")
    search = _PlacementSearch(varied, start, goal_modes)
    q = search.run()
    linear = linearize_request(*varied.at(varied.values(q)), request)
    after = linear.eigenvalues()[_match_eigenvalues(search.follow_eigenvalues(q)[1], linear.eigenvalues())]
    if any(m < 0 for g, i in goal_modes for _, m, _ in _margins(g, after[i], after[:0], search.unit[i])):
        raise NumericalError(f"Linearized anew with {varied.values(q)} the model misses its goals: take a smaller box.")
    modes = tuple((complex(start.eigenvalues()[i]), complex(after[i])) for _, i in goal_modes)
    return PlacedModes(varied.values(q), varied.values(varied.read_parameters(start)), linear, modes)


def _select_eigenvalues(goal: ModeGoal, values: Complex) -> list[int]:
    """Return the eigenvalues that a goal is about, one of each pair."""
    if goal.near is not None:
        return [int(i) for i in np.argsort(np.abs(values - complex(goal.near.real, abs(goal.near.imag))))[:1]]
    if (np.abs(values) <= ZERO_EIGENVALUE_TOLERANCE * np.abs(values).max(initial=0.0)).any():
        raise UsageError(
            "An eigenvalue is zero, so a goal for all modes cannot be met. Name the mode of the goal: "
            "ModeGoal(near=...)."
        )
    return [int(i) for i in np.flatnonzero(values.imag >= 0)]


def _margins(goal: ModeGoal, value: complex, slopes: Complex, unit: float) -> list[tuple[str, float, Any]]:
    """Return each number in words, by how much it is met (relative to ``unit`` where in 1/s), and its derivatives."""
    size = max(abs(value), 1e-300)
    along, ratio = (np.conj(value) * slopes).real / size, -value.real / size
    goal_margins: list[tuple[str, float, Any]] = []
    if goal.damping is not None:
        goal_margins.append((f"damping {ratio + 0.0:.4g}", ratio - goal.damping, -(slopes.real + ratio * along) / size))
    if goal.decay is not None:
        goal_margins.append((f"decay {0.0 - value.real:.4g}", (-value.real - goal.decay) / unit, -slopes.real / unit))
    for sign, limit in zip((1, -1), goal.frequency or (), strict=False):
        goal_margins.append((f"frequency {size:.4g}", sign * (size - limit) / unit, sign * along / unit))
    return goal_margins


def _match_eigenvalues(predicted: Complex, values: Complex) -> NDArray[np.intp]:
    """Return which of ``values`` is nearest to each predicted one, all of them taken once."""
    return np.asarray(linear_sum_assignment(np.abs(predicted[:, None] - values))[1])


class _PlacementSearch:
    """The optimization, and the eigenvalues on its way: q, values (P,), derivatives (P, parameters) by q."""

    def __init__(self, varied: VariedModel, start: LinearModel, goal_modes: Sequence[tuple[ModeGoal, int]]) -> None:
        self.varied, self.goal_modes = varied, goal_modes
        first = varied.read_parameters(start), start.eigenvalues(), start.eigenvalue_derivatives() * varied.half
        self.evaluations, self.q0 = [first], np.clip(first[0], -1.0, 1.0)
        self.unit = np.maximum(np.abs(first[1]), 1e-300)

    def follow_eigenvalues(self, q: FloatArray) -> tuple[FloatArray, Complex, Complex]:
        """Return the eigenvalues at q, by short steps from the nearest point that was evaluated."""
        last = min(self.evaluations, key=lambda evaluation: float(np.linalg.norm(evaluation[0] - q)))
        steps = int(np.ceil(np.linalg.norm(q - last[0]) / MAX_TRACKING_STEP))
        for target in np.linspace(last[0], q, steps + 1)[1:]:
            linear = self.varied.linear(self.varied.values(target))
            order = _match_eigenvalues(last[1] + last[2] @ (target - last[0]), linear.eigenvalues())
            slopes = linear.eigenvalue_derivatives() * self.varied.half
            last = target, linear.eigenvalues()[order], slopes[order]
            self.evaluations.append(last)
        return last

    def margins(self, q: FloatArray) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
        """Return all numbers in words, the margins by which they are met, and the derivatives of these by q."""
        _, values, slopes = self.follow_eigenvalues(q)
        goal_margins = [t for g, i in self.goal_modes for t in _margins(g, complex(values[i]), slopes[i], self.unit[i])]
        words, met, along = zip(*goal_margins, strict=True)
        return words, np.array(met) - GOAL_TOLERANCE, np.array(along)

    def run(self) -> FloatArray:
        """Return the q that meets the goals, or say how near one came."""
        best = self.minimize_distance(self.q0, missing=False)
        for start in [self.q0, *np.random.default_rng(34).uniform(-1, 1, (RANDOM_START_COUNT, len(self.q0)))]:
            if self.least(best) < -GOAL_TOLERANCE:
                best = max(best, self.minimize_distance(start, missing=True), key=self.least)
                best = max(
                    self.minimize_distance(best, missing=False), best, key=lambda q: min(self.least(q), -GOAL_TOLERANCE)
                )
        if self.least(best) >= -GOAL_TOLERANCE:
            return best
        words, met, _ = self.margins(best)
        at = [f"{name} = {value:.6g}" for name, value in self.varied.values(best).items()]
        at = [t + " (the end of its range)" if abs(x) > 1 - 1e-6 else t for t, x in zip(at, best, strict=True)]
        raise NumericalError(
            "No parameters in their ranges were found that meet the goals. The closest is "
            f"{', '.join((w for w, m in zip(words, met, strict=True) if m < -GOAL_TOLERANCE))} with {', '.join(at)}. "
            "Widen a range, let another parameter vary (lin.plot.sensitivities() shows which moves the mode), or "
            "relax a goal."
        )

    def least(self, q: FloatArray) -> float:
        """Return the margin of what is met least."""
        return float(self.margins(q)[1].min())

    def minimize_distance(self, start: FloatArray, *, missing: bool) -> FloatArray:
        """Return the nearest q that meets the goals, or with ``missing`` one that misses them least."""
        minimize: Any = optimize.minimize

        def cost(z: FloatArray) -> tuple[float, FloatArray]:
            away = z[:-1] - self.q0
            if missing:
                return float(z[-1]), np.append(0 * away, 1.0)
            return float(away @ away) / 2, np.append(away, 0.0)

        def slopes(z: FloatArray) -> FloatArray:
            along = self.margins(z[:-1])[2]
            return np.column_stack((along, np.ones(len(along))))

        slack = max(-self.least(start), 0.0) if missing else 0.0
        constraint = {"type": "ineq", "fun": lambda z: self.margins(z[:-1])[1] + z[-1], "jac": slopes}
        bounds, options = [*[(-1.0, 1.0)] * len(start), (0.0, slack)], {"ftol": 1e-9}
        z = np.append(start, slack)
        solution = minimize(cost, z, jac=True, bounds=bounds, constraints=constraint, method="SLSQP", options=options)
        return np.asarray(np.clip(solution.x[:-1], -1.0, 1.0), dtype=np.float64)


UNDETERMINED_DIRECTION_TOLERANCE = (
    1e-7  # of the largest singular value of the derivatives: a combination of parameters that changes nothing
)
POOR_FIT_TOLERANCE = 0.05  # relative difference (root of the mean square) that asks for other starts
RESTART_COUNT = 8  # points of the box from which a fit is tried then


@dataclass(frozen=True, eq=False, repr=False)
class IdentifiedParameters(TableRepr):
    """Parameters with which a linear model's response is nearest to a measured one; printed, they are a sentence."""

    _attributes = ".parameters, .deviations, .linear, .residual"

    parameters: dict[str, float]  #: each in its unit
    deviations: dict[str, float]  #: standard deviations of them, as far as what is left of the response is noise
    linear: LinearModel  #: with these parameters
    residual: float  #: root of the mean square of (G - measured) times the weights, without unit by default

    @implemented_in("fmilin.report.designs:show_sentence")
    def _print_table(self, page: Sheet) -> None: ...

    def __str__(self) -> str:
        values = (f"{name} = {v:.6g} +- {self.deviations[name]:.2g}" for name, v in self.parameters.items())
        return f"{', '.join(values)}; the residual of the response is {self.residual:.3g} (root mean square)."


@one_at_a_time
@takes_linearization
def identified_parameters(
    model: Model,
    parameters: Box,
    frequencies: ArrayLike,
    response: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    point: OperatingPoint | None = None,
    linearization: Linearization | None = None,
    **options: Unpack[BoxOptions],
) -> IdentifiedParameters:
    """Return the parameters with which the linear model of a model has the response that was measured.

    Raises UsageError or UnknownNameError when shapes do not fit, a range is not valid, or a parameter is unknown;
    NumericalError when the response does not tell some parameters apart.

    Parameters
    ----------
    model : Model
        Continuous, with parameters that can be changed; a fit begins at their values. All its channels were measured,
        unless ``inputs`` and ``outputs`` name some.
    parameters : mapping of str to (float, float)
        Lowest and highest value of each, in its unit.
    frequencies : array, shape (k,), in rad/s
    response : complex array, shape (ny, nu, k), or (k,) of one channel
        In units of outputs per unit of inputs.
    weights : array of the shape of ``response``, optional
        1 / abs(response) by default: differences count relatively. Zero leaves a value out.
    point : OperatingPoint, optional
        Where the model starts, for None. A trimmed point stays trimmed, any other one keeps its independent states.
    linearization : Linearization, optional
        How the model is linearized; its options may be keywords instead. ``inputs`` and ``outputs`` say which channels
        were measured.

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
    request = Request.of("identified_parameters", linearization, options)
    varied, w = VariedModel(model, point, parameters, request), as_numbers(frequencies, "One of the frequencies")
    start = varied.linear({})
    measured, weight = _arrange_response(start, w, response, weights)

    def differences(q: FloatArray) -> FloatArray:
        return _flat((_response(varied.linear(varied.values(q), derivatives=False), w)[0] - measured) * weight)

    def slopes(q: FloatArray) -> FloatArray:
        by_parameters = _response(varied.linear(varied.values(q)), w)[1]
        return np.array([half * _flat(d * weight) for half, d in zip(varied.half, by_parameters, strict=True)]).T

    best: Any = None
    random, count = np.random.default_rng(34), int(np.count_nonzero(weight))
    for q in [
        np.clip(varied.read_parameters(start), -1.0, 1.0),
        *random.uniform(-0.9, 0.9, (RESTART_COUNT, len(parameters))),
    ]:
        fit = least_squares(differences, q, slopes, bounds=(-1, 1), xtol=1e-12, ftol=1e-12, gtol=1e-12)
        best = fit if best is None or fit.cost < best.cost else best
        if 2 * best.cost <= POOR_FIT_TOLERANCE**2 * count:
            break
    J = slopes(best.x)
    _, values, directions = np.linalg.svd(J, full_matrices=False)
    if values[-1] <= UNDETERMINED_DIRECTION_TOLERANCE * values[0]:
        alike = [name for name, part in zip(parameters, directions[-1], strict=True) if abs(part) > 1e-2]
        raise NumericalError(
            f"The response does not determine {', '.join(alike)}: it is insensitive to some change of "
            f"{'them together' if len(alike) > 1 else 'it'}. Fix one of them, or measure another channel.",
            variable=alike[0],
        )
    variances = np.diag(np.linalg.inv(J.T @ J)) * 2 * best.cost / max(2 * count - len(best.x), 1)
    deviations = dict(zip(parameters, (np.sqrt(variances) * varied.half).tolist(), strict=True))
    chosen = varied.values(best.x)
    return IdentifiedParameters(chosen, deviations, varied.linear(chosen), float(np.sqrt(2 * best.cost / count)))


def _arrange_response(
    linear: LinearModel, w: FloatArray, response: ArrayLike, weights: ArrayLike | None
) -> tuple[Any, Any]:
    """Return the response and its weights, (k, ny, nu)."""
    shape = len(linear.outputs), len(linear.inputs), w.size
    response_values = np.asarray(response, dtype=np.complex128)
    if (
        w.ndim != 1
        or response_values.shape not in (shape, shape[2:] if shape[:2] == (1, 1) else shape)
        or not response_values.size
    ):
        raise UsageError(
            f"A response of shape {response_values.shape} does not fit {shape[0]} outputs, {shape[1]} inputs and "
            f"{w.size} frequencies, in this order. Choose what was measured with model.with_interface(inputs, outputs)."
        )
    if not (np.isfinite(w).all() and (w > 0).all()):
        raise UsageError("The frequencies must be positive and finite, in rad/s.")
    with np.errstate(divide="ignore"):
        size = 1 / np.abs(response_values) if weights is None else as_numbers(weights, "One of the weights")
    size = np.where(response_values == 0, 0.0, size) if weights is None else size
    if size.shape != response_values.shape or not (
        np.isfinite(response_values).all() and np.isfinite(size).all() and size.any()
    ):
        raise UsageError("Response and weights must be finite numbers of one shape, and not all weights zero.")
    return np.moveaxis(response_values.reshape(shape), -1, 0), np.moveaxis(size.reshape(shape), -1, 0)


def _response(linear: LinearModel, w: FloatArray) -> tuple[Any, list[Any]]:
    """Return G, (k, ny, nu), and its derivatives by parameters."""
    pencil = 1j * w[:, None, None] * np.eye(len(linear.A)) - linear.A
    X = np.linalg.solve(pencil, linear.B)
    Y = np.swapaxes(np.linalg.solve(np.swapaxes(pencil, 1, 2), linear.C.T), 1, 2)
    slopes = [d.C @ X + Y @ (d.A @ X + d.B) + d.D for d in linear.derivatives.values()]
    return linear.C @ X + linear.D, slopes


def _flat(values: NDArray[np.complex128]) -> FloatArray:
    return np.concatenate((values.real.ravel(), values.imag.ravel()))
