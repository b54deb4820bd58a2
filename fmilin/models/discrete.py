"""Discrete-time models along points: the step of an integrator and its exact sensitivity.

Of the state x(y) on the manifold and dx/d(y, u) = (T 0) a step of length dt, inputs held, makes x+ and dx+/d(y, u):
every stage is differentiated at its own place. The variational equation, solved by the same method, is the derivative
of the method (Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, section II.6): y_(k+1) = A_k y_k +
B_k u_k + c_k is the linearization of what the integrator does, not of the frozen matrices' matrix exponential.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import NumericalError, UsageError
from fmilin.model.interface import Model, OperatingPoint
from fmilin.models.batch_graph import (
    StatePartition,
    batch_graph,
    check_threads,
    solve_batch,
    stack_points,
    states_to_keep,
)
from fmilin.signals import FloatArray

BLOCK = 64  # points that are computed together
MAX_DEPENDENT_DERIVATIVE = 1e9  # derivatives of dependent states beyond this are none
ITERATIONS = 25  # Newton's steps for an implicit stage
STEP_HALVING_TOLERANCE = 1e-2  # of the largest entry of A: what halving the steps may change before it is said
STAGE_STEP_TOLERANCE = 1e-13  # of a step of Newton's iteration, in sizes of the states: then the stage is solved


@dataclass(frozen=True)
class DiscreteModels:
    """y_(k+1) = A_k y_k + B_k u_k + c_k at many points."""

    states: tuple[str, ...]  # y, the P kept states
    inputs: tuple[str, ...]
    sample_time: float  # dt, in s
    integrator: str
    A: FloatArray  # shape (k, P, P)
    B: FloatArray  # shape (k, P, nu)
    c: FloatArray  # shape (k, P)
    # y, u: where the models were made
    y: FloatArray  # shape (k, P)
    u: FloatArray  # shape (k, nu)
    y_next: FloatArray  # (k, P), where the integrator arrives: A y + B u + c
    x_next: FloatArray  # (k, N), the same with all states; off the manifold by the error of one step
    remarks: tuple[Remark, ...] = ()  # of kind ``"step"``: where steps of half the length give other models


def discrete_along(
    model: Model,
    points: Sequence[OperatingPoint],
    dt: float,
    *,
    independent: Sequence[str] | None = None,
    integrator: str = "rk4",
    steps: int = 1,
    threads: int = 1,
) -> DiscreteModels:
    """Return A_k, B_k, c_k at a sample time (points not verified), with the exact sensitivity of the integrator.

    ``"rk4"`` is the classical method, ``"midpoint"`` the implicit rule of order 2, for stiff models.
    """
    advance = _INTEGRATORS.get(integrator)
    if advance is None:
        raise UsageError(f"'{integrator}' is not an integrator: use {' or '.join(_INTEGRATORS)}.")
    if isinstance(dt, bool) or not (math.isfinite(dt) and dt > 0):
        raise UsageError(f"The sample time is {dt!r}: give a positive number of seconds.")
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise UsageError(f"steps={steps!r}: give a positive whole number.")
    t, x, u = stack_points(model, points)
    graph = batch_graph(model, ())
    if graph is None:
        raise UsageError(
            f"'{model.info.name}' is not a model of equations with constraints that are free of inputs: linearize it "
            "at the points with fmilin.linearize_along, and discretize the linear models."
        )
    independent_states = states_to_keep(model, points[0], independent)
    partition = StatePartition(graph, model, independent_states, points[0])
    scales = model.states.scales(x.mean(axis=0))

    def work(first: int) -> tuple[FloatArray, FloatArray]:
        return at(slice(first, first + BLOCK), steps)

    def at(points_slice: slice, count: int) -> tuple[FloatArray, FloatArray]:
        system, h = _StackedRates(partition, points_slice.start, u[points_slice], scales), dt / count
        x_next, X = x[points_slice], system.start(t[points_slice], x[points_slice])
        with np.errstate(all="ignore"):  # values that are not finite are rejected at the end
            for k in range(count):
                x_next, X = advance(system, t[points_slice] + k * h, x_next, X, h)
        system.require_finite(x_next, X)
        return x_next, X[:, partition.independent]

    with ThreadPoolExecutor(check_threads(threads)) as pool:
        blocks = list(pool.map(work, range(0, len(x), BLOCK)))
    x_next, rows = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    p = len(independent_states)
    A, B, y, y_next = rows[..., :p], rows[..., p:], x[:, partition.independent], x_next[:, partition.independent]
    c = y_next - (A @ y[..., None])[..., 0] - (B @ u[..., None])[..., 0]
    worst = int(np.argmax(np.abs(A).max(axis=(1, 2), initial=0.0)))
    _, (halved,) = at(slice(worst, worst + 1), 2 * steps)
    names = tuple(model.states.names[i] for i in partition.independent)
    return DiscreteModels(
        names,
        model.inputs.names,
        float(dt),
        integrator,
        *(A, B, c, y, u, y_next, x_next),
        remarks=tuple(_of_steps(A[worst], halved[:, :p], worst, integrator)),
    )


def _of_steps(A: FloatArray, halved: FloatArray, number: int, integrator: str) -> Iterator[Remark]:
    """Yield that the integrator's steps are too long for the model: its own derivatives are exact all the same."""
    change = float(np.max(np.abs(halved - A), initial=0.0) / np.max(np.abs(A), initial=1e-300))
    if change > STEP_HALVING_TOLERANCE:
        other = ", or the implicit midpoint rule (integrator='midpoint')" if integrator == "rk4" else ""
        yield Remark(
            "step",
            f"At point {number} A changes by {change:.2g} of its largest entry when the integrator takes steps of "
            f"half the length: they are too long for the fastest motion. Use more of them (steps=){other}.",
        )


@dataclass(frozen=True)
class _StackedRates:
    """The rates at some points together."""

    partition: StatePartition
    first: int  # the number of the first of the points, for messages
    u: FloatArray  # shape (k, nu)
    scales: FloatArray  # shape (N,)

    def start(self, t: FloatArray, x: FloatArray) -> FloatArray:
        """Return dx/d(y, u) on the manifold, shape (k, N, P + nu)."""
        here = self.partition.at(t, x, self.u)
        singular = np.flatnonzero(~(here.size <= MAX_DEPENDENT_DERIVATIVE))
        if len(singular):
            raise NumericalError(
                f"The states to keep are singular at point {self.first + singular[0]}: they do not determine the "
                "others there. Choose others with independent=.",
                condition_number=math.inf,
            )
        return np.concatenate((here.T, np.zeros((*x.shape, self.u.shape[1]))), axis=2)

    def rates(self, t: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return f (k, N), f_x (k, N, N) and f_u (k, N, nu)."""
        stack, n = self.partition.stack(t, x, self.u), x.shape[1]
        return stack.f, stack.f_z[..., :n], stack.f_z[..., n:]

    def slopes(self, f_x: FloatArray, f_u: FloatArray, X: FloatArray) -> FloatArray:
        """Return the derivatives of f along those of x, shape (k, N, P + nu)."""
        along = f_x @ X
        along[..., X.shape[-1] - f_u.shape[-1] :] += f_u
        return along

    def require_finite(self, x: FloatArray, X: FloatArray) -> None:
        """Reject steps that lead nowhere."""
        lost = np.flatnonzero(~(np.isfinite(x).all(axis=1) & np.isfinite(X).all(axis=(1, 2))))
        if len(lost):
            raise NumericalError(
                f"The step from point {self.first + lost[0]} leads to an infinite state: use a shorter step, or more "
                "of them with steps=."
            )


def _runge_kutta(
    system: _StackedRates, t: FloatArray, x: FloatArray, X: FloatArray, h: float
) -> tuple[FloatArray, FloatArray]:
    """Go on by the classical method of order 4."""
    x_sum, X_sum = x, X
    x_stage, X_stage = x, X
    for after, weight, ahead in ((0.0, 1 / 6, 0.5), (0.5, 1 / 3, 0.5), (0.5, 1 / 3, 1.0), (1.0, 1 / 6, 0.0)):
        f, f_x, f_u = system.rates(t + after * h, x_stage)
        F = system.slopes(f_x, f_u, X_stage)
        x_sum, X_sum = x_sum + weight * h * f, X_sum + weight * h * F
        x_stage, X_stage = x + ahead * h * f, X + ahead * h * F
    return x_sum, X_sum


def _midpoint(
    system: _StackedRates, t: FloatArray, x: FloatArray, X: FloatArray, h: float
) -> tuple[FloatArray, FloatArray]:
    """Go on by the implicit midpoint rule: x_m = x + h/2 f(x_m), x+ = 2 x_m - x."""
    middle, one = x.copy(), np.eye(x.shape[1])
    for _ in range(ITERATIONS):
        f, f_x, f_u = system.rates(t + h / 2, middle)
        square = one - h / 2 * f_x
        change = solve_batch(square, (x + h / 2 * f - middle)[..., None])[..., 0]
        middle = middle + change
        moved = np.abs(change / system.scales).max(axis=1, initial=0.0)
        if (
            moved <= STAGE_STEP_TOLERANCE * np.maximum(1.0, np.abs(middle / system.scales).max(axis=1, initial=0.0))
        ).all():
            _, f_x, f_u = system.rates(t + h / 2, middle)
            right = X.copy()
            right[..., X.shape[-1] - f_u.shape[-1] :] += h / 2 * f_u
            return 2 * middle - x, 2 * solve_batch(one - h / 2 * f_x, right) - X
    raise NumericalError(
        f"The implicit step of {h:g} s from point {system.first + int(np.argmax(moved))} does not converge: use a "
        "shorter step, or more of them with steps=."
    )


_Advance = Callable[[_StackedRates, FloatArray, FloatArray, FloatArray, float], tuple[FloatArray, FloatArray]]
_INTEGRATORS: Mapping[str, _Advance] = {"rk4": _runge_kutta, "midpoint": _midpoint}
