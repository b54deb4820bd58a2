"""Which procedure a request is for: the general one, or one of those for a particular kind of question or model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fmilin.ground.errors import UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.request import Request
from fmilin.linearization.singular import linearize_at_singularity
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Stepped, Stepping

Strategy = Callable[[Model, OperatingPoint, Request], LinearModel]
"""Takes a model with the outputs that are wanted, a point and what was asked for."""


def strategy_for(model: Model, request: Request, general: Strategy) -> Strategy:
    """Return the procedure that answers a request: ``general`` unless the request or the kind of model has its own."""
    if request.formulation is not None:
        return by_formulation
    if isinstance(model, Stepped) or (request.stepping is not None and request.stepping.lifted):
        return lambda model, point, request: by_steps(model, point, request, general)
    if request.at_singularity:
        return at_singularity
    if (equations := model.sparse_equations()) is not None:
        from fmilin.linearization.large import by_sparse_equations

        return by_sparse_equations(equations, general)
    return general


def by_formulation(model: Model, point: OperatingPoint, request: Request) -> LinearModel:
    """Linearize Lagrange's equations by MCS, RCS or UCS."""
    from fmilin.native.formulations.procedure import linearized

    assert request.formulation is not None  # noqa: S101 - strategy_for has looked
    return linearized(
        model,
        point,
        request.formulation,
        independent=request.independent or (),
        at_singularity=request.at_singularity,
        descriptor=request.descriptor,
    )


def by_steps(model: Model, point: OperatingPoint, request: Request, general: Strategy) -> LinearModel:
    """Linearize a model that brings its own solver from what it answers."""
    from fmilin.linearization.identification.procedure import Task, linearize_stepped

    if request.at_singularity:
        raise UsageError("--at-singularity is for native models, not for models that are stepped.")
    if request.hold_modes:
        raise UsageError(
            "--hold-modes is for model exchange: a solver inside a model passes its events itself. Take --interface me."
        )
    if not isinstance(model, Stepped):
        from fmilin.linearization.identification.sampling import SampledModel

        model = SampledModel(model)

    def direct(derivatives: str | None) -> LinearModel:
        return general(model, point, request if derivatives is None else replace(request, derivatives=derivatives))

    stepping = request.stepping or Stepping()
    return linearize_stepped(
        Task(model, point, stepping, request.independent, request.coordinates, direct, request.keep_inaccurate)
    )


def at_singularity(model: Model, point: OperatingPoint, request: Request) -> LinearModel:
    """Linearize over the enlarged set of velocities."""
    return linearize_at_singularity(model, point, independent=request.independent or ())
