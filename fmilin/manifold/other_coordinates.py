"""From the coordinates of a frame to others at the same point: nothing is measured anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import ROUNDING
from fmilin.manifold.frame import Frame
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.parametrization import LocalParametrization
from fmilin.manifold.selection import Selection
from fmilin.manifold.slopes import TangentSlopes
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.numerics.differences.differences import Slopes


def with_selection(frame: Frame, point: OperatingPoint, selection: Selection) -> Frame:
    """Return the frame of other coordinates at the same point; what was verified of the manifold holds on."""
    parametrization = LocalParametrization(
        frame.invariants,
        frame.parametrization.rows,
        selection.coordinates,
        point.time,
        point.states,
        condition_number=selection.condition_number,
    )
    return replace(frame, parametrization=parametrization, selection=selection)


def in_coordinates(
    model: Model, point: OperatingPoint, base: Evaluation, frame: Frame, slopes: TangentSlopes, selection: Selection
) -> tuple[Frame, TangentSlopes]:
    """Return the frame of other coordinates and the slopes along them: nothing is measured anew."""
    other = with_selection(frame, point, selection)
    S = np.linalg.inv(selection.coordinates.R @ frame.T)
    size = np.abs(S)
    rounding = float(np.finfo(float).eps) * (frame.condition_number + other.condition_number)

    def turned(J: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
        jacobian, terms = J @ S, np.abs(J) @ size
        cancelled = np.abs(jacobian) <= ROUNDING * terms  # a zero that is none spreads double eigenvalues
        return np.where(cancelled, 0.0, jacobian), error @ size + rounding * terms

    f_y, f_y_error = turned(slopes.f_y, slopes.f_y_error)
    c_y, c_y_error = turned(slopes.c_y, slopes.c_y_error)
    J = np.block([[f_y, slopes.f_u], [c_y, slopes.c_u]])
    error = np.block([[f_y_error, slopes.f_u_error], [c_y_error, slopes.c_u_error]])
    none = np.zeros_like(J)
    jacobian = Neighbourhood(model, other, point, base).with_exact_rows(Slopes(J, error, none, none.copy()))
    n, p = f_y.shape
    J, error = jacobian.J, jacobian.error
    return other, replace(
        slopes, f_y=J[:n, :p], c_y=J[n:, :p], f_y_error=error[:n, :p], c_y_error=error[n:, :p], x_u=other.x_u
    )
