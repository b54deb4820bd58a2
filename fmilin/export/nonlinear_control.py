"""The nonlinear model itself for python-control, in independent coordinates: every state stays on the manifold.

y' = D rho(x) f(t, x, u),  out = c(t, x, u),  x = Psi(t, y, u)    (Spencer eqs. 2.13 to 2.16)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fmilin.errors import NumericalError, cut_list
from fmilin.export.python_control import legal_name
from fmilin.manifold.frame import Frame
from fmilin.manifold.operating_points import apply_point_parameters, operating_point
from fmilin.manifold.verified_frame import build_frame
from fmilin.model.interface import Model, OperatingPoint
from fmilin.report.facts import print_fact
from fmilin.report.report_page import as_html, as_text
from fmilin.report.table import MAX_SIGNALS
from fmilin.signals import FloatArray
from fmilin.support.table_repr import Sheet

if TYPE_CHECKING:
    import control


@dataclass(frozen=True)
class NonlinearView:
    """A constrained model as python-control sees it."""

    # with the names of :func:`fmilin.export.python_control.legal_name`; in absolute values, and valid as far as its
    # coordinates are
    system: control.NonlinearIOSystem
    start: FloatArray  # (P,), its states at the point: the ``X0`` of ``input_output_response``
    inputs: FloatArray  # (nu,), the inputs at the point
    _frame: Frame

    def __repr__(self) -> str:
        return as_text(self._show)

    def _repr_html_(self) -> str:
        return as_html(self._show)

    def _show(self, page: Sheet) -> None:
        system = self.system
        y = [f"{n} = {v:.8g}" for n, v in zip(system.state_labels, self.start.tolist(), strict=True)]
        u = [f"{n} = {v:.8g}" for n, v in zip(system.input_labels, self.inputs.tolist(), strict=True)]
        print_fact(page, "System", [system.name, "nonlinear", "for python-control (.system)"])
        order = f"{system.nstates} independent states out of {len(self._frame.parametrization.x0)}"
        print_fact(page, "Order", [order])
        for word, pieces in (("Start", y), ("Inputs", u), ("Outputs", system.output_labels)):
            print_fact(page, word, cut_list(pieces, MAX_SIGNALS) or ["none"])

    def states(self, t: float, y: FloatArray, u: FloatArray | None = None) -> FloatArray:
        """Return all states (N,) for coordinates y (P,); ``u`` matters where inputs prescribe a motion."""
        return _states(self._frame, t, np.asarray(y, dtype=np.float64), self.inputs if u is None else u)


def nonlinear_view(
    model: Model,
    point: OperatingPoint | None = None,
    *,
    independent: Sequence[str] | None = None,
    coordinates: str = "partition",
) -> NonlinearView:
    """Return the model on its manifold as a system of python-control.

    Raises UsageError, ConstraintError or NumericalError as :func:`fmilin.linearize` at this point.

    Parameters
    ----------
    model : Model
        Open as long as the system is used.
    point : OperatingPoint, optional
        Where coordinates are chosen; where the model starts by default.
    independent : sequence of str, optional
        Coordinates to use, as for :func:`fmilin.linearize`; those that the model recommends by default.
    coordinates : {"partition", "tangent"}
        How they are chosen when none are named.
    """
    import control

    point = operating_point(model) if point is None else point
    model = apply_point_parameters(model, point)
    recommended = model.independent if coordinates == "partition" and len(model.constraints) else ()
    frame = build_frame(model, point, named=recommended if independent is None else independent, kind=coordinates)

    def rates(t: float, y: FloatArray, u: FloatArray, _: Mapping[str, object]) -> FloatArray:
        u = np.atleast_1d(u)[: len(model.inputs)]
        x = _states(frame, t, y, u)
        return frame.coordinates.jacobian(x) @ model.evaluate(float(t), x, u).derivatives

    def outputs(t: float, y: FloatArray, u: FloatArray, _: Mapping[str, object]) -> FloatArray:
        u = np.atleast_1d(u)[: len(model.inputs)]
        return model.evaluate(float(t), _states(frame, t, y, u), u).outputs

    system = control.nlsys(
        rates,
        outputs,
        name=legal_name(model.info.name) or "model",
        states=[legal_name(name) for name in frame.selection.signals.names],
        inputs=[legal_name(name) for name in model.inputs.names],
        outputs=[legal_name(name) for name in model.outputs.names],
    )
    return NonlinearView(system, frame.parametrization.y0.copy(), point.inputs.copy(), frame)


def _states(frame: Frame, t: float, y: FloatArray, u: FloatArray) -> FloatArray:
    try:
        return frame.parametrization.psi(np.asarray(y, dtype=np.float64), time=float(t), inputs=u)
    except NumericalError as error:
        raise NumericalError(
            f"{error} A system of python-control cannot change its coordinates; fmilin.simulate changes them during "
            "the motion.",
            condition_number=error.condition_number,
        ) from None
