"""A model with a graph, evaluated and differentiated at many points at once; and its second derivatives.

With the kept states y and the others z, the invariants h(y, z) = 0 give dz/dy = -h_z^-1 h_y, and whatever has
derivatives (f_y, f_z, f_u) on all states has f_y + f_z dz/dy and f_u on the manifold.

With q = (f, c, h) over (x, u, p, w), W w = r and e = r - W w, w held, the derivatives along s = (x, u) are q_s + q_w
w_s, w_s = W^-1 e_s. Along d = (dx, du, dp) w moves by W^-1 (e_d), each of q_s, q_w, e_s and W by its own directional
derivative, and w_s by W^-1 (de_s - dW w_s).

The module is longer than others because both parts use the same graph and the same derivations; the second,
derivatives that change along a direction, may become a module of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from fmilin.codegen.graph_evaluator import Backend, Evaluator
from fmilin.codegen.implicit import ImplicitSystem, jacobian
from fmilin.codegen.system_functions import StackFunctions, SystemFunctions, has_kinks
from fmilin.codegen.vectorized_code import Reduction
from fmilin.errors import NumericalError, UsageError
from fmilin.manifold.frame import kept_states, row_terms
from fmilin.manifold.operating_points import require_sizes
from fmilin.manifold.parametrization import LAST_STEP, MAX_NEWTON_ITERATIONS
from fmilin.manifold.rank import independent_rows, row_sizes
from fmilin.model.capabilities import HasVariedGraph, has_graph, read_graph, read_sparse_equations
from fmilin.model.interface import (
    UNCHANGED,
    Changes,
    Evaluation,
    Model,
    OperatingPoint,
    TangentBatch,
)
from fmilin.signals import FloatArray

SX = Any  # casadi.SX: casadi ships no types

MAX_DEPENDENT_DERIVATIVE = (
    1e6  # derivatives of dependent states beyond this are doubtful: the rows of h that give them are nearly dependent
)

_graphs: WeakKeyDictionary[Model, BatchGraph] = WeakKeyDictionary()  # a second sweep finds the functions compiled
_varied_graphs: WeakKeyDictionary[Model, dict[tuple[str, ...], BatchGraph | None]] = WeakKeyDictionary()
"""Graphs with symbols for some parameters, by the names of these."""


@dataclass(frozen=True, slots=True)
class BatchArguments:
    """Values and derivatives at k points; columns of the derivatives are all states, then all inputs."""

    f: FloatArray  # (k, N), rates
    c: FloatArray  # (k, ny), outputs
    h: FloatArray  # (k, m), invariants
    f_z: FloatArray  # shape (k, N, N + nu)
    c_z: FloatArray  # shape (k, ny, N + nu)
    h_z: FloatArray  # shape (k, m, N + nu)


def batch_graph(model: Model, varied: Sequence[str]) -> BatchGraph | None:
    """Return the functions of a model, with ``varied`` parameters; None where it has no graph with its constraints."""
    used = {name for row in model.constraints.rows for name in row.expression.names}
    if used.intersection(varied):
        return None
    if varied and isinstance(model, HasVariedGraph):
        return _make_varied_graph(model, tuple(sorted(varied)))
    graph = _graphs.get(model)
    if graph is None:
        system = read_implicit_system(model)
        if system is None:
            return None
        graph = _graphs[model] = BatchGraph(model, system)
    return None if any(name not in graph.names for name in varied) else graph


def _make_varied_graph(model: Model, varied: tuple[str, ...]) -> BatchGraph | None:
    graphs = _varied_graphs.setdefault(model, {})
    if varied not in graphs:
        system = read_implicit_system(model, varied)
        graphs[varied] = None if system is None else BatchGraph(model, system)
    return graphs[varied]


def may_move_constraints(model: Model, parameters: Sequence[str]) -> bool:
    """Whether constraints may depend on these parameters; of models without a graph that is not known."""
    if not parameters or not len(model.constraints):
        return False
    graph = batch_graph(model, tuple(parameters))
    return graph is None or graph.may_move_constraints(parameters)


def is_compiled(model: Model) -> bool:
    """Return whether compiled code computes the functions of a model by now, without making them."""
    graph = _graphs.get(model)
    return graph is not None and graph.stacks.kind == "c"


def read_implicit_system(model: Model, varied: Sequence[str] = ()) -> ImplicitSystem | None:
    """Return the graph of a dense model with its constraints in it and free of inputs; else None.

    Parameters ``varied`` of a model with numbers for them become symbols.
    """
    if not has_graph(model) or read_sparse_equations(model) is not None:
        return None
    constraints = model.constraints
    system = model.in_varied_graph(varied) if varied and isinstance(model, HasVariedGraph) else read_graph(model)
    if system is None or any(name not in system.further for name in constraints.observed):
        return None
    names = {name for row in constraints.rows for name in row.expression.names}
    return None if names & set(model.inputs.names) or model.states.names != system.state_signals.names else system


def build_invariants(model: Model, system: ImplicitSystem, parameters: Mapping[str, SX] | None = None) -> SX:
    """Return h: the residuals of the model's constraints, then the rates of those that need one, inputs held."""
    s = system
    observed = ca.vertcat(ca.SX(0, 1), *(s.further[name] for name in model.constraints.observed))
    g = model.constraints.graph(s.time, s.states, s.inputs, observed, parameters)
    hidden = g[list(model.constraints.hidden)]
    moving = ca.vertcat(s.time, s.states)
    return ca.vertcat(g, ca.mtimes(ca.jacobian(hidden, moving), ca.vertcat(1, s.derivatives)))


class BatchGraph:
    """The functions of a model; see :func:`batch_graph`."""

    def __init__(self, model: Model, system: ImplicitSystem) -> None:
        s, h = system, build_invariants(model, system)
        self.names = s.parameter_signals.names
        self.values = s.parameter_values
        self._constraint_parts = h, s.parameters, s.unknowns
        ends = np.cumsum([0, s.derivatives.numel(), s.outputs.numel(), h.numel()]).tolist()
        self.ends = ends[1:-1]
        self.parts = [slice(a, b) for a, b in pairwise(ends)]  # of f, c and h among all quantities
        quantities = ca.densify(ca.vertcat(s.derivatives, s.outputs, h))
        self.stacks = StackFunctions(s, quantities, invariants=h.numel())
        self.partitions: dict[tuple[int, ...], StatePartition] = {}  # by the kept states, as last used

    @cached_property
    def smooth(self) -> bool:
        """Whether no operation of the equations can have a kink."""
        return self.stacks.smooth

    def may_move_constraints(self, parameters: Sequence[str]) -> bool:
        """Whether constraints depend on parameters, by themselves or by accelerations and multipliers."""
        h, symbols, unknowns = self._constraint_parts
        varied = ca.vertcat(ca.SX(0, 1), *(symbols[self.names.index(name)] for name in parameters))
        return bool(ca.depends_on(h, ca.vertcat(varied, unknowns)))

    def parameters(self, count: int, parameter_values: Mapping[str, FloatArray]) -> FloatArray:
        """Return the parameters of every point, shape (count, np), not to be written to."""
        if not parameter_values:
            return np.broadcast_to(self.values, (count, len(self.values)))
        p = np.tile(self.values, (count, 1))
        for name, values in parameter_values.items():
            p[:, self.names.index(name)] = values
        return p

    def __call__(
        self, t: FloatArray | float, x: FloatArray, u: FloatArray, p: FloatArray, *, threads: int = 1
    ) -> BatchArguments:
        """Return everything at points x (k, N), u (k, nu), p (k, np); t is a number or of shape (k, 1)."""
        z, slopes = self.stacks(t, x, u, p, threads=threads)
        return BatchArguments(*(z[:, part] for part in self.parts), *(slopes[:, part] for part in self.parts))

    def compute_values(self, t: FloatArray | float, x: FloatArray, u: FloatArray, p: FloatArray) -> Evaluation | None:
        """Return values without derivatives at points; None without compiled code, or where it is not good at one."""
        answer = self.stacks.values(t, x, u, p)
        if answer is None:
            return None
        z, good = answer
        return Evaluation(*(z[:, part] for part in self.parts)) if good.all() else None


@dataclass(frozen=True)
class PartitionedDerivatives:
    """Values and derivatives at k points."""

    stack: BatchArguments
    independent: list[int]  # the states by number
    dependent: list[int]  # the states by number
    dependent_gradient: FloatArray  # (k, N - P, P), dz/dy
    unit: FloatArray  # (N, P), dx/dy with zeros for the others

    @property
    def T(self) -> FloatArray:
        """dx/dy, shape (k, N, P); not to be written to where all states are kept."""
        if not self.dependent:
            return np.broadcast_to(self.unit, (len(self.dependent_gradient), *self.unit.shape))
        T = np.empty((len(self.dependent_gradient), *self.unit.shape))
        T[...] = self.unit
        T[:, self.dependent] = self.dependent_gradient
        return T

    def along(self, slopes: FloatArray) -> FloatArray:
        """Return derivatives by (x, u), shape (k, r, N + nu), as derivatives by (y, u), shape (k, r, P + nu)."""
        n = len(self.independent) + len(self.dependent)
        if not self.dependent and self.independent == list(range(n)):
            return slopes
        columns = [*self.independent, *range(n, slopes.shape[-1])]
        reduced = slopes[..., columns]
        if self.dependent:
            reduced[..., : len(self.independent)] += slopes[..., self.dependent] @ self.dependent_gradient
        return reduced

    @property
    def tangents(self) -> TangentBatch:
        """The same as any model answers it."""
        s, n = self.stack, len(self.independent) + len(self.dependent)
        f_y, c_y = self.along(s.f_z), self.along(s.c_z)
        return TangentBatch(tuple(self.independent), s.f, s.c, s.h, s.h_z[..., :n], self.T, f_y, c_y)

    @property
    def size(self) -> FloatArray:
        """The largest entry of dz/dy at each point, shape (k,); NaN where there is none."""
        return np.asarray(np.abs(self.dependent_gradient).max(axis=(1, 2), initial=0.0))


class StatePartition:
    """Which states are kept, and which invariants, independent at ``point``, give the others."""

    def __init__(self, graph: BatchGraph, model: Model, independent: Sequence[int], point: OperatingPoint) -> None:
        n = len(model.states)
        self._graph, self._states = graph, model.states
        self.independent = list(independent)
        self.dependent = sorted(set(range(n)).difference(self.independent))
        self._unit = np.zeros((n, len(self.independent)))
        self._unit[self.independent, range(len(self.independent))] = 1.0
        self._rows: list[int] = []
        if self.dependent:
            point_parameters = {
                name: np.array([value]) for name, value in point.parameters.items() if name in graph.names
            }
            here = graph(point.time, point.states[None], point.inputs[None], graph.parameters(1, point_parameters))
            H = here.h_z[0, :, :n] * model.states.scales(point.states)
            sizes = row_sizes(H, row_terms(model, point))
            self._rows = independent_rows(H / sizes[:, None], len(self.dependent), len(H))
            if len(self._rows) != len(self.dependent):
                raise NumericalError(
                    f"{len(self.independent)} of {n} states were requested as independent, but {len(self._rows)} "
                    "invariants are independent at the first point: choose another number of states, or a point that "
                    "is not singular."
                )

    def at(
        self, t: FloatArray | float, x: FloatArray, u: FloatArray, changes: Changes = UNCHANGED, *, threads: int = 1
    ) -> PartitionedDerivatives:
        """Return values and derivatives at points x (k, N), u (k, nu); dz/dy is NaN where it is undetermined."""
        stack = self.stack(t, x, u, changes, threads=threads)
        if not self.dependent:
            nothing = np.zeros((len(x), 0, len(self.independent)))
            return PartitionedDerivatives(stack, self.independent, self.dependent, nothing, self._unit)
        H = stack.h_z[:, self._rows]
        square, right = H[..., self.dependent], -H[..., self.independent]
        return PartitionedDerivatives(stack, self.independent, self.dependent, solve_batch(square, right), self._unit)

    def tangents(
        self, t: FloatArray | float, x: FloatArray, u: FloatArray, changes: Changes = UNCHANGED, *, threads: int = 1
    ) -> tuple[TangentBatch, NDArray[np.bool_] | None]:
        """Return the model at points along the kept states, and where dz/dy is doubtful; None where it is nowhere."""
        p = self._graph.parameters(len(x), changes) if changes else self._graph.values
        compiled = self._graph.stacks.along((t, x, u, p), self.reduction, MAX_DEPENDENT_DERIVATIVE, threads=threads)
        if compiled is None:
            slopes = self.at(t, x, u, changes, threads=threads)
            is_far = ~(slopes.size <= MAX_DEPENDENT_DERIVATIVE)
            return slopes.tangents, is_far if is_far.any() else None
        f, c, h = (compiled.z[:, part] for part in self._graph.parts)
        tangents = TangentBatch(
            self.reduction.independent, f, c, h, compiled.gradient, compiled.T, compiled.rates, compiled.outputs
        )
        if compiled.doubtful is None:
            return tangents, None
        doubtful = np.flatnonzero(compiled.doubtful)
        doubtful_changes = {name: values[doubtful] for name, values in changes.items()}
        time = t[doubtful] if isinstance(t, np.ndarray) else t
        slopes = self.at(time, x[doubtful], u[doubtful], doubtful_changes)
        is_far = np.zeros(len(x), dtype=bool)
        is_far[doubtful] = ~(slopes.size <= MAX_DEPENDENT_DERIVATIVE)
        return tangents.replace_points(doubtful, slopes.tangents), is_far if is_far.any() else None

    @cached_property
    def reduction(self) -> Reduction:
        """The kept states, the others, and the rows that determine them, as compiled code takes them."""
        _, c, h = (part.stop - part.start for part in self._graph.parts)
        n = len(self.independent) + len(self.dependent)
        return Reduction(n, c, h, tuple(self.independent), tuple(self.dependent), tuple(self._rows))

    def stack(
        self, t: FloatArray | float, x: FloatArray, u: FloatArray, changes: Changes = UNCHANGED, *, threads: int = 1
    ) -> BatchArguments:
        """Return values and derivatives at points x (k, N), u (k, nu), whether these are on the manifold or not."""
        p = self._graph.parameters(len(x), changes)
        try:
            return self._graph(t, x, u, p, threads=threads)
        except np.linalg.LinAlgError:
            raise NumericalError(
                "The rates are not determined at one of the points: the matrix that multiplies accelerations and "
                "multipliers is singular there. Leave out the point, or start elsewhere.",
                condition_number=float("inf"),
            ) from None


def partition_tangents(
    graph: BatchGraph,
    model: Model,
    independent: Sequence[int],
    points: tuple[FloatArray | float, FloatArray, FloatArray],
    changes: Changes = UNCHANGED,
    *,
    threads: int = 1,
) -> tuple[TangentBatch, NDArray[np.bool_] | None]:
    """Return a model at points (t, x, u) along kept states, and where that is doubtful; None where it is nowhere.

    The rows of h that served before are used as long as they are good: which are independent takes longer to find out
    than the derivatives at a point.
    """
    key, (t, x, u) = tuple(independent), points
    partition = graph.partitions.get(key)
    if partition is not None:
        tangents, doubtful = partition.tangents(t, x, u, changes, threads=threads)
        if doubtful is None:
            return tangents, None
    first = {name: float(values[0]) for name, values in changes.items()}
    time = float(np.ravel(t)[0])
    partition = StatePartition(graph, model, independent, OperatingPoint(time, x[0], u[0], first))
    graph.partitions[key] = partition
    return partition.tangents(t, x, u, changes, threads=threads)


def tangents_of_graph(
    model: Model,
    t: FloatArray,
    x: FloatArray,
    u: FloatArray,
    independent: Sequence[int],
    parameters: Mapping[str, FloatArray],
) -> TangentBatch | None:
    """Return what ``HasBatchDerivatives.tangents`` asks for; None where the model, or what differs, is in no graph."""
    graph = batch_graph(model, tuple(parameters))
    if graph is None:
        return None
    tangents, _ = partition_tangents(graph, model, independent, (t[:, None], x, u), parameters)
    return tangents if graph.smooth else replace(tangents, smooth=False)


def values_of_graph(model: Model, t: FloatArray, x: FloatArray, u: FloatArray) -> Evaluation | None:
    """Return what :meth:`fmilin.Model.evaluate_points` asks for by compiled code; None without, or if it is not good.

    Near singular points elimination in compiled code is not accurate: the caller evaluates these by slower code.
    """
    graph = _graphs.get(model)
    values = None if graph is None else graph.compute_values(t[:, None], x, u, graph.parameters(len(x), {}))
    if values is None or not np.isfinite(values.derivatives).all():
        return None
    return replace(values, residuals=values.residuals[:, : len(model.constraints)])  # hidden rates stand behind


def derivatives_of_graph(model: Model, t: FloatArray, x: FloatArray, u: FloatArray) -> Evaluation | None:
    """Return what ``HasCompiledDerivatives.differentiate_points`` asks for."""
    graph = _graphs.get(model)
    if graph is None or not is_compiled(model):
        return None
    stack = graph(t[:, None], x, u, graph.parameters(len(x), {}))
    return Evaluation(stack.f_z, stack.c_z, stack.h_z[:, : len(model.constraints)])  # hidden rates stand behind


def reach_by_graph(
    model: Model, t: FloatArray, x: FloatArray, u: FloatArray, independent: Sequence[int], sizes: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]] | None:
    """Return what ``HasCompiledDerivatives.reach_manifold`` asks for."""
    graph = _graphs.get(model)
    partition = None if graph is None else graph.partitions.get(tuple(independent))
    if graph is None or partition is None:
        return None
    points = t[:, None], x, u, graph.values
    return graph.stacks.reach(points, partition.reduction, sizes, LAST_STEP, MAX_NEWTON_ITERATIONS)


def solve_batch(square: FloatArray, right: FloatArray) -> FloatArray:
    """Return the solutions of many systems, shape (k, m, p); NaN where one is singular."""
    try:
        return np.asarray(np.linalg.solve(square, right), dtype=np.float64)
    except np.linalg.LinAlgError:
        if len(square) == 1:
            return np.full(right.shape, np.nan)
    return np.concatenate([solve_batch(square[i : i + 1], right[i : i + 1]) for i in range(len(square))])


def stack_points(model: Model, points: Sequence[OperatingPoint]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return times (k, 1), states (k, N) and inputs (k, nu) of points."""
    if not len(points):
        raise UsageError("No operating point was given: give at least one.")
    sizes = len(model.states), len(model.inputs)
    # A check of each point takes longer than its linear model by compiled code: only doubtful points are examined.
    for point in points:
        if not _has_plain_arrays(point, sizes):
            require_sizes(model, point)
    t = np.array([[point.time] for point in points], dtype=np.float64)
    x = np.concatenate([point.states for point in points]).reshape(len(points), sizes[0])
    u = np.concatenate([point.inputs for point in points]).reshape(len(points), sizes[1])
    if np.isnan(t).any() or np.isnan(x).any() or np.isnan(u).any():
        for point in points:
            require_sizes(model, point)
    return t, np.asarray(x, dtype=np.float64), np.asarray(u, dtype=np.float64)


def _has_plain_arrays(point: OperatingPoint, sizes: tuple[int, int]) -> bool:
    """Whether a point has numbers in arrays of these sizes, which may be NaN."""
    if type(point) is not OperatingPoint or type(point.time) is not float or type(point.parameters) is not dict:
        return False
    n, nu = sizes
    x, u = point.states, point.inputs
    is_right = type(x) is np.ndarray and x.dtype == np.float64 and x.shape == (n,)
    return is_right and type(u) is np.ndarray and u.dtype == np.float64 and u.shape == (nu,)


def states_to_keep(model: Model, point: OperatingPoint, independent: Sequence[str] | None) -> tuple[int, ...]:
    """Return the states that are named, the recommended ones, or those that a partition keeps at a point."""
    if independent is None and not model.independent and not len(model.constraints):
        return tuple(range(len(model.states)))  # all are independent wherever the point is
    named, by_default = independent, model.independent_by_default and independent is None
    return kept_states(model, point, model.independent if named is None else named, by_default=by_default)


def check_threads(threads: int) -> int:
    """Return how many threads compute."""
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise UsageError(f"threads={threads!r}: give a positive whole number.")
    return threads


_made: WeakKeyDictionary[Model, dict[tuple[tuple[str, ...], ...], GraphDerivatives | None]] = WeakKeyDictionary()


def graph_derivatives(model: Model, outputs: Sequence[str], parameters: Sequence[str]) -> GraphDerivatives | None:
    """Return the functions of a model with these outputs; None where it has no graph with parameters.

    Where only parameters that are asked for are in a graph, those of ``parameters`` that can be are in this one.
    """
    made = _made.setdefault(model, {})
    key = tuple(outputs), tuple(parameters) if isinstance(model, HasVariedGraph) else ()
    if key not in made:
        made[key] = _make_graph_derivatives(model.with_interface(None, outputs), key[1])
    return made[key]


def _make_graph_derivatives(model: Model, parameters: Sequence[str]) -> GraphDerivatives | None:
    if isinstance(model, HasVariedGraph):
        possible = model.list_symbolic_parameters()
        parameters = [name for name in parameters if name in possible]
    system = read_implicit_system(model, parameters)
    if system is None or not len(system.parameter_signals):
        return None
    functions = GraphDerivatives(model, system)
    return functions if functions.smooth else None  # of others differences show whether the two sides agree


class GraphDerivatives:
    """The functions of a model; see :func:`graph_derivatives`."""

    def __init__(self, model: Model, system: ImplicitSystem) -> None:
        s, w = system, system.unknowns
        self.names, self.values = s.parameter_signals.names, s.parameter_values
        nodes = dict(zip(self.names, s.parameters.elements(), strict=True))
        q = ca.densify(ca.vertcat(s.derivatives, s.outputs, build_invariants(model, s, nodes)))
        self._ends = np.cumsum([s.derivatives.numel(), s.outputs.numel()])
        parts = [s.matrix, jacobian(q, s.motion), jacobian(q, w), s.motion_slopes]
        directions = [ca.SX.sym(name, a.numel()) for name, a in zip("xupw", (*s.arguments[1:], w), strict=True)]
        arguments, along = [*s.arguments, w], ca.vertcat(s.states, s.inputs, s.parameters, w)
        self._parts = Evaluator(arguments, parts, Backend("casadi"))
        self.solving = SystemFunctions(s)

        d, dense = ca.vertcat(*directions), [ca.densify(part) for part in parts]
        slopes = [ca.reshape(ca.jtimes(ca.vec(part), along, d), part.shape) for part in dense]
        self._moved = Evaluator([*arguments, *directions], slopes)
        residual = s.right_hand_side if s.guess is not None else s.right_hand_side - ca.mtimes(s.matrix, w)
        self._by_parameters = Evaluator(arguments, [ca.densify(ca.jacobian(a, s.parameters)) for a in (residual, q)])

    @property
    def smooth(self) -> bool:
        """Whether no operation of the equations can have a kink."""
        return not has_kinks(self._parts.function)

    def at(self, point: OperatingPoint) -> AtPoint:
        """Return what is needed for directions from a point of the model, with the parameters that it changes."""
        p = np.array([point.parameters.get(n, v) for n, v in zip(self.names, self.values, strict=True)])
        return AtPoint(self, (point.time, point.states, point.inputs, p))


class AtPoint:
    """A point, with what all directions from it have in common; ``slopes`` (f, c, h) by (x, u)."""

    def __init__(self, functions: GraphDerivatives, point: tuple[float, FloatArray, FloatArray, FloatArray]) -> None:
        self._functions, self._point = functions, point
        self._w = functions.solving.unknowns(*point)
        self._W, q_s, self._q_w, e_s = functions._parts(*point, self._w)
        self._w_s = self._solve(e_s)
        e_p, q_p = functions._by_parameters(*point, self._w)
        self._w_p = self._solve(e_p)
        self._fixed = q_p + self._q_w @ self._w_p
        self.slopes = tuple(np.split(q_s + self._q_w @ self._w_s, functions._ends))

    def differentiate_by_parameters(self, dp: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return how rates (N,), outputs (ny,) and invariants (m,) change with the parameters while the point stays."""
        return tuple(np.split(self._fixed @ dp, self._functions._ends))  # type: ignore[return-value]

    def along(self, dx: FloatArray, du: FloatArray, dp: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return how derivatives by (x, u), shapes (N, N + nu), (ny, N + nu), (m, N + nu), change along a direction."""
        dw = self._w_p @ dp + self._w_s @ np.concatenate((dx, du))
        dW, dq_s, dq_w, de_s = self._functions._moved(*self._point, self._w, dx, du, dp, dw)
        dw_s = self._solve(de_s - dW @ self._w_s)
        slopes = dq_s + dq_w @ self._w_s + self._q_w @ dw_s
        return tuple(np.split(slopes, self._functions._ends))  # type: ignore[return-value]

    def _solve(self, right: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.solve(self._W, right), dtype=np.float64) if len(self._w) else right
