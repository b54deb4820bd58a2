"""From derivatives to matrices, at one point and at many.

With y = R (x - x0) and x = Psi(y) (Spencer sections 2.2 and 4.1), at any consistent point:

    A = R f_x DPsi,  B = R f_u,  C = c_x DPsi,  D = c_u,  T = DPsi,  f0 = R f(t0, x0, u0)

Nonlinear coordinates y = rho(x) have R = D rho(x0) and d(D rho(x) f0)/dx DPsi in A besides, from y' = D rho x'. Inputs
that prescribe a motion move the manifold: x = Psi(y, u), and Psi_u adds f_x Psi_u to B and c_x Psi_u to D.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.linear_model.arrays import MATRICES, LinearArrays
from fmilin.linear_model.builder import IndependentCoordinates, LinearMatrices, built, point_of
from fmilin.linear_model.model import Accuracy, LinearModel
from fmilin.linearization.context import LinearizedPoint
from fmilin.linearization.reference import Reference
from fmilin.linearization.request import Request
from fmilin.manifold.derivatives import TangentDerivatives
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.parametrization import LocalParametrization
from fmilin.manifold.points import PointBatch
from fmilin.model.capabilities import can_be_described
from fmilin.model.interface import Model, TangentBatch
from fmilin.model.visits import CountedModel
from fmilin.numerics.differences.differences import Differences
from fmilin.signals import FloatArray


def assemble(
    model: CountedModel, nearby: Neighbourhood, derivatives: TangentDerivatives, turns: Mapping[int, float]
) -> LinearModel:
    """Return the linear model in the coordinates of ``nearby``; ``turns`` are those of outputs seen to wrap, by row."""
    frame, point, base = nearby.frame, nearby.point, nearby.base_evaluation
    R, T = frame.coordinates.R, frame.T
    A, B, size, x_u = R @ derivatives.f_y[0], R @ derivatives.f_u[0], np.abs(R), derivatives.x_u[0]
    if not frame.coordinates.is_linear:
        curvature = frame.coordinates.curvature(point.states, base.derivatives)  # d(D rho f)
        A, B = A + curvature @ T, B + curvature @ x_u
    selection, parametrization = frame.selection, frame.parametrization
    coordinates = IndependentCoordinates(
        selection.signals,
        model.states,
        frame.y0,
        T,
        parametrization.derivative_error,
        selection.kind,
        selection.condition_number,
        frame.residual,
        T_u=x_u,
    )
    errors = (
        size @ derivatives.f_y_errors[0],
        size @ derivatives.f_u_errors[0],
        derivatives.c_y_errors[0],
        derivatives.c_u_errors[0],
    )
    matrices = LinearMatrices(A, B, derivatives.c_y[0], derivatives.c_u[0], R @ base.derivatives, *errors)
    method = derivatives.method, model.evaluations, model.directions
    linear = built(model, coordinates, matrices, point_of(model, point, base.outputs), method)
    # A black box does not declare that an output wraps: it is seen at the points of the differences.
    outputs = linear.outputs.with_turns([signal.turn or turns.get(i) for i, signal in enumerate(linear.outputs)])
    return linear if outputs is linear.outputs else replace(linear, outputs=outputs)


def attach_descriptor(linear: LinearModel, model: Model, nearby: Neighbourhood, request: Request) -> LinearModel:
    """Return the linear model with the descriptor system of a model that has one, or of which one is requested."""
    # The equations as they are written have both branches of a kink, and no descriptor system of one side.
    one_sided = isinstance(request.derivatives, Differences) and request.derivatives.side is not None
    if one_sided or not (request.descriptor or can_be_described(model)):
        return linear
    point, coordinates = nearby.point, nearby.frame.coordinates
    if coordinates.curvature(point.states, nearby.base_evaluation.derivatives).any():
        return linear
    from fmilin.formulations.descriptor import with_descriptor, with_lazy_descriptor

    describe = with_descriptor if request.descriptor else with_lazy_descriptor
    return describe(linear, model, point, coordinates.R)


def state_accuracy(at: LinearizedPoint, diagnostics: Sequence[Remark]) -> LinearModel:
    """Return the linear model of a point with diagnostics, and with the evaluations that checks took, too."""
    method = replace(at.linear.method, evaluations=at.model.evaluations, products=at.model.directions)
    return replace(at.stated, method=method, warnings=tuple(diagnostics))


def assemble_batch(
    reference: Reference,
    points: PointBatch,
    tangents: TangentBatch,
    geometry: LocalParametrization,
    errors: FloatArray,
) -> LinearArrays:
    """Return linear models at k points in the coordinates of a reference.

    The error of an entry is that of its row, ``errors`` (k, N + ny), over the size of its column; entries that are zero
    by the structure of the model have none.
    """
    t, kept, p, count = tangents, list(tangents.kept), len(tangents.kept), len(points)
    accuracy = np.empty((count, len(fields(Accuracy))))  # that of matrices follows from their errors when it is read
    accuracy[:, 6], accuracy[:, 7] = geometry.distance, geometry.condition_number
    values = {
        "T_u": np.broadcast_to(0.0, (count, *t.T.shape[1:2], points.inputs.shape[1])),
        "f0": t.rates[:, kept],
        "y0": points.states[:, kept],
        "x0": points.states,
        "u0": points.inputs,
        "out0": t.values,
        "time": points.time,
        "accuracy": accuracy,
        "visits": np.zeros((count, 2)),
        "coordinate_size": geometry.y_sizes,
        "input_size": geometry.u_sizes,
    }
    rows = _row_errors(reference.model, dict(reference.facts.pairs or {}), kept, geometry.T_errors[..., 0], errors)
    kept_zeros, output_zeros = reference.zeros[kept], reference.zeros[len(reference.model.states) :]
    zeros = {
        "A": kept_zeros[:, :p],
        "B": kept_zeros[:, p:],
        "C": output_zeros[:, :p],
        "D": output_zeros[:, p:],
    }
    matrices = {name: getattr(t, name) for name in MATRICES}
    row_errors = {f"row_error_{name}": each for name, each in rows.items()}
    return LinearArrays.of_batch(matrices | values | row_errors, zeros)


def _row_errors(
    model: Model, pairs: Mapping[int, int], kept: list[int], of_T: FloatArray, errors: FloatArray
) -> dict[str, FloatArray]:
    """Return what rows of matrices may be off by; what is known without asking is as good as T (k, N), or exact."""
    along_y, seen_y = errors[:, kept], errors[:, len(model.states) :].copy()
    along_u, seen_u = along_y.copy(), seen_y.copy()
    for row, i in enumerate(kept):
        if i in pairs:
            along_y[:, row], along_u[:, row] = of_T[:, pairs[i]], 0.0
    for row, copy in model.copies.items():
        seen_y[:, row], seen_u[:, row] = of_T[:, copy.index] if copy.kind == "state" else 0.0, 0.0
    return {"A": along_y, "B": along_u, "C": seen_y, "D": seen_u, "T": of_T}
