"""Which method linearizes a model: the general algorithm, or one of its alternatives. This is the only choice of them.

| model or request | method |
| --- | --- |
| ``formulation=`` | the formulations of González et al.: :mod:`fmilin.formulations` |
| a model with its own solver, or ``stepping.lifted`` | derivatives or identification: :mod:`fmilin.identification` |
| ``at_singularity=True`` | the enlarged set of velocities: :mod:`fmilin.linearization.lagrange` |
| a large model of sparse equations | elimination along their graph: :mod:`fmilin.linearization.lagrange` |
| everything else | :mod:`fmilin.linearization.algorithm` |
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fmilin.linear_model.model import LinearModel
from fmilin.linearization.algorithm import linearize_point
from fmilin.linearization.request import Request
from fmilin.linearization.suitability import require_options_of_steps
from fmilin.manifold.selection import Selection
from fmilin.model.capabilities import read_sparse_equations
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Stepped
from fmilin.options import Stepping

Linearized = tuple[LinearModel, Selection | None]
"""A linear model, and the coordinates that the next point of a path continues; None where a method has none."""


def linearize_by_method(
    model: Model, point: OperatingPoint, request: Request, previous: Selection | None = None
) -> Linearized:
    """Return the linear model at a point, by the method that the request and the kind of model call for."""
    if request.formulation is not None:
        from fmilin.formulations.procedure import linearize_by_formulation

        return linearize_by_formulation(model, point, request), None
    if isinstance(model, Stepped) or (request.stepping is not None and request.stepping.lifted):
        return _linearize_by_steps(model, point, request, previous)
    if request.at_singularity:
        from fmilin.linearization.lagrange import linearize_at_singularity

        return linearize_at_singularity(model, point, independent=request.independent or ()), None
    if (equations := read_sparse_equations(model)) is not None:
        from fmilin.linearization.lagrange import by_sparse_equations

        linear = by_sparse_equations(model, equations, point, request)
        if linear is not None:
            return linear, None
    return linearize_point(model, point, request, previous)


@dataclass(frozen=True)
class DirectLinearization:
    """The general algorithm, for a model that is run in steps and of which derivatives can be read."""

    request: Request
    previous: Selection | None

    def linearize(self, model: Model, point: OperatingPoint, derivatives: str | None) -> tuple[LinearModel, Selection]:
        """Return the linear model from derivatives of a kind, the user's choice if None, and its coordinates."""
        request = self.request if derivatives is None else replace(self.request, derivatives=derivatives)
        return linearize_point(model, point, request, self.previous)


def _linearize_by_steps(
    model: Model, point: OperatingPoint, request: Request, previous: Selection | None
) -> Linearized:
    """Linearize a model that brings its own solver: from derivatives that can be read, or from its responses."""
    from fmilin.identification.identify import IdentificationOptions, identify

    require_options_of_steps(request)
    options = IdentificationOptions(
        by_derivatives=DirectLinearization(request, previous),
        stepping=request.stepping or Stepping(),
        independent=request.independent,
        coordinates=request.coordinates,
        keep_inaccurate=request.keep_inaccurate,
    )
    return identify(model, point, options)
