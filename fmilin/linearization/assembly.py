"""From independent coordinates and slopes along them to the linear model, with its accuracy.

With y = R (x - x0) and x = Psi(y) (Spencer sections 2.2 and 4.1), at any consistent point:

    A = R f_x DPsi,  B = R f_u,  C = c_x DPsi,  D = c_u,  T = DPsi,  f0 = R f(t0, x0, u0)

Nonlinear coordinates y = rho(x) have R = D rho(x0) and one more term, d(D rho(x) f0)/dx DPsi in A, from y' = D rho x'.
Inputs that prescribe a motion move the manifold: x = Psi(y, u), and Psi_u adds f_x Psi_u to B and c_x Psi_u to D.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fmilin.linear_model.model import Accuracy, EntryErrors, LinearModel, Method, Point, relative_error
from fmilin.manifold.frame import Frame
from fmilin.manifold.slopes import TangentSlopes
from fmilin.model.counting import CountedModel
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.remarks import Remark

__all__ = ["assembled", "point_of"]


def assembled(
    model: CountedModel,
    point: OperatingPoint,
    base: Evaluation,
    frame: Frame,
    slopes: TangentSlopes,
    remarks: Sequence[Remark],
) -> LinearModel:
    """Return the linear model.

    Parameters
    ----------
    model : CountedModel
        How often it was visited is said in the result.
    point : OperatingPoint
    base : Evaluation
        Of the model at the point.
    frame : Frame
        The coordinates.
    slopes : TangentSlopes
        Along them, and along the inputs.
    remarks : sequence of Remark
    """
    R, T = frame.coordinates.R, frame.T
    A, B = R @ slopes.f_y, R @ slopes.f_u
    if not frame.coordinates.is_linear:
        bend = frame.coordinates.curvature(point.states, base.derivatives)  # d(D rho f)
        A, B = A + bend @ T, B + bend @ slopes.x_u
    size = np.abs(R)
    errors = EntryErrors(
        A=size @ slopes.f_y_error,
        B=size @ slopes.f_u_error,
        C=slopes.c_y_error,
        D=slopes.c_u_error,
        T=frame.T_error,
    )
    f0 = R @ base.derivatives
    return LinearModel(
        A=A,
        B=B,
        C=slopes.c_y,
        D=slopes.c_u,
        T=T,
        f0=f0,
        states=frame.signals,
        full_states=model.states,
        inputs=model.inputs,
        outputs=model.outputs,
        y0=frame.y0,
        point=point_of(model, point, dict(zip(model.outputs.names, base.outputs.tolist(), strict=True))),
        accuracy=Accuracy(
            A=relative_error(errors.A, A),
            B=relative_error(errors.B, B),
            C=relative_error(errors.C, slopes.c_y),
            D=relative_error(errors.D, slopes.c_u),
            T=relative_error(errors.T, T),
            f0=0.0 if not f0.any() else float(np.finfo(float).eps),
            constraint_residual=frame.residual,
            conditioning=frame.condition_number,
        ),
        method=Method(slopes.method, frame.kind, model.evaluations, model.directions),
        model=model.info,
        warnings=tuple(remarks),
        T_u=slopes.x_u,
        errors=errors,
    )


def point_of(model: Model, point: OperatingPoint, outputs: Mapping[str, float]) -> Point:
    """Return a point by the names of a model's signals."""
    return Point(
        time=point.time,
        states=dict(zip(model.states.names, point.states.tolist(), strict=True)),
        inputs=dict(zip(model.inputs.names, point.inputs.tolist(), strict=True)),
        outputs=outputs,
        parameters=dict(point.parameters),
    )
