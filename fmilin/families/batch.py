"""Linear models at any points of one model, given as arrays and computed together: no point depends on another.

Points are linearized in blocks, in coordinates that are chosen once; blocks share the processor's cores. Points where
checks leave a doubt are computed alone, so that every result is that of a single call.

The file is longer than others because one class has the whole way from arrays to a family, most of it docstrings.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, UnknownNameError, UsageError
from fmilin.families.array_arguments import read_column, read_numbers, read_rows
from fmilin.families.batch_solvers import AssembledPoints
from fmilin.families.device_code import DeviceCode, make_device_code
from fmilin.families.family import LinearFamily
from fmilin.families.family_builder import FamilyBuilder, build_outcome
from fmilin.families.grid import Grid
from fmilin.families.rows import OutcomeBlock, PointOutcome, Template
from fmilin.linear_model.builder import find_inputs
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.algorithm import linearize_batch
from fmilin.linearization.batch_derivatives import limit_batch
from fmilin.linearization.linearize import linearize_next, linearize_request
from fmilin.linearization.reference import Reference
from fmilin.linearization.request import Request
from fmilin.manifold.operating_points import apply_point_parameters, assemble_start, operating_point
from fmilin.manifold.point_arrays import PointBatch
from fmilin.model.capabilities import HasDelays, HasSamples
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.locks import held, one_at_a_time
from fmilin.model.memory import with_outputs
from fmilin.models.batch_graph import may_move_constraints
from fmilin.options import Linearization
from fmilin.options.function_options import BoxOptions, takes_linearization
from fmilin.signals import FloatArray, Signals
from fmilin.support.kinds import kinds_checked

Blocks = list[tuple[NDArray[np.intp], OutcomeBlock | None]]
"""Numbers of points, and their linear models; None where each has to be computed alone."""

MIN_HALVED_POINTS = 8
"""Points of a block that is computed in halves where it cannot be computed as a whole."""

MAX_POINTS_IN_MEMORY = 2**14
"""Points with the linear models that :meth:`BatchLinearizer.map` keeps at a time."""


@one_at_a_time
@takes_linearization
def batch(
    model: Model,
    point: OperatingPoint | None = None,
    *,
    vary: Sequence[str] = (),
    threads: int | None = None,
    linearization: Linearization | None = None,
    **options: Unpack[BoxOptions],
) -> BatchLinearizer:
    """Return a function from arrays of points to their linear models, all in the same coordinates.

    Each result is that of :func:`fmilin.linearize` with ``independent=`` these coordinates at that point: the same
    checks run, and where one leaves a doubt the point is computed alone. Raises FmilinError as
    :func:`fmilin.linearize`, at the reference point; UsageError for a sampled model or one with delays.

    Parameters
    ----------
    model : Model
    point : OperatingPoint, optional
        The reference, at which coordinates are chosen and the model is verified; where it starts by default.
    vary : sequence of str
        Parameters that differ between points.
    threads : int, optional
        That share the points; by default one for each core that this process may use. FMUs and other models without
        exact derivatives are computed by one.
    linearization : Linearization, optional
        How each point is linearized; its options may be keywords instead.

    Examples
    --------
    >>> import numpy as np
    >>> import fmilin as fl
    >>> from fmilin.systems import cartesian_pendulum
    >>> linearize = fl.batch(cartesian_pendulum(length=1.0, gravity=4.0))
    >>> family = linearize.at({linearize.coordinates.names[0]: np.array([0.0, 0.1, 0.2])})
    >>> family.A.shape
    (3, 2, 2)
    """
    return BatchLinearizer(model, point, vary, threads, Request.of("batch", linearization, options))


def count_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _AssembledRows(NamedTuple):
    """Points with given values, and what is said of those that were assembled alone, by their numbers."""

    points: PointBatch
    reasons: Mapping[int, str]  # why there is none
    remarks: Mapping[int, tuple[Remark, ...]]


class BatchLinearizer:
    """A function from points (arrays) to linear models; see :func:`fmilin.batch`."""

    def __init__(
        self,
        model: Model,
        point: OperatingPoint | None,
        vary: Sequence[str],
        threads: int | None,
        request: Request,
    ) -> None:
        if isinstance(model, HasSamples | HasDelays):
            raise UsageError(
                f"'{model.info.name}' has sampled parts or delays: its points are computed one by one, by fl.sweep."
            )
        if threads is not None and (isinstance(threads, bool) or threads < 1):
            raise UsageError(f"threads={threads!r} must be a positive number of threads.")
        for name in vary:
            if name not in model.parameters:
                raise UnknownNameError.among(name, list(model.parameters), "a parameter of the model")
        point = assemble_start(model) if point is None else point
        values = {name: float(model.parameters[name]) for name in vary} | dict(point.parameters)
        point = replace(point, parameters=values)
        self._model, self._request, self._vary = model, request, tuple(vary)
        plain = replace(request, inputs=None, outputs=None)
        fixed_values = {name: value for name, value in values.items() if name not in vary}
        with_requested = apply_point_parameters(model, replace(point, parameters=fixed_values))
        if request.outputs is not None:
            with_requested = with_outputs(with_requested, request.outputs)
        point_model = apply_point_parameters(with_requested, point)
        linear, selection = linearize_next(point_model, point, plain, None)
        self._reference = Reference(
            with_requested, plain, point, linear, selection, point_model=point_model, varied=self._vary
        )
        self._chosen_inputs = None if request.inputs is None else find_inputs(model.inputs, request.inputs)
        # Every point alone has the same coordinates, also where others would be chosen.
        names = self._reference.kept_names if self._reference.dependent else None
        self._alone = replace(request, independent=names)
        self._is_batched = self._prepare()
        can_share = self._is_batched and not self._reference.is_differenced
        self._threads = (threads or count_cores()) if can_share else 1

    def __repr__(self) -> str:
        names = ", ".join(self.coordinates.names)
        varied = f", varying {', '.join(self._vary)}" if self._vary else ""
        return f"<BatchLinearizer of '{self._model.info.name}' in the coordinates {names}{varied}>"

    @property
    def linear(self) -> LinearModel:
        """The linear model at the reference point, with all inputs."""
        return self._reference.linear

    @property
    def coordinates(self) -> Signals:
        """The independent coordinates of all points."""
        return self._reference.linear.states

    @property
    def computes_together(self) -> bool:
        """Whether points are computed together; the model or the reference point may allow no batch."""
        return self._is_batched

    def __call__(
        self,
        states: ArrayLike,
        inputs: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        time: ArrayLike | None = None,
    ) -> LinearFamily:
        """Return the linear models at points on the manifold, numbered in their order along the axis ``"point"``.

        Arrays may be of any library that has ``__dlpack__`` on the processor, or convert to NumPy.

        Parameters
        ----------
        states : array_like, shape (k, N)
            All states of each point, in the order of ``model.states``.
        inputs : array_like, shape (k, nu), optional
            All inputs of each point; those of the reference point by default.
        parameters : mapping of str to array_like, shape (k,)
            Values of the parameters ``vary``; those that are missing are as at the reference point.
        time : array_like, shape (k,) or a number
            In seconds; that of the reference point by default.

        Returns
        -------
        LinearFamily
            ``family.A`` (k, P, P) to ``family.T``, ``f0``, errors as ``family.array("error_A")``; ``family.ok`` says
            where there is a linear model, ``family.reasons`` why there is none. Entries are NaN there.
        """
        points = self._collect_points(states, inputs, parameters or {}, time)
        return self._linearize(points, Grid({"point": np.arange(float(len(points)))}, zipped=True))

    @kinds_checked
    def at(self, values: Mapping[str, ArrayLike], *, time: float | None = None) -> LinearFamily:
        """Return the linear models where states, inputs and varied parameters have these values, each (k,).

        The other states follow from the constraints, as in :func:`fmilin.operating_point`.
        """
        model = self._reference.model
        arrays = {name: read_numbers(value, f"'{name}'") for name, value in values.items()}
        if not any(array.ndim for array in arrays.values()):
            raise UsageError("Points are given by arrays: name at least one state, input or varied parameter with one.")
        count = max(array.size for array in arrays.values())
        columns = {name: read_column(array, f"'{name}'", count) for name, array in arrays.items()}
        for name in columns:
            if not (model.states.has(name) or model.inputs.has(name) or name in self._vary):
                known_names = [*model.states.names, *model.inputs.names, *self._vary]
                raise UnknownNameError.among(name, known_names, "a state, an input or one of the parameters in vary=")
        seconds = self._reference.point.time if time is None else float(time)
        with held(self._model):
            assembled = self._assemble(columns, seconds)
        return self._linearize(assembled.points, Grid(columns, zipped=True), assembled)

    @kinds_checked
    def map(
        self,
        function: Callable[[LinearFamily], NDArray[Any]],
        states: ArrayLike,
        inputs: ArrayLike | None = None,
        *,
        parameters: Mapping[str, ArrayLike] | None = None,
        time: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """Return ``function`` of the linear models, joined along the points; only some of these are kept at a time.

        ``function`` is given a family of at most 16384 points and returns an array with one row for each:
        ``lambda family: np.linalg.eigvals(family.A).real.max(axis=1)``. Other arguments are those of a call.
        """
        points = self._collect_points(states, inputs, parameters or {}, time)
        parts = []
        for first in range(0, max(len(points), 1), MAX_POINTS_IN_MEMORY):
            part = points[first : first + MAX_POINTS_IN_MEMORY]
            numbers = np.arange(first, first + len(part), dtype=np.float64)
            result = np.asarray(function(self._linearize(part, Grid({"point": numbers}, zipped=True))))
            if result.shape[:1] != (len(part),):
                raise UsageError(
                    f"The function of a map must return one row for each of the {len(part)} points, not an array of "
                    f"the shape {result.shape}."
                )
            parts.append(result)
        return np.concatenate(parts)

    def make_device_code(self) -> DeviceCode:
        """Return the derivatives along the coordinates as a kernel in CUDA C++, for points that are already consistent.

        Raises UsageError where the model is not native, or has no exact derivatives.
        """
        with held(self._model):
            return make_device_code(self._reference)

    def _prepare(self) -> bool:
        """Compute what all points share, in this thread; return whether points are computed together."""
        reference = self._reference
        if not reference.is_usable:
            return False
        try:
            if not reference.is_differentiable_in_batches:
                return False
        except (FmilinError, np.linalg.LinAlgError):
            return False
        return self._linearize_block(self._repeat_reference(1)) is not None

    def _repeat_reference(self, count: int) -> PointBatch:
        point = self._reference.point
        parameters = {name: np.full(count, point.parameters[name]) for name in self._vary}
        states, inputs = np.tile(point.states, (count, 1)), np.tile(point.inputs, (count, 1))
        return PointBatch(np.full(count, point.time), states, inputs, parameters)

    def _collect_points(
        self,
        states: ArrayLike,
        inputs: ArrayLike | None,
        parameters: Mapping[str, ArrayLike],
        time: ArrayLike | None,
    ) -> PointBatch:
        """Return the points of a call, checked."""
        model = self._reference.model
        x = read_rows(states, "states", len(model.states))
        points = self._repeat_reference(len(x))
        columns = dict(points.parameters)
        for name, values in parameters.items():
            if name not in self._vary:
                raise UnknownNameError.among(name, list(self._vary), "one of the parameters in vary=")
            columns[name] = read_column(values, f"'{name}'", len(x))
        u = points.inputs if inputs is None else read_rows(inputs, "inputs", len(model.inputs))
        if len(u) != len(x):
            raise UsageError(
                f"There are {len(x)} rows of states and {len(u)} rows of inputs: give one of each a point."
            )
        seconds = points.time if time is None else read_column(time, "time", len(x))
        return PointBatch(seconds, x, u, columns)

    def _assemble(self, columns: Mapping[str, FloatArray], time: float) -> _AssembledRows:
        """Return points with these values; those that are not solved together are assembled one by one."""
        model, count = self._reference.model, len(next(iter(columns.values())))
        repeated = self._repeat_reference(count)
        parameters = {name: columns.get(name, values) for name, values in repeated.parameters.items()}
        points = replace(repeated, time=np.full(count, time), parameters=parameters)
        signals = {name: values for name, values in columns.items() if name not in self._vary}
        for name, values in signals.items():
            if model.inputs.has(name):
                points.inputs[:, model.inputs.positions[name]] = values
        is_solved = np.zeros(count, dtype=bool)
        if not may_move_constraints(model, self._vary):  # else each point has constraints of its own
            together = AssembledPoints(model, time, Grid(signals, zipped=True), {})
            if together.possible:
                solved = together.solve(points.states, points.inputs, signals)
                points.states[:], is_solved = solved.points.states, solved.is_solved
        reasons: dict[int, str] = {}
        remarks: dict[int, tuple[Remark, ...]] = {}
        for number in np.flatnonzero(~is_solved).tolist():
            values_here = {name: float(values[number]) for name, values in signals.items()}
            changed = {name: float(values[number]) for name, values in points.parameters.items()}
            try:
                point_model = model.with_parameters(changed) if changed else model
                point = operating_point(point_model, values_here, time=time)
            except FmilinError as error:
                reasons[number] = str(error)
                continue
            points.states[number] = point.states
            if point.remarks:
                remarks[number] = point.remarks
        return _AssembledRows(points, reasons, remarks)

    def _linearize(self, points: PointBatch, grid: Grid, assembled: _AssembledRows | None = None) -> LinearFamily:
        """Return the linear models at points; where these were ``assembled``, not those that could not be."""
        if not len(points):
            raise UsageError("A family of linear models needs at least one point.")
        builder = FamilyBuilder(grid)
        reasons, remarks = ({}, {}) if assembled is None else (assembled.reasons, assembled.remarks)
        builder.add_all([PointOutcome(number, reason) for number, reason in reasons.items()])
        # Diagnostics of a point belong to those of its linear model, which a batch does not have.
        numbers = np.setdiff1d(np.arange(len(points)), [*reasons, *remarks]).astype(np.intp)
        with held(self._model):
            alone: list[int] = [*remarks, *([] if self._is_batched else numbers.tolist())]
            if self._is_batched and len(numbers):
                size = min(limit_batch(self._reference), max(1, -(-len(numbers) // self._threads)))
                blocks = [numbers[first : first + size] for first in range(0, len(numbers), size)]
                for block, outcomes in self._compute_blocks(blocks, points):
                    is_good = np.zeros(len(block), dtype=bool)
                    if outcomes is not None:
                        is_good[np.searchsorted(block, outcomes.numbers)] = True
                        builder.add_all(outcomes)
                    alone += block[~is_good].tolist()
            builder.add_all(self._linearize_alone(number, points, remarks.get(number, ())) for number in alone)
        return builder.family()

    def _compute_blocks(
        self, blocks: list[NDArray[np.intp]], points: PointBatch
    ) -> Iterator[tuple[NDArray[np.intp], OutcomeBlock | None]]:
        """Yield blocks with the linear models of their points that are beyond doubt."""

        def compute(block: NDArray[np.intp]) -> Blocks:
            outcomes = self._linearize_block(points[block], block)
            if outcomes is not None or len(block) < MIN_HALVED_POINTS:
                return [(block, outcomes)]
            # At one of the points the model has no answer, which leaves none for the others of its block.
            middle = len(block) // 2
            return [*compute(block[:middle]), *compute(block[middle:])]

        first_block, *further_blocks = blocks
        yield from compute(first_block)  # the model compiles itself here, if that pays
        if self._threads == 1:
            for block in further_blocks:
                yield from compute(block)
            return
        with ThreadPoolExecutor(self._threads) as pool:
            for computed in pool.map(compute, further_blocks):
                yield from computed

    def _linearize_block(self, points: PointBatch, numbers: NDArray[np.intp] | None = None) -> OutcomeBlock | None:
        """Return the linear models of points that are beyond doubt; None if all have to be computed alone."""
        reference = self._reference
        result = linearize_batch(reference, points)
        if result is None:
            return None
        numbers = np.arange(len(points)) if numbers is None else numbers
        is_good = ~result.is_doubtful
        models = result.models
        parameters = np.empty((len(points), len(self._parameter_names)))
        for column, name in enumerate(self._parameter_names):
            parameters[:, column] = points.parameters.get(name, reference.point.parameters[name])
        models.stored["parameters"] = parameters
        if self._chosen_inputs is not None:
            models = models.with_inputs(self._chosen_inputs)
        remarks = result.diagnostics
        if not is_good.all():
            models, remarks = models[is_good], remarks.select(np.flatnonzero(is_good))
        method = (reference.linear.method.derivatives, reference.linear.method.coordinates)
        return OutcomeBlock(numbers[is_good], models, self._template, self.coordinates, method, remarks)

    def _linearize_alone(self, number: int, points: PointBatch, remarks: tuple[Remark, ...]) -> PointOutcome:
        parameters = {name: float(values[number]) for name, values in points.parameters.items()}
        parameters = dict(self._reference.point.parameters) | parameters
        time, x, u = float(points.time[number]), points.states[number], points.inputs[number]
        point = OperatingPoint(time, x, u, parameters, remarks=remarks)
        try:
            linear = linearize_request(self._model, point, self._alone)
        except FmilinError as error:
            return PointOutcome(number, str(error), kind=type(error).__name__)
        return build_outcome(number, linear, self._template)

    @property
    def _parameter_names(self) -> tuple[str, ...]:
        return tuple(self._reference.point.parameters)

    @property
    def _template(self) -> Template:
        template = Template.of(self._reference.linear, self._parameter_names)
        if self._chosen_inputs is None:
            return template
        return replace(template, inputs=template.inputs.select(self._chosen_inputs))
