"""Linear models along a given path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Unpack

import numpy as np

from fmilin.errors import UsageError
from fmilin.families.batch_solvers import FIRST_BLOCK, GROWTH, LARGEST_BLOCK
from fmilin.families.family import LinearFamily
from fmilin.families.family_builder import FamilyBuilder, build_outcome
from fmilin.families.grid import Grid
from fmilin.families.rows import OutcomeBlock, Template
from fmilin.linear_model.builder import find_inputs, with_inputs, with_parameters_as_inputs
from fmilin.linearization.algorithm import linearize_batch
from fmilin.linearization.batch_derivatives import limit_batch
from fmilin.linearization.linearization_context import BatchResult
from fmilin.linearization.linearize import add_parameter_derivatives, linearize_next
from fmilin.linearization.reference import Reference
from fmilin.linearization.request import Request
from fmilin.manifold.operating_points import apply_point_parameters
from fmilin.manifold.point_arrays import batch_points
from fmilin.manifold.selection import Selection
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.locks import one_at_a_time
from fmilin.model.memory import with_outputs
from fmilin.options import Linearization
from fmilin.options.function_options import FamilyOptions, takes_linearization

WORTH_A_BATCH = 3  # points that are left: fewer are linearized one by one


@one_at_a_time
@takes_linearization
def linearize_along(
    model: Model,
    points: Iterable[OperatingPoint],
    *,
    linearization: Linearization | None = None,
    **options: Unpack[FamilyOptions],
) -> LinearFamily:
    """Return one linear model per point of a path, over time or the number of the point, in coordinates without jumps.

    A partition is kept as long as it is well conditioned; a switch is a diagnostic of kind ``"coordinates-switched"``.
    Tangent coordinates are carried on smoothly. Raises FmilinError as :func:`fmilin.linearize`, at the first point that
    fails.

    Parameters
    ----------
    model : Model
    points : iterable of OperatingPoint
        Consistent, in the order of the path; at least one.
    linearization : Linearization, optional
        How each point is linearized; its options may be keywords instead. With ``parameters`` the family has
        ``family.derivatives["m"].A``.
    """
    return linearize_points(model, points, Request.of("linearize_along", linearization, options))


def linearize_points(model: Model, points: Iterable[OperatingPoint], request: Request) -> LinearFamily:
    """Return the linear models that a request describes; see :func:`linearize_along`.

    The points have all inputs of the model.
    """
    return linearize_path(model, points, request)[0]


def linearize_path(
    model: Model, points: Iterable[OperatingPoint], request: Request
) -> tuple[LinearFamily, Sequence[Selection | None]]:
    """Return the linear models of :func:`linearize_points`, and the coordinates of each point.

    None stands for coordinates that are states, at points of methods which choose none.
    """
    inputs, outputs = request.inputs, request.outputs
    points = list(points)
    require_points(points)
    if inputs is not None and not request.parameters and _others_at_start(model, points, inputs):
        # A smaller model, which answers for many points at once.
        chosen = find_inputs(model.inputs, inputs)
        points = [_with_inputs(point, chosen) for point in points]
        model, inputs = model.with_interface(inputs, None), None
    if outputs is not None:
        model = with_outputs(model, outputs)
    path = _PathFamily(model, replace(request, inputs=inputs, outputs=None), points)
    family = path.family()
    return family, path.selections


def _others_at_start(model: Model, points: Iterable[OperatingPoint], inputs: Sequence[str]) -> bool:
    """Whether the inputs that are not chosen are at their start values, which a model without them has."""
    if any(not model.inputs.has(name) for name in inputs):
        return False
    unchosen = np.setdiff1d(np.arange(len(model.inputs)), find_inputs(model.inputs, inputs))
    return all((point.inputs[unchosen] == model.start.inputs[unchosen]).all() for point in points)


def _with_inputs(point: OperatingPoint, chosen: Sequence[int]) -> OperatingPoint:
    """Return a point with some of its inputs, in this order."""
    return OperatingPoint(point.time, point.states, point.inputs[list(chosen)], point.parameters)


def require_points(points: Iterable[object]) -> None:
    """Raise UsageError where something in a list of operating points is not one."""
    for number, point in enumerate(points, 1):
        if not isinstance(point, OperatingPoint):
            raise UsageError(
                f"Point {number} is of the type '{type(point).__name__}', and should be an OperatingPoint: create it "
                "with fl.operating_point(model, {name: value})."
            )


class _PathFamily:
    """The points of a path, which are walked in their order."""

    def __init__(self, model: Model, request: Request, points: list[OperatingPoint]) -> None:
        if not points:
            raise UsageError("A family of linear models needs at least one linear model.")
        self._model, self._request, self._points = model, request, points
        times = [point.time for point in points]
        moves = len(set(times)) == len(times) > 1
        axis = {"time": np.array(times)} if moves else {"point": np.arange(float(len(points)))}
        self._builder = FamilyBuilder(Grid(axis, zipped=True))
        self._parameters = tuple(dict.fromkeys(name for point in points for name in point.parameters))
        self._template: Template | None = None
        self._block = LARGEST_BLOCK
        self.selections: list[Selection | None] = []

    def family(self) -> LinearFamily:
        """Walk along the path."""
        remaining_start, selection = 0, None
        while remaining_start < len(self._points):
            number = remaining_start
            selection, reference = self._one(number, selection)
            self.selections.append(selection)
            remaining_start = number + 1
            if self._request.inputs is not None:  # a batch has all inputs
                continue
            for outcomes in self._linearize_together(reference, remaining_start):
                self._builder.add_all(outcomes)
                self.selections += [selection] * len(outcomes)
                remaining_start += len(outcomes)
        return self._builder.family()

    def _one(self, number: int, previous: Selection | None) -> tuple[Selection | None, Reference]:
        """Linearize one point."""
        point, names = self._points[number], self._request.inputs
        full_model, at = self._model, point
        if names is not None:
            full_model, at = with_parameters_as_inputs(full_model, point, names)
        model = apply_point_parameters(full_model, at)
        full, selection = linearize_next(model, at, self._request, previous)
        linear = full if names is None else with_inputs(full, find_inputs(model.inputs, names))
        if self._request.parameters:
            linear = add_parameter_derivatives(full_model, at, linear, self._request)
        self._template = self._template or Template.of(linear, self._parameters)
        outcome = build_outcome(number, linear, self._template, described=True)
        if not outcome.ok:
            raise UsageError(f"The linear models do not belong together: model {number + 1}: {outcome.reason}")
        self._builder.add(outcome)
        self._choice = linear.states, (linear.method.derivatives, linear.method.coordinates)
        return selection, Reference(model, self._request, at, linear, selection, point_model=model)

    def _linearize_together(self, reference: Reference, first: int) -> Iterator[OutcomeBlock]:
        """Yield the points from the first on that are linearized together, as far as none has to stand alone."""
        template, largest = Template.of(reference.linear, self._parameters), limit_batch(reference)
        while len(self._points) - first >= WORTH_A_BATCH:
            parameters = self._points[first - 1].parameters  # a batch has the model with those of the point before
            following = self._points[first : first + min(self._block, largest)]
            points = list(
                takewhile(
                    lambda point: point.parameters == parameters and point.slope_changes is None,  # noqa: B023
                    following,
                )
            )
            result = linearize_batch(reference, batch_points(points)) if points else None
            good = 0 if result is None else result.good
            is_complete = good == len(points)
            self._block = min(GROWTH * self._block, LARGEST_BLOCK) if is_complete else max(good, FIRST_BLOCK)
            if result is None or not good:
                return
            yield self._describe(first, points[:good], result, template, parameters)
            first += good
            if not is_complete:
                return

    def _describe(
        self,
        first: int,
        points: list[OperatingPoint],
        result: BatchResult,
        template: Template,
        parameters: Mapping[str, float],
    ) -> OutcomeBlock:
        """Return what came of points that were linearized together."""
        count = len(points)
        values = np.array([parameters.get(name, np.nan) for name in self._parameters])
        models = result.models[:count]
        models.stored["parameters"] = np.broadcast_to(values, (count, len(values)))
        remarks = result.diagnostics
        if any(point.remarks for point in points):
            remarks = remarks.with_first([point.remarks for point in points])
        return OutcomeBlock(np.arange(first, first + count), models, template, *self._choice, remarks)
