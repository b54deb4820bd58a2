"""From derivatives to matrices, at one point and at many.

With y = R (x - x0) and x = Psi(y) (Spencer sections 2.2 and 4.1), at any consistent point:

    A = R f_x DPsi,  B = R f_u,  C = c_x DPsi,  D = c_u,  T = DPsi,  f0 = R f(t0, x0, u0)

Nonlinear coordinates y = rho(x) have R = D rho(x0) and d(D rho(x) f0)/dx DPsi in A besides, from y' = D rho x'. Inputs
that prescribe a motion move the manifold: x = Psi(y, u), and Psi_u adds f_x Psi_u to B and c_x Psi_u to D.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Protocol

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.linear_model.arrays import LinearArrays, Mask
from fmilin.linear_model.builder import build_from_arrays, name_point
from fmilin.linear_model.model import Accuracy, EntryErrors, LinearizationMethod, LinearModel
from fmilin.linear_model.sparse import change_fields
from fmilin.linearization.linearization_context import AssembledPoint
from fmilin.linearization.reference import Reference
from fmilin.linearization.request import Request
from fmilin.manifold.coordinates import Coordinates
from fmilin.manifold.derivatives import TangentDerivatives
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.parametrization import LocalParametrization
from fmilin.manifold.point_arrays import PointBatch
from fmilin.model.capabilities import can_be_described
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.numerics.differences.differences import Differences
from fmilin.signals import FloatArray, Signals
from fmilin.support.dataclass import dataclass

NUMBERS_OF_ACCURACY = len(fields(Accuracy))
RESIDUAL, CONDITIONING = NUMBERS_OF_ACCURACY - 2, NUMBERS_OF_ACCURACY - 1  # where these stand among them


@dataclass(frozen=True, eq=False)
class RowErrors:
    """Errors of matrices that are the same in each row, in sizes of y and u, and entries that have none."""

    rows: Mapping[str, FloatArray]  # (k, rows), by matrix
    zeros: Mapping[str, Mask]  # entries that are zero by the structure of the model, by matrix


class TangentSpace(Protocol):
    """The coordinates of k points and the tangents along them: those of a local parametrization, or given ones."""

    @property
    def points(self) -> PointBatch:
        """The points."""

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates y = rho(x)."""

    @property
    def y0(self) -> FloatArray:
        """The coordinates of the points, shape (k, P)."""

    @property
    def y_sizes(self) -> FloatArray:
        """A size for each coordinate, shape (k, P)."""

    @property
    def u_sizes(self) -> FloatArray:
        """A size for each input, shape (k, nu)."""

    @property
    def distance(self) -> FloatArray:
        """How far the points are from the manifold, in sizes of the states, shape (k,)."""

    @property
    def condition_number(self) -> FloatArray:
        """How well the coordinates determine the states, shape (k,)."""

    @property
    def T_errors(self) -> FloatArray:
        """The errors of T times the sizes of the coordinates, (k, N, P), or (k, N, 1) if the same in each row."""


@dataclass(frozen=True, eq=False)
class GivenTangents:
    """Coordinates of one point with tangents that a method has computed in its own way."""

    points: PointBatch  # one
    coordinates: Coordinates
    coordinate_sizes: FloatArray  # (P,)
    input_sizes: FloatArray  # (nu,)
    errors: FloatArray  # (N, P), of T
    conditioning: float
    residual: float = 0.0  # distance of the point from the manifold, in sizes of the states

    @property
    def y0(self) -> FloatArray:
        """The coordinates of the point, shape (1, P)."""
        return self.coordinates.values(self.points.states)

    @property
    def y_sizes(self) -> FloatArray:
        """A size for each coordinate, shape (1, P)."""
        return self.coordinate_sizes[None]

    @property
    def u_sizes(self) -> FloatArray:
        """A size for each input, shape (1, nu)."""
        return self.input_sizes[None]

    @property
    def distance(self) -> FloatArray:
        """How far the point is from the manifold, in sizes of the states, shape (1,)."""
        return np.array([self.residual])

    @property
    def condition_number(self) -> FloatArray:
        """How well the coordinates determine the states, shape (1,)."""
        return np.array([self.conditioning])

    @property
    def T_errors(self) -> FloatArray:
        """The errors of T times the sizes of the coordinates, shape (1, N, P)."""
        return (self.errors * self.coordinate_sizes)[None]


def assemble(
    derivatives: TangentDerivatives,
    geometry: TangentSpace,
    row_errors: RowErrors | None = None,
    distance: FloatArray | None = None,
) -> LinearArrays:
    """Return the linear models at k points; nonlinear coordinates are those of one point.

    Their errors are ``row_errors``, or else those of the derivatives, entry by entry. ``distance`` (k,) is that of the
    points from the manifold where it was computed before.
    """
    coordinates, points, order = geometry.coordinates, geometry.points, derivatives.order
    rates = coordinates.project(derivatives.f)
    if not coordinates.is_linear:
        curvature = coordinates.curvature(points.states[0], derivatives.rates[0])  # d(D rho f)
        rates = rates + curvature @ np.concatenate((derivatives.T, derivatives.x_u), axis=2)
    if len(derivatives) == 1:
        rates = rates + 0.0  # a zero is printed without a sign
    accuracy = np.empty((len(derivatives), NUMBERS_OF_ACCURACY))  # of matrices it is summarized when it is read
    accuracy[:, RESIDUAL] = geometry.distance if distance is None else distance
    accuracy[:, CONDITIONING] = geometry.condition_number
    arrays = {
        "A": rates[..., :order],
        "B": rates[..., order:],
        "C": derivatives.c_y,
        "D": derivatives.c_u,
        "T": derivatives.T,
        "T_u": derivatives.x_u,
        "f0": coordinates.project(derivatives.rates[..., None])[..., 0],
        "y0": geometry.y0,
        "x0": points.states,
        "u0": points.inputs,
        "out0": derivatives.outputs,
        "time": points.time,
        "accuracy": accuracy,
        "visits": np.zeros((len(derivatives), 2)),
    }
    if row_errors is None:
        return LinearArrays.of_points(arrays | compute_entry_errors(derivatives, geometry))
    arrays |= {f"row_error_{name}": each for name, each in row_errors.rows.items()}
    arrays |= {"coordinate_size": geometry.y_sizes, "input_size": geometry.u_sizes}
    return LinearArrays.of_batch(arrays, row_errors.zeros)


def compute_entry_errors(derivatives: TangentDerivatives, geometry: TangentSpace) -> dict[str, FloatArray]:
    """Return the errors of the entries of matrices, by name: |R| times those of the rates."""
    n, p, scales = derivatives.rates.shape[1], derivatives.order, derivatives.scales[:, None]
    of_rates = geometry.coordinates.project_errors(derivatives.errors[:, :n]) / scales
    of_outputs = derivatives.errors[:, n:] / scales
    of_T = np.broadcast_to(geometry.T_errors / geometry.y_sizes[:, None], derivatives.T.shape)
    return {
        "error_A": of_rates[..., :p],
        "error_B": of_rates[..., p:],
        "error_C": of_outputs[..., :p],
        "error_D": of_outputs[..., p:],
        "error_T": of_T,
    }


def find_row_errors(reference: Reference, derivatives: TangentDerivatives, geometry: LocalParametrization) -> RowErrors:
    """Return the errors of rows of matrices in kept states, from those of the derivatives, the same in each row.

    Some rates are other states, and some outputs are states or inputs: they are as good as T, or exact.
    """
    model, pairs, zeros = reference.model, reference.facts.pairs or {}, reference.zeros
    independent, n, p = geometry.independent, derivatives.rates.shape[1], derivatives.order
    errors, of_T = derivatives.errors[..., 0], geometry.T_errors.max(axis=2, initial=0.0)
    along_y, seen_y = errors[:, independent], errors[:, n:].copy()
    along_u, seen_u = along_y.copy(), seen_y.copy()
    for row, i in enumerate(independent):
        if i in pairs:
            along_y[:, row], along_u[:, row] = of_T[:, pairs[i]], 0.0
    for row, copy in model.copies.items():
        seen_y[:, row], seen_u[:, row] = of_T[:, copy.index] if copy.kind == "state" else 0.0, 0.0
    rows = {"A": along_y, "B": along_u, "C": seen_y, "D": seen_u, "T": of_T}
    of_rates, of_outputs = zeros[independent], zeros[n:]
    structural = {"A": of_rates[:, :p], "B": of_rates[:, p:], "C": of_outputs[:, :p], "D": of_outputs[:, p:]}
    return RowErrors(rows, structural)


def extract_model(
    models: LinearArrays,
    model: Model,
    point: OperatingPoint,
    states: Signals,
    method: LinearizationMethod,
    remarks: Sequence[Remark] = (),
) -> LinearModel:
    """Return the first of some linear models, which is that of a point in the coordinates ``states``."""
    values = {name: models.stored[name][0] for name in ("A", "B", "C", "D", "T", "T_u", "f0", "y0", "out0")}
    errors = models.read_first_errors()
    entries, accuracy = EntryErrors(**errors), Accuracy(*models.summarize_first(errors))
    signals, at_point = (states, model.states), name_point(model, point, values["out0"])
    values = {name: value if value.flags.writeable else value.copy() for name, value in values.items()}
    return build_from_arrays(model, values, (entries, accuracy), signals, at_point, method, remarks=remarks)


def assemble_point(
    evaluator: PointEvaluator, nearby: Neighbourhood, derivatives: TangentDerivatives, turns: Mapping[int, float]
) -> LinearModel:
    """Return the linear model in the coordinates of ``nearby``; ``turns`` are those of outputs seen to wrap, by row."""
    model, frame = evaluator.model, nearby.frame
    models = assemble(derivatives, frame.parametrization.batch, distance=np.array([frame.residual]))
    method = LinearizationMethod(derivatives.method, frame.selection.kind, evaluator.evaluations, evaluator.directions)
    linear = extract_model(models, model, nearby.point, frame.selection.signals, method)
    # A black box does not declare that an output wraps: it is seen at the points of the differences.
    outputs = linear.outputs.with_turns([signal.turn or turns.get(i) for i, signal in enumerate(linear.outputs)])
    return linear if outputs is linear.outputs else replace(linear, outputs=outputs)


def assemble_given(
    evaluator: PointEvaluator,
    point: OperatingPoint,
    derivatives: TangentDerivatives,
    tangents: GivenTangents,
    states: Signals,
    kind: str,
) -> LinearModel:
    """Return the linear model in coordinates ``states`` of a ``kind`` that a method has chosen, with their tangents."""
    method = LinearizationMethod(derivatives.method, kind, evaluator.evaluations, evaluator.directions)
    return extract_model(assemble(derivatives, tangents), evaluator.model, point, states, method)


def attach_descriptor(linear: LinearModel, model: Model, nearby: Neighbourhood, request: Request) -> LinearModel:
    """Return the linear model with the descriptor system of a model that has one, or of which one is requested."""
    # The equations as they are written have both branches of a kink, and no descriptor system of one side.
    one_sided = isinstance(request.derivatives, Differences) and request.derivatives.side is not None
    # Neither do they have equations for totals that were found in the motion.
    if one_sided or request.keep_totals or not (request.descriptor or can_be_described(model)):
        return linear
    point, coordinates = nearby.point, nearby.frame.coordinates
    if coordinates.curvature(point.states, nearby.base_evaluation.derivatives).any():
        return linear
    from fmilin.formulations.descriptor_system import with_descriptor, with_lazy_descriptor

    describe = with_descriptor if request.descriptor else with_lazy_descriptor
    return describe(linear, model, point, coordinates.R)


def state_accuracy(at: AssembledPoint, diagnostics: Sequence[Remark]) -> LinearModel:
    """Return the linear model of a point with diagnostics, and with the evaluations that checks took, too."""
    method = replace(at.linear.method, evaluations=at.evaluator.evaluations, products=at.evaluator.directions)
    return change_fields(at.stated, method=method, warnings=tuple(diagnostics))
