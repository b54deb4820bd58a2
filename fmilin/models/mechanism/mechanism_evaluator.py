"""Values and exact derivatives of a mechanism's outputs and constraint quantities; its graph, many points.

Gaps and slips come from positions and velocities alone: Newton's iterations on the manifold ask for them many times,
and the kinematics take a third of the cost of an evaluation.

The compiled code is the recursion written down as a graph while it runs, once, with numbers that are nodes of a graph
(:mod:`fmilin.codegen.scalars`): what is zero by the structure of the mechanism leaves none. The system to solve at each
point is (A.8) of Spencer (thesis) with the independent constraints, as for Lagrange's equations:

    [M G'; G 0] (vdot; lambda) = (F; -Gdot v).

Close to a singular configuration the result of the recursion is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any

import casadi as ca
import numpy as np

from fmilin.codegen.implicit import ImplicitSystem
from fmilin.codegen.scalars import scalars, to_column, to_matrix
from fmilin.errors import NumericalError, UsageError
from fmilin.model.equation_forms import SecondOrderForm
from fmilin.model.interface import Evaluation, Model, TangentBatch
from fmilin.models.batch_graph import BatchGraph, partition_tangents
from fmilin.models.compiled_graph import GraphCompilation
from fmilin.models.mechanism.independence import Independence
from fmilin.models.mechanism.local_form import Choice
from fmilin.models.mechanism.mechanism_elements import Sensor
from fmilin.models.mechanism.multibody_system import Columns, ForwardDynamics, State, System, compute_rates
from fmilin.models.mechanism.outputs import Outputs
from fmilin.models.mechanism.quantities import available, input_signals, state_signals
from fmilin.models.mechanism.recursions import (
    accelerations,
    compute_displacements,
    coordinate_columns,
    motion,
    velocities,
)
from fmilin.models.mechanism.symbolic_parameters import insert_symbols
from fmilin.models.mechanism.tree import Array, Tree
from fmilin.models.native_engine import Quantity, Values
from fmilin.signals import FloatArray, Signal, Signals

UNCHANGED_PARAMETERS: Mapping[str, float] = MappingProxyType({})


class Closure:
    """The quantities of a mechanism's constraints without its dynamics: gaps and slips, in any order."""

    def __init__(self, system: System, entries: Sequence[Quantity]) -> None:
        self.system = system
        # Gaps first, then slips: the number of a gap is that of its constraint, and those on positions come first.
        first = {"gap": 0, "slip": system.m_q}
        self._order = np.array([first[kind] + number for kind, number in (e.source for e in entries)], dtype=np.intp)

    @classmethod
    def of(cls, system: System, entries: Sequence[Quantity]) -> Closure | None:
        """Return the closure, or None when something else is observed, too, an acceleration, say."""
        sources = [entry.source for entry in entries]
        is_closure = all(not isinstance(source, Sensor) and source[0] in ("gap", "slip") for source in sources)
        return cls(system, entries) if is_closure else None

    def values(self, q: Array, v: Array) -> Array:
        """Return the observed values at q (..., n_q), v (..., n), shape (..., their number)."""
        system, at = self.system, velocities(self.system.tree, q, v)
        now = system.markers.motion(at)
        W = system.rows.motion(now).W[..., system.positions, :]
        slips = system.rows.slips(W, at.V, v, system.positions)
        slips = slips if system.bends is None else system.bends.slips(slips, q, v)
        return np.concatenate((system.compute_gaps(now, q), slips), axis=-1)[..., self._order]

    def values_and_gradient(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Return the observed values (..., k) and their gradients for (q, v), shape (..., k, N), without dynamics."""
        system, tree, rate_q = self.system, self.system.tree, None
        at = velocities(tree, q, v)
        now = system.markers.motion(at)
        wrenches = system.rows.motion(now)
        G = system.rows.jacobian(wrenches.W[..., system.positions, :], at.S, system.positions)
        G = G if system.bends is None else system.bends.jacobian(G, q)
        slips = (G @ v[..., None])[..., 0]
        if v.any():
            moving = motion(tree, at, accelerations(tree, at, v, system.gravity))
            slots = system.derivatives.slots(now)
            rate_q = system.derivatives.columns(moving, now, slots, wrenches).rate_q[..., system.positions, :]
            rate_q = rate_q if system.bends is None else system.bends.rate_columns(rate_q, q, v)
        values = np.concatenate((system.compute_gaps(now, q), slips), axis=-1)
        return values[..., self._order], self._gradient(q, G, rate_q)

    def gradient(self, solution: ForwardDynamics, columns: Columns) -> Array:
        """Return the gradients of the observed values for (q, v) at a solution, shape (..., their number, N)."""
        return self._gradient(solution.state.q, solution.state.G, columns.rate_q)

    def _gradient(self, q: Array, G: Array, rate_q: Array | None) -> Array:
        """Return the gradients for (q, v, activations): these move nothing; ``rate_q`` is None at rest."""
        tree, m_q = self.system.tree, self.system.m_q
        states = tree.n_q + tree.n + len(self.system.activation_names)
        gradient = np.zeros((*G.shape[:-2], m_q + G.shape[-2], states))
        gradient[..., :m_q, : tree.n_q] = _along_coordinates(tree, q, G[..., :m_q, :])
        gradient[..., m_q:, tree.n_q : tree.n_q + tree.n] = G
        if rate_q is not None:
            gradient[..., m_q:, : tree.n_q] = _along_coordinates(tree, q, rate_q)
        return gradient[..., self._order, :]


def _along_coordinates(tree: Tree, q: Array, columns: Array) -> Array:
    """Return derivatives along displacements (..., k, n) as derivatives along coordinates, shape (..., k, n_q)."""
    if len(tree.balls):
        return columns @ compute_displacements(tree, q, np.eye(tree.n_q))
    columns_q = np.empty((*columns.shape[:-1], tree.n_q))
    columns_q[..., tree.screw_coordinates] = columns[..., tree.screw_speeds]
    return columns_q


def differentiate_accelerations(
    solution: ForwardDynamics, columns: Columns, theta: Array, dv: Array, du: Array
) -> tuple[Array, Array]:
    """Return the changes of vdot and lambda along displacements theta, dv (n, k) and inputs du (nu, k)."""
    used = solution.used
    dF = -(columns.rho_q @ theta + columns.rho_v @ dv + columns.rho_u @ du)
    dc = columns.c_q[..., used, :] @ theta + columns.c_v[..., used, :] @ dv
    w = solution.factors.solve(np.concatenate((dF, -dc), axis=-2))
    n = dF.shape[-2]
    dl = np.zeros((*w.shape[:-2], solution.multipliers.shape[-1], w.shape[-1]))
    dl[..., used, :] = w[..., n:, :]
    return w[..., :n, :], dl


def build_second_order_form(system: System, outputs: Outputs, state: State) -> SecondOrderForm:
    """Return M, G and the forces without balls and slips; multipliers and accelerations are those of least norm."""
    solution = system.solve_robustly(state)
    columns = system.columns(solution)
    n = system.tree.n
    o = outputs.columns(solution, columns)
    order = np.arange(n)
    zero = np.zeros_like(state.u)

    def bend(a: FloatArray) -> FloatArray:
        return np.asarray(system.state(state.q, a, zero).c)

    return SecondOrderForm(
        positions=order,
        velocities=n + order,
        M=state.M,
        G=state.G,
        multipliers=solution.multipliers,
        accelerations=solution.v_dot,
        force_states=-np.hstack((columns.rho_q, columns.rho_v)),
        force_inputs=-columns.rho_u,
        output_states=np.hstack((o.q + o.theta, o.v)),
        output_inputs=o.u,
        output_unknowns=np.hstack((o.v_dot, o.multipliers)),
        bend=bend,
        constraint_states=np.hstack((columns.c_q, columns.c_v)),
        constraint_inputs=np.zeros((len(system.loop_constraints), state.u.size)),
    )


class MechanismQuantities:
    """Outputs and observed quantities of a mechanism; ``system`` has markers for these and nothing else."""

    def __init__(self, system: System, used: Array, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> None:
        self.system, self._used = system, used
        self.outputs, self.observing = Outputs(system, outputs), Outputs(system, observed)
        system.finish()
        self.closure = Closure.of(system, observed)

    def state(self, x: Array, u: Array) -> State:
        """Return what x (..., N) and all inputs u (..., nu) determine without solving."""
        q, v, a = self.system.parts(x)
        if len(self.system.activation_names):
            shape = np.broadcast_shapes(u.shape[:-1], a.shape[:-1])
            both = (np.broadcast_to(part, (*shape, part.shape[-1])) for part in (u, a))
            u = np.concatenate(tuple(both), axis=-1)
        return self.system.state(q, v, u)

    def solution(self, x: Array, u: Array) -> ForwardDynamics:
        """Return accelerations and multipliers, with everything on the way."""
        return self.system.solve(self.state(x, u), self._used)

    def values(self, solution: ForwardDynamics) -> Values:
        """Return rates, outputs and observed quantities at a solution, or at many."""
        return compute_rates(self.system, solution), self.outputs.values(solution), self.observing.values(solution)

    def derivatives(self, solution: ForwardDynamics, dx: FloatArray, du: FloatArray) -> Values:
        """Return the exact derivatives at a solution along the columns of dx (N, k) and du (nu, k)."""
        system, n_q = self.system, self.system.tree.n_q
        columns = system.columns(solution)
        q, v = solution.state.q, solution.state.v
        dq, dv, da = dx[:n_q], dx[n_q : n_q + system.tree.n], dx[n_q + system.tree.n :]
        du = np.concatenate((du, da))
        theta = compute_displacements(system.tree, q, dq)
        dv_dot, dl = differentiate_accelerations(solution, columns, theta, dv, du)
        E, E_q = coordinate_columns(system.tree, q, v)
        out, dz = (
            o.q @ dq + o.theta @ theta + o.v @ dv + o.v_dot @ dv_dot + o.multipliers @ dl + o.u @ du
            for o in (self.outputs.columns(solution, columns), self.observing.columns(solution, columns))
        )
        return np.concatenate((E_q @ dq + E @ dv, dv_dot, system.activation_columns(solution.state.u) @ du)), out, dz


SECONDS_PER_STATE = 6e-6  # seconds that the recursion takes for a point among many, about, for each state
MAX_BATCH_SIZE = 2**16  # numbers in the largest arrays of the recursion: a 6 x 6 matrix for each speed of each point


class ManyPoints:
    """The linear models of a mechanism, which counts its points; ``recursion`` takes states (k, N), inputs (k, nu)."""

    def __init__(self, model: Model, recursion: Callable[[FloatArray, FloatArray, Choice], TangentBatch]) -> None:
        self._model, self._recursion = model, recursion
        self.compilation = GraphCompilation(model, SECONDS_PER_STATE * max(len(model.states), 1))

    def __call__(
        self,
        x: FloatArray,
        u: FloatArray,
        choice: Choice,
        *,
        threads: int = 1,
        compiled: bool | None = None,
    ) -> TangentBatch:
        """Return values, constraints and derivatives along the states of a choice at points x (k, N) and u (k, nu)."""
        pays = self.compilation.pays(len(x)) if compiled is None else compiled
        graph = self.compilation.compile() if pays else None
        if graph is None and compiled:
            raise UsageError(
                f"There is no compiled code for '{self._model.info.name}': it takes a C compiler (cc, gcc or clang on "
                "the PATH, or named by the environment variable CC) and the mechanism's own constraints. Leave out "
                "compiled=True."
            )
        if graph is not None:
            return self._evaluate_compiled(graph, x, u, choice, threads)
        size = max(1, MAX_BATCH_SIZE // (18 * max(1, x.shape[1])))

        def work(first: int) -> TangentBatch:
            batch = slice(first, first + size)
            return self._recursion(x[batch], u[batch], choice)

        mapped = map if threads == 1 else ThreadPoolExecutor(threads).map
        return TangentBatch.joined(list(mapped(work, range(0, len(x), size))))

    @property
    def is_compiled(self) -> bool:
        """Whether compiled code answers by now."""
        return self.compilation.graph is not None

    def values(self, x: FloatArray, u: FloatArray) -> Evaluation | None:
        """Return rates, outputs and residuals at points x (k, N), u (k, nu) by compiled code, without derivatives.

        None where there is no compiled code yet, and where it is not good at one of the points: near singular
        configurations the recursion answers.
        """
        graph = self.compilation.graph
        if graph is None:
            return None
        stack = graph.compute_values(0.0, x, u, graph.parameters(len(x), {}))
        return None if stack is None or not np.isfinite(stack.derivatives).all() else stack

    def _evaluate_compiled(
        self,
        graph: BatchGraph,
        x: FloatArray,
        u: FloatArray,
        choice: Choice,
        threads: int = 1,
    ) -> TangentBatch:
        try:
            points = 0.0, x, u
            tangents, is_doubtful = partition_tangents(graph, self._model, choice.states, points, threads=threads)
        except NumericalError:  # the first point is singular: the recursion says how
            return self._recursion(x, u, choice)
        is_good = np.isfinite(tangents.rates).all(axis=1)
        if is_doubtful is not None:
            is_good &= ~is_doubtful
        if is_good.all():
            return tangents
        doubtful = np.flatnonzero(~is_good)
        return tangents.replace_points(doubtful, self._recursion(x[doubtful], u[doubtful], choice))


def in_graph(
    quantities: MechanismQuantities,
    independence: Independence,
    outputs: Sequence[Quantity],
    observed: Sequence[Quantity],
    parameters: Mapping[str, float] = UNCHANGED_PARAMETERS,
) -> ImplicitSystem:
    """Return the equations as a graph; gaps, slips and reactions are named quantities.

    ``parameters`` are symbols with these values in it, all others are numbers: symbols take the place of values in the
    system of ``quantities``, which serves nothing else then.
    """
    system = quantities.system
    states, inputs = state_signals(system), input_signals(system)
    unknowns = _unknowns(system, independence, states)
    sizes = {"x": len(states), "u": len(inputs), "p": len(parameters), "w": len(unknowns)}
    x, u, p, w = (ca.SX.sym(name, size) for name, size in sizes.items())
    if parameters:
        insert_symbols(system, dict(zip(parameters, scalars(p), strict=True)))
    state = quantities.state(scalars(x), scalars(u))
    solution = _solution(system, independence, state, scalars(w))
    names, quantities_by_name = _further(system, independence), available(system, states, inputs)
    further = Outputs(system, [quantities_by_name[name] for name in names])  # of kinds that add no markers
    named = dict(zip(names, to_column(further.values(solution)).elements(), strict=True))
    observed_nodes = to_column(quantities.observing.values(solution)).elements()
    named |= {quantity.signal.name: e for quantity, e in zip(observed, observed_nodes, strict=True)}
    used = independence.all
    G = state.G[used]
    matrix, right = np.block([[state.M, G.T], [G, np.zeros((len(used), len(used)))]]), (*state.F, *-state.c[used])
    return ImplicitSystem(
        name=system.description.name,
        time=ca.SX.sym("time"),
        states=x,
        inputs=u,
        parameters=p,
        unknowns=w,
        unknown_names=tuple(unknowns),
        matrix=to_matrix(matrix),
        right_hand_side=to_column(right),
        derivatives=to_column(compute_rates(system, solution)),
        outputs=to_column(quantities.outputs.values(solution)),
        further=named,
        slopes=to_matrix(_slopes(system, independence, solution)),
        state_signals=states,
        input_signals=inputs,
        output_signals=Signals(quantity.signal for quantity in outputs),
        parameter_signals=Signals(Signal(name) for name in parameters),
        parameter_values=np.array(list(parameters.values()), dtype=np.float64),
    )


def _unknowns(system: System, independence: Independence, states: Signals) -> list[str]:
    """Return the names of accelerations and multipliers."""
    n_q, loop_constraints = system.tree.n_q, [system.loop_constraints[i] for i in independence.all]
    return [
        *(f"der({name})" for name in states.names[n_q : n_q + system.tree.n]),
        *(f"{loop.of}.reaction[{loop.index}]" for loop in loop_constraints),
    ]


def _solution(system: System, independence: Independence, state: State, w: Any) -> ForwardDynamics:
    """Return a solution with accelerations and multipliers as symbols."""
    used = independence.all
    n = system.tree.n
    multipliers = np.zeros(len(system.loop_constraints), dtype=object)
    multipliers[used] = w[n:]
    A = state.A + system.tree.above @ (state.at.S * w[:n, None])
    return ForwardDynamics(state, used, w[:n], multipliers, A)


def _slopes(system: System, independence: Independence, solution: ForwardDynamics) -> Any:
    """Return d(r - W w)/d(x, u), (n + m, N + nu), by section 4.3: cheaper than differentiating every statement."""
    used = independence.all
    columns, q = system.columns(solution), solution.state.q
    theta = compute_displacements(system.tree, q, np.eye(len(q)))
    inputs = len(system.description.inputs)
    by_u = np.hstack((columns.rho_u[:, inputs:], columns.rho_u[:, :inputs]))  # activations are states
    pushes = np.hstack((columns.rho_q @ theta, columns.rho_v, by_u))
    bends = np.hstack((columns.c_q[used] @ theta, columns.c_v[used], np.zeros((len(used), columns.rho_u.shape[1]))))
    return -np.vstack((pushes, bends))


def _further(system: System, independence: Independence) -> list[str]:
    """Return the names of what belongs to loops, wheels and skates."""
    lost = independence.undetermined
    names = []
    for loop in system.loop_constraints:
        if loop.level == "position":
            names.append(f"{loop.of}.gap[{loop.index}]")
        names.append(f"{loop.of}.slip[{loop.index}]")
        if (loop.of, loop.index) not in lost:
            names.append(f"{loop.of}.reaction[{loop.index}]")
    return names
