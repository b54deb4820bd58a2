"""The nonlinear model in the coordinates of a linear one, frozen at its point.

    y' = D rho(x) f(t0, x, u) - f0,    out = c(t0, x, u),    x = Psi(t0, y, u)

A linear model says what this is to first order, at any point: subtracting f0, the motion at the point itself,
makes the point an equilibrium and leaves A, B, C, D and T as they are.
"""

from collections.abc import Sequence

import numpy as np
from scipy import linalg

from fmilin.diagnostics import Remark
from fmilin.errors import NumericalError, UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.manifold.coordinates import Coordinates, LinearCoordinates
from fmilin.manifold.frame import Frame
from fmilin.manifold.operating_points import apply_point_parameters
from fmilin.manifold.point_parametrization import PointParametrization
from fmilin.manifold.rank import TINY
from fmilin.manifold.totals import Totals, constrain_totals, search_totals
from fmilin.manifold.verified_frame import verify_frame
from fmilin.manifold.wrapping_angles import NEAR_STEP_SIZE, AngleUnwrapper
from fmilin.model.capabilities import HasSamples, compile_model
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray
from fmilin.tolerances import KEPT_TOTAL_TOLERANCE, MAX_COORDINATE_CONDITION_NUMBER, SAME_POINT_TOLERANCE


class ReducedModel:
    """The reduced nonlinear model, with the inputs, outputs and coordinates of the linear one."""

    def __init__(
        self, evaluator: PointEvaluator, psi: PointParametrization, point: OperatingPoint, remarks: tuple[Remark, ...]
    ) -> None:
        self.evaluator, self.psi, self.point, self.remarks = evaluator, psi, point, remarks
        self.model = model = evaluator.model
        self.x0, self.u0, self.y0 = point.states, point.inputs, psi.y0
        base = evaluator.evaluate(point.time, self.x0, self.u0)
        self.f0 = psi.coordinates.jacobian(self.x0) @ base.derivatives
        self.out0 = base.outputs
        self.x_sizes = psi.scales
        self.y_sizes = np.abs(psi.coordinates.R) @ psi.scales
        self.u_sizes = model.inputs.scales(self.u0)
        self.out_sizes = model.outputs.scales(self.out0)
        self._angles = AngleUnwrapper(model.outputs, self.out0)
        if not (np.isfinite(base.derivatives).all() and np.isfinite(base.outputs).all()):
            raise NumericalError("The nonlinear model returns no numbers at the point of the linear one.")

    @property
    def evaluations(self) -> int:
        """Evaluations of the model so far."""
        return self.evaluator.evaluations

    def rate(self, y: FloatArray, u: FloatArray) -> FloatArray:
        """Return the frozen y', shape (P,): zero at the point."""
        x = self.psi.psi(y, inputs=u)
        f = self.evaluator.evaluate(self.point.time, x, u).derivatives
        return self.psi.coordinates.jacobian(x) @ f - self.f0

    def evaluate_rate(self, t: float, y: FloatArray) -> FloatArray:
        """Return the real y' at a time, inputs held, shape (P,)."""
        x = self.psi.psi(y, time=t, inputs=self.u0)
        return self.psi.coordinates.jacobian(x) @ self.evaluator.evaluate(t, x, self.u0).derivatives

    def evaluate(
        self, y: FloatArray, u: FloatArray, near: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the frozen y', all x, where ``near`` may be a guess of them, and the outputs from one evaluation."""
        x = self.psi.psi(y, inputs=u, near=near)
        values = self.evaluator.evaluate(self.point.time, x, u)
        outputs = self._angles.unwrap(values.outputs.copy(), lambda: self._outputs_close_to_point(y, u))
        return self.psi.coordinates.jacobian(x) @ values.derivatives - self.f0, x, outputs

    def _outputs_close_to_point(self, y: FloatArray, u: FloatArray) -> FloatArray:
        """Return the outputs very close to the point on the way to y and u: an angle that wraps there has done so."""
        parts = np.concatenate(((y - self.y0) / self.y_sizes, (u - self.u0) / self.u_sizes))
        part = min(NEAR_STEP_SIZE / max(float(np.abs(parts).max(initial=0.0)), NEAR_STEP_SIZE), 1.0)
        near = self.u0 + part * (u - self.u0)
        x = self.psi.psi(self.y0 + part * (y - self.y0), inputs=near)
        return self.evaluator.evaluate(self.point.time, x, near).outputs


def reduce_model(model: Model, linear: LinearModel) -> ReducedModel:
    """Return ``model`` in the coordinates and at the point of ``linear``."""
    _require_comparable(model, linear)
    remarks: tuple[Remark, ...] = ()
    if linear.model.guid and model.info.guid and linear.model.guid != model.info.guid:
        text = (
            f"The linear model was made from another build of '{linear.model.name}' (its GUID is {linear.model.guid}, "
            f"that of the model {model.info.guid})."
        )
        remarks = (Remark("model", text),)
    at = linear.point
    point = OperatingPoint(
        at.time,
        np.array([at.states[n] for n in linear.full_states.names]),
        np.array([at.inputs[n] for n in linear.inputs.names]),
        dict(at.parameters),
    )
    inputs = None if model.inputs.names == linear.inputs.names else linear.inputs.names
    outputs = None if model.outputs.names == linear.outputs.names else linear.outputs.names
    if inputs is not None or outputs is not None:
        model = model.with_interface(inputs, outputs)
    model = apply_point_parameters(model, point)
    evaluator = PointEvaluator(compile_model(model, 0))
    kind = "tangent" if linear.method.coordinates == "tangent" else "partition"
    frame = verify_frame(evaluator, point, named=_names(linear), kind=kind)
    if len(linear.states) < len(frame.selection.signals):
        totals = search_totals(model, point)
        if totals is not None and _are_kept(totals, linear):
            evaluator = PointEvaluator(compile_model(constrain_totals(model, totals), 0))
            frame = verify_frame(evaluator, point, named=_names(linear), kind=kind)
    _require_order(frame, linear)
    psi = frame.parametrization
    coordinates = _coordinates(frame, linear)
    if coordinates is not psi.coordinates:
        psi = PointParametrization(psi.invariants, psi.rows, coordinates, point.time, point.states)
    return ReducedModel(evaluator, psi, point, remarks)


def _are_kept(totals: Totals, linear: LinearModel) -> bool:
    """Whether the motions of a linear model keep these totals, as with ``keep_totals=True``."""
    changes = np.abs(totals.coefficients @ linear.T)
    terms = np.abs(totals.coefficients) @ np.abs(linear.T)
    return bool((changes <= KEPT_TOTAL_TOLERANCE * np.maximum(terms, TINY)).all())


def _require_comparable(model: Model, linear: LinearModel) -> None:
    if isinstance(model, HasSamples):
        raise UsageError(
            f"'{model.info.name}' is a connected system with sampled members, which are not verified together. Verify "
            "the linear models of its members, model.members, or compare its linear model with fl.simulate."
        )
    if linear.sample_time > 0 and not model.map_period:
        raise UsageError(
            f"The linear model is sampled, and '{model.info.name}' is continuous: verify it before sampling."
        )
    if model.map_period and not np.isclose(linear.sample_time, model.map_period, rtol=SAME_POINT_TOLERANCE):
        raise UsageError(
            f"'{model.info.name}' is sampled every {model.map_period:g} s and the linear model every "
            f"{linear.sample_time:g} s (0 is continuous): linearize the model again."
        )
    if linear.method.coordinates == "enlarged":
        raise UsageError(
            "The linear model belongs to a singular configuration, where the nonlinear model has no unique motion to "
            "compare with. Verify a linear model near it."
        )
    if prescribed := [n for n in linear.states.names if model.inputs.has(n)]:
        raise UsageError(
            f"The linear model has the prescribed motion '{prescribed[0]}' among its states. Verify the original "
            "model, with all inputs."
        )
    missing = [n for n in linear.full_states.names if not model.states.has(n)]
    if missing or len(model.states) != len(linear.full_states):
        detail = f"'{missing[0]}' is not a state of the model" if missing else "it has fewer states"
        raise UsageError(
            f"This is not a linear model of '{model.info.name}': {detail}. It was made from '{linear.model.name}'."
        )
    if model.states.names != linear.full_states.names:
        raise UsageError(f"The linear model has the states of '{model.info.name}' in another order. Linearize again.")


def _require_order(frame: Frame, linear: LinearModel) -> None:
    declared, independent, N = len(linear.states), len(frame.selection.signals), len(linear.full_states)
    if declared > independent:
        raise NumericalError(
            f"The linear model treats {declared} states as independent, but under its constraints the model has only "
            f"{independent} at this point: its other modes are spurious. Linearize again with the constraints."
        )
    if declared < independent:
        raise UsageError(
            f"The linear model has {declared} independent states, the model {independent}: its constraints are not "
            f"declared in the model. Declare them again (constraints=, constraints_file=); {N - declared} are needed."
        )


def _names(linear: LinearModel) -> Sequence[str]:
    """Return the coordinates as they were asked for, where they were nonlinear; rates of positions are implied."""
    if not any(signal.description for signal in linear.states if not linear.full_states.has(signal.name)):
        return ()
    if linear.method.coordinates != "named":
        return ()
    names = {signal.name for signal in linear.states}
    chosen = list(linear.states)
    if any(f"der({name})" in names for name in names):
        chosen = chosen[: len(chosen) // 2]
    return [f"{s.name} = {s.description}" if s.description else s.name for s in chosen]


def _coordinates(frame: Frame, linear: LinearModel) -> Coordinates:
    """Return the coordinates of the linear model: states, given expressions, or those that its T belongs to."""
    if not frame.coordinates.is_linear:
        return frame.coordinates
    N, T = len(linear.full_states), linear.T
    if all(linear.full_states.has(name) for name in linear.states.names):
        chosen = [linear.full_states.positions[name] for name in linear.states.names]
        unit = np.eye(N)
        dependent = [i for i in range(N) if i not in set(chosen)]
        return LinearCoordinates(unit[chosen], unit[:, chosen].copy(), unit[:, dependent])
    R_frame = frame.coordinates.R
    turn = R_frame @ T  # y of the frame = turn (y of the linear model)
    if not T.shape[1]:
        return frame.coordinates
    if np.linalg.cond(turn) > MAX_COORDINATE_CONDITION_NUMBER:
        raise UsageError("The matrix T of the linear model does not span the motions of the model at this point.")
    R = np.asarray(np.linalg.solve(turn, R_frame), dtype=np.float64)
    D = frame.parametrization.scales
    return LinearCoordinates(R, D[:, None] * linalg.pinv(R * D), D[:, None] * linalg.null_space(R * D))
