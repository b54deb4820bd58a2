"""From independent coordinates and slopes along them to the linear model, with its accuracy.

With y = R (x - x0) and x = Psi(y) (Spencer sections 2.2 and 4.1), at any consistent point:

    A = R f_x DPsi,  B = R f_u,  C = c_x DPsi,  D = c_u,  T = DPsi,  f0 = R f(t0, x0, u0)

Nonlinear coordinates y = rho(x) have R = D rho(x0) and one more term, d(D rho(x) f0)/dx DPsi in A, from y' = D rho x'.
Inputs that prescribe a motion move the manifold: x = Psi(y, u), and Psi_u adds f_x Psi_u to B and c_x Psi_u to D.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fmilin.ground.remarks import Remark
from fmilin.linear_model.builder import IndependentCoordinates, Slopes, built, point_of
from fmilin.linear_model.model import LinearModel
from fmilin.manifold.frame import Frame
from fmilin.manifold.slopes import TangentSlopes
from fmilin.model.counting import CountedModel
from fmilin.model.interface import Evaluation, OperatingPoint


def assembled(
    model: CountedModel,
    point: OperatingPoint,
    base: Evaluation,
    frame: Frame,
    slopes: TangentSlopes,
    remarks: Sequence[Remark],
) -> LinearModel:
    """Return the linear model in the coordinates of a frame; ``base`` is what the model says at the point."""
    R, T = frame.coordinates.R, frame.T
    A, B, size = R @ slopes.f_y, R @ slopes.f_u, np.abs(R)
    if not frame.coordinates.is_linear:
        bend = frame.coordinates.curvature(point.states, base.derivatives)  # d(D rho f)
        A, B = A + bend @ T, B + bend @ slopes.x_u
    coordinates = IndependentCoordinates(
        frame.signals, model.states, frame.y0, T, frame.T_error, frame.kind, frame.condition_number, frame.residual,
        T_u=slopes.x_u,
    )  # fmt: skip
    errors = size @ slopes.f_y_error, size @ slopes.f_u_error, slopes.c_y_error, slopes.c_u_error
    own = Slopes(A, B, slopes.c_y, slopes.c_u, R @ base.derivatives, *errors)
    method = slopes.method, model.evaluations, model.directions
    return built(model, coordinates, own, point_of(model, point, base.outputs), method, remarks)
