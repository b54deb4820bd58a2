"""Which method linearizes a model: the general algorithm, or one of its alternatives. This is the only choice of them.

| model or request | method |
| --- | --- |
| ``formulation=`` | the formulations of González et al.: :mod:`fmilin.formulations` |
| a model with its own solver, or ``stepping.lifted`` | derivatives or identification: :mod:`fmilin.identification` |
| ``at_singularity=True`` | the enlarged set of velocities: :mod:`fmilin.linearization.singular_configuration` |
| a large model of sparse equations | elimination along their graph: :mod:`fmilin.linearization.sparse_equations` |
| a large model with sparse derivatives | sparse matrices: :mod:`fmilin.linearization.sparse_states` |
| everything else | :mod:`fmilin.linearization.algorithm` |

The others take the place of what the general algorithm does between the evaluation of the point and the checks. The
list of checks is the same for all: each says at which points it has a meaning. An identification is checked by
responses that it has not seen, and chooses its way by them: its linear model is returned as it is.
"""

from __future__ import annotations

from dataclasses import replace

from fmilin.linear_model.model import LinearModel
from fmilin.linearization.algorithm import check, linearize_point
from fmilin.linearization.conserved_totals import keep_totals_of_point
from fmilin.linearization.linearization_context import AssembledPoint, FormulatedPoint
from fmilin.linearization.request import Request
from fmilin.linearization.suitability import require_options_of_steps
from fmilin.manifold.manifold_verification import VerifiedFacts
from fmilin.manifold.selection import Selection
from fmilin.model.capabilities import read_sparse_equations
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Stepped
from fmilin.options import Stepping
from fmilin.support.dataclass import dataclass

Linearized = tuple[LinearModel, Selection | None]
"""A linear model, and the coordinates that the next point of a path continues; None where a method has none."""


def linearize_by_method(
    model: Model, point: OperatingPoint, request: Request, previous: Selection | None = None
) -> Linearized:
    """Return the linear model at a point, by the method that the request and the kind of model call for."""
    if request.keep_totals:
        model, point = keep_totals_of_point(model, point)
    is_stepped = isinstance(model, Stepped) or (request.stepping is not None and request.stepping.lifted)
    if is_stepped and request.formulation is None:
        return _linearize_by_steps(model, point, request, previous)
    computed = compute_by_other_method(model, point, request)
    return linearize_point(model, point, request, previous) if computed is None else (check(computed), None)


def compute_by_other_method(model: Model, point: OperatingPoint, request: Request) -> AssembledPoint | None:
    """Return the linear model of a method other than the general algorithm; None where that is called for."""
    if request.formulation is not None:
        return _compute_by_formulation(model, point, request)
    if request.at_singularity:
        from fmilin.linearization.singular_configuration import compute_at_singularity

        return compute_at_singularity(model, point, request)
    equations = read_sparse_equations(model)
    if equations is None:
        from fmilin.linearization.sparse_states import compute_with_sparse_states

        return compute_with_sparse_states(model, point, request)
    from fmilin.linearization.sparse_equations import compute_sparsely

    return compute_sparsely(model, equations, point, request)


def _compute_by_formulation(model: Model, point: OperatingPoint, request: Request) -> AssembledPoint:
    from fmilin.formulations.formulation_procedure import linearize_by_formulation

    linear = linearize_by_formulation(model, point, request)
    evaluator = PointEvaluator(model)
    evaluator.evaluations += linear.method.evaluations
    bare = replace(linear, warnings=())
    return FormulatedPoint(evaluator, point, VerifiedFacts(is_transferable=False), request, bare, linear.warnings)


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
