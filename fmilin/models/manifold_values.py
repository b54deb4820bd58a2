"""Rates, outputs and states of a model as functions of independent coordinates, at many points at once.

A model without a symbolic form, an FMU above all, is evaluated on its manifold: x = Psi(y) by Newton's iteration, then
y' = D rho(x) f(x, u). Derivatives are f_x T with the model's own directional derivatives, else differences of fourth
order along the manifold. Many points are one message to the FMU's process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from fmilin.errors import NumericalError, UsageError
from fmilin.manifold.coordinates import StateCoordinates
from fmilin.manifold.frame import Frame
from fmilin.manifold.manifold_equations import VectorizedEquations
from fmilin.manifold.parametrization import LocalParametrization
from fmilin.manifold.point_arrays import PointBatch
from fmilin.manifold.verified_frame import build_frame
from fmilin.model.capabilities import HasDelays, read_products
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint, TangentBatch
from fmilin.model.locks import held
from fmilin.model.stepping import Stepped
from fmilin.signals import FloatArray

T = TypeVar("T")

DIFFERENCE_STEP_SIZE = 1e-3  # in sizes of y, u; with fourth order both errors are about 1e-13 where f is smooth
DIFFERENCE_STENCIL = ((1.0, 2.0 / 3.0), (-1.0, -2.0 / 3.0), (2.0, -1.0 / 12.0), (-2.0, 1.0 / 12.0))
TIME_STEP_SIZE = 1e-3  # seconds, of differences in time
CONTINUATION_STEP_SIZE = 0.25  # in sizes of the coordinates: longer ways on the manifold are followed in several steps
MAX_STEP_HALVINGS = 4  # of these steps, where Newton's iteration does not converge
MAX_REMEMBERED_BATCHES = 8  # evaluations and Jacobians that are remembered: rates and outputs are asked for in turn


class ManifoldValues(NamedTuple):
    """A model at k points of its manifold."""

    rates: FloatArray  # (k, P), of the coordinates
    outputs: FloatArray  # (k, ny)
    states: FloatArray  # (k, N)


class ManifoldDerivatives(NamedTuple):
    """The derivatives of :class:`ManifoldValues` along y, u and time, each (k, rows, P + nu + 1)."""

    rates: FloatArray
    outputs: FloatArray
    states: FloatArray


class ManifoldFunction:
    """A model at a point as a function of its independent coordinates y (k, P), inputs u (k, nu) and time.

    Threads take turns. Where the manifold has curvature, states are followed from the point, later from the last
    points: the branch stays the one of the point.
    """

    def __init__(self, model: Model, point: OperatingPoint, independent: Sequence[str] = ()) -> None:
        _require_evaluable(model, point)
        self.model, self.point, self.independent = model, point, tuple(independent)
        recommended = model.independent if len(model.constraints) else ()
        self.frame: Frame = build_frame(model, point, named=self.independent or tuple(recommended))
        self.coordinates = self.frame.coordinates
        self._evaluator = PointEvaluator(model, remembers=False)
        self._manifold = self._choose_parametrization()
        independent_states = self.coordinates.independent
        self._coordinates_are_states = independent_states is not None and len(independent_states) == len(model.states)
        self._scales = np.concatenate((self.frame.y_scales, model.inputs.scales(point.inputs)))
        self._last: tuple[FloatArray, FloatArray, FloatArray] | None = None  # y, u and x of the last points
        self._anchors: LocalParametrization | None = None  # at the points that were differentiated last
        self._values: OrderedDict[bytes, ManifoldValues] = OrderedDict()
        self._derivatives: OrderedDict[bytes, ManifoldDerivatives] = OrderedDict()

    @property
    def y0(self) -> FloatArray:
        """The coordinates of the point, shape (P,)."""
        return self.frame.y0

    def evaluate(self, t: float, y: FloatArray, u: FloatArray) -> ManifoldValues:
        """Return rates, outputs and states at points y (k, P), u (k, nu)."""
        with held(self.model):
            key = _key(t, y, u)
            values = self._values.get(key)
            if values is None:
                values = self._evaluate_states(t, self._reach(t, y, u), u)
                _remember(self._values, key, values)
            return values

    def differentiate(self, t: float, y: FloatArray, u: FloatArray, *, along_time: bool = False) -> ManifoldDerivatives:
        """Return the derivatives of all along y, u and time at points; those along time are zeros unless requested."""
        with held(self.model):
            key = _key(t, y, u) + bytes([along_time])
            derivatives = self._derivatives.get(key)
            if derivatives is None:
                x = self._reach(t, y, u) if (values := self._values.get(_key(t, y, u))) is None else values.states
                exact = self._differentiate_exactly(t, x, u)
                derivatives = self._difference(t, y, u) if exact is None else exact
                derivatives = self._append_time(t, y, u, derivatives, along_time=along_time)
                _remember(self._derivatives, key, derivatives)
            return derivatives

    def _choose_parametrization(self) -> LocalParametrization:
        """Return that of many points together where the model allows it, else the one of single points."""
        single, constraints = self.frame.parametrization, self.model.constraints
        independent = self.coordinates.independent
        if independent is None or constraints.hidden or constraints.prescribing or constraints.time_dependent:
            return single.batch
        if not (len(single.rows) and self.model.batches):
            return single.batch
        point = self.point
        points = PointBatch(np.array([point.time]), point.states[None], point.inputs[None])
        tangents = self._evaluator.tangents(points.time, points.states, points.inputs, independent)
        if tangents is None or not np.isfinite(tangents.T).all():
            return single.batch
        return LocalParametrization.of_batch(self._evaluator, points, tangents, single.rows)

    def _evaluate_states(self, t: float, x: FloatArray, u: FloatArray) -> ManifoldValues:
        answer = self._evaluator.evaluate_points(np.full(len(x), t), x, u)
        rates = answer.derivatives
        if self.coordinates.independent is not None:
            y_dot = rates[:, self.coordinates.independent]
        elif self.coordinates.is_linear:
            y_dot = rates @ self.coordinates.R.T
        else:
            y_dot = np.array([self.coordinates.jacobian(a) @ b for a, b in zip(x, rates, strict=True)])
        return ManifoldValues(y_dot, answer.outputs, x)

    def _reach(self, t: float, y: FloatArray, u: FloatArray) -> FloatArray:
        """Return the states (k, N) of the manifold with coordinates y (k, P)."""
        last, k = self._last, len(y)
        x = self._solve_from_anchors(t, y, u)
        if x is None and last is not None and len(last[0]) == k:
            self._move_anchor(t, y, last)
            x = self._solve_from_anchors(t, y, u)
            x = self._follow(t, (y, u), last) if x is None else x
        if x is None:
            start = (np.tile(self.y0, (k, 1)), np.tile(self.point.inputs, (k, 1)), np.tile(self.point.states, (k, 1)))
            x = self._follow(t, (y, u), start)
        if x is None:
            raise NumericalError(
                f"No point of the manifold of '{self.model.info.name}' was found for some of the requested coordinates "
                f"({', '.join(self.frame.selection.signals.names)}): they may be singular on the way from the point. "
                "Choose others with independent=."
            )
        x = self._polish(t, x, y, u)
        self._last = y.copy(), u.copy(), x
        return x

    def _polish(self, t: float, x: FloatArray, y: FloatArray, u: FloatArray) -> FloatArray:
        """Take one more step of Newton's method with the gradient of the points themselves.

        The iteration ends where its last step is small, which depends on where it began: values at one point differed
        by 2e-10. After this step they agree to rounding.
        """
        manifold, coordinates = self._manifold, self.coordinates
        if self._coordinates_are_states:
            return x
        points = PointBatch(np.full(len(x), t), x, u)
        h, H = manifold.equations.compute_gradient(points)
        norms = manifold.row_norms[:1, manifold.rows]
        r = None if coordinates.is_linear else coordinates.values(x) - y
        inverse = coordinates.invert(H[:, manifold.rows] / norms[..., None], x)
        x = x.copy()
        x[:, coordinates.moving] -= inverse.compute_displacement(h[:, manifold.rows] / norms, r)
        return x

    def _move_anchor(self, t: float, y: FloatArray, last: tuple[FloatArray, FloatArray, FloatArray]) -> None:
        """Differentiate the last points if y are near them: that is one message instead of many iterations."""
        independent = self.coordinates.independent
        is_near = (np.abs(y - last[0]) / self.frame.y_scales <= CONTINUATION_STEP_SIZE).all()
        if independent is None or not is_near or not isinstance(self._manifold.equations, VectorizedEquations):
            return
        tangents = self._evaluator.tangents(np.full(len(y), t), last[2], last[1], independent)
        if tangents is not None and _are_finite(tangents):
            self._anchor(t, last[2], last[1], tangents)

    def _solve_from_anchors(self, t: float, y: FloatArray, u: FloatArray) -> FloatArray | None:
        """Return the states from the tangents of the points that were differentiated last; None if not near them."""
        anchors = self._anchors
        if anchors is None or len(anchors) != len(y):
            return None
        change = y - anchors.y0
        if not (np.abs(change) / anchors.y_sizes <= CONTINUATION_STEP_SIZE).all():
            return None
        guess = anchors.points.states + (anchors.T @ change[..., None])[..., 0]
        guess[:, anchors.independent] = y
        states, is_reached = anchors.reach(guess, np.arange(len(y)), u)
        return states.states if is_reached.all() else None

    def _follow(
        self,
        t: float,
        targets: tuple[FloatArray, FloatArray],
        start: tuple[FloatArray, FloatArray, FloatArray],
    ) -> FloatArray | None:
        """Return the states at targets y, u, followed from known points y, u, x; None where that fails."""
        (y, u), (y_start, u_start, x) = targets, start
        if self._coordinates_are_states:
            states = x.copy()
            states[:, self.coordinates.independent] = y
            return states
        distance = float(np.max(np.abs(y - y_start) / self.frame.y_scales, initial=0.0))
        if not np.isfinite(distance):
            return None
        first = max(1, int(np.ceil(distance / CONTINUATION_STEP_SIZE)))
        for count in (first * 2**halving for halving in range(MAX_STEP_HALVINGS + 1)):
            previous, states = x, x
            for part in np.arange(1, count + 1) / count:
                guess = states if previous is states else 2 * states - previous
                requested = y if part == 1.0 else y_start + part * (y - y_start)
                inputs = u if part == 1.0 else u_start + part * (u - u_start)
                solved = self._solve(t, guess, requested, inputs)
                if solved is None:
                    break
                previous, states = states, solved
            else:
                return states
        return None

    def _solve(self, t: float, guess: FloatArray, y: FloatArray, u: FloatArray) -> FloatArray | None:
        guess = guess.copy()
        if self.coordinates.independent is not None:
            guess[:, self.coordinates.independent] = y
        elif self.coordinates.is_linear:
            guess += (y - self.coordinates.values(guess)) @ self.frame.T.T
        points = PointBatch(np.full(len(y), t), guess, u)
        with np.errstate(all="ignore"):
            solved = self._manifold.solve(points, np.zeros(len(y), dtype=np.intp), y)
        return solved.points.states if solved.is_reached.all() else None

    def _differentiate_exactly(self, t: float, x: FloatArray, u: FloatArray) -> ManifoldDerivatives | None:
        """Return derivatives from those of the model, with a column of zeros for time; None where it has none."""
        coordinates = self.coordinates
        if not coordinates.is_linear:
            return None  # D rho is not constant then
        if isinstance(coordinates, StateCoordinates):
            tangents = self._evaluator.tangents(np.full(len(x), t), x, u, coordinates.independent)
            if tangents is not None and _are_finite(tangents):
                self._anchor(t, x, u, tangents)
                T_u = np.zeros((*x.shape, u.shape[1] + 1))
                columns = [np.concatenate((part, np.zeros((*part.shape[:2], 1))), axis=2) for part in _parts(tangents)]
                return ManifoldDerivatives(columns[0], columns[1], np.concatenate((tangents.T, T_u), axis=2))
        return self._differentiate_each(t, x, u)

    def _anchor(self, t: float, x: FloatArray, u: FloatArray, tangents: TangentBatch) -> None:
        """Remember points with their tangents: those of the next iterate of a solver are near them."""
        if isinstance(self._manifold.equations, VectorizedEquations):
            points = PointBatch(np.full(len(x), t), x, u)
            rows = self._manifold.rows
            self._anchors = LocalParametrization.of_batch(self._evaluator, points, tangents, rows)

    def _differentiate_each(self, t: float, x: FloatArray, u: FloatArray) -> ManifoldDerivatives | None:
        """Return the same by directional derivatives along T and dPsi/du at one point after the other."""
        single, nu = self.frame.parametrization, u.shape[1]
        rates, outputs, states = [], [], []
        for point, inputs in zip(x, u, strict=True):
            T, T_u = self._compute_tangents(t, point, inputs)
            dx = np.hstack((T, T_u, np.zeros((len(point), 1))))
            du = np.hstack((np.zeros((nu, T.shape[1])), np.eye(nu), np.zeros((nu, 1))))
            products = read_products(self.model, t, point, inputs, dx, du)
            if products is None:
                return None
            rates.append(single.coordinates.project(products.derivatives))
            outputs.append(products.outputs)
            states.append(dx)
        derivatives = ManifoldDerivatives(np.array(rates), np.array(outputs), np.array(states))
        return derivatives if all(np.isfinite(part).all() for part in derivatives) else None

    def _compute_tangents(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return DPsi (N, P) and dPsi/du (N, nu) at a point of the manifold."""
        single, invariants = self.frame.parametrization, self.frame.invariants
        sizes = single.gradient.sizes[single.rows, None]
        H = invariants.gradient(t, x, u).H[single.rows] / sizes
        T = self.coordinates.compute_tangents(H[None], x[None])[0]
        T_u = np.zeros((len(x), len(u)))
        if invariants.prescribing:
            h_u = invariants.input_gradient(t, x)[single.rows] / sizes
            T_u[self.coordinates.moving] = -self.coordinates.invert(H[None], x[None]).back[0] @ h_u
        return T, T_u

    def _difference(self, t: float, y: FloatArray, u: FloatArray) -> ManifoldDerivatives:
        """Return differences along the manifold, all points displaced together."""
        (k, p), stencil = y.shape, len(DIFFERENCE_STENCIL)
        z, steps = np.concatenate((y, u), axis=1), DIFFERENCE_STEP_SIZE * self._scales
        width = z.shape[1]
        displaced = np.stack([z[:, None] + amount * np.diag(steps) for amount, _ in DIFFERENCE_STENCIL])
        displaced = displaced.reshape(-1, width)
        near = np.tile(np.repeat(z, width, axis=0), (stencil, 1))
        x = np.tile(np.repeat(self._reach(t, y, u), width, axis=0), (stencil, 1))
        states = self._follow(t, (displaced[:, :p], displaced[:, p:]), (near[:, :p], near[:, p:], x))
        if states is None:
            raise NumericalError(
                f"No points of the manifold of '{self.model.info.name}' were found beside one of the requested "
                "coordinates, so derivatives cannot be measured there. Choose others with independent=."
            )
        values = self._evaluate_states(t, states, displaced[:, p:])
        weights = np.array([weight for _, weight in DIFFERENCE_STENCIL])

        def combine(part: FloatArray) -> FloatArray:
            differences = np.tensordot(weights, part.reshape(stencil, k, width, -1), axes=1) / steps[:, None]
            return np.concatenate((differences.swapaxes(1, 2), np.zeros((k, part.shape[1], 1))), axis=2)

        return ManifoldDerivatives(*(combine(part) for part in values))

    def _append_time(
        self, t: float, y: FloatArray, u: FloatArray, derivatives: ManifoldDerivatives, *, along_time: bool
    ) -> ManifoldDerivatives:
        """Write the derivatives along time into the last column, by differences: no model has them otherwise."""
        if not along_time or self.model.autonomous:
            return derivatives
        last = self._last
        for amount, weight in DIFFERENCE_STENCIL:
            at = t + amount * TIME_STEP_SIZE
            values = self._evaluate_states(at, self._reach(at, y, u), u)
            for part, value in zip(derivatives, values, strict=True):
                part[..., -1] += weight / TIME_STEP_SIZE * value
        self._last = last
        return derivatives


def _require_evaluable(model: Model, point: OperatingPoint) -> None:
    """Reject models of which rates cannot be read at given states."""
    if isinstance(model, HasDelays):
        raise UsageError(
            f"'{model.info.name}' has delays: its rates are no function of its present states. Use the model between "
            "the delays, or lin.pade(order) of its linear model."
        )
    if isinstance(model, Stepped) and (reason := model.why_not_direct(point)):
        raise UsageError(
            f"The derivatives of the co-simulation FMU '{model.info.name}' cannot be read at given states: {reason} "
            "Load its model-exchange interface (interface='me') if it has one."
        )


def _are_finite(tangents: TangentBatch) -> bool:
    return all(bool(np.isfinite(part).all()) for part in (tangents.T, tangents.derivatives, tangents.outputs))


def _parts(tangents: TangentBatch) -> tuple[FloatArray, FloatArray]:
    return np.concatenate((tangents.A, tangents.B), axis=2), tangents.outputs


def _key(t: float, y: FloatArray, u: FloatArray) -> bytes:
    return np.float64(t).tobytes() + y.tobytes() + u.tobytes()


def _remember(memory: OrderedDict[bytes, T], key: bytes, value: T) -> None:
    memory[key] = value
    if len(memory) > MAX_REMEMBERED_BATCHES:
        memory.popitem(last=False)
